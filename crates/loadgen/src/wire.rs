//! One HTTP/1.1 connection over our own framing: request bytes made once, stamps round the socket's own calls, and a
//! send that needs no turn of the runtime, so that a due request goes out in the instant it is due.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::monotonic_ns;
use crate::connection::{BodyCheck, Connection, EagerSend, Exchanged, NothingSent};
use crate::decoder::{Decoder, Malformed, Progress};
use crate::exchange::Outcome;
use crate::stamped_io::SocketStamps;
use crate::target::Target;

/// One read takes at most this much; shared by all connections of a thread.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// HTTP/1.1 by our own framing.
pub(crate) struct WireConnection {
    socket: Rc<WireSocket>,
    decoder: Decoder,
}

/// The part of a connection that a send needs; shared with whoever may send ahead of the lane's turn.
struct WireSocket {
    stream: RefCell<TcpStream>,
    stamps: Rc<SocketStamps>,
    requests: Cell<u64>,
    /// Bytes of the request under way that the socket has taken.
    written: Cell<usize>,
    kept: Bytes,
    last: Bytes,
}

impl WireSocket {
    fn request(&self, is_last: bool) -> &[u8] {
        if is_last { &self.last } else { &self.kept }
    }

    /// Writes what the socket takes; `Err` when not a byte of the request went out and none will.
    fn poll_send(&self, context: &mut Context<'_>, is_last: bool) -> Poll<Result<(), NothingSent>> {
        let request = self.request(is_last);
        while self.written.get() < request.len() {
            if self.written.get() == 0 {
                self.stamps.before_write();
            }
            let mut stream = self.stream.borrow_mut();
            match Pin::new(&mut *stream).poll_write(context, &request[self.written.get()..]) {
                Poll::Ready(Ok(count)) if count > 0 => self.written.set(self.written.get() + count),
                Poll::Ready(_) if self.written.get() == 0 => {
                    self.stamps.arm();
                    return Poll::Ready(Err(NothingSent));
                }
                // The rest will not go out; whether an answer comes all the same is for the reader to find.
                Poll::Ready(_) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(scratch);
        let mut stream = self.stream.borrow_mut();
        Pin::new(&mut *stream).poll_read(context, &mut buffer).map_ok(|()| buffer.filled().len()).map(|count| {
            self.stamps.after_read(&count);
            count
        })
    }
}

impl EagerSend for WireSocket {
    fn try_send(&self, is_last: bool) -> bool {
        if self.stamps.end_of_stream_ns() != 0 {
            return false;
        }
        self.stamps.arm();
        self.stamps.before_write();
        let request = self.request(is_last);
        match self.stream.borrow().try_write(request) {
            Ok(count) if count > 0 => {
                self.written.set(count);
                true
            }
            _ => {
                self.stamps.arm();
                false
            }
        }
    }
}

impl Connection for WireConnection {
    async fn open(target: &Target) -> io::Result<Self> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let socket = WireSocket {
            stream: RefCell::new(stream),
            stamps: Rc::new(SocketStamps::default()),
            requests: Cell::new(0),
            written: Cell::new(0),
            kept: target.request_bytes(false),
            last: target.request_bytes(true),
        };
        Ok(Self { socket: Rc::new(socket), decoder: Decoder::new(target.is_head()) })
    }

    async fn exchange(&mut self, target: &Target, is_last: bool) -> Result<Exchanged, NothingSent> {
        self.decoder.reset();
        poll_fn(|context| self.socket.poll_send(context, is_last)).await?;
        self.socket.written.set(0);
        self.socket.requests.set(self.socket.requests.get() + 1);
        let mut check = BodyCheck::new(target.expected_body.as_ref());
        let (socket, decoder) = (&self.socket, &mut self.decoder);
        let end = poll_fn(|context| poll_answer(socket, decoder, &mut check, context)).await;
        Ok(self.judge(target, &check, end, is_last))
    }

    fn stamps(&self) -> Rc<SocketStamps> {
        Rc::clone(&self.socket.stamps)
    }

    fn requests(&self) -> u64 {
        self.socket.requests.get()
    }

    fn is_closed(&self) -> bool {
        self.socket.stamps.end_of_stream_ns() != 0
    }

    fn eager(&self) -> Option<Rc<dyn EagerSend>> {
        let socket: Rc<dyn EagerSend> = Rc::<WireSocket>::clone(&self.socket);
        Some(socket)
    }

    async fn ended_while_idle(&self) {
        // Bytes that nobody asked for end the connection as well as its end does.
        let _ =
            poll_fn(|context| SCRATCH.with_borrow_mut(|scratch| self.socket.poll_read(context, scratch))).await;
        self.socket.stamps.end_now();
    }
}

/// How the reading of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Complete { surplus: usize },
    Malformed,
    Closed,
}

/// Reads and decodes whatever has come, until the answer ends.
fn poll_answer(
    socket: &WireSocket,
    decoder: &mut Decoder,
    check: &mut BodyCheck<'_>,
    context: &mut Context<'_>,
) -> Poll<End> {
    SCRATCH.with_borrow_mut(|scratch| {
        loop {
            let count = match socket.poll_read(context, scratch) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => count,
                Poll::Ready(_) => return Poll::Ready(End::Closed),
            };
            match decoder.feed(&scratch[..count], &mut |part| check.take(part)) {
                Ok(Progress::NeedMore) => {}
                Ok(Progress::Complete { surplus }) => return Poll::Ready(End::Complete { surplus }),
                Err(Malformed) => return Poll::Ready(End::Malformed),
            }
        }
    })
}

impl WireConnection {
    fn judge(&self, target: &Target, check: &BodyCheck<'_>, end: End, is_last: bool) -> Exchanged {
        let stamps = &self.socket.stamps;
        let head = self.decoder.head();
        let status = head.map(|head| head.status);
        let is_complete = match end {
            End::Complete { .. } => true,
            End::Closed => self.decoder.is_complete_at_end(),
            End::Malformed => false,
        };
        let (Some(head), true) = (head, is_complete) else {
            let outcome = match end {
                End::Malformed => Outcome::BadBody,
                _ if self.requests() > 1 && stamps.first_read_ns() == 0 => Outcome::Stale,
                _ => Outcome::Reset,
            };
            return Exchanged { outcome, status, last_byte_ns: monotonic_ns(), is_reusable: false };
        };
        let outcome = match (target.accepts(head.status), check.is_right()) {
            (true, true) => Outcome::Ok,
            (true, false) => Outcome::BadBody,
            (false, _) => Outcome::HttpStatus,
        };
        let last_byte_ns = if head.is_until_close { stamps.end_of_stream_ns() } else { stamps.last_read_ns() };
        let is_reusable = !is_last && head.keeps_alive && end == End::Complete { surplus: 0 };
        Exchanged { outcome, status, last_byte_ns, is_reusable }
    }
}
