//! The server on real sockets. Counts and orders are exact; times only have lower bounds, because
//! the machine may be busy with something else.

mod common;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::{Client, GET, TIMEOUT, log_of, start};
use refsrv::{
    Config, Endpoint, Fault, FaultPlan, Framing, Lateness, LogEntry, Outcome, ReferenceServer,
    Service, StartError, When, clock,
};

const MS: u64 = 1_000_000;

fn constant(hold_ns: u64) -> Config {
    Config {
        service: Service::Constant { hold_ns },
        ..Config::default()
    }
}

/// One fault, on arrival number 1.
fn faulty(fault: Fault) -> ReferenceServer {
    start(Config {
        faults: FaultPlan::none().with(fault, When::at(vec![1])),
        ..constant(MS)
    })
}

#[expect(clippy::print_stdout, reason = "shown on failure and by --nocapture")]
fn assert_never_early(log: &[LogEntry]) {
    for entry in log {
        if let Some(write_ns) = entry.write_ns {
            assert!(write_ns >= entry.finish_ns, "{entry:?} was written early");
        }
    }
    if let Some(lateness) = Lateness::of(log) {
        println!("{lateness}");
    }
}

#[test]
fn a_response_is_never_earlier_than_its_hold() {
    let server = start(constant(3 * MS));
    let mut client = Client::connect(server.addr());
    for _ in 0..50 {
        let sent_ns = clock::now_ns();
        let response = client.get().expect("a response");
        let received_ns = clock::now_ns();

        assert_eq!(
            (response.status, response.body.as_slice()),
            (200, b"hello".as_slice())
        );
        assert!(response.number("X-Arrive") >= sent_ns);
        assert!(response.number("X-Write") >= response.number("X-Arrive") + 3 * MS);
        assert!(received_ns >= response.number("X-Write"));
    }

    let log = log_of(&server, 50);
    assert_never_early(&log);
    assert!(
        log.iter()
            .all(|entry| entry.finish_ns == entry.arrive_ns + 3 * MS)
    );
    assert_eq!(server.stats().connections, 1);
}

#[test]
fn the_headers_agree_with_the_log() {
    let service = Service::Exponential {
        mean_ns: MS,
        seed: 7,
    };
    let server = start(Config {
        service: service.clone(),
        ..Config::default()
    });
    let mut client = Client::connect(server.addr());
    let responses: Vec<_> = (0..100)
        .map(|_| client.get().expect("a response"))
        .collect();
    let log = log_of(&server, 100);

    for (id, (response, entry)) in (0..).zip(responses.iter().zip(&log)) {
        let fields = ["X-Id", "X-Arrive", "X-Hold", "X-Write"].map(|name| response.number(name));
        let logged = [
            entry.id,
            entry.arrive_ns,
            entry.hold_ns,
            entry.write_ns.unwrap_or(0),
        ];
        assert_eq!(fields, logged);
        assert_eq!((entry.id, entry.hold_ns), (id, service.hold_ns(id)));
        assert_eq!(entry.outcome, Outcome::Answered);
    }
}

#[test]
fn one_server_serves_many_connections_in_order_of_arrival() {
    let server = start(Config {
        servers: Some(1),
        ..constant(2 * MS)
    });
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect(server.addr())).collect();

    for client in &mut clients {
        client.send(GET);
    }
    for client in &mut clients {
        assert_eq!(client.response().expect("a response").status, 200);
    }

    let log = log_of(&server, 20);
    assert_never_early(&log);

    for pair in log.windows(2) {
        let start_ns = pair[1].arrive_ns.max(pair[0].finish_ns);
        assert_eq!(pair[1].finish_ns, start_ns + 2 * MS);
    }
}

#[test]
fn littles_law_holds_to_the_nanosecond() {
    let server = start(Config {
        servers: Some(2),
        ..constant(MS)
    });
    let mut clients: Vec<_> = (0..8).map(|_| Client::connect(server.addr())).collect();

    for _ in 0..10 {
        clients.iter_mut().for_each(|client| client.send(GET));
        for client in &mut clients {
            client.response().expect("a response");
        }
    }

    let stays = log_of(&server, 80)
        .iter()
        .map(|entry| u128::from(entry.write_ns.expect("written") - entry.arrive_ns))
        .sum::<u128>();
    let stats = server.stats();

    assert_eq!(stats.in_system_integral_ns, stays);
    assert_eq!(
        (stats.arrivals, stats.departures, stats.in_system),
        (80, 80, 0)
    );
}

#[test]
fn a_stall_delays_requests_that_arrive_during_it() {
    let stall = Service::PeriodicStall {
        base_ns: MS,
        period_ns: 100 * MS,
        stall_ns: 50 * MS,
        offset_ns: 0,
    };
    let server = start(Config {
        service: stall.clone(),
        ..Config::default()
    });
    let mut client = Client::connect(server.addr());

    for _ in 0..20 {
        client.get().expect("a response");
    }

    let log = log_of(&server, 20);
    assert_never_early(&log);

    for entry in &log {
        let begin_ns = stall.may_begin_ns(entry.arrive_ns - server.epoch_ns());
        assert_eq!(entry.finish_ns, server.epoch_ns() + begin_ns + MS);
    }
}

#[test]
fn an_error_status_comes_at_once_and_keeps_the_connection() {
    let faults = FaultPlan::none().with(Fault::Status(503), When::every(2));
    let server = start(Config {
        faults,
        ..constant(MS)
    });
    let mut client = Client::connect(server.addr());
    let statuses: Vec<_> = (0..6)
        .map(|_| client.get().expect("a response").status)
        .collect();

    assert_eq!(statuses, [200, 503, 200, 503, 200, 503]);

    let log = log_of(&server, 6);
    assert_eq!(log[1].outcome, Outcome::Status(503));
    assert_eq!(log[1].finish_ns, log[1].arrive_ns);
}

#[test]
fn a_reset_ends_the_connection_without_a_byte() {
    let server = faulty(Fault::Reset);
    let mut client = Client::connect(server.addr());
    client.get().expect("arrival 0 gets a response");
    client.send(GET);
    let (bytes, end) = client.rest();

    assert_eq!(bytes, b"");
    assert_eq!(end.expect_err("aborted").kind(), ErrorKind::ConnectionReset);
    assert_eq!(log_of(&server, 2)[1].outcome, Outcome::Reset);
    // The server still works.
    assert_eq!(
        Client::connect(server.addr())
            .get()
            .expect("a response")
            .number("X-Id"),
        2
    );
}

#[test]
fn a_reset_within_the_body_comes_after_half_of_it() {
    let server = faulty(Fault::ResetMidBody);
    let mut client = Client::connect(server.addr());
    client.get().expect("arrival 0 gets a response");
    client.send(GET);
    let (bytes, end) = client.rest();

    assert!(
        bytes.ends_with(b"\r\n\r\nhe"),
        "{:?}",
        String::from_utf8_lossy(&bytes)
    );
    assert_eq!(end.expect_err("aborted").kind(), ErrorKind::ConnectionReset);
    assert_eq!(log_of(&server, 2)[1].outcome, Outcome::ResetMidBody);
}

#[test]
fn a_truncated_response_announces_more_than_it_sends() {
    let server = faulty(Fault::Truncate);
    let mut client = Client::connect(server.addr());
    client.get().expect("arrival 0 gets a response");
    client.send(GET);
    let (bytes, end) = client.rest();
    let text = String::from_utf8(bytes).expect("ASCII");

    assert!(
        text.contains("Content-Length: 5\r\n") && text.ends_with("\r\n\r\nhe"),
        "{text}"
    );

    end.expect("an orderly close");
    assert_eq!(log_of(&server, 2)[1].outcome, Outcome::Truncated);
}

#[test]
fn a_request_without_response_leaves_the_connection_open() {
    let server = faulty(Fault::NeverAnswer);
    let mut client = Client::connect(server.addr());
    client.get().expect("arrival 0 gets a response");
    client.send(GET);
    client.set_read_timeout(Duration::from_millis(100));
    let (bytes, end) = client.rest();

    assert_eq!(bytes, b"");
    assert_eq!(end.expect_err("still open").kind(), ErrorKind::WouldBlock);

    let log = log_of(&server, 2);
    assert_eq!(
        (log[1].outcome, log[1].write_ns),
        (Outcome::NeverAnswered, None)
    );
}

#[test]
fn a_single_request_can_be_held_longer() {
    let server = faulty(Fault::HoldFor(50 * MS));
    let mut client = Client::connect(server.addr());
    let holds: Vec<_> = (0..3)
        .map(|_| client.get().expect("a response").number("X-Hold"))
        .collect();

    assert_eq!(holds, [MS, 50 * MS, MS]);
    assert_never_early(&log_of(&server, 3));
}

#[test]
fn a_wrong_body_has_the_correct_length() {
    let server = faulty(Fault::WrongBody);
    let mut client = Client::connect(server.addr());
    let bodies: Vec<_> = (0..3)
        .map(|_| client.get().expect("a response").body)
        .collect();

    assert_eq!(bodies, [b"hello", b"helln", b"hello"]);
    assert_eq!(log_of(&server, 3)[1].outcome, Outcome::WrongBody);
}

#[test]
fn a_stale_connection_is_closed_when_the_next_request_arrives() {
    let server = faulty(Fault::StaleClose);
    let mut client = Client::connect(server.addr());
    client.get().expect("arrival 0 gets a response");
    let last = client.get().expect("arrival 1 gets a response");

    assert_eq!((last.status, last.field("Connection")), (200, None));

    client.send(GET);
    let (bytes, end) = client.rest();

    assert_eq!(bytes, b"");

    end.expect("an orderly close");
    assert_eq!(server.stats().stale_closed, 1);
    // The request that found the connection closed took no arrival number.
    assert_eq!(
        Client::connect(server.addr())
            .get()
            .expect("a response")
            .number("X-Id"),
        2
    );
    assert_eq!(log_of(&server, 3)[1].outcome, Outcome::StaleClose);
}

#[test]
fn connections_close_after_their_last_response_announced_or_not() {
    for (announce_close, announced) in [(true, Some("close")), (false, None)] {
        let requests_per_connection = Some(3);
        let config = Config {
            requests_per_connection,
            announce_close,
            ..Config::default()
        };
        let server = start(config);
        let mut client = Client::connect(server.addr());
        let fields: Vec<_> = (0..3)
            .map(|_| {
                client
                    .get()
                    .expect("a response")
                    .field("Connection")
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(fields, [None, None, announced.map(str::to_owned)]);

        let (bytes, end) = client.rest();
        assert_eq!(bytes, b"");
        end.expect("an orderly close");
    }
}

#[test]
fn a_client_can_request_the_close() {
    let server = start(Config::default());
    let mut client = Client::connect(server.addr());
    client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    let response = client.response().expect("a response");
    assert_eq!(response.field("Connection"), Some("close"));
    client.rest().1.expect("an orderly close");
}

#[test]
fn http_1_0_keeps_the_connection_on_request() {
    let server = start(Config::default());
    let mut client = Client::connect(server.addr());

    for _ in 0..2 {
        client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(
            client.response().expect("a response").field("Connection"),
            Some("keep-alive")
        );
    }
}

#[test]
fn a_body_framed_by_the_close_is_complete() {
    let framing = Framing::UntilClose;
    let server = start(Config {
        framing,
        body: vec![b'z'; 3_000_000],
        ..Config::default()
    });
    let mut client = Client::connect(server.addr());
    client.send(GET);
    let (bytes, end) = client.rest();
    end.expect("an orderly close");

    assert_eq!(
        bytes.iter().filter(|&&byte| byte == b'z').count(),
        3_000_000
    );
    assert_eq!(log_of(&server, 1)[0].outcome, Outcome::Answered);
}

#[test]
fn the_timestamp_headers_can_be_omitted() {
    let server = start(Config {
        stamp_headers: false,
        ..Config::default()
    });
    let response = Client::connect(server.addr()).get().expect("a response");
    assert!(!response.head.contains("X-"), "{}", response.head);
}

#[test]
fn request_bodies_are_discarded_and_do_not_delay_the_arrival() {
    let server = start(constant(MS));
    let mut client = Client::connect(server.addr());
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    client.send(&[b'x'; 100_000]);
    assert_eq!(client.response().expect("a response").number("X-Id"), 0);
    // No byte of the body remains that could be mistaken for a request.
    assert_eq!(client.get().expect("a response").number("X-Id"), 1);
}

#[test]
fn pipelined_and_dribbled_requests_get_responses_in_order() {
    let server = start(constant(MS));
    let mut client = Client::connect(server.addr());
    client.send(&GET.repeat(5));

    for byte in GET {
        client.send(&[*byte]);
    }

    let ids: Vec<_> = (0..6)
        .map(|_| client.response().expect("a response").number("X-Id"))
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
    assert_never_early(&log_of(&server, 6));
}

#[test]
fn invalid_requests_are_rejected_and_the_server_continues() {
    let server = start(Config::default());
    let refusals: [(&[u8], u16); 3] = [
        (b"\x16\x03\x01 no http at all\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            411,
        ),
        (
            &[b"GET / HTTP/1.1\r\n".as_slice(), &b"a: b\r\n".repeat(200)].concat(),
            431,
        ),
    ];

    for (bytes, status) in refusals {
        let mut client = Client::connect(server.addr());
        client.send(bytes);
        assert_eq!(client.response().expect("a refusal").status, status);
        client.rest().1.expect("an orderly close");
    }

    assert_eq!(server.stats().refused_heads, 3);
    assert_eq!(
        Client::connect(server.addr())
            .get()
            .expect("a response")
            .number("X-Id"),
        0
    );
}

#[test]
fn a_client_that_disconnects_within_its_body_is_logged_as_gone() {
    let server = start(Config::default());
    let mut client = Client::connect(server.addr());
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
    drop(client);
    let log = log_of(&server, 1);

    assert_eq!(
        (log[0].outcome, log[0].write_ns),
        (Outcome::ClientGone, None)
    );
    assert_eq!(server.stats().in_system, 0);
}

#[test]
fn fast_mode_responds_to_every_blank_line() {
    let server = start(Config {
        fast: true,
        ..Config::default()
    });
    let mut client = Client::connect(server.addr());
    client.send(&GET.repeat(500));

    for _ in 0..500 {
        assert_eq!(client.response().expect("a response").body, b"hello");
    }

    let (begin, end) = GET.split_at(GET.len() - 2);
    client.send(begin);
    client.send(end);

    assert_eq!(client.response().expect("a response").status, 200);
    assert_eq!(server.stats().arrivals, 501);
}

#[test]
fn fast_mode_waits_for_a_client_that_does_not_read() {
    const REQUESTS: usize = 20_000;
    let server = start(Config {
        fast: true,
        body: vec![b'x'; 1_000],
        ..Config::default()
    });
    let (mut slow, mut other) = (
        Client::connect(server.addr()),
        Client::connect(server.addr()),
    );
    let mut sender = slow.try_clone();

    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(&GET.repeat(REQUESTS)));
        // 20 MB of responses do not fit into the socket buffers; the other client is served
        // meanwhile.
        assert_eq!(other.get().expect("a response").body.len(), 1_000);
        for _ in 0..REQUESTS {
            assert_eq!(slow.response().expect("a response").body.len(), 1_000);
        }
    });

    assert_eq!(server.stats().arrivals, REQUESTS as u64 + 1);
}

#[test]
fn fast_mode_reuses_the_place_of_a_disconnected_client() {
    let mut server = start(Config {
        fast: true,
        ..Config::default()
    });
    for _ in 0..3 {
        let mut clients: Vec<_> = (0..50).map(|_| Client::connect(server.addr())).collect();
        for client in &mut clients {
            assert_eq!(client.get().expect("a response").body, b"hello");
        }
    }

    server.stop();
    assert_eq!(
        (server.stats().arrivals, server.stats().connections),
        (150, 150)
    );
}

#[test]
fn a_unix_socket_serves_like_an_address_and_is_removed_at_the_end() {
    let path = std::env::temp_dir().join(format!("refsrv-{}.sock", std::process::id()));
    for fast in [false, true] {
        let config = Config {
            listen: Endpoint::Unix(path.clone()),
            fast,
            ..Config::default()
        };
        let mut server = start(config.clone());
        assert_eq!(server.endpoint(), &Endpoint::Unix(path.clone()));
        assert!(
            matches!(ReferenceServer::start(config), Err(StartError::Io { .. })),
            "the path is taken"
        );

        let mut stream = UnixStream::connect(&path).expect("the server accepts");
        stream
            .set_read_timeout(Some(TIMEOUT))
            .expect("a timeout can be set");
        for _ in 0..2 {
            stream.write_all(GET).expect("the request can be sent");
            let mut response = [0; 4096];
            let count = stream.read(&mut response).expect("a response");
            assert!(
                response[..count].starts_with(b"HTTP/1.1 200 OK\r\n")
                    && response[..count].ends_with(b"hello")
            );
        }

        assert_eq!(
            (server.stats().arrivals, server.stats().connections),
            (2, 1)
        );

        server.stop();
        assert!(!path.exists());
    }
}

#[test]
fn only_loopback_addresses_are_accepted() {
    for refused in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let listen: SocketAddr = refused.parse().expect("an address");
        let refusal = ReferenceServer::start(Config {
            listen: listen.into(),
            ..Config::default()
        });
        assert!(matches!(refusal, Err(StartError::NotLoopback(addr)) if addr == listen));
    }
}

#[test]
fn an_invalid_configuration_is_rejected() {
    let refusal = ReferenceServer::start(Config {
        servers: Some(0),
        ..Config::default()
    });
    assert!(matches!(refusal, Err(StartError::Config(error)) if error.field == "servers"));
}

#[test]
fn a_stopped_server_keeps_its_log_and_frees_its_port() {
    let mut server = start(constant(MS));
    let mut client = Client::connect(server.addr());
    client.get().expect("a response");

    server.stop();
    assert_eq!((server.log().len(), server.stats().arrivals), (1, 1));
    client.get().expect_err("the connection is closed");

    let restarted = start(Config {
        listen: server.addr().into(),
        ..Config::default()
    });
    assert_eq!(restarted.addr(), server.addr());
    assert_eq!(
        Client::connect(restarted.addr())
            .get()
            .expect("a response")
            .number("X-Id"),
        0
    );
}

/// Accuracy of comparing the readings of two clocks.
const CLOCKS_NS: u64 = 5_000;

#[test]
fn kernel_timestamps_do_not_depend_on_when_a_request_is_read() {
    // While the only thread uses CPU time before a response, it does not read other requests.
    let server = start(Config {
        log_queued: true,
        cpu_ns: 20 * MS,
        ..constant(0)
    });
    // The kernel starts to timestamp shortly after timestamps are requested.
    let mut warm_up = Client::connect(server.addr());
    let warmed = (0..100).position(|number| {
        warm_up.get().expect("a response");
        log_of(&server, number + 1)[number].queued_ns.is_some()
    });
    let warmed = warmed.expect("loopback has timestamps") + 1;

    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(server.addr())).collect();
    let sends: Vec<_> = clients
        .iter_mut()
        .map(|client| {
            let from_ns = clock::now_ns();
            client.send(GET);
            from_ns..=clock::now_ns()
        })
        .collect();
    for client in &mut clients {
        client.response().expect("a response");
    }

    let log = log_of(&server, warmed + 4);
    let mut queued: Vec<_> = log[warmed..]
        .iter()
        .map(|entry| entry.queued_ns.expect("a timestamp"))
        .collect();
    queued.sort_unstable();
    for (send, queued_ns) in sends.iter().zip(queued) {
        let (from_ns, to_ns) = (send.start() - CLOCKS_NS, send.end() + CLOCKS_NS);
        assert!(
            (from_ns..=to_ns).contains(&queued_ns),
            "{from_ns} {queued_ns} {to_ns}"
        );
    }
    assert!(
        log.iter()
            .all(|entry| entry.queued_ns <= Some(entry.arrive_ns))
    );
    assert_eq!(server.stats().arrivals, log.len() as u64);
}
