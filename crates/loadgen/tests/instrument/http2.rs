//! HTTP/2, negotiated over TLS or assumed without TLS: counted like HTTP/1.1.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use loadgen::plan::{
    CapturePlan, CaptureSource, HttpVersion, Keepalive, RequestPlan, ResponseCheck, SessionPlan,
    StepPlan, TlsOptions, WeightedRequest,
};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::support::{SECOND, assert_consistent, capped, constant_rate, lock_host};
use crate::targets::request;
use crate::tls_server::{Certificate, https_server};

/// An HTTP/2 server in a separate thread; runs until it is dropped.
struct Http2Server {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    /// Highest number of concurrent connections.
    max_open: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
}

/// Large enough for the longest URL in these tests.
const MAX_HEADER_LIST_BYTES: u32 = 128 * 1024;

/// The server sends GOAWAY after this many requests, and responds to the requests in flight.
const REQUESTS_PER_CONNECTION: u64 = 100;

/// Length of a captured value that makes a URL too long if it is inserted twice, percent-encoded.
const LONG_VALUE_BYTES: usize = 12_000;

/// Status and body of the response, given the number of the request from 0; `None` refuses the
/// stream.
type Script = fn(u64) -> Option<(u16, &'static str)>;

impl Http2Server {
    fn start(certificate: Option<&Certificate>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor =
            certificate.map(|certificate| TlsAcceptor::from(certificate.config(&["h2"])));
        let connections = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = oneshot::channel();
        let server_count = Arc::clone(&connections);
        let max_open = Arc::new(AtomicU64::new(0));
        let peak = Arc::clone(&max_open);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.spawn(accept(listener, acceptor, script, server_count, peak));
            let _ = runtime.block_on(stopped);
        });

        Self {
            address,
            connections,
            max_open,
            stop: Some(stop),
        }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/path?query", self.address.port())
    }
}

impl Drop for Http2Server {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    script: Script,
    connections: Arc<AtomicU64>,
    max_open: Arc<AtomicU64>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let requests = Arc::new(AtomicU64::new(0));
    let open = Arc::new(AtomicU64::new(0));

    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        max_open.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let (acceptor, requests) = (acceptor.clone(), Arc::clone(&requests));
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            match acceptor {
                None => serve(stream, script, requests).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, script, requests).await;
                    }
                }
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    script: Script,
    requests: Arc<AtomicU64>,
) {
    let (goaway, served) = (Notify::new(), AtomicU64::new(0));
    let service = service_fn(|request: Request<Incoming>| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        if served.fetch_add(1, Ordering::Relaxed) + 1 == REQUESTS_PER_CONNECTION {
            goaway.notify_one();
        }
        async move {
            let (head, body) = request.into_parts();
            let is_long = head.uri.query() == Some("long");
            let long_value = is_long.then(|| "\"".repeat(LONG_VALUE_BYTES));
            let sent = body.collect().await.map_err(|_| "no body")?.to_bytes();
            let is_intact = is_intact(&head, &sent);
            let (status, body) = script(number).ok_or("stream refused")?;
            let status = if is_intact { status } else { 400 };
            let response = Response::builder()
                .status(status)
                .header("set-cookie", "id=1; HttpOnly")
                .header("x-long", long_value.unwrap_or_default());

            response
                .body(Full::new(Bytes::from_static(body.as_bytes())))
                .map_err(|_| "no response")
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.max_header_list_size(MAX_HEADER_LIST_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = goaway.notified() => connection.as_mut().graceful_shutdown(),
    }
    // An error is expected: the client closes the connection.
    let _ = connection.await;
}

/// Whether a request arrived as the tests send it.
fn is_intact(head: &Parts, body: &[u8]) -> bool {
    let field = |name: &str| head.headers.get(name).map(|value| value.as_bytes());
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let is_expected = match path {
        "/path?query" | "/path?long" => true,
        "/greeted" => field("cookie") == Some(b"id=1"),
        // The same value in every part of the request.
        _ => {
            path == long_path()
                || path.strip_prefix("/same?value=").is_some_and(|value| {
                    field("x-value") == Some(value.as_bytes()) && body == value.as_bytes()
                })
        }
    };
    let host = head.uri.authority().map(|authority| authority.host());

    is_expected && head.version == Version::HTTP_2 && host == Some("127.0.0.1")
}

/// The path of the longest URL, which needs several frames.
fn long_path() -> String {
    format!("/{}", "a".repeat(65_500))
}

fn hello(_: u64) -> Option<(u16, &'static str)> {
    Some((200, "hello"))
}

/// Runs fifty requests over one connection at a time.
fn run_fifty(url: &str, tls: TlsOptions, keepalive: Keepalive) -> LoadReport {
    let check = ResponseCheck {
        body_base64: Some("aGVsbG8=".to_owned()),
        ..ResponseCheck::default()
    };
    let http_version = HttpVersion::Http2;
    let plan = LoadPlan {
        tls,
        http_version,
        keepalive,
        check,
        ..capped(url, 100.0, SECOND / 2, 1)
    };
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);
    assert_eq!(report.scheduled(), 50);

    report
}

fn assert_all_correct(report: &LoadReport, server: &Http2Server, connections: u64) {
    assert_eq!(
        report.outcome(Outcome::Ok),
        50,
        "{:?} {:?}",
        report.outcomes,
        report.connections.failures
    );

    let server_count = server.connections.load(Ordering::Relaxed);
    assert_eq!(
        (report.connections.opened, server_count),
        (connections, connections)
    );
    assert_eq!(report.connections.opened + report.connections.reused, 50);
}

#[test]
fn http2_is_negotiated_over_tls() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for (keepalive, connections) in [
        (Keepalive::On, 1),
        (Keepalive::Requests(10), 5),
        (Keepalive::Off, 50),
    ] {
        let server = Http2Server::start(Some(&certificate), hello);
        let report = run_fifty(
            &server.url("https"),
            certificate.trusting_options(),
            keepalive,
        );
        assert_all_correct(&report, &server, connections);
    }
}

#[test]
fn http2_is_assumed_without_tls() {
    let _host = lock_host();
    for (keepalive, connections) in [(Keepalive::On, 1), (Keepalive::Off, 50)] {
        let server = Http2Server::start(None, hello);
        let report = run_fifty(&server.url("http"), TlsOptions::default(), keepalive);
        assert_all_correct(&report, &server, connections);
    }
}

#[test]
fn a_long_url_is_sent_in_several_frames() {
    let _host = lock_host();
    let server = Http2Server::start(None, hello);
    let url = format!("http://{}{}", server.address, long_path());
    let report = run_fifty(&url, TlsOptions::default(), Keepalive::On);
    assert_all_correct(&report, &server, 1);
}

#[test]
fn a_connection_closes_after_its_last_request() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let servers = [
        ("http", TlsOptions::default(), None),
        ("https", certificate.trusting_options(), Some(&certificate)),
    ];
    for (scheme, tls, certificate) in servers {
        let server = Http2Server::start(certificate, hello);
        let report = run_fifty(&server.url(scheme), tls, Keepalive::Off);
        assert_all_correct(&report, &server, 50);

        // One connection is in use. On a busy host, the server notices closed connections late.
        let max_open = server.max_open.load(Ordering::Relaxed);
        assert!(
            max_open <= 10,
            "{scheme}: {max_open} of 50 connections open at once"
        );
    }
}

#[test]
fn a_session_keeps_its_cookies_over_http2() {
    let _host = lock_host();
    let server = Http2Server::start(None, hello);
    let step = |line: &str| StepPlan {
        request: request(line),
        think_time_ns: 0,
        captures: Vec::new(),
    };
    let steps = vec![step("GET /path?query"), step("GET /greeted")];
    let sessions = vec![SessionPlan {
        name: "s".to_owned(),
        weight: 1.0,
        steps,
    }];
    let http_version = HttpVersion::Http2;
    let plan = LoadPlan {
        http_version,
        sessions,
        ..constant_rate(&server.url("http"), 100.0, SECOND / 2)
    };
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);

    let sessions = report.sessions.unwrap();
    assert_eq!(
        (sessions.started, sessions.failed),
        (50, 0),
        "{:?}",
        report.outcomes
    );
    assert!(report.targets[1].ok > 40, "{:?}", report.targets);
    assert_eq!(
        server.connections.load(Ordering::Relaxed),
        50,
        "each session has its own connection"
    );
}

/// A request with this value in every part.
fn with_value(value: &str) -> RequestPlan {
    RequestPlan {
        headers: vec![("X-Value".to_owned(), value.to_owned())],
        body_base64: Some(STANDARD.encode(value)),
        ..request(&format!("POST /same?value={value}"))
    }
}

#[test]
fn a_session_sends_captured_values_over_http2() {
    let _host = lock_host();
    let server = Http2Server::start(None, |number| {
        Some((200, if number % 5 == 0 { "hallo" } else { "hello" }))
    });
    let capture = |name: &str, source, expression: &str| CapturePlan {
        name: name.to_owned(),
        source,
        expression: expression.to_owned(),
    };
    let first = StepPlan {
        request: request("GET /path?query"),
        think_time_ns: 0,
        captures: vec![
            capture("cookie", CaptureSource::Header, "set-cookie"),
            capture("vowel", CaptureSource::Regex, "h(e)llo"),
        ],
    };
    let second = StepPlan {
        request: with_value("{{vowel}}"),
        think_time_ns: 0,
        captures: Vec::new(),
    };
    let plan = LoadPlan {
        http_version: HttpVersion::Http2,
        sessions: vec![SessionPlan {
            name: "s".to_owned(),
            weight: 1.0,
            steps: vec![first, second],
        }],
        ..constant_rate(&server.url("http"), 100.0, SECOND / 2)
    };
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);

    let wrong = report.outcome(Outcome::BadBody);
    assert!((5..25).contains(&wrong), "{:?}", report.outcomes);

    // The load may end before the second step of the last sessions.
    let second = &report.targets[1];
    assert!(
        (1..=50 - wrong).contains(&second.scheduled),
        "{wrong} {second:?}"
    );
    assert_eq!(second.ok, second.scheduled);
}

#[test]
fn a_url_that_captured_values_make_too_long_is_not_sent() {
    let _host = lock_host();
    let server = Http2Server::start(None, hello);
    let step = |line: &str, captures| StepPlan {
        request: request(line),
        think_time_ns: 0,
        captures,
    };
    let long = CapturePlan {
        name: "long".to_owned(),
        source: CaptureSource::Header,
        expression: "x-long".to_owned(),
    };
    let steps = vec![
        step("GET /path?long", vec![long]),
        step("GET /path?query={{long}}{{long}}", Vec::new()),
    ];
    let plan = LoadPlan {
        http_version: HttpVersion::Http2,
        sessions: vec![SessionPlan {
            name: "s".to_owned(),
            weight: 1.0,
            steps,
        }],
        ..constant_rate(&server.url("http"), 50.0, SECOND / 2)
    };
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);

    let (first, second) = (&report.targets[0], &report.targets[1]);
    assert_eq!((first.ok, second.ok), (25, 0), "{:?}", report.outcomes);
    assert!(second.scheduled > 20, "{second:?}");
    assert_eq!(report.outcome(Outcome::ClientError), second.scheduled);
}

#[test]
fn concurrent_streams_have_separate_values() {
    let _host = lock_host();
    let server = Http2Server::start(None, hello);
    let targets = vec![WeightedRequest {
        request: with_value("{{uuid}}"),
        weight: 1.0,
    }];
    let common = |plan| LoadPlan {
        http_version: HttpVersion::Http2,
        streams: 8,
        targets: targets.clone(),
        ..plan
    };

    for plan in [
        common(constant_rate(&server.url("http"), 400.0, SECOND / 4)),
        common(LoadPlan::closed(&server.url("http"), 2, SECOND / 4)),
    ] {
        let report = run(&plan, &StopToken::new()).unwrap();
        assert_consistent(&report);
        assert!(report.scheduled() >= 100);
        let ok = report.outcome(Outcome::Ok);
        assert_eq!(ok, report.scheduled(), "{:?}", report.outcomes);
    }
}

#[test]
fn no_request_is_lost_when_the_server_sends_goaway() {
    let _host = lock_host();
    let server = Http2Server::start(None, hello);
    let http_version = HttpVersion::Http2;
    let report = run(
        &LoadPlan {
            http_version,
            ..LoadPlan::closed(&server.url("http"), 1, SECOND / 2)
        },
        &StopToken::new(),
    )
    .unwrap();

    assert_consistent(&report);
    assert_eq!(
        report.outcome(Outcome::Ok),
        report.scheduled(),
        "{:?}",
        report.outcomes
    );

    let connections = &report.connections;
    assert_eq!(
        connections.opened,
        server.connections.load(Ordering::Relaxed)
    );
    // Between its first and its last GOAWAY frame, the server accepts requests in transit.
    assert!(
        connections.opened >= report.scheduled().div_ceil(REQUESTS_PER_CONNECTION + 10),
        "{connections:?}"
    );
    assert!(
        connections.requests_per_connection.unwrap().max >= REQUESTS_PER_CONNECTION,
        "{connections:?}"
    );
}

#[test]
fn failures_of_single_requests_are_counted() {
    let _host = lock_host();
    let server = Http2Server::start(None, |number| match number % 10 {
        3 => Some((503, "hello")),
        5 => Some((200, "other")),
        7 => None,
        _ => Some((200, "hello")),
    });
    let report = run_fifty(&server.url("http"), TlsOptions::default(), Keepalive::On);
    let counts = [
        Outcome::Ok,
        Outcome::HttpStatus,
        Outcome::BadBody,
        Outcome::Reset,
    ]
    .map(|one| report.outcome(one));

    assert_eq!(counts, [35, 5, 5, 5], "{:?}", report.outcomes);
}

#[test]
fn the_failure_of_a_server_without_http2_is_explained() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let server = https_server(&certificate, b"hello".to_vec());
    let url = format!("https://{}/", server.address);
    let report = run_fifty(&url, certificate.trusting_options(), Keepalive::On);

    assert_eq!(report.outcome(Outcome::Reset), 50, "{:?}", report.outcomes);
    assert!(
        report
            .connections
            .failures
            .keys()
            .all(|cause| cause.starts_with("TLS protocol: ") && cause.contains("HTTP")),
        "{:?}",
        report.connections
    );
}
