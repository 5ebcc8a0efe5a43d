//! The uncertainty of a quantile of dependent data: the over-dispersion interval.
//!
//! The requests of one load are not independent: requests queue behind each other. The textbook
//! interval of a quantile assumes independence and covers the true value in a fifth of the cases
//! instead of the promised 19 of 20. Here the over-dispersion of exceedance counts in equal batches
//! of time is estimated, and the number of requests is divided by that factor before the textbook
//! formula is applied.

use crate::statistics::group;

/// Number of batches in which exceedances are counted.
pub const BATCHES: usize = 120;

/// Numbers of batches into which neighbouring counts are combined; the largest dispersion is used.
const BATCH_COUNTS: [usize; 3] = [30, 60, 120];

/// Student's t for 95 % with 29 degrees of freedom, those of the smallest number of batches.
const T_95_PERCENT: f64 = 2.045;

/// Minimum number of requests for an estimate: ten in each batch, at the smallest number of
/// batches.
const MIN_REQUESTS: f64 = 300.0;

/// One batch: its number of requests, and how many of them are beyond the quantile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Requests.
    pub requests: f64,
    /// Of these, beyond the quantile; the bucket that holds the quantile is split proportionally.
    pub beyond: f64,
}

/// The dispersion of one quantile over [`BATCHES`] batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// The number of independent requests that would give the same precision.
    pub effective_requests: f64,
    /// The quantile at the lower end of the 95 % interval.
    pub low: f64,
    /// The quantile at its upper end; unbounded if 1 or more.
    pub high: f64,
}

impl Dispersion {
    /// Estimates the dispersion of the requests beyond `quantile`; `None` if there are too few.
    #[must_use]
    pub fn of(batches: &[Batch; BATCHES], quantile: f64) -> Option<Self> {
        let requests: f64 = batches.iter().map(|batch| batch.requests).sum();
        if requests < MIN_REQUESTS {
            return None;
        }

        let independent = quantile * (1.0 - quantile) / requests;
        let widest = BATCH_COUNTS
            .into_iter()
            .map(|count| variance(batches, count))
            .fold(0.0, f64::max);
        let effective_requests = requests / (widest / independent).max(1.0);
        let half_width = T_95_PERCENT * (quantile * (1.0 - quantile) / effective_requests).sqrt();

        Some(Self {
            effective_requests,
            low: (quantile - half_width).max(0.0),
            high: quantile + half_width,
        })
    }

    /// Independent requests beyond the quantile: below 10 the interval's coverage is too low.
    #[must_use]
    pub fn effective_beyond(&self, quantile: f64) -> f64 {
        self.effective_requests * (1.0 - quantile)
    }
}

/// Variance of the share beyond the quantile, from this many batches.
fn variance(batches: &[Batch; BATCHES], count: usize) -> f64 {
    let grouped: Vec<Batch> = group(batches, BATCHES / count).map(Batch::sum).collect();
    let all = Batch::sum(&grouped);
    let share = all.beyond / all.requests;
    // Relative to the overall share, these differences have the mean 0.
    let squares: f64 = grouped
        .iter()
        .map(|batch| (batch.beyond - share * batch.requests).powi(2))
        .sum();
    let batch_count = count as f64;

    batch_count * squares / (batch_count - 1.0) / all.requests.powi(2)
}

impl Batch {
    fn sum(batches: &[Self]) -> Self {
        batches.iter().fold(Self::default(), |sum, batch| Self {
            requests: sum.requests + batch.requests,
            beyond: sum.beyond + batch.beyond,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(beyond: impl Fn(usize) -> f64) -> [Batch; BATCHES] {
        std::array::from_fn(|index| Batch {
            requests: 1_000.0,
            beyond: beyond(index),
        })
    }

    #[test]
    fn even_counts_give_no_more_precision_than_independent_requests() {
        let dispersion = Dispersion::of(&batches(|_| 10.0), 0.99).expect("enough requests");
        assert_eq!(dispersion.effective_requests, 120_000.0);
        let half_width = 2.045 * (0.99 * 0.01 / 120_000.0_f64).sqrt();
        assert!(
            (dispersion.low - (0.99 - half_width)).abs() < 1e-12
                && (dispersion.high - (0.99 + half_width)).abs() < 1e-12
        );
    }

    #[test]
    fn the_batches_with_the_largest_dispersion_decide() {
        // Blocks of four batches with 30 and with 0: at 30 batches the dispersion is that of whole
        // blocks.
        let dispersion = Dispersion::of(
            &batches(|index| if index / 4 % 3 == 0 { 30.0 } else { 0.0 }),
            0.99,
        );
        let dispersion = dispersion.expect("enough requests");
        // Of 30 blocks of 4,000 requests, ten have 120 and twenty none: differences of 80 and -40
        // from the mean.
        let squares = 10.0 * 80.0_f64.powi(2) + 20.0 * 40.0_f64.powi(2);
        let inflation = 30.0 * squares / 29.0 / 120_000.0_f64.powi(2) / (0.99 * 0.01 / 120_000.0);

        assert!(
            (dispersion.effective_requests - 120_000.0 / inflation).abs() < 1e-6,
            "{dispersion:?}"
        );
    }

    #[test]
    fn too_few_requests_give_no_estimate_and_a_sparse_tail_no_upper_bound() {
        let few = std::array::from_fn(|_| Batch {
            requests: 2.0,
            beyond: 0.0,
        });
        assert_eq!(Dispersion::of(&few, 0.5), None);

        let tail = std::array::from_fn(|_| Batch {
            requests: 3.0,
            beyond: 0.03,
        });
        let dispersion = Dispersion::of(&tail, 0.99).expect("360 requests");

        assert!(
            dispersion.high >= 1.0 && dispersion.effective_beyond(0.99) < 4.2,
            "{dispersion:?}"
        );
    }
}
