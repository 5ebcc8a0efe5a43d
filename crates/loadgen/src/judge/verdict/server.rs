//! Checks of the server's behavior. The figures are correct, so none of these checks invalidates a
//! load.

use super::evidence::Evidence;
use super::words::{percent, plural, rate, thousands};
use super::{Blame, CheckResult, Level};
use crate::base::clock::NS_PER_S;
use crate::judge::stationarity::{Backlog, State};
use crate::plan::thresholds::Thresholds;

/// `unsolicited-responses`: in a closed loop, the responses before it may not have belonged to their
/// requests either, because there was no pause in which it could arrive earlier.
pub(super) fn unsolicited(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let count = evidence.unsolicited;
    let message = format!(
        "the server sent a response without a request on {}",
        plural(count, "connection")
    );
    if evidence.is_closed_loop {
        CheckResult::invalid_above(Blame::Server, count as f64, 0.0, message)
    } else {
        CheckResult::warn_above(Blame::Server, count as f64, 0.0, message)
    }
}

const MIN_STALL_NS: u64 = NS_PER_S;
/// A server may well take long for a few requests at once.
const MIN_STALLED: u64 = 5;

/// `server-stall`: no request ended for a long time although several waited, and the generator ran.
pub(super) fn server_stall(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let Some(stall_ns) = stall_ns(evidence) else {
        return CheckResult::Passed;
    };
    let seconds = stall_ns as f64 / NS_PER_S as f64;
    let message = format!(
        "the server gave no response for {seconds:.1} s, while {} waited",
        plural(evidence.silence.waiting, "request")
    );
    CheckResult::warn_above(Blame::Server, seconds, 0.0, message)
}

fn stall_ns(evidence: &Evidence) -> Option<u64> {
    let silence = evidence.silence;
    let is_unusual = silence.length_ns >= MIN_STALL_NS.max(2 * silence.usual_ns);
    let is_of_generator = 2 * evidence.stalls.longest_ns > silence.length_ns;
    // `no-response` reports a server that never responds.
    let is_stall = is_unusual && silence.waiting >= MIN_STALLED && evidence.ok > 0;
    (is_stall && !is_of_generator).then_some(silence.length_ns)
}

/// Whether a stall, which another check reports, explains a backlog and changed response times.
fn has_stalled(evidence: &Evidence) -> bool {
    stall_ns(evidence).is_some() || evidence.stalls.longest_ns >= MIN_STALL_NS
}

/// `backlog-growth`: the backlog grew throughout the measurement, or a queue was full. The server
/// cannot sustain the offered rate, and every quantile grows with the duration. Growth is the slope
/// of the number of requests in the system times the duration, divided by their mean; it is 2 for a
/// backlog that grows linearly from zero.
pub(super) fn backlog_growth(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    if has_stalled(evidence) {
        return CheckResult::Passed;
    }
    let limits = &thresholds.backlog;
    let Backlog {
        in_system,
        queue_full_share,
    } = match evidence.backlog {
        Ok(backlog) => backlog,
        Err(reason) => return CheckResult::NotChecked(reason),
    };
    let warn = |value, limit, message| {
        CheckResult::fired(Level::Warn, Blame::Server, (value, limit), message)
    };
    let growth = in_system.growth.unwrap_or(0.0);
    if in_system.grew_beyond(limits.unstable) {
        let message = format!(
            "UNSTABLE: the server cannot sustain the offered rate; the backlog grew by {growth:.1} \
            times its mean of {}",
            plural(in_system.mean.round() as u64, "request")
        );
        return warn(growth, limits.unstable, message);
    }
    if queue_full_share > limits.unstable_turned_away {
        let message = format!(
            "UNSTABLE: the server cannot sustain the offered rate; {} of arrivals found the queue \
            full",
            percent(queue_full_share)
        );
        return warn(queue_full_share, limits.unstable_turned_away, message);
    }
    if in_system.grew_beyond(limits.warn) {
        let message = format!(
            "the backlog grew by {growth:.1} times its mean of {}",
            plural(in_system.mean.round() as u64, "request")
        );
        return warn(growth, limits.warn, message);
    }
    if in_system.growth.is_none() {
        return CheckResult::NotChecked(if evidence.is_interrupted {
            "the load was stopped early"
        } else {
            "at least 1,000 requests are needed to detect a growing backlog"
        });
    }
    CheckResult::Passed
}

/// `stationarity`: response times did not change during the measurement. Fires for a drift that
/// KPSS confirms, and for a change of the median by more than a quarter, which one quantile cannot
/// describe.
pub(super) fn stationarity(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    if has_stalled(evidence) {
        return CheckResult::Passed;
    }
    let measured = &evidence.stationarity;
    let limits = &thresholds.stationarity;
    let (p50, p99) = (
        measured.p50_drift.unwrap_or(0.0),
        measured.p99_drift.unwrap_or(0.0),
    );
    let warn = |value, limit, message| {
        CheckResult::fired(Level::Warn, Blame::Server, (value, limit), message)
    };
    match measured.state {
        None => CheckResult::NotChecked(measured.reason.unwrap_or("nothing was measured")),
        // `backlog-growth` reports it.
        Some(State::Stationary | State::Unstable) => CheckResult::Passed,
        Some(State::NonStationary) => {
            let range = measured.p50_range.unwrap_or(0.0);
            let message = format!(
                "NON-STATIONARY: the median response time changed by a factor of {:.2} during the \
                 measurement",
                1.0 + range
            );
            let finding = warn(range, limits.non_stationary, message);
            match measured.settled_after_ns {
                Some(ns) => finding.fixed_by(format!(
                    "warm up {:.0} s longer (--warmup); response times were steady from then on",
                    (ns as f64 / 1e9).ceil()
                )),
                None => finding,
            }
        }
        Some(State::Drifting) => {
            let is_median = p50.abs() > limits.warn_p50_drift;
            let (value, limit) = if is_median {
                (p50, limits.warn_p50_drift)
            } else {
                (p99, limits.warn_p99_drift)
            };
            let tail = match measured.p99_drift {
                Some(drift) => format!(", p99 by {}", percent(drift)),
                None => String::new(),
            };
            let message = format!(
                "response times drifted between the first and the last third: p50 by {}{tail}",
                percent(p50),
            );
            warn(value, limit, message)
        }
    }
}

/// `capped`: if all connections of a limited number were busy, the load was partly a closed loop.
pub(super) fn capped(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let waited = evidence.waited_for_connection_share;
    // In a closed loop, requests wait for a response by intention.
    let is_closed_loop = evidence.sent_in_time_share.is_none();
    if is_closed_loop || evidence.lacks_connections {
        // `client-resources` reports a limit that the plan did not set.
        return CheckResult::Passed;
    }
    let message = format!(
        "{} of requests waited because all {} connections were busy, so the load was partly a \
        closed loop",
        percent(waited),
        thousands(evidence.max_connections as u64)
    );
    let finding = CheckResult::warn_above(Blame::Server, waited, 0.0, message);
    with_pools(finding, "raise --max-connections", evidence)
}

/// Threads do not share connections: one thread's connections can all be busy while another's are
/// idle, and several small queues wait longer than one large queue.
fn with_pools(finding: CheckResult, fix: &str, evidence: &Evidence) -> CheckResult {
    match evidence.threads {
        1 => finding,
        _ => finding.fixed_by(format!(
            "{fix}, or use --threads 1, because threads do not share connections"
        )),
    }
}

/// `shed`: dropped arrivals count as failed requests.
pub(super) fn shed(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let message = format!(
        "the generator dropped {} before sending (counted as failed)",
        plural(evidence.dropped, "arrival")
    );
    let finding = CheckResult::warn_above(Blame::Server, evidence.dropped as f64, 0.0, message);
    with_pools(finding, "lower the rate, raise --max-pending", evidence)
}

/// `failed`: every quantile is reported with the share of requests it excludes.
pub(super) fn failed(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let failed = evidence.unanswered_share;
    let message = format!(
        "{} of offered requests got no correct response",
        percent(failed)
    );
    CheckResult::warn_above(Blame::Server, failed, 0.0, message)
}

/// `mixed-rates`: the quantiles of a ramp belong to no single rate.
pub(super) fn mixed_rates(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let Some((lowest, highest)) = evidence.offered_rates_per_s else {
        return CheckResult::Passed;
    };
    let message = format!(
        "the offered rate varied between {} and {}/s, so the quantiles do not describe any single \
        rate",
        rate(lowest),
        rate(highest)
    );
    CheckResult::warn_above(Blame::Method, highest, lowest, message)
}
