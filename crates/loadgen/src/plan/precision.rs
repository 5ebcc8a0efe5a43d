//! Target precision: measurements that continue until a quantile is known precisely enough.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::plan::phases::require;
use crate::plan::request_limit::lengths_up_to_ns;
use crate::plan::{LoadModel, LoadPlan, LoadProfile, Phases};

/// Quantiles in reports.
pub const REPORTED_QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Wider intervals are useless.
const MAX_HALF_WIDTH: f64 = 0.5;

/// The target precision of a quantile. The measurement ends after 1, 2, 4, 8 … times its shortest
/// length, as soon as the target is reached, and at the latest after the last of these lengths that
/// `max_duration_ns` allows.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PrecisionTarget")]
pub struct Precision {
    /// Quantile to which the target applies, over all scheduled requests. Unit: ratio.
    pub quantile: f64,
    /// Largest acceptable half-width of the quantile's 95 % confidence interval, relative to the
    /// quantile. Unit: ratio.
    pub half_width: f64,
    /// Maximum duration of the measurement.
    pub max_duration_ns: u64,
}

impl Precision {
    pub(crate) fn validate(&self, measure_ns: u64) -> Result<(), LoadError> {
        require(
            REPORTED_QUANTILES.contains(&self.quantile),
            "precision: the report does not contain this quantile",
        )?;
        require(
            self.half_width > 0.0 && self.half_width <= MAX_HALF_WIDTH,
            "precision: the half-width must be above 0 and at most 0.5",
        )?;
        require(
            self.max_duration_ns / 2 >= measure_ns,
            "precision: the maximum duration must be at least twice the duration, so that the \
            load can be extended",
        )
    }

    /// Possible lengths of a measurement with this shortest length, ascending.
    #[must_use]
    pub fn lengths_ns(&self, measure_ns: u64) -> Vec<u64> {
        let is_longer = |length_ns: u64, twice_ns: u64| {
            length_ns < twice_ns && twice_ns <= self.max_duration_ns
        };
        let doubled = |length_ns: &u64| {
            length_ns
                .checked_mul(2)
                .filter(|twice_ns| is_longer(*length_ns, *twice_ns))
        };
        std::iter::successors(Some(measure_ns), doubled).collect()
    }
}

impl LoadPlan {
    /// Lengths at which the measurement ends or is extended, ascending; `None` if its length is
    /// fixed.
    #[must_use]
    pub fn possible_lengths_ns(&self) -> Option<Vec<u64>> {
        let measure_ns = self.phases.measure_ns;
        match (&self.precision, self.requests) {
            (Some(precision), _) => Some(precision.lengths_ns(measure_ns)),
            (None, Some(_)) => Some(lengths_up_to_ns(measure_ns)),
            (None, None) => None,
        }
    }

    /// The phases with the longest possible measurement.
    #[must_use]
    pub fn longest_phases(&self) -> Phases {
        let measure_ns = self
            .possible_lengths_ns()
            .and_then(|lengths_ns| lengths_ns.last().copied());
        Phases {
            measure_ns: measure_ns.unwrap_or(self.phases.measure_ns),
            ..self.phases.clone()
        }
    }

    pub(crate) fn validate_precision(&self) -> Result<(), LoadError> {
        let Some(precision) = &self.precision else {
            return Ok(());
        };
        let is_flat = match &self.load {
            LoadModel::Open(open) => matches!(open.profile, LoadProfile::Flat { .. }),
            LoadModel::Closed(_) => false,
        };
        require(
            is_flat,
            "precision: only an open loop at a constant rate can be extended; use --rate, or omit \
            --precision",
        )?;
        require(
            self.sessions.is_empty(),
            "precision: loads with sessions cannot be extended; omit --precision",
        )?;
        precision.validate(self.phases.measure_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;

    const TARGET: Precision = Precision {
        quantile: 0.99,
        half_width: 0.05,
        max_duration_ns: 600 * NS_PER_S,
    };

    #[test]
    fn a_measurement_can_end_only_after_doublings_of_its_length() {
        assert_eq!(
            TARGET.lengths_ns(60 * NS_PER_S),
            [60, 120, 240, 480].map(|seconds| seconds * NS_PER_S)
        );
        assert_eq!(TARGET.lengths_ns(600 * NS_PER_S), [600 * NS_PER_S]);
    }

    #[test]
    fn errors_name_the_invalid_value() {
        TARGET.validate(300 * NS_PER_S).expect("one extension");
        let cases = [
            ("maximum duration", TARGET, 301 * NS_PER_S),
            (
                "quantile",
                Precision {
                    quantile: 0.98,
                    ..TARGET
                },
                NS_PER_S,
            ),
            (
                "half-width",
                Precision {
                    half_width: 0.0,
                    ..TARGET
                },
                NS_PER_S,
            ),
            (
                "half-width",
                Precision {
                    half_width: f64::NAN,
                    ..TARGET
                },
                NS_PER_S,
            ),
        ];
        for (word, precision, measure_ns) in cases {
            let message = precision.validate(measure_ns).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
