//! Whatever a server sends, each request has one outcome in time, and memory use stays small.

use std::time::{Duration, Instant};

use base64::Engine as _;
use loadgen::plan::Wire;
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::resident_memory;
use crate::scripted::{ScriptedResponse, ScriptedServer};
use crate::support::{MS, SECOND, assert_consistent, constant_rate, lock_host};

const REQUESTS: u64 = 5;
const TIMEOUT_NS: u64 = 150 * MS;
const DRAIN_NS: u64 = 3 * SECOND;
/// Much longer than a load takes unless it hangs.
const MAX_LOAD_TIME: Duration = Duration::from_secs(10);
/// Maximum growth of the whole process, including the server's threads and all histograms.
const MAX_GROWTH_KIB: u64 = 48 * 1024;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What the server sends, and the outcome with each HTTP/1.1 implementation.
struct Case {
    name: &'static str,
    response: ScriptedResponse,
    native: Outcome,
    /// Possible outcomes.
    hyper: Vec<Outcome>,
}

fn case(name: &'static str, response: ScriptedResponse, outcome: Outcome) -> Case {
    Case {
        name,
        response,
        native: outcome,
        hyper: vec![outcome],
    }
}

impl Case {
    /// Sets other outcomes for hyper. It reports an error within a body like a broken connection,
    /// except for the source of the error, and does not limit the length of some lines, which
    /// delays even its timeouts.
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
            ScriptedResponse::endless("HTTP/1.1 200 OK\r\nX: ", "a"),
            Outcome::BadBody,
        ),
        case(
            "endless fields",
            ScriptedResponse::endless(head, "a: b\r\n"),
            Outcome::BadBody,
        ),
        case(
            "endless reason",
            ScriptedResponse::endless("HTTP/1.1 200 ", "a"),
            Outcome::BadBody,
        ),
        case(
            "endless empty lines",
            ScriptedResponse::endless("", "\r\n"),
            Outcome::BadBody,
        )
        .with_hyper(&[Outcome::BadBody, Outcome::Timeout]),
        case(
            "endless interim responses",
            ScriptedResponse::endless("", "HTTP/1.1 100 Continue\r\n\r\n"),
            Outcome::Timeout,
        ),
        case(
            "endless body",
            ScriptedResponse::endless("HTTP/1.1 200 OK\r\n\r\n", "a"),
            Outcome::Timeout,
        ),
        case(
            "endless chunks",
            ScriptedResponse::endless(CHUNKED, "1;a=b\r\nx\r\n"),
            Outcome::Timeout,
        )
        .with_hyper(&[Outcome::BadBody]),
        case(
            "endless size",
            ScriptedResponse::endless(CHUNKED, "0"),
            Outcome::BadBody,
        )
        .with_hyper(&[Outcome::Timeout]),
        case(
            "endless extension",
            ScriptedResponse::endless(&chunked("1;"), "a"),
            Outcome::BadBody,
        ),
        case(
            "endless trailer",
            ScriptedResponse::endless(&chunked("0\r\nT: "), "a"),
            Outcome::BadBody,
        ),
        case(
            "endless trailers",
            ScriptedResponse::endless(&chunked("0\r\n"), "a: b\r\n"),
            Outcome::BadBody,
        ),
        case(
            "bad chunk",
            ScriptedResponse::of(chunked("1\r\nxy\r\n")),
            Outcome::BadBody,
        ),
        case(
            "garbage",
            ScriptedResponse::endless("", "\x00\u{ff}\r\n\x16\x03"),
            Outcome::BadBody,
        ),
        case(
            "another protocol",
            ScriptedResponse::of("SSH-2.0-OpenSSH_9.2\r\n"),
            Outcome::BadBody,
        ),
        case(
            "huge length",
            ScriptedResponse::endless(
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
                "a",
            ),
            Outcome::Timeout,
        ),
        case(
            "huge chunk",
            ScriptedResponse::endless(&chunked("7FFFFFFFFFFFFFFF\r\n"), "a"),
            Outcome::Timeout,
        ),
        case("nothing", ScriptedResponse::closing(""), Outcome::Reset),
        case(
            "half a head",
            ScriptedResponse::closing("HTTP/1.1 200 OK\r\nContent-"),
            Outcome::Reset,
        ),
        case(
            "half a body",
            ScriptedResponse::closing("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
            Outcome::Reset,
        ),
        case(
            "half a chunk",
            ScriptedResponse::closing(chunked("a\r\nhalf")),
            Outcome::Reset,
        ),
        case("silence", ScriptedResponse::of(""), Outcome::Timeout),
    ]
}

#[test]
fn each_request_ends_in_time_with_little_memory_whatever_the_server_sends() {
    let _host = lock_host();
    for case in cases() {
        for (wire, expected) in [
            (Wire::Native, &[case.native][..]),
            (Wire::Hyper, &case.hyper),
        ] {
            let server = ScriptedServer::start(vec![case.response.clone()]);
            let report = run_load(&server, wire, |plan| plan);
            assert_eq!(report.scheduled(), REQUESTS);
            assert_outcomes(&report, expected, &format!("{} by {wire:?}", case.name));
        }
    }
}

fn assert_outcomes(report: &LoadReport, expected: &[Outcome], what: &str) {
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

/// Runs the load and asserts what must hold whatever the server sends.
fn run_load(
    server: &ScriptedServer,
    wire: Wire,
    change: impl FnOnce(LoadPlan) -> LoadPlan,
) -> LoadReport {
    let mut plan = LoadPlan {
        wire,
        timeout_ns: TIMEOUT_NS,
        // Keeps the generator at SCHED_OTHER. The server's threads would wait for a real-time
        // thread, and more requests and their bodies would be in memory.
        shares_cores: true,
        ..constant_rate(&server.url(), 50.0, REQUESTS * 20 * MS)
    };
    // On a busy host, a flood delays even timeouts.
    plan.phases.drain_ns = Some(DRAIN_NS);
    let plan = change(plan);
    // The generator keeps several copies of the request.
    let request_kib = plan
        .body_base64
        .as_ref()
        .map_or(0, |body| 8 * body.len() as u64 / 1_024);
    let before_kib = resident_memory::reset_peak_kib();
    let start = Instant::now();
    let report = run(&plan, &StopToken::new()).unwrap();

    assert!(start.elapsed() < MAX_LOAD_TIME, "{:?}", start.elapsed());
    assert_consistent(&report);

    if let (Some(before), Some(after)) = (before_kib, resident_memory::peak_kib()) {
        assert!(
            after <= before + request_kib + MAX_GROWTH_KIB,
            "{before} KiB before, {after} KiB at the peak"
        );
    }

    report
}

#[test]
fn a_connection_with_bytes_after_the_response_is_not_reused() {
    let _host = lock_host();
    let complete = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let in_pieces = |last: &str| ScriptedResponse {
        pieces: vec![complete.into(), last.into()],
        ..ScriptedResponse::default()
    };
    // A second response that is read together with the first one makes that one incorrect, too.
    for (response, is_certainly_correct) in [
        (ScriptedResponse::of(format!("{complete} and more")), true),
        (in_pieces(" and later more"), true),
        (in_pieces(complete), false),
    ] {
        for wire in [Wire::Native, Wire::Hyper] {
            let server = ScriptedServer::start(vec![response.clone()]);
            let report = run_load(&server, wire, |plan| plan);

            let what = format!(
                "{response:?} by {wire:?}: {:?} {:?}",
                report.outcomes, report.connections
            );
            let rejected = report.outcome(Outcome::BadBody);
            assert_eq!(
                (
                    report.outcome(Outcome::Ok) + rejected,
                    report.connections.opened
                ),
                (REQUESTS, REQUESTS),
                "{what}"
            );
            assert!(rejected == 0 || !is_certainly_correct, "{what}");
        }
    }
}

#[test]
fn an_early_response_ends_the_request() {
    let _host = lock_host();
    // More than the socket buffers hold, so that the request cannot be sent completely.
    let body = base64::engine::general_purpose::STANDARD.encode(vec![b'a'; 16 * 1024 * 1024]);
    let refusal =
        "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    // In hyper, the response races with the error about the rest of the request.
    for (wire, expected) in [
        (Wire::Native, &[Outcome::HttpStatus][..]),
        (Wire::Hyper, &[Outcome::HttpStatus, Outcome::Reset]),
    ] {
        let server = ScriptedServer::start(vec![ScriptedResponse {
            is_early: true,
            ..ScriptedResponse::of(refusal)
        }]);
        let report = run_load(&server, wire, |plan| LoadPlan {
            method: "POST".to_owned(),
            body_base64: Some(body.clone()),
            // Sending this body takes long on a busy host.
            timeout_ns: 10 * TIMEOUT_NS,
            ..plan
        });
        assert_outcomes(&report, expected, &format!("{wire:?}"));
    }
}
