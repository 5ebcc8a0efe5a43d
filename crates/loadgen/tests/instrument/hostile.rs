//! Whatever a server sends, each request has one outcome, in time and with little memory.

use std::time::{Duration, Instant};

use base64::Engine as _;
use loadgen::plan::Wire;
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::resident_memory;
use crate::scripted::{Answer, ScriptedServer};
use crate::support::{MS, SECOND, alone, assert_sound, constant};

const REQUESTS: u64 = 5;
const TIMEOUT_NS: u64 = 150 * MS;
const DRAIN_NS: u64 = 3 * SECOND;
/// Much longer than a load takes unless it hangs.
const HANG: Duration = Duration::from_secs(10);
/// Peak of the whole process, including the server's threads and the histograms of both ends.
const GROWTH_LIMIT_KIB: u64 = 48 * 1024;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The server's behavior, and the outcome with each HTTP/1.1 implementation.
struct Case {
    name: &'static str,
    answer: Answer,
    native: Outcome,
    /// Possible outcomes, of which one must occur.
    hyper: Vec<Outcome>,
}

fn case(name: &'static str, answer: Answer, outcome: Outcome) -> Case {
    Case {
        name,
        answer,
        native: outcome,
        hyper: vec![outcome],
    }
}

impl Case {
    /// Differences between the implementations. hyper distinguishes an error within a body from a
    /// broken connection only in the source of its error, and does not limit some lines: it reads
    /// them for so long that even its timeout is late.
    fn with_hyper(self, hyper: &[Outcome]) -> Self {
        Self {
            hyper: hyper.to_vec(),
            ..self
        }
    }
}

fn cases() -> Vec<Case> {
    let chunked = |rest: &str| format!("{CHUNKED}{rest}");
    let head = "HTTP/1.1 200 OK\r\n";
    vec![
        case(
            "endless field",
            Answer::endless("HTTP/1.1 200 OK\r\nX: ", "a"),
            Outcome::BadBody,
        ),
        case(
            "endless fields",
            Answer::endless(head, "a: b\r\n"),
            Outcome::BadBody,
        ),
        case(
            "endless reason",
            Answer::endless("HTTP/1.1 200 ", "a"),
            Outcome::BadBody,
        ),
        case(
            "endless empty lines",
            Answer::endless("", "\r\n"),
            Outcome::BadBody,
        )
        .with_hyper(&[Outcome::BadBody, Outcome::Timeout]),
        case(
            "endless interim answers",
            Answer::endless("", "HTTP/1.1 100 Continue\r\n\r\n"),
            Outcome::Timeout,
        ),
        case(
            "endless body",
            Answer::endless("HTTP/1.1 200 OK\r\n\r\n", "a"),
            Outcome::Timeout,
        ),
        case(
            "endless chunks",
            Answer::endless(CHUNKED, "1;a=b\r\nx\r\n"),
            Outcome::Timeout,
        )
        .with_hyper(&[Outcome::BadBody]),
        case(
            "endless size",
            Answer::endless(CHUNKED, "0"),
            Outcome::BadBody,
        )
        .with_hyper(&[Outcome::Timeout]),
        case(
            "endless extension",
            Answer::endless(&chunked("1;"), "a"),
            Outcome::BadBody,
        ),
        case(
            "endless trailer",
            Answer::endless(&chunked("0\r\nT: "), "a"),
            Outcome::BadBody,
        ),
        case(
            "endless trailers",
            Answer::endless(&chunked("0\r\n"), "a: b\r\n"),
            Outcome::BadBody,
        ),
        case(
            "bad chunk",
            Answer::of(chunked("1\r\nxy\r\n")),
            Outcome::BadBody,
        ),
        case(
            "garbage",
            Answer::endless("", "\x00\u{ff}\r\n\x16\x03"),
            Outcome::BadBody,
        ),
        case(
            "another protocol",
            Answer::of("SSH-2.0-OpenSSH_9.2\r\n"),
            Outcome::BadBody,
        ),
        case(
            "huge length",
            Answer::endless(
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
                "a",
            ),
            Outcome::Timeout,
        ),
        case(
            "huge chunk",
            Answer::endless(&chunked("7FFFFFFFFFFFFFFF\r\n"), "a"),
            Outcome::Timeout,
        ),
        case("nothing", Answer::closing(""), Outcome::Reset),
        case(
            "half a head",
            Answer::closing("HTTP/1.1 200 OK\r\nContent-"),
            Outcome::Reset,
        ),
        case(
            "half a body",
            Answer::closing("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
            Outcome::Reset,
        ),
        case(
            "half a chunk",
            Answer::closing(chunked("a\r\nhalf")),
            Outcome::Reset,
        ),
        case("silence", Answer::of(""), Outcome::Timeout),
    ]
}

#[test]
fn each_request_ends_in_time_with_little_memory_whatever_the_server_sends() {
    let _alone = alone();
    for case in cases() {
        for (wire, expected) in [
            (Wire::Native, &[case.native][..]),
            (Wire::Hyper, &case.hyper),
        ] {
            let server = ScriptedServer::start(vec![case.answer.clone()]);
            let report = drive(&server, wire, |plan| plan);
            assert_eq!(report.scheduled(), REQUESTS);
            assert_all_are(&report, expected, &format!("{} by {wire:?}", case.name));
        }
    }
}

fn assert_all_are(report: &LoadReport, expected: &[Outcome], what: &str) {
    let attributed: u64 = expected
        .iter()
        .map(|outcome| report.outcome(*outcome))
        .sum();
    assert_eq!(
        attributed,
        report.scheduled(),
        "{what}: not {expected:?} but {:?}",
        report.outcomes
    );
}

/// Runs the load and checks what must hold whatever the server did.
fn drive(
    server: &ScriptedServer,
    wire: Wire,
    change: impl FnOnce(LoadPlan) -> LoadPlan,
) -> LoadReport {
    let mut plan = LoadPlan {
        wire,
        timeout_ns: TIMEOUT_NS,
        // The server's threads must not wait for a real-time thread: more requests would be open,
        // and their bodies in memory.
        shares_cores: true,
        ..constant(&server.url(), 50.0, REQUESTS * 20 * MS)
    };
    // On a busy host, a flood delays even a timeout.
    plan.phases.drain_ns = Some(DRAIN_NS);
    let plan = change(plan);
    // The generator keeps several copies of the request.
    let request_kib = plan
        .body_base64
        .as_ref()
        .map_or(0, |body| 8 * body.len() as u64 / 1_024);
    let before_kib = resident_memory::peak_from_now_kib();
    let start = Instant::now();
    let report = run(&plan, &StopToken::new()).unwrap();
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    assert_sound(&report);
    if let (Some(before), Some(after)) = (before_kib, resident_memory::peak_kib()) {
        assert!(
            after <= before + request_kib + GROWTH_LIMIT_KIB,
            "{before} KiB before, {after} KiB at the peak"
        );
    }
    report
}

#[test]
fn a_connection_with_bytes_after_the_response_is_not_reused() {
    let _alone = alone();
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let in_pieces = |last: &str| Answer {
        pieces: vec![whole.into(), last.into()],
        ..Answer::default()
    };
    for answer in [
        Answer::of(format!("{whole} and more")),
        Answer::of(format!("{whole}{whole}")),
        in_pieces(" and later more"),
        in_pieces(whole),
    ] {
        for wire in [Wire::Native, Wire::Hyper] {
            let server = ScriptedServer::start(vec![answer.clone()]);
            let report = drive(&server, wire, |plan| plan);
            let what = format!(
                "{answer:?} by {wire:?}: {:?} {:?}",
                report.outcomes, report.connections
            );
            assert_eq!(
                (report.outcome(Outcome::Ok), report.connections.opened),
                (REQUESTS, REQUESTS),
                "{what}"
            );
        }
    }
}

#[test]
fn a_response_before_the_end_of_the_request_ends_it() {
    let _alone = alone();
    // More than both sockets hold, so that the request cannot be written to its end.
    let body = base64::engine::general_purpose::STANDARD.encode(vec![b'a'; 16 * 1024 * 1024]);
    let refusal =
        "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    // hyper's response races with its error about the rest of the request.
    for (wire, expected) in [
        (Wire::Native, &[Outcome::HttpStatus][..]),
        (Wire::Hyper, &[Outcome::HttpStatus, Outcome::Reset]),
    ] {
        let server = ScriptedServer::start(vec![Answer {
            is_early: true,
            ..Answer::of(refusal)
        }]);
        let report = drive(&server, wire, |plan| LoadPlan {
            method: "POST".to_owned(),
            body_base64: Some(body.clone()),
            // A busy host takes long to write that much.
            timeout_ns: 10 * TIMEOUT_NS,
            ..plan
        });
        assert_all_are(&report, expected, &format!("{wire:?}"));
    }
}
