//! The uncertainty of each quantile of one load, and whether it may be shown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::floor::NoiseFloor;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::record::batches::Batches;
use crate::record::histogram::{LatencyHistogram, rank_of};
use crate::statistics::over_dispersion::Dispersion;

/// Minimum number of effective requests beyond a resolved quantile; with fewer, the confidence
/// interval has too little coverage.
pub(crate) const MIN_BEYOND: f64 = 10.0;
/// Minimum number of effective requests beyond a headline quantile.
const MIN_HEADLINE_BEYOND: f64 = 100.0;

/// Ends of a 95 % confidence interval; unbounded if the upper end is `None`.
pub(crate) type Interval = (u64, Option<u64>);

/// The uncertainty of each quantile within one run, and whether the quantile is resolved.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Uncertainty {
    /// Uncertainty of each quantile over all scheduled requests; failures count as slower than any
    /// response.
    pub offered_quantiles_ns: BTreeMap<String, QuantileUncertainty>,
    /// Uncertainty of each quantile over correct responses.
    pub response_time_ns: BTreeMap<String, QuantileUncertainty>,
}

/// The uncertainty of one quantile within one run.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct QuantileUncertainty {
    /// Lower and upper end of the quantile's 95 % confidence interval; the upper end is null if the
    /// interval is unbounded. `None`: fewer than 300 requests, interrupted load, or the quantile
    /// has no finite value.
    pub interval_95_ns: Option<Interval>,
    /// Number of effective requests. `None`: fewer than 300 requests, or interrupted load.
    pub effective_requests: Option<f64>,
    /// `headline` (at least 100 effective requests are slower than the quantile), `resolved` (at
    /// least 10) or `not_resolved` (see `reason`).
    pub resolution_status: ResolutionStatus,
    /// Why the quantile is not resolved: `too_few_requests` (fewer than 300),
    /// `too_few_effective_requests` (fewer than 10 are slower than the quantile), `not_met` (too
    /// many requests failed, so the quantile has no finite value), `below_noise_floor` (the
    /// quantile is less than three times the noise floor, so the value is only an upper bound) or
    /// `interrupted`. `None`: the quantile is resolved.
    pub reason: Option<NotResolved>,
}

/// Where a quantile may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionStatus {
    /// In headlines and tables.
    Headline,
    /// In tables.
    Resolved,
    /// Not shown, or only as a bound.
    NotResolved,
}

/// Why a quantile is not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotResolved {
    /// Fewer than 300 requests, too few to estimate their correlation.
    TooFewRequests,
    /// Fewer than ten effective requests are slower than the quantile.
    TooFewEffectiveRequests,
    /// More requests failed than the quantile allows.
    NotMet,
    /// Less than three times the noise floor, so only an upper bound.
    BelowNoiseFloor,
    /// The load was stopped early.
    Interrupted,
}

impl QuantileUncertainty {
    fn unknown(reason: NotResolved) -> Self {
        Self {
            interval_95_ns: None,
            effective_requests: None,
            resolution_status: ResolutionStatus::NotResolved,
            reason: Some(reason),
        }
    }

    /// `interval_of` computes the confidence interval, or returns `None` if so many requests failed
    /// that the lower end has no finite value.
    fn of(
        dispersion: &Dispersion,
        quantile: f64,
        interval_of: impl Fn(&Dispersion) -> Option<Interval>,
    ) -> Self {
        let beyond = dispersion.effective_beyond(quantile);
        let effective_requests = Some(dispersion.effective_requests);
        let Some(interval) = interval_of(dispersion) else {
            return Self {
                effective_requests,
                ..Self::unknown(NotResolved::NotMet)
            };
        };
        if beyond < MIN_BEYOND {
            // The interval is still reported: hiding it would select intervals that are too narrow.
            return Self {
                effective_requests,
                interval_95_ns: Some(interval),
                ..Self::unknown(NotResolved::TooFewEffectiveRequests)
            };
        }
        let resolution_status = if beyond < MIN_HEADLINE_BEYOND {
            ResolutionStatus::Resolved
        } else {
            ResolutionStatus::Headline
        };
        Self {
            interval_95_ns: Some(interval),
            effective_requests,
            resolution_status,
            reason: None,
        }
    }

    /// Marks a resolved quantile as not resolved if it is too close to the noise floor.
    fn limited_by_floor(
        self,
        floor: Option<&NoiseFloor>,
        quantile: f64,
        value_ns: Option<u64>,
        min_ratio: f64,
    ) -> Self {
        let ratio = floor
            .zip(value_ns)
            .and_then(|(floor, value_ns)| floor.ratio(quantile, value_ns));
        if self.resolution_status != ResolutionStatus::NotResolved
            && ratio.is_some_and(|ratio| ratio < min_ratio)
        {
            return Self {
                resolution_status: ResolutionStatus::NotResolved,
                reason: Some(NotResolved::BelowNoiseFloor),
                ..self
            };
        }
        self
    }
}

/// Input of the uncertainty of a load.
pub(crate) struct Measured<'a> {
    pub batches: &'a Batches,
    pub correct: &'a LatencyHistogram,
    pub given_up: &'a LatencyHistogram,
    pub offered: u64,
    pub is_interrupted: bool,
    pub floor: Option<&'a NoiseFloor>,
    /// A quantile below this many times the noise floor is not resolved.
    pub min_floor_ratio: f64,
}

impl Measured<'_> {
    /// The uncertainty of every reported quantile.
    pub fn uncertainty(&self) -> Uncertainty {
        let mut lower = self.correct.clone();
        lower.add(self.given_up);
        let by_quantile = |judge: &dyn Fn(f64) -> QuantileUncertainty| {
            REPORTED_QUANTILES
                .into_iter()
                .map(|quantile| (quantile.to_string(), judge(quantile)))
                .collect()
        };
        Uncertainty {
            offered_quantiles_ns: by_quantile(&|quantile| self.of_offered(quantile, &lower)),
            response_time_ns: by_quantile(&|quantile| self.of_correct(quantile)),
        }
    }

    fn of_offered(&self, quantile: f64, lower: &LatencyHistogram) -> QuantileUncertainty {
        let dispersion = Dispersion::of(&self.batches.beyond_of_offered(quantile), quantile);
        let value_ns = self.correct.at_rank_ns(rank_of(quantile, self.offered));
        self.judge(quantile, dispersion, value_ns, |dispersion| {
            let low_ns = lower.at_rank_ns(rank_of(dispersion.low, self.offered))?;
            Some((low_ns, self.upper_ns(dispersion.high, self.offered)))
        })
    }

    fn of_correct(&self, quantile: f64) -> QuantileUncertainty {
        let dispersion = Dispersion::of(&self.batches.beyond(quantile), quantile);
        self.judge(
            quantile,
            dispersion,
            self.correct.quantile_ns(quantile),
            |dispersion| {
                let low_ns = self.correct.quantile_ns(dispersion.low)?;
                Some((low_ns, self.upper_ns(dispersion.high, self.correct.count())))
            },
        )
    }

    fn judge(
        &self,
        quantile: f64,
        dispersion: Option<Dispersion>,
        value_ns: Option<u64>,
        interval_of: impl Fn(&Dispersion) -> Option<Interval>,
    ) -> QuantileUncertainty {
        if self.is_interrupted {
            return QuantileUncertainty::unknown(NotResolved::Interrupted);
        }
        let Some(dispersion) = dispersion else {
            return QuantileUncertainty::unknown(NotResolved::TooFewRequests);
        };
        QuantileUncertainty::of(&dispersion, quantile, interval_of).limited_by_floor(
            self.floor,
            quantile,
            value_ns,
            self.min_floor_ratio,
        )
    }

    fn upper_ns(&self, quantile: f64, requests: u64) -> Option<u64> {
        if quantile < 1.0 {
            self.correct.at_rank_ns(rank_of(quantile, requests))
        } else {
            None
        }
    }
}

impl Uncertainty {
    /// Confidence intervals of the response times.
    pub(crate) fn of_response_times(&self) -> BTreeMap<String, Option<Interval>> {
        self.response_time_ns
            .iter()
            .map(|(quantile, known)| (quantile.clone(), known.interval_95_ns))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 120_000_000;

    /// The uncertainty of evenly spaced requests whose response times cycle through 1 to 1,000 µs;
    /// every `failing`-th request fails.
    fn uncertainty(requests: u64, failing: u64, floor: Option<&NoiseFloor>) -> Uncertainty {
        let (mut batches, mut correct) = (Batches::new(0, LENGTH_NS), LatencyHistogram::new());
        for index in 0..requests {
            let at_ns = index * LENGTH_NS / requests;
            let response_ns = (index * 7 % 1_000 + 1) * 1_000;
            let is_right = failing == 0 || index % failing != 0;
            batches.record(at_ns, at_ns + response_ns, is_right.then_some(response_ns));
            if is_right {
                correct.record(response_ns);
            }
        }
        let measured = Measured {
            batches: &batches,
            correct: &correct,
            given_up: &LatencyHistogram::new(),
            offered: requests,
            is_interrupted: false,
            floor,
            min_floor_ratio: 3.0,
        };
        measured.uncertainty()
    }

    #[test]
    fn ten_slower_requests_resolve_a_quantile_and_a_hundred_make_it_a_headline() {
        let result = uncertainty(20_000, 0, None);
        let resolution_status =
            |quantile: &str| result.response_time_ns[quantile].resolution_status;
        assert_eq!(
            (resolution_status("0.5"), resolution_status("0.99")),
            (ResolutionStatus::Headline, ResolutionStatus::Headline)
        );
        assert_eq!(
            (resolution_status("0.999"), resolution_status("0.9999")),
            (ResolutionStatus::Resolved, ResolutionStatus::NotResolved)
        );
        assert_eq!(
            result.response_time_ns["0.9999"].reason,
            Some(NotResolved::TooFewEffectiveRequests)
        );
        assert_eq!(
            result.offered_quantiles_ns, result.response_time_ns,
            "where nothing fails they are one"
        );
        let (low, high) = result.response_time_ns["0.99"]
            .interval_95_ns
            .expect("an interval");
        assert!(low < 990_000 && high > Some(990_000), "{low} {high:?}");
    }

    #[test]
    fn failures_count_as_slower_than_every_response() {
        let result = uncertainty(20_000, 10, None);
        let failed = result.offered_quantiles_ns["0.95"];
        assert_eq!(
            (failed.resolution_status, failed.reason),
            (ResolutionStatus::NotResolved, Some(NotResolved::NotMet))
        );
        assert!(failed.effective_requests.is_some());
        assert!(result.offered_quantiles_ns["0.5"].interval_95_ns.is_some());
        assert!(
            result.response_time_ns["0.95"].interval_95_ns.is_some(),
            "of correct responses it is known"
        );
    }

    #[test]
    fn few_requests_and_a_near_noise_floor_are_reported_as_the_reason() {
        assert_eq!(
            uncertainty(200, 0, None).response_time_ns["0.5"].reason,
            Some(NotResolved::TooFewRequests)
        );
        let floor = NoiseFloor {
            p50_ns: 200_000,
            p99_ns: 300_000,
            p999_ns: 400_000,
        };
        let near = uncertainty(20_000, 0, Some(&floor)).response_time_ns;
        assert_eq!(near["0.5"].reason, Some(NotResolved::BelowNoiseFloor));
        assert!(near["0.5"].interval_95_ns.is_some(), "its interval stands");
        assert_eq!(near["0.99"].reason, None, "3.3 times the floor");
    }
}
