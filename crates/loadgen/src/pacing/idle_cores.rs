//! Whether the generator's cores have idle time left: a spin may use only idle time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::base::clock::thread_cpu_ns;

/// How often idle time is sampled. The kernel counts in hundredths of a second, so each sample has
/// a resolution of 2 %.
const PERIOD: Duration = Duration::from_millis(500);

/// Idle cores per spinning thread: with less idle time, the spin takes CPU time from others.
const LEAST_IDLE_CORES: f64 = 0.1;

/// The observed idle time, for the threads that spin.
#[derive(Debug)]
pub(crate) struct IdleTime {
    /// Idle time that would be needed without the spin to leave enough with it.
    enough_idle_cores: f64,
    is_gone: AtomicBool,
    is_known: AtomicBool,
}

impl IdleTime {
    /// No sample yet; a thread spins for `spin_share` of a core at most.
    pub fn new(spin_share: f64) -> Self {
        let enough_idle_cores = LEAST_IDLE_CORES + spin_share;
        Self {
            enough_idle_cores,
            is_gone: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
        }
    }

    /// Whether the latest sample had too little idle time.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Whether there is a sample.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Records how many cores per spinning thread were idle lately.
    pub fn note(&self, idle_cores: f64) {
        let least = if self.is_gone() {
            self.enough_idle_cores
        } else {
            LEAST_IDLE_CORES
        };
        self.is_gone.store(idle_cores < least, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// A thread that samples the idle time of the process's cores until this is dropped.
pub(crate) struct IdleWatch {
    seen: Arc<IdleTime>,
    running: Option<(Sender<()>, JoinHandle<u64>)>,
}

impl IdleWatch {
    /// Starts sampling for this many spinning threads, each spinning for `spin_share` of a core at
    /// most. If the kernel reports no idle time, or no thread can be started, there are no samples.
    pub fn start(spinning: usize, spin_share: f64) -> Self {
        let seen = Arc::new(IdleTime::new(spin_share));
        let (end, ended) = mpsc::channel();
        let idle_time = Arc::clone(&seen);
        let watch = move || {
            let Ok(cores) = sched_getaffinity(None) else {
                return 0;
            };
            let mut before = CoreTicks::read(&cores);
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = CoreTicks::read(&cores);
                if let Some(idle) = before
                    .zip(now)
                    .and_then(|(before, now)| now.idle_cores_since(&before))
                {
                    idle_time.note(idle / spinning as f64);
                }
                before = now;
            }
            thread_cpu_ns()
        };
        let thread = thread::Builder::new()
            .name("loadgen-idle".to_owned())
            .spawn(watch)
            .ok();

        Self {
            seen,
            running: thread.map(|thread| (end, thread)),
        }
    }

    /// The observed idle time.
    pub fn seen(&self) -> Arc<IdleTime> {
        Arc::clone(&self.seen)
    }

    /// Stops sampling; returns its CPU time in nanoseconds.
    pub fn end(mut self) -> u64 {
        self.join()
    }

    fn join(&mut self) -> u64 {
        let Some((end, thread)) = self.running.take() else {
            return 0;
        };
        drop(end);
        // A panic in it has already been reported.
        thread.join().unwrap_or(0)
    }
}

impl Drop for IdleWatch {
    fn drop(&mut self) {
        self.join();
    }
}

/// Time of some cores in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoreTicks {
    cores: u64,
    idle: u64,
    all: u64,
}

impl CoreTicks {
    fn read(cores: &CpuSet) -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, |core| {
            cores.is_set(core)
        })
    }

    /// Sums the lines `cpuN user nice system idle iowait irq softirq steal …` of these cores.
    fn parse(stat: &str, is_ours: impl Fn(usize) -> bool) -> Option<Self> {
        let of_core = |line: &str| {
            let (core, times) = line.strip_prefix("cpu")?.split_once(' ')?;
            let core: usize = core.parse().ok()?;
            let times: Vec<u64> = times
                .split_ascii_whitespace()
                .map_while(|field| field.parse().ok())
                .collect();
            // Guest times are part of user and nice.
            let all = times.get(..8)?.iter().sum();
            is_ours(core).then(|| Self {
                cores: 1,
                idle: times[3] + times[4],
                all,
            })
        };
        let sum = |a: Self, b: Self| Self {
            cores: a.cores + b.cores,
            idle: a.idle + b.idle,
            all: a.all + b.all,
        };
        stat.lines().filter_map(of_core).reduce(sum)
    }

    /// The mean number of idle cores; `None` if no tick has passed.
    fn idle_cores_since(&self, before: &Self) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle) as f64;
        (all > 0).then(|| self.cores as f64 * idle / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const STAT: &str = "\
cpu  300 0 30 900 15 0 0 3 0 0\n\
cpu0 100 0 10 400 5 0 0 1 0 0\n\
cpu1 50 0 10 200 5 0 0 1 0 0\n\
cpu12 150 0 10 300 5 0 0 1 0 0\n\
intr 5 0 0\n";

    #[test]
    fn only_the_cores_that_may_be_used_count() {
        let of = |cores: &[usize]| CoreTicks::parse(STAT, |core| cores.contains(&core));
        assert_eq!(
            of(&[0]),
            Some(CoreTicks {
                cores: 1,
                idle: 405,
                all: 516
            })
        );
        assert_eq!(
            of(&[1, 12]),
            Some(CoreTicks {
                cores: 2,
                idle: 510,
                all: 732
            })
        );
        assert_eq!(of(&[7]), None);
        assert_eq!(
            CoreTicks::parse("cpu0 1 2 3\n", |_| true),
            None,
            "a kernel that says less"
        );
    }

    #[test]
    fn idle_cores_are_averaged_over_the_time_between_readings() {
        let before = CoreTicks {
            cores: 4,
            idle: 400,
            all: 1_000,
        };
        let now = CoreTicks {
            cores: 4,
            idle: 425,
            all: 1_100,
        };

        assert_eq!(now.idle_cores_since(&before), Some(1.0));
        assert_eq!(now.idle_cores_since(&now), None);
    }

    #[test]
    fn a_spin_that_was_given_up_is_taken_up_again_only_where_there_is_room_for_it() {
        let seen = IdleTime::new(0.2);
        assert!(!seen.is_gone() && !seen.is_known());

        let is_gone = [0.5, 0.11, 0.09, 0.29, 0.31].map(|cores| {
            seen.note(cores);
            seen.is_gone()
        });
        assert_eq!(is_gone, [false, false, true, true, false]);
        assert!(seen.is_known());
    }

    #[test]
    fn a_watch_looks_until_it_is_dropped() {
        let watch = IdleWatch::start(1, 0.2);
        let seen = watch.seen();
        let begin = Instant::now();

        while !seen.is_known() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "it never sampled"
            );
            thread::sleep(Duration::from_millis(10));
        }

        assert!(watch.end() > 0, "it costs something");
        assert_eq!(Arc::strong_count(&seen), 1, "its thread has ended");
    }
}
