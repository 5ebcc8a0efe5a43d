//! A histogram as a report shows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::error::LoadError;
use crate::judge::uncertainty::Interval as QuantileInterval;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::record::histogram::LatencyHistogram;

/// A distribution of durations in nanoseconds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Distribution {
    /// Values.
    pub count: u64,
    /// Smallest, exactly.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Largest, exactly.
    pub max: u64,
    /// Quantiles.
    pub quantiles: BTreeMap<String, u64>,
    /// Confidence intervals of the quantiles within this run; `None` where they are not known.
    pub intervals_95: BTreeMap<String, Option<QuantileInterval>>,
    /// The whole histogram: HDR V2, DEFLATE, base64.
    pub hdr_v2: String,
}

impl Distribution {
    /// The figures of a histogram; `None` of an empty one.
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
