//! How a load is divided among generators: processes, and the threads of each.

use serde::{Deserialize, Serialize};

/// The portion of a load that one generator sends: the `index`-th of `count`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Portion {
    pub index: usize,
    pub count: usize,
}

impl Portion {
    /// The portion of the only generator.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The portion of one of this generator's threads. Together, its threads send every `count`-th
    /// arrival, however many there are.
    pub fn of_thread(self, thread: usize, threads: usize) -> Self {
        Self {
            index: self.index + thread * self.count,
            count: self.count * threads,
        }
    }

    /// Its share in a total, which is divided as evenly as whole numbers allow.
    pub fn of(self, total: usize) -> usize {
        total / self.count + usize::from(self.index < total % self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_differ_by_at_most_one() {
        for (total, count) in [(10, 3), (3, 3), (4_096, 7)] {
            let shares = (0..count).map(|index| Portion { index, count }.of(total));
            let shares: Vec<usize> = shares.collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(shares[0] - shares[count - 1] <= 1, "{shares:?}");
        }
    }

    #[test]
    fn the_threads_of_a_generator_divide_its_portion() {
        let generator = Portion { index: 1, count: 3 };
        let threads = [0, 1].map(|thread| generator.of_thread(thread, 2));
        for total in 6..13 {
            let shares = threads.map(|thread| thread.of(total));
            assert_eq!(shares.iter().sum::<usize>(), generator.of(total), "{total}");
        }
        assert_eq!(threads.map(|thread| thread.index % 3), [1, 1]);
    }
}
