//! Concurrent requests on one HTTP/2 connection: their number, and their outcomes if a stream or
//! the connection fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{HttpVersion, Keepalive, OnBusy};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::stream_server::{Action, Counters, OpenStream, StreamServer};
use crate::support::{
    MS, SECOND, Timing, assert_consistent, capped, judge_timing, lock_host, open_loop,
};
use crate::tls_server::{Certificate, http2_proxy};

const STREAMS: usize = 4;

/// The next actions of a server, given its open streams and whether no data has arrived for a
/// while.
type BehaviorFn = fn(&[OpenStream], bool) -> Vec<Action>;

fn with_streams(plan: LoadPlan) -> LoadPlan {
    LoadPlan {
        http_version: HttpVersion::Http2,
        streams: STREAMS,
        ..plan
    }
}

fn run_load(server: &StreamServer, plan: LoadPlan) -> (LoadReport, Counters) {
    let report = run(&with_streams(plan), &StopToken::new()).unwrap();
    assert_consistent(&report);
    (report, server.counters())
}

fn run_closed_loop(server: &StreamServer, connections: usize) -> (LoadReport, Counters) {
    run_load(
        server,
        LoadPlan::closed(&server.url(), connections, SECOND / 2),
    )
}

/// Responds to all requests of a connection once it has [`STREAMS`] streams or the client is quiet.
fn respond_when_full(open: &[OpenStream], is_quiet: bool) -> Vec<Action> {
    if open.len() < STREAMS && !is_quiet {
        return Vec::new();
    }
    open.iter().map(|open| Action::Respond(open.id)).collect()
}

/// Whether this is one in five requests of a connection; client streams have odd numbers.
fn is_one_in_five(open: &OpenStream) -> bool {
    open.id / 2 % 5 == 4
}

/// Asserts that client and server count the same connections, requests and responses.
fn assert_counts_agree(report: &LoadReport, counters: &Counters) {
    let details = format!("{:?} {counters:?}", report.outcomes);
    assert!(counters.responses > 40, "{details}");
    assert_eq!(report.outcome(Outcome::Ok), counters.responses, "{details}");
    let connections = &report.connections;
    assert_eq!(connections.opened, counters.connections, "{details}");
    let sent = connections.opened + connections.reused;
    assert_eq!(sent, counters.requests, "{connections:?} {details}");
}

#[test]
fn each_connection_of_a_closed_loop_keeps_its_streams_in_use() {
    let _host = lock_host();
    let server = StreamServer::start(None, respond_when_full);
    let (report, counters) = run_closed_loop(&server, 2);
    assert_counts_agree(&report, &counters);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!((counters.connections, counters.max_streams), (2, STREAMS));
    // A full connection gets its responses at once, so both connections are rarely full at the same
    // time.
    assert!(counters.max_total_streams <= 2 * STREAMS, "{counters:?}");
    assert_eq!(report.connections.allowed_streams, None);
}

#[test]
fn requests_of_an_open_loop_do_not_wait_for_earlier_requests() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], _: bool| {
        let is_due = |open: &&OpenStream| open.since.elapsed() >= Duration::from_millis(50);
        let due = open.iter().filter(is_due);
        due.map(|open| Action::Respond(open.id)).collect()
    });
    // On average, three concurrent requests over one connection.
    let (report, counters) = run_load(&server, capped(&server.url(), 60.0, SECOND, 1));

    assert_counts_agree(&report, &counters);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!(counters.connections, 1);
    assert!(
        (2..=STREAMS).contains(&counters.max_streams),
        "{counters:?}"
    );

    let measures = report.measures();
    assert!(measures.service.min_ns() >= Some(50 * MS));
    assert_eq!(measures.pool_wait.quantile_ns(0.5), Some(0));
}

#[test]
fn the_servers_limit_is_respected_and_reported() {
    let _host = lock_host();
    let server = StreamServer::start(Some(2), |open: &[OpenStream], is_quiet: bool| {
        let is_ready = open.len() >= 2 || is_quiet;
        let ready = open.iter().filter(|_| is_ready);
        ready.map(|open| Action::Respond(open.id)).collect()
    });
    let (report, counters) = run_closed_loop(&server, 2);
    assert_counts_agree(&report, &counters);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!((counters.connections, counters.max_streams), (2, 2));
    assert_eq!(report.connections.allowed_streams, Some(2));

    let sentence = report.connections.streams_sentence(STREAMS).unwrap();
    assert!(
        sentence.contains("allows 2 concurrent streams"),
        "{sentence}"
    );
    assert!(
        report.measures().pool_wait.max_ns() > Some(0),
        "requests wait for a stream"
    );
}

#[test]
fn requests_behind_an_unread_upload_wait_for_the_server() {
    judge_timing(|timing| {
        let server = stalling_server();
        let plan = capped(&server.url(), 10.0, SECOND / 2, 1);
        // The second request is due 400 ms before the server resumes reading.
        expect_waits_behind_upload(timing, &server, plan, 300 * MS);
    });
}

#[test]
fn requests_behind_an_unread_upload_wait_for_the_server_over_tls() {
    judge_timing(|timing| {
        let server = stalling_server();
        let certificate = Certificate::for_names(&["127.0.0.1"]);
        let proxy = http2_proxy(server.address(), &certificate);
        let plan = LoadPlan {
            tls: certificate.trusting_options(),
            ..capped(&format!("https://{}/", proxy.address), 10.0, SECOND / 2, 1)
        };

        // The proxy also buffers a part of the upload, so possibly only a later request waits.
        expect_waits_behind_upload(timing, &server, plan, 100 * MS);
    });
}

/// A server that stops reading for 500 ms after the start of the first request.
fn stalling_server() -> StreamServer {
    const STALL: Duration = Duration::from_millis(500);
    let has_stalled = AtomicBool::new(false);
    StreamServer::start(None, move |open: &[OpenStream], _: bool| {
        if !open.is_empty() && !has_stalled.swap(true, Ordering::Relaxed) {
            sleep(STALL);
        }
        let complete = open.iter().filter(|open| open.is_request_complete);
        complete.map(|open| Action::Respond(open.id)).collect()
    })
}

fn expect_waits_behind_upload(
    timing: &mut Timing,
    server: &StreamServer,
    plan: LoadPlan,
    min_wait_ns: u64,
) {
    // More than the socket buffers hold, so that the heads of the next requests cannot be sent
    // either.
    let body = vec![b'a'; 16 * 1024 * 1024];
    let plan = LoadPlan {
        method: "POST".to_owned(),
        body_base64: Some(STANDARD.encode(body)),
        ..plan
    };
    let report = timing.observe_load(|| run_load(server, plan).0);
    assert_eq!((report.scheduled(), server.counters().connections), (5, 1));
    assert_eq!(report.outcome(Outcome::Ok), 5, "{:?}", report.outcomes);

    let measures = report.measures();
    timing.expect_range(
        "wait",
        measures.pool_wait.max_ns(),
        min_wait_ns,
        10 * SECOND,
    );
    // Encoding 16 MiB takes some time, too.
    timing.expect_range("send lag", measures.send_lag.max_ns(), 0, 100 * MS);
}

#[test]
fn many_frames_on_an_idle_connection_do_not_end_it() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], _: bool| {
        // More frames than one read receives, but too few for a flood.
        let actions = open
            .iter()
            .flat_map(|open| [Action::Respond(open.id), Action::Ping(900)]);
        actions.collect()
    });
    let (report, counters) = run_load(&server, capped(&server.url(), 50.0, SECOND, 1));

    assert_counts_agree(&report, &counters);
    assert_eq!(report.outcome(Outcome::Ok), 50, "{:?}", report.outcomes);
    assert_eq!(counters.connections, 1);
}

#[test]
fn a_timeout_ends_only_its_own_stream() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], _: bool| {
        let others = open.iter().filter(|open| !is_one_in_five(open));
        others.map(|open| Action::Respond(open.id)).collect()
    });
    let plan = LoadPlan {
        timeout_ns: SECOND / 2,
        ..capped(&server.url(), 20.0, 5 * SECOND, 1)
    };
    let (report, mut counters) = run_load(&server, plan);

    // Wait until the server has read the last reset.
    let since = Instant::now();
    while counters.reset_by_client < 20 && since.elapsed() < Duration::from_secs(2) {
        sleep(Duration::from_millis(10));
        counters = server.counters();
    }

    assert_counts_agree(&report, &counters);

    let counts = [Outcome::Ok, Outcome::Timeout].map(|one| report.outcome(one));
    assert_eq!(counts, [80, 20], "{:?}", report.outcomes);
    assert_eq!((counters.connections, counters.reset_by_client), (1, 20));
}

#[test]
fn a_reset_fails_only_its_own_stream() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], is_quiet: bool| {
        let actions = respond_when_full(open, is_quiet).into_iter().zip(open);
        actions
            .map(|(action, open)| {
                if is_one_in_five(open) {
                    Action::Reset(open.id)
                } else {
                    action
                }
            })
            .collect()
    });
    let (report, counters) = run_closed_loop(&server, 2);

    assert_counts_agree(&report, &counters);
    assert_eq!(counters.connections, 2);
    assert!(counters.reset_by_server > 5, "{counters:?}");
    assert_eq!(report.outcome(Outcome::Reset), counters.reset_by_server);

    let ended = counters.responses + counters.reset_by_server;
    assert_eq!(report.scheduled(), ended, "{:?}", report.outcomes);
}

#[test]
fn goaway_fails_only_the_streams_after_its_last_stream() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], is_quiet: bool| {
        let is_late = open.iter().any(|open| open.id > 20);
        match open {
            [first, second, _, _] if is_late => vec![
                Action::GoAway(second.id),
                Action::Respond(first.id),
                Action::Respond(second.id),
            ],
            _ => respond_when_full(open, is_quiet),
        }
    });
    let (report, counters) = run_closed_loop(&server, 2);

    assert_counts_agree(&report, &counters);
    assert!(counters.connections > 2, "{counters:?}");
    assert_eq!(report.outcome(Outcome::Reset), counters.cut_off);
    assert_eq!(report.scheduled(), counters.responses + counters.cut_off);
}

#[test]
fn a_closed_connection_fails_each_of_its_streams_once() {
    let _host = lock_host();
    let server = StreamServer::start(None, |open: &[OpenStream], is_quiet: bool| {
        let is_late = open.iter().any(|open| open.id > 20);
        if is_late && open.len() == STREAMS {
            return vec![Action::Close];
        }
        respond_when_full(open, is_quiet)
    });
    let (report, counters) = run_closed_loop(&server, 2);

    assert_counts_agree(&report, &counters);
    assert!(counters.connections > 2, "{counters:?}");

    let failed = report.outcome(Outcome::Reset) + report.outcome(Outcome::Stale);
    assert_eq!(failed, counters.cut_off, "{:?}", report.outcomes);
    assert_eq!(report.scheduled(), counters.responses + counters.cut_off);

    // At the end of the load, the client closes up to two open connections.
    let by_server = report.connections.closed_by_server;
    assert!(
        by_server + 2 >= counters.connections,
        "{by_server} {counters:?}"
    );
}

#[test]
fn a_connection_carries_no_more_requests_than_planned() {
    let _host = lock_host();
    let server = StreamServer::start(None, respond_when_full);
    let plan = LoadPlan {
        keepalive: Keepalive::Requests(10),
        ..LoadPlan::closed(&server.url(), 2, SECOND / 2)
    };
    let (report, counters) = run_load(&server, plan);

    assert_counts_agree(&report, &counters);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());

    let carried = report.connections.requests_per_connection.unwrap();
    assert_eq!(carried.max, 10, "{carried:?}");
    assert!(
        counters.connections >= counters.requests / 10,
        "{counters:?}"
    );
}

#[test]
fn every_arrival_has_one_outcome_and_no_more_are_in_flight_than_allowed() {
    let _host = lock_host();
    let behaviors: [BehaviorFn; 4] = [
        respond_when_full,
        // Never responds to one request in five.
        |open, is_quiet| {
            let actions = respond_when_full(open, is_quiet).into_iter().zip(open);
            let responses = actions.filter(|(_, open)| !is_one_in_five(open));
            responses.map(|(action, _)| action).collect()
        },
        // Closes the connection after some requests.
        |open, is_quiet| match open {
            [.., last] if last.id > 30 => vec![Action::Close],
            _ => respond_when_full(open, is_quiet),
        },
        // Responds to one request at a time.
        |open, is_quiet| {
            respond_when_full(open, is_quiet)
                .into_iter()
                .take(1)
                .collect()
        },
    ];

    for on_busy in [OnBusy::Grow, OnBusy::Queue, OnBusy::Shed] {
        for (number, behavior) in behaviors.into_iter().enumerate() {
            let server = StreamServer::start(None, behavior);
            let mut plan = capped(&server.url(), 2_000.0, SECOND / 4, 3);
            plan.timeout_ns = 200 * MS;
            plan.threads = 1 + number % 2;
            let open = open_loop(&mut plan);
            (open.on_busy, open.max_pending) = (on_busy, Some(20));
            let (report, counters) = run_load(&server, plan);

            let case = format!(
                "{on_busy:?}, manner {number}: {:?} {counters:?}",
                report.outcomes
            );
            assert_eq!(report.scheduled(), 500, "{case}");
            assert!(report.outcome(Outcome::Ok) > 0, "{case}");
            assert!(report.outcome(Outcome::Ok) <= counters.responses, "{case}");
            let unsent = report.outcome(Outcome::Dropped);
            assert!(counters.requests <= 500 - unsent, "{case}");
            assert!(counters.max_streams <= STREAMS, "{case}");
            assert!(counters.max_total_streams <= 3 * STREAMS, "{case}");
        }
    }
}
