//! A generator that reads a response late: with kernel timestamps the server is not blamed, and
//! without them the verdict blames the generator.

use std::thread;
use std::time::Duration;

use refsrv::{Config, Framing};
use rustix::process::Signal;
use serde_json::Value;

use crate::child::Generator;
use crate::sleepers::Sleepers;
use crate::support::{MS, Others, Timing, floor_ns, holding, judge, server_with, slot_top, url_of};

const HOLD_NS: u64 = 100 * MS;
/// Twice the hold, so that the response to the request in flight arrives during the pause and
/// waits.
const PAUSE: Duration = Duration::from_millis(200);
/// The rest of the pause after that response arrived, minus the time to stop the process.
const WAITED_NS: u64 = 90 * MS;

/// The report of one user without think time whose generator was stopped once, and the longest
/// response time within the server.
fn stopped_once(timing: &mut Timing, stamps: &str, framing: Framing) -> (Value, u64) {
    let (others, sleepers) = (Others::now(), Sleepers::start());
    let server = server_with(Config {
        framing,
        ..holding(HOLD_NS)
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
    timing.disturbed_by(
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
    (report, in_server_ns.expect("it has answered"))
}

#[test]
fn a_response_that_the_kernel_received_in_time_is_not_slow() {
    judge(3, |timing| {
        let (report, in_server_ns) = stopped_once(timing, "kernel", Framing::ContentLength);
        assert_eq!(report["client"]["receive_stamps"], "kernel");
        let delay_ns = report["receive_delay_ns"]["max"].as_u64();
        timing.expect(
            delay_ns >= Some(WAITED_NS),
            &format!("the response waited for {delay_ns:?} ns"),
        );
        let longest_ns = report["service_time_ns"]["max"].as_u64();
        timing.within(
            "the slowest response",
            longest_ns,
            HOLD_NS,
            slot_top(in_server_ns) + floor_ns(0.999),
        );
    });
}

/// Asserts that the generator took all timestamps, that the response is slow by the pause, and that
/// the verdict explains it.
fn blames_the_generator(stamps: &str, framing: Framing) {
    judge(3, |timing| {
        let (report, _) = stopped_once(timing, stamps, framing);
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
            longest_ns >= Some(HOLD_NS + WAITED_NS),
            &format!("the slowest answer took {longest_ns:?} ns"),
        );
        let waited = report["client"]["stalls"]["responses"].as_u64();
        timing.expect(
            waited >= Some(1),
            &format!("answers that waited: {waited:?}"),
        );
        let reasons = report["verdict"]["reasons"].as_array().expect("reasons");
        let stood_still = reasons
            .iter()
            .find(|reason| reason["check"] == "client-stalls");
        timing.expect(
            stood_still.is_some_and(|reason| reason["level"] == "invalid"),
            &format!("the verdict's reasons: {reasons:?}"),
        );
    });
}

#[test]
fn with_generator_timestamps_the_response_is_slow_and_the_verdict_explains_it() {
    blames_the_generator("user", Framing::ContentLength);
}

#[test]
fn close_delimited_responses_have_no_kernel_timestamp_and_the_verdict_explains_a_slow_one() {
    blames_the_generator("kernel", Framing::UntilClose);
}
