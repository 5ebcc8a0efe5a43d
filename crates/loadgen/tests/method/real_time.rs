//! A real-time generator that always busy-waits gives up its priority for short times, before RT
//! throttling stops it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::sched_setaffinity;
use serde_json::Value;

use crate::child::{AS_SCHED_OTHER, Generator};
use crate::sleepers::{allowed_cores, only};
use crate::support::{
    OtherProcesses, Timing, US, constant_hold, judge_after, lock_host, server_with, url_of,
};

/// Much longer than a load, so that other threads stop even if the test fails.
const MAX_LOAD_TIME: Duration = Duration::from_secs(15);

const REAL_TIME: [&str; 3] = ["chrt", "--rr", "1"];
/// Real-time priority without permission to retake it.
const WITHOUT_PERMISSION: [&str; 6] = [
    "chrt",
    "--rr",
    "1",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];
/// Real-time priority with permission to retake it, but not for a negative niceness. Raising a
/// limit needs `CAP_SYS_RESOURCE`.
const WITH_RTPRIO_LIMIT: [&str; 9] = [
    "chrt",
    "--rr",
    "1",
    "prlimit",
    "--rtprio=1:1",
    "--nice=20:20",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];

/// Default policy and niceness, with permission for real-time priority.
const PERMITTED: [&str; 3] = [
    "sh",
    "-c",
    r#"renice 0 -p $$ >/dev/null && chrt --rr 1 true && exec "$0" "$@""#,
];

/// Default policy and niceness, without permission for real-time priority.
const NOT_PERMITTED: [&str; 8] = [
    "sh",
    "-c",
    r#"renice 0 -p $$ >/dev/null && exec "$0" "$@""#,
    "prlimit",
    "--rtprio=0:0",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];

/// The kernel kills a real-time thread that runs for 0.1 s without sleeping.
const RTTIME_LIMIT: [&str; 2] = ["prlimit", "--rttime=100000:100000"];

/// Longer than a process waits for a core whose real-time thread took the priority itself and gives
/// it up for short times.
const MAX_WAIT: Duration = Duration::from_millis(300);

/// The same for a thread that inherited the priority and has a niceness of -10 meanwhile. Shorter
/// than the 0.95 s after which RT throttling stops a thread that never gives up its priority.
const MAX_WAIT_BESIDE_INHERITED: Duration = Duration::from_millis(900);

/// A send every 50 µs, and a busy-wait before each.
const SPINNING: [&str; 4] = ["--rate", "20000", "--spin", "60us"];

/// The `client` object of the report of a load that always busy-waits; `None` if these commands are
/// not permitted.
fn client_of_spinning_load(commands: &[&str]) -> Option<Value> {
    let _host = lock_host();
    client_of(commands, &SPINNING)
}

fn client_of(commands: &[&str], load: &[&str]) -> Option<Value> {
    let status = Command::new(commands[0])
        .args(&commands[1..])
        .arg("true")
        .status();
    let is_permitted = status.is_ok_and(|status| status.success());
    let server = server_with(constant_hold(100 * US));
    let url = url_of(&server);
    let arguments: Vec<&str> = [&url, "--arrivals", "constant", "--duration", "1s"]
        .into_iter()
        .chain(load.iter().copied())
        .collect();

    is_permitted.then(|| Generator::start_wrapped(commands, &arguments).report()["client"].take())
}

fn assert_gives_up_priority(commands: &[&str]) {
    judge_after(3, 3, |timing| {
        let others = OtherProcesses::now();
        let client = client_of(commands, &SPINNING);
        timing.note_disturbances(others.disturbance());
        if let Some(client) = client {
            assert_gave_up_priority(timing, &client);
        }
    });
}

fn assert_gave_up_priority(timing: &mut Timing, client: &Value) {
    assert_eq!(
        (&client["scheduling"], &client["curtailed_spins"]),
        (&"realtime".into(), &0.into())
    );
    // A share of the whole time, including the wait for the last responses and the time in which
    // other processes use the core.
    let share = client["real_time_off_share"].as_f64().unwrap();
    assert!(share > 0.0);
    timing.expect(share <= 0.08, &format!("{share}"));
}

#[test]
fn a_real_time_generator_gives_up_its_priority_for_a_share_of_the_time() {
    assert_gives_up_priority(&REAL_TIME);
}

#[test]
fn a_real_time_generator_with_an_rtprio_limit_gives_up_its_priority_for_a_share_of_the_time() {
    assert_gives_up_priority(&WITH_RTPRIO_LIMIT);
}

#[test]
fn a_permitted_generator_takes_real_time_priority_and_gives_it_up_for_a_share_of_the_time() {
    if allowed_cores().len() > 1 {
        assert_gives_up_priority(&PERMITTED);
    }
}

fn assert_stays_sched_other(commands: &[&str]) {
    let Some(client) = client_of_spinning_load(commands) else {
        return;
    };
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"sched_other".into(), &Value::Null)
    );
    assert_eq!(client["curtailed_spins"], 0);
}

#[test]
fn a_generator_without_permission_runs_as_sched_other() {
    assert_stays_sched_other(&NOT_PERMITTED);
}

#[test]
fn a_generator_with_an_rttime_limit_stays_sched_other() {
    let commands: Vec<&str> = PERMITTED.into_iter().chain(RTTIME_LIMIT).collect();
    assert_stays_sched_other(&commands);
}

#[test]
fn a_generator_without_a_spare_core_stays_sched_other() {
    let _host = lock_host();
    let threads = allowed_cores().len().to_string();
    let load = ["--rate", "100", "--threads", &threads];
    if let Some(client) = client_of(&PERMITTED, &load) {
        assert_eq!(client["scheduling"], "sched_other");
    }
}

/// Runs a load with one thread per core that always busy-waits; returns the `client` object of its
/// report, and the longest wait of a SCHED_OTHER thread for each core.
fn run_beside_others(commands: &[&str], cores: &[usize]) -> Option<(Value, Vec<Duration>)> {
    let threads = cores.len().to_string();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let others: Vec<_> = cores
            .iter()
            .map(|&core| {
                let stop = &stop;
                scope.spawn(move || {
                    sched_setaffinity(None, &only(core)).unwrap();
                    // Without permission for this, the generator has no real-time priority either.
                    let _ = setpriority_process(None, 0);
                    longest_pause(stop)
                })
            })
            .collect();
        let load = ["--rate", "200", "--spin", "1s", "--threads", &threads];
        let client = client_of(commands, &load);
        stop.store(true, Ordering::Relaxed);
        let waits = others.into_iter().map(|other| other.join().unwrap());

        client.zip(Some(waits.collect()))
    })
}

/// Longest time between two readings of the clock in a loop that only reads it.
fn longest_pause(stop: &AtomicBool) -> Duration {
    let (begin, mut longest) = (Instant::now(), Duration::ZERO);
    let mut last = begin;
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < MAX_LOAD_TIME {
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

/// The scheduler decides when the others run while the priority is given up, and a pause of the host
/// lengthens a wait too; a generator that keeps its priority makes them wait in each attempt.
fn assert_leaves_time_for_others(commands: &[&str], cores: &[usize], max_wait: Duration) {
    judge_after(3, 3, |timing| {
        let others = OtherProcesses::now();
        let Some((client, waits)) = run_beside_others(commands, cores) else {
            return;
        };
        timing.note_disturbances(others.disturbance());
        assert_gave_up_priority(timing, &client);
        timing.expect(
            waits.iter().all(|&wait| wait < max_wait),
            &format!("{waits:?} {client}"),
        );
    });
}

#[test]
fn real_time_threads_on_all_cores_leave_time_for_other_processes() {
    assert_leaves_time_for_others(&REAL_TIME, &allowed_cores(), MAX_WAIT_BESIDE_INHERITED);
}

#[test]
fn a_generator_that_took_real_time_priority_leaves_time_for_other_processes_on_its_core() {
    let cores = allowed_cores();
    let core = cores[0].to_string();
    let on_one_core = ["taskset", "--cpu-list", &core];
    let commands: Vec<&str> = on_one_core.into_iter().chain(PERMITTED).collect();
    if cores.len() > 1 {
        assert_leaves_time_for_others(&commands, &cores[..1], MAX_WAIT);
    }
}

#[test]
fn a_thread_that_could_not_retake_real_time_priority_keeps_it_and_sleeps() {
    let Some(client) = client_of_spinning_load(&WITHOUT_PERMISSION) else {
        return;
    };
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"realtime".into(), &Value::Null)
    );
    assert!(client["curtailed_spins"].as_u64() > Some(100), "{client}");
}

#[test]
fn a_sched_other_generator_can_busy_wait_throughout() {
    let client = client_of_spinning_load(&AS_SCHED_OTHER).unwrap();
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"sched_other".into(), &Value::Null)
    );
    assert_eq!(client["curtailed_spins"], 0);
}
