//! Routes to the server: Unix sockets, and several source addresses.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use loadgen::plan::{Keepalive, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::byte_servers::{Scripted, UnixServer, answer_all};
use crate::support::{SECOND, alone, assert_sound, capped};

fn all_of_fifty(plan: &LoadPlan) -> LoadReport {
    let report = run(plan, &StopToken::new()).unwrap();
    assert_sound(&report);
    assert_eq!(
        (report.scheduled(), report.outcome(Outcome::Ok)),
        (50, 50),
        "{:?}",
        report.outcomes
    );
    report
}

fn fifty(url: &str) -> LoadPlan {
    capped(url, 100.0, SECOND / 2, 1)
}

#[test]
fn a_unix_socket_carries_a_load() {
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        for (keepalive, connections) in [(Keepalive::On, 1), (Keepalive::Off, 50)] {
            let server = UnixServer::start("way");
            let unix_socket = Some(server.path.display().to_string());
            let report = all_of_fifty(&LoadPlan {
                unix_socket,
                wire,
                keepalive,
                ..fifty("http://any.example/")
            });
            assert_eq!(report.connections.opened, connections);
            assert_eq!(server.seen.connections.load(Ordering::Relaxed), connections);
            assert_eq!(
                report.connections.local_ports, None,
                "a Unix socket needs no port"
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
        ..fifty("http://any.example/")
    };
    let error = run(&plan, &StopToken::new()).unwrap_err().to_string();
    assert!(
        error.contains("/nowhere/server.sock") && error.contains("start the server"),
        "{error}"
    );
}

#[test]
fn connections_come_from_the_given_addresses_in_turn() {
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = Scripted::start(|mut stream, seen| answer_all(&mut stream, seen, b"hello"));
        let source_addresses = vec!["127.0.0.2-127.0.0.4".to_owned(), "127.7.7.0/30".to_owned()];
        let url = format!("http://{}/", server.address);
        let plan = LoadPlan {
            source_addresses,
            wire,
            keepalive: Keepalive::Off,
            ..fifty(&url)
        };
        let report = all_of_fifty(&plan);
        let peers = server.seen.peers.lock().unwrap();
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
        let texts = report
            .connections
            .local_ports
            .and_then(|ports| ports.source_addresses);
        assert_eq!(
            texts,
            Some(vec![
                "127.0.0.2-127.0.0.4".to_owned(),
                "127.7.7.1-127.7.7.2".to_owned()
            ])
        );
    }
}

#[test]
fn more_connections_than_ports_are_refused_before_the_load() {
    let server = Scripted::start(|mut stream, seen| answer_all(&mut stream, seen, b"hello"));
    let url = format!("http://{}/", server.address);
    let source_addresses = vec!["127.0.0.2".to_owned()];
    let plan = LoadPlan {
        source_addresses,
        ..LoadPlan::closed(&url, 70_000, SECOND)
    };
    let error = run(&plan, &StopToken::new()).unwrap_err().to_string();
    // Whichever of the two limits is lower on this machine.
    assert!(
        error.contains("70,000 connections")
            && (error.contains("ports") || error.contains("ulimit")),
        "{error}"
    );
    assert_eq!(server.connections(), 0);
}
