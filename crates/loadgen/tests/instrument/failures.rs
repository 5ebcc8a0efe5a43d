//! F11 and F13: missing and incorrect responses are counted as failures and have no latency.

use std::net::{TcpListener, TcpStream};

use loadgen::plan::{Keepalive, LoadModel, ResponseCheck, Wire};
use loadgen::{LoadPlan, Outcome, StopToken, run};
use refsrv::{Config, Fault, FaultPlan, Framing, Service, When};

use crate::support::{
    MS, SECOND, Trial, assert_consistent, bucket_top, capped, constant_hold, constant_rate,
    judge_timing, lock_host, noise_floor_ns,
};

/// The body of the server's correct responses, in base64.
const HELLO: &str = "aGVsbG8=";

fn with_body_check(plan: LoadPlan) -> LoadPlan {
    LoadPlan {
        check: ResponseCheck {
            body_base64: Some(HELLO.to_owned()),
            ..ResponseCheck::default()
        },
        ..plan
    }
}

fn with_faults(hold_ns: u64, faults: FaultPlan) -> Config {
    Config {
        faults,
        ..constant_hold(hold_ns)
    }
}

/// Asserts these counts of failures, and that all other requests got a correct response.
fn assert_outcomes(trial: &Trial, expected: &[(Outcome, u64)]) {
    for outcome in Outcome::ALL {
        let named = expected
            .iter()
            .find(|(name, _)| *name == outcome)
            .map(|(_, count)| *count);
        let failed: u64 = expected.iter().map(|(_, count)| count).sum();
        let others = if outcome == Outcome::Ok {
            trial.scheduled() - failed
        } else {
            0
        };

        assert_eq!(
            trial.count(outcome),
            named.unwrap_or(others),
            "{outcome:?} in {:?}",
            trial.report.outcomes
        );
    }
}

#[test]
fn f11_timeouts_bound_only_the_quantiles_that_they_affect() {
    judge_timing(|timing| {
        // 1 % of the requests get no response, and 1 % get one long after the timeout.
        let faults = FaultPlan::none()
            .with(Fault::NeverAnswer, When::Every { n: 100, offset: 49 })
            .with(
                Fault::HoldFor(5 * SECOND),
                When::Every { n: 100, offset: 99 },
            );
        let trial = timing.run_trial(with_faults(MS, faults), |url| LoadPlan {
            timeout_ns: SECOND,
            ..constant_rate(url, 500.0, SECOND)
        });
        assert_eq!((trial.scheduled(), trial.stats.arrivals), (500, 500));
        assert_outcomes(&trial, &[(Outcome::Timeout, 10)]);
        assert!(trial.has_reason("failed"));
        let longest_ns = trial.report.measures().response.max_ns();
        assert!(
            longest_ns < Some(SECOND),
            "{longest_ns:?} exceeds the timeout"
        );

        let offered = &trial.report.offered_quantiles_ns;
        for quantile in ["0.5", "0.9", "0.95"] {
            assert_eq!(
                offered[quantile].low, offered[quantile].high,
                "p{quantile} is known exactly"
            );
        }
        timing.assert_min_expect_max(
            "offered p95",
            offered["0.95"].high,
            MS,
            MS + noise_floor_ns(0.95),
        );
        for quantile in ["0.99", "0.999", "0.9999"] {
            assert_eq!(
                offered[quantile].high, None,
                "{quantile} has no finite response time"
            );
            assert!(
                offered[quantile].low >= Some(SECOND),
                "{quantile} is at least the timeout"
            );
            timing.assert_min_expect_max(
                quantile,
                offered[quantile].low,
                SECOND,
                SECOND + noise_floor_ns(0.999),
            );
        }
    });
}

#[test]
fn f13_each_kind_of_failure_is_counted_exactly() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        assert_each_failure_counted(wire);
    }
}

/// Two independent implementations of the protocol must count the same outcomes.
fn assert_each_failure_counted(wire: Wire) {
    // Over one connection, requests arrive in the order of the schedule, and each close affects the
    // next request.
    let faults = FaultPlan::none()
        .with(Fault::Status(503), When::Every { n: 100, offset: 10 })
        .with(Fault::ResetMidBody, When::at(vec![20, 21, 320, 620]))
        .with(Fault::Truncate, When::at(vec![30, 130, 131, 132, 530]))
        .with(Fault::WrongBody, When::at(vec![0, 40, 41, 42, 440, 640]))
        .with(
            Fault::StaleClose,
            When::at(vec![50, 51, 350, 650, 651, 750, 850]),
        );
    let trial = Trial::of(with_faults(0, faults), |url| LoadPlan {
        wire,
        ..with_body_check(capped(url, 1_000.0, SECOND, 1))
    });
    assert_eq!(
        (
            trial.scheduled(),
            trial.stats.arrivals,
            trial.stats.stale_closed
        ),
        (1_000, 993, 7)
    );
    assert_outcomes(
        &trial,
        &[
            (Outcome::HttpStatus, 10),
            (Outcome::Reset, 4 + 5),
            (Outcome::BadBody, 6),
            (Outcome::Stale, 7),
        ],
    );
    let statuses: Vec<(&str, u64)> = trial
        .report
        .status_codes
        .iter()
        .map(|(code, count)| (code.as_str(), *count))
        .collect();
    assert_eq!(statuses, [("200", 1_000 - 10 - 7), ("503", 10)]);

    // 32 of 1,000 requests failed: p95 is finite, p99 is infinite, and neither is a range.
    let offered = &trial.report.offered_quantiles_ns;
    assert!(offered["0.95"].low.is_some() && offered["0.95"].low == offered["0.95"].high);
    for quantile in ["0.99", "0.999", "0.9999"] {
        assert_eq!(
            (offered[quantile].low, offered[quantile].high),
            (None, None),
            "p{quantile} is infinite"
        );
    }

    // Each reset, truncation or stale close ends a connection; an incorrect body or status does
    // not.
    let connections = &trial.report.connections;
    assert_eq!(
        (connections.opened, connections.reused),
        (1 + 4 + 5 + 7, 1_000 - 17)
    );
    assert_eq!(
        (connections.closed_by_server, trial.stats.connections),
        (4 + 5 + 7, 17)
    );
}

#[test]
fn f13_a_response_cut_off_by_a_reset_is_a_failure_even_if_close_delimited() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let faults = FaultPlan::none().with(Fault::ResetMidBody, When::every(2));
        let config = Config {
            framing: Framing::UntilClose,
            ..with_faults(0, faults)
        };
        let trial = Trial::of(config, |url| LoadPlan {
            wire,
            ..constant_rate(url, 200.0, SECOND / 2)
        });

        assert_eq!(trial.scheduled(), 100);
        assert_outcomes(&trial, &[(Outcome::Reset, 50)]);
    }
}

#[test]
fn f13_a_reset_of_a_new_connection_is_a_reset_and_not_stale() {
    let _host = lock_host();
    let faults = FaultPlan::none().with(Fault::Reset, When::every(10));
    let trial = Trial::of(with_faults(0, faults), |url| LoadPlan {
        keepalive: Keepalive::Off,
        ..constant_rate(url, 200.0, SECOND / 2)
    });
    assert_eq!(trial.scheduled(), 100);
    assert_outcomes(&trial, &[(Outcome::Reset, 10)]);
}

#[test]
fn f13_a_storm_of_fast_errors_does_not_make_the_server_look_fast() {
    let _host = lock_host();
    let faults = FaultPlan::none()
        .with(Fault::Status(503), When::Every { n: 5, offset: 0 })
        .with(Fault::Status(503), When::Every { n: 5, offset: 3 });
    let trial = Trial::of(with_faults(20 * MS, faults), |url| {
        constant_rate(url, 500.0, SECOND)
    });
    assert_outcomes(&trial, &[(Outcome::HttpStatus, 200)]);
    assert_eq!(trial.report.measures().response.count(), 300);
    assert!(trial.report.measures().response.min_ns() >= Some(20 * MS));

    let offered = &trial.report.offered_quantiles_ns;
    assert!(offered["0.5"].low >= Some(20 * MS), "{:?}", offered["0.5"]);
    assert_eq!(
        (offered["0.9"].low, offered["0.9"].high),
        (None, None),
        "only 60 % of the requests got a correct response"
    );
}

#[test]
fn f13_without_a_listener_every_request_is_refused() {
    let _host = lock_host();
    // The local port of a connection is taken, but nothing listens on it.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let occupant = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // With another loopback address, the generator cannot connect to itself if the kernel assigns
    // it the same port.
    let url = format!(
        "http://127.0.0.2:{}/",
        occupant.local_addr().unwrap().port()
    );
    let report = run(&constant_rate(&url, 200.0, SECOND / 2), &StopToken::new()).unwrap();

    assert_consistent(&report);
    assert_eq!(
        (report.scheduled(), report.outcome(Outcome::Refused)),
        (100, 100)
    );
    assert!(report.response_time_ns.is_none() && report.status_codes.is_empty());
    assert_eq!(
        (report.connections.opened, report.rate.sent_per_s),
        (0, Some(0.0))
    );
    assert!(
        report
            .offered_quantiles_ns
            .values()
            .all(|bounds| bounds.low.is_none() && bounds.high.is_none())
    );
    assert!(
        report
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.check == "no-response")
    );
}

#[test]
fn a_user_whose_requests_fail_does_not_flood_the_server() {
    let _host = lock_host();
    let faults = FaultPlan::none().with(Fault::Reset, When::every(1));
    let trial = Trial::of(with_faults(0, faults), |url| {
        LoadPlan::closed(url, 1, SECOND / 2)
    });
    // A pause of 10 ms follows each failure.
    assert!(
        (1..=50).contains(&trial.scheduled()),
        "{} requests in half a second",
        trial.scheduled()
    );
    assert_outcomes(&trial, &[(Outcome::Reset, trial.scheduled())]);
    assert_eq!(trial.scheduled(), trial.log.len() as u64);
}

#[test]
fn a_user_sends_another_request_after_a_timeout() {
    let _host = lock_host();
    let faults = FaultPlan::none().with(Fault::NeverAnswer, When::at(vec![3]));
    let trial = Trial::of(with_faults(5 * MS, faults), |url| LoadPlan {
        timeout_ns: 100 * MS,
        ..LoadPlan::closed(url, 1, SECOND / 2)
    });
    assert_outcomes(&trial, &[(Outcome::Timeout, 1)]);
    assert!(matches!(trial.report.plan.load, LoadModel::Closed(_)));
    assert_eq!(trial.scheduled(), trial.stats.arrivals);

    let connections = &trial.report.connections;
    assert_eq!(
        (connections.opened, connections.reused),
        (2, trial.scheduled() - 2),
        "each request opens or reuses a connection, including the one that timed out"
    );

    let requests = connections.requests_per_connection.unwrap();
    assert_eq!(
        (requests.min, requests.max),
        (4, trial.scheduled() - 4),
        "the first connection ends with the fourth request, which timed out"
    );
}

#[test]
fn a_response_slower_than_the_timeout_is_never_correct() {
    let _host = lock_host();
    let holds_ns = vec![MS, 300 * MS];
    let config = Config {
        service: Service::List { holds_ns },
        ..Config::default()
    };
    let trial = Trial::of(config, |url| LoadPlan {
        timeout_ns: 100 * MS,
        ..constant_rate(url, 100.0, SECOND / 2)
    });

    assert_outcomes(&trial, &[(Outcome::Timeout, 25)]);

    let offered = &trial.report.offered_quantiles_ns["0.9"];
    assert!(
        (100 * MS..=bucket_top(150 * MS)).contains(&offered.low.unwrap()) && offered.high.is_none()
    );
}
