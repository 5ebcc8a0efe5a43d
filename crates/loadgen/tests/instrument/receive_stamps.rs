//! The source of response timestamps, from the plan to the report.

use loadgen::plan::ReceiveStamps;
use loadgen::{LoadPlan, Outcome, StopToken, run};

use crate::scripted::{ScriptedResponse, ScriptedServer};
use crate::support::{MS, SECOND, Trial, constant_hold, constant_rate, lock_host};

/// Runs a load with this source of timestamps; also returns the number of responses with a kernel
/// timestamp.
fn run_stamped(stamps: Option<ReceiveStamps>, plan: impl FnOnce(&str) -> LoadPlan) -> (Trial, u64) {
    let trial = Trial::of(constant_hold(MS), |url| LoadPlan {
        receive_stamps: stamps,
        ..plan(url)
    });
    assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
    let stamped_responses = trial.report.measures().receive_delay.count();
    (trial, stamped_responses)
}

/// Maximum number of responses at the start of a load without a kernel timestamp. Linux enables
/// timestamps in the background when the first socket requests them, so the first packets may have
/// none. The report counts their responses under `user_timestamps`.
const MAX_UNSTAMPED: u64 = 3;

/// Asserts that all 100 responses have a kernel timestamp, except possibly the first ones.
fn assert_all_kernel(trial: &Trial, stamped_responses: u64) {
    let client = &trial.report.client;
    assert_eq!(client.receive_stamps, ReceiveStamps::Kernel);
    assert_eq!(stamped_responses + client.user_timestamps, 100);
    assert!(client.user_timestamps <= MAX_UNSTAMPED, "{client:?}");
}

fn hundred_requests(url: &str) -> LoadPlan {
    constant_rate(url, 200.0, SECOND / 2)
}

#[test]
fn all_responses_have_a_kernel_timestamp_or_none_has() {
    let _host = lock_host();
    let (trial, stamped_responses) = run_stamped(Some(ReceiveStamps::Kernel), hundred_requests);
    assert_all_kernel(&trial, stamped_responses);
    let (trial, stamped_responses) = run_stamped(Some(ReceiveStamps::User), hundred_requests);
    assert_eq!(
        (trial.report.client.receive_stamps, stamped_responses),
        (ReceiveStamps::User, 0)
    );
}

#[test]
fn the_report_counts_responses_without_a_kernel_timestamp() {
    let _host = lock_host();
    let with_length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let until_close = "HTTP/1.1 200 OK\r\n\r\nhello";
    for (unstamped, expected) in [(20, ReceiveStamps::Kernel), (80, ReceiveStamps::User)] {
        let stamped = (unstamped..100).map(|_| ScriptedResponse::of(with_length));
        let server = ScriptedServer::start(
            stamped
                .chain((0..unstamped).map(|_| ScriptedResponse::closing(until_close)))
                .collect(),
        );
        let report = run(
            &constant_rate(&server.url(), 200.0, SECOND / 2),
            &StopToken::new(),
        )
        .expect("a report");

        let client = &report.client;
        assert_eq!(
            (report.outcome(Outcome::Ok), client.receive_stamps),
            (100, expected)
        );

        let expected = unstamped..=unstamped + MAX_UNSTAMPED;
        assert!(expected.contains(&client.user_timestamps), "{client:?}");
    }
}

#[test]
fn by_default_open_loops_have_kernel_timestamps_and_closed_loops_do_not() {
    let _host = lock_host();
    let (trial, stamped_responses) = run_stamped(None, hundred_requests);
    assert_all_kernel(&trial, stamped_responses);
    let (trial, stamped_responses) = run_stamped(None, |url| LoadPlan::closed(url, 2, SECOND / 10));
    assert_eq!(
        (trial.report.client.receive_stamps, stamped_responses),
        (ReceiveStamps::User, 0)
    );
}

#[test]
fn one_connection_in_sixteen_is_sampled() {
    let _host = lock_host();
    let users = 32;
    let (trial, stamped_responses) = run_stamped(Some(ReceiveStamps::Sampled), |url| {
        LoadPlan::closed(url, users, SECOND / 5)
    });
    assert_eq!(trial.report.client.receive_stamps, ReceiveStamps::Sampled);

    // With the same hold, all users send about the same number of requests.
    let share = stamped_responses as f64 / trial.scheduled() as f64;
    assert!(
        (0.03..0.13).contains(&share),
        "{stamped_responses} of {} responses",
        trial.scheduled()
    );
}
