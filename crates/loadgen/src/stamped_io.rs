//! A socket that stamps its own writes and reads, so that instants are those of the socket and not of a task.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::monotonic_ns;

/// Instants of the exchange under way, in nanoseconds; 0 where it has not happened yet.
#[derive(Debug, Default)]
pub(crate) struct SocketStamps {
    write_start_ns: Cell<u64>,
    first_read_ns: Cell<u64>,
    last_read_ns: Cell<u64>,
    end_of_stream_ns: Cell<u64>,
}

impl SocketStamps {
    /// Forgets the previous exchange.
    pub fn arm(&self) {
        self.write_start_ns.set(0);
        self.first_read_ns.set(0);
        self.last_read_ns.set(0);
    }

    /// Immediately before the first write.
    pub fn write_start_ns(&self) -> u64 {
        self.write_start_ns.get()
    }

    /// After the first read that returned bytes.
    pub fn first_read_ns(&self) -> u64 {
        self.first_read_ns.get()
    }

    /// After the latest read that returned bytes.
    pub fn last_read_ns(&self) -> u64 {
        self.last_read_ns.get()
    }

    /// After the read that found the peer's end of the stream, or that failed; such a connection is over.
    pub fn end_of_stream_ns(&self) -> u64 {
        self.end_of_stream_ns.get()
    }

    /// Notes that the connection is over.
    pub fn end_now(&self) {
        if self.end_of_stream_ns.get() == 0 {
            self.end_of_stream_ns.set(monotonic_ns());
        }
    }

    /// Notes the instant before a write, if it is the first of the exchange.
    pub fn before_write(&self) {
        if self.write_start_ns.get() == 0 {
            self.write_start_ns.set(monotonic_ns());
        }
    }

    /// Notes the instant after a read that has ended.
    pub fn after_read(&self, outcome: &io::Result<usize>) {
        let now_ns = monotonic_ns();
        match outcome {
            Ok(0) | Err(_) => self.end_of_stream_ns.set(now_ns),
            Ok(_) => {
                self.last_read_ns.set(now_ns);
                if self.first_read_ns.get() == 0 {
                    self.first_read_ns.set(now_ns);
                }
            }
        }
    }
}

/// A TCP stream with stamps that its owner can read while the stream is lent to a protocol.
#[derive(Debug)]
pub(crate) struct StampedStream {
    stream: TcpStream,
    stamps: Rc<SocketStamps>,
}

impl StampedStream {
    pub fn new(stream: TcpStream, stamps: Rc<SocketStamps>) -> Self {
        Self { stream, stamps }
    }
}

impl AsyncRead for StampedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(outcome) = poll {
            let count = outcome.map(|()| buffer.filled().len() - before);
            self.stamps.after_read(&count);
            return Poll::Ready(count.map(|_| ()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for StampedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stamps.before_write();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
