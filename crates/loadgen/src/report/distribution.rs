//! Histograms in a report.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::error::LoadError;
use crate::judge::uncertainty::Interval as QuantileInterval;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::record::histogram::LatencyHistogram;

/// The distribution of a duration, such as the response time, in the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Distribution {
    /// Number of recorded values.
    pub count: u64,
    /// Minimum, exact. `None`: no values were recorded.
    pub min: u64,
    /// Mean. `None`: no values were recorded.
    pub mean: f64,
    /// Maximum, exact. `None`: no values were recorded.
    pub max: u64,
    /// Quantiles from `0.5` to `0.9999`; at most 0.1 % above the exact value. `None`: an entry: no
    /// values were recorded.
    pub quantiles: BTreeMap<String, u64>,
    /// Lower and upper end of each quantile's 95 % confidence interval; the upper end is null if
    /// the interval is unbounded. `None`: an entry: `uncertainty` contains no interval, or the
    /// values are not response times.
    pub intervals_95: BTreeMap<String, Option<QuantileInterval>>,
    /// Full histogram (`HdrHistogram` V2, compressed, base64). `None`: not stored.
    pub hdr_v2: String,
}

impl Distribution {
    /// Summarizes a histogram; `None` if it is empty.
    pub(crate) fn of(histogram: &LatencyHistogram) -> Result<Option<Self>, LoadError> {
        let (Some(min), Some(max), Some(mean)) =
            (histogram.min_ns(), histogram.max_ns(), histogram.mean_ns())
        else {
            return Ok(None);
        };
        let quantiles = REPORTED_QUANTILES
            .into_iter()
            .filter_map(|quantile| Some((quantile.to_string(), histogram.quantile_ns(quantile)?)))
            .collect();
        let intervals_95 = REPORTED_QUANTILES
            .into_iter()
            .map(|quantile| (quantile.to_string(), None))
            .collect();
        let (count, hdr_v2) = (histogram.count(), histogram.to_hdr_v2_base64()?);
        Ok(Some(Self {
            count,
            min,
            mean,
            max,
            quantiles,
            intervals_95,
            hdr_v2,
        }))
    }
}
