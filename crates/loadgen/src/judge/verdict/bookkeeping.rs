//! Do the counts and timestamps of the load agree with each other and with the plan?

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Finding, Level};
use crate::plan::thresholds::Thresholds;

/// `timestamp-order`: the timestamps of a response are in order and add up. Counts that do not add
/// up
/// are an error: there is no report.
pub(super) fn timestamps_are_in_order(evidence: &Evidence, _: &Thresholds) -> Finding {
    let message = format!(
        "timestamps are out of order in {}",
        plural(evidence.inconsistent, "response")
    );
    Finding::invalid_above(Blame::Client, evidence.inconsistent as f64, 0.0, message)
}

/// `in-system-count`: requests in the system, by who came and left, and by how long each stayed
/// (Little's law,
/// the edges integrated). Both are our own stamps, so this finds defects and no bias.
pub(super) fn two_counts_agree(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let (by_flows, by_stays) = evidence.in_system;
    let error = (by_flows - by_stays).abs() / by_flows.max(by_stays).max(f64::MIN_POSITIVE);
    let message = format!(
        "two counts of the requests in the system differ by {}",
        percent(error)
    );
    Finding::invalid_above(
        Blame::Client,
        error,
        thresholds.bookkeeping.invalid,
        message,
    )
}

/// What was measured until a stop is kept, and is not what was asked for.
pub(super) fn ran_to_its_end(evidence: &Evidence, _: &Thresholds) -> Finding {
    if evidence.is_interrupted {
        let message = "the load was stopped early".to_owned();
        return Finding::doubt(Level::Invalid, Blame::Method, (1.0, 0.0), message);
    }
    Finding::Sound
}

/// `arrival-count`: the schedule had as many arrivals as its rate promises: within four standard
/// errors of a
/// Poisson number, one of even gaps, all of a trace.
pub(super) fn arrivals_are_as_planned(evidence: &Evidence, _: &Thresholds) -> Finding {
    let Some(expected) = evidence
        .expected_arrivals
        .filter(|_| !evidence.is_interrupted)
    else {
        return Finding::NotChecked(if evidence.is_interrupted {
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
    Finding::warn_above(Blame::Method, off, expected.tolerance, message)
}

/// A measurement without arrivals has nothing to say.
pub(super) fn something_arrived(evidence: &Evidence, _: &Thresholds) -> Finding {
    if evidence.scheduled == 0 {
        let message = "no request was scheduled in the measurement".to_owned();
        return Finding::doubt(Level::Invalid, Blame::Method, (0.0, 1.0), message);
    }
    Finding::Sound
}

/// Without a correct response there is no latency.
pub(super) fn something_was_answered(evidence: &Evidence, _: &Thresholds) -> Finding {
    if evidence.scheduled > 0 && evidence.ok == 0 {
        let message = "no correct response arrived, so there is no latency to report".to_owned();
        return Finding::doubt(Level::Warn, Blame::Server, (0.0, 1.0), message);
    }
    Finding::Sound
}
