//! Outcomes of sessions in a report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::error::LoadError;
use crate::record::session_tally::SessionTally;
use crate::report::distribution::Distribution;

/// The outcomes of the sessions that began in the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct SessionReport {
    /// Sessions that began in the measurement; the sum of `completed`, `failed` and `unfinished`.
    pub started: u64,
    /// Sessions whose requests all got a correct response.
    pub completed: u64,
    /// Sessions that ended because a request got no correct response, or that were dropped before
    /// their first request.
    pub failed: u64,
    /// Sessions that were still running when the load ended.
    pub unfinished: u64,
    /// Requests that were never scheduled because their session failed or was unfinished. No other
    /// count includes them.
    pub requests_not_reached: u64,
    /// Duration of the completed sessions, including think times, from the scheduled start to the
    /// last response. Unfinished sessions are excluded, so the longest sessions may be missing.
    /// `None`: no session was completed.
    pub duration_ns: Option<Distribution>,
}

impl SessionReport {
    /// Derives the report from the counts.
    pub(crate) fn of(tally: &SessionTally) -> Result<Self, LoadError> {
        let completed = tally.completed.count();
        Ok(Self {
            started: tally.started,
            completed,
            failed: tally.failed,
            unfinished: tally.started - completed - tally.failed,
            requests_not_reached: tally.requests_planned - tally.requests_scheduled,
            duration_ns: Distribution::of(&tally.completed)?,
        })
    }
}
