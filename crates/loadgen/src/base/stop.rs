//! A stop signal shared by any number of threads: set once, read often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::clock::monotonic_ns;

/// Requests a run to end early. The run then reports what it has, marked as interrupted.
#[derive(Clone, Debug, Default)]
pub struct StopToken(Arc<AtomicU64>);

impl StopToken {
    /// A token that has not been set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the run to stop. Sends cease at once; requests in flight become `unfinished`.
    pub fn stop(&self) {
        // Only the first call counts: it marks the end of the measurement.
        let _ = self
            .0
            .compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// When the stop was requested.
    #[must_use]
    pub fn stopped_ns(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|timestamp_ns| *timestamp_ns != 0)
    }
}
