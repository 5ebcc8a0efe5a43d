//! A real-time generator that never sleeps voluntarily gives up its priority for short times,
//! before RT throttling stops it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::sched_setaffinity;
use serde_json::Value;

use crate::child::{AS_SCHED_OTHER, Generator};
use crate::sleepers::{allowed_cores, only};
use crate::support::{US, alone, holding, server_with, url_of};

/// Much longer than a load.
const LONGEST_LOAD: Duration = Duration::from_secs(15);

const REAL_TIME: [&str; 3] = ["chrt", "--rr", "1"];
/// Real-time priority without the permission to take it again.
const WITHOUT_PERMISSION: [&str; 6] = [
    "chrt",
    "--rr",
    "1",
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];
/// Real-time priority with the permission to take it again, but no permission for a negative
/// niceness. Raising a limit needs `CAP_SYS_RESOURCE`.
const WITH_A_LIMIT: [&str; 9] = [
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

/// Default policy and niceness, and the permission to be a real-time thread.
const PERMITTED: [&str; 3] = [
    "sh",
    "-c",
    r#"renice 0 -p $$ >/dev/null && chrt --rr 1 true && exec "$0" "$@""#,
];

/// Default policy and niceness, without the permission to be a real-time thread.
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

/// Permitted, but the kernel kills a real-time thread that runs for 0.1 s without sleeping.
const KILLED_IF_IT_SPINS: [&str; 2] = ["prlimit", "--rttime=100000:100000"];

/// Longer than a process waits for a core with a thread that took real-time priority itself and
/// gives it up for short times.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

/// The same for a thread that inherited its priority and keeps a niceness of -10 meanwhile: shorter
/// than the 0.95 s until RT throttling stops a thread that never gives up its priority.
const LONGEST_WAIT_BESIDE_URGENT: Duration = Duration::from_millis(900);

/// A send every 50 µs, with busy-waiting before each.
const SPINNING: [&str; 4] = ["--rate", "20000", "--spin", "60us"];

/// The generator's own report after such a load; `None` if these commands are not permitted.
fn spun_throughout(commands: &[&str]) -> Option<Value> {
    let _alone = alone();
    client_of(commands, &SPINNING)
}

fn client_of(commands: &[&str], load: &[&str]) -> Option<Value> {
    let status = Command::new(commands[0])
        .args(&commands[1..])
        .arg("true")
        .status();
    let is_permitted = status.is_ok_and(|status| status.success());
    let server = server_with(holding(100 * US));
    let url = url_of(&server);
    let arguments: Vec<&str> = [&url, "--arrivals", "constant", "--duration", "1s"]
        .into_iter()
        .chain(load.iter().copied())
        .collect();

    is_permitted.then(|| Generator::start_by(commands, &arguments).report()["client"].take())
}

fn assert_given_up_for_its_share(commands: &[&str]) {
    if let Some(client) = spun_throughout(commands) {
        assert_was_given_up(&client);
    }
}

fn assert_was_given_up(client: &Value) {
    assert_eq!(
        (&client["scheduling"], &client["curtailed_spins"]),
        (&"realtime".into(), &0.into())
    );
    // Share of its whole time, including the wait for the last responses. Time in which other
    // processes use its core counts as well.
    let share = client["real_time_off_share"].as_f64().unwrap();
    assert!(share > 0.0 && share <= 0.08, "{share}");
}

#[test]
fn real_time_priority_is_given_up_for_its_share_of_the_time() {
    assert_given_up_for_its_share(&REAL_TIME);
}

#[test]
fn real_time_priority_by_a_limit_is_given_up_for_its_share_of_the_time() {
    assert_given_up_for_its_share(&WITH_A_LIMIT);
}

#[test]
fn a_permitted_generator_takes_real_time_priority_and_gives_it_up_for_its_share_of_the_time() {
    if allowed_cores().len() > 1 {
        assert_given_up_for_its_share(&PERMITTED);
    }
}

fn assert_stays_sched_other(commands: &[&str]) {
    let Some(client) = spun_throughout(commands) else {
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
fn a_generator_that_would_be_killed_at_real_time_priority_stays_sched_other() {
    let commands: Vec<&str> = PERMITTED.into_iter().chain(KILLED_IF_IT_SPINS).collect();
    assert_stays_sched_other(&commands);
}

#[test]
fn a_generator_without_a_spare_core_takes_no_real_time_priority() {
    let _alone = alone();
    let threads = allowed_cores().len().to_string();
    let load = ["--rate", "100", "--threads", &threads];
    if let Some(client) = client_of(&PERMITTED, &load) {
        assert_eq!(client["scheduling"], "sched_other");
    }
}

/// Runs a load whose threads, one per core, never sleep voluntarily; returns its report, and the
/// longest wait of a SCHED_OTHER process for each core.
fn beside_others(commands: &[&str], cores: &[usize]) -> Option<(Value, Vec<Duration>)> {
    let threads = cores.len().to_string();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let others: Vec<_> = cores
            .iter()
            .map(|&core| {
                let is_over = &is_over;
                scope.spawn(move || {
                    sched_setaffinity(None, &only(core)).unwrap();
                    // A process that may not change it may not have real-time priority either.
                    let _ = setpriority_process(None, 0);
                    longest_pause(is_over)
                })
            })
            .collect();
        let load = ["--rate", "200", "--spin", "1s", "--threads", &threads];
        let client = client_of(commands, &load);
        is_over.store(true, Ordering::Relaxed);
        let waits = others.into_iter().map(|other| other.join().unwrap());

        client.zip(Some(waits.collect()))
    })
}

/// The longest time between two readings of the clock in a loop that does nothing else.
fn longest_pause(is_over: &AtomicBool) -> Duration {
    let (begin, mut longest) = (Instant::now(), Duration::ZERO);
    let mut last = begin;
    while !is_over.load(Ordering::Relaxed) && begin.elapsed() < LONGEST_LOAD {
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

fn assert_leaves_time_to_others(commands: &[&str], cores: &[usize], longest_wait: Duration) {
    let _alone = alone();
    let Some((client, waits)) = beside_others(commands, cores) else {
        return;
    };
    assert_was_given_up(&client);
    assert!(
        waits.iter().all(|&wait| wait < longest_wait),
        "{waits:?} {client}"
    );
}

#[test]
fn real_time_threads_on_all_cores_leave_time_to_others() {
    assert_leaves_time_to_others(&REAL_TIME, &allowed_cores(), LONGEST_WAIT_BESIDE_URGENT);
}

#[test]
fn a_generator_that_took_real_time_priority_leaves_time_to_others_on_its_core() {
    let cores = allowed_cores();
    let core = cores[0].to_string();
    let on_one_core = ["taskset", "--cpu-list", &core];
    let commands: Vec<&str> = on_one_core.into_iter().chain(PERMITTED).collect();
    if cores.len() > 1 {
        assert_leaves_time_to_others(&commands, &cores[..1], LONGEST_WAIT);
    }
}

#[test]
fn without_permission_to_take_priority_back_the_thread_keeps_it_and_sleeps() {
    let Some(client) = spun_throughout(&WITHOUT_PERMISSION) else {
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
    let client = spun_throughout(&AS_SCHED_OTHER).unwrap();
    assert_eq!(
        (&client["scheduling"], &client["real_time_off_share"]),
        (&"sched_other".into(), &Value::Null)
    );
    assert_eq!(client["curtailed_spins"], 0);
}
