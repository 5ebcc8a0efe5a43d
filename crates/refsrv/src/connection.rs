//! One connection: receive a request, wait for its planned finish, respond or misbehave as planned.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{TcpStream, UnixStream};

use crate::arrival::{Arrival, StampedReceiver};
use crate::clock::{burn_cpu, now_ns};
use crate::fault::Fault;
use crate::http::{HeadError, RequestHead, parse_head};
use crate::log::Outcome;
use crate::queue::Slot;
use crate::response::{Framing, Layout, Response, reason};
use crate::shared::Shared;

const RECEIVE_BYTES: usize = 4096;
/// How much longer, and how many more bytes, to read from a rejected client. Closing with unread
/// bytes would abort the connection and lose the error response.
const LINGER_NS: u64 = 1_000_000_000;
const LINGER_BYTES: usize = 1 << 20;

/// A connection over TCP or over a Unix socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + AsFd + Unpin {
    /// Calls `read` when bytes may have arrived, and again whenever it would block.
    async fn when_readable<T>(&self, read: impl FnMut() -> io::Result<T>) -> io::Result<T>;
}

impl Stream for TcpStream {
    async fn when_readable<T>(&self, read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.async_io(Interest::READABLE, read).await
    }
}

impl Stream for UnixStream {
    async fn when_readable<T>(&self, read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.async_io(Interest::READABLE, read).await
    }
}

/// Serves a connection until either side closes it.
pub(crate) async fn serve(stream: impl Stream, shared: Rc<Shared>) {
    let stamped = shared.config.log_queued.then(StampedReceiver::new);
    let connection = Connection {
        stream,
        stamped,
        shared,
        received: Vec::new(),
        responses: 0,
        is_stale: false,
    };
    connection.run().await;
}

struct Connection<S> {
    stream: S,
    /// Receives with kernel timestamps, if requested.
    stamped: Option<StampedReceiver>,
    shared: Rc<Shared>,
    /// Received but not yet processed.
    received: Vec<u8>,
    responses: u64,
    /// The next request will find the connection closed.
    is_stale: bool,
}

enum Next {
    Request(RequestHead, Arrival),
    Refused(HeadError),
    Closed,
}

/// What happens to the connection after an exchange. It is closed by dropping it.
enum Then {
    Continue,
    Close,
    HoldOpen,
}

impl<S: Stream> Connection<S> {
    async fn run(mut self) {
        loop {
            let (head, arrival) = match self.next_request().await {
                Next::Request(head, arrival) => (head, arrival),
                Next::Refused(error) => return self.refuse(error).await,
                Next::Closed => return,
            };
            if self.is_stale {
                return self.shared.count(|stats| stats.stale_closed += 1);
            }
            match self.exchange(head, arrival).await {
                Then::Continue => {}
                Then::Close => return,
                Then::HoldOpen => return self.discard_until_closed().await,
            }
        }
    }

    async fn next_request(&mut self) -> Next {
        // A pipelined request has already been received; for the queue, it arrives now.
        let mut arrival = Arrival::now();
        loop {
            match parse_head(&self.received) {
                Ok(Some(head)) => {
                    self.received.drain(..head.head_bytes);
                    return Next::Request(head, arrival);
                }
                Ok(None) => {}
                Err(error) => return Next::Refused(error),
            }
            match self.receive().await {
                Some(latest) => arrival = latest,
                None => return Next::Closed,
            }
        }
    }

    /// Receives more bytes; `None` at the end of the connection.
    async fn receive(&mut self) -> Option<Arrival> {
        let Some(stamped) = &mut self.stamped else {
            self.received.reserve(RECEIVE_BYTES);
            let count = self.stream.read_buf(&mut self.received).await.ok()?;
            return (count > 0).then(Arrival::now);
        };

        let (stream, received) = (&self.stream, &mut self.received);
        stream
            .when_readable(|| stamped.receive(stream.as_fd(), received))
            .await
            .ok()?
    }

    async fn exchange(&mut self, head: RequestHead, arrival: Arrival) -> Then {
        let (slot, fault) = self.shared.arrive(arrival.read_ns);
        let is_last = self.is_last(&head);
        // Laid out in advance, so that only the write remains when it is due.
        let mut response = self.lay_out(&head, &slot, fault, is_last);
        if !self.discard_body(head.body_bytes).await {
            self.shared.depart(now_ns());
            self.shared
                .record(&slot, arrival.queued_ns, None, Outcome::ClientGone);
            return Then::Close;
        }

        self.shared.timer.sleep_until(slot.finish_ns).await;
        burn_cpu(self.shared.config.cpu_ns);

        let write_ns = now_ns();
        self.shared.depart(write_ns);
        response.stamp_write(write_ns);

        let outcome = self.deliver(&response, fault).await;
        let attempted_ns = (outcome != Outcome::NeverAnswered).then_some(write_ns);
        // Logged before the client can see the close: the log is complete for a client that has
        // read until the close.
        self.shared
            .record(&slot, arrival.queued_ns, attempted_ns, outcome);

        self.responses += 1;
        self.is_stale = outcome == Outcome::StaleClose;
        match outcome {
            Outcome::NeverAnswered => Then::HoldOpen,
            Outcome::Answered | Outcome::Status(_) | Outcome::WrongBody | Outcome::StaleClose
                if !is_last =>
            {
                Then::Continue
            }
            _ => Then::Close,
        }
    }

    fn is_last(&self, head: &RequestHead) -> bool {
        let config = &self.shared.config;
        let is_full = config
            .requests_per_connection
            .is_some_and(|max| self.responses + 1 >= max);
        is_full || !head.keep_alive || config.framing == Framing::UntilClose
    }

    fn lay_out(
        &self,
        head: &RequestHead,
        slot: &Slot,
        fault: Option<Fault>,
        is_last: bool,
    ) -> Response {
        let config = &self.shared.config;
        let (status, body) = match fault {
            Some(Fault::Status(status)) => (status, reason(status).as_bytes()),
            Some(Fault::WrongBody) => (200, self.shared.wrong_body.as_slice()),
            _ => (200, config.body.as_slice()),
        };
        let connection = if is_last {
            // A client that requested the close always gets `Connection: close`.
            (config.announce_close || !head.keep_alive).then_some("close")
        } else {
            head.is_http_1_0.then_some("keep-alive")
        };

        Response::lay_out(&Layout {
            status,
            body,
            framing: config.framing,
            stamps: config.stamp_headers.then_some(slot),
            connection,
            head_only: head.wants_no_body,
        })
    }

    /// Reads and discards the request body; false if the connection ended within it.
    async fn discard_body(&mut self, body_bytes: u64) -> bool {
        let mut remaining = body_bytes;
        loop {
            let available = remaining.min(self.received.len() as u64);
            // At most `received.len()`, so it fits.
            self.received.drain(..available as usize);
            remaining -= available;
            if remaining == 0 {
                return true;
            }
            if self.receive().await.is_none() {
                return false;
            }
        }
    }

    async fn deliver(&mut self, response: &Response, fault: Option<Fault>) -> Outcome {
        let (sent, outcome) = match fault {
            Some(Fault::NeverAnswer) => return Outcome::NeverAnswered,
            Some(Fault::Reset) => (self.abort_on_close(), Outcome::Reset),
            Some(Fault::ResetMidBody) => {
                let sent = self.stream.write_all(response.first_half()).await;
                (
                    sent.and_then(|()| self.abort_on_close()),
                    Outcome::ResetMidBody,
                )
            }
            Some(Fault::Truncate) => (
                self.stream.write_all(response.first_half()).await,
                Outcome::Truncated,
            ),
            Some(Fault::Status(status)) => (self.send(response).await, Outcome::Status(status)),
            Some(Fault::WrongBody) => (self.send(response).await, Outcome::WrongBody),
            Some(Fault::StaleClose) => (self.send(response).await, Outcome::StaleClose),
            Some(Fault::HoldFor(_)) | None => (self.send(response).await, Outcome::Answered),
        };
        if sent.is_ok() {
            outcome
        } else {
            Outcome::ClientGone
        }
    }

    async fn send(&mut self, response: &Response) -> io::Result<()> {
        self.stream.write_all(response.bytes()).await
    }

    /// Makes the coming close an abort: the kernel sends RST instead of FIN.
    fn abort_on_close(&self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO))
    }

    async fn refuse(&mut self, error: HeadError) {
        self.shared.count(|stats| stats.refused_heads += 1);
        let response = Response::lay_out(&Layout {
            status: error.status(),
            body: error.to_string().as_bytes(),
            framing: Framing::ContentLength,
            stamps: None,
            connection: Some("close"),
            head_only: false,
        });
        if self.send(&response).await.is_err() || self.stream.shutdown().await.is_err() {
            return;
        }

        let shared = Rc::clone(&self.shared);
        tokio::select! {
            () = shared.timer.sleep_until(now_ns() + LINGER_NS) => {}
            () = self.discard_at_most(LINGER_BYTES) => {}
        }
    }

    async fn discard_at_most(&mut self, bytes: usize) {
        let mut remaining = bytes;
        self.received.clear();
        while remaining > 0 && self.receive().await.is_some() {
            remaining = remaining.saturating_sub(self.received.len());
            self.received.clear();
        }
    }

    async fn discard_until_closed(&mut self) {
        self.discard_at_most(usize::MAX).await;
    }
}
