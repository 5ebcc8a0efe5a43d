//! F14: blame. Four ways to distort a load; the verdict must name the right one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refsrv::{Config, ReferenceServer, Service};
use rustix::process::Signal;
use rustix::thread::sched_setaffinity;
use serde_json::Value;

use crate::child::{Generator, ORDINARY};
use crate::sleepers::{NAP, Sleepers, allowed_cores, only};
use crate::support::{MS, Others, SECOND, holding, judge, server_with, url_of};

/// How often each kind of trouble must be blamed correctly, and the maximum number of attempts.
const RUNS: usize = 20;
const MOST_RUNS: usize = 30;

/// How long the client or the server stalls.
const PAUSE: Duration = Duration::from_millis(200);
/// Minimum delay, by a pause, of a request that arrives at its start.
const SEEN_NS: u64 = 150 * MS;

/// Much longer than a load.
const LONGEST_HOG: Duration = Duration::from_secs(15);

/// Half the requests of a load.
const HALF_A_LOAD: u64 = 375;

const LOAD: [&str; 6] = [
    "--rate",
    "500",
    "--arrivals",
    "constant",
    "--duration",
    "1500ms",
];

/// The trouble that was made, or that the report blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    ClientStopped,
    ServerStalled,
    CoreShared,
    ClientThrottled,
    None,
}

impl Trouble {
    /// The trouble that a report indicates. A throttled thread also waits for its core, and a
    /// waiting thread is also late, so the most specific check decides.
    fn blamed_by(report: &Value) -> Self {
        let longest_ns = report["response_time_ns"]["max"].as_u64().unwrap_or(0);
        if has_check(report, "client-throttling", "invalid") {
            Self::ClientThrottled
        } else if ["send-lag", "client-stalls"]
            .iter()
            .any(|check| has_check(report, check, "invalid"))
        {
            if report["verdict"]["blame"] == "client" {
                Self::ClientStopped
            } else {
                Self::CoreShared
            }
        } else if longest_ns >= SEEN_NS && report["verdict"]["status"] != "invalid" {
            Self::ServerStalled
        } else {
            Self::None
        }
    }
}

fn has_check(report: &Value, check: &str, level: &str) -> bool {
    let reasons = report["verdict"]["reasons"].as_array().expect("reasons");
    reasons
        .iter()
        .any(|reason| reason["check"] == check && reason["level"] == level)
}

/// Makes one kind of trouble until [`RUNS`] loads on an undisturbed host blamed it. A wrong blame
/// fails at once; a disturbed load proves nothing. `expect` must hold for every load, disturbed or
/// not.
fn assert_blamed(made: Trouble, mut make: impl FnMut() -> Value, expect: impl Fn(&Value)) {
    judge(1, |timing| {
        let (mut conclusive, mut disturbance, mut row) = (0, None, String::new());
        for _ in 0..MOST_RUNS {
            let others = Others::now();
            // On a core that is kept busy, a sleeping thread may wake up late.
            let is_idle = matches!(made, Trouble::ClientStopped | Trouble::ServerStalled);
            let sleepers = is_idle.then(Sleepers::start);
            let report = make();
            let pause = sleepers.and_then(Sleepers::disturbance);
            let blamed = Trouble::blamed_by(&report);
            write!(row, " {blamed:?}").unwrap();
            let outcomes = &report["outcomes"];
            assert_eq!(outcomes["ok"], outcomes["scheduled"], "{outcomes}");
            expect(&report);
            // A correct blame counts in spite of a pause; a client that the host stopped did stall.
            if let Some(detected) = others.disturbance().or(pause.filter(|_| blamed != made)) {
                disturbance = Some(detected);
                continue;
            }
            assert_eq!(blamed, made, "{}", report["verdict"]);
            conclusive += 1;
            if conclusive == RUNS {
                break;
            }
        }
        tell(&format!(
            "{made:?}, {conclusive} times undisturbed, was blamed as{row}"
        ));
        timing.expect(
            conclusive == RUNS,
            &format!("only {conclusive} of {RUNS} loads were undisturbed"),
        );
        timing.disturbed_by(disturbance);
    });
}

#[expect(
    clippy::print_stdout,
    reason = "the row of the matrix, shown by --nocapture"
)]
fn tell(row: &str) {
    println!("{row}");
}

fn arguments(url: &str) -> Vec<&str> {
    [url].into_iter().chain(LOAD).collect()
}

/// Waits for the condition, at most as long as a load may take to start.
fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "no load has begun"
        );
        thread::sleep(NAP);
    }
}

/// The generator's maximum use of a core.
fn spinning(url: &str) -> Vec<&str> {
    arguments(url)
        .into_iter()
        .chain(["--spin", "10ms"])
        .collect()
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s: make test-long"]
fn f14_a_client_that_was_stopped_blames_itself() {
    let server = server_with(holding(MS));
    let make = || {
        let before = server.stats().arrivals;
        let generator = Generator::start(&arguments(&url_of(&server)));
        // In the middle of the load, however long it took to start.
        until(|| server.stats().arrivals >= before + HALF_A_LOAD);
        generator.signal(Signal::STOP);
        thread::sleep(PAUSE);
        generator.signal(Signal::CONT);
        generator.report()
    };
    assert_blamed(Trouble::ClientStopped, make, |report| {
        // The pause is part of the response times, whoever is to blame: they start at the scheduled
        // send.
        assert!(
            report["response_time_ns"]["max"].as_u64() >= Some(SEEN_NS),
            "{}",
            report["response_time_ns"]
        );
        assert!(
            report["client"]["max_send_lag_ns"].as_u64() >= Some(SEEN_NS),
            "{}",
            report["client"]
        );
        assert_eq!(report["verdict"]["status"], "invalid");
    });
}

/// A server that stalls once, 700 ms after it has started.
fn stalling_once() -> ReferenceServer {
    let service = Service::PeriodicStall {
        base_ns: MS,
        period_ns: 3_600 * SECOND,
        stall_ns: PAUSE.as_nanos() as u64,
        offset_ns: 700 * MS,
    };
    server_with(Config {
        service,
        ..Config::default()
    })
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s: make test-long"]
fn f14_a_server_that_stalled_is_not_the_clients_fault() {
    let make = || {
        let server = stalling_once();
        Generator::start(&arguments(&url_of(&server))).report()
    };
    assert_blamed(Trouble::ServerStalled, make, |report| {
        assert!(
            report["response_time_ns"]["max"].as_u64() >= Some(SEEN_NS),
            "{}",
            report["response_time_ns"]
        );
        // The same tail as with a stalled client, but not caused by send lag.
        assert!(
            report["client"]["max_send_lag_ns"].as_u64() < Some(SEEN_NS),
            "{}",
            report["client"]
        );
    });
}

/// Runs the generator on one core together with a thread that never sleeps.
fn with_a_hog(arguments: &[&str]) -> Value {
    let core = only(allowed_cores()[0]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let hog = scope.spawn(|| {
            sched_setaffinity(None, &core).unwrap();
            // A child may run on its parent thread's cores. The hog could not disturb a real-time
            // thread.
            let generator = Generator::start_by(&ORDINARY, arguments);
            scope.spawn(|| {
                let begin = Instant::now();
                // Without this limit, an unreadable report would make the test run forever.
                while !is_over.load(Ordering::Relaxed) && begin.elapsed() < LONGEST_HOG {
                    std::hint::spin_loop();
                }
            });
            let report = generator.report();
            is_over.store(true, Ordering::Relaxed);
            report
        });
        hog.join().unwrap()
    })
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s: make test-long"]
fn f14_a_core_that_others_use_is_the_hosts_fault() {
    let server = server_with(holding(MS));
    assert_blamed(
        Trouble::CoreShared,
        // A thread that rarely needs the core may get it whenever it does; a thread that never
        // stops busy-waiting must share it.
        || with_a_hog(&spinning(&url_of(&server))),
        |report| {
            assert_eq!(report["verdict"]["blame"], "host");
        },
    );
}

#[test]
fn on_a_shared_core_nothing_busy_waits_unless_requested() {
    if allowed_cores().len() == 1 {
        return; // Whether it would spin there otherwise is for cores to say that are not ours.
    }
    let server = server_with(holding(MS));
    let url = url_of(&server);
    judge(3, |timing| {
        let others = Others::now();
        let by_itself = with_a_hog(&arguments(&url))["client"].take();
        let with_requested_spin: Vec<&str> = arguments(&url)
            .into_iter()
            .chain(["--spin", "60us"])
            .collect();
        let requested = with_a_hog(&with_requested_spin)["client"].take();
        timing.disturbed_by(others.disturbance());
        let was_throttled = [&by_itself, &requested]
            .iter()
            .any(|client| client["throttled_periods"].as_u64() > Some(0));
        timing.disturbed_by(
            was_throttled.then(|| "the generator's control group was throttled".to_owned()),
        );
        assert_eq!(
            (
                &by_itself["spin"]["reason"],
                &by_itself["spin"]["window_ns"]
            ),
            (&"automatic".into(), &60_000.into())
        );
        assert!(requested["spin_off_share"].is_null(), "{requested}");
        // It detects this after the first half second of one and a half.
        let off_share = by_itself["spin_off_share"].as_f64().unwrap();
        timing.expect(
            (0.4..=0.8).contains(&off_share),
            &format!("it was off for {off_share} of the load"),
        );
        let spun = |client: &Value| client["spin_cpu_seconds"].as_f64().unwrap();
        let what = format!(
            "it spun for {} s, and {} s when requested",
            spun(&by_itself),
            spun(&requested)
        );
        timing.expect(spun(&by_itself) < 0.6 * spun(&requested), &what);
    });
}

/// A cgroup limited to a fifth of a core.
struct Quota {
    directory: PathBuf,
}

impl Quota {
    /// `None` if cgroups cannot be created.
    fn open() -> Option<Self> {
        let name = format!("loadgen-test-{}", std::process::id());
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let is_v2 = v2.join("cgroup.controllers").exists();
        let quota = Self {
            directory: if is_v2 { v2 } else { v1 }.join(name),
        };
        std::fs::create_dir(&quota.directory).ok()?;
        let limits: &[(&str, &str)] = if is_v2 {
            &[("cpu.max", "20000 100000")]
        } else {
            &[
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "20000"),
            ]
        };
        let is_limited = limits
            .iter()
            .all(|(file, text)| std::fs::write(quota.directory.join(file), text).is_ok());
        is_limited.then_some(quota)
    }

    fn procs_file(&self) -> String {
        self.directory.join("cgroup.procs").display().to_string()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The kernel may take a moment to release the last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s in a control group: make test-long"]
fn f14_a_client_under_a_quota_says_that_it_was_throttled() {
    let server = server_with(holding(MS));
    let Some(quota) = Quota::open() else {
        return judge(1, |timing| {
            timing.expect(false, "no control group could be made");
            timing.disturbed_by(["this user may not make control groups".to_owned()]);
        });
    };
    let url = url_of(&server);
    // Permanent busy-waiting needs more than a fifth of a core.
    let make = || Generator::start_in(&quota.procs_file(), &spinning(&url)).report();
    assert_blamed(Trouble::ClientThrottled, make, |report| {
        assert_eq!(report["verdict"]["status"], "invalid");
    });
}
