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
const MIN_IDLE_CORES: f64 = 0.1;

/// The observed idle time, for the threads that spin.
#[derive(Debug)]
pub(crate) struct IdleTime {
    /// Idle cores required to resume the spin, which itself uses some of them.
    required_when_off: f64,
    is_scarce: AtomicBool,
    has_sample: AtomicBool,
}

impl IdleTime {
    /// No sample yet; a thread spins for `spin_share` of a core at most.
    pub fn new(spin_share: f64) -> Self {
        let required_when_off = MIN_IDLE_CORES + spin_share;
        Self {
            required_when_off,
            is_scarce: AtomicBool::new(false),
            has_sample: AtomicBool::new(false),
        }
    }

    /// Whether the latest sample had too little idle time.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce.load(Ordering::Relaxed)
    }

    /// Whether there is a sample.
    pub fn has_sample(&self) -> bool {
        self.has_sample.load(Ordering::Relaxed)
    }

    /// Records a sample: the number of idle cores per spinning thread.
    pub fn note(&self, idle_cores: f64) {
        let required = if self.is_scarce() {
            self.required_when_off
        } else {
            MIN_IDLE_CORES
        };
        self.is_scarce
            .store(idle_cores < required, Ordering::Relaxed);
        self.has_sample.store(true, Ordering::Relaxed);
    }
}

/// A thread that samples the idle time of the process's cores until this is dropped.
pub(crate) struct IdleWatch {
    idle_time: Arc<IdleTime>,
    running: Option<(Sender<()>, JoinHandle<u64>)>,
}

impl IdleWatch {
    /// Starts sampling for this many spinning threads, each spinning for `spin_share` of a core at
    /// most. If the kernel reports no idle time, or no thread can be started, there are no samples.
    pub fn start(spinning: usize, spin_share: f64) -> Self {
        let idle_time = Arc::new(IdleTime::new(spin_share));
        let (end, ended) = mpsc::channel();
        let sampled = Arc::clone(&idle_time);
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
                    sampled.note(idle / spinning as f64);
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
            idle_time,
            running: thread.map(|thread| (end, thread)),
        }
    }

    /// The observed idle time.
    pub fn idle_time(&self) -> Arc<IdleTime> {
        Arc::clone(&self.idle_time)
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
        // A panic has already been reported on standard error.
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
    fn parse(stat: &str, is_included: impl Fn(usize) -> bool) -> Option<Self> {
        let of_core = |line: &str| {
            let (core, times) = line.strip_prefix("cpu")?.split_once(' ')?;
            let core: usize = core.parse().ok()?;
            let times: Vec<u64> = times
                .split_ascii_whitespace()
                .map_while(|field| field.parse().ok())
                .collect();
            // Guest times are part of user and nice.
            let all = times.get(..8)?.iter().sum();
            is_included(core).then(|| Self {
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
    fn only_usable_cores_count() {
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
            "a kernel that reports fewer fields"
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
    fn a_spin_is_resumed_only_if_there_is_enough_idle_time_for_it() {
        let idle_time = IdleTime::new(0.2);
        assert!(!idle_time.is_scarce() && !idle_time.has_sample());

        let is_scarce = [0.5, 0.11, 0.09, 0.29, 0.31].map(|cores| {
            idle_time.note(cores);
            idle_time.is_scarce()
        });
        assert_eq!(is_scarce, [false, false, true, true, false]);
        assert!(idle_time.has_sample());
    }

    #[test]
    fn a_watch_samples_until_it_ends() {
        let watch = IdleWatch::start(1, 0.2);
        let idle_time = watch.idle_time();
        let begin = Instant::now();

        while !idle_time.has_sample() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "it never sampled"
            );
            thread::sleep(Duration::from_millis(10));
        }

        assert!(watch.end() > 0, "it costs something");
        assert_eq!(Arc::strong_count(&idle_time), 1, "its thread has ended");
    }
}
