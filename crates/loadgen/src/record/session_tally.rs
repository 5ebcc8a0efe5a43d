//! What became of sessions, in numbers.

use serde::Serialize;

use crate::base::error::LoadError;
use crate::record::histogram::LatencyHistogram;
use crate::report::distribution::Distribution;

/// Sessions that began in the measure phase, of one thread or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionTally {
    pub(crate) started: u64,
    pub(crate) failed: u64,
    pub(crate) requests_planned: u64,
    pub(crate) requests_scheduled: u64,
    /// From the intended beginning of each completed session to its last answer.
    completed: LatencyHistogram,
}

/// What became of the sessions that began in the measure phase.
#[derive(Clone, Debug, Serialize)]
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
    /// How long the completed ones took, thinking included: from the intended beginning to the last answer. `None` when
    /// none was completed. Long ones are under-represented as far as sessions were unfinished.
    pub duration_ns: Option<Distribution>,
}

impl SessionTally {
    /// A session whose every request was answered rightly.
    pub(crate) fn complete(&mut self, duration_ns: u64) {
        self.completed.record(duration_ns);
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.failed += other.failed;
        self.requests_planned += other.requests_planned;
        self.requests_scheduled += other.requests_scheduled;
        self.completed.add(&other.completed);
    }

    /// How many began.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// The figures.
    pub(crate) fn report(&self) -> Result<SessionReport, LoadError> {
        let completed = self.completed.count();
        Ok(SessionReport {
            started: self.started,
            completed,
            failed: self.failed,
            unfinished: self.started - completed - self.failed,
            requests_not_reached: self.requests_planned - self.requests_scheduled,
            duration_ns: Distribution::of(&self.completed)?,
        })
    }
}
