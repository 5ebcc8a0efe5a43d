//! What became of sessions, in numbers.

use serde::Serialize;

/// Sessions that began in the measure phase, of one thread or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub(crate) started: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) requests_planned: u64,
    pub(crate) requests_scheduled: u64,
}

/// What became of the sessions that began in the measure phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
}

impl SessionCounts {
    /// Adds another thread's counts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.requests_planned += other.requests_planned;
        self.requests_scheduled += other.requests_scheduled;
    }

    /// How many began.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// The figures.
    pub(crate) fn report(&self) -> SessionReport {
        SessionReport {
            started: self.started,
            completed: self.completed,
            failed: self.failed,
            unfinished: self.started - self.completed - self.failed,
            requests_not_reached: self.requests_planned - self.requests_scheduled,
        }
    }
}
