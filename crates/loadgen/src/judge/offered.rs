//! Quantiles over all offered requests: failures count, and unfinished requests give bounds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::precision::REPORTED_QUANTILES;
use crate::record::histogram::{LatencyHistogram, rank_of};

/// Lower and upper bound of a quantile over all scheduled requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Bounds {
    /// Lower bound: a request that timed out or stayed unfinished counts as if its response had
    /// arrived when the generator stopped waiting. `None`: so many requests failed in other ways
    /// that the quantile has no finite value.
    pub low: Option<u64>,
    /// Upper bound: every request without a correct response counts as infinitely slow. Equal to
    /// `low` if the timed-out and unfinished requests cannot affect the quantile. `None`: so many
    /// requests failed that the quantile has no finite value.
    pub high: Option<u64>,
}

/// Quantiles over all offered requests. A failure counts as infinitely slow. For the lower bound,
/// an abandoned request counts as completed when it was abandoned; for the upper bound, as
/// infinitely slow.
pub(crate) fn offered_quantiles(
    correct: &LatencyHistogram,
    given_up: &LatencyHistogram,
    offered: u64,
) -> BTreeMap<String, Bounds> {
    let mut lower = correct.clone();
    lower.add(given_up);
    let bounds = |quantile: f64| {
        let rank = rank_of(quantile, offered);
        Bounds {
            low: lower.at_rank_ns(rank),
            high: correct.at_rank_ns(rank),
        }
    };
    if offered == 0 {
        return BTreeMap::new();
    }
    REPORTED_QUANTILES
        .into_iter()
        .map(|quantile| (quantile.to_string(), bounds(quantile)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn failures_count_as_infinitely_slow() {
        // 990 correct responses of 1 ns to 990 ns, ten failures: p99 is met, p99.9 is not.
        let bounds = offered_quantiles(&filled(1..=990), &LatencyHistogram::new(), 1_000);
        assert_eq!(
            bounds["0.5"],
            Bounds {
                low: Some(500),
                high: Some(500)
            }
        );
        assert_eq!(
            bounds["0.99"],
            Bounds {
                low: Some(990),
                high: Some(990)
            }
        );
        assert_eq!(
            bounds["0.999"],
            Bounds {
                low: None,
                high: None
            }
        );
    }

    #[test]
    fn abandoned_requests_give_lower_bounds() {
        // Two of a hundred requests were abandoned after 2,000 ns.
        let bounds = offered_quantiles(&filled(1..=98), &filled([2_000, 2_000]), 100);
        assert_eq!(
            bounds["0.95"],
            Bounds {
                low: Some(95),
                high: Some(95)
            }
        );
        assert_eq!(
            bounds["0.99"],
            Bounds {
                low: Some(2_000),
                high: None
            }
        );
    }

    #[test]
    fn a_fast_failure_never_lowers_a_quantile() {
        let all_right = offered_quantiles(&filled(1..=100), &LatencyHistogram::new(), 100);
        let half_failed = offered_quantiles(&filled(51..=100), &LatencyHistogram::new(), 100);
        assert!(half_failed["0.5"].low >= all_right["0.5"].low);
    }
}
