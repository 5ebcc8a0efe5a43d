//! Unix sockets and source addresses.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use loadgen::plan::{Keepalive, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::byte_servers::{ThreadedServer, UnixServer, respond_to_all};
use crate::support::{SECOND, assert_consistent, capped, lock_host};

fn run_fifty(plan: &LoadPlan) -> LoadReport {
    let report = run(plan, &StopToken::new()).unwrap();
    assert_consistent(&report);
    assert_eq!(
        (report.scheduled(), report.outcome(Outcome::Ok)),
        (50, 50),
        "{:?}",
        report.outcomes
    );

    report
}

fn fifty_requests(url: &str) -> LoadPlan {
    capped(url, 100.0, SECOND / 2, 1)
}

#[test]
fn a_load_runs_over_a_unix_socket() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        for (keepalive, connections) in [(Keepalive::On, 1), (Keepalive::Off, 50)] {
            let server = UnixServer::start("way");
            let unix_socket = Some(server.path.display().to_string());
            let report = run_fifty(&LoadPlan {
                unix_socket,
                wire,
                keepalive,
                ..fifty_requests("http://any.example/")
            });

            assert_eq!(report.connections.opened, connections);
            assert_eq!(
                server.counters.connections.load(Ordering::Relaxed),
                connections
            );
            assert_eq!(
                report.connections.local_ports, None,
                "Unix sockets need no port"
            );
            assert_eq!(
                report.connections.tracked, None,
                "Unix sockets are not tracked"
            );
        }
    }
}

#[test]
fn a_missing_unix_socket_is_refused_before_the_load() {
    let unix_socket = Some("/nowhere/server.sock".to_owned());
    let plan = LoadPlan {
        unix_socket,
        ..fifty_requests("http://any.example/")
    };
    let error = run(&plan, &StopToken::new()).unwrap_err().to_string();

    assert!(
        error.contains("/nowhere/server.sock") && error.contains("start the server"),
        "{error}"
    );
}

#[test]
fn connections_use_the_source_addresses_in_turn() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = ThreadedServer::start(|mut stream, counters| {
            respond_to_all(&mut stream, counters, b"hello")
        });
        let source_addresses = vec!["127.0.0.2-127.0.0.4".to_owned(), "127.7.7.0/30".to_owned()];
        let url = format!("http://{}/", server.address);
        let plan = LoadPlan {
            source_addresses,
            wire,
            keepalive: Keepalive::Off,
            ..fifty_requests(&url)
        };
        let report = run_fifty(&plan);
        let peers = server.counters.peers.lock().unwrap();
        let expected = [
            "127.0.0.2",
            "127.0.0.3",
            "127.0.0.4",
            "127.7.7.1",
            "127.7.7.2",
        ];
        let expected: Vec<(IpAddr, u64)> = expected
            .iter()
            .map(|text| (text.parse().unwrap(), 10))
            .collect();

        assert_eq!(
            peers
                .iter()
                .map(|(peer, count)| (*peer, *count))
                .collect::<Vec<_>>(),
            expected
        );

        let addresses = report
            .connections
            .local_ports
            .and_then(|ports| ports.source_addresses);
        assert_eq!(
            addresses,
            Some(vec![
                "127.0.0.2-127.0.0.4".to_owned(),
                "127.7.7.1-127.7.7.2".to_owned()
            ])
        );
    }
}

#[test]
fn more_connections_than_ports_are_refused_before_the_load() {
    let server = ThreadedServer::start(|mut stream, counters| {
        respond_to_all(&mut stream, counters, b"hello")
    });
    let url = format!("http://{}/", server.address);
    let source_addresses = vec!["127.0.0.2".to_owned()];
    let plan = LoadPlan {
        source_addresses,
        ..LoadPlan::closed(&url, 70_000, SECOND)
    };
    let error = run(&plan, &StopToken::new()).unwrap_err().to_string();

    // Which of the two limits is lower depends on the machine.
    assert!(
        error.contains("70,000 connections")
            && (error.contains("ports") || error.contains("file descriptors")),
        "{error}"
    );
    assert_eq!(server.connections(), 0);
}
