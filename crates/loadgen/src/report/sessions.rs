//! What became of sessions, as a report shows it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::error::LoadError;
use crate::record::session_tally::SessionTally;
use crate::report::distribution::Distribution;

/// What became of the sessions that began in the measure phase.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct SessionReport {
    /// How many began: completed, failed and unfinished ones together.
    pub started: u64,
    /// Every request was answered rightly.
    pub completed: u64,
    /// A request was not, which ended the session.
    pub failed: u64,
    /// Under way when the load ended.
    pub unfinished: u64,
    /// Requests that were never scheduled, because their session failed or was unfinished.
    pub requests_not_reached: u64,
    /// How long the completed ones took, thinking included: from the intended beginning to the last
    /// answer. `None` when none was completed. Long ones are under-represented as far as sessions
    /// were unfinished.
    pub duration_ns: Option<Distribution>,
}

impl SessionReport {
    /// The figures.
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
