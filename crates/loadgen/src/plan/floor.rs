//! The noise floor: the response times that the generator measures against a server that responds
//! immediately, on this machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The noise floor: response times measured in advance on this machine against a server that
/// responds immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseFloor {
    /// Median response time.
    pub p50_ns: u64,
    /// p99 response time.
    pub p99_ns: u64,
    /// p99.9 response time.
    pub p999_ns: u64,
}

impl NoiseFloor {
    /// The noise floor of a quantile, from the next higher known quantile; `None` above the
    /// highest.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Option<u64> {
        match quantile {
            q if q <= 0.5 => Some(self.p50_ns),
            q if q <= 0.99 => Some(self.p99_ns),
            q if q <= 0.999 => Some(self.p999_ns),
            _ => None,
        }
    }

    /// The ratio of a quantile to its noise floor.
    pub(crate) fn ratio(&self, quantile: f64, value_ns: u64) -> Option<f64> {
        self.at(quantile)
            .map(|floor_ns| value_ns as f64 / floor_ns.max(1) as f64)
    }
}
