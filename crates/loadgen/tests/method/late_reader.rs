//! A generator that reads a response late: with kernel timestamps, the late read does not lengthen
//! the response; without them, the verdict blames the generator.

use std::thread;
use std::time::Duration;

use refsrv::{Config, Framing};
use rustix::process::Signal;
use serde_json::Value;

use crate::child::Generator;
use crate::sleepers::Sleepers;
use crate::support::{
    MS, OtherProcesses, Timing, bucket_top, constant_hold, judge, noise_floor_ns, server_with,
    url_of,
};

const HOLD_NS: u64 = 100 * MS;
/// Twice the hold, so that the response to the request in flight arrives during the pause.
const PAUSE: Duration = Duration::from_millis(200);
/// Minimum wait of that response: the rest of the pause, minus the time to stop the process.
const MIN_WAIT_NS: u64 = 90 * MS;

/// Stops a closed loop of one user once; returns its report and the longest time within the server.
fn run_with_pause(timing: &mut Timing, stamps: &str, framing: Framing) -> (Value, u64) {
    let (others, sleepers) = (OtherProcesses::now(), Sleepers::start());
    let server = server_with(Config {
        framing,
        ..constant_hold(HOLD_NS)
    });
    let url = url_of(&server);
    let generator = Generator::start(&[
        &url,
        "--connections",
        "1",
        "--duration",
        "1s",
        "--receive-stamps",
        stamps,
    ]);
    thread::sleep(Duration::from_millis(450));
    generator.signal(Signal::STOP);
    thread::sleep(PAUSE);
    generator.signal(Signal::CONT);
    let report = generator.report();
    timing.note_disturbances(
        sleepers
            .disturbance()
            .into_iter()
            .chain(others.disturbance()),
    );
    let in_server_ns = server
        .log()
        .iter()
        .filter_map(|entry| Some(entry.write_ns? - entry.arrive_ns))
        .max();

    (report, in_server_ns.expect("the server has responded"))
}

#[test]
fn with_kernel_timestamps_a_late_read_does_not_lengthen_the_response() {
    judge(3, |timing| {
        let (report, in_server_ns) = run_with_pause(timing, "kernel", Framing::ContentLength);
        assert_eq!(report["client"]["receive_stamps"], "kernel");

        let delay_ns = report["receive_delay_ns"]["max"].as_u64();
        timing.expect(
            delay_ns >= Some(MIN_WAIT_NS),
            &format!("the response waited for {delay_ns:?} ns"),
        );

        let longest_ns = report["service_time_ns"]["max"].as_u64();
        timing.assert_min_expect_max(
            "the slowest response",
            longest_ns,
            HOLD_NS,
            bucket_top(in_server_ns) + noise_floor_ns(0.999),
        );
    });
}

/// Asserts that all timestamps are the generator's, that the pause lengthens the response, and that
/// the verdict blames the stall of the generator.
fn assert_generator_blamed(stamps: &str, framing: Framing) {
    judge(3, |timing| {
        let (report, _) = run_with_pause(timing, stamps, framing);
        let client = &report["client"];
        assert_eq!(
            (&client["receive_stamps"], &client["user_timestamps"]),
            (&"user".into(), &report["outcomes"]["ok"])
        );
        assert!(
            report["receive_delay_ns"].is_null(),
            "{}",
            report["receive_delay_ns"]
        );

        let longest_ns = report["service_time_ns"]["max"].as_u64();
        timing.expect(
            longest_ns >= Some(HOLD_NS + MIN_WAIT_NS),
            &format!("the slowest response took {longest_ns:?} ns"),
        );

        let waited = report["client"]["stalls"]["responses"].as_u64();
        timing.expect(
            waited >= Some(1),
            &format!("responses that waited: {waited:?}"),
        );

        let reasons = report["verdict"]["reasons"].as_array().expect("reasons");
        let stall_reason = reasons
            .iter()
            .find(|reason| reason["check"] == "client-stalls");
        timing.expect(
            stall_reason.is_some_and(|reason| reason["level"] == "invalid"),
            &format!("the verdict's reasons: {reasons:?}"),
        );
    });
}

#[test]
fn with_user_timestamps_a_late_read_is_blamed_on_the_generator() {
    assert_generator_blamed("user", Framing::ContentLength);
}

#[test]
fn a_late_read_of_a_close_delimited_response_is_blamed_on_the_generator() {
    assert_generator_blamed("kernel", Framing::UntilClose);
}
