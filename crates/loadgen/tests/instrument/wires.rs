//! Both HTTP/1.1 implementations over real sockets: for the same responses, split at every byte,
//! they count the same outcomes and connections.

use loadgen::plan::{LoadModel, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::scripted::{ScriptedResponse, ScriptedServer};
use crate::support::{SECOND, assert_consistent, capped, lock_host};

/// Responses, their outcomes, and whether the connection stays open.
const RESPONSES: &[(&str, Outcome, bool)] = &[
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.1 200\nContent-Length: 5, 5\n\nhello",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, close\r\n\r\nhello",
        Outcome::Ok,
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n03 \r\nllo\r\n0\r\nT: \
        v\r\n\r\n",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: \
        chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 \
        OK\r\nContent-Length: 5\r\n\r\nhello",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\nhello",
        Outcome::Ok,
        true,
    ),
    (
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Outcome::Ok,
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nServer: s\r\n\r\nhello",
        Outcome::Ok,
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        Outcome::Ok,
        false,
    ),
    (
        "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
        Outcome::HttpStatus,
        true,
    ),
    (
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        Outcome::HttpStatus,
        true,
    ),
    (
        "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
        Outcome::HttpStatus,
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO",
        Outcome::BadBody,
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        Outcome::BadBody,
        false,
    ),
    (
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Outcome::BadBody,
        false,
    ),
    (
        "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
        Outcome::BadBody,
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
        Outcome::Reset,
        false,
    ),
];

/// "hello" in base64.
const HELLO: &str = "aGVsbG8=";

struct Script {
    responses: Vec<ScriptedResponse>,
    expected: Vec<Outcome>,
    connections: u64,
}

/// Every response, split at each of its bytes.
fn script() -> Script {
    let mut script = Script {
        responses: Vec::new(),
        expected: Vec::new(),
        connections: 1,
    };
    for (stream, outcome, stays_open) in RESPONSES {
        for position in 1..stream.len() {
            let (first, rest) = stream.as_bytes().split_at(position);
            let pieces = vec![first.to_vec(), rest.to_vec()];
            script.responses.push(ScriptedResponse {
                pieces,
                closes: !stays_open,
                ..ScriptedResponse::default()
            });
            script.expected.push(*outcome);
            script.connections += u64::from(!stays_open);
        }
    }

    // If the last response closes its connection, no further request opens another one.
    let (_, _, last_stays_open) = RESPONSES[RESPONSES.len() - 1];
    script.connections -= u64::from(!last_stays_open);
    script
}

fn run_load(script: &Script, wire: Wire) -> LoadReport {
    let server = ScriptedServer::start(script.responses.clone());
    let count = script.responses.len() as u64;
    // Over one connection at a time, the responses have the order of the requests.
    let mut plan = LoadPlan {
        wire,
        ..capped(&server.url(), 1_000.0, count * SECOND / 1_000, 1)
    };
    plan.check.body_base64 = Some(HELLO.to_owned());
    if let LoadModel::Open(open) = &mut plan.load {
        open.max_pending = Some(script.responses.len());
    }
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);
    assert_eq!(report.scheduled(), count);

    report
}

#[test]
fn both_http1_implementations_count_every_response_alike_wherever_it_is_split() {
    let _host = lock_host();
    let script = script();
    for wire in [Wire::Native, Wire::Hyper] {
        let report = run_load(&script, wire);
        for outcome in Outcome::ALL {
            let expected = script
                .expected
                .iter()
                .filter(|expected| **expected == outcome)
                .count() as u64;
            assert_eq!(
                report.outcome(outcome),
                expected,
                "{outcome:?} by {wire:?}: {:?}",
                report.outcomes
            );
        }

        assert_eq!(
            report.connections.opened, script.connections,
            "{wire:?}: {:?}",
            report.connections
        );
    }
}
