//! Runs the generator and the server on separate cores, and measures the lateness of a clock on the
//! generator's core.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::LoadPlan;
use loadgen::clock::monotonic_ns;
use refsrv::Config;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::sched_setaffinity;

use crate::sleepers::{allowed_cores, only};
use crate::statistics::quantile;
use crate::support::{TICKS_PER_SECOND, Timing, Trial, server_with, url_of};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// The generator keeps this niceness. RT throttling would stop a real-time thread.
const MIN_NICENESS: i32 = -20;

/// How long the clock is read before and after a load.
const CLOCK_READING_TIME: Duration = Duration::from_secs(2);

/// A longer gap between two readings is a pause; the loop itself takes about 50 ns.
const MIN_PAUSE_NS: u64 = 1_000;

/// Number of timed sends, number of connections, and the sleep before each send, which lets the
/// caches get cold as at a usual rate.
const SENDS: usize = 500;
const CONNECTIONS: usize = 64;
const SLEEP_BEFORE_SEND: Duration = Duration::from_micros(300);

/// Runs a load from one core against a server on another. For each `(share, limit_ns)` in `limits`,
/// notes a disturbance if the generator's core was late by more than `limit_ns` in more than this
/// share of the time.
pub fn run_trial_on_own_core(
    timing: &mut Timing,
    config: Config,
    plan: impl FnOnce(&str) -> LoadPlan,
    limits: &[(f64, u64)],
) -> Trial {
    let cores = allowed_cores();
    let (client_core, server_core) = (cores[0], cores[cores.len() - 1]);
    // The server's thread inherits the core and the priority of the thread that starts it.
    let server = on_core(server_core, || server_with(config));
    let plan = plan(&url_of(&server));
    let before = at_min_niceness_on_core(client_core, ClockLateness::measure);
    let steal_time = StealTime::from(client_core);
    let trial =
        timing.observe_trial(|| at_min_niceness_on_core(client_core, || Trial::on(&server, &plan)));
    timing.note_disturbances(steal_time.disturbance(limits));
    let after = at_min_niceness_on_core(client_core, ClockLateness::measure);
    timing.note_disturbances(limits.iter().filter_map(|&(share, limit_ns)| {
        let late_ns = before
            .quantile_ns(1.0 - share)
            .max(after.quantile_ns(1.0 - share));
        let cause = format!(
            "a loop that only reads the clock was late by {late_ns} ns in {share:.4} of the time"
        );
        (late_ns > limit_ns).then_some(cause)
    }));
    let niceness = at_min_niceness_on_core(client_core, || getpriority_process(None));
    let has_niceness = niceness.is_ok_and(|niceness| niceness == MIN_NICENESS);
    timing.note_disturbances(
        (!has_niceness).then(|| format!("a niceness of {MIN_NICENESS} is not permitted")),
    );

    trial
}

/// Median duration of the second of two consecutive sends on the generator's core. No receiver has
/// to be woken up.
pub fn send_duration_ns() -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            (
                TcpStream::connect(address).unwrap(),
                listener.accept().unwrap(),
            )
        })
        .collect();
    let second_of_two_ns = |pair: &[(TcpStream, _)]| {
        thread::sleep(SLEEP_BEFORE_SEND);
        (&pair[0].0).write_all(REQUEST).unwrap();
        let begin_ns = monotonic_ns();
        (&pair[1].0).write_all(REQUEST).unwrap();
        monotonic_ns() - begin_ns
    };
    let measure_all = || {
        connections
            .chunks_exact(2)
            .cycle()
            .take(SENDS)
            .map(second_of_two_ns)
            .collect()
    };
    let mut times_ns: Vec<u64> = at_min_niceness_on_core(allowed_cores()[0], measure_all);
    times_ns.sort_unstable();

    quantile(&times_ns, 0.5)
}

/// Runs `work` in a separate thread, so that the core and niceness of the test's thread stay
/// unchanged.
fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        sched_setaffinity(None, &only(core)).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(pinned).join().unwrap())
}

fn at_min_niceness_on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    on_core(core, || {
        // A failure is noted after the load: other processes can then disturb the load.
        let _ = setpriority_process(None, MIN_NICENESS);
        work()
    })
}

/// Steal time of a core.
#[derive(Debug)]
struct StealTime {
    core: usize,
    ticks: u64,
    since: Instant,
}

impl StealTime {
    fn from(core: usize) -> Self {
        Self {
            core,
            ticks: Self::ticks(core),
            since: Instant::now(),
        }
    }

    /// Description of the steal time, if it exceeded the smallest share of the elapsed time. Steal
    /// time below one tick may be missing.
    fn disturbance(&self, limits: &[(f64, u64)]) -> Option<String> {
        let ticks = Self::ticks(self.core).saturating_sub(self.ticks);
        let share = (ticks + 1) as f64 / TICKS_PER_SECOND / self.since.elapsed().as_secs_f64();
        let min_share = limits.iter().map(|(share, _)| *share).fold(1.0, f64::min);
        let cause =
            format!("the hypervisor took the generator's core for up to {share:.4} of the time");
        (ticks > 0 && share > min_share).then_some(cause)
    }

    fn ticks(core: usize) -> u64 {
        let host = fs::read_to_string("/proc/stat").unwrap();
        let line = host
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cpu{core} ")))
            .unwrap();
        // user nice system idle iowait irq softirq steal
        line.split_ascii_whitespace()
            .nth(7)
            .unwrap()
            .parse()
            .unwrap()
    }
}

/// Lateness of a loop that only reads the clock, a lower bound for a generator on the same core.
#[derive(Debug)]
struct ClockLateness {
    /// Pauses between two readings of the clock, longest first.
    pauses_ns: Vec<u64>,
    elapsed_ns: u64,
}

impl ClockLateness {
    fn measure() -> Self {
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns + CLOCK_READING_TIME.as_nanos() as u64;
        let (mut last_ns, mut pauses_ns) = (begin_ns, Vec::new());

        while last_ns < end_ns {
            let now_ns = monotonic_ns();
            if now_ns - last_ns > MIN_PAUSE_NS {
                pauses_ns.push(now_ns - last_ns);
            }
            last_ns = now_ns;
        }

        pauses_ns.sort_unstable_by_key(|&pause_ns| std::cmp::Reverse(pause_ns));
        Self {
            pauses_ns,
            elapsed_ns: last_ns - begin_ns,
        }
    }

    /// The lateness that is not exceeded in this share of the time. A random point in time is late
    /// by more than `x` if it is in a pause and more than `x` before the end of the pause. This
    /// applies to the share `sum(max(0, pause - x)) / elapsed` of the time, which decreases
    /// linearly in `x` between the lengths of two pauses.
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
fn clock_lateness_is_the_remainder_of_a_pause() {
    let even = ClockLateness {
        pauses_ns: vec![100, 100],
        elapsed_ns: 1_000,
    };
    // Pauses take 20 % of the time; in half of it, more than half of the pause remains.
    assert_eq!(
        [0.8, 0.9, 0.95, 1.0].map(|share| even.quantile_ns(share)),
        [0, 50, 75, 100]
    );

    let uneven = ClockLateness {
        pauses_ns: vec![600, 100],
        elapsed_ns: 10_000,
    };
    assert_eq!(
        [0.93, 0.94, 0.95, 0.97].map(|share| uneven.quantile_ns(share)),
        [0, 50, 100, 300]
    );
    assert_eq!(
        ClockLateness {
            pauses_ns: Vec::new(),
            elapsed_ns: 1_000
        }
        .quantile_ns(0.999),
        0
    );
}
