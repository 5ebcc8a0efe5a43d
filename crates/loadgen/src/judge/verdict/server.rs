//! Checks of the server's behavior. The figures are correct, so only responses without a request
//! invalidate a load.

use super::evidence::Evidence;
use super::words::{percent, plural, rate, thousands};
use super::{Blame, Check, CheckResult, Level, NOTHING_MORE};
use crate::base::clock::NS_PER_S;
use crate::judge::stationarity::{Backlog, State};
use crate::plan::thresholds::Thresholds;

pub(super) static UNSOLICITED_RESPONSES: Check = Check {
    name: "unsolicited-responses",
    examines: "responses that arrive on an idle connection, before a request, or with another one",
    premise: "The server sent a response without a request. A closed loop is then invalid: a \
        server that is always one response ahead seems faster than it is.",
    consequence: Some("it sent responses without a request, so its response times are not known"),
    fix: Some("check that the server sends exactly one response per request"),
    rule: unsolicited,
    ..NOTHING_MORE
};

/// In a closed loop, the responses before it may not have belonged to their requests either, because
/// there was no pause in which it could arrive earlier.
fn unsolicited(evidence: &Evidence, _: &Thresholds) -> CheckResult {
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

pub(super) static SERVER_STALL: Check = Check {
    name: "server-stall",
    examines: "the longest time in which requests waited and no response came, to a 120th of the \
        measurement",
    premise: "At least five requests waited for at least 1 s and twice the p99 of the other \
        requests, and the generator itself did not stall. The checks backlog-growth and \
        stationarity then do not fire, because the stall explains what they find.",
    consequence: Some("all requests waited for a time, so p99 shows how long the server stalled"),
    fix: Some("look for what stopped or blocked the whole server, for example in its log"),
    rule: server_stall,
    ..NOTHING_MORE
};

const MIN_STALL_NS: u64 = NS_PER_S;
/// A server may well take long for a few requests at once.
const MIN_STALLED: u64 = 5;

/// No request ended for a long time although several waited, and the generator ran.
fn server_stall(evidence: &Evidence, _: &Thresholds) -> CheckResult {
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

pub(super) static BACKLOG_GROWTH: Check = Check {
    name: "backlog-growth",
    examines: "the growth of the number of requests in the system, and drops because of a full \
        queue",
    premise: "The number grew by more than `warn` times its mean. UNSTABLE: it grew by more than \
        `unstable` times its mean, or the share of arrivals that found the queue full exceeds \
        `unstable_turned_away`: the server cannot sustain the offered rate, and all quantiles \
        grow with the duration. Drops are ignored with --on-busy shed or --deadline, because a \
        single slow response can cause more of them.",
    fix: Some("lower the rate; `wsgiload capacity` finds the highest sustainable rate"),
    rule: backlog_growth,
    ..NOTHING_MORE
};

/// Growth is the slope of the number of requests in the system times the duration, divided by their
/// mean; it is 2 for a backlog that grows linearly from zero.
fn backlog_growth(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
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

pub(super) static STATIONARITY: Check = Check {
    name: "stationarity",
    examines: "changes in response times during the measurement",
    premise: "Between the first and the last third, p50 changed by more than `warn_p50_drift` or \
        p99 by more than `warn_p99_drift` (shares), and the KPSS statistic exceeds `warn_kpss`. \
        NON-STATIONARY: the median changed by more than `non_stationary` during the measurement. \
        Changes below `warn_ns` are ignored, and loads with fewer than 50 responses.",
    consequence: Some(
        "response times changed during the measurement, so p99 depends on the duration",
    ),
    fix: Some("use a longer --warmup; if this does not help, use a longer --duration"),
    rule: stationarity,
    ..NOTHING_MORE
};

fn stationarity(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
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

pub(super) static CAPPED: Check = Check {
    name: "capped",
    examines: "requests that waited because the maximum number of connections was reached",
    premise: "At least one request waited. While all connections are busy, the load behaves like a \
        closed loop.",
    fix: Some("raise --max-connections"),
    rule: capped,
    ..NOTHING_MORE
};

fn capped(evidence: &Evidence, _: &Thresholds) -> CheckResult {
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
    let one = match (evidence.processes, evidence.threads) {
        (1, 1) => return finding,
        (1, _) => "--threads 1",
        _ => "--processes 1 --threads 1",
    };
    finding.fixed_by(format!(
        "{fix}, or use {one}, because threads do not share connections"
    ))
}

pub(super) static SHED: Check = Check {
    name: "shed",
    examines: "requests that were dropped instead of sent",
    premise: "At least one request was dropped. Dropped requests count as failed.",
    fix: Some("lower the rate, or raise --max-pending"),
    rule: shed,
    ..NOTHING_MORE
};

fn shed(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let message = format!(
        "the generator dropped {} before sending (counted as failed)",
        plural(evidence.dropped, "arrival")
    );
    let finding = CheckResult::warn_above(Blame::Server, evidence.dropped as f64, 0.0, message);
    with_pools(finding, "lower the rate, raise --max-pending", evidence)
}

pub(super) static FAILED: Check = Check {
    name: "failed",
    examines: "requests without a correct response",
    premise: "At least one request failed.",
    consequence: Some("some requests failed; they count as infinitely slow"),
    fix: Some("look at the failure counts and the server's log"),
    rule: failed,
    ..NOTHING_MORE
};

fn failed(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let failed = evidence.unanswered_share;
    let message = format!(
        "{} of offered requests got no correct response",
        percent(failed)
    );
    CheckResult::warn_above(Blame::Server, failed, 0.0, message)
}

pub(super) static MIXED_RATES: Check = Check {
    name: "mixed-rates",
    examines: "whether the offered rate was constant",
    premise: "The rate varied, so the quantiles describe a mixture of rates.",
    fix: Some("measure each rate separately, for example with `wsgiload sweep`"),
    rule: mixed_rates,
    ..NOTHING_MORE
};

fn mixed_rates(evidence: &Evidence, _: &Thresholds) -> CheckResult {
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
