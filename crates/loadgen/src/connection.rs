//! One HTTP/1.1 connection: open it, exchange one request at a time, know whether it may be used again.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::clock::monotonic_ns;
use crate::exchange::Outcome;
use crate::stamped_io::{SocketStamps, StampedStream};
use crate::target::Target;

/// The end of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub last_byte_ns: u64,
    /// Whether the server let the connection live.
    pub is_reusable: bool,
}

/// A protocol over one connection. Implementations know nothing of schedules, pools or records.
pub(crate) trait Connection: Sized {
    /// Connects.
    async fn open(target: &Target) -> io::Result<Self>;

    /// Sends one request and reads its answer to the end. `Err` when nothing of it was written because the server
    /// had ended the connection meanwhile: the request may then go out on another one.
    async fn exchange(&mut self, target: &Target, is_last: bool) -> Result<Exchanged, NothingSent>;

    /// Instants of the exchange under way, or of the latest. The caller arms them before each exchange.
    fn stamps(&self) -> Rc<SocketStamps>;

    /// Requests that were written to this connection, the one under way included.
    fn requests(&self) -> u64;

    /// Whether the server has ended the connection, as far as is known without asking the socket.
    fn is_closed(&self) -> bool;

    /// What can send a request on this connection without a turn of the runtime; `None` for a protocol that cannot.
    fn eager(&self) -> Option<Rc<dyn EagerSend>> {
        None
    }

    /// Returns when the server ends the connection while no request is under way.
    async fn ended_while_idle(&self) {
        std::future::pending().await
    }
}

/// Sends a request from outside the connection's own task.
pub(crate) trait EagerSend {
    /// Writes the request, or its beginning, at once; the exchange then goes on from there. `false` when nothing was
    /// written, and the exchange has to begin as usual.
    fn try_send(&self, is_last: bool) -> bool;
}

/// The connection had ended before a byte of the request was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NothingSent;

/// HTTP/1.1 by hyper's connection interface.
pub(crate) struct HyperConnection {
    sender: SendRequest<Full<Bytes>>,
    protocol: JoinHandle<()>,
    stamps: Rc<SocketStamps>,
    requests: Cell<u64>,
}

impl Drop for HyperConnection {
    fn drop(&mut self) {
        // The task owns the socket; without this a connection given up after a timeout would stay open.
        self.protocol.abort();
    }
}

impl Connection for HyperConnection {
    async fn open(target: &Target) -> io::Result<Self> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let stamps = Rc::new(SocketStamps::default());
        let io = TokioIo::new(StampedStream::new(stream, Rc::clone(&stamps)));
        // Requests are small: one flat write beats a vectored one.
        let (sender, connection) =
            http1::Builder::new().writev(false).handshake(io).await.map_err(io::Error::other)?;
        let protocol = tokio::task::spawn_local(async move {
            // Its failure is seen, with its cause, by the exchange that it ends.
            let _ = connection.await;
        });
        Ok(Self { sender, protocol, stamps, requests: Cell::new(0) })
    }

    async fn exchange(&mut self, target: &Target, is_last: bool) -> Result<Exchanged, NothingSent> {
        if self.sender.ready().await.is_err() {
            return Err(NothingSent);
        }
        let answer = self.sender.send_request(target.request(is_last)).await;
        if self.stamps.write_start_ns() == 0 {
            return Err(NothingSent);
        }
        self.requests.set(self.requests.get() + 1);
        match answer {
            Ok(response) => Ok(self.read_body(response, target, is_last).await),
            Err(error) => Ok(self.failed(&error, None)),
        }
    }

    fn stamps(&self) -> Rc<SocketStamps> {
        Rc::clone(&self.stamps)
    }

    fn requests(&self) -> u64 {
        self.requests.get()
    }

    fn is_closed(&self) -> bool {
        self.stamps.end_of_stream_ns() != 0 || self.sender.is_closed()
    }
}

impl HyperConnection {
    async fn read_body(&self, response: Response<Incoming>, target: &Target, is_last: bool) -> Exchanged {
        let status = response.status().as_u16();
        let framing = Framing::of(&response, target);
        let mut body = response.into_body();
        let mut check = BodyCheck::new(target.expected_body.as_ref());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => frame.data_ref().into_iter().for_each(|bytes| check.take(bytes)),
                Err(error) => return self.failed(&error, Some(status)),
            }
        }
        let outcome = match (target.accepts(status), check.is_right()) {
            (true, true) => Outcome::Ok,
            (true, false) => Outcome::BadBody,
            (false, _) => Outcome::HttpStatus,
        };
        let last_byte_ns = match framing {
            Framing::UntilClose => self.stamps.end_of_stream_ns(),
            Framing::Delimited { .. } => self.stamps.last_read_ns(),
        };
        let is_reusable = !is_last && framing == Framing::Delimited { keeps_alive: true };
        Exchanged { outcome, status: Some(status), last_byte_ns, is_reusable }
    }

    /// Sorts a failure by how far the exchange had come.
    fn failed(&self, error: &hyper::Error, status: Option<u16>) -> Exchanged {
        let is_reused = self.requests.get() > 1;
        let has_answer_bytes = self.stamps.first_read_ns() != 0;
        let outcome = if error.is_parse() {
            Outcome::BadBody
        } else if is_reused && !has_answer_bytes {
            Outcome::Stale
        } else {
            Outcome::Reset
        };
        Exchanged { outcome, status, last_byte_ns: monotonic_ns(), is_reusable: false }
    }
}

/// How the end of an answer is found, and whether the connection outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Delimited { keeps_alive: bool },
    UntilClose,
}

impl Framing {
    fn of(response: &Response<Incoming>, target: &Target) -> Self {
        let headers = response.headers();
        let is_delimited = !target.answer_may_have_body(response.status().as_u16())
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

/// Compares a body with the expected one as it arrives, without keeping it.
pub(crate) struct BodyCheck<'a> {
    expected: Option<&'a Bytes>,
    length: usize,
    is_right: bool,
}

impl<'a> BodyCheck<'a> {
    /// Without an expected body every body is right.
    pub fn new(expected: Option<&'a Bytes>) -> Self {
        Self { expected, length: 0, is_right: true }
    }

    /// Takes the next part.
    pub fn take(&mut self, bytes: &[u8]) {
        let (from, to) = (self.length, self.length + bytes.len());
        self.length = to;
        if let Some(expected) = self.expected {
            self.is_right &= expected.get(from..to) == Some(bytes);
        }
    }

    /// Whether all parts together are the expected body.
    pub fn is_right(&self) -> bool {
        self.is_right && self.expected.is_none_or(|expected| expected.len() == self.length)
    }
}

/// Sorts a failure to connect.
pub(crate) fn connect_failure(error: &io::Error) -> Outcome {
    use rustix::io::Errno;
    let own_limits =
        [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM, Errno::AGAIN, Errno::PERM];
    if own_limits.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) {
        return Outcome::ClientError;
    }
    match error.kind() {
        io::ErrorKind::TimedOut => Outcome::ConnectTimeout,
        io::ErrorKind::ConnectionReset => Outcome::Reset,
        _ => Outcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_compared_across_frames() {
        let expected = Bytes::from_static(b"hello");
        for (frames, right) in [
            (vec!["hello"], true),
            (vec!["he", "", "llo"], true),
            (vec!["hel"], false),
            (vec!["hello", "!"], false),
            (vec!["hellO"], false),
            (vec![], false),
        ] {
            let mut check = BodyCheck::new(Some(&expected));
            frames.iter().for_each(|frame| check.take(frame.as_bytes()));
            assert_eq!(check.is_right(), right, "{frames:?}");
        }
        assert!(BodyCheck::new(None).is_right());
    }

    #[test]
    fn running_out_of_our_own_resources_is_our_fault() {
        let from = |errno: rustix::io::Errno| connect_failure(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(from(rustix::io::Errno::MFILE), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::ADDRNOTAVAIL), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::CONNREFUSED), Outcome::Refused);
        assert_eq!(from(rustix::io::Errno::TIMEDOUT), Outcome::ConnectTimeout);
    }
}
