//! Checks of the generator's lateness and its effect on the figures.

use super::evidence::{Evidence, LagImpact};
use super::words::{duration, percent, plural};
use super::{Blame, Check, CheckResult, Level, NOTHING_MORE};
use crate::plan::thresholds::{LagImpactLimits, Thresholds};

/// Waits for a core explain stalls if they account for at least this share of their time.
const MIN_EXPLAINED_SHARE: f64 = 0.5;

/// Highest quantile whose distortion makes a load invalid. A distortion above it makes only the
/// affected quantile unusable.
const MAX_QUANTILE: f64 = 0.99;

/// The generator is to blame for its lateness unless run-queue waits or steal time were long enough
/// to explain it.
pub(super) fn blame(evidence: &Evidence, thresholds: &Thresholds) -> Blame {
    let stolen_share = evidence
        .steal_share
        .filter(|share| *share > thresholds.steal.note);
    let is_explained = if evidence.stalls.count > 0 {
        let waited = evidence.stalls.waited_ns as f64 / evidence.stalls.total_ns.max(1) as f64;
        let stolen = stolen_share.unwrap_or(0.0) / evidence.stalled_share.max(f64::MIN_POSITIVE);
        waited + stolen >= MIN_EXPLAINED_SHARE
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

/// Whether the generator's lateness distorted p99 or a lower quantile by more than the limits.
pub(super) fn is_severe(evidence: &Evidence, limits: &LagImpactLimits) -> bool {
    let mut impacts = evidence.lag_impact.iter();
    impacts.any(|impact| impact.quantile <= MAX_QUANTILE && is_invalid(impact, limits))
}

fn is_invalid(impact: &LagImpact, limits: &LagImpactLimits) -> bool {
    impact.share() > limits.invalid && impact.added_ns as f64 > limits.invalid_ns
}

fn is_warning(impact: &LagImpact, limits: &LagImpactLimits) -> bool {
    impact.share() > limits.warn && impact.added_ns as f64 > limits.warn_ns
}

pub(super) static SEND_LAG: Check = Check {
    name: "send-lag",
    examines: "each quantile of the response time, compared with the same quantile after \
        subtracting each request's send lag",
    premise: "Send lag increased a quantile by more than both `warn` (a share) and `warn_ns`. \
        Beyond `bound` and `bound_ns`, the quantile is only an upper bound. Beyond `invalid` (1: \
        doubled) and `invalid_ns`, the load is invalid if the quantile is p99 or lower. An \
        increase beyond `note` is a diagnostic and part of the figure's error budget.",
    sighting: Some("the generator sent requests late in"),
    lengthens: true,
    fix: Some("give the generator a dedicated core (--client-cpus), or lower the rate"),
    rule: send_lag,
    ..NOTHING_MORE
};

fn send_lag(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let limits = &thresholds.lag_impact;
    let by_share = |left: &&LagImpact, right: &&LagImpact| left.share().total_cmp(&right.share());
    let worst = |level: &dyn Fn(&LagImpact) -> bool| {
        let impacts = evidence.lag_impact.iter();
        impacts.filter(|impact| level(impact)).max_by(by_share)
    };
    if evidence.lag_impact.is_empty() {
        return CheckResult::NotChecked("no quantile has ten correct responses beyond it");
    }

    let blame = blame(evidence, thresholds);
    let is_below = |impact: &LagImpact| impact.quantile <= MAX_QUANTILE;
    if let Some(impact) = worst(&|impact| is_below(impact) && is_invalid(impact, limits)) {
        let figures = (impact.share(), limits.invalid);
        return CheckResult::fired(Level::Invalid, blame, figures, send_lag_message(impact));
    }
    if let Some(impact) = worst(&|impact| is_warning(impact, limits)) {
        let figures = (impact.share(), limits.warn);
        return CheckResult::fired(Level::Warn, blame, figures, send_lag_message(impact));
    }
    match worst(&|impact| impact.share() > limits.note) {
        Some(impact) => CheckResult::diagnostic(
            blame,
            (impact.share(), limits.note),
            send_lag_message(impact),
        ),
        None => CheckResult::Passed,
    }
}

fn send_lag_message(impact: &LagImpact) -> String {
    format!(
        "send lag may have added up to {} to p{} ({})",
        duration(impact.added_ns),
        impact.quantile * 100.0,
        percent(impact.share())
    )
}

pub(super) static SEND_LAG_ABSOLUTE: Check = Check {
    name: "send-lag-absolute",
    examines: "p99 and p99.9 of the send lag",
    premise: "p99 exceeds `note_p99_ns`, or p99.9 exceeds `note_p999_ns`. This is only a \
        diagnostic; the check send-lag shows the effect on response times.",
    lengthens: true,
    fix: Some("give the generator a dedicated core (--client-cpus), or lower the rate"),
    rule: send_lag_absolute,
    ..NOTHING_MORE
};

fn send_lag_absolute(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let (Some(p99_ns), Some(p999_ns)) = (evidence.send_lag_p99_ns, evidence.send_lag_p999_ns)
    else {
        return CheckResult::NotChecked("no request was sent");
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
        CheckResult::diagnostic(blame, (p99, limits.note_p99_ns), message)
    } else {
        CheckResult::diagnostic_above(blame, p999, limits.note_p999_ns, message)
    }
}

pub(super) static CLIENT_STALLS: Check = Check {
    name: "client-stalls",
    examines: "stalls of more than 5 ms in the generator's event loop, and the number of requests \
        they affected, compared with the number beyond p99",
    premise: "The number of affected requests, divided by the number beyond p99, exceeds `warn`. \
        Affected are requests due during a stall, responses that may have been read late (unless \
        the kernel timestamps them), and connections that may have been delayed. The load is \
        invalid if the number without the requests due during a stall, which the check send-lag \
        covers, exceeds `invalid`. If the longest stall is shorter than 10 % of p99, the finding \
        is only a diagnostic.",
    sighting: Some("the generator stalled during"),
    lengthens: true,
    fix: Some("stop other programs on the machine, or give the generator a dedicated core"),
    rule: client_stalls,
    ..NOTHING_MORE
};

fn client_stalls(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let stalls = &evidence.stalls;
    let limits = thresholds.stalls;
    let message = format!(
        "the generator stalled {} {}, delaying up to {} and {}",
        if stalls.count == 1 {
            "once for".to_owned()
        } else {
            format!("{} for up to", plural(stalls.count, "time"))
        },
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
        return CheckResult::fired(
            Level::Invalid,
            blame,
            (waited_share, limits.invalid),
            message,
        );
    }
    if is_relevant {
        return CheckResult::warn_above(blame, touched_share, limits.warn, message);
    }
    CheckResult::diagnostic_above(blame, touched_share, limits.warn, message)
}
