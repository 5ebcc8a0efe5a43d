//! The achieved precision of a quantile, for plans with a target precision.

use schemars::JsonSchema;
use serde::Serialize;

use crate::judge::offered::Bounds;
use crate::judge::uncertainty::{QuantileUncertainty, ResolutionStatus};
use crate::plan::Precision;

/// The precision that was reached for the quantile in `plan.precision`.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PrecisionReport {
    /// Half-width of the quantile's 95 % confidence interval, relative to the quantile. `None`: the
    /// quantile is not resolved, or the interval is unbounded.
    pub half_width: Option<f64>,
    /// Whether the target was reached: `half_width` is at most `plan.precision.half_width`.
    pub is_reached: bool,
}

impl PrecisionReport {
    /// Computes the precision from the whole measurement.
    pub(crate) fn of(
        precision: &Precision,
        uncertainty: Option<&QuantileUncertainty>,
        value: Option<&Bounds>,
    ) -> Self {
        // The confidence interval of a quantile that is not resolved has too little coverage for a
        // stopping rule.
        let interval = uncertainty
            .filter(|quantile| quantile.resolution_status != ResolutionStatus::NotResolved)
            .and_then(|quantile| quantile.interval_95_ns);
        let bounded = interval.and_then(|(low_ns, high_ns)| Some((low_ns, high_ns?)));
        let half_width = bounded
            .zip(
                value
                    .and_then(|value| value.high)
                    .filter(|value_ns| *value_ns > 0),
            )
            .map(|((low_ns, high_ns), value_ns)| (high_ns - low_ns) as f64 / 2.0 / value_ns as f64);
        let is_reached = half_width.is_some_and(|half_width| half_width <= precision.half_width);
        Self {
            half_width,
            is_reached,
        }
    }

    /// One sentence for the user.
    #[must_use]
    pub fn sentence(&self, precision: &Precision) -> String {
        let name = format!("p{}", precision.quantile * 100.0);
        let target = format!("± {:.1} %", precision.half_width * 100.0);
        let achieved = self.half_width.map_or_else(
            || format!("{name} has no finite 95 % CI (see `uncertainty` in the report)"),
            |half_width| format!("{name} is known to within ± {:.1} %", half_width * 100.0),
        );
        if self.is_reached {
            format!("{achieved} (target: {target})")
        } else {
            format!("{achieved}, so the target of {target} was not reached; raise --max-duration")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::judge::uncertainty::NotResolved;

    const TARGET: Precision = Precision {
        quantile: 0.99,
        half_width: 0.05,
        max_duration_ns: 600 * NS_PER_S,
    };

    #[test]
    fn the_target_is_reached_only_with_a_bounded_and_narrow_interval() {
        let known = |high_ns| QuantileUncertainty {
            interval_95_ns: Some((960, high_ns)),
            effective_requests: Some(1e4),
            resolution_status: ResolutionStatus::Headline,
            reason: None,
        };
        let value = Bounds {
            low: Some(1_000),
            high: Some(1_000),
        };
        let of = |known: QuantileUncertainty, value: Bounds| {
            PrecisionReport::of(&TARGET, Some(&known), Some(&value))
        };
        assert_eq!(
            of(known(Some(1_060)), value),
            PrecisionReport {
                half_width: Some(0.05),
                is_reached: true
            }
        );
        assert_eq!(
            of(known(Some(1_062)), value),
            PrecisionReport {
                half_width: Some(0.051),
                is_reached: false
            }
        );
        let unknown = PrecisionReport {
            half_width: None,
            is_reached: false,
        };
        assert_eq!(of(known(None), value), unknown);
        assert_eq!(
            of(
                known(Some(1_060)),
                Bounds {
                    high: None,
                    ..value
                }
            ),
            unknown
        );
        let none = QuantileUncertainty {
            interval_95_ns: None,
            reason: Some(NotResolved::NotMet),
            ..known(None)
        };
        assert_eq!(of(none, value), unknown);
        assert_eq!(PrecisionReport::of(&TARGET, None, None), unknown);
    }

    #[test]
    fn the_sentence_gives_the_precision_and_its_target() {
        let sentence = |half_width, is_reached| {
            PrecisionReport {
                half_width,
                is_reached,
            }
            .sentence(&TARGET)
        };
        assert_eq!(
            sentence(Some(0.042), true),
            "p99 is known to within ± 4.2 % (target: ± 5.0 %)"
        );
        assert_eq!(
            sentence(Some(0.08), false),
            "p99 is known to within ± 8.0 %, so the target of ± 5.0 % was not reached; raise \
            --max-duration"
        );
        assert!(sentence(None, false).starts_with("p99 has no finite 95 % CI"));
    }
}
