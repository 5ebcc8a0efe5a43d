//! The basis of hyper's connections: a transport that timestamps reads and writes, and polling
//! without a runtime.
//!
//! The engine polls hyper directly: on each socket event, it runs hyper's futures until none makes
//! progress.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use http::header::SET_COOKIE;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::base::clock::monotonic_ns;
use crate::http::body_check::{BodyCheck, Kept};
use crate::http::captures::KeptResponse;
use crate::http::connection::ExchangeStamps;
use crate::http::malformed::is_unsolicited_response;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::net::socket::Transfer;
use crate::net::transport::Transport;

/// Maximum size of one read of the socket.
const READ_BYTES: usize = 8 * 1024;

/// Maximum number of reads per turn. hyper takes milliseconds for the thousands of interim responses
/// that a hostile server can send in 128 KiB, and the thread's other connections wait meanwhile.
const MAX_READS_PER_TURN: usize = 16;

pub(crate) type Future<T> = Pin<Box<dyn std::future::Future<Output = T>>>;

/// The transport, and what is recorded while hyper uses it.
pub(crate) struct Observed {
    pub transport: Transport,
    pub stamps: Cell<ExchangeStamps>,
    pub end: Cell<bool>,
    /// Cookies of the latest response, if its request keeps them.
    set_cookies: RefCell<Vec<Vec<u8>>>,
    /// The values captured from the latest response.
    captured: RefCell<Vec<Vec<u8>>>,
    /// Limits the reads of a turn: an endless response must not block the thread's other
    /// connections.
    reads_left: Cell<usize>,
    /// Whether bytes arrived before the first request was sent.
    pub has_early_bytes: Cell<bool>,
    /// The bytes of the latest read.
    latest: RefCell<Vec<u8>>,
}

impl Observed {
    /// Starts to connect.
    pub fn connect(route: &Route) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            transport: Transport::connect(route)?,
            stamps: Cell::default(),
            end: Cell::new(false),
            set_cookies: RefCell::default(),
            captured: RefCell::default(),
            reads_left: Cell::new(MAX_READS_PER_TURN),
            has_early_bytes: Cell::new(false),
            latest: RefCell::new(Vec::with_capacity(READ_BYTES)),
        }))
    }

    /// Starts another turn of the engine.
    pub fn allow_reads(&self) {
        self.reads_left.set(MAX_READS_PER_TURN);
    }

    /// Starts another request, and another turn with it.
    pub fn start_request(&self) {
        self.stamps.set(ExchangeStamps::default());
        self.take_set_cookies();
        self.take_captured();
        self.allow_reads();
    }

    /// Runs `work` without reading the socket.
    pub fn without_reads<T>(&self, work: impl FnOnce() -> T) -> T {
        let reads_left = self.reads_left.replace(0);
        let result = work();
        self.reads_left.set(reads_left);
        result
    }

    /// Whether the latest read got a response after the `skipped` first bytes. Only hyper knows
    /// where responses begin; it does not say why it ended a connection.
    pub fn has_unsolicited_response(&self, skipped: usize) -> bool {
        let latest = self.latest.borrow();
        (skipped..latest.len()).any(|start| is_unsolicited_response(&latest[start..]))
    }

    /// Whether this turn has used all its reads.
    pub fn has_read_enough(&self) -> bool {
        self.reads_left.get() == 0
    }

    /// Keeps the cookies that the head of a response sets, if its request uses them.
    pub fn note_set_cookies(&self, request: &Request, headers: &HeaderMap) {
        if request.keeps_cookies {
            let fields = headers.get_all(SET_COOKIE).iter();
            *self.set_cookies.borrow_mut() =
                fields.map(|value| value.as_bytes().to_vec()).collect();
        }
    }

    /// Reads the whole body; returns whether it is correct and all captures of the request have a
    /// value.
    pub async fn is_body_correct(
        &self,
        request: &Request,
        response: Response<Incoming>,
    ) -> hyper::Result<bool> {
        let (head, mut body) = response.into_parts();
        let expected = &request.expected_body;
        let mut check = BodyCheck::new();
        while let Some(frame) = body.frame().await {
            frame?
                .data_ref()
                .into_iter()
                .for_each(|part| check.take(expected, part));
        }
        Ok(check.is_correct(expected) && self.has_captured(request, &head.headers, check.kept()))
    }

    fn has_captured(&self, request: &Request, headers: &HeaderMap, body: Kept<'_>) -> bool {
        let Some(captures) = &request.captures else {
            return true;
        };

        let values = captures.of(&KeptResponse {
            fields: &captures.fields_of(headers),
            body,
        });
        let is_complete = values.is_ok();
        *self.captured.borrow_mut() = values.unwrap_or_default();
        is_complete
    }

    /// Takes the captured values.
    pub fn take_captured(&self) -> Vec<Vec<u8>> {
        self.captured.take()
    }

    /// Takes the kept cookies.
    pub fn take_set_cookies(&self) -> Vec<Vec<u8>> {
        self.set_cookies.take()
    }

    fn stamp(&self, note: impl FnOnce(&mut ExchangeStamps)) {
        let mut stamps = self.stamps.get();
        note(&mut stamps);
        self.stamps.set(stamps);
    }
}

/// hyper's side of the transport. It wakes nothing: the engine polls when the reactor reports an
/// event.
pub(crate) struct StampedTransport(pub Rc<Observed>);

impl Read for StampedTransport {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(reads_left) = self.0.reads_left.get().checked_sub(1) else {
            return Poll::Pending;
        };

        self.0.reads_left.set(reads_left);
        let mut latest = self.0.latest.borrow_mut();
        latest.resize(buffer.remaining().min(READ_BYTES), 0);

        match self.0.transport.receive(&mut latest) {
            Transfer::Bytes(count) => {
                self.0.stamp(|stamps| {
                    stamps.last_byte_ns = self.0.transport.received_ns();
                    if stamps.first_byte_ns == 0 {
                        stamps.first_byte_ns = stamps.last_byte_ns;
                    }
                });
                latest.truncate(count);
                buffer.put_slice(&latest);
                Poll::Ready(Ok(()))
            }
            Transfer::WouldBlock => Poll::Pending,
            end @ (Transfer::Broken | Transfer::Closed) => {
                self.0.end.set(true);
                Poll::Ready(self.0.transport.end_of_read(end))
            }
        }
    }
}

impl Write for StampedTransport {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.stamp(|stamps| {
            if stamps.write_start_ns == 0 {
                stamps.write_start_ns = monotonic_ns();
            }
        });
        match self.0.transport.send(bytes) {
            Transfer::Bytes(count) => Poll::Ready(Ok(count)),
            Transfer::WouldBlock => Poll::Pending,
            Transfer::Closed | Transfer::Broken => {
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.transport.poll_flush()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Records that a future must be polled again.
#[derive(Default)]
pub(crate) struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl WakeFlag {
    /// Polls until it is ready or makes no more progress.
    pub fn run<T>(self: &Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);

        loop {
            self.0.store(false, Ordering::Relaxed);
            let polled = poll(&mut context);
            if polled.is_ready() || !self.0.load(Ordering::Relaxed) {
                return polled;
            }
        }
    }
}
