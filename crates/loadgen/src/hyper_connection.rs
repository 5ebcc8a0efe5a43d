//! HTTP/1.1 by hyper, behind the same trait: the second opinion on our own framing.
//!
//! hyper is polled by the engine itself: no runtime, no task. Its futures run until nothing in them can go on, each time
//! the socket has something to tell.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use http::header::{CONNECTION, CONTENT_LENGTH, SET_COOKIE, TRANSFER_ENCODING};
use http::{HeaderMap, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::body_check::BodyCheck;
use crate::clock::monotonic_ns;
use crate::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_answer, outcome_of_end,
};
use crate::exchange::Outcome;
use crate::request::Request;
use crate::socket::{Endpoint, Socket, Transfer};

/// One read of the socket takes at most this much.
const READ_BYTES: usize = 8 * 1024;

/// As many reads as take a large answer in few turns.
const MOST_READS_AT_ONCE: usize = 128;

type Future<T> = Pin<Box<dyn std::future::Future<Output = T>>>;
type Protocol = http1::Connection<StampedSocket, Full<Bytes>>;
type Handshake = Future<hyper::Result<(Sender, Protocol)>>;
type Sender = SendRequest<Full<Bytes>>;

/// An HTTP/1.1 connection by hyper.
pub(crate) struct HyperConnection {
    socket: Rc<Observed>,
    stage: Stage,
    requests: u64,
    wake: Arc<WakeFlag>,
}

enum Stage {
    Connecting,
    Handshake(Handshake),
    Idle { sender: Sender, protocol: Future<()> },
    Exchange { exchange: Future<(Sender, Result<Exchanged, NothingSent>)>, protocol: Future<()> },
    Over,
}

impl Connection for HyperConnection {
    fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let socket = Rc::new(Observed {
            socket: Socket::connect(endpoint)?,
            stamps: Cell::default(),
            end: Cell::new(false),
            set_cookies: RefCell::default(),
            reads_left: Cell::new(MOST_READS_AT_ONCE),
        });
        Ok(Self { socket, stage: Stage::Connecting, requests: 0, wake: Arc::default() })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        if matches!(self.stage, Stage::Connecting) {
            if !self.socket.socket.is_connected()? {
                return Ok(false);
            }
            let io = StampedSocket(Rc::clone(&self.socket));
            // Requests are small: one flat write beats a vectored one.
            self.stage =
                Stage::Handshake(Box::pin(async move { http1::Builder::new().writev(false).handshake(io).await }));
        }
        let Stage::Handshake(handshake) = &mut self.stage else { return Ok(true) };
        let Poll::Ready(done) = self.wake.run(|context| handshake.as_mut().poll(context)) else {
            return Ok(false);
        };
        let (sender, protocol) = done.map_err(io::Error::other)?;
        // Its failure is seen, with its cause, by the exchange that it ends.
        let protocol = Box::pin(async move { drop(protocol.await) });
        self.stage = Stage::Idle { sender, protocol };
        Ok(true)
    }

    fn begin(&mut self, request: &Request, is_last: bool, _: u64) -> Result<Option<Exchanged>, NothingSent> {
        let Stage::Idle { sender, protocol } = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(NothingSent);
        };
        self.socket.stamps.set(ExchangeStamps::default());
        self.socket.set_cookies.take();
        self.socket.reads_left.set(MOST_READS_AT_ONCE);
        self.requests += 1;
        let exchange = Exchange {
            request: request.clone(),
            is_last,
            is_reused: self.requests > 1,
            socket: Rc::clone(&self.socket),
        };
        self.stage = Stage::Exchange { exchange: Box::pin(exchange.run(sender)), protocol };
        // The first poll writes the request.
        self.poll().transpose()
    }

    fn advance(&mut self, _: &Request, _: bool, _: &mut [u8]) -> Progress {
        self.socket.reads_left.set(MOST_READS_AT_ONCE);
        match self.poll() {
            Some(Ok(exchanged)) => Progress::Ended(exchanged),
            Some(Err(NothingSent)) => Progress::NothingSent,
            None if self.socket.reads_left.get() == 0 => Progress::Yielding,
            None => Progress::Waiting,
        }
    }

    fn take_set_cookies(&mut self) -> Vec<Vec<u8>> {
        self.socket.set_cookies.take()
    }

    fn is_over_while_idle(&mut self, _: &mut [u8]) -> bool {
        self.socket.reads_left.set(MOST_READS_AT_ONCE);
        if let Stage::Idle { protocol, .. } = &mut self.stage {
            let ended = self.wake.run(|context| protocol.as_mut().poll(context)).is_ready();
            if ended {
                self.socket.end.set(true);
            }
        }
        self.is_closed()
    }

    fn is_closed(&self) -> bool {
        let is_sender_closed = matches!(&self.stage, Stage::Idle { sender, .. } if sender.is_closed());
        self.socket.end.get() || is_sender_closed || matches!(self.stage, Stage::Over)
    }

    fn stamps(&self) -> ExchangeStamps {
        self.socket.stamps.get()
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

impl HyperConnection {
    /// Lets protocol and exchange run until neither can go on.
    fn poll(&mut self) -> Option<Result<Exchanged, NothingSent>> {
        let Stage::Exchange { exchange, protocol } = &mut self.stage else { return None };
        let mut is_protocol_over = false;
        let ended = self.wake.run(|context| {
            if !is_protocol_over {
                is_protocol_over = protocol.as_mut().poll(context).is_ready();
            }
            exchange.as_mut().poll(context)
        });
        let ended = match ended {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                if is_protocol_over {
                    // The next poll of the exchange, which the end of the protocol has woken, finds its failure.
                    *protocol = Box::pin(std::future::pending());
                }
                return None;
            }
        };
        let (sender, result) = ended;
        let Stage::Exchange { protocol, .. } = std::mem::replace(&mut self.stage, Stage::Over) else {
            return None;
        };
        if is_protocol_over {
            self.socket.end.set(true);
        } else {
            self.stage = Stage::Idle { sender, protocol };
        }
        if result.is_err() {
            self.requests -= 1;
        }
        Some(result)
    }
}

/// What one exchange has to know.
struct Exchange {
    request: Request,
    is_last: bool,
    is_reused: bool,
    socket: Rc<Observed>,
}

impl Exchange {
    async fn run(self, mut sender: Sender) -> (Sender, Result<Exchanged, NothingSent>) {
        if sender.ready().await.is_err() {
            return (sender, Err(NothingSent));
        }
        let answer = sender.send_request(self.request.message(self.is_last)).await;
        if self.socket.stamps.get().write_start_ns == 0 {
            return (sender, Err(NothingSent));
        }
        let exchanged = match answer {
            Ok(response) => self.read_body(response).await,
            Err(error) => self.failed(&error, None),
        };
        (sender, Ok(exchanged))
    }

    async fn read_body(&self, response: Response<Incoming>) -> Exchanged {
        let status = response.status().as_u16();
        let framing = Framing::of(&response, &self.request);
        if self.request.keeps_cookies {
            let fields = response.headers().get_all(SET_COOKIE).iter();
            *self.socket.set_cookies.borrow_mut() = fields.map(|value| value.as_bytes().to_vec()).collect();
        }
        let mut body = response.into_body();
        let mut check = BodyCheck::new();
        let expected = &self.request.expected_body;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => frame.data_ref().into_iter().for_each(|part| check.take(expected, part)),
                Err(error) => return self.failed(&error, Some(status)),
            }
        }
        let outcome = outcome_of_answer(&self.request, status, check.is_right(expected));
        let last_byte_ns = match framing {
            Framing::UntilClose => monotonic_ns(),
            Framing::Delimited { .. } => self.socket.stamps.get().last_byte_ns,
        };
        let is_reusable = !self.is_last && framing == Framing::Delimited { keeps_alive: true };
        Exchanged { outcome, status: Some(status), last_byte_ns, is_reusable }
    }

    /// Sorts a failure by how far the exchange had come.
    fn failed(&self, error: &hyper::Error, status: Option<u16>) -> Exchanged {
        let requests = if self.is_reused { 2 } else { 1 };
        let outcome = if error.is_parse() || is_malformed_body(error) {
            Outcome::BadBody
        } else {
            outcome_of_end(requests, &self.socket.stamps.get())
        };
        Exchanged { outcome, status, last_byte_ns: monotonic_ns(), is_reusable: false }
    }
}

/// hyper passes on a malformed chunk or trailer as a failure to read.
fn is_malformed_body(error: &hyper::Error) -> bool {
    use std::error::Error as _;
    let kind = error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// How the end of an answer is found, and whether the connection outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Delimited { keeps_alive: bool },
    UntilClose,
}

impl Framing {
    fn of(response: &Response<Incoming>, request: &Request) -> Self {
        let headers = response.headers();
        let is_delimited = !request.answer_may_have_body(response.status().as_u16())
            || headers.contains_key(CONTENT_LENGTH)
            || headers.contains_key(TRANSFER_ENCODING);
        if !is_delimited {
            return Self::UntilClose;
        }
        let keeps_alive = match response.version() {
            Version::HTTP_11 => !connection_says(headers, "close"),
            _ => connection_says(headers, "keep-alive"),
        };
        Self::Delimited { keeps_alive }
    }
}

fn connection_says(headers: &HeaderMap, token: &str) -> bool {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// The socket, and what was seen of it while it was lent to hyper.
struct Observed {
    socket: Socket,
    stamps: Cell<ExchangeStamps>,
    end: Cell<bool>,
    set_cookies: RefCell<Vec<Vec<u8>>>,
    /// A server that sends without end must not keep the thread from everybody else.
    reads_left: Cell<usize>,
}

impl Observed {
    fn stamp(&self, note: impl FnOnce(&mut ExchangeStamps, u64)) {
        let mut stamps = self.stamps.get();
        note(&mut stamps, monotonic_ns());
        self.stamps.set(stamps);
    }
}

/// hyper's end of the socket. Nobody is woken: the engine polls when the reactor has told of something.
struct StampedSocket(Rc<Observed>);

impl Read for StampedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(reads_left) = self.0.reads_left.get().checked_sub(1) else { return Poll::Pending };
        self.0.reads_left.set(reads_left);
        let mut scratch = [0; READ_BYTES];
        let room = buffer.remaining().min(READ_BYTES);
        match self.0.socket.receive(&mut scratch[..room]) {
            Transfer::Bytes(count) => {
                self.0.stamp(|stamps, now_ns| {
                    stamps.last_byte_ns = now_ns;
                    if stamps.first_byte_ns == 0 {
                        stamps.first_byte_ns = now_ns;
                    }
                });
                buffer.put_slice(&scratch[..count]);
                Poll::Ready(Ok(()))
            }
            Transfer::NotNow => Poll::Pending,
            Transfer::Over => {
                self.0.end.set(true);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl Write for StampedSocket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.stamp(|stamps, now_ns| {
            if stamps.write_start_ns == 0 {
                stamps.write_start_ns = now_ns;
            }
        });
        match self.0.socket.send(bytes) {
            Transfer::Bytes(count) => Poll::Ready(Ok(count)),
            Transfer::NotNow => Poll::Pending,
            Transfer::Over => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Remembers that some future asked to be polled again.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl WakeFlag {
    /// Polls until it is ready or nothing in it can go on.
    fn run<T>(self: &Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
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
