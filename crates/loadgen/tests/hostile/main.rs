//! Hostile servers in every protocol and load model: whatever a server does, each load ends in time
//! with little memory, and each request has one outcome, which blames the server.
//!
//! `make test` runs a part of the scenarios, another part each day; `make test-long` runs all. This
//! is a separate program, so that its memory is not shared with other tests.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

#[path = "../instrument/byte_servers.rs"]
#[expect(dead_code, reason = "shared with the tests of right servers")]
mod byte_servers;
#[path = "../instrument/resident_memory.rs"]
mod resident_memory;
#[path = "../instrument/support.rs"]
#[expect(dead_code, reason = "shared with the tests of right servers")]
mod support;
#[path = "../instrument/tls_server.rs"]
#[expect(dead_code, reason = "shared with the tests of right servers")]
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
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, STATUS_200, STREAM, data, field, frame,
    many_fields_without_end,
};
use crate::share::Share;
use crate::support::alone;
use crate::tls_server::Certificate;
use crate::trial::{Tally, drive, drive_undisturbed};
use crate::way::{Protocol, Traffic, Way};

/// Default maximum size of a frame.
const FRAME_BYTES: usize = 16 * 1024;

/// Ten requests, each on a new connection if none gets a response.
const OPEN_HTTP2: Way<'_> = Way {
    protocol: Protocol::HTTP2[0],
    certificate: None,
    traffic: Traffic::Open,
};

/// Runs each scenario with each protocol, with and without TLS, with every kind of traffic.
fn try_all(attacks: &[Attack], protocols: &[Protocol]) {
    let _alone = alone();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let mut tally = Tally::default();
    for attack in attacks {
        for &protocol in protocols {
            for certificate in [None, Some(&certificate)] {
                for traffic in Traffic::ALL {
                    let way = Way {
                        protocol,
                        certificate,
                        traffic,
                    };
                    if way.is_possible(attack) {
                        tally.note(&drive_undisturbed(attack, way), attack, way);
                    }
                }
            }
        }
    }
    share::print_line(&format!("{} scenarios, {tally}", attacks.len()));
    if !tally.inconclusive.is_empty() {
        let faults = tally.inconclusive.join("; ");
        share::print_line(&format!("INCONCLUSIVE(host): {faults}"));
    }
    assert!(tally.faults.is_empty(), "{}", tally.faults.join("\n"));
}

#[test]
fn each_load_on_a_hostile_http1_server_ends_in_time_and_in_little_memory() {
    try_all(&Share::chosen().of(http1_attacks::all()), &Protocol::HTTP1);
}

#[test]
fn each_load_on_a_hostile_http2_server_ends_in_time_and_in_little_memory() {
    try_all(&Share::chosen().of(http2_attacks::all()), &Protocol::HTTP2);
}

#[test]
#[ignore = "7 minutes: make test-long"]
fn each_load_on_any_hostile_http1_server_ends_in_time_and_in_little_memory() {
    try_all(&http1_attacks::all(), &Protocol::HTTP1);
}

#[test]
#[ignore = "7 minutes: make test-long"]
fn each_load_on_any_hostile_http2_server_ends_in_time_and_in_little_memory() {
    try_all(&http2_attacks::all(), &Protocol::HTTP2);
}

#[test]
fn each_protocol_has_60_scenarios_with_unique_names() {
    for attacks in [http1_attacks::all(), http2_attacks::all()] {
        let names: BTreeSet<_> = attacks.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), attacks.len(), "two have the same name");
        assert!(names.len() >= 60, "{} scenarios", names.len());
    }
}

#[test]
fn an_http2_head_of_nearly_the_permitted_length_is_read() {
    let _alone = alone();
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
    let report = drive(&attack, OPEN_HTTP2).report;
    assert_eq!(report.outcome(Outcome::Ok), 10, "{:?}", report.outcomes);
}

#[test]
fn ten_http2_heads_without_end_take_little_memory() {
    let _alone = alone();
    let trial = drive(&many_fields_without_end(), OPEN_HTTP2);
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
        // Includes the other memory of the server and the load.
        assert!(growth_kib < 22_000, "{growth_kib} KiB");
    }
}
