//! Whatever frames a server sends over HTTP/2, each load ends in time and in little memory.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{HttpVersion, TlsOptions};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::hostile::{resident_peak_from_now_kib, resident_peak_kib};
use crate::http2_attacks::{
    Attack, CONTINUATION, END_HEADERS, END_STREAM, HEADERS, SETTINGS, STATUS_200, STREAM, data,
    field, floods_after_the_response, floods_of_frames, frame, sends, stalls, violations,
};
use crate::support::{MS, alone, assert_sound, constant};
use crate::tls_server::Certificate;

const TIMEOUT_NS: u64 = 300 * MS;
const MEASURE_NS: u64 = 200 * MS;
/// After the plan and a timeout; the host is shared with the server that floods.
const LATE: Duration = Duration::from_secs(1);
/// Of the whole process, the server included.
const GROWTH_LIMIT_KIB: u64 = 64 * 1024;

const PREFACE_BYTES: usize = 24;
const CHUNK_BYTES: usize = 16 * 1024;

/// A server in a thread of its own, until it is dropped.
struct AttackServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl AttackServer {
    fn start(attack: &Attack, certificate: Option<&Certificate>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor =
            certificate.map(|certificate| TlsAcceptor::from(certificate.config(&["h2"])));
        let attack = attack.clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.spawn(accept(listener, acceptor, attack));
            let _ = runtime.block_on(stopped);
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for AttackServer {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, attack: Attack) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, attack) = (acceptor.clone(), attack.clone());
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else {
                return serve(stream, &attack).await;
            };
            match acceptor.accept(stream).await {
                Ok(stream) => serve(stream, &attack).await,
                Err(error) => Err(error),
            }
        });
    }
}

/// Until either side ends the connection.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    attack: &Attack,
) -> std::io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    reader.read_exact(&mut [0; PREFACE_BYTES]).await?;
    while read_frame(&mut reader).await? != HEADERS {}

    writer.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    writer.write_all(&attack.start).await?;
    writer.flush().await?;
    if attack.closes {
        return writer.shutdown().await;
    }

    let flood = async {
        while !attack.endless.is_empty() {
            writer.write_all(&attack.endless).await?;
        }
        std::future::pending::<std::io::Result<()>>().await
    };
    let mut sink = tokio::io::sink();
    tokio::select! {
        ended = flood => ended,
        ended = tokio::io::copy(&mut reader, &mut sink), if attack.reads_on => ended.map(drop),
    }
}

/// Reads a frame; returns its type.
async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> std::io::Result<u8> {
    let mut header = [0; 9];
    reader.read_exact(&mut header).await?;
    let [high, middle, low, kind, ..] = header;
    let payload_bytes = u32::from_be_bytes([0, high, middle, low]);
    reader
        .read_exact(&mut vec![0; payload_bytes as usize])
        .await?;
    Ok(kind)
}

#[derive(Clone, Copy, Debug)]
enum Loop {
    Open,
    Closed,
}

/// Drives the load, and checks what holds whatever the server does.
fn drive(attack: &Attack, certificate: Option<&Certificate>, arrivals: Loop) -> LoadReport {
    let server = AttackServer::start(attack, certificate);
    let scheme = certificate.map_or("http", |_| "https");
    let url = format!("{scheme}://{}/", server.address);
    let is_large = attack.request_bytes > 0;
    let method = if is_large { "POST" } else { "GET" };
    let body = is_large.then(|| STANDARD.encode(vec![b'a'; attack.request_bytes]));
    let plan = LoadPlan {
        http_version: HttpVersion::Http2,
        keepalive: attack.keepalive,
        method: method.to_owned(),
        body_base64: body,
        timeout_ns: TIMEOUT_NS,
        tls: certificate.map_or_else(TlsOptions::default, Certificate::trusted),
        ..match arrivals {
            Loop::Open => constant(&url, 50.0, MEASURE_NS),
            Loop::Closed => LoadPlan::closed(&url, 4, MEASURE_NS),
        }
    };

    let what = format!("{} over {scheme}, {arrivals:?}", attack.name);
    let before_kib = resident_peak_from_now_kib();
    let start = Instant::now();
    let report = run(&plan, &StopToken::new()).unwrap();
    let took = start.elapsed();

    assert_sound(&report);
    let planned = Duration::from_nanos(plan.phases.warmup_ns + MEASURE_NS + TIMEOUT_NS);
    assert!(took <= planned + LATE, "{what}: took {took:?}");
    if let (Some(before), Some(after)) = (before_kib, resident_peak_kib()) {
        assert!(
            after <= before + GROWTH_LIMIT_KIB,
            "{what}: {before} KiB before, {after} KiB at the peak"
        );
    }
    report
}

fn assert_all_end_as_expected(attacks: &[Attack]) {
    let _alone = alone();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for attack in attacks {
        for certificate in [None, Some(&certificate)] {
            for arrivals in [Loop::Open, Loop::Closed] {
                let report = drive(attack, certificate, arrivals);
                let what = format!("{}, {arrivals:?}: {:?}", attack.name, report.outcomes);
                assert!(report.scheduled() > 0, "{what}");
                let expected: u64 = attack
                    .expected
                    .iter()
                    .map(|outcome| report.outcome(*outcome))
                    .sum();
                assert!(expected > 0, "{what}");
                // What the end of the plan cuts off.
                let expected = expected + report.outcome(Outcome::Unfinished);
                assert_eq!(expected, report.scheduled(), "{what}");
            }
        }
    }
}

#[test]
fn a_flood_of_frames_ends_in_time_and_in_little_memory() {
    assert_all_end_as_expected(&floods_of_frames());
}

#[test]
fn a_flood_after_the_response_leaves_the_response_alone() {
    assert_all_end_as_expected(&floods_after_the_response());
}

#[test]
fn a_request_that_the_server_does_not_let_pass_times_out() {
    assert_all_end_as_expected(&stalls());
}

#[test]
fn what_violates_the_protocol_is_a_bad_body_and_what_breaks_off_is_a_reset() {
    assert_all_end_as_expected(&violations());
}

#[test]
fn a_head_of_nearly_a_mebibyte_is_read() {
    let _alone = alone();
    let fields = field("name", &"v".repeat(100)).repeat(7_500);
    let mut pieces = fields.chunks(CHUNK_BYTES);
    let mut start = frame(HEADERS, 0, STREAM, STATUS_200);
    let last = pieces.next_back().unwrap();
    for piece in pieces {
        start.extend(frame(CONTINUATION, 0, STREAM, piece));
    }
    start.extend(frame(CONTINUATION, END_HEADERS, STREAM, last));
    start.extend(data(END_STREAM, b"hello"));

    let attack = sends("a large head", start, Outcome::Ok).once_per_connection();
    let report = drive(&attack, None, Loop::Open);
    assert_eq!(report.outcome(Outcome::Ok), 10, "{:?}", report.outcomes);
}
