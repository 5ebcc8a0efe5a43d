//! Several concurrent requests on one HTTP/2 connection: their number, and their outcomes when one
//! of them, or the connection, fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{HttpVersion, Keepalive, OnBusy};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::stream_server::{Act, Open, Seen, StreamServer};
use crate::support::{MS, SECOND, alone, assert_sound, capped, open_loop};
use crate::tls_server::{Certificate, in_front_of};

const STREAMS: usize = 4;

/// What a server does with its open streams, given whether no frame has arrived for a while.
type Acting = fn(&[Open], bool) -> Vec<Act>;

fn over_streams(plan: LoadPlan) -> LoadPlan {
    LoadPlan {
        http_version: HttpVersion::Http2,
        streams: STREAMS,
        ..plan
    }
}

fn drive(server: &StreamServer, plan: LoadPlan) -> (LoadReport, Seen) {
    let report = run(&over_streams(plan), &StopToken::new()).unwrap();
    assert_sound(&report);
    (report, server.seen())
}

fn closed(server: &StreamServer, connections: usize) -> (LoadReport, Seen) {
    drive(
        server,
        LoadPlan::closed(&server.url(), connections, SECOND / 2),
    )
}

/// Responds once all streams of a connection are open, or no more are opened.
fn when_full(open: &[Open], is_quiet: bool) -> Vec<Act> {
    if open.len() < STREAMS && !is_quiet {
        return Vec::new();
    }
    open.iter().map(|open| Act::Answer(open.id)).collect()
}

/// Every fifth request of a connection: client streams have odd numbers.
fn is_fifth(open: &Open) -> bool {
    open.id / 2 % 5 == 4
}

/// Every response of the server is correct, and counted once.
fn assert_answered(report: &LoadReport, seen: &Seen) {
    let details = format!("{:?} {seen:?}", report.outcomes);
    assert!(seen.answered > 40, "{details}");
    assert_eq!(report.outcome(Outcome::Ok), seen.answered, "{details}");
    let connections = &report.connections;
    assert_eq!(connections.opened, seen.connections, "{details}");
    let sent = connections.opened + connections.reused;
    assert_eq!(sent, seen.requests, "{connections:?} {details}");
}

#[test]
fn each_connection_of_a_closed_loop_keeps_its_streams_going() {
    let _alone = alone();
    let server = StreamServer::start(None, when_full);
    let (report, seen) = closed(&server, 2);
    assert_answered(&report, &seen);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!((seen.connections, seen.max_streams), (2, STREAMS));
    // Full connections get their responses at once: both are rarely full at the same time.
    assert!(seen.max_streams_in_all <= 2 * STREAMS, "{seen:?}");
    assert_eq!(report.connections.allowed_streams, None);
}

#[test]
fn requests_of_an_open_loop_do_not_wait_for_earlier_requests() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], _: bool| {
        let is_due = |open: &&Open| open.since.elapsed() >= Duration::from_millis(50);
        let due = open.iter().filter(is_due);
        due.map(|open| Act::Answer(open.id)).collect()
    });
    // Three requests at a time over one connection.
    let (report, seen) = drive(&server, capped(&server.url(), 60.0, SECOND, 1));
    assert_answered(&report, &seen);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!(seen.connections, 1);
    assert!((2..=STREAMS).contains(&seen.max_streams), "{seen:?}");
    let measures = report.measures();
    assert!(measures.service.min_ns() >= Some(50 * MS));
    assert_eq!(measures.pool_wait.quantile_ns(0.5), Some(0));
}

#[test]
fn the_servers_limit_is_respected_and_reported() {
    let _alone = alone();
    let server = StreamServer::start(Some(2), |open: &[Open], is_quiet: bool| {
        let is_ready = open.len() >= 2 || is_quiet;
        let ready = open.iter().filter(|_| is_ready);
        ready.map(|open| Act::Answer(open.id)).collect()
    });
    let (report, seen) = closed(&server, 2);
    assert_answered(&report, &seen);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    assert_eq!((seen.connections, seen.max_streams), (2, 2));
    assert_eq!(report.connections.allowed_streams, Some(2));
    let sentence = report.connections.streams_sentence(STREAMS).unwrap();
    assert!(
        sentence.contains("allows 2 concurrent streams"),
        "{sentence}"
    );
    assert!(
        report.measures().pool_wait.max_ns() > Some(0),
        "for a stream"
    );
}

#[test]
fn requests_behind_an_upload_that_the_server_does_not_read_wait_for_the_server() {
    let _alone = alone();
    let server = stalling_server();
    let plan = capped(&server.url(), 10.0, SECOND / 2, 1);
    // The second request was due 400 ms before the server resumed reading.
    assert_waits_behind_upload(&server, plan, 300 * MS);
}

#[test]
fn requests_behind_an_unread_upload_wait_over_tls_too() {
    let _alone = alone();
    let server = stalling_server();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let front = in_front_of(server.address(), &certificate);
    let plan = LoadPlan {
        tls: certificate.trusted(),
        ..capped(&format!("https://{}/", front.address), 10.0, SECOND / 2, 1)
    };
    // The proxy, too, holds a part of the upload, so only a later request may have to wait.
    assert_waits_behind_upload(&server, plan, 100 * MS);
}

/// A server that pauses reading after the start of the first request.
fn stalling_server() -> StreamServer {
    const STALL: Duration = Duration::from_millis(500);
    let has_stalled = AtomicBool::new(false);
    StreamServer::start(None, move |open: &[Open], _: bool| {
        if !open.is_empty() && !has_stalled.swap(true, Ordering::Relaxed) {
            sleep(STALL);
        }
        let whole = open.iter().filter(|open| open.is_whole);
        whole.map(|open| Act::Answer(open.id)).collect()
    })
}

fn assert_waits_behind_upload(server: &StreamServer, plan: LoadPlan, min_wait_ns: u64) {
    // More than the sockets hold, so that the heads of the next requests cannot be sent either.
    let body = vec![b'a'; 16 * 1024 * 1024];
    let plan = LoadPlan {
        method: "POST".to_owned(),
        body_base64: Some(STANDARD.encode(body)),
        ..plan
    };
    let (report, seen) = drive(server, plan);
    assert_eq!((report.scheduled(), seen.connections), (5, 1));
    assert_eq!(report.outcome(Outcome::Ok), 5, "{:?}", report.outcomes);

    let measures = report.measures();
    let waited_ns = measures.pool_wait.max_ns();
    assert!(waited_ns > Some(min_wait_ns), "{waited_ns:?}");
    let late_ns = measures.send_lag.max_ns();
    assert!(late_ns < Some(100 * MS), "{late_ns:?}");
}

#[test]
fn many_frames_on_an_idle_connection_do_not_end_it() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], _: bool| {
        // More than one read receives, but fewer than a flood.
        let acts = open
            .iter()
            .flat_map(|open| [Act::Answer(open.id), Act::Ping(900)]);
        acts.collect()
    });
    let (report, seen) = drive(&server, capped(&server.url(), 50.0, SECOND, 1));
    assert_answered(&report, &seen);
    assert_eq!(report.outcome(Outcome::Ok), 50, "{:?}", report.outcomes);
    assert_eq!(seen.connections, 1);
}

#[test]
fn a_timeout_ends_its_own_stream_only() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], _: bool| {
        let others = open.iter().filter(|open| !is_fifth(open));
        others.map(|open| Act::Answer(open.id)).collect()
    });
    let plan = LoadPlan {
        timeout_ns: SECOND / 2,
        ..capped(&server.url(), 20.0, 5 * SECOND, 1)
    };
    let (report, mut seen) = drive(&server, plan);
    // The server may not have read the last reset yet.
    let since = Instant::now();
    while seen.reset_by_client < 20 && since.elapsed() < Duration::from_secs(2) {
        sleep(Duration::from_millis(10));
        seen = server.seen();
    }
    assert_answered(&report, &seen);
    let counts = [Outcome::Ok, Outcome::Timeout].map(|one| report.outcome(one));
    assert_eq!(counts, [80, 20], "{:?}", report.outcomes);
    assert_eq!((seen.connections, seen.reset_by_client), (1, 20));
}

#[test]
fn a_reset_fails_its_own_stream_only() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], is_quiet: bool| {
        let acts = when_full(open, is_quiet).into_iter().zip(open);
        acts.map(|(act, open)| {
            if is_fifth(open) {
                Act::Reset(open.id)
            } else {
                act
            }
        })
        .collect()
    });
    let (report, seen) = closed(&server, 2);
    assert_answered(&report, &seen);
    assert_eq!(seen.connections, 2);
    assert!(seen.reset_by_server > 5, "{seen:?}");
    assert_eq!(report.outcome(Outcome::Reset), seen.reset_by_server);
    let ended = seen.answered + seen.reset_by_server;
    assert_eq!(report.scheduled(), ended, "{:?}", report.outcomes);
}

#[test]
fn goaway_fails_the_streams_it_names_and_the_others_get_responses() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], is_quiet: bool| {
        let is_late = open.iter().any(|open| open.id > 20);
        match open {
            [first, second, _, _] if is_late => vec![
                Act::GoAway(second.id),
                Act::Answer(first.id),
                Act::Answer(second.id),
            ],
            _ => when_full(open, is_quiet),
        }
    });
    let (report, seen) = closed(&server, 2);
    assert_answered(&report, &seen);
    assert!(seen.connections > 2, "{seen:?}");
    assert_eq!(report.outcome(Outcome::Reset), seen.cut_off);
    assert_eq!(report.scheduled(), seen.answered + seen.cut_off);
}

#[test]
fn the_end_of_a_connection_fails_each_of_its_streams_once() {
    let _alone = alone();
    let server = StreamServer::start(None, |open: &[Open], is_quiet: bool| {
        let is_late = open.iter().any(|open| open.id > 20);
        if is_late && open.len() == STREAMS {
            return vec![Act::Close];
        }
        when_full(open, is_quiet)
    });
    let (report, seen) = closed(&server, 2);
    assert_answered(&report, &seen);
    assert!(seen.connections > 2, "{seen:?}");
    let failed = report.outcome(Outcome::Reset) + report.outcome(Outcome::Stale);
    assert_eq!(failed, seen.cut_off, "{:?}", report.outcomes);
    assert_eq!(report.scheduled(), seen.answered + seen.cut_off);
    // The client closed the connections that were open at the end of the load.
    let by_server = report.connections.closed_by_server;
    assert!(by_server + 2 >= seen.connections, "{by_server} {seen:?}");
}

#[test]
fn a_connection_carries_no_more_requests_than_planned() {
    let _alone = alone();
    let server = StreamServer::start(None, when_full);
    let plan = LoadPlan {
        keepalive: Keepalive::Requests(10),
        ..LoadPlan::closed(&server.url(), 2, SECOND / 2)
    };
    let (report, seen) = drive(&server, plan);
    assert_answered(&report, &seen);
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    let carried = report.connections.requests_per_connection.unwrap();
    assert_eq!(carried.max, 10, "{carried:?}");
    assert!(seen.connections >= seen.requests / 10, "{seen:?}");
}

#[test]
fn every_arrival_has_one_outcome_and_no_more_are_in_flight_than_allowed() {
    let _alone = alone();
    let manners: [Acting; 4] = [
        when_full,
        // Never responds on some streams.
        |open, is_quiet| {
            let acts = when_full(open, is_quiet).into_iter().zip(open);
            let answered = acts.filter(|(_, open)| !is_fifth(open));
            answered.map(|(act, _)| act).collect()
        },
        // Ends the connection after some.
        |open, is_quiet| match open {
            [.., last] if last.id > 30 => vec![Act::Close],
            _ => when_full(open, is_quiet),
        },
        // Responds on too few streams.
        |open, is_quiet| when_full(open, is_quiet).into_iter().take(1).collect(),
    ];
    for on_busy in [OnBusy::Grow, OnBusy::Queue, OnBusy::Shed] {
        for (number, manner) in manners.into_iter().enumerate() {
            let server = StreamServer::start(None, manner);
            let mut plan = capped(&server.url(), 2_000.0, SECOND / 4, 3);
            plan.timeout_ns = 200 * MS;
            plan.threads = 1 + number % 2;
            let open = open_loop(&mut plan);
            (open.on_busy, open.max_pending) = (on_busy, Some(20));
            let (report, seen) = drive(&server, plan);

            let case = format!(
                "{on_busy:?}, manner {number}: {:?} {seen:?}",
                report.outcomes
            );
            assert_eq!(report.scheduled(), 500, "{case}");
            assert!(report.outcome(Outcome::Ok) > 0, "{case}");
            assert!(report.outcome(Outcome::Ok) <= seen.answered, "{case}");
            let unsent = report.outcome(Outcome::Dropped);
            assert!(seen.requests <= 500 - unsent, "{case}");
            assert!(seen.max_streams <= STREAMS, "{case}");
            assert!(seen.max_streams_in_all <= 3 * STREAMS, "{case}");
        }
    }
}
