//! The timestamps of consecutive sends: enough to test whether they follow the requested process.

use serde::{Deserialize, Serialize};

use crate::base::clock::NS_PER_S;
use crate::plan::{Arrivals, LoadModel, LoadPlan, LoadProfile};
use crate::statistics::arrivals::{
    anderson_darling, dispersion_deviation, gaps, kolmogorov_distance,
};
use schemars::JsonSchema;

/// The number of gaps for which the method states the power of the tests; more would detect
/// harmless deviations.
const MAX_GAPS: usize = 10_000;
/// With fewer gaps, the tests have too little power.
const MIN_GAPS: usize = 1_000;
/// The window is longer than the gaps need on average, by this factor: their number varies.
const SPARE: f64 = 1.05;

/// Windows in which the number of sends is tested against a Poisson process.
const WINDOWS_NS: [u64; 3] = [NS_PER_S / 100, NS_PER_S / 10, NS_PER_S];

/// First writes inside one window of the measure phase, unordered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SendSample {
    from_ns: u64,
    to_ns: u64,
    timestamps_ns: Vec<u64>,
}

/// A comparison of the send times with the requested Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, serde::Serialize)]
pub struct SendGaps {
    /// Number of tested inter-arrival times, taken from the middle of the measurement.
    pub count: u64,
    /// Anderson-Darling statistic for exponential inter-arrival times. It exceeds 1.959 for 1 % of
    /// true Poisson processes.
    pub anderson_darling: f64,
    /// Kolmogorov-Smirnov distance of the inter-arrival times from the exponential distribution.
    pub kolmogorov_distance: f64,
    /// The index of dispersion (variance divided by mean) is computed for the number of sends per
    /// 10 ms, per 100 ms and per 1 s. The value is its largest deviation from 1. `None`: too few
    /// sends.
    pub dispersion_deviation: Option<f64>,
}

impl SendSample {
    /// A window in the middle of the measure phase; empty if the plan requests no Poisson process
    /// at one rate.
    pub fn new(plan: &LoadPlan, start_ns: u64) -> Self {
        let Some(rate_per_s) = poisson_rate_per_s(plan) else {
            return Self::default();
        };

        let (from_ns, to_ns) = plan.measure_window();
        let needed_ns = (MAX_GAPS as f64 * SPARE / rate_per_s * NS_PER_S as f64) as u64;
        let spare_ns = (to_ns - from_ns).saturating_sub(needed_ns);
        let from_ns = start_ns + from_ns + spare_ns / 2;

        Self {
            from_ns,
            to_ns: (from_ns + needed_ns).min(start_ns + to_ns),
            timestamps_ns: Vec::new(),
        }
    }

    pub fn note(&mut self, write_start_ns: u64) {
        if (self.from_ns..self.to_ns).contains(&write_start_ns) {
            self.timestamps_ns.push(write_start_ns);
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.timestamps_ns.extend(&other.timestamps_ns);
    }

    /// Tests the gaps; `None` if there are too few.
    pub fn test(&self) -> Option<SendGaps> {
        let mut timestamps_ns = self.timestamps_ns.clone();
        timestamps_ns.sort_unstable();
        timestamps_ns.truncate(MAX_GAPS + 1);
        let gaps = gaps(&timestamps_ns);
        if gaps.len() < MIN_GAPS {
            return None;
        }

        Some(SendGaps {
            count: gaps.len() as u64,
            anderson_darling: anderson_darling(&gaps),
            kolmogorov_distance: kolmogorov_distance(&gaps),
            dispersion_deviation: WINDOWS_NS
                .into_iter()
                .filter_map(|window_ns| dispersion_deviation(&timestamps_ns, window_ns))
                .reduce(f64::max),
        })
    }
}

/// The rate of a plan whose sends should be a Poisson process: one rate, and one request per
/// arrival.
pub(crate) fn poisson_rate_per_s(plan: &LoadPlan) -> Option<f64> {
    let LoadModel::Open(open) = &plan.load else {
        return None;
    };
    match open.profile {
        LoadProfile::Flat { rate_per_s }
            if open.arrivals == Arrivals::Poisson && plan.sessions.is_empty() =>
        {
            Some(rate_per_s)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(plan: &LoadPlan, late_ns: impl Fn(u64) -> u64) -> SendSample {
        let mut sample = SendSample::new(plan, 0);
        let LoadModel::Open(open) = &plan.load else {
            panic!("an open loop")
        };
        let schedule = crate::arrivals::schedule::Schedule::new(open, plan.seed, &plan.phases);
        schedule.for_each(|offset_ns| sample.note(late_ns(offset_ns)));
        sample
    }

    #[test]
    fn ten_thousand_gaps_are_tested_whatever_the_length() {
        let plan = LoadPlan::open("http://h/", 1_000.0, 60 * NS_PER_S);
        let gaps = sends(&plan, |at_ns| at_ns).test().expect("enough sends");

        assert_eq!(gaps.count, MAX_GAPS as u64);
        assert!(
            gaps.anderson_darling < 2.5 && gaps.kolmogorov_distance < 0.02,
            "{gaps:?}"
        );
        assert!(gaps.dispersion_deviation < Some(4.0), "{gaps:?}");

        let ticks = sends(&plan, |at_ns| at_ns.next_multiple_of(NS_PER_S / 1_000))
            .test()
            .expect("enough sends");
        assert!(ticks.kolmogorov_distance > 0.3, "{ticks:?}");
    }

    #[test]
    fn only_a_poisson_process_at_a_constant_rate_is_tested() {
        let short = LoadPlan::open("http://h/", 100.0, 5 * NS_PER_S);
        assert_eq!(sends(&short, |at_ns| at_ns).test(), None, "too few gaps");

        let closed = LoadPlan::closed("http://h/", 4, NS_PER_S);
        assert_eq!(poisson_rate_per_s(&closed), None);

        let mut even = LoadPlan::open("http://h/", 100.0, NS_PER_S);
        if let LoadModel::Open(open) = &mut even.load {
            open.arrivals = Arrivals::Constant;
        }

        assert_eq!(poisson_rate_per_s(&even), None);
    }
}
