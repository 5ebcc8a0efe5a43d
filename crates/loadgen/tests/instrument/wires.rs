//! Both HTTP/1.1 implementations over real sockets: the same responses, split at every byte, give
//! the same counts and connections.

use loadgen::plan::{LoadModel, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::scripted::{Answer, ScriptedServer};
use crate::support::{SECOND, alone, assert_sound, capped};

/// Responses, and their results: correct or not, and whether the connection stays open.
const ANSWERS: &[(&str, Outcome, bool)] = &[
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
    answers: Vec<Answer>,
    expected: Vec<Outcome>,
    connections: u64,
}

/// Every response, split at each of its bytes.
fn script() -> Script {
    let mut script = Script {
        answers: Vec::new(),
        expected: Vec::new(),
        connections: 1,
    };
    for (stream, outcome, lives) in ANSWERS {
        for cut in 1..stream.len() {
            let (one, other) = stream.as_bytes().split_at(cut);
            let pieces = vec![one.to_vec(), other.to_vec()];
            script.answers.push(Answer {
                pieces,
                closes: !lives,
                ..Answer::default()
            });
            script.expected.push(*outcome);
            script.connections += u64::from(!lives);
        }
    }
    // A connection that ends after the last response has no next request that would open another.
    let (_, _, last_lives) = ANSWERS[ANSWERS.len() - 1];
    script.connections -= u64::from(!last_lives);
    script
}

fn drive(script: &Script, wire: Wire) -> LoadReport {
    let server = ScriptedServer::start(script.answers.clone());
    let count = script.answers.len() as u64;
    // Over one connection at a time, so that each request has its own response.
    let mut plan = LoadPlan {
        wire,
        ..capped(&server.url(), 1_000.0, count * SECOND / 1_000, 1)
    };
    plan.check.body_base64 = Some(HELLO.to_owned());
    if let LoadModel::Open(open) = &mut plan.load {
        open.max_pending = Some(script.answers.len());
    }
    let report = run(&plan, &StopToken::new()).unwrap();
    assert_sound(&report);
    assert_eq!(report.scheduled(), count);
    report
}

#[test]
fn both_wires_count_every_response_alike_wherever_it_is_split() {
    let _alone = alone();
    let script = script();
    for wire in [Wire::Native, Wire::Hyper] {
        let report = drive(&script, wire);
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
