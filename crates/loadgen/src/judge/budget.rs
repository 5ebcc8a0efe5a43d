//! The error budget of each quantile: the possible contributions of the generator, its machine and
//! sampling, and the resulting range of the value.
//!
//! In an open loop, response times start at the scheduled send. A late generator or a disturbed
//! host can only lengthen them, so the measured value is always an upper bound. The generator's
//! contribution, request by request, lowers the lower end of the range.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::judge::uncertainty::{Interval, ResolutionStatus, Uncertainty};
use crate::plan::floor::NoiseFloor;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::plan::thresholds::LagImpactLimits;
use crate::plan::{LoadPlan, ReceiveStamps};
use crate::record::measures::Measures;

/// The possible error of one quantile of the response time.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ErrorBudget {
    /// Measured quantile.
    pub value: u64,
    /// Lower end: the quantile without the generator's delays (send lag and `receive_delay_ns`).
    /// Upper end: the measured quantile. The lower end is not a result, because a late send changes
    /// the load on the server.
    pub generator: (u64, u64),
    /// Lower and upper end of the quantile's 95 % confidence interval; the upper end is null if the
    /// interval is unbounded. `None`: fewer than 300 requests, interrupted load, or the quantile
    /// has no finite value.
    pub sampling_95: Option<Interval>,
    /// Noise floor of this machine at this quantile. `None`: the machine was not calibrated.
    pub noise_floor: Option<u64>,
    /// The quantile over the intervals in which the host was not disturbed, excluding the first
    /// interval after each disturbed interval. Equal to `value` if the host was never disturbed.
    /// `None`: the host was not observed (always with `wsgiload load`), or fewer than ten responses
    /// are slower than the quantile.
    pub undisturbed: Option<u64>,
    /// Range in which the quantile would lie if the generator caused no delay. It is `sampling_95`
    /// with the lower end reduced by the p50 of the noise floor and by the width of `generator`.
    /// `None`: `sampling_95` is null.
    pub band: Option<Interval>,
    /// `bounded` (the true value lies in `band`), `upper_bound` (the generator may have increased
    /// the quantile by more than 10 % and 100 µs, so the true value may be lower) or
    /// `few_responses` (the quantile is not resolved, usually because there are too few responses).
    pub bound_status: BoundStatus,
}

/// How a value can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundStatus {
    /// The true value is within the range.
    Bounded,
    /// The generator may have contributed a relevant part, so the value is only an upper bound.
    UpperBound,
    /// Too few responses beyond the quantile for a reliable confidence interval.
    FewResponses,
}

impl ErrorBudget {
    /// The generator's possible contribution.
    pub(crate) fn generator_ns(&self) -> u64 {
        self.generator.1 - self.generator.0
    }
}

/// The budget of every reported quantile that has a value.
pub(crate) fn error_budget(
    plan: &LoadPlan,
    measures: &Measures,
    uncertainty: &Uncertainty,
) -> BTreeMap<String, ErrorBudget> {
    let budget = |quantile: f64| {
        let name = quantile.to_string();
        let known = &uncertainty.response_time_ns[&name];
        let value = measures.response.quantile_ns(quantile)?;
        let mut budget = ErrorBudget {
            value,
            generator: (without_generator_ns(plan, measures, quantile)?, value),
            sampling_95: known.interval_95_ns,
            noise_floor: plan
                .noise_floor
                .as_ref()
                .and_then(|floor| floor.at(quantile)),
            undisturbed: None,
            band: None,
            bound_status: BoundStatus::Bounded,
        };
        budget.band = band(&budget, plan.noise_floor.as_ref());
        budget.bound_status = bound_status(
            &budget,
            known.resolution_status,
            &plan.thresholds.lag_impact,
        );
        Some((name, budget))
    };
    REPORTED_QUANTILES.into_iter().filter_map(budget).collect()
}

/// The quantile after subtracting each request's send lag and the receive delay. With kernel
/// timestamps, response times contain no receive delay; a closed loop measures the delay on some
/// connections.
fn without_generator_ns(plan: &LoadPlan, measures: &Measures, quantile: f64) -> Option<u64> {
    let value_ns = measures.response.quantile_ns(quantile)?;
    let without_lag_ns = measures.response_without_lag.quantile_ns(quantile)?;
    let is_timed_by_kernel =
        plan.receive_stamps() == ReceiveStamps::Kernel && measures.receive_delay.count() > 0;
    let receive_delay_ns = if is_timed_by_kernel {
        0
    } else {
        measures.receive_delay.quantile_ns(quantile).unwrap_or(0)
    };
    Some(
        without_lag_ns
            .min(value_ns)
            .saturating_sub(receive_delay_ns),
    )
}

fn band(budget: &ErrorBudget, floor: Option<&NoiseFloor>) -> Option<Interval> {
    let (low_ns, high_ns) = budget.sampling_95?;
    let typical_floor_ns = floor.and_then(|floor| floor.at(0.5)).unwrap_or(0);
    let added_ns = budget.generator_ns() + typical_floor_ns;
    Some((low_ns.saturating_sub(added_ns), high_ns))
}

fn bound_status(
    budget: &ErrorBudget,
    known: ResolutionStatus,
    limits: &LagImpactLimits,
) -> BoundStatus {
    let added_ns = budget.generator_ns() as f64;
    let is_relevant =
        added_ns > limits.bound_ns && added_ns > limits.bound * budget.generator.0 as f64;
    if is_relevant {
        BoundStatus::UpperBound
    } else if known == ResolutionStatus::NotResolved {
        BoundStatus::FewResponses
    } else {
        BoundStatus::Bounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LagImpactLimits = LagImpactLimits {
        note: 0.01,
        warn: 0.05,
        warn_ns: 50_000.0,
        bound: 0.1,
        bound_ns: 100_000.0,
        invalid: 1.0,
        invalid_ns: 100_000.0,
    };

    fn budget(without_ns: u64, value: u64) -> ErrorBudget {
        ErrorBudget {
            value,
            generator: (without_ns, value),
            sampling_95: Some((value - 50_000, Some(value + 80_000))),
            noise_floor: None,
            undisturbed: None,
            band: None,
            bound_status: BoundStatus::Bounded,
        }
    }

    #[test]
    fn the_band_is_the_sampling_interval_lowered_by_generator_and_floor() {
        let floor = NoiseFloor {
            p50_ns: 20_000,
            p99_ns: 200_000,
            p999_ns: 900_000,
        };
        let lagging = budget(608_000, 705_000);
        assert_eq!(band(&lagging, None), Some((558_000, Some(785_000))));
        assert_eq!(band(&lagging, Some(&floor)), Some((538_000, Some(785_000))));
        let unknown = ErrorBudget {
            sampling_95: None,
            ..lagging
        };
        assert_eq!(band(&unknown, None), None);
    }

    #[test]
    fn a_value_is_an_upper_bound_above_a_relative_and_an_absolute_limit() {
        let status_of = |without_ns, value| {
            bound_status(
                &budget(without_ns, value),
                ResolutionStatus::Resolved,
                &LIMITS,
            )
        };
        assert_eq!(status_of(100_000, 190_000), BoundStatus::Bounded);
        assert_eq!(status_of(9_000_000, 9_500_000), BoundStatus::Bounded);
        assert_eq!(status_of(1_000_000, 1_300_000), BoundStatus::UpperBound);
        assert_eq!(
            bound_status(
                &budget(1_000_000, 1_000_000),
                ResolutionStatus::NotResolved,
                &LIMITS
            ),
            BoundStatus::FewResponses
        );
    }
}
