//! How late the generator was, and what that did to the figures.

use super::evidence::Evidence;
use super::{Blame, Finding, Level, milliseconds, percent};
use crate::plan::thresholds::Thresholds;

/// A wait for a core that is less than this share of the loop's own standstill does not explain it.
const LEAST_EXPLANATION: f64 = 0.5;

/// Lateness is our own doing, unless the thread stood in line for a core meanwhile, and long
/// enough.
pub(super) fn blame(evidence: &Evidence, thresholds: &Thresholds) -> Blame {
    let is_disturbed = |share: Option<f64>, warn: f64| share.is_some_and(|share| share > warn);
    let is_seen = is_disturbed(evidence.run_queue_share, thresholds.run_queue.warn)
        || is_disturbed(evidence.steal_share, thresholds.steal.warn);
    let others_share =
        evidence.run_queue_share.unwrap_or(0.0) + evidence.steal_share.unwrap_or(0.0);
    let is_explained = others_share >= evidence.stalled_share * LEAST_EXPLANATION;
    if is_seen && is_explained {
        Blame::Host
    } else {
        Blame::Client
    }
}

/// `send-lag`, the heart: each reported quantile against the same without our own lateness, request by
/// request. The second is no result, because a late send changes what the server sees.
pub(super) fn lengthened_no_quantile(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let worst = evidence
        .lag_impact
        .iter()
        .copied()
        .max_by(|left, right| left.1.total_cmp(&right.1));
    let Some((quantile, share)) = worst else {
        return Finding::NotChecked("fewer than ten correct responses lie beyond any quantile");
    };
    let message = format!(
        "the generator's own lateness lengthened p{} by {}",
        quantile * 100.0,
        percent(share)
    );
    Finding::graded(
        blame(evidence, thresholds),
        share,
        thresholds.lag_impact,
        message,
    )
}

/// `send-lag-absolute`: lateness in itself, grave only where it is a good part of the usual response time.
pub(super) fn was_short_in_itself(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let (Some(p99_ns), Some(p999_ns)) = (evidence.send_lag_p99_ns, evidence.send_lag_p999_ns)
    else {
        return Finding::NotChecked("nothing was sent");
    };
    let limits = &thresholds.lag;
    let message = format!(
        "send lag: p99 {}, p99.9 {}",
        milliseconds(p99_ns),
        milliseconds(p999_ns)
    );
    let blame = blame(evidence, thresholds);
    let (p99, p999) = (p99_ns as f64, p999_ns as f64);
    let part_ns = evidence.response_p50_ns.unwrap_or(0) as f64 * limits.invalid_share_of_p50;
    if p99 > limits.invalid_p99_ns && p99 > part_ns {
        Finding::doubt(Level::Invalid, blame, (p99, limits.invalid_p99_ns), message)
    } else if p99 > limits.warn_p99_ns {
        Finding::doubt(Level::Warn, blame, (p99, limits.warn_p99_ns), message)
    } else if p999 > limits.warn_p999_ns {
        Finding::doubt(Level::Warn, blame, (p999, limits.warn_p999_ns), message)
    } else {
        Finding::Sound
    }
}

/// `client-stalls`: stalls of the generator's own loop, and what they did to the highest quantile that is
/// usually read, p99: requests became late, and where instants are our own, answers seem to have
/// come later than they did.
pub(super) fn stalled_for_few_requests(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let stalls = &evidence.stalls;
    let tail = (evidence.scheduled as f64 * 0.01).max(1.0);
    let message = format!(
        "the generator stalled {} times, for up to {}; {} requests were due meanwhile, {} responses \
        may have waited",
        stalls.count,
        milliseconds(stalls.longest_ns),
        stalls.arrivals,
        stalls.responses
    );
    let share = (stalls.arrivals + stalls.responses) as f64 / tail;
    Finding::graded(
        blame(evidence, thresholds),
        share,
        thresholds.stalls,
        message,
    )
}
