//! HTTP/1.1 by hyper, behind the same trait: a cross-check of the native framing.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Response, Version};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};

use crate::base::clock::monotonic_ns;
use crate::http::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_end,
    outcome_of_response,
};
use crate::http::decoder::MAX_HEAD_BYTES;
use crate::http::hyper_io::{Future, Observed, StampedTransport, WakeFlag};
use crate::http::inbox::Inbox;
use crate::http::malformed::{MAX_FIELDS, Rejection};
use crate::http::request::Request;
use crate::net::route::Route;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

type Protocol = http1::Connection<StampedTransport, Full<Bytes>>;
type Handshake = Future<hyper::Result<(Sender, Protocol)>>;
type Sender = SendRequest<Full<Bytes>>;

/// hyper's client, configured to accept what the native decoder accepts.
pub(crate) fn client() -> http1::Builder {
    let mut client = http1::Builder::new();
    client
        .allow_obsolete_multiline_headers_in_responses(true)
        .max_headers(MAX_FIELDS)
        .max_buf_size(MAX_HEAD_BYTES);
    client
}

/// An HTTP/1.1 connection by hyper.
pub(crate) struct HyperConnection {
    socket: Rc<Observed>,
    stage: Stage,
    requests: u64,
    wake: Arc<WakeFlag>,
    /// Whether the server responded while no request was in flight.
    is_unsolicited: bool,
}

enum Stage {
    Connecting,
    Handshake(Handshake),
    Idle {
        sender: Sender,
        protocol: Future<()>,
    },
    Exchange {
        exchange: Future<(Sender, Result<Exchanged, NothingSent>)>,
        protocol: Future<()>,
    },
    Over,
}

impl Connection for HyperConnection {
    fn open(route: &Route, _: ReceiveStamps, _: usize) -> io::Result<Self> {
        Ok(Self {
            socket: Observed::connect(route)?,
            stage: Stage::Connecting,
            requests: 0,
            wake: Arc::default(),
            is_unsolicited: false,
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.transport.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        if matches!(self.stage, Stage::Connecting) {
            if !self.socket.transport.is_connected()? {
                return Ok(false);
            }
            let io = StampedTransport(Rc::clone(&self.socket));
            // Requests are small: one flat write beats a vectored one.
            self.stage = Stage::Handshake(Box::pin(async move {
                client().writev(false).handshake(io).await
            }));
        }

        let Stage::Handshake(handshake) = &mut self.stage else {
            return Ok(true);
        };
        let Poll::Ready(done) = self.wake.run(|context| handshake.as_mut().poll(context)) else {
            return Ok(false);
        };

        let (sender, protocol) = done.map_err(io::Error::other)?;
        // The exchange that ends with the connection reports its failure and the cause.
        let protocol = Box::pin(async move { drop(protocol.await) });
        self.stage = Stage::Idle { sender, protocol };

        Ok(true)
    }

    fn begin(
        &mut self,
        _: usize,
        request: &Request,
        is_last: bool,
        _: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        self.socket.start_request();
        let Some(message) = request.message(is_last) else {
            return Ok(Some(Exchanged::unsendable(is_last)));
        };
        let Stage::Idle { sender, protocol } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return Err(NothingSent);
        };

        self.requests += 1;
        let exchange = Exchange {
            request: request.clone(),
            is_last,
            is_reused: self.requests > 1,
            socket: Rc::clone(&self.socket),
        };
        self.stage = Stage::Exchange {
            exchange: Box::pin(exchange.run(sender, message)),
            protocol,
        };

        // The first poll writes the request.
        self.poll().transpose()
    }

    fn advance<'r>(
        &mut self,
        _: impl Fn(usize) -> &'r Request,
        _: bool,
        _: &mut Inbox,
    ) -> Progress {
        self.socket.allow_reads();
        match self.poll() {
            Some(Ok(exchanged)) => Progress::Ended(0, exchanged),
            Some(Err(NothingSent)) => Progress::NothingSent(0),
            None if self.has_left_unread() => Progress::Yielding,
            None => Progress::Waiting,
        }
    }

    fn take_set_cookies(&mut self, _: usize) -> Vec<Vec<u8>> {
        self.socket.take_set_cookies()
    }

    fn take_captured(&mut self, _: usize) -> Vec<Vec<u8>> {
        self.socket.take_captured()
    }

    fn is_over_while_idle(&mut self, _: &mut Inbox) -> bool {
        self.socket.allow_reads();
        if let Stage::Idle { protocol, .. } = &mut self.stage {
            let ended = self
                .wake
                .run(|context| protocol.as_mut().poll(context))
                .is_ready();
            if ended && !self.socket.end.replace(true) {
                self.is_unsolicited = self.socket.has_unsolicited_response(0);
            }
        }

        self.is_closed()
    }

    fn has_left_unread(&self) -> bool {
        self.socket.has_read_enough()
    }

    fn is_closed(&self) -> bool {
        let is_sender_closed =
            matches!(&self.stage, Stage::Idle { sender, .. } if sender.is_closed());
        self.socket.end.get() || is_sender_closed || matches!(self.stage, Stage::Over)
    }

    fn note_early_bytes(&mut self) {
        self.socket
            .has_early_bytes
            .set(!self.socket.transport.is_tls());
    }

    fn take_refusal(&mut self) -> Option<io::Error> {
        std::mem::take(&mut self.is_unsolicited)
            .then(Rejection::unsolicited)
            .or_else(|| self.socket.transport.take_refusal())
    }

    fn stamps(&self, _: usize) -> ExchangeStamps {
        self.socket.stamps.get()
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

impl HyperConnection {
    /// Whether a response arrived before its request was sent: this one, or one that follows it.
    fn is_unsolicited(&self, is_protocol_over: bool, exchanged: &Exchanged) -> bool {
        let has_surplus = is_protocol_over && exchanged.is_reusable && !self.socket.end.get();
        self.socket.has_early_bytes.get() || has_surplus && self.socket.has_unsolicited_response(1)
    }

    /// Polls protocol and exchange until neither makes progress.
    fn poll(&mut self) -> Option<Result<Exchanged, NothingSent>> {
        let Stage::Exchange { exchange, protocol } = &mut self.stage else {
            return None;
        };

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
                    // The next poll of the exchange, which was woken by the end of the protocol,
                    // returns its failure.
                    *protocol = Box::pin(std::future::pending());
                }
                return None;
            }
        };
        let (sender, mut result) = ended;
        let Stage::Exchange { mut protocol, .. } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return None;
        };

        // hyper ends the connection if it finds bytes beyond the response.
        is_protocol_over = is_protocol_over
            || self.socket.without_reads(|| {
                let polled = self.wake.run(|context| protocol.as_mut().poll(context));
                polled.is_ready()
            });
        if let Ok(exchanged) = &mut result
            && exchanged.outcome == Outcome::Ok
            && self.is_unsolicited(is_protocol_over, exchanged)
        {
            (exchanged.outcome, exchanged.is_reusable) = (Outcome::BadBody, false);
            self.is_unsolicited = true;
        }

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

/// The state of one exchange.
struct Exchange {
    request: Request,
    is_last: bool,
    is_reused: bool,
    socket: Rc<Observed>,
}

impl Exchange {
    async fn run(
        self,
        mut sender: Sender,
        message: http::Request<Bytes>,
    ) -> (Sender, Result<Exchanged, NothingSent>) {
        if sender.ready().await.is_err() {
            return (sender, Err(NothingSent));
        }

        let result = sender.send_request(message.map(Full::new)).await;
        if self.socket.stamps.get().write_start_ns == 0 {
            return (sender, Err(NothingSent));
        }

        let exchanged = match result {
            Ok(response) => self.read_body(response).await,
            Err(error) => self.failed(&error, None),
        };
        (sender, Ok(exchanged))
    }

    async fn read_body(&self, response: Response<Incoming>) -> Exchanged {
        let status = response.status().as_u16();
        let framing = Framing::of(&response, &self.request);
        self.socket
            .note_set_cookies(&self.request, response.headers());
        let is_correct = match self.socket.is_body_correct(&self.request, response).await {
            Ok(is_correct) => is_correct,
            Err(error) => return self.failed(&error, Some(status)),
        };
        let outcome = outcome_of_response(&self.request, status, is_correct);
        let last_byte_ns = match framing {
            Framing::UntilClose => monotonic_ns(),
            Framing::Delimited { .. } => self.socket.stamps.get().last_byte_ns,
        };
        let is_reusable = !self.is_last && framing == Framing::Delimited { keeps_alive: true };

        Exchanged {
            outcome,
            status: Some(status),
            last_byte_ns,
            known_ns: last_byte_ns,
            receive_delay_ns: None,
            is_reusable,
            is_servers_end: framing != Framing::Delimited { keeps_alive: true },
        }
    }

    /// Classifies a failure by the progress of the exchange.
    fn failed(&self, error: &hyper::Error, status: Option<u16>) -> Exchanged {
        let requests = if self.is_reused { 2 } else { 1 };
        let is_servers_end = !(error.is_parse() || is_malformed_body(error));
        let outcome = if is_servers_end {
            outcome_of_end(requests, &self.socket.stamps.get())
        } else {
            Outcome::BadBody
        };

        Exchanged {
            is_servers_end,
            ..Exchanged::unreusable(outcome, status)
        }
    }
}

/// hyper reports a malformed chunk or trailer as a read failure.
fn is_malformed_body(error: &hyper::Error) -> bool {
    use std::error::Error as _;
    let kind = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    matches!(
        kind,
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
    )
}

/// How the end of a response is detected, and whether the connection outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Delimited { keeps_alive: bool },
    UntilClose,
}

impl Framing {
    fn of(response: &Response<Incoming>, request: &Request) -> Self {
        let headers = response.headers();
        let is_delimited = !request.response_may_have_body(response.status().as_u16())
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
