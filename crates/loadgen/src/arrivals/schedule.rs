//! Arrival schedules: pure iterators of scheduled offsets, in nanoseconds from the start of the
//! load.
//!
//! No clock is read: offsets are data, so a late send cannot shift the next one. For any number of
//! threads, the union of their shares is exactly the whole schedule.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::base::random::{Stream, exponential, generator};
use crate::plan::rate_curve::Walk;
use crate::plan::{Arrivals, LoadProfile, OpenLoop, Phases, Replay};

/// The whole schedule of an open loop.
pub struct Schedule {
    source: Source,
    length_ns: u64,
}

enum Source {
    /// Points of a process of rate 1, mapped through the inverse of the integrated rate.
    Rate {
        points: Points,
        walk: Walk,
    },
    Trace {
        replay: Replay,
        next: usize,
    },
}

/// A process of rate 1.
enum Points {
    Constant {
        next: u64,
    },
    Poisson {
        passed: f64,
        random: Box<ChaCha8Rng>,
    },
}

impl Points {
    fn new(arrivals: Arrivals, seed: u64) -> Self {
        match arrivals {
            Arrivals::Constant => Self::Constant { next: 0 },
            Arrivals::Poisson => Self::Poisson {
                passed: 0.0,
                random: Box::new(generator(seed, Stream::Gaps)),
            },
        }
    }

    fn next(&mut self) -> f64 {
        match self {
            Self::Constant { next } => {
                // A count, not a running sum: no rounding error accumulates over a long run.
                *next += 1;
                (*next - 1) as f64
            }
            Self::Poisson { passed, random } => {
                *passed += exponential(random, 1.0);
                *passed
            }
        }
    }
}

impl Schedule {
    /// Scheduled offsets within the phases, ascending; the seed reproduces them.
    #[must_use]
    pub fn new(open: &OpenLoop, seed: u64, phases: &Phases) -> Self {
        let source = match &open.profile {
            LoadProfile::Replay(replay) => Source::Trace {
                replay: replay.clone(),
                next: 0,
            },
            profile => Source::Rate {
                points: Points::new(open.arrivals, seed),
                walk: profile.curve(phases).unwrap_or_default().walk(),
            },
        };
        Self {
            source,
            length_ns: phases.load_ns(),
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset_ns = match &mut self.source {
            Source::Rate { points, walk } => walk.offset_ns(points.next())?,
            Source::Trace { replay, next } => {
                *next += 1;
                replay.due_ns(*replay.offsets_ns.offsets_ns().get(*next - 1)?)
            }
        };
        (offset_ns < self.length_ns).then_some(offset_ns)
    }
}

/// The part of a schedule that one thread sends.
///
/// Constant arrivals and traces are assigned to threads in rotation, so the sends of the threads
/// are staggered. Poisson arrivals are split independently at random, so each part is itself
/// Poisson.
pub struct Share {
    schedule: Schedule,
    assignment: Assignment,
    /// Arrivals of the whole schedule so far.
    passed: u64,
    thread: usize,
    threads: usize,
}

enum Assignment {
    RoundRobin { next: usize },
    Random(Box<ChaCha8Rng>),
}

impl Share {
    /// The share of `thread` out of `threads`.
    #[must_use]
    pub fn new(open: &OpenLoop, seed: u64, phases: &Phases, thread: usize, threads: usize) -> Self {
        let assignment = match (&open.profile, open.arrivals) {
            (LoadProfile::Replay(_), _) | (_, Arrivals::Constant) => {
                Assignment::RoundRobin { next: 0 }
            }
            (_, Arrivals::Poisson) => Assignment::Random(Box::new(generator(seed, Stream::Split))),
        };
        Self {
            schedule: Schedule::new(open, seed, phases),
            assignment,
            passed: 0,
            thread,
            threads,
        }
    }

    /// The index in the whole schedule of the latest arrival.
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
            let owner = match &mut self.assignment {
                Assignment::RoundRobin { next } => {
                    let owner = *next % self.threads;
                    *next += 1;
                    owner
                }
                Assignment::Random(random) => random.random_range(0..self.threads),
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
    use crate::base::clock::{NS_PER_MS, NS_PER_S};
    use crate::plan::{OnBusy, Ramp, Step, Trace};

    const MS: u64 = NS_PER_MS;
    const S: u64 = NS_PER_S;

    fn open(arrivals: Arrivals, profile: LoadProfile) -> OpenLoop {
        OpenLoop {
            profile,
            arrivals,
            on_busy: OnBusy::Grow,
            max_connections: None,
            max_pending: None,
        }
    }

    fn flat(rate_per_s: f64) -> LoadProfile {
        LoadProfile::Flat { rate_per_s }
    }

    fn ramp(from_per_s: f64, to_per_s: f64) -> LoadProfile {
        LoadProfile::Ramp(Ramp {
            from_per_s,
            to_per_s,
            over_ns: None,
        })
    }

    fn steps(steps: &[(f64, u64)]) -> LoadProfile {
        LoadProfile::Steps(
            steps
                .iter()
                .map(|&(rate_per_s, duration_ns)| Step {
                    rate_per_s,
                    duration_ns,
                })
                .collect(),
        )
    }

    fn replay(offsets_ns: Vec<u64>, speed: f64) -> LoadProfile {
        LoadProfile::Replay(Replay {
            offsets_ns: Trace::new(offsets_ns).expect("sorted"),
            speed,
            requests: None,
        })
    }

    fn measuring(measure_ns: u64) -> Phases {
        Phases {
            warmup_ns: 0,
            measure_ns,
            cooldown_ns: 0,
            drain_ns: None,
        }
    }

    fn even(profile: LoadProfile, phases: &Phases) -> Vec<u64> {
        Schedule::new(&open(Arrivals::Constant, profile), 0, phases).collect()
    }

    #[test]
    fn constant_arrivals_are_exact() {
        assert_eq!(
            even(flat(3.0), &measuring(S)),
            [0, 333_333_333, 666_666_667]
        );

        let hour = Schedule::new(
            &open(Arrivals::Constant, flat(1_000.0)),
            0,
            &measuring(3_600 * S),
        );
        assert_eq!(hour.last(), Some(3_600 * S - MS));

        let day = Schedule::new(
            &open(Arrivals::Constant, flat(10.0 / 3.0)),
            0,
            &measuring(24 * 3_600 * S),
        );
        assert_eq!(day.last(), Some(24 * 3_600 * S - 300 * MS));
    }

    #[test]
    fn constant_arrivals_of_a_ramp_match_the_closed_form() {
        // 2 t² arrivals after t seconds, so the k-th is due at the square root of k/2.
        let expected: Vec<u64> = (0..50)
            .map(|k| (f64::from(k) / 2.0).sqrt())
            .map(|t| (t * 1e9).round() as u64)
            .collect();
        assert_eq!(even(ramp(0.0, 20.0), &measuring(5 * S)), expected);

        let falling = even(ramp(20.0, 0.0), &measuring(5 * S));
        // The mirror image: 20 t − 2 t² arrivals, so the k-th is due at 5 − √((50 − k)/2).
        let mirrored: Vec<u64> = (0..50)
            .map(|k| 5.0 - ((50.0 - f64::from(k)) / 2.0).sqrt())
            .map(|t| (t * 1e9).round() as u64)
            .collect();
        let max_error_ns = falling
            .iter()
            .zip(&mirrored)
            .map(|(one, other)| one.abs_diff(*other))
            .max();

        assert_eq!(
            (falling.len(), max_error_ns.is_some_and(|ns| ns <= 1)),
            (50, true),
            "{falling:?} {mirrored:?}"
        );
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_within_each_step() {
        let phases = Phases {
            warmup_ns: S,
            measure_ns: 3 * S,
            cooldown_ns: S / 2,
            drain_ns: None,
        };
        let offsets = even(steps(&[(2.0, S), (0.0, S), (4.0, S)]), &phases);
        let expected_ms = [
            0, 500, 1_000, 1_500, 3_000, 3_250, 3_500, 3_750, 4_000, 4_250,
        ];

        assert_eq!(
            offsets,
            expected_ms.map(|ms| ms * MS),
            "two a second, then none, then four"
        );
    }

    #[test]
    fn a_trace_is_replayed_to_the_nanosecond() {
        let trace = vec![0, 0, 5, 1_000_001, 2 * S];
        assert_eq!(even(replay(trace.clone(), 1.0), &measuring(3 * S)), trace);
        assert_eq!(
            even(replay(trace.clone(), 1.0), &measuring(2 * S)),
            trace[..4],
            "cut at the end of the load"
        );
        assert_eq!(
            even(replay(trace.clone(), 2.0), &measuring(3 * S)),
            [0, 0, 3, 500_001, S]
        );

        let random = Schedule::new(
            &open(Arrivals::Poisson, replay(trace.clone(), 1.0)),
            9,
            &measuring(3 * S),
        );
        assert_eq!(random.collect::<Vec<_>>(), trace, "nothing is drawn");
    }

    #[test]
    fn the_union_of_the_shares_is_the_schedule() {
        let phases = Phases {
            warmup_ns: S / 10,
            measure_ns: S,
            cooldown_ns: S / 5,
            drain_ns: None,
        };
        let profiles = [
            flat(5_000.0),
            ramp(0.0, 9_000.0),
            ramp(4_000.0, 100.0),
            steps(&[(3_000.0, S / 4), (0.0, S / 4), (7_000.0, S / 2)]),
            replay((0..3_000_u64).map(|k| k * k * 150).collect(), 1.3),
        ];

        for profile in profiles {
            for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
                let open = open(arrivals, profile.clone());
                let whole: Vec<u64> = Schedule::new(&open, 42, &phases).collect();
                assert!(
                    whole.len() > 2_000 && whole.is_sorted(),
                    "{open:?}: {}",
                    whole.len()
                );
                for threads in [1, 2, 3, 7] {
                    let mut union: Vec<u64> = (0..threads)
                        .flat_map(|thread| Share::new(&open, 42, &phases, thread, threads))
                        .collect();
                    union.sort_unstable();
                    assert_eq!(union, whole, "{open:?} over {threads} threads");
                }
            }
        }
    }

    #[test]
    fn threads_take_turns_for_constant_arrivals_and_traces() {
        let phases = measuring(S);
        let trace: Vec<u64> = (0..100).map(|k| k * 10 * MS).collect();

        for open in [
            open(Arrivals::Constant, ramp(50.0, 150.0)),
            open(Arrivals::Poisson, replay(trace, 1.0)),
        ] {
            let whole: Vec<u64> = Schedule::new(&open, 0, &phases).collect();
            for thread in 0..3 {
                let every_third: Vec<u64> = whole.iter().skip(thread).step_by(3).copied().collect();
                assert_eq!(
                    Share::new(&open, 0, &phases, thread, 3).collect::<Vec<_>>(),
                    every_third
                );
            }
        }
    }

    #[test]
    fn arrival_indices_do_not_depend_on_the_number_of_threads() {
        let open = open(Arrivals::Poisson, flat(5_000.0));
        for threads in [1, 3] {
            let mut placed: Vec<(u64, u64)> = Vec::new();
            for thread in 0..threads {
                let mut share = Share::new(&open, 42, &measuring(S), thread, threads);
                while let Some(offset_ns) = share.next() {
                    placed.push((share.place(), offset_ns));
                }
            }
            placed.sort_unstable();
            let whole = Schedule::new(&open, 42, &measuring(S));
            assert_eq!(
                placed,
                (0..).zip(whole).collect::<Vec<_>>(),
                "{threads} threads"
            );
        }
    }

    #[test]
    fn one_seed_reproduces_and_another_differs() {
        for profile in [
            flat(1_000.0),
            ramp(10.0, 2_000.0),
            steps(&[(500.0, S / 2), (1_500.0, S / 2)]),
        ] {
            let open = open(Arrivals::Poisson, profile);
            let of = |seed: u64| Schedule::new(&open, seed, &measuring(S)).collect::<Vec<u64>>();
            assert_eq!(of(7), of(7));
            assert_ne!(of(7), of(8));
        }
    }

    #[test]
    fn a_longer_load_starts_with_the_same_arrivals() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let open = open(arrivals, flat(1_234.5));
            let of = |measure_ns| {
                Share::new(&open, 7, &measuring(measure_ns), 1, 2).collect::<Vec<u64>>()
            };
            let (short, long) = (of(S), of(8 * S));
            assert!(
                short.len() > 500 && long[..short.len()] == short && long[short.len()] >= S,
                "{arrivals:?}"
            );
        }
    }

    #[test]
    fn poisson_counts_and_gaps_have_the_correct_moments() {
        let rate = 1_000.0;
        let offsets: Vec<u64> =
            Schedule::new(&open(Arrivals::Poisson, flat(rate)), 1, &measuring(200 * S)).collect();
        let expected = rate * 200.0;

        assert!(
            (offsets.len() as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{}",
            offsets.len()
        );

        let gaps: Vec<f64> = offsets
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;

        // The coefficient of variation of an exponential is 1; its standard error here is about
        // 0.0022.
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.01,
            "{}",
            variance.sqrt() / mean
        );
    }

    #[test]
    fn a_random_ramp_is_poisson_in_every_slice() {
        // Expected arrivals in each of 100 one-second slices: a linear ramp from 100 to 1,100 per
        // second.
        let open = open(Arrivals::Poisson, ramp(100.0, 1_100.0));
        let mut counts = vec![0.0; 100];
        Schedule::new(&open, 2, &measuring(100 * S))
            .for_each(|offset_ns| counts[(offset_ns / S) as usize] += 1.0);
        let excess = |(slice, count): (usize, &f64)| {
            let mean = 100.0 + 10.0 * (slice as f64 + 0.5);
            (count - mean).powi(2) / mean
        };
        let chi_square: f64 = counts.iter().enumerate().map(excess).sum();

        // Chi-square with 100 degrees of freedom: mean 100, standard deviation 14.1. Counts that
        // are too regular are also wrong.
        assert!((50.0..165.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn each_thread_gets_an_equal_share_of_a_poisson_process() {
        let open = open(Arrivals::Poisson, ramp(5_000.0, 15_000.0));
        for thread in 0..4 {
            let count = Share::new(&open, 3, &measuring(10 * S), thread, 4).count() as f64;
            assert!(
                (count - 25_000.0).abs() < 4.0 * 25_000.0_f64.sqrt(),
                "thread {thread}: {count}"
            );
        }
    }
}
