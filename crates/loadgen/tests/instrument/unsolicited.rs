//! Responses that arrive before their request is sent are not taken for its response.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use loadgen::plan::{HttpVersion, Wire};
use loadgen::{Level, LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::byte_servers::ThreadedServer;
use crate::scripted::{ScriptedResponse, ScriptedServer};
use crate::support::{MS, SECOND, assert_consistent, constant_rate, lock_host};

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";

const CAUSE: &str = "unsolicited response";

/// Longer than a reused connection is idle in these tests.
const MOMENT: Duration = Duration::from_millis(2);

/// Every HTTP/1 implementation.
const VARIANTS: [(Wire, HttpVersion); 3] = [
    (Wire::Native, HttpVersion::Http1),
    (Wire::Native, HttpVersion::Http1_0),
    (Wire::Hyper, HttpVersion::Http1),
];

fn run_load(plan: &LoadPlan) -> LoadReport {
    let report = run(plan, &StopToken::new()).unwrap();
    assert_consistent(&report);
    report
}

/// Whether the head of another request arrives.
fn takes_head(stream: &mut TcpStream) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A server that responds to the first request twice, and so sends each further response before it
/// gets the request.
fn one_response_ahead() -> ThreadedServer {
    ThreadedServer::start(|mut stream, _| {
        stream.set_nodelay(true).unwrap();
        let mut is_sent = takes_head(&mut stream) && stream.write_all(RESPONSE.as_bytes()).is_ok();
        std::thread::sleep(MOMENT);
        is_sent = is_sent && stream.write_all(RESPONSE.as_bytes()).is_ok();
        while is_sent && takes_head(&mut stream) {
            is_sent = stream.write_all(RESPONSE.as_bytes()).is_ok();
        }
    })
}

#[test]
fn every_connection_of_a_closed_loop_with_an_unsolicited_response_is_named() {
    let _host = lock_host();
    let server = one_response_ahead();
    for (wire, http_version) in VARIANTS {
        let report = run_load(&LoadPlan {
            wire,
            http_version,
            ..LoadPlan::closed(&format!("http://{}/", server.address), 4, 100 * MS)
        });

        let failures = &report.connections.failures;
        let named: u64 = failures
            .iter()
            .filter(|(cause, _)| cause.contains(CAUSE))
            .map(|(_, count)| count)
            .sum();
        let rejected = report.outcome(Outcome::BadBody);
        assert!(
            named >= rejected.max(4),
            "{wire:?}: {failures:?} {:?}",
            report.outcomes
        );
        assert_eq!(rejected + report.outcome(Outcome::Ok), report.scheduled());
    }
}

/// Each response takes the server long enough that none arrives before its request is sent.
#[test]
fn a_slow_server_that_is_one_response_ahead_makes_a_closed_loop_invalid() {
    let _host = lock_host();
    let server = ThreadedServer::start(|mut stream, _| {
        stream.set_nodelay(true).unwrap();
        let mut is_sent = takes_head(&mut stream) && stream.write_all(RESPONSE.as_bytes()).is_ok();
        while is_sent {
            std::thread::sleep(Duration::from_millis(30));
            is_sent = stream.write_all(RESPONSE.as_bytes()).is_ok() && takes_head(&mut stream);
        }
    });
    for (wire, http_version) in VARIANTS {
        let report = run_load(&LoadPlan {
            wire,
            http_version,
            ..LoadPlan::closed(&format!("http://{}/", server.address), 2, SECOND / 2)
        });

        let reasons = &report.verdict.reasons;
        assert!(
            reasons
                .iter()
                .any(|one| (one.check.as_str(), one.level)
                    == ("unsolicited-responses", Level::Invalid)),
            "{wire:?}: {reasons:?} {:?}",
            report.outcomes
        );
    }
}

#[test]
fn an_open_loop_does_not_reuse_a_connection_with_an_unsolicited_response() {
    let _host = lock_host();
    let server = one_response_ahead();
    for (wire, http_version) in VARIANTS {
        let report = run_load(&LoadPlan {
            wire,
            http_version,
            ..constant_rate(&format!("http://{}/", server.address), 50.0, SECOND / 2)
        });

        let failures = &report.connections.failures;
        assert!(
            failures.len() == 1 && failures.keys().all(|cause| cause.contains(CAUSE)),
            "{wire:?}: {failures:?} {:?}",
            report.outcomes
        );
        assert!(report.connections.opened > 10, "{:?}", report.connections);
    }
}

#[test]
fn a_response_with_another_one_behind_it_is_rejected() {
    let _host = lock_host();
    let server = ScriptedServer::start(vec![ScriptedResponse::of(RESPONSE.repeat(2))]);
    for (wire, http_version) in VARIANTS {
        let report = run_load(&LoadPlan {
            wire,
            http_version,
            ..constant_rate(&server.url(), 50.0, SECOND / 5)
        });
        assert_eq!(
            report.outcome(Outcome::BadBody),
            10,
            "{wire:?}: {:?}",
            report.outcomes
        );

        // hyper does not keep responses.
        let reasons = report.wrong_responses.iter();
        let reasons: Vec<&str> = reasons.filter_map(|one| one.reason.as_deref()).collect();
        assert_eq!(reasons.len(), usize::from(wire == Wire::Native));
        assert!(
            reasons.iter().all(|reason| reason.contains(CAUSE)),
            "{reasons:?}"
        );
    }
}

#[test]
fn a_server_may_announce_that_it_closes_an_idle_connection() {
    let _host = lock_host();
    let server = ThreadedServer::start(|mut stream, _| {
        stream.set_nodelay(true).unwrap();
        if takes_head(&mut stream) && stream.write_all(RESPONSE.as_bytes()).is_ok() {
            std::thread::sleep(MOMENT);
            let _ = stream.write_all(
                b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    for (wire, http_version) in VARIANTS {
        let report = run_load(&LoadPlan {
            wire,
            http_version,
            ..constant_rate(&format!("http://{}/", server.address), 20.0, SECOND / 2)
        });
        // A delayed server may send it only after the next request.
        let answered = report.outcome(Outcome::Ok) + report.outcome(Outcome::HttpStatus);
        assert_eq!(answered, 10, "{:?}", report.outcomes);
        assert!(report.connections.failures.is_empty());
        assert!(report.connections.closed_by_server >= 5);
    }
}
