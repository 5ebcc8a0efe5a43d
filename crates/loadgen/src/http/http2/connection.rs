//! An HTTP/2 connection framed by h2, with as many concurrent streams as the plan and the server
//! allow.
//!
//! The engine polls h2 directly: on each socket event and each sent request, it runs the protocol
//! until it makes no more progress, then the streams that the protocol woke.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use h2::client::{Builder, SendRequest};
use http::HeaderMap;
use http::Uri;
use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use hyper::body::Bytes;

use crate::http::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_end,
    outcome_of_response,
};
use crate::http::http2::frames::{CONNECTION_WINDOW_BYTES, MAX_HEADER_LIST_BYTES};
use crate::http::http2::stream::{Notes, Response, Start, Stream};
use crate::http::http2::transport::{LastRead, Observed, ObservedTransport};
use crate::http::http2::wakes::Wakes;
use crate::http::hyper_io::{Future, WakeFlag};
use crate::http::inbox::Inbox;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

/// Maximum number of reads per turn, enough to receive a large response in a few turns.
const MAX_READS_PER_TURN: usize = 128;

/// The same as in hyper's client: a large response does not wait for window updates.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;

/// The limit before the server's settings arrive; neither a real limit nor "no limit" has this
/// value.
const UNKNOWN_LIMIT: usize = usize::MAX - 1;

/// Frames on a cancelled stream are ignored for this long, for at most this many streams. Frames
/// beyond these limits count as violations, of which h2 tolerates 1,024.
const IGNORED_AFTER_RESET: Duration = Duration::from_secs(30);
const MAX_IGNORED_STREAMS: usize = 1_000;

type Sender = SendRequest<Bytes>;
type Protocol = h2::client::Connection<ObservedTransport, Bytes>;

/// The head and the body of a request.
type Message = (http::Request<()>, Bytes);

/// An HTTP/2 connection.
pub(crate) struct Http2Connection {
    observed: Rc<Observed>,
    stage: Stage,
    places: Vec<Place>,
    /// Places whose streams can make progress.
    wakes: Wakes,
    /// Whether the connection itself can make progress.
    wake: Arc<WakeFlag>,
    requests: u64,
    in_progress: usize,
    /// Concurrent streams that the server allows; one until it announces its limit.
    allowed: usize,
    has_limit: bool,
    reads_left: usize,
    /// Whether all data that the reactor has reported was read.
    is_drained: bool,
    /// The peer has closed its side, but bytes may still be unread.
    is_hangup: bool,
}

enum Stage {
    Connecting,
    Handshake(Future<Result<(Sender, Protocol), h2::Error>>),
    Open {
        sender: Sender,
        protocol: Box<Protocol>,
    },
    Over,
}

/// A place for one stream at a time.
#[derive(Default)]
struct Place {
    stream: Option<Stream>,
    /// Notes of the current or latest stream.
    notes: Notes,
}

impl Connection for Http2Connection {
    fn open(route: &Route, _: ReceiveStamps, places: usize) -> io::Result<Self> {
        Ok(Self {
            observed: Observed::connect(route)?,
            stage: Stage::Connecting,
            places: std::iter::repeat_with(Place::default)
                .take(places)
                .collect(),
            wakes: Wakes::new(places),
            wake: Arc::default(),
            requests: 0,
            in_progress: 0,
            allowed: 1,
            has_limit: false,
            reads_left: 0,
            is_drained: true,
            is_hangup: false,
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.observed.transport.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        if matches!(self.stage, Stage::Connecting) {
            if !self.observed.transport.is_connected()? {
                return Ok(false);
            }
            let transport = ObservedTransport(Rc::clone(&self.observed));
            self.stage =
                Stage::Handshake(Box::pin(async move { client().handshake(transport).await }));
        }

        let Stage::Handshake(handshake) = &mut self.stage else {
            return Ok(true);
        };
        let Poll::Ready(done) = self.wake.run(|context| handshake.as_mut().poll(context)) else {
            return Ok(false);
        };

        let (sender, protocol) = done.map_err(io::Error::other)?;
        let protocol = Box::new(protocol);
        self.stage = Stage::Open { sender, protocol };

        Ok(true)
    }

    fn max_exchanges(&self) -> usize {
        self.allowed
    }

    fn announced_limit(&self) -> Option<usize> {
        self.has_limit.then_some(self.allowed)
    }

    fn begin(
        &mut self,
        place: usize,
        request: &Request,
        is_last: bool,
        now_ns: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        let Some(message) = message_of(request, self.observed.transport.is_tls()) else {
            self.places[place] = Place::default();
            return Ok(Some(Exchanged::unsendable(is_last)));
        };
        let stream = self.send(message, is_last).ok_or(NothingSent)?;
        self.places[place] = Place {
            stream: Some(stream),
            notes: Notes::default(),
        };
        self.requests += 1;
        self.in_progress += 1;
        self.observed.frames.borrow_mut().start_request();

        // Writes the request.
        self.run_protocol();
        let stamps = &mut self.places[place].notes.stamps;
        if stamps.write_start_ns == 0 && self.observed.is_blocked() {
            stamps.blocked_since_ns = now_ns;
        }
        match self.run_stream(place, request) {
            None => Ok(None),
            Some(Ok(exchanged)) => Ok(Some(exchanged)),
            Some(Err(NothingSent)) => Err(NothingSent),
        }
    }

    fn start_turn(&mut self) {
        self.reads_left = MAX_READS_PER_TURN;
        self.is_drained = false;
        self.observed.frames.borrow_mut().start_turn();
    }

    fn advance<'r>(
        &mut self,
        request_at: impl Fn(usize) -> &'r Request,
        is_hangup: bool,
        _: &mut Inbox,
    ) -> Progress {
        self.is_hangup |= is_hangup;
        loop {
            while let Some(place) = self.wakes.take() {
                match self.run_stream(place, request_at(place)) {
                    None => {}
                    Some(Ok(exchanged)) => return Progress::Ended(place, exchanged),
                    Some(Err(NothingSent)) => return Progress::NothingSent(place),
                }
            }

            if !self.has_left_unread() {
                return Progress::Waiting;
            }
            if self.has_read_enough() {
                return Progress::Yielding;
            }
            self.read_once();
        }
    }

    fn take_set_cookies(&mut self, place: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.places[place].notes.set_cookies)
    }

    fn take_captured(&mut self, place: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.places[place].notes.captured)
    }

    fn cancel(&mut self, place: usize) -> bool {
        if self.end_stream(place).is_some() {
            // Sends the reset to the server.
            self.run_protocol();
        }
        // Data that the server does not read would accumulate in memory with every stream.
        self.is_shared() && !self.is_closed() && !self.observed.is_blocked()
    }

    fn is_over_while_idle(&mut self, _: &mut Inbox) -> bool {
        // Settings, pings and GOAWAY are handled here.
        self.start_turn();
        while self.has_left_unread() && !self.has_read_enough() {
            self.read_once();
            // Streams that have ended may be woken, too.
            while self.wakes.take().is_some() {}
        }
        self.is_closed() || self.observed.frames.borrow().is_flooded_while_idle()
    }

    fn has_left_unread(&self) -> bool {
        let is_over = matches!(self.stage, Stage::Over);
        !(self.is_drained || is_over) || !self.wakes.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.observed.end.get()
            || matches!(self.stage, Stage::Over)
            || self.observed.frames.borrow().is_going_away()
    }

    fn take_refusal(&mut self) -> Option<io::Error> {
        self.observed.transport.take_refusal()
    }

    fn stamps(&self, place: usize) -> ExchangeStamps {
        self.places[place].notes.stamps
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

impl Http2Connection {
    /// Whether it carries several requests at a time. If so, one failed request is no reason to
    /// close it.
    fn is_shared(&self) -> bool {
        self.places.len() > 1
    }

    fn has_read_enough(&self) -> bool {
        self.reads_left == 0 || self.observed.frames.borrow().has_taken_enough()
    }

    /// Opens a stream and queues its request.
    fn send(&mut self, (head, body): Message, is_last: bool) -> Option<Stream> {
        let Stage::Open { sender, .. } = &mut self.stage else {
            return None;
        };
        let ready = self.wake.run(|context| sender.poll_ready(context));
        let Poll::Ready(Ok(())) = ready else {
            return None;
        };

        let (response, mut sending) = sender.send_request(head, body.is_empty()).ok()?;
        if !body.is_empty() {
            // If the stream has failed, its response says why.
            let _ = sending.send_data(body, true);
        }

        let start = Start {
            is_last,
            is_after_idling: self.requests > 0 && self.in_progress == 0,
        };
        Some(Stream::new(response, start))
    }

    /// Lets the protocol read once.
    fn read_once(&mut self) {
        self.reads_left = self.reads_left.saturating_sub(1);
        let observed = Rc::clone(&self.observed);
        let last_read = observed.reading_once(|| self.run_protocol());
        self.is_drained = match last_read {
            // The socket accepts no more of the data that must be written first; the reactor
            // reports when it does.
            LastRead::Untried | LastRead::Nothing | LastRead::End => true,
            // The reactor reports data that arrives later, but it has already reported a close.
            LastRead::Short => observed.transport.is_emptied_by_short_read() && !self.is_hangup,
            LastRead::Full => false,
        };

        let Stage::Open { protocol, .. } = &self.stage else {
            return;
        };
        let limit = protocol.max_concurrent_send_streams();
        if limit != UNKNOWN_LIMIT {
            self.allowed = limit.min(self.places.len());
            self.has_limit = true;
        }
    }

    /// Runs the protocol until it makes no more progress, and records which heads it has sent.
    fn run_protocol(&mut self) {
        let Stage::Open { protocol, .. } = &mut self.stage else {
            return;
        };

        let polled = self
            .wake
            .run(|context| Pin::new(&mut **protocol).poll(context));
        for (id, write_start_ns) in self.observed.sent.borrow_mut().drain() {
            let is_this = |place: &&mut Place| {
                let stream = place.stream.as_ref();
                stream.is_some_and(|stream| stream.id == id)
            };
            if let Some(place) = self.places.iter_mut().find(is_this) {
                place.notes.stamps.write_start_ns = write_start_ns;
            }
        }

        if polled.is_ready() {
            // The streams that end with the connection report its failure and the cause.
            self.observed.end.set(true);
            self.stage = Stage::Over;
            let in_use = |place: &usize| self.places[*place].stream.is_some();
            (0..self.places.len())
                .filter(in_use)
                .for_each(|place| self.wakes.waker(place).wake_by_ref());
        }
    }

    /// Runs the stream in this place, if it has one; returns how it ended, if it has.
    fn run_stream(
        &mut self,
        place: usize,
        request: &Request,
    ) -> Option<Result<Exchanged, NothingSent>> {
        let Place { stream, notes } = &mut self.places[place];
        let current = stream.as_mut()?;
        let mut context = Context::from_waker(self.wakes.waker(place));
        let received_ns = self.observed.received_ns();
        let ended = match current.poll(&mut context, request, (received_ns, notes)) {
            Poll::Ready(Ok(response)) => Ok(response),
            Poll::Ready(Err(error)) => Err(Some(error)),
            Poll::Pending if matches!(self.stage, Stage::Over) => Err(None),
            Poll::Pending => return None,
        };

        let (start, status) = self.end_stream(place)?;
        if self.wake.is_set() {
            // Sends the frames that follow the end of the response.
            self.run_protocol();
        }

        let stamps = &self.places[place].notes.stamps;
        if ended.is_err() && stamps.write_start_ns == 0 {
            self.requests -= 1;
            return Some(Err(NothingSent));
        }
        Some(Ok(match ended {
            Ok(response) => completed(start, request, response, stamps),
            Err(error) => Exchanged {
                status,
                ..self.failed(start, error.as_ref(), stamps)
            },
        }))
    }

    /// Ends the stream in this place. If its response is incomplete, h2 resets it.
    fn end_stream(&mut self, place: usize) -> Option<(Start, Option<u16>)> {
        let stream = self.places[place].stream.take()?;
        self.in_progress -= 1;
        if self.in_progress == 0 {
            self.observed.frames.borrow_mut().start_idling();
        }
        Some(stream.facts())
    }

    fn failed(
        &self,
        start: Start,
        error: Option<&h2::Error>,
        stamps: &ExchangeStamps,
    ) -> Exchanged {
        let is_malformed = error.is_some_and(is_malformed);
        let is_ending = self.observed.end.get() || self.observed.frames.borrow().is_going_away();
        let outcome = if is_malformed {
            Outcome::BadBody
        } else if is_ending && start.is_after_idling {
            outcome_of_end(self.requests, stamps)
        } else {
            Outcome::Reset
        };

        Exchanged {
            // A server that rejects a single request may keep the connection.
            is_servers_end: self.is_closed() && !is_malformed,
            is_reusable: self.is_shared() && !start.is_last && !self.is_closed(),
            ..Exchanged::unreusable(outcome, None)
        }
    }
}

fn completed(
    start: Start,
    request: &Request,
    response: Response,
    stamps: &ExchangeStamps,
) -> Exchanged {
    let Response {
        status,
        is_body_correct,
    } = response;
    Exchanged {
        outcome: outcome_of_response(request, status, is_body_correct),
        status: Some(status),
        last_byte_ns: stamps.last_byte_ns,
        known_ns: stamps.last_byte_ns,
        receive_delay_ns: None,
        is_reusable: !start.is_last,
        is_servers_end: false,
    }
}

fn client() -> Builder {
    let mut client = Builder::new();
    client
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .initial_max_send_streams(UNKNOWN_LIMIT)
        .max_concurrent_reset_streams(MAX_IGNORED_STREAMS)
        .reset_stream_duration(IGNORED_AFTER_RESET)
        .enable_push(false);
    client
}

/// The head of a request in HTTP/2 form, with `:authority` instead of `Host` and without
/// connection-specific header fields, and its body; `None` if h2 cannot represent it.
fn message_of(request: &Request, is_tls: bool) -> Option<Message> {
    let (mut parts, body) = request.message(false)?.into_parts();
    let host = parts.headers.remove(HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let scheme = if is_tls { Scheme::HTTPS } else { Scheme::HTTP };
    let path = parts.uri.path_and_query().cloned();
    let mut uri = http::uri::Parts::default();
    uri.scheme = authority.is_some().then_some(scheme);
    uri.authority = authority;
    uri.path_and_query = path.or(Some(PathAndQuery::from_static("/")));
    parts.uri = Uri::from_parts(uri).ok()?;

    remove_connection_fields(&mut parts.headers);
    Some((http::Request::from_parts(parts, ()), body))
}

/// RFC 9113, section 8.2.2.
fn remove_connection_fields(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
}

/// Whether the client ended the connection because the server violated the protocol or flooded it.
/// Errors that the server announced in a frame, and the end of the connection, do not count.
fn is_malformed(error: &h2::Error) -> bool {
    let is_flood = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    error.is_library() || error.get_io().is_some_and(is_flood)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::RequestParts;
    use crate::plan::{HttpVersion, ResponseCheck};

    #[test]
    fn a_head_has_an_authority_and_no_connection_fields() {
        let fields = ["Connection: close", "Keep-Alive: 5", "TE: gzip", "X-A: b"];
        let headers = fields.map(|field| {
            let (name, value) = field.split_once(": ").expect("a field");
            (name.to_owned(), value.to_owned())
        });
        let request = Request::prepare(RequestParts {
            http_version: HttpVersion::Http2,
            method: "GET",
            path: "/a?b",
            authority: "h:8000",
            headers: &headers,
            default_headers: &[],
            body_base64: None,
            check: &ResponseCheck::default(),
            keeps_cookies: false,
            captures: None,
            stand_ins: None,
        });
        let request = request.expect("a request");

        for (is_tls, uri) in [(false, "http://h:8000/a?b"), (true, "https://h:8000/a?b")] {
            let (head, _) = message_of(&request, is_tls).expect("a message");
            assert_eq!(head.uri().to_string(), uri);
            let names: Vec<&str> = head.headers().keys().map(|name| name.as_str()).collect();
            assert_eq!(names, ["x-a"]);
        }
    }
}
