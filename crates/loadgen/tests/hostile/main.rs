//! Hostile servers with every protocol and load model: whatever a server sends, each load ends in
//! time with little memory, and each request has one outcome, which blames the server.
//!
//! `make test-all` runs a part of the scenarios, chosen by a seed; `make test-long` runs all of them. This is a separate program so that other tests do not affect its memory use.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

#[path = "../instrument/byte_servers.rs"]
#[expect(dead_code, reason = "shared with the tests of other servers")]
mod byte_servers;
#[path = "../instrument/resident_memory.rs"]
mod resident_memory;
#[path = "../instrument/support.rs"]
#[expect(dead_code, reason = "shared with the tests of other servers")]
mod support;
#[path = "../instrument/tls_server.rs"]
#[expect(dead_code, reason = "shared with the tests of other servers")]
mod tls_server;

mod attack;
mod attack_server;
mod http1_attacks;
mod http2_attacks;
mod share;
mod trial;
mod way;

use std::collections::BTreeSet;

use loadgen::Outcome;

use crate::attack::{Attack, sends};
use crate::http2_attacks::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, STATUS_200, STREAM, data,
    endless_head_with_many_fields, field, frame,
};
use crate::share::Share;
use crate::support::lock_host;
use crate::tls_server::Certificate;
use crate::trial::{Tally, run_load, run_until_undisturbed};
use crate::way::{LoadVariant, Protocol, Traffic};

/// Default maximum size of an HTTP/2 frame.
const FRAME_BYTES: usize = 16 * 1024;

/// A load of ten requests. Without responses, each opens a new connection.
const OPEN_HTTP2: LoadVariant<'_> = LoadVariant {
    protocol: Protocol::HTTP2[0],
    certificate: None,
    traffic: Traffic::Open,
};

/// Runs each scenario with each of the protocols, with and without TLS, and every kind of traffic.
fn run_all(attacks: &[Attack], protocols: &[Protocol]) {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let mut tally = Tally::default();
    for attack in attacks {
        for &protocol in protocols {
            for certificate in [None, Some(&certificate)] {
                for traffic in Traffic::ALL {
                    let variant = LoadVariant {
                        protocol,
                        certificate,
                        traffic,
                    };
                    if variant.is_possible_with(attack) {
                        tally.note(&run_until_undisturbed(attack, variant), attack, variant);
                    }
                }
            }
        }
    }

    share::print_line(&format!("{} scenarios, {tally}", attacks.len()));
    if !tally.inconclusive.is_empty() {
        let violations = tally.inconclusive.join("; ");
        share::print_line(&format!("INCONCLUSIVE(host): {violations}"));
    }

    assert!(
        tally.violations.is_empty(),
        "{}",
        tally.violations.join("\n")
    );
}

#[test]
fn loads_against_hostile_http1_servers_end_in_time_with_little_memory() {
    run_all(&Share::chosen().of(http1_attacks::all()), &Protocol::HTTP1);
}

#[test]
fn loads_against_hostile_http2_servers_end_in_time_with_little_memory() {
    run_all(&Share::chosen().of(http2_attacks::all()), &Protocol::HTTP2);
}

#[test]
#[ignore = "7 minutes: make test-long"]
fn loads_against_all_hostile_http1_servers_end_in_time_with_little_memory() {
    run_all(&http1_attacks::all(), &Protocol::HTTP1);
}

#[test]
#[ignore = "7 minutes: make test-long"]
fn loads_against_all_hostile_http2_servers_end_in_time_with_little_memory() {
    run_all(&http2_attacks::all(), &Protocol::HTTP2);
}

#[test]
fn each_protocol_has_60_scenarios_with_unique_names() {
    for attacks in [http1_attacks::all(), http2_attacks::all()] {
        let names: BTreeSet<_> = attacks.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), attacks.len(), "duplicate names");
        assert!(names.len() >= 60, "{} scenarios", names.len());
    }
}

#[test]
fn an_http2_head_just_below_the_maximum_length_is_accepted() {
    let _host = lock_host();
    // Each field counts as 136 bytes; the limit is 256 KiB.
    let fields = field("name", &"v".repeat(100)).repeat(1_900);
    let mut pieces = fields.chunks(FRAME_BYTES);
    let mut start = frame(HEADERS, 0, STREAM, STATUS_200);
    let last = pieces.next_back().unwrap();
    for piece in pieces {
        start.extend(frame(CONTINUATION, 0, STREAM, piece));
    }
    start.extend(frame(CONTINUATION, END_HEADERS, STREAM, last));
    start.extend(data(END_STREAM, b"hello"));

    let attack = sends("a large head", start, Outcome::Ok).once_per_connection();
    let report = run_load(&attack, OPEN_HTTP2).report;
    assert_eq!(report.outcome(Outcome::Ok), 10, "{:?}", report.outcomes);
}

#[test]
fn ten_endless_http2_heads_take_little_memory() {
    let _host = lock_host();
    let trial = run_load(&endless_head_with_many_fields(), OPEN_HTTP2);
    let report = &trial.report;
    assert_eq!(
        report.outcome(Outcome::Timeout),
        10,
        "{:?}",
        report.outcomes
    );
    assert_eq!(report.connections.peak, 10);

    if let Some(growth_kib) = trial.growth_kib() {
        share::print_line(&format!("ten heads without end: {growth_kib} KiB"));
        // Includes all other memory of the server and the load.
        assert!(growth_kib < 22_000, "{growth_kib} KiB");
    }
}
