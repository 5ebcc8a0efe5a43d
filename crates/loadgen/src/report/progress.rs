//! The progress of a running load.

use serde::Serialize;

use crate::record::progress::{Part, ProgressFile};
use crate::record::recorder::{Phase, PhaseCounts};
use crate::report::Outcomes;

/// The progress of a load, from the latest update of each thread.
#[derive(Clone, Debug, Serialize)]
pub struct LoadProgress {
    /// Time of the update.
    pub at_ns: u64,
    /// Start of the load.
    pub start_ns: u64,
    /// Start of the measurement; may be in the future.
    pub measure_from_ns: u64,
    /// End of the measurement unless it is extended.
    pub measure_to_ns: u64,
    /// Outcomes of the requests in the measurement so far; requests in the system count only as
    /// scheduled.
    pub outcomes: Outcomes,
    /// Scheduled requests so far, including warm-up and cool-down.
    pub scheduled: u64,
    /// Complete responses so far, correct or not, including warm-up and cool-down.
    pub answered: u64,
    /// Median response time of the requests in the measurement that have ended; `None` if the
    /// median is a failure.
    pub p50_ns: Option<u64>,
    /// p99, computed like `p50_ns`.
    pub p99_ns: Option<u64>,
}

impl LoadProgress {
    /// Reads the latest update of each thread; `None` until every thread has written one.
    #[must_use]
    pub fn read(file: &ProgressFile, threads: usize) -> Option<Self> {
        let all = Part::of_all(file.parts(threads)?)?;
        let (measure_from_ns, measure_to_ns) = all.measure_ns;

        Some(Self {
            at_ns: all.written_ns,
            start_ns: all.start_ns,
            measure_from_ns,
            measure_to_ns,
            outcomes: Outcomes::of(&all.phases[Phase::Measure as usize]),
            scheduled: all.phases.iter().map(|counts| counts.scheduled).sum(),
            answered: all.phases.iter().map(PhaseCounts::answered).sum(),
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
        })
    }

    /// The progress as JSON.
    ///
    /// # Panics
    /// Never: numbers can always be written as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers are valid JSON")
    }
}
