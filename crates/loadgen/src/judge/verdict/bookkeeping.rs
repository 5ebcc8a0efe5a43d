//! Checks that the counts and timestamps of the load agree with each other and with the plan.

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Check, CheckResult, Level, NOTHING_MORE};
use crate::plan::thresholds::Thresholds;

pub(super) static TIMESTAMP_ORDER: Check = Check {
    name: "timestamp-order",
    examines: "the timestamps of each response",
    premise: "Any response has timestamps out of order. This is a bug in the generator.",
    fix: Some("file a bug and attach the JSON report of this load"),
    rule: timestamp_order,
    ..NOTHING_MORE
};

/// If counts do not add up, the load fails with an error and has no report.
fn timestamp_order(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let message = format!(
        "timestamps are out of order in {}",
        plural(evidence.inconsistent, "response")
    );
    CheckResult::invalid_above(Blame::Client, evidence.inconsistent as f64, 0.0, message)
}

pub(super) static IN_SYSTEM_COUNT: Check = Check {
    name: "in-system-count",
    examines: "the mean number of requests in the system, computed in two ways: from arrivals and \
        departures, and from the time of each request in the system (Little's law)",
    premise: "The results differ by more than `invalid` (a share). This is a bug in the generator.",
    fix: Some("file a bug and attach the JSON report of this load"),
    rule: in_system_count,
    ..NOTHING_MORE
};

/// Both values use the generator's own timestamps, so a difference reveals a bug, not a bias.
fn in_system_count(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let (by_flows, by_stays) = evidence.in_system;
    let error = (by_flows - by_stays).abs() / by_flows.max(by_stays).max(f64::MIN_POSITIVE);
    let message = format!(
        "two counts of the requests in the system differ by {}",
        percent(error)
    );
    CheckResult::invalid_above(
        Blame::Client,
        error,
        thresholds.bookkeeping.invalid,
        message,
    )
}

pub(super) static GENERATOR_LOST: Check = Check {
    name: "generator-lost",
    examines: "whether each generator process (--processes) reported its part of the load",
    premise: "A generator process was killed, crashed or did not respond. The others stopped at \
        once; their results are kept.",
    fix: Some("check with `dmesg` whether it was OOM-killed, and run the load again"),
    rule: generator_lost,
    ..NOTHING_MORE
};

fn generator_lost(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    match &evidence.lost_generator {
        Some(text) => CheckResult::fired(Level::Invalid, Blame::Client, (1.0, 0.0), text.clone()),
        None => CheckResult::Passed,
    }
}

pub(super) static INTERRUPTED: Check = Check {
    name: "interrupted",
    examines: "whether the load completed",
    premise: "The load was stopped early. The results so far are kept.",
    fix: Some("run the load again without interruption"),
    rule: interrupted,
    ..NOTHING_MORE
};

fn interrupted(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    // The check `generator-lost` reports why the others stopped.
    if evidence.is_interrupted && evidence.lost_generator.is_none() {
        let message = "the load was stopped early".to_owned();
        return CheckResult::fired(Level::Invalid, Blame::Method, (1.0, 0.0), message);
    }
    CheckResult::Passed
}

pub(super) static ARRIVAL_COUNT: Check = Check {
    name: "arrival-count",
    examines: "the number of scheduled arrivals, compared with the rate and the duration",
    premise: "The number differs by more than `warn_standard_errors` standard errors (Poisson \
        arrivals), by more than one arrival (constant arrivals), or at all (trace).",
    fix: Some("try another --seed; if it recurs, file a bug"),
    rule: arrival_count,
    ..NOTHING_MORE
};

fn arrival_count(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let Some(expected) = evidence
        .expected_arrivals
        .filter(|_| !evidence.is_interrupted)
    else {
        return CheckResult::NotChecked(if evidence.is_interrupted {
            "the load was stopped early"
        } else {
            "a closed loop has no schedule"
        });
    };
    let off = (evidence.arrivals as f64 - expected.mean).abs();
    let message = format!(
        "the schedule has {} instead of {}",
        plural(evidence.arrivals, "arrival"),
        thousands(expected.mean.round() as u64)
    );
    CheckResult::warn_above(Blame::Method, off, expected.tolerance, message)
}

pub(super) static NO_ARRIVAL: Check = Check {
    name: "no-arrival",
    examines: "the number of requests scheduled in the measurement",
    premise: "No request was scheduled, so nothing was measured.",
    fix: Some("measure longer (--duration) or at a higher rate"),
    rule: no_arrival,
    ..NOTHING_MORE
};

fn no_arrival(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    if evidence.scheduled == 0 {
        let message = "no request was scheduled in the measurement".to_owned();
        return CheckResult::fired(Level::Invalid, Blame::Method, (0.0, 1.0), message);
    }
    CheckResult::Passed
}

pub(super) static NO_RESPONSE: Check = Check {
    name: "no-response",
    examines: "the number of correct responses",
    premise: "No correct response arrived, so there is no latency to report.",
    fix: Some(
        "check that the server responds to this URL and that --expect-... accepts the response",
    ),
    rule: no_response,
    ..NOTHING_MORE
};

fn no_response(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    if evidence.scheduled > 0 && evidence.ok == 0 {
        let message = "no correct response arrived, so there is no latency to report".to_owned();
        return CheckResult::fired(Level::Warn, Blame::Server, (0.0, 1.0), message);
    }
    CheckResult::Passed
}
