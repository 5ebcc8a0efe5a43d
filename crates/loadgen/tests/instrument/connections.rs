//! Connection reuse, and which side closes connections.

use loadgen::plan::{HttpVersion, Keepalive, Wire};
use loadgen::{LoadPlan, Outcome, StopToken, run};
use refsrv::{Config, Framing};

use crate::scripted::{ScriptedResponse, ScriptedServer};
use crate::support::{SECOND, Trial, capped, constant_rate, judge_timing, lock_host};

/// Runs a hundred requests over one connection at a time.
fn run_hundred(config: Config, keepalive: Keepalive) -> Trial {
    let trial = Trial::of(config, |url| hundred_requests(url, keepalive));
    assert_client_and_server_agree(&trial);
    trial
}

fn hundred_requests(url: &str, keepalive: Keepalive) -> LoadPlan {
    LoadPlan {
        keepalive,
        ..capped(url, 200.0, SECOND / 2, 1)
    }
}

fn assert_client_and_server_agree(trial: &Trial) {
    assert_eq!(trial.scheduled(), 100);

    let connections = &trial.report.connections;
    assert_eq!(
        connections.opened, trial.stats.connections,
        "client and server count the same connections"
    );
    assert_eq!(
        connections.opened + connections.reused,
        100,
        "each request opens or reuses a connection"
    );
    assert_eq!(connections.peak, 1);
}

fn assert_all_correct(trial: &Trial) {
    assert_eq!(
        (trial.count(Outcome::Ok), trial.log.len()),
        (100, 100),
        "{:?}",
        trial.report.outcomes
    );
}

#[test]
fn with_keep_alive_one_connection_carries_every_request() {
    let _host = lock_host();
    let trial = run_hundred(Config::default(), Keepalive::On);
    assert_all_correct(&trial);

    let connections = &trial.report.connections;
    assert_eq!(
        (
            connections.opened,
            connections.reused,
            connections.closed_by_server
        ),
        (1, 99, 0)
    );
    assert_eq!(trial.report.measures().connect.count(), 1);

    let requests = connections.requests_per_connection.unwrap();
    assert_eq!(
        (requests.min, requests.max),
        (100, 100),
        "a connection that is open at the end counts"
    );
}

#[test]
fn without_keep_alive_every_request_has_its_own_connection() {
    let _host = lock_host();
    let trial = run_hundred(Config::default(), Keepalive::Off);
    assert_all_correct(&trial);

    let connections = &trial.report.connections;
    assert_eq!(
        (
            connections.opened,
            connections.reused,
            connections.closed_by_server
        ),
        (100, 0, 0)
    );

    let requests = connections.requests_per_connection.unwrap();
    assert_eq!((requests.min, requests.max), (1, 1));
    assert_eq!(
        trial.report.measures().connect.count(),
        100,
        "connecting is part of each response time"
    );
}

#[test]
fn with_keep_alive_for_three_requests_each_connection_carries_three() {
    let _host = lock_host();
    let trial = run_hundred(Config::default(), Keepalive::Requests(3));
    assert_all_correct(&trial);

    let connections = &trial.report.connections;
    assert_eq!(
        (connections.opened, connections.closed_by_server),
        (34, 0),
        "100 / 3, rounded up"
    );

    let requests = connections.requests_per_connection.unwrap();
    assert_eq!(
        (requests.min, requests.max),
        (1, 3),
        "the last connection carries only the hundredth request"
    );
    assert!(
        (requests.mean - 100.0 / 34.0).abs() < 1e-9,
        "{}",
        requests.mean
    );
}

#[test]
fn an_announced_close_fails_no_request() {
    let _host = lock_host();
    for (per_connection, opened) in [(1, 100), (4, 25), (7, 15)] {
        let config = Config {
            requests_per_connection: Some(per_connection),
            ..Config::default()
        };
        let trial = run_hundred(config, Keepalive::On);
        assert_all_correct(&trial);

        let connections = &trial.report.connections;
        assert_eq!(connections.opened, opened);
        assert_eq!(connections.closed_by_server, 100 / per_connection);
    }
}

#[test]
fn a_close_delimited_response_is_correct_and_ends_the_connection() {
    let _host = lock_host();
    let trial = run_hundred(
        Config {
            framing: Framing::UntilClose,
            ..Config::default()
        },
        Keepalive::On,
    );

    assert_all_correct(&trial);
    assert_eq!(
        (
            trial.report.connections.opened,
            trial.report.connections.closed_by_server
        ),
        (100, 100)
    );
}

#[test]
fn a_connection_closed_by_the_client_after_bad_data_is_not_counted_as_closed_by_the_server() {
    let _host = lock_host();
    for (response, outcome) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more",
            Outcome::Ok,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", Outcome::BadBody),
    ] {
        let server = ScriptedServer::start(vec![ScriptedResponse::of(response)]);
        let report = run(
            &constant_rate(&server.url(), 100.0, SECOND / 5),
            &StopToken::new(),
        )
        .expect("a report");
        assert_eq!((report.scheduled(), report.outcome(outcome)), (20, 20));
        assert_eq!(
            (
                report.connections.opened,
                report.connections.closed_by_server
            ),
            (20, 0),
            "{response}"
        );
    }
}

#[test]
fn a_request_with_connection_close_is_the_last_on_its_connection() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let trial = Trial::of(
            Config {
                announce_close: false,
                ..Config::default()
            },
            |url| LoadPlan {
                headers: vec![("Connection".to_owned(), "close".to_owned())],
                wire,
                ..hundred_requests(url, Keepalive::On)
            },
        );

        assert_all_correct(&trial);
        assert_eq!(
            (
                trial.report.connections.opened,
                trial.report.connections.closed_by_server
            ),
            (100, 0)
        );
    }
}

#[test]
fn an_unannounced_close_is_noticed_before_the_next_request() {
    judge_timing(|timing| {
        let config = Config {
            requests_per_connection: Some(1),
            announce_close: false,
            ..Config::default()
        };
        let trial = timing.run_trial(config, |url| hundred_requests(url, Keepalive::On));
        assert_client_and_server_agree(&trial);

        // A request that races with the close is stale, and the server never receives it.
        let (ok, stale) = (trial.count(Outcome::Ok), trial.count(Outcome::Stale));
        assert_eq!((ok + stale, ok), (100, trial.log.len() as u64));
        timing.expect(
            stale == 0,
            &format!("{stale} of 100 requests were sent 5 ms after the close"),
        );

        // The last close may be unnoticed, because no request follows.
        let unnoticed = trial.report.connections.opened - trial.report.connections.closed_by_server;
        assert!(unnoticed <= 1, "{unnoticed} closes were not noticed");
    });
}

#[test]
fn every_request_that_races_with_a_close_is_counted() {
    let _host = lock_host();
    let config = Config {
        requests_per_connection: Some(2),
        announce_close: false,
        ..Config::default()
    };
    let trial = Trial::of(config, |url| LoadPlan::closed(url, 1, SECOND / 2));
    let (ok, stale) = (trial.count(Outcome::Ok), trial.count(Outcome::Stale));

    assert_eq!(
        (ok + stale, ok),
        (trial.scheduled(), trial.log.len() as u64),
        "{:?}",
        trial.report.outcomes
    );

    let connections = &trial.report.connections;
    assert_eq!(connections.opened, trial.stats.connections);
    assert_eq!(connections.opened + connections.reused, trial.scheduled());
}

#[test]
fn each_thread_reuses_its_own_connections_and_the_report_adds_them_up() {
    judge_timing(|timing| {
        let trial = timing.run_trial(Config::default(), |url| LoadPlan {
            threads: 2,
            ..constant_rate(url, 400.0, SECOND / 2)
        });
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (200, 200, 200)
        );

        let opened = trial.report.connections.opened;
        assert_eq!(opened, trial.stats.connections);
        assert_eq!(opened + trial.report.connections.reused, 200);
        // Responses take much less than the 5 ms between two sends of a thread, so one connection
        // per thread is usually enough.
        timing.expect((2..=10).contains(&opened), &format!("{opened} connections"));
    });
}

#[test]
fn an_http_1_0_connection_is_reused_only_if_both_sides_agree() {
    let _host = lock_host();
    let with_keep_alive =
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi";
    let without_keep_alive = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    for (response, keepalive, opened) in [
        (with_keep_alive, Keepalive::On, 1),
        (without_keep_alive, Keepalive::On, 20),
        (with_keep_alive, Keepalive::Off, 20),
    ] {
        let server = ScriptedServer::start(vec![ScriptedResponse::of(response)]);
        let plan = LoadPlan {
            http_version: HttpVersion::Http1_0,
            keepalive,
            ..capped(&server.url(), 100.0, SECOND / 5, 1)
        };
        let report = run(&plan, &StopToken::new()).expect("a report");
        assert_eq!((report.scheduled(), report.outcome(Outcome::Ok)), (20, 20));
        assert_eq!(
            report.connections.opened, opened,
            "{response:?} {keepalive:?}"
        );
    }
}
