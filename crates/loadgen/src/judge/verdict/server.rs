//! What the server did that a reader of its figures must know. The figures are correct: nothing
//! here invalidates.

use super::evidence::Evidence;
use super::words::{percent, plural, rate, thousands};
use super::{Blame, Finding, Level};
use crate::judge::stationarity::{Backlog, State};
use crate::plan::thresholds::Thresholds;

/// `backlog-growth`: a backlog that grows through the measurement, or a queue that is full: more
/// was offered
/// than the server can serve, and every quantile grows with the duration. The growth is the slope
/// of the requests in the system by the duration and their mean, which is 2 where it starts at
/// nothing.
pub(super) fn backlog_did_not_grow(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let limits = &thresholds.backlog;
    let Backlog {
        in_system,
        turned_away_share: turned_away,
    } = match evidence.backlog {
        Ok(backlog) => backlog,
        Err(reason) => return Finding::NotChecked(reason),
    };
    let warn =
        |value, limit, message| Finding::doubt(Level::Warn, Blame::Server, (value, limit), message);
    let growth = in_system.growth.unwrap_or(0.0);
    if in_system.grew_beyond(limits.unstable) {
        let message = format!(
            "UNSTABLE: the server cannot sustain the offered rate; the backlog grew by {growth:.1} \
            times its mean of {}",
            plural(in_system.mean.round() as u64, "request")
        );
        return warn(growth, limits.unstable, message);
    }
    if turned_away > limits.unstable_turned_away {
        let message = format!(
            "UNSTABLE: the server cannot sustain the offered rate; {} of arrivals found the queue \
            full",
            percent(turned_away)
        );
        return warn(turned_away, limits.unstable_turned_away, message);
    }
    if in_system.grew_beyond(limits.warn) {
        let message = format!(
            "the backlog grew by {growth:.1} times its mean of {}",
            plural(in_system.mean.round() as u64, "request")
        );
        return warn(growth, limits.warn, message);
    }
    if in_system.growth.is_none() {
        return Finding::NotChecked(if evidence.is_interrupted {
            "the load was stopped early"
        } else {
            "at least 1,000 requests are needed to detect a growing backlog"
        });
    }
    Finding::Sound
}

/// `stationarity`: response times do not change over the measurement. Beyond a drift that KPSS
/// confirms, a jump by more
/// than a quarter is more than one quantile can describe.
pub(super) fn response_times_were_stationary(
    evidence: &Evidence,
    thresholds: &Thresholds,
) -> Finding {
    let measured = &evidence.stationarity;
    let limits = &thresholds.stationarity;
    let (p50, p99) = (
        measured.p50_drift.unwrap_or(0.0),
        measured.p99_drift.unwrap_or(0.0),
    );
    let warn =
        |value, limit, message| Finding::doubt(Level::Warn, Blame::Server, (value, limit), message);
    match measured.state {
        None => Finding::NotChecked(measured.reason.unwrap_or("nothing was measured")),
        // The backlog says it, and is the reason.
        Some(State::Stationary | State::Unstable) => Finding::Sound,
        Some(State::NonStationary) => {
            let range = measured.p50_range.unwrap_or(0.0);
            let message = format!(
                "NON-STATIONARY: the median response time changed by {} during the measurement",
                percent(range)
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

/// Where connections are capped and all were busy, the load was a closed one.
pub(super) fn nobody_waited_for_a_connection(evidence: &Evidence, _: &Thresholds) -> Finding {
    let waited = evidence.waited_for_connection_share;
    if evidence.lacks_connections {
        // `client-resources` tells it: that is no limit of the plan.
        return Finding::Sound;
    }
    let message = format!(
        "{} of requests waited because all {} connections were busy, so the load was partly a \
        closed loop",
        percent(waited),
        thousands(evidence.max_connections as u64)
    );
    let finding = Finding::warn_above(Blame::Server, waited, 0.0, message);
    with_pools(finding, "raise --max-connections", evidence)
}

/// Threads do not share connections: one thread's connections can all be busy while another's are
/// idle, and several small queues wait longer than one large queue.
fn with_pools(finding: Finding, fix: &str, evidence: &Evidence) -> Finding {
    match evidence.threads {
        1 => finding,
        _ => finding.fixed_by(format!(
            "{fix}, or use --threads 1, because threads do not share connections"
        )),
    }
}

/// `shed`: dropped arrivals count as failed requests.
pub(super) fn nothing_was_dropped(evidence: &Evidence, _: &Thresholds) -> Finding {
    let message = format!(
        "the generator dropped {} before sending (counted as failed)",
        plural(evidence.dropped, "arrival")
    );
    let finding = Finding::warn_above(Blame::Server, evidence.dropped as f64, 0.0, message);
    with_pools(finding, "lower the rate, raise --max-pending", evidence)
}

/// No quantile stands without the share that it leaves out.
pub(super) fn everything_was_answered(evidence: &Evidence, _: &Thresholds) -> Finding {
    let failed = evidence.unanswered_share;
    let message = format!(
        "{} of offered requests got no correct response",
        percent(failed)
    );
    Finding::warn_above(Blame::Server, failed, 0.0, message)
}

/// A ramp is not a sweep: its quantiles belong to no rate.
pub(super) fn one_rate_was_offered(evidence: &Evidence, _: &Thresholds) -> Finding {
    let Some((lowest, highest)) = evidence.offered_rates_per_s else {
        return Finding::Sound;
    };
    let message = format!(
        "the offered rate varied between {} and {}/s, so the quantiles do not describe any single \
        rate",
        rate(lowest),
        rate(highest)
    );
    Finding::warn_above(Blame::Method, highest, lowest, message)
}
