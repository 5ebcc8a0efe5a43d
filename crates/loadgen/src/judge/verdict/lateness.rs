//! How late the generator was, and what that did to the figures.

use super::evidence::{Evidence, LagImpact};
use super::words::{duration, percent, plural};
use super::{Blame, Finding, Level};
use crate::plan::thresholds::{LagImpactLimits, Thresholds};

/// Waits for a core explain a stall from this share of it on.
const LEAST_EXPLANATION: f64 = 0.5;

/// The highest quantile whose distortion makes a load invalid. Beyond it the figure alone is in
/// doubt.
const HIGHEST_QUANTILE: f64 = 0.99;

/// Lateness is the generator's fault unless its thread waited for a core meanwhile, or the
/// hypervisor took time, and long enough to explain it.
pub(super) fn blame(evidence: &Evidence, thresholds: &Thresholds) -> Blame {
    let stolen_share = evidence
        .steal_share
        .filter(|share| *share > thresholds.steal.note);
    let is_explained = if evidence.stalls.count > 0 {
        let waited = evidence.stalls.waited_ns as f64 / evidence.stalls.total_ns.max(1) as f64;
        let stolen = stolen_share.unwrap_or(0.0) / evidence.stalled_share.max(f64::MIN_POSITIVE);
        waited + stolen >= LEAST_EXPLANATION
    } else {
        let waited_share = evidence
            .run_queue_share
            .filter(|share| *share > thresholds.run_queue.note);
        waited_share.or(stolen_share).is_some()
    };
    if is_explained {
        Blame::Host
    } else {
        Blame::Client
    }
}

/// Whether the generator's lateness distorted p99 or a lower quantile beyond the limits.
pub(super) fn is_grave(evidence: &Evidence, limits: &LagImpactLimits) -> bool {
    let mut impacts = evidence.lag_impact.iter();
    impacts.any(|impact| impact.quantile <= HIGHEST_QUANTILE && is_invalid(impact, limits))
}

fn is_invalid(impact: &LagImpact, limits: &LagImpactLimits) -> bool {
    impact.share() > limits.invalid && impact.added_ns as f64 > limits.invalid_ns
}

fn is_warning(impact: &LagImpact, limits: &LagImpactLimits) -> bool {
    impact.share() > limits.warn && impact.added_ns as f64 > limits.warn_ns
}

/// `send-lag`, the most important check: each reported quantile against the same without the
/// generator's lateness, request by request.
pub(super) fn lengthened_no_quantile(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let limits = &thresholds.lag_impact;
    let by_share = |left: &&LagImpact, right: &&LagImpact| left.share().total_cmp(&right.share());
    let worst = |level: &dyn Fn(&LagImpact) -> bool| {
        let impacts = evidence.lag_impact.iter();
        impacts.filter(|impact| level(impact)).max_by(by_share)
    };
    if evidence.lag_impact.is_empty() {
        return Finding::NotChecked("no quantile has ten correct responses beyond it");
    }

    let blame = blame(evidence, thresholds);
    let is_below = |impact: &LagImpact| impact.quantile <= HIGHEST_QUANTILE;
    if let Some(impact) = worst(&|impact| is_below(impact) && is_invalid(impact, limits)) {
        let figures = (impact.share(), limits.invalid);
        return Finding::doubt(Level::Invalid, blame, figures, lengthened(impact));
    }
    if let Some(impact) = worst(&|impact| is_warning(impact, limits)) {
        let figures = (impact.share(), limits.warn);
        return Finding::doubt(Level::Warn, blame, figures, lengthened(impact));
    }
    match worst(&|impact| impact.share() > limits.note) {
        Some(impact) => Finding::noted(blame, (impact.share(), limits.note), lengthened(impact)),
        None => Finding::Sound,
    }
}

fn lengthened(impact: &LagImpact) -> String {
    format!(
        "send lag increased p{} by {} ({})",
        impact.quantile * 100.0,
        duration(impact.added_ns),
        percent(impact.share())
    )
}

/// `send-lag-absolute`: lateness in itself. What it did to the figures is `send-lag`'s.
pub(super) fn was_short_in_itself(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let (Some(p99_ns), Some(p999_ns)) = (evidence.send_lag_p99_ns, evidence.send_lag_p999_ns)
    else {
        return Finding::NotChecked("no request was sent");
    };
    let limits = &thresholds.lag;
    let message = format!(
        "send lag was {} at p99 and {} at p99.9",
        duration(p99_ns),
        duration(p999_ns)
    );
    let blame = blame(evidence, thresholds);
    let (p99, p999) = (p99_ns as f64, p999_ns as f64);
    if p99 > limits.note_p99_ns {
        Finding::noted(blame, (p99, limits.note_p99_ns), message)
    } else {
        Finding::noted_above(blame, p999, limits.note_p999_ns, message)
    }
}

/// `client-stalls`: stalls of the generator's event loop. What they did to requests that became due
/// is in `send-lag`, request by request. Responses that waited to be read without a kernel
/// timestamp are not: those make a load invalid if they are enough to move p99, and long enough to
/// matter there.
pub(super) fn stalled_for_few_requests(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let stalls = &evidence.stalls;
    let limits = thresholds.stalls;
    let message = format!(
        "the generator stalled {} for up to {}, delaying up to {} and {}",
        plural(stalls.count, "time"),
        duration(stalls.longest_ns),
        plural(stalls.arrivals, "request"),
        plural(stalls.responses, "response")
    );
    let blame = blame(evidence, thresholds);

    let beyond_p99 = (evidence.scheduled as f64 * 0.01).max(1.0);
    let waited_share = stalls.responses as f64 / beyond_p99;
    let touched_share = (stalls.arrivals + stalls.responses) as f64 / beyond_p99;
    let lag = &thresholds.lag_impact;
    let relevant_ns = lag
        .bound_ns
        .max(lag.bound * evidence.response_p99_ns.unwrap_or(0) as f64);
    let is_relevant = stalls.longest_ns as f64 > relevant_ns;
    if is_relevant && waited_share > limits.invalid {
        return Finding::doubt(
            Level::Invalid,
            blame,
            (waited_share, limits.invalid),
            message,
        );
    }
    if is_relevant {
        return Finding::warn_above(blame, touched_share, limits.warn, message);
    }
    Finding::noted_above(blame, touched_share, limits.warn, message)
}
