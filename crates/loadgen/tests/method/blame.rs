//! F14: was it me? Four ways to spoil a load, and the verdict must tell which it was.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refsrv::{Config, ReferenceServer, Service};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::child::Generator;
use crate::support::{MS, Others, SECOND, Timing, holding, judge, server_with, url_of};

/// How often each kind of trouble is made.
const RUNS: usize = 20;

/// How long the client or the server stands still.
const PAUSE: Duration = Duration::from_millis(200);
/// Of a pause, what the request that arrives at its beginning sees at least.
const SEEN_NS: u64 = 150 * MS;

/// Much longer than a load.
const LONGEST_HOG: Duration = Duration::from_secs(15);

const LOAD: [&str; 6] = ["--rate", "500", "--arrivals", "constant", "--duration", "1500ms"];

/// What was done, or what the report says was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    ClientStopped,
    ServerStalled,
    CoreShared,
    ClientThrottled,
    None,
}

impl Trouble {
    /// What a reader of this report would think had happened. A throttled thread also waits for its core, and a
    /// thread that waits is also late, so the more specific finding decides.
    fn told_by(report: &Value) -> Self {
        let longest_ns = report["response_time_ns"]["max"].as_u64().unwrap_or(0);
        if has_check(report, "C9", "invalid") {
            Self::ClientThrottled
        } else if has_check(report, "C8", "invalid") {
            Self::CoreShared
        } else if ["C4", "C5", "C11"].iter().any(|check| has_check(report, check, "invalid")) {
            Self::ClientStopped
        } else if longest_ns >= SEEN_NS {
            Self::ServerStalled
        } else {
            Self::None
        }
    }
}

fn has_check(report: &Value, check: &str, level: &str) -> bool {
    let reasons = report["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().any(|reason| reason["check"] == check && reason["level"] == level)
}

/// Makes one kind of trouble [`RUNS`] times. What is told wrongly on an undisturbed host is a failure at once.
fn assert_told(made: Trouble, mut make: impl FnMut() -> Value, expect: impl Fn(&mut Timing, &Value)) {
    judge(1, |timing| {
        let mut row = String::new();
        for run in 0..RUNS {
            let others = Others::now();
            let report = make();
            let (told, disturbance) = (Trouble::told_by(&report), others.disturbance());
            write!(row, "{told:?} ").unwrap();
            let outcomes = &report["outcomes"];
            assert_eq!(outcomes["ok"], outcomes["scheduled"], "{outcomes}");
            let verdict = &report["verdict"];
            assert!(told == made || disturbance.is_some(), "run {run}: {made:?} was told as {told:?}: {verdict}");
            timing.expect(told == made, &format!("run {run}: {made:?} was told as {told:?}"));
            timing.disturbed_by(disturbance);
            if told == made {
                expect(timing, &report);
            }
        }
        told_row(made, &row);
    });
}

#[expect(clippy::print_stdout, reason = "the row of the matrix, shown by --nocapture")]
fn told_row(made: Trouble, row: &str) {
    println!("{made:?} was told as {row}");
}

fn arguments(url: &str) -> Vec<&str> {
    [url].into_iter().chain(LOAD).collect()
}

#[test]
#[ignore = "20 loads of 1.5 s: make test-long"]
fn f14_a_client_that_was_stopped_blames_itself() {
    let server = server_with(holding(MS));
    let make = || {
        let generator = Generator::start(&arguments(&url_of(&server)));
        thread::sleep(Duration::from_millis(700));
        generator.signal(Signal::STOP);
        thread::sleep(PAUSE);
        generator.signal(Signal::CONT);
        generator.report()
    };
    assert_told(Trouble::ClientStopped, make, |timing, report| {
        // The pause is in the response times, whoever is to blame: they begin at the intended send.
        assert!(report["response_time_ns"]["max"].as_u64() >= Some(SEEN_NS), "{}", report["response_time_ns"]);
        assert!(report["client"]["max_send_lag_ns"].as_u64() >= Some(SEEN_NS), "{}", report["client"]);
        assert_eq!(report["verdict"]["status"], "invalid");
        let blame = &report["verdict"]["blame"];
        timing.expect(blame == "client", &format!("the verdict blames the {blame}"));
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
    server_with(Config { service, ..Config::default() })
}

#[test]
#[ignore = "20 loads of 1.5 s: make test-long"]
fn f14_a_server_that_stalled_is_not_the_clients_fault() {
    let make = || {
        let server = stalling_once();
        Generator::start(&arguments(&url_of(&server))).report()
    };
    assert_told(Trouble::ServerStalled, make, |timing, report| {
        assert!(report["response_time_ns"]["max"].as_u64() >= Some(SEEN_NS), "{}", report["response_time_ns"]);
        let (status, lag_ns) = (&report["verdict"]["status"], report["client"]["max_send_lag_ns"].as_u64());
        timing.expect(status == "valid", &format!("the verdict is {status}: {}", report["verdict"]["reasons"]));
        timing.expect(lag_ns < Some(10 * MS), &format!("a send was {lag_ns:?} ns late"));
    });
}

/// Runs the generator on one core together with a thread that never rests.
fn with_a_hog(url: &str) -> Value {
    let allowed = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core)).expect("a core");
    let mut core = CpuSet::new();
    core.set(first);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let hog = scope.spawn(|| {
            sched_setaffinity(None, &core).unwrap();
            // A child may run where its parent's thread may.
            let generator = Generator::start(&arguments(url));
            scope.spawn(|| {
                let begin = Instant::now();
                // Without the bound, a report that cannot be read would be a test that never ends.
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
#[ignore = "20 loads of 1.5 s: make test-long"]
fn f14_a_core_that_others_use_is_the_hosts_fault() {
    let server = server_with(holding(MS));
    assert_told(
        Trouble::CoreShared,
        || with_a_hog(&url_of(&server)),
        |_, report| {
            assert_eq!(report["verdict"]["blame"], "host");
        },
    );
}

/// A control group that grants a fifth of a core.
struct Quota {
    directory: PathBuf,
}

impl Quota {
    /// `None` where control groups may not be made.
    fn open() -> Option<Self> {
        let name = format!("loadgen-test-{}", std::process::id());
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let is_v2 = v2.join("cgroup.controllers").exists();
        let quota = Self { directory: if is_v2 { v2 } else { v1 }.join(name) };
        std::fs::create_dir(&quota.directory).ok()?;
        let limits: &[(&str, &str)] = if is_v2 {
            &[("cpu.max", "20000 100000")]
        } else {
            &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")]
        };
        let is_limited =
            limits.iter().all(|(file, text)| std::fs::write(quota.directory.join(file), text).is_ok());
        is_limited.then_some(quota)
    }

    fn procs_file(&self) -> String {
        self.directory.join("cgroup.procs").display().to_string()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The kernel may take a moment to let go of the last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
#[ignore = "20 loads of 1.5 s in a control group: make test-long"]
fn f14_a_client_under_a_quota_says_that_it_was_throttled() {
    let server = server_with(holding(MS));
    let Some(quota) = Quota::open() else {
        return judge(1, |timing| {
            timing.expect(false, "no control group could be made");
            timing.disturbed_by(["this user may not make control groups".to_owned()]);
        });
    };
    let url = url_of(&server);
    // A spin that never ends needs more than a fifth of a core.
    let arguments: Vec<&str> = arguments(&url).into_iter().chain(["--spin", "10ms"]).collect();
    let make = || Generator::start_in(&quota.procs_file(), &arguments).report();
    assert_told(Trouble::ClientThrottled, make, |_, report| {
        assert_eq!(report["verdict"]["status"], "invalid");
    });
}
