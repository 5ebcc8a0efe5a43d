//! Whether the host stalled during a load: like the generator, threads that only sleep then wake up
//! late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Sleep time of these threads, and by how much they may oversleep on an undisturbed host: less
/// than the gap between two arrivals, so that every pause of the host that a check can detect is
/// noticed.
pub const NAP: Duration = Duration::from_millis(1);
const MAX_OVERSLEEP: Duration = Duration::from_micros(1_500);

/// A thread on each core that only sleeps: a pause of the host delays it like the generator.
pub struct Sleepers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Sleepers {
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = allowed_cores()
            .into_iter()
            .map(|core| {
                let is_over = Arc::clone(&is_over);
                thread::spawn(move || {
                    sched_setaffinity(None, &only(core)).unwrap();
                    longest_oversleep(&is_over)
                })
            })
            .collect();
        Self { is_over, threads }
    }

    /// Description of the host's stall, if it was long enough to disturb.
    pub fn disturbance(self) -> Option<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let longest = self
            .threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .max()?;
        (longest > MAX_OVERSLEEP).then(|| format!("a core of the host stalled for {longest:?}"))
    }
}

fn longest_oversleep(is_over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        thread::sleep(NAP);
        longest = longest.max(begin.elapsed().saturating_sub(NAP));
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
