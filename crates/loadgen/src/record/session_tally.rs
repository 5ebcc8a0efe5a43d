//! Session counts.

use serde::{Deserialize, Serialize};

use crate::record::histogram::LatencyHistogram;

/// Sessions that started in the measure phase, of one thread or of all threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionTally {
    pub(crate) started: u64,
    pub(crate) failed: u64,
    pub(crate) requests_planned: u64,
    pub(crate) requests_scheduled: u64,
    /// From the scheduled start of each completed session to its last response.
    pub(crate) completed: LatencyHistogram,
}

impl SessionTally {
    /// Counts a session in which every request got a correct response.
    pub(crate) fn complete(&mut self, duration_ns: u64) {
        self.completed.record(duration_ns);
    }

    /// Adds another thread's sessions.
    pub(crate) fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.failed += other.failed;
        self.requests_planned += other.requests_planned;
        self.requests_scheduled += other.requests_scheduled;
        self.completed.add(&other.completed);
    }

    /// Number of started sessions.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }
}
