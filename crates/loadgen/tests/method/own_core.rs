//! A core for the generator alone, another for the server, and what a clock on the generator's core says of the host.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use loadgen::LoadPlan;
use loadgen::clock::monotonic_ns;
use refsrv::Config;
use rustix::process::setpriority_process;
use rustix::thread::sched_setaffinity;

use crate::sleepers::{allowed_cores, only};
use crate::support::{TICKS_PER_SECOND, Timing, Trial, server_with, url_of};

/// The least niceness. As a real-time thread the generator would have to rest.
const MOST_URGENT: i32 = -20;

/// How long the clock is looked at, before a load and after it.
const LOOK: Duration = Duration::from_secs(2);

/// Two readings that are farther apart than this had something between them; the loop itself takes some 50 ns.
const LEAST_PAUSE_NS: u64 = 1_000;

/// Drives a load from one core at a server on another, and notes if the host was late on the generator's core by more than
/// a limit, in more than a share of all instants. `limits` has both.
pub fn trial_on_own_core(
    timing: &mut Timing,
    config: Config,
    plan: impl FnOnce(&str) -> LoadPlan,
    limits: &[(f64, u64)],
) -> Trial {
    let cores = allowed_cores();
    let (client_core, server_core) = (cores[0], cores[cores.len() - 1]);
    // The server's thread stays on the core of the one that starts it, at its priority.
    let server = on_core(server_core, || server_with(config));
    let plan = plan(&url_of(&server));
    let before = urgently_on_core(client_core, ClockLateness::look);
    let stolen = Stolen::from(client_core);
    let trial = timing.observe(|| urgently_on_core(client_core, || Trial::on(&server, &plan)));
    let share = stolen.share();
    let after = urgently_on_core(client_core, ClockLateness::look);
    let least = limits.iter().map(|(share, _)| *share).fold(1.0, f64::min);
    let cause = format!("the hypervisor took the generator's core for {share} of the time");
    timing.disturbed_by((share >= least).then_some(cause));
    timing.disturbed_by(limits.iter().filter_map(|&(share, limit_ns)| {
        let late_ns = before.quantile_ns(1.0 - share).max(after.quantile_ns(1.0 - share));
        let worst =
            format!("on the generator's core, the clock alone was late by {late_ns} ns in {share} of the time");
        (late_ns > limit_ns).then_some(worst)
    }));
    trial
}

/// Threads inherit core and niceness, so what happens in one of its own does not touch the test's.
fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        sched_setaffinity(None, &only(core)).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(pinned).join().unwrap())
}

fn urgently_on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    on_core(core, || {
        // Who may not is at the mercy of others, which the checks of the load will tell.
        let _ = setpriority_process(None, MOST_URGENT);
        work()
    })
}

/// Time that a hypervisor takes from a core.
#[derive(Debug)]
struct Stolen {
    core: usize,
    ticks: u64,
    since: Instant,
}

impl Stolen {
    fn from(core: usize) -> Self {
        Self { core, ticks: Self::ticks(core), since: Instant::now() }
    }

    /// Of the time since then.
    fn share(&self) -> f64 {
        let ticks = Self::ticks(self.core) - self.ticks;
        ticks as f64 / TICKS_PER_SECOND / self.since.elapsed().as_secs_f64()
    }

    fn ticks(core: usize) -> u64 {
        let host = fs::read_to_string("/proc/stat").unwrap();
        let line = host.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} "))).unwrap();
        // user nice system idle iowait irq softirq steal
        line.split_ascii_whitespace().nth(7).unwrap().parse().unwrap()
    }
}

/// How late a loop that only reads the clock was: no generator on that core can be less late.
#[derive(Debug)]
struct ClockLateness {
    /// The stretches in which it did not get to read the clock, the longest first.
    pauses_ns: Vec<u64>,
    elapsed_ns: u64,
}

impl ClockLateness {
    fn look() -> Self {
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns + LOOK.as_nanos() as u64;
        let (mut last_ns, mut pauses_ns) = (begin_ns, Vec::new());
        while last_ns < end_ns {
            let now_ns = monotonic_ns();
            if now_ns - last_ns > LEAST_PAUSE_NS {
                pauses_ns.push(now_ns - last_ns);
            }
            last_ns = now_ns;
        }
        pauses_ns.sort_unstable_by_key(|&pause_ns| std::cmp::Reverse(pause_ns));
        Self { pauses_ns, elapsed_ns: last_ns - begin_ns }
    }

    /// The lateness that this share of all instants does not exceed. An instant at random is later than `x` if it lies in a
    /// pause and more than `x` before its end: of all time the share `sum(max(0, pause - x)) / elapsed`, which falls with
    /// `x`, linearly between the lengths of two pauses.
    fn quantile_ns(&self, share: f64) -> u64 {
        let allowed_ns = (1.0 - share) * self.elapsed_ns as f64;
        let mut total_ns = 0.0;
        for (index, &pause_ns) in self.pauses_ns.iter().enumerate() {
            total_ns += pause_ns as f64;
            let late_ns = (total_ns - allowed_ns) / (index + 1) as f64;
            let next_ns = self.pauses_ns.get(index + 1).copied().unwrap_or(0);
            if late_ns >= next_ns as f64 {
                return late_ns.round() as u64;
            }
        }
        0
    }
}

#[test]
fn lateness_of_a_clock_is_the_rest_of_the_pause_that_an_instant_lies_in() {
    let even = ClockLateness { pauses_ns: vec![100, 100], elapsed_ns: 1_000 };
    // A fifth of all instants lies in a pause; half of those have more than half of it before them.
    assert_eq!([0.8, 0.9, 0.95, 1.0].map(|share| even.quantile_ns(share)), [0, 50, 75, 100]);
    let uneven = ClockLateness { pauses_ns: vec![600, 100], elapsed_ns: 10_000 };
    assert_eq!([0.93, 0.94, 0.95, 0.97].map(|share| uneven.quantile_ns(share)), [0, 50, 100, 300]);
    assert_eq!(ClockLateness { pauses_ns: Vec::new(), elapsed_ns: 1_000 }.quantile_ns(0.999), 0);
}
