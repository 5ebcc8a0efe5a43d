//! Detects stalls of the host during a load: threads that only sleep wake up late, as the generator
//! does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Sleep time of the threads, and how late they may wake up on an undisturbed host. This is less
/// than the gap between two arrivals, to detect every pause of the host that a check can detect.
pub const SLEEP: Duration = Duration::from_millis(1);
const MAX_OVERSLEEP: Duration = Duration::from_micros(1_500);

/// One thread per core that only sleeps.
pub struct Sleepers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Sleepers {
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = allowed_cores()
            .into_iter()
            .map(|core| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || {
                    sched_setaffinity(None, &only(core)).unwrap();
                    longest_oversleep(&stop)
                })
            })
            .collect();

        Self { stop, threads }
    }

    /// Description of the host's longest stall, if it was long enough to disturb a load.
    pub fn disturbance(self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        let longest = self
            .threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .max()?;
        (longest > MAX_OVERSLEEP).then(|| format!("a core of the host stalled for {longest:?}"))
    }
}

fn longest_oversleep(stop: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        thread::sleep(SLEEP);
        longest = longest.max(begin.elapsed().saturating_sub(SLEEP));
    }
    longest
}

pub fn allowed_cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect()
}

pub fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}
