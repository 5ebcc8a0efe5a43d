//! Latency histograms: HDR, three significant digits, nanoseconds, with exact minimum and maximum.
//!
//! Histograms are merged by addition only; percentiles are never averaged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;

const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "PackedHistogram", into = "PackedHistogram")]
pub struct LatencyHistogram {
    counts: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram that grows with its largest value.
    ///
    /// # Panics
    /// Never: three digits are always accepted.
    #[must_use]
    pub fn new() -> Self {
        let counts =
            Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are a valid precision");
        Self {
            counts,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    /// Counts one value.
    pub fn record(&mut self, value_ns: u64) {
        // A self-resizing histogram accepts every u64, so this cannot fail.
        let recorded = self.counts.record(value_ns);
        debug_assert!(recorded.is_ok(), "{recorded:?}");
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns);
    }

    /// Counts one value several times.
    pub(crate) fn record_many(&mut self, value_ns: u64, count: u64) {
        if count > 0 {
            let recorded = self.counts.record_n(value_ns, count);
            debug_assert!(recorded.is_ok(), "{recorded:?}");
            self.min_ns = self.min_ns.min(value_ns);
            self.max_ns = self.max_ns.max(value_ns);
            self.sum_ns += u128::from(value_ns) * u128::from(count);
        }
    }

    /// Adds another histogram's counts to this one's.
    ///
    /// # Panics
    /// Never: both resize themselves and have the same precision.
    pub fn add(&mut self, other: &Self) {
        self.counts
            .add(&other.counts)
            .expect("same precision and resizable");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The smallest value, exactly; `None` when empty.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_ns)
    }

    /// The largest value, exactly; `None` when empty.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// The mean in nanoseconds; `None` when empty. Exact, unless the histogram was decoded from
    /// bytes.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The sum of all values. Exact, unless the histogram was decoded from bytes.
    pub(crate) fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The smallest recorded value `v` with `count(<= v) >= ceil(quantile * n)`, as the highest
    /// value of its bucket (at most 0.098 % above), but never more than the exact maximum. `None`
    /// when empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.value_at_rank(rank_of(quantile, self.count())))
    }

    /// The value of the `rank`-th smallest entry, counted from 1; `None` when there are fewer.
    #[must_use]
    pub fn at_rank_ns(&self, rank: u64) -> Option<u64> {
        (rank >= 1 && rank <= self.count()).then(|| self.value_at_rank(rank))
    }

    fn value_at_rank(&self, rank: u64) -> u64 {
        // The library takes `ceil(quantile * count)`: half a rank less is safe from rounding errors
        // in either direction.
        let quantile = (rank as f64 - 0.5) / self.count() as f64;
        self.counts.value_at_quantile(quantile).min(self.max_ns)
    }

    /// How many values are larger than `limit_ns`, to the resolution of a bucket.
    #[must_use]
    pub fn count_above(&self, limit_ns: u64) -> u64 {
        self.counts
            .iter_recorded()
            .filter(|entry| entry.value_iterated_to() > self.counts.highest_equivalent(limit_ns))
            .map(|entry| entry.count_since_last_iteration())
            .sum()
    }

    /// Every non-empty bucket as `(highest value, count)`, ascending.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.counts
            .iter_recorded()
            .map(|entry| {
                (
                    entry.value_iterated_to(),
                    entry.count_since_last_iteration(),
                )
            })
            .collect()
    }

    /// A compact copy, for storage.
    pub(crate) fn pack(&self) -> PackedHistogram {
        let mut bytes = Vec::new();
        let mut before = 0;

        for (value_ns, count) in self.buckets() {
            push_number(&mut bytes, value_ns - before);
            push_number(&mut bytes, count);
            before = value_ns;
        }

        let (min_ns, max_ns, sum_ns) = (self.min_ns, self.max_ns, self.sum_ns);
        PackedHistogram {
            bytes: bytes.into_boxed_slice(),
            min_ns,
            max_ns,
            sum_ns,
        }
    }

    /// HDR V2 with DEFLATE, readable by every reader of the interval log format.
    ///
    /// # Errors
    /// [`LoadError::Histogram`] if encoding fails.
    pub fn to_hdr_v2(&self) -> Result<Vec<u8>, LoadError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .map_err(|error| LoadError::Histogram(error.to_string()))?;
        Ok(bytes)
    }

    /// [`Self::to_hdr_v2`] in base64.
    ///
    /// # Errors
    /// As [`Self::to_hdr_v2`].
    pub fn to_hdr_v2_base64(&self) -> Result<String, LoadError> {
        Ok(STANDARD.encode(self.to_hdr_v2()?))
    }

    /// Reads HDR V2 bytes, compressed or not. The format has no exact extremes, so minimum, maximum
    /// and mean are those of the buckets.
    ///
    /// # Errors
    /// [`LoadError::Histogram`] when the bytes are not such a histogram.
    pub fn from_hdr_v2(bytes: &[u8]) -> Result<Self, LoadError> {
        let counts: Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|error| LoadError::Histogram(error.to_string()))?;
        let sum_ns = counts
            .iter_recorded()
            .map(|entry| {
                u128::from(counts.median_equivalent(entry.value_iterated_to()))
                    * u128::from(entry.count_since_last_iteration())
            })
            .sum();
        let (min_ns, max_ns) = if counts.is_empty() {
            (u64::MAX, 0)
        } else {
            (counts.min(), counts.max())
        };
        let mut grown =
            Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are a valid precision");
        grown
            .add(&counts)
            .map_err(|error| LoadError::Histogram(format!("{error:?}")))?;

        Ok(Self {
            counts: grown,
            min_ns,
            max_ns,
            sum_ns,
        })
    }

    /// Reads [`Self::to_hdr_v2_base64`].
    ///
    /// # Errors
    /// [`LoadError::Histogram`] when the text is not such a histogram.
    pub fn from_hdr_v2_base64(text: &str) -> Result<Self, LoadError> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| LoadError::Histogram(error.to_string()))?;
        Self::from_hdr_v2(&bytes)
    }
}

/// `ceil(quantile * n)`, at least 1.
#[must_use]
pub fn rank_of(quantile: f64, count: u64) -> u64 {
    // A product like 0.95 * 100 can exceed 95 by a rounding error. A tolerance of one part in 10^12
    // corrects this without reaching the next rank.
    let exact = quantile * count as f64;
    ((exact - exact * 1e-12).ceil() as u64).clamp(1, count.max(1))
}

/// A read-only histogram: its non-empty buckets only, a few bytes each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub(crate) struct PackedHistogram {
    bytes: Box<[u8]>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Default for PackedHistogram {
    fn default() -> Self {
        Self {
            bytes: Box::default(),
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }
}

impl PackedHistogram {
    /// Restores the histogram exactly.
    pub fn unpack(&self) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        let mut rest = &self.bytes[..];
        let mut value_ns = 0;

        while !rest.is_empty() {
            value_ns += take_number(&mut rest);
            let recorded = histogram.counts.record_n(value_ns, take_number(&mut rest));
            debug_assert!(recorded.is_ok(), "{recorded:?}");
        }

        (histogram.min_ns, histogram.max_ns, histogram.sum_ns) =
            (self.min_ns, self.max_ns, self.sum_ns);
        histogram
    }
}

/// The form in which a packed histogram travels: its bytes in base64, minimum, maximum and sum.
type Encoded = (String, u64, u64, u128);

impl From<PackedHistogram> for Encoded {
    fn from(packed: PackedHistogram) -> Self {
        let text = STANDARD.encode(&packed.bytes);
        (text, packed.min_ns, packed.max_ns, packed.sum_ns)
    }
}

impl TryFrom<Encoded> for PackedHistogram {
    type Error = base64::DecodeError;

    fn try_from((text, min_ns, max_ns, sum_ns): Encoded) -> Result<Self, Self::Error> {
        Ok(Self {
            bytes: STANDARD.decode(text)?.into_boxed_slice(),
            min_ns,
            max_ns,
            sum_ns,
        })
    }
}

impl From<LatencyHistogram> for PackedHistogram {
    fn from(histogram: LatencyHistogram) -> Self {
        histogram.pack()
    }
}

impl From<PackedHistogram> for LatencyHistogram {
    fn from(packed: PackedHistogram) -> Self {
        packed.unpack()
    }
}

/// Writes seven bits per byte, lowest first; the eighth bit says that more bytes follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }

    number
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
    fn packing_is_lossless() {
        let mut histogram = LatencyHistogram::new();
        assert_eq!(histogram.pack().unpack(), histogram);

        for value in [
            0,
            1,
            127,
            128,
            2_047,
            2_048,
            1 << 20,
            3_600_000_000_000,
            u64::MAX / 2,
        ] {
            (0..=value % 300).for_each(|_| histogram.record(value));
        }

        assert_eq!(histogram.pack().unpack(), histogram);
    }

    #[test]
    fn an_empty_histogram_has_no_values() {
        let empty = LatencyHistogram::new();
        assert_eq!(
            (
                empty.count(),
                empty.min_ns(),
                empty.max_ns(),
                empty.quantile_ns(0.5)
            ),
            (0, None, None, None)
        );
        assert_eq!(empty.mean_ns(), None);
    }

    #[test]
    fn quantiles_follow_the_definition() {
        // Values below 2,048 have a bucket each, so the definition can be checked exactly.
        let histogram = filled(1..=1_000);
        for (quantile, expected) in [
            (0.001, 1),
            (0.5, 500),
            (0.95, 950),
            (0.99, 990),
            (0.999, 999),
            (1.0, 1_000),
        ] {
            assert_eq!(
                histogram.quantile_ns(quantile),
                Some(expected),
                "quantile {quantile}"
            );
        }

        assert_eq!(histogram.quantile_ns(0.0), Some(1));
        assert_eq!(histogram.mean_ns(), Some(500.5));
    }

    #[test]
    fn every_rank_has_its_value() {
        for count in [1, 2, 3, 10, 999, 1_000, 1_999] {
            // Below 2,048 each value has its own bucket.
            let histogram = filled((0..count).rev());
            for rank in 1..=count {
                assert_eq!(histogram.at_rank_ns(rank), Some(rank - 1), "of {count}");
            }
            assert_eq!(
                (histogram.at_rank_ns(0), histogram.at_rank_ns(count + 1)),
                (None, None)
            );
        }
    }

    #[test]
    fn a_large_value_is_within_a_thousandth_and_never_above_the_maximum() {
        let value = 1_234_567_890_123;
        let histogram = filled([1, value]);

        assert_eq!(histogram.max_ns(), Some(value));
        assert_eq!(histogram.quantile_ns(1.0), Some(value));

        let histogram = filled([value, value * 2]);
        let median = histogram.quantile_ns(0.5).expect("two values");

        assert!(
            median >= value && (median - value) * 1_024 <= value,
            "{median}"
        );
    }

    #[test]
    fn addition_is_exact_whatever_the_order() {
        let mut first = filled([5, 7_000_000]);
        let mut second = LatencyHistogram::new();
        [1, 9_000_000_000]
            .into_iter()
            .for_each(|value| second.record(value));
        let all = filled([9_000_000_000, 5, 1, 7_000_000]);
        first.add(&second);

        assert_eq!(first.buckets(), all.buckets());
        assert_eq!(
            (first.min_ns(), first.max_ns(), first.mean_ns()),
            (all.min_ns(), all.max_ns(), all.mean_ns())
        );
    }

    #[test]
    fn the_encoding_keeps_every_count() {
        let histogram = filled((0..5_000).map(|index| index * index * 37));
        let text = histogram.to_hdr_v2_base64().expect("encodes");
        let decoded = LatencyHistogram::from_hdr_v2_base64(&text).expect("decodes");
        assert_eq!(decoded.buckets(), histogram.buckets());
        assert!(LatencyHistogram::from_hdr_v2(b"nonsense").is_err());
    }

    #[test]
    fn exceedances_are_counted() {
        let histogram = filled(1..=1_000);
        assert_eq!(histogram.count_above(990), 10);
        assert_eq!(histogram.count_above(0), 1_000);
    }
}
