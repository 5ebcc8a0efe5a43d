//! 10,000 connections for a long time: no request is lost, and memory does not grow over time or
//! with the number of connections.

use std::thread;
use std::time::{Duration, Instant};

use refsrv::{Config, Service};

use crate::child::Generator;
use crate::seconds_from;
use crate::support::{MS, OtherProcesses, judge, server_with, url_of};

const RATE_PER_S: u64 = 5_000;
/// Just below 10,000 requests arrive in this time and are in flight.
const HOLD_NS: u64 = 1_998 * MS;
const MIN_CONNECTIONS: u64 = 9_900;
const MAX_RESIDENT_BYTES: u64 = 64 << 20;
const MAX_GROWTH_BYTES: u64 = 2 << 20;

/// After this time, all connections are open and all buffers have their final size.
const SETTLING_TIME: Duration = Duration::from_secs(10);
const SAMPLING_PERIOD: Duration = Duration::from_millis(500);

/// Resident memory of a process; `None` after its end.
fn resident_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1_024)
}

/// Samples of the resident memory during a load of this length, excluding the settling time.
fn sample_resident_bytes(process: u32, load: Duration) -> Vec<u64> {
    let begin = Instant::now();
    thread::sleep(SETTLING_TIME);
    let mut samples = Vec::new();
    while begin.elapsed() < load {
        samples.extend(resident_bytes(process));
        thread::sleep(SAMPLING_PERIOD);
    }
    samples
}

/// Runs the load and checks the generator's memory.
fn run_and_check_memory(extra_arguments: &[&str]) {
    let seconds = seconds_from("WSGILOAD_ENDURANCE_SECONDS", 60).max(2 * SETTLING_TIME.as_secs());
    judge(1, |timing| {
        let service = Service::Constant { hold_ns: HOLD_NS };
        let server = server_with(Config {
            service,
            log: false,
            stamp_headers: false,
            ..Config::default()
        });
        let (url, rate, duration) = (
            url_of(&server),
            RATE_PER_S.to_string(),
            format!("{seconds}s"),
        );
        let load = [
            "--arrivals",
            "constant",
            "--max-connections",
            "12000",
            "--rate",
            &rate,
            "--duration",
            &duration,
        ];
        let arguments: Vec<&str> = [url.as_str()]
            .into_iter()
            .chain(load)
            .chain(extra_arguments.iter().copied())
            .collect();
        let others = OtherProcesses::now();
        let generator = Generator::start(&arguments);
        let samples = sample_resident_bytes(generator.id(), Duration::from_secs(seconds));
        let report = generator.report();
        timing.note_disturbances(others.disturbance());

        let outcomes = &report["outcomes"];
        assert_eq!(outcomes["scheduled"].as_u64(), Some(seconds * RATE_PER_S));
        assert_eq!(outcomes["client_error"], 0, "{outcomes}");
        timing.expect(
            outcomes["ok"] == outcomes["scheduled"],
            &format!("some requests failed: {outcomes}"),
        );
        assert!(report["response_time_ns"]["min"].as_u64() >= Some(HOLD_NS));
        let peak = report["connections"]["peak"].as_u64().unwrap();
        assert!(peak >= MIN_CONNECTIONS, "only {peak} connections");

        let (lowest, highest) = (
            *samples.iter().min().unwrap(),
            *samples.iter().max().unwrap(),
        );
        print_summary(peak, lowest, highest);
        assert!(
            highest <= MAX_RESIDENT_BYTES,
            "{highest} bytes resident for {peak} connections"
        );
        // If the host delays the load, more connections are open and histograms have more buckets.
        let growth = format!("{lowest} to {highest} bytes resident within {seconds} s");
        timing.expect(highest - lowest <= MAX_GROWTH_BYTES, &growth);
    });
}

#[test]
#[ignore = "60 s of load, or WSGILOAD_ENDURANCE_SECONDS: make test-long"]
fn memory_of_ten_thousand_connections_does_not_grow_over_time() {
    run_and_check_memory(&["--interval", "1h"]);
}

#[test]
#[ignore = "60 s of load, or WSGILOAD_ENDURANCE_SECONDS: make test-long"]
fn ten_thousand_connections_and_one_second_intervals_fit_into_64_mib() {
    run_and_check_memory(&[]);
}

#[expect(clippy::print_stdout, reason = "the figures, shown by --nocapture")]
fn print_summary(peak: u64, lowest: u64, highest: u64) {
    println!("{peak} connections, {lowest} to {highest} bytes resident");
}
