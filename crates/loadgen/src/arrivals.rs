//! Arrival schedules: pure iterators of intended offsets, in nanoseconds from the start of the load.
//!
//! Time never enters: an offset is data, so a late send cannot shift the next one. The union over all threads is
//! the whole schedule, exactly, whatever their number.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::clock::NS_PER_S;
use crate::plan::{Arrivals, OpenLoop};

/// Separate random streams from one seed, so that adding a consumer does not change another's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Gaps,
    Split,
    IdleChoice(usize),
    ThinkTime(usize),
    Requests,
    UserRequests(usize),
}

pub(crate) fn generator(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(match stream {
        Stream::Gaps => 1,
        Stream::Split => 2,
        Stream::Requests => 3,
        Stream::IdleChoice(thread) => 1_000 + thread as u64,
        Stream::ThinkTime(thread) => 1_000_000 + thread as u64,
        Stream::UserRequests(thread) => 2_000_000 + thread as u64,
    });
    random
}

/// An exponential variate with this mean, by inversion.
pub(crate) fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    // `random()` lies in [0, 1), so the argument of the logarithm lies in (0, 1].
    -(1.0 - random.random::<f64>()).ln() * mean
}

/// The whole schedule of an open loop over `length_ns`.
pub struct Schedule {
    gaps: Gaps,
    length_ns: u64,
}

enum Gaps {
    Constant { gap_ns: f64, next: u64 },
    Poisson { mean_gap_ns: f64, elapsed_ns: f64, random: Box<ChaCha8Rng> },
}

impl Schedule {
    /// Intended offsets in `[0, length_ns)`, ascending; the seed reproduces them.
    #[must_use]
    pub fn new(open: &OpenLoop, seed: u64, length_ns: u64) -> Self {
        let gap_ns = NS_PER_S as f64 / open.rate_per_s;
        let gaps = match open.arrivals {
            Arrivals::Constant => Gaps::Constant { gap_ns, next: 0 },
            Arrivals::Poisson => Gaps::Poisson {
                mean_gap_ns: gap_ns,
                elapsed_ns: 0.0,
                random: Box::new(generator(seed, Stream::Gaps)),
            },
        };
        Self { gaps, length_ns }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset_ns = match &mut self.gaps {
            Gaps::Constant { gap_ns, next } => {
                // A product, not a running sum: no rounding error builds up over a long run.
                let offset_ns = (*next as f64 * *gap_ns).round() as u64;
                *next += 1;
                offset_ns
            }
            Gaps::Poisson { mean_gap_ns, elapsed_ns, random } => {
                *elapsed_ns += exponential(random, *mean_gap_ns);
                elapsed_ns.round() as u64
            }
        };
        (offset_ns < self.length_ns).then_some(offset_ns)
    }
}

/// The part of a schedule that one thread sends.
///
/// Even spacing is dealt in turn, so the threads are in staggered phase. Poisson arrivals are dealt by an
/// independent random split, so each part is itself Poisson.
pub struct Share {
    schedule: Schedule,
    deal: Deal,
    /// Arrivals of the whole schedule so far.
    passed: u64,
    thread: usize,
    threads: usize,
}

enum Deal {
    InTurn { next: usize },
    AtRandom(Box<ChaCha8Rng>),
}

impl Share {
    /// The share of `thread` out of `threads`.
    #[must_use]
    pub fn new(open: &OpenLoop, seed: u64, length_ns: u64, thread: usize, threads: usize) -> Self {
        let deal = match open.arrivals {
            Arrivals::Constant => Deal::InTurn { next: 0 },
            Arrivals::Poisson => Deal::AtRandom(Box::new(generator(seed, Stream::Split))),
        };
        Self { schedule: Schedule::new(open, seed, length_ns), deal, passed: 0, thread, threads }
    }

    /// The place in the whole schedule of the arrival that came last.
    pub(crate) fn place(&self) -> u64 {
        self.passed.saturating_sub(1)
    }
}

impl Iterator for Share {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let offset_ns = self.schedule.next()?;
            self.passed += 1;
            let owner = match &mut self.deal {
                Deal::InTurn { next } => {
                    let owner = *next % self.threads;
                    *next += 1;
                    owner
                }
                Deal::AtRandom(random) => random.random_range(0..self.threads),
            };
            if owner == self.thread {
                return Some(offset_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OnBusy;

    fn open(arrivals: Arrivals, rate_per_s: f64) -> OpenLoop {
        OpenLoop { rate_per_s, arrivals, on_busy: OnBusy::Grow, max_connections: None, max_pending: None }
    }

    #[test]
    fn constant_arrivals_are_exact() {
        let offsets: Vec<u64> = Schedule::new(&open(Arrivals::Constant, 3.0), 0, NS_PER_S).collect();
        assert_eq!(offsets, [0, 333_333_333, 666_666_667]);
        let hour = Schedule::new(&open(Arrivals::Constant, 1_000.0), 0, 3_600 * NS_PER_S);
        assert_eq!(hour.last(), Some(3_600 * NS_PER_S - 1_000_000));
    }

    #[test]
    fn the_union_of_the_shares_is_the_schedule() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let open = open(arrivals, 5_000.0);
            for threads in [1, 2, 3, 7] {
                let mut union: Vec<u64> =
                    (0..threads).flat_map(|thread| Share::new(&open, 42, NS_PER_S, thread, threads)).collect();
                union.sort_unstable();
                let whole: Vec<u64> = Schedule::new(&open, 42, NS_PER_S).collect();
                assert_eq!(union, whole, "{arrivals:?} over {threads} threads");
            }
        }
    }

    #[test]
    fn an_arrival_has_one_place_whoever_sends_it() {
        for threads in [1, 3] {
            let mut placed: Vec<(u64, u64)> = Vec::new();
            for thread in 0..threads {
                let mut share = Share::new(&open(Arrivals::Poisson, 5_000.0), 42, NS_PER_S, thread, threads);
                while let Some(offset_ns) = share.next() {
                    placed.push((share.place(), offset_ns));
                }
            }
            placed.sort_unstable();
            let whole = Schedule::new(&open(Arrivals::Poisson, 5_000.0), 42, NS_PER_S);
            assert_eq!(placed, (0..).zip(whole).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    #[test]
    fn one_seed_reproduces_and_another_differs() {
        let open = open(Arrivals::Poisson, 1_000.0);
        let first: Vec<u64> = Schedule::new(&open, 7, NS_PER_S).collect();
        assert_eq!(first, Schedule::new(&open, 7, NS_PER_S).collect::<Vec<_>>());
        assert_ne!(first, Schedule::new(&open, 8, NS_PER_S).collect::<Vec<_>>());
    }

    #[test]
    fn poisson_counts_and_gaps_have_the_right_moments() {
        let rate = 1_000.0;
        let offsets: Vec<u64> = Schedule::new(&open(Arrivals::Poisson, rate), 1, 200 * NS_PER_S).collect();
        let expected = rate * 200.0;
        assert!((offsets.len() as f64 - expected).abs() < 4.0 * expected.sqrt(), "{}", offsets.len());
        let gaps: Vec<f64> = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The coefficient of variation of an exponential is 1; its standard error here is about 0.0022.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.01, "{}", variance.sqrt() / mean);
    }

    #[test]
    fn each_share_of_a_poisson_process_has_its_part_of_the_rate() {
        let open = open(Arrivals::Poisson, 10_000.0);
        for thread in 0..4 {
            let count = Share::new(&open, 3, 10 * NS_PER_S, thread, 4).count() as f64;
            assert!((count - 25_000.0).abs() < 4.0 * 25_000.0_f64.sqrt(), "thread {thread}: {count}");
        }
    }
}
