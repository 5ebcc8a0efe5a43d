//! F14: blame. A load is distorted by one of four causes, and the verdict must name that cause.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refsrv::{Config, ReferenceServer, Service};
use rustix::process::Signal;
use rustix::thread::sched_setaffinity;
use serde_json::Value;

use crate::child::{AS_SCHED_OTHER, Generator};
use crate::sleepers::{SLEEP, Sleepers, allowed_cores, only};
use crate::support::{MS, OtherProcesses, SECOND, constant_hold, judge, server_with, url_of};

/// Number of undisturbed loads per cause, and the maximum number of attempts.
const RUNS: usize = 20;
const MAX_RUNS: usize = 30;

/// How long the client or the server stalls.
const PAUSE: Duration = Duration::from_millis(200);
/// Minimum delay of a request that is due at the start of a pause.
const MIN_DELAY_NS: u64 = 150 * MS;

/// Much longer than a load, so that the hog stops even if the test fails.
const MAX_HOG_TIME: Duration = Duration::from_secs(15);

/// Half the requests of a load.
const HALF_LOAD_REQUESTS: u64 = 375;

const LOAD: [&str; 6] = [
    "--rate",
    "500",
    "--arrivals",
    "constant",
    "--duration",
    "1500ms",
];

/// The actual cause, or the cause that a report blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    ClientStopped,
    ServerStalled,
    CoreShared,
    ClientThrottled,
    None,
}

impl Cause {
    /// The cause that a report blames. A throttled thread also waits for its core, and a waiting
    /// thread also sends late, so the most specific check decides.
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
        } else if longest_ns >= MIN_DELAY_NS && report["verdict"]["status"] != "invalid" {
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

/// Runs loads distorted by one cause until the verdicts of [`RUNS`] undisturbed loads blamed it.
/// Fails at the first incorrect blame; disturbed loads do not count. `assert_report` must hold for
/// every load, disturbed or not.
fn assert_blamed(
    cause: Cause,
    mut run_load: impl FnMut() -> Value,
    assert_report: impl Fn(&Value),
) {
    judge(1, |timing| {
        let (mut conclusive, mut disturbance, mut causes) = (0, None, String::new());
        for _ in 0..MAX_RUNS {
            let others = OtherProcesses::now();
            // A thread that sleeps on a busy core may wake up late.
            let is_idle = matches!(cause, Cause::ClientStopped | Cause::ServerStalled);
            let sleepers = is_idle.then(Sleepers::start);
            let report = run_load();
            let pause = sleepers.and_then(Sleepers::disturbance);
            let blamed = Cause::blamed_by(&report);
            write!(causes, " {blamed:?}").unwrap();

            let outcomes = &report["outcomes"];
            assert_eq!(outcomes["ok"], outcomes["scheduled"], "{outcomes}");
            assert_report(&report);

            // A correct blame counts despite a pause: a client that the host stopped did stall.
            if let Some(detected) = others.disturbance().or(pause.filter(|_| blamed != cause)) {
                disturbance = Some(detected);
                continue;
            }

            assert_eq!(blamed, cause, "{}", report["verdict"]);

            conclusive += 1;
            if conclusive == RUNS {
                break;
            }
        }

        print_line(&format!(
            "{cause:?}, {conclusive} undisturbed loads, blamed:{causes}"
        ));
        timing.expect(
            conclusive == RUNS,
            &format!("only {conclusive} of {RUNS} loads were undisturbed"),
        );
        timing.note_disturbances(disturbance);
    });
}

#[expect(
    clippy::print_stdout,
    reason = "the blamed causes, shown by --nocapture"
)]
fn print_line(causes: &str) {
    println!("{causes}");
}

fn arguments(url: &str) -> Vec<&str> {
    [url].into_iter().chain(LOAD).collect()
}

/// Waits for the condition, at most 10 s.
fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(10), "timeout");
        thread::sleep(SLEEP);
    }
}

/// Arguments of a load that busy-waits permanently.
fn spinning_arguments(url: &str) -> Vec<&str> {
    arguments(url)
        .into_iter()
        .chain(["--spin", "10ms"])
        .collect()
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s: make test-long"]
fn f14_a_stopped_client_is_blamed() {
    let server = server_with(constant_hold(MS));
    let run_load = || {
        let before = server.stats().arrivals;
        let generator = Generator::start(&arguments(&url_of(&server)));
        // Stop it in the middle of the load, however long its start took.
        wait_until(|| server.stats().arrivals >= before + HALF_LOAD_REQUESTS);
        generator.signal(Signal::STOP);
        thread::sleep(PAUSE);
        generator.signal(Signal::CONT);
        generator.report()
    };

    assert_blamed(Cause::ClientStopped, run_load, |report| {
        // Response times start at the scheduled send, so they include the pause whatever its cause.
        assert!(
            report["response_time_ns"]["max"].as_u64() >= Some(MIN_DELAY_NS),
            "{}",
            report["response_time_ns"]
        );
        assert!(
            report["client"]["max_send_lag_ns"].as_u64() >= Some(MIN_DELAY_NS),
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
fn f14_a_server_stall_is_not_blamed_on_the_client() {
    let run_load = || {
        let server = stalling_once();
        Generator::start(&arguments(&url_of(&server))).report()
    };
    assert_blamed(Cause::ServerStalled, run_load, |report| {
        assert!(
            report["response_time_ns"]["max"].as_u64() >= Some(MIN_DELAY_NS),
            "{}",
            report["response_time_ns"]
        );
        // The same tail as with a stopped client, but without send lag.
        assert!(
            report["client"]["max_send_lag_ns"].as_u64() < Some(MIN_DELAY_NS),
            "{}",
            report["client"]
        );
    });
}

/// Runs the generator on one core together with a thread that never sleeps.
fn run_beside_hog(arguments: &[&str]) -> Value {
    let core = only(allowed_cores()[0]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let hog = scope.spawn(|| {
            sched_setaffinity(None, &core).unwrap();
            // The child inherits the core of this thread. A hog could not disturb a real-time
            // thread.
            let generator = Generator::start_wrapped(&AS_SCHED_OTHER, arguments);
            scope.spawn(|| {
                let begin = Instant::now();
                // Without this limit, the hog would run forever if the report is unreadable.
                while !stop.load(Ordering::Relaxed) && begin.elapsed() < MAX_HOG_TIME {
                    std::hint::spin_loop();
                }
            });
            let report = generator.report();
            stop.store(true, Ordering::Relaxed);

            report
        });
        hog.join().unwrap()
    })
}

#[test]
#[ignore = "20 to 30 loads of 1.5 s: make test-long"]
fn f14_contention_for_the_clients_core_is_blamed_on_the_host() {
    let server = server_with(constant_hold(MS));
    assert_blamed(
        Cause::CoreShared,
        // A thread that rarely needs the core may get it at once; a thread that always busy-waits
        // must share it.
        || run_beside_hog(&spinning_arguments(&url_of(&server))),
        |report| {
            assert_eq!(report["verdict"]["blame"], "host");
        },
    );
}

#[test]
fn automatic_busy_waiting_stops_on_a_shared_core() {
    if allowed_cores().len() == 1 {
        return; // Busy-waiting then depends on cores that this test may not use.
    }
    let server = server_with(constant_hold(MS));
    let url = url_of(&server);
    judge(3, |timing| {
        let others = OtherProcesses::now();
        let automatic = run_beside_hog(&arguments(&url))["client"].take();
        let with_requested_spin: Vec<&str> = arguments(&url)
            .into_iter()
            .chain(["--spin", "60us"])
            .collect();
        let requested = run_beside_hog(&with_requested_spin)["client"].take();
        timing.note_disturbances(others.disturbance());
        let was_throttled = [&automatic, &requested]
            .iter()
            .any(|client| client["throttled_periods"].as_u64() > Some(0));
        timing.note_disturbances(
            was_throttled.then(|| "the generator's cgroup was throttled".to_owned()),
        );

        assert_eq!(
            (
                &automatic["spin"]["reason"],
                &automatic["spin"]["window_ns"]
            ),
            (&"automatic".into(), &60_000.into())
        );
        assert!(requested["spin_off_share"].is_null(), "{requested}");

        // The generator detects the shared core after 0.5 s of the load of 1.5 s.
        let off_share = automatic["spin_off_share"].as_f64().unwrap();
        timing.expect(
            (0.4..=0.8).contains(&off_share),
            &format!("busy-waiting was off for {off_share} of the load"),
        );

        let spin_seconds = |client: &Value| client["spin_cpu_seconds"].as_f64().unwrap();
        let what = format!(
            "busy-waited for {} s by default and {} s if requested",
            spin_seconds(&automatic),
            spin_seconds(&requested)
        );
        timing.expect(
            spin_seconds(&automatic) < 0.6 * spin_seconds(&requested),
            &what,
        );
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
#[ignore = "20 to 30 loads of 1.5 s in a cgroup: make test-long"]
fn f14_a_client_under_a_cpu_quota_reports_throttling() {
    let server = server_with(constant_hold(MS));
    let Some(quota) = Quota::open() else {
        return judge(1, |timing| {
            timing.expect(false, "no cgroup was created");
            timing.note_disturbances(["this user may not create cgroups".to_owned()]);
        });
    };
    let url = url_of(&server);
    // Permanent busy-waiting needs more than a fifth of a core.
    let run_load =
        || Generator::start_in_cgroup(&quota.procs_file(), &spinning_arguments(&url)).report();

    assert_blamed(Cause::ClientThrottled, run_load, |report| {
        assert_eq!(report["verdict"]["status"], "invalid");
    });
}
