//! The error budget of each quantile: what the generator, its machine and the sampling may have
//! contributed to it, and the band that follows.
//!
//! In an open loop, response times begin at the intended send. A late generator or a disturbed host
//! can therefore only lengthen them: the measured value is an upper bound whatever happened, and
//! what the generator added, request by request, lowers the band's lower end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::judge::uncertainty::{Interval, ResolutionStatus, Uncertainty};
use crate::plan::floor::NoiseFloor;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::plan::thresholds::LagImpactLimits;
use crate::plan::{LoadPlan, ReceiveStamps};
use crate::record::measures::Measures;

/// The error budget of one quantile of the response time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ErrorBudget {
    /// The quantile as measured.
    pub value: u64,
    /// The generator's share, request by request: the quantile without its send lag and receive
    /// delay, and the quantile as measured. The lower end is no result, because a late send changes
    /// what the server sees.
    pub generator: (u64, u64),
    /// 95 % confidence interval of the sampling inside this run; `None` where it is not known.
    pub sampling_95: Option<Interval>,
    /// The noise floor of this machine at this quantile; `None` where it was not calibrated.
    pub noise_floor: Option<u64>,
    /// The same quantile over the seconds in which the host was not disturbed; `None` where nobody
    /// watched the host.
    pub undisturbed: Option<u64>,
    /// The band of an undisturbed generator's value: the sampling interval, its lower end lowered
    /// by the generator's share and the typical noise floor. `None` where the sampling interval is
    /// not known; without an upper end it is unbounded.
    pub band: Option<Interval>,
    /// What the figure is good for.
    pub bound_status: BoundStatus,
}

/// What a figure is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundStatus {
    /// It holds within its band.
    Bounded,
    /// The generator may have added a relevant part: the true value is not larger.
    UpperBound,
    /// Too few responses lie beyond it for a reliable interval.
    FewResponses,
}

impl ErrorBudget {
    /// What the generator may have added.
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

/// The quantile with each request's send lag removed, and less what late reads may have added. With
/// kernel timestamps a late read is in no response time; a closed loop samples some connections.
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
    fn a_figure_is_an_upper_bound_beyond_a_share_and_a_time() {
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
