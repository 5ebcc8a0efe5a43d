//! A measurement that goes on until a quantile is known well enough: what is asked for, and what came of it.

use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::judge::offered::Bounds;
use crate::judge::uncertainty::{FEWEST_BEYOND, QuantileUncertainty};
use crate::plan::phases::require;
use crate::plan::{LoadModel, LoadPlan, LoadProfile, Phases};
use crate::record::batches::Batches;
use crate::record::histogram::REPORTED_QUANTILES;
use crate::statistics::over_dispersion::Dispersion;

/// A wider interval says nothing.
const WIDEST_SHARE: f64 = 0.5;

/// How well a quantile is to be known, and how long that may take. The measurement ends after 1, 2, 4, 8 … times its
/// shortest length, as soon as it is known so well, and at the latest after the last of these that `longest_ns` allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// Over all offered requests; one of those that a report has.
    pub quantile: f64,
    /// Half of its 95 % interval, as a share of it.
    pub share: f64,
    /// Longest measurement.
    pub longest_ns: u64,
}

impl Precision {
    pub(crate) fn validate(&self, measure_ns: u64) -> Result<(), LoadError> {
        require(
            REPORTED_QUANTILES.contains(&self.quantile),
            "precision: the quantile must be one of the report's",
        )?;
        require(
            self.share > 0.0 && self.share <= WIDEST_SHARE,
            "precision: the share must lie above 0 and up to 0.5",
        )?;
        require(
            self.longest_ns / 2 >= measure_ns,
            "precision: the longest duration must be at least twice the duration, or nothing is ever decided",
        )
    }

    /// Lengths after which a measurement of this shortest length may end, ascending.
    #[must_use]
    pub fn lengths_ns(&self, measure_ns: u64) -> Vec<u64> {
        let is_longer = |length_ns: u64, twice_ns: u64| length_ns < twice_ns && twice_ns <= self.longest_ns;
        let doubled =
            |length_ns: &u64| length_ns.checked_mul(2).filter(|twice_ns| is_longer(*length_ns, *twice_ns));
        std::iter::successors(Some(measure_ns), doubled).collect()
    }

    /// What the figures of the whole measurement say of it.
    pub(crate) fn reached(&self, known: Option<&QuantileUncertainty>, value: Option<&Bounds>) -> PrecisionReport {
        let interval = known.and_then(|known| known.interval_95_ns);
        let closed = interval.and_then(|(low_ns, high_ns)| Some((low_ns, high_ns?)));
        let half_width = closed
            .zip(value.and_then(|value| value.high).filter(|value_ns| *value_ns > 0))
            .map(|((low_ns, high_ns), value_ns)| (high_ns - low_ns) as f64 / 2.0 / value_ns as f64);
        let is_reached = half_width.is_some_and(|half_width| half_width <= self.share);
        PrecisionReport { half_width, is_reached }
    }
}

impl LoadPlan {
    /// The phases with the longest measurement that this may become.
    #[must_use]
    pub fn longest_phases(&self) -> Phases {
        let lengths_ns = self.precision.as_ref().map(|asked| asked.lengths_ns(self.phases.measure_ns));
        let measure_ns = lengths_ns.and_then(|lengths_ns| lengths_ns.last().copied());
        Phases { measure_ns: measure_ns.unwrap_or(self.phases.measure_ns), ..self.phases.clone() }
    }

    pub(crate) fn validate_precision(&self) -> Result<(), LoadError> {
        let Some(precision) = &self.precision else { return Ok(()) };
        let is_flat =
            matches!(&self.load, LoadModel::Open(open) if matches!(open.profile, LoadProfile::Flat { .. }));
        require(is_flat, "precision: only an open loop of one rate may go on; give a rate, or leave it out")?;
        require(self.sessions.is_empty(), "precision: sessions have ends of their own; leave it out")?;
        precision.validate(self.phases.measure_ns)
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrecisionReport {
    /// Half of the quantile's 95 % interval as a share of it; `None` where it has none, or an open one.
    pub half_width: Option<f64>,
    /// Whether that is as little as was asked for.
    pub is_reached: bool,
}

impl PrecisionReport {
    /// In words, for whoever asked.
    #[must_use]
    pub fn sentence(&self, asked: &Precision) -> String {
        let name = format!("p{}", asked.quantile * 100.0);
        let asked_for = format!("± {:.1} %", asked.share * 100.0);
        let told = self.half_width.map_or_else(
            || format!("{name} has no closed interval (`uncertainty` in the report has the reason)"),
            |half_width| format!("{name} is known to ± {:.1} %", half_width * 100.0),
        );
        if self.is_reached {
            format!("{told}; {asked_for} was asked for")
        } else {
            format!("precision of {asked_for} not reached: {told}; a larger --max-duration may reach it")
        }
    }
}

/// The same from the stretches alone, while a load runs: the quantiles lie within a slot, shared out evenly.
pub(crate) fn half_width(batches: &Batches, quantile: f64) -> Option<f64> {
    let dispersion = Dispersion::of(&batches.beyond_of_offered(quantile), quantile)?;
    if dispersion.effective_beyond(quantile) < FEWEST_BEYOND || dispersion.high >= 1.0 {
        return None;
    }
    let [low_ns, value_ns, high_ns] =
        [dispersion.low, quantile, dispersion.high].map(|quantile| batches.offered_quantile_ns(quantile));
    Some((high_ns? - low_ns?) / 2.0 / value_ns.filter(|value_ns| *value_ns > 0.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::judge::uncertainty::{NotResolved, Standing};

    const ASKED: Precision = Precision { quantile: 0.99, share: 0.05, longest_ns: 600 * NS_PER_S };

    #[test]
    fn a_measurement_may_end_after_doublings_of_its_length_alone() {
        assert_eq!(ASKED.lengths_ns(60 * NS_PER_S), [60, 120, 240, 480].map(|seconds| seconds * NS_PER_S));
        assert_eq!(ASKED.lengths_ns(600 * NS_PER_S), [600 * NS_PER_S]);
    }

    #[test]
    fn what_cannot_be_decided_is_refused() {
        ASKED.validate(300 * NS_PER_S).expect("one look");
        let cases = [
            ("longest", ASKED, 301 * NS_PER_S),
            ("quantile", Precision { quantile: 0.98, ..ASKED }, NS_PER_S),
            ("share", Precision { share: 0.0, ..ASKED }, NS_PER_S),
            ("share", Precision { share: f64::NAN, ..ASKED }, NS_PER_S),
        ];
        for (word, asked, measure_ns) in cases {
            let message = asked.validate(measure_ns).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn it_is_reached_by_half_of_a_closed_interval_and_never_without_one() {
        let known = |high_ns| QuantileUncertainty {
            interval_95_ns: Some((960, high_ns)),
            effective_requests: Some(1e4),
            standing: Standing::Headline,
            reason: None,
        };
        let value = Bounds { low: Some(1_000), high: Some(1_000) };
        let of = |known: QuantileUncertainty, value: Bounds| ASKED.reached(Some(&known), Some(&value));
        assert_eq!(of(known(Some(1_060)), value), PrecisionReport { half_width: Some(0.05), is_reached: true });
        assert_eq!(of(known(Some(1_062)), value), PrecisionReport { half_width: Some(0.051), is_reached: false });
        let unknown = PrecisionReport { half_width: None, is_reached: false };
        assert_eq!(of(known(None), value), unknown);
        assert_eq!(of(known(Some(1_060)), Bounds { high: None, ..value }), unknown);
        let none = QuantileUncertainty { interval_95_ns: None, reason: Some(NotResolved::NotMet), ..known(None) };
        assert_eq!(of(none, value), unknown);
        assert_eq!(ASKED.reached(None, None), unknown);
    }

    #[test]
    fn what_came_of_it_is_told_in_words() {
        let told = |half_width, is_reached| PrecisionReport { half_width, is_reached }.sentence(&ASKED);
        assert_eq!(told(Some(0.042), true), "p99 is known to ± 4.2 %; ± 5.0 % was asked for");
        let missed = told(Some(0.08), false);
        assert!(missed.contains("not reached: p99 is known to ± 8.0 %; a larger --max-duration"), "{missed}");
        assert!(told(None, false).contains("not reached: p99 has no closed interval"));
    }

    #[test]
    fn the_stretches_know_a_half_width_as_the_whole_histogram_does() {
        let length_ns = 120 * NS_PER_S;
        let (mut batches, requests) = (Batches::new(0, length_ns), 60_000_u64);
        // Every thousandth part of a second from 1 to 1,000 ms, in an order that scatters them over the stretches.
        for index in 0..requests {
            let at_ns = index * (length_ns / requests);
            batches.record(at_ns, at_ns + 5, Some((index * 377 % 1_000 + 1) * 1_000_000));
        }
        // Of independent requests: 2.045 √(0.5 · 0.5 / 60,000) of quantile, which is as much of the values from 1 to 1,000.
        let expected = 2.045 * (0.25 / requests as f64).sqrt() / 0.5;
        let found = half_width(&batches, 0.5).expect("enough requests");
        assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        assert_eq!(half_width(&batches, 0.9999), None, "fewer than ten lie beyond it");
    }
}
