//! The source of a report's response timestamps, end to end.

use loadgen::plan::ReceiveStamps;
use loadgen::{LoadPlan, Outcome, StopToken, run};

use crate::scripted::{Answer, ScriptedServer};
use crate::support::{MS, SECOND, Trial, alone, constant, holding};

/// A load with this source of timestamps, and the number of its responses with a kernel timestamp.
fn stamped(stamps: Option<ReceiveStamps>, plan: impl FnOnce(&str) -> LoadPlan) -> (Trial, u64) {
    let trial = Trial::of(holding(MS), |url| LoadPlan {
        receive_stamps: stamps,
        ..plan(url)
    });
    assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
    let stamped_responses = trial.report.measures().receive_delay.count();
    (trial, stamped_responses)
}

/// Responses of a load that may lack the kernel's timestamp: Linux switches timestamps on in the
/// background once the first socket wants them, so the first packets may still go without. The
/// report counts such responses as timed by the generator.
const UNTIMED_AT_FIRST: u64 = 3;

/// Asserts that all of a hundred responses have a kernel timestamp, except perhaps the first ones.
fn assert_all_kernel(trial: &Trial, stamped_responses: u64) {
    let client = &trial.report.client;
    assert_eq!(client.receive_stamps, ReceiveStamps::Kernel);
    assert_eq!(stamped_responses + client.user_timestamps, 100);
    assert!(client.user_timestamps <= UNTIMED_AT_FIRST, "{client:?}");
}

fn hundred(url: &str) -> LoadPlan {
    constant(url, 200.0, SECOND / 2)
}

#[test]
fn every_response_has_a_kernel_timestamp_or_none_has() {
    let _alone = alone();
    let (trial, stamped_responses) = stamped(Some(ReceiveStamps::Kernel), hundred);
    assert_all_kernel(&trial, stamped_responses);
    let (trial, stamped_responses) = stamped(Some(ReceiveStamps::User), hundred);
    assert_eq!(
        (trial.report.client.receive_stamps, stamped_responses),
        (ReceiveStamps::User, 0)
    );
}

#[test]
fn the_report_counts_responses_without_kernel_timestamp() {
    let _alone = alone();
    let of_five = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let until_close = "HTTP/1.1 200 OK\r\n\r\nhello";
    for (unstamped, expected) in [(20, ReceiveStamps::Kernel), (80, ReceiveStamps::User)] {
        let stamped = (unstamped..100).map(|_| Answer::of(of_five));
        let server = ScriptedServer::start(
            stamped
                .chain((0..unstamped).map(|_| Answer::closing(until_close)))
                .collect(),
        );
        let report = run(
            &constant(&server.url(), 200.0, SECOND / 2),
            &StopToken::new(),
        )
        .expect("a report");
        let client = &report.client;
        assert_eq!(
            (report.outcome(Outcome::Ok), client.receive_stamps),
            (100, expected)
        );
        let expected = unstamped..=unstamped + UNTIMED_AT_FIRST;
        assert!(expected.contains(&client.user_timestamps), "{client:?}");
    }
}

#[test]
fn by_default_open_loops_have_kernel_timestamps_and_closed_loops_do_not() {
    let _alone = alone();
    let (trial, stamped_responses) = stamped(None, hundred);
    assert_all_kernel(&trial, stamped_responses);
    let (trial, stamped_responses) = stamped(None, |url| LoadPlan::closed(url, 2, SECOND / 10));
    assert_eq!(
        (trial.report.client.receive_stamps, stamped_responses),
        (ReceiveStamps::User, 0)
    );
}

#[test]
fn one_connection_in_sixteen_is_sampled() {
    let _alone = alone();
    let users = 32;
    let (trial, stamped_responses) = stamped(Some(ReceiveStamps::Sampled), |url| {
        LoadPlan::closed(url, users, SECOND / 5)
    });
    assert_eq!(trial.report.client.receive_stamps, ReceiveStamps::Sampled);
    // Users with the same hold send about equally often.
    let share = stamped_responses as f64 / trial.scheduled() as f64;
    assert!(
        (0.03..0.13).contains(&share),
        "{stamped_responses} of {} answers",
        trial.scheduled()
    );
}
