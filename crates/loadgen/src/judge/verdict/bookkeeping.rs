//! Checks that the counts and timestamps of the load agree with each other and with the plan.

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, CheckResult, Level};
use crate::plan::thresholds::Thresholds;

/// `timestamp-order`: the timestamps of each response are in order and add up. If counts do not add
/// up, the load fails with an error and has no report.
pub(super) fn timestamp_order(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let message = format!(
        "timestamps are out of order in {}",
        plural(evidence.inconsistent, "response")
    );
    CheckResult::invalid_above(Blame::Client, evidence.inconsistent as f64, 0.0, message)
}

/// `in-system-count`: the mean number of requests in the system, computed both from arrivals and
/// departures and from the time that each request spent in the system (Little's law). Both values
/// use the generator's own timestamps, so a difference reveals a bug, not a bias.
pub(super) fn in_system_count(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
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

/// `interrupted`: the results up to the stop are kept, but they are not the requested measurement.
pub(super) fn interrupted(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    if evidence.is_interrupted {
        let message = "the load was stopped early".to_owned();
        return CheckResult::fired(Level::Invalid, Blame::Method, (1.0, 0.0), message);
    }
    CheckResult::Passed
}

/// `arrival-count`: the number of scheduled arrivals matches the rate, within four standard errors
/// of a Poisson count, within one for constant arrivals, and exactly for a trace.
pub(super) fn arrival_count(evidence: &Evidence, _: &Thresholds) -> CheckResult {
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

/// `no-arrival`: nothing can be measured without arrivals.
pub(super) fn no_arrival(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    if evidence.scheduled == 0 {
        let message = "no request was scheduled in the measurement".to_owned();
        return CheckResult::fired(Level::Invalid, Blame::Method, (0.0, 1.0), message);
    }
    CheckResult::Passed
}

/// `no-response`: there is no latency without a correct response.
pub(super) fn no_response(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    if evidence.scheduled > 0 && evidence.ok == 0 {
        let message = "no correct response arrived, so there is no latency to report".to_owned();
        return CheckResult::fired(Level::Warn, Blame::Server, (0.0, 1.0), message);
    }
    CheckResult::Passed
}
