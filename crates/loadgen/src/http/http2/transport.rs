//! The transport below h2: it reads when the connection requests it, timestamps the bytes, and
//! parses frame headers.
//!
//! The streams process the bytes of each read before the next read, so that each stream gets the
//! timestamp of its bytes, and little data waits in memory.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::base::clock::monotonic_ns;
use crate::http::http2::frames::{FrameCounter, SentHeads};
use crate::net::route::Route;
use crate::net::socket::Transfer;
use crate::net::transport::Transport;

/// Maximum size of one read of the socket.
const READ_BYTES: usize = 8 * 1024;

/// The result of the latest attempt to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LastRead {
    /// h2 did not try.
    #[default]
    Untried,
    Nothing,
    /// Fewer bytes than there was room for.
    Short,
    Full,
    /// The end of the connection.
    End,
}

/// The transport, and what is recorded while h2 uses it.
pub(crate) struct Observed {
    pub transport: Transport,
    pub frames: RefCell<FrameCounter>,
    pub sent: RefCell<SentHeads>,
    /// Whether the connection has ended.
    pub end: Cell<bool>,
    /// Whether the socket accepts no more bytes for now.
    is_blocked: Cell<bool>,
    may_read: Cell<bool>,
    last_read: Cell<LastRead>,
    received_ns: Cell<u64>,
}

impl Observed {
    /// Starts to connect.
    pub fn connect(route: &Route) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            transport: Transport::connect(route)?,
            frames: RefCell::default(),
            sent: RefCell::default(),
            end: Cell::new(false),
            is_blocked: Cell::new(false),
            may_read: Cell::new(false),
            last_read: Cell::default(),
            received_ns: Cell::new(0),
        }))
    }

    /// Lets h2 read once while `poll` polls it; returns the result.
    pub fn reading_once(&self, poll: impl FnOnce()) -> LastRead {
        self.last_read.set(LastRead::Untried);
        self.may_read.set(true);
        poll();
        self.may_read.set(false);
        self.last_read.get()
    }

    /// When the latest bytes arrived.
    pub fn received_ns(&self) -> u64 {
        self.received_ns.get()
    }

    /// Whether the socket accepts no more bytes for now.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    fn received(&self, bytes: &[u8], room: usize) -> io::Result<()> {
        self.received_ns.set(self.transport.received_ns());
        self.last_read.set(if bytes.len() < room {
            LastRead::Short
        } else {
            LastRead::Full
        });

        let mut frames = self.frames.borrow_mut();
        frames.take(bytes);
        if frames.is_flooded() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }
}

/// h2's side of the transport. It wakes nothing: the engine polls when the reactor reports an
/// event.
pub(crate) struct ObservedTransport(pub Rc<Observed>);

impl AsyncRead for ObservedTransport {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let observed = &self.0;
        if !observed.may_read.replace(false) {
            return Poll::Pending;
        }

        let room = buffer.remaining().min(READ_BYTES);
        let space = buffer.initialize_unfilled_to(room);
        match observed.transport.receive(space) {
            Transfer::Bytes(count) => {
                let received = observed.received(&space[..count], room);
                buffer.advance(count);
                Poll::Ready(received)
            }
            Transfer::WouldBlock => {
                observed.last_read.set(LastRead::Nothing);
                Poll::Pending
            }
            end @ (Transfer::Broken | Transfer::Closed) => {
                observed.end.set(true);
                observed.last_read.set(LastRead::End);
                Poll::Ready(observed.transport.end_of_read(end))
            }
        }
    }
}

impl AsyncWrite for ObservedTransport {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let before_ns = monotonic_ns();
        let transfer = self.0.transport.send(bytes);
        self.0.is_blocked.set(transfer == Transfer::WouldBlock);
        match transfer {
            Transfer::Bytes(count) => {
                self.0.sent.borrow_mut().take(&bytes[..count], before_ns);
                Poll::Ready(Ok(count))
            }
            Transfer::WouldBlock => Poll::Pending,
            Transfer::Closed | Transfer::Broken => {
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.0.transport.poll_flush();
        self.0.is_blocked.set(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
