//! Lifetimes of connections, and which side closes them.

use loadgen::plan::{HttpVersion, Keepalive, Wire};
use loadgen::{LoadPlan, Outcome, StopToken, run};
use refsrv::{Config, Framing};

use crate::scripted::{Answer, ScriptedServer};
use crate::support::{SECOND, Trial, alone, capped, constant, judge_timing};

/// A hundred requests over one connection at a time.
fn hundred(config: Config, keepalive: Keepalive) -> Trial {
    let trial = Trial::of(config, |url| plan_of_hundred(url, keepalive));
    assert_both_ends_agree(&trial);
    trial
}

fn plan_of_hundred(url: &str, keepalive: Keepalive) -> LoadPlan {
    LoadPlan {
        keepalive,
        ..capped(url, 200.0, SECOND / 2, 1)
    }
}

fn assert_both_ends_agree(trial: &Trial) {
    assert_eq!(trial.scheduled(), 100);
    let connections = &trial.report.connections;
    assert_eq!(
        connections.opened, trial.stats.connections,
        "both ends counted the same connections"
    );
    assert_eq!(
        connections.opened + connections.reused,
        100,
        "each request opened or reused a connection"
    );
    assert_eq!(connections.peak, 1);
}

fn all_answered(trial: &Trial) {
    assert_eq!(
        (trial.count(Outcome::Ok), trial.log.len()),
        (100, 100),
        "{:?}",
        trial.report.outcomes
    );
}

#[test]
fn a_kept_connection_carries_every_request() {
    let _alone = alone();
    let trial = hundred(Config::default(), Keepalive::On);
    all_answered(&trial);
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
        "the connection that was open to the end"
    );
}

#[test]
fn without_keep_alive_every_request_has_its_own_connection() {
    let _alone = alone();
    let trial = hundred(Config::default(), Keepalive::Off);
    all_answered(&trial);
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
fn with_a_limit_of_three_each_connection_carries_three_requests() {
    let _alone = alone();
    let trial = hundred(Config::default(), Keepalive::Requests(3));
    all_answered(&trial);
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
        "the last connection carried the hundredth alone"
    );
    assert!(
        (requests.mean - 100.0 / 34.0).abs() < 1e-9,
        "{}",
        requests.mean
    );
}

#[test]
fn a_close_that_the_server_announces_fails_no_request() {
    let _alone = alone();
    for (per_connection, opened) in [(1, 100), (4, 25), (7, 15)] {
        let config = Config {
            requests_per_connection: Some(per_connection),
            ..Config::default()
        };
        let trial = hundred(config, Keepalive::On);
        all_answered(&trial);
        let connections = &trial.report.connections;
        assert_eq!(connections.opened, opened);
        assert_eq!(connections.closed_by_server, 100 / per_connection);
    }
}

#[test]
fn a_close_delimited_response_is_correct_and_ends_the_connection() {
    let _alone = alone();
    let trial = hundred(
        Config {
            framing: Framing::UntilClose,
            ..Config::default()
        },
        Keepalive::On,
    );
    all_answered(&trial);
    assert_eq!(
        (
            trial.report.connections.opened,
            trial.report.connections.closed_by_server
        ),
        (100, 100)
    );
}

#[test]
fn a_connection_that_the_client_closes_after_bad_data_is_not_counted_as_closed_by_the_server() {
    let _alone = alone();
    for (answer, outcome) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more",
            Outcome::Ok,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", Outcome::BadBody),
    ] {
        let server = ScriptedServer::start(vec![Answer::of(answer)]);
        let report = run(
            &constant(&server.url(), 100.0, SECOND / 5),
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
            "{answer}"
        );
    }
}

#[test]
fn a_request_with_connection_close_is_the_last_on_its_connection() {
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        let trial = Trial::of(
            Config {
                announce_close: false,
                ..Config::default()
            },
            |url| LoadPlan {
                headers: vec![("Connection".to_owned(), "close".to_owned())],
                wire,
                ..plan_of_hundred(url, Keepalive::On)
            },
        );
        all_answered(&trial);
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
        let trial = timing.trial(config, |url| plan_of_hundred(url, Keepalive::On));
        assert_both_ends_agree(&trial);
        // A request may cross with the close; it is then stale, and the server never received it.
        let (ok, stale) = (trial.count(Outcome::Ok), trial.count(Outcome::Stale));
        assert_eq!((ok + stale, ok), (100, trial.log.len() as u64));
        timing.expect(
            stale == 0,
            &format!("{stale} of 100 requests, 5 ms after the close, did not notice it"),
        );
        // Nothing detects the last close: no request followed it.
        let unnoticed = trial.report.connections.opened - trial.report.connections.closed_by_server;
        assert!(unnoticed <= 1, "{unnoticed} closes were not noticed");
    });
}

#[test]
fn every_request_that_races_with_a_close_is_counted() {
    let _alone = alone();
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
fn two_threads_reuse_their_own_connections_and_count_them_together() {
    judge_timing(|timing| {
        let trial = timing.trial(Config::default(), |url| LoadPlan {
            threads: 2,
            ..constant(url, 400.0, SECOND / 2)
        });
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (200, 200, 200)
        );
        let opened = trial.report.connections.opened;
        assert_eq!(opened, trial.stats.connections);
        assert_eq!(opened + trial.report.connections.reused, 200);
        // Responses take much less than the 5 ms between two sends of a thread, so one connection
        // is usually enough.
        timing.expect((2..=10).contains(&opened), &format!("{opened} connections"));
    });
}

#[test]
fn an_http_1_0_connection_is_reused_only_if_both_sides_agree() {
    let _alone = alone();
    let agreeing = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi";
    let silent = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    for (answer, keepalive, opened) in [
        (agreeing, Keepalive::On, 1),
        (silent, Keepalive::On, 20),
        (agreeing, Keepalive::Off, 20),
    ] {
        let server = ScriptedServer::start(vec![Answer::of(answer)]);
        let plan = LoadPlan {
            http_version: HttpVersion::Http1_0,
            keepalive,
            ..capped(&server.url(), 100.0, SECOND / 5, 1)
        };
        let report = run(&plan, &StopToken::new()).expect("a report");
        assert_eq!((report.scheduled(), report.outcome(Outcome::Ok)), (20, 20));
        assert_eq!(
            report.connections.opened, opened,
            "{answer:?} {keepalive:?}"
        );
    }
}
