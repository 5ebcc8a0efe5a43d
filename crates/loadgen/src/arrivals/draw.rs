//! Which of several requests an arrival sends: a weighted draw that depends only on the seed and
//! the arrival's index, so that the whole load is the same for any number of threads.

use rand::Rng;

use crate::base::random::{Stream, generator, scatter};

/// A weighted draw, with one choice per weight.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// The last point of the 64-bit range that belongs to each choice; empty if there is only one.
    ends: Vec<u64>,
    key: u64,
}

impl Draw {
    /// Draws by index in `stream`; without weights, or with one, always the first choice.
    pub fn new(weights: &[f64], seed: u64, stream: Stream) -> Self {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut ends: Vec<u64> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                (sum / total * u64::MAX as f64) as u64
            })
            .collect();
        // Rounding must not leave points without a choice.
        if let Some(last) = ends.last_mut() {
            *last = u64::MAX;
        }
        if ends.len() == 1 {
            ends.clear();
        }

        Self {
            ends,
            key: generator(seed, stream).random(),
        }
    }

    /// The choice for this index.
    pub fn pick(&self, place: u64) -> u32 {
        if self.ends.is_empty() {
            return 0;
        }
        let point = scatter(self.key, place);
        self.ends.partition_point(|end| *end < point) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(weights: &[f64], seed: u64) -> Vec<u32> {
        let draw = Draw::new(weights, seed, Stream::Requests);
        let mut counts = vec![0; weights.len().max(1)];
        (0..100_000).for_each(|place| counts[draw.pick(place) as usize] += 1);
        counts
    }

    #[test]
    fn choices_are_drawn_by_weight() {
        let weights = [5.0, 0.5, 2.5, 2.0];
        for seed in 0..3 {
            for (count, weight) in counts(&weights, seed).iter().zip(weights) {
                let share = weight / 10.0;
                let deviation = (100_000.0 * share * (1.0_f64 - share)).sqrt();
                assert!(
                    (f64::from(*count) - 100_000.0 * share).abs() < 4.5 * deviation,
                    "{count} for {weight}"
                );
            }
        }
    }

    #[test]
    fn neighbours_are_independent() {
        let draw = Draw::new(&[1.0, 1.0], 9, Stream::Requests);
        let same = (0..100_000)
            .filter(|place| draw.pick(*place) == draw.pick(*place + 1))
            .count();
        // One standard deviation is about 160.
        assert!((49_300..50_700).contains(&same), "{same}");
    }

    #[test]
    fn one_seed_reproduces_and_another_differs() {
        let picks = |seed| {
            let draw = Draw::new(&[1.0, 2.0, 3.0], seed, Stream::Requests);
            (0..50).map(|place| draw.pick(place)).collect::<Vec<_>>()
        };
        assert_eq!(picks(1), picks(1));
        assert_ne!(picks(1), picks(2));
    }

    #[test]
    fn without_alternatives_the_first_choice_is_drawn() {
        assert_eq!(counts(&[], 1), [100_000]);
        assert_eq!(counts(&[0.1], 1), [100_000]);
    }
}
