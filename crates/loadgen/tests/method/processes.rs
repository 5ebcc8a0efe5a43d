//! Several generator processes run one load.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::plan::Arrivals;
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, prepare};
use refsrv::{Config, ReferenceServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::child::Generator;
use crate::support::{
    MS, SECOND, assert_consistent, constant_hold, lock_host, open_loop, server_with, url_of,
};

/// How long after a loss or a stop nothing may be left.
const AT_MOST: Duration = Duration::from_secs(10);

fn run_in(processes: usize, plan: &LoadPlan) -> LoadReport {
    let plan = LoadPlan {
        processes,
        ..plan.clone()
    };
    let generator = [env!("CARGO_BIN_EXE_loadgen"), "--generator"].map(OsString::from);
    let load = prepare(&plan).unwrap().with_generator(generator.to_vec());
    let report = load.run(&StopToken::new()).unwrap();
    assert_consistent(&report);
    report
}

/// The scheduled send times of all requests, from the start of the load.
fn schedule_of(report: &LoadReport) -> Vec<u64> {
    let kept = &report.flights.as_ref().unwrap().slowest;
    let since_start = |(intended_ns, _): &(u64, u64)| intended_ns - report.clock.monotonic_ns;
    let mut offsets_ns: Vec<u64> = kept.iter().map(since_start).collect();
    offsets_ns.sort_unstable();
    offsets_ns
}

#[test]
fn any_number_of_processes_sends_the_same_schedule() {
    let _host = lock_host();
    let server = server_with(Config::default());
    let mut sent = 0;
    for (arrivals, threads) in [(Arrivals::Poisson, 1), (Arrivals::Constant, 2)] {
        // This rate and its inverse have no exact decimal form.
        let mut plan = LoadPlan::open(&url_of(&server), 1_000.0 / 3.0, SECOND);
        open_loop(&mut plan).arrivals = arrivals;
        (plan.seed, plan.keep_flights, plan.threads) = (7, 10_000, threads);
        let alone = run_in(1, &plan);
        assert!(alone.scheduled() > 200);

        for processes in [2, 3] {
            let report = run_in(processes, &plan);
            assert_eq!(schedule_of(&report), schedule_of(&alone), "{processes}");
            assert_eq!(report.outcome(Outcome::Ok), alone.scheduled());
        }
        sent += 3 * alone.scheduled();
    }
    assert_eq!(server.log().len() as u64, sent);
}

#[test]
fn connections_and_users_are_divided() {
    let _host = lock_host();
    let server = server_with(constant_hold(50 * MS));
    let url = url_of(&server);

    let users = run_in(3, &LoadPlan::closed(&url, 7, SECOND / 2));
    assert_eq!((users.connections.opened, users.connections.peak), (7, 7));

    let mut plan = LoadPlan::open(&url, 400.0, SECOND / 2);
    open_loop(&mut plan).max_connections = Some(5);
    plan.threads = 2;
    let capped = run_in(2, &plan);
    assert_eq!(capped.connections.max_connections, 5);
    assert_eq!(capped.connections.peak, 5);
}

/// A load in three processes that has sent some requests, and the process ids of the three.
fn started(server: &ReferenceServer) -> (Generator, Vec<u32>) {
    let url = url_of(server);
    let flags = ["-R", "300", "-d", "30s", "--processes", "3", "--quiet"];
    let generator = Generator::start(&[&[url.as_str()][..], &flags].concat());
    becomes(|| (server.log().len() > 30).then_some(()));
    let children = children_of(generator.id());
    assert_eq!(children.len(), 3);
    (generator, children)
}

fn kill(process: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The parent of a process, and whether it runs; `None` if there is no such process.
fn stat(process: u32) -> Option<(u32, bool)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_running = fields.next()? != "Z";
    Some((fields.next()?.parse().ok()?, is_running))
}

fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes
        .filter(|process| stat(*process) == Some((parent, true)))
        .collect()
}

/// What the check returns once it is `Some`.
fn becomes<T>(check: impl Fn() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(since.elapsed() < AT_MOST, "not within {AT_MOST:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn assert_all_end(processes: &[u32]) {
    becomes(|| {
        let mut running = processes
            .iter()
            .filter(|process| stat(**process).is_some_and(|(_, is_running)| is_running));
        running.next().is_none().then_some(())
    });
}

/// The check and the message of the first reason. A busy host may cause further ones.
fn reason_of(report: &Value) -> (&str, &str) {
    let reason = &report["verdict"]["reasons"][0];
    ["check", "message"]
        .map(|key| reason[key].as_str().unwrap())
        .into()
}

fn assert_conserved(report: &Value) {
    let outcomes = report["outcomes"].as_object().unwrap();
    let scheduled = outcomes["scheduled"].as_u64().unwrap();
    let all: u64 = outcomes.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(all, 2 * scheduled, "{outcomes:?}");
    assert!(scheduled > 0);
}

#[test]
fn a_lost_generator_invalidates_the_load_and_stops_the_others() {
    let _host = lock_host();
    let server = server_with(Config::default());
    let (generator, children) = started(&server);

    let since = Instant::now();
    kill(children[0], Signal::KILL);
    let (code, report) = generator.end();

    assert!(since.elapsed() < AT_MOST, "{:?}", since.elapsed());
    let (check, message) = reason_of(&report);
    assert_eq!((code, check), (Some(98), "generator-lost"));
    assert!(message.contains("of 3 was lost after "), "{message}");
    assert!(message.contains("SIGKILL"), "{message}");
    assert_conserved(&report);
    assert_all_end(&children);
}

#[test]
fn a_stop_ends_all_processes_with_their_results() {
    let _host = lock_host();
    let server = server_with(Config::default());
    let (generator, children) = started(&server);

    generator.signal(Signal::INT);
    let (code, report) = generator.end();

    assert_eq!((code, reason_of(&report).0), (Some(130), "interrupted"));
    assert_conserved(&report);
    assert_all_end(&children);
}

#[test]
fn no_process_outlives_the_one_that_runs_the_load() {
    let _host = lock_host();
    let server = server_with(Config::default());
    let (generator, children) = started(&server);

    kill(generator.id(), Signal::KILL);
    assert_all_end(&children);
}

#[test]
fn a_generator_ends_with_its_parent_even_if_its_input_stays_open() {
    let script = r#"exec 3<&0; "$0" --generator <&3 & wait"#;
    let mut parent = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_loadgen")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = parent.stdin.take().unwrap();
    let plan = LoadPlan {
        processes: 2,
        ..LoadPlan::closed("http://127.0.0.1:9/", 2, SECOND)
    };
    let order = json!({"plan": plan, "portion": {"index": 0, "count": 2}});
    writeln!(input, "{order}").unwrap();
    let mut armed = String::new();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    output.read_line(&mut armed).unwrap();
    assert!(armed.contains("Armed"), "{armed}");
    let children = children_of(parent.id());
    assert_eq!(children.len(), 1);

    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_all_end(&children);
}
