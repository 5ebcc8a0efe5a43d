//! How a load stands while it runs.

use serde::Serialize;

use crate::record::progress::{Part, ProgressFile};
use crate::record::recorder::{Phase, PhaseCounts};
use crate::report::Outcomes;

/// How a load stands, as its threads showed it last.
#[derive(Clone, Debug, Serialize)]
pub struct LoadProgress {
    /// When this was shown.
    pub at_ns: u64,
    /// When the load began.
    pub start_ns: u64,
    /// When the measurement began, or will.
    pub measure_from_ns: u64,
    /// When the measurement ends, unless it is extended.
    pub measure_to_ns: u64,
    /// Ends of the arrivals of the measurement so far; those in the system are only scheduled.
    pub outcomes: Outcomes,
    /// Arrivals so far, warm-up and cool-down included.
    pub scheduled: u64,
    /// Complete responses so far, correct or not, warm-up and cool-down included.
    pub answered: u64,
    /// Median over the requests of the measurement that have ended; `None` among failures.
    pub p50_ns: Option<u64>,
    /// 99th percentile, as `p50_ns`.
    pub p99_ns: Option<u64>,
}

impl LoadProgress {
    /// Reads what the threads of a load show; `None` before all have shown something.
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

    /// As JSON.
    ///
    /// # Panics
    /// Never: numbers only.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers are valid JSON")
    }
}
