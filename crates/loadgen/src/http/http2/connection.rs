//! An HTTP/2 connection with native framing, with as many concurrent streams as the plan and the
//! server allow.
//!
//! A request is only queued when it begins: the engine has all requests of a turn written together.
//! All frames of a read are processed at once; exchanges that end by them are reported one by one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hyper::body::Bytes;

use crate::base::clock::monotonic_ns;
use crate::http::body_check::BodyCheck;
use crate::http::captures::KeptResponse;
use crate::http::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_end,
    outcome_of_response,
};
use crate::http::http2::flood::{CONNECTION_WINDOW_BYTES, FrameCounter, MAX_HEADER_LIST_BYTES};
use crate::http::http2::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ErrorCode, FRAME_BYTES, FrameHeader,
    FrameReader, GOAWAY, HEADERS, MAX_31_BITS, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};
use crate::http::http2::output::Output;
use crate::http::http2::request_head::Encoder;
use crate::http::http2::response_head::{HeadReader, KeptFields, ResponseHead};
use crate::http::inbox::Inbox;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::net::socket::Transfer;
use crate::net::transport::Transport;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

/// What a client sends before its first frame: RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Maximum size of one read, whose frames are all processed before due requests are sent.
const READ_BYTES: usize = 16 * 1024;

/// Maximum number of reads per turn, enough to receive a large response in a few turns.
const MAX_READS_PER_TURN: usize = 128;

/// A large response does not wait for window updates.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;

/// The window of a connection or a stream, unless the settings say otherwise.
const DEFAULT_WINDOW_BYTES: u32 = 65_535;

/// Settings: RFC 9113, section 6.5.2.
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;

/// An HTTP/2 connection.
pub(crate) struct Http2Connection {
    transport: Transport,
    output: Output,
    encoder: Encoder,
    frames: FrameReader,
    heads: HeadReader,
    /// A head that continues in the next frame.
    unfinished_head: Option<(FrameHeader, Vec<u8>)>,
    counter: FrameCounter,
    places: Vec<Place>,
    /// The stream in each place; 0 without one.
    streams: Vec<u32>,
    next_stream: u32,
    /// Places whose request has a body that is not sent.
    uploads: VecDeque<usize>,
    /// Ends of exchanges that are not reported.
    ended: VecDeque<Progress>,
    requests: u64,
    /// Exchanges whose end is not reported.
    in_progress: usize,
    /// Concurrent streams that the server allows, once it has sent its settings.
    limit: Option<usize>,
    /// Bytes that the client may send, on all streams together and on a new one.
    send_window: i64,
    initial_window: i64,
    /// Bytes that the server may send on all streams together, and on those that were cancelled.
    receive_window: i64,
    cancelled_window: i64,
    /// When the latest bytes arrived.
    received_ns: u64,
    reads_left: usize,
    /// Whether all data that the reactor has reported was read.
    is_drained: bool,
    /// The peer has closed its side, but bytes may still be unread.
    is_hangup: bool,
    is_going_away: bool,
    is_over: bool,
}

/// A place for one stream at a time, with what is known of the current or latest one.
struct Place {
    stamps: ExchangeStamps,
    /// Whether the client closes the connection after it.
    is_last: bool,
    /// Whether the connection had been used before and was idle.
    is_after_idling: bool,
    body: Bytes,
    sent_bytes: usize,
    send_window: i64,
    receive_window: i64,
    status: Option<u16>,
    /// The length of the response's body, if it is known, and what has arrived.
    content_length: Option<u64>,
    received_bytes: u64,
    check: BodyCheck,
    kept: KeptFields,
    /// The values captured from a correct response.
    captured: Vec<Vec<u8>>,
}

impl Connection for Http2Connection {
    const IS_BATCHED: bool = true;

    fn open(route: &Route, _: ReceiveStamps, places: usize) -> io::Result<Self> {
        let transport = Transport::connect(route)?;
        Ok(Self {
            output: greeting(),
            encoder: Encoder::new(transport.is_tls()),
            transport,
            frames: FrameReader::default(),
            heads: HeadReader::default(),
            unfinished_head: None,
            counter: FrameCounter::default(),
            places: std::iter::repeat_with(Place::new).take(places).collect(),
            streams: vec![0; places],
            next_stream: 1,
            uploads: VecDeque::new(),
            ended: VecDeque::new(),
            requests: 0,
            in_progress: 0,
            limit: None,
            send_window: DEFAULT_WINDOW_BYTES.into(),
            initial_window: DEFAULT_WINDOW_BYTES.into(),
            receive_window: CONNECTION_WINDOW_BYTES.into(),
            cancelled_window: 0,
            received_ns: 0,
            reads_left: 0,
            is_drained: true,
            is_hangup: false,
            is_going_away: false,
            is_over: false,
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        self.transport.is_connected()
    }

    fn max_exchanges(&self) -> usize {
        self.limit.unwrap_or(1)
    }

    fn announced_limit(&self) -> Option<usize> {
        self.limit
    }

    fn begin(
        &mut self,
        place: usize,
        request: &Request,
        is_last: bool,
        _: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        let Some(head) = request.http2_head() else {
            self.places[place].stamps = ExchangeStamps::default();
            return Ok(Some(Exchanged::unsendable(is_last)));
        };
        if self.is_closed() {
            return Err(NothingSent);
        }

        let stream = self.next_stream;
        let is_after_idling = self.requests > 0 && self.in_progress == 0;
        let current = &mut self.places[place];
        current.reset();
        (current.is_last, current.is_after_idling) = (is_last, is_after_idling);
        current.send_window = self.initial_window;
        current.body = request.body();
        if !current.body.is_empty() {
            self.uploads.push_back(place);
        }
        self.output.head(stream, current.body.is_empty(), |out| {
            self.encoder.write(&head, out);
        });

        self.streams[place] = stream;
        self.next_stream += 2;
        self.requests += 1;
        self.in_progress += 1;
        self.counter.start_request();
        Ok(None)
    }

    fn flush(&mut self) {
        while !self.is_over {
            self.add_bodies();
            if self.output.is_empty() {
                return;
            }
            let (streams, places) = (&self.streams, &mut self.places);
            self.output.write(&self.transport, |stream, before_ns| {
                if let Some(place) = streams.iter().position(|one| *one == stream) {
                    places[place].stamps.write_start_ns = before_ns;
                }
            });
            if self.output.is_blocked() || self.output.is_closed() {
                return self.note_unsent();
            }
        }
    }

    fn start_turn(&mut self) {
        self.reads_left = MAX_READS_PER_TURN;
        self.is_drained = false;
        self.counter.start_turn();
    }

    fn advance<'r>(
        &mut self,
        request_at: impl Fn(usize) -> &'r Request,
        is_hangup: bool,
        inbox: &mut Inbox,
    ) -> Progress {
        self.is_hangup |= is_hangup;
        loop {
            if let Some(ended) = self.ended.pop_front() {
                self.in_progress -= 1;
                if self.in_progress == 0 {
                    self.counter.start_idling();
                }
                return ended;
            }
            if !self.has_left_unread() {
                self.flush();
                if !self.has_left_unread() {
                    return Progress::Waiting;
                }
            } else if self.has_read_enough() {
                self.flush();
                if self.ended.is_empty() {
                    return Progress::Yielding;
                }
            } else {
                self.read_once(&|place| Some(request_at(place)), inbox);
            }
        }
    }

    fn take_set_cookies(&mut self, place: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.places[place].kept.set_cookies)
    }

    fn take_captured(&mut self, place: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.places[place].captured)
    }

    fn cancel(&mut self, place: usize) -> bool {
        if self.streams[place] != 0 {
            self.reset(place, ErrorCode::Cancel);
            self.release(place);
            self.in_progress -= 1;
        } else {
            // Its end is not reported yet.
            let before = self.ended.len();
            self.ended.retain(|one| one.place() != Some(place));
            self.in_progress -= before - self.ended.len();
        }
        if self.in_progress == 0 {
            self.counter.start_idling();
        }
        self.flush();
        // Data that the server does not read would accumulate in memory with every stream.
        self.is_shared() && !self.is_closed() && !self.output.is_blocked()
    }

    fn is_over_while_idle(&mut self, inbox: &mut Inbox) -> bool {
        // Settings, pings and GOAWAY are handled here.
        self.start_turn();
        while self.has_left_unread() && !self.has_read_enough() {
            self.read_once(&|_| None, inbox);
        }
        self.flush();
        self.is_closed() || self.counter.is_flooded_while_idle()
    }

    fn has_left_unread(&self) -> bool {
        !self.ended.is_empty() || !(self.is_drained || self.is_over)
    }

    fn is_closed(&self) -> bool {
        let is_used_up = self.next_stream > MAX_31_BITS;
        self.is_over || self.is_going_away || self.output.is_closed() || is_used_up
    }

    fn take_refusal(&mut self) -> Option<io::Error> {
        self.transport.take_refusal()
    }

    fn stamps(&self, place: usize) -> ExchangeStamps {
        self.places[place].stamps
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

/// What a client sends first: its settings, and a larger window.
fn greeting() -> Output {
    let settings = [
        (ENABLE_PUSH, 0),
        (INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES),
        (MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST_BYTES),
    ];
    let payload = settings.map(|(name, value)| {
        let ([a, b], [c, d, e, f]) = (name.to_be_bytes(), value.to_be_bytes());
        [a, b, c, d, e, f]
    });

    let mut output = Output::beginning_with(PREFACE);
    output.control(SETTINGS, 0, 0, payload.as_flattened());
    output.open_window(0, CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES);
    output
}

impl Place {
    fn new() -> Self {
        Self {
            stamps: ExchangeStamps::default(),
            is_last: false,
            is_after_idling: false,
            body: Bytes::new(),
            sent_bytes: 0,
            send_window: 0,
            receive_window: 0,
            status: None,
            content_length: None,
            received_bytes: 0,
            check: BodyCheck::new(),
            kept: KeptFields::default(),
            captured: Vec::new(),
        }
    }

    /// Prepares the place for another stream, and keeps its buffers.
    fn reset(&mut self) {
        self.stamps = ExchangeStamps::default();
        self.sent_bytes = 0;
        self.receive_window = STREAM_WINDOW_BYTES.into();
        (self.status, self.content_length) = (None, None);
        self.received_bytes = 0;
        self.check.reset();
        self.kept.set_cookies.clear();
        self.captured.clear();
    }

    /// Captures the values; returns whether the response has all of them.
    fn capture(&mut self, request: &Request) -> bool {
        let Some(captures) = &request.captures else {
            return true;
        };

        let values = captures.of(&KeptResponse {
            fields: &self.kept.captured,
            body: self.check.kept(),
        });
        let is_complete = values.is_ok();
        self.captured = values.unwrap_or_default();
        is_complete
    }
}

/// Sending.
impl Http2Connection {
    /// Adds as much of the bodies as the windows allow, a frame of each in turn.
    fn add_bodies(&mut self) {
        let mut idle_turns = 0;
        while idle_turns < self.uploads.len() && self.send_window > 0 && self.output.has_room() {
            let Some(number) = self.uploads.pop_front() else {
                return;
            };
            let place = &mut self.places[number];
            let rest = &place.body[place.sent_bytes..];
            let window = self.send_window.min(place.send_window).max(0);
            let bytes = rest.len().min(FRAME_BYTES).min(window as usize);
            if bytes == 0 {
                idle_turns += 1;
                self.uploads.push_back(number);
                continue;
            }

            idle_turns = 0;
            let is_end = bytes == rest.len();
            let frame = FrameHeader {
                kind: DATA,
                flags: if is_end { END_STREAM } else { 0 },
                stream: self.streams[number],
                payload_bytes: bytes,
            };
            self.output.data(frame, &rest[..bytes]);
            place.sent_bytes += bytes;
            place.send_window -= bytes as i64;
            self.send_window -= bytes as i64;
            if !is_end {
                self.uploads.push_back(number);
            }
        }
    }

    /// The socket accepts no more bytes for now, or at all.
    fn note_unsent(&mut self) {
        if self.output.is_closed() {
            // What has arrived can still be read, including the end of the connection.
            self.is_drained = false;
            for place in 0..self.places.len() {
                if self.streams[place] != 0 && self.places[place].stamps.write_start_ns == 0 {
                    self.fail(place, false);
                }
            }
            return;
        }

        let now_ns = monotonic_ns();
        for stream in self.output.unsent_heads() {
            if let Some(place) = self.streams.iter().position(|one| *one == stream) {
                let stamps = &mut self.places[place].stamps;
                if stamps.blocked_since_ns == 0 {
                    stamps.blocked_since_ns = now_ns;
                }
            }
        }
    }

    /// Resets a stream. The server may have sent more on it.
    fn reset(&mut self, place: usize, code: ErrorCode) {
        self.cancelled_window += self.places[place].receive_window;
        self.output.reset(self.streams[place], code);
    }
}

/// Ends of exchanges.
impl Http2Connection {
    /// Whether it carries several requests at a time. If so, one failed request is no reason to
    /// close it.
    fn is_shared(&self) -> bool {
        self.places.len() > 1
    }

    /// Frees a place from its stream.
    fn release(&mut self, place: usize) {
        self.streams[place] = 0;
        let current = &mut self.places[place];
        if current.sent_bytes < current.body.len() {
            self.uploads.retain(|upload| *upload != place);
        }
        current.body = Bytes::new();
    }

    /// A response is complete.
    fn complete(&mut self, place: usize, request: &Request) {
        let current = &mut self.places[place];
        let is_length_wrong = |length| length != current.received_bytes;
        let Some(status) = current.status else {
            return;
        };
        if current.content_length.is_some_and(is_length_wrong) {
            return self.reject(place, ErrorCode::Protocol);
        }

        let is_correct =
            current.check.is_correct(&request.expected_body) && current.capture(request);
        let exchanged = Exchanged {
            outcome: outcome_of_response(request, status, is_correct),
            status: Some(status),
            last_byte_ns: current.stamps.last_byte_ns,
            known_ns: current.stamps.last_byte_ns,
            receive_delay_ns: None,
            is_reusable: !current.is_last,
            is_servers_end: false,
        };
        if current.sent_bytes < current.body.len() {
            // The response does not depend on the rest of the request.
            current.receive_window = 0;
            self.reset(place, ErrorCode::Cancel);
        }
        self.release(place);
        self.ended.push_back(Progress::Ended(place, exchanged));
    }

    /// A response violates HTTP/2.
    fn reject(&mut self, place: usize, code: ErrorCode) {
        self.reset(place, code);
        self.fail(place, true);
    }

    /// An exchange has failed. `is_malformed`: the server violated the protocol or flooded the
    /// connection.
    fn fail(&mut self, place: usize, is_malformed: bool) {
        self.release(place);
        let current = &self.places[place];
        if current.stamps.write_start_ns == 0 {
            self.requests -= 1;
            return self.ended.push_back(Progress::NothingSent(place));
        }

        let outcome = if is_malformed {
            Outcome::BadBody
        } else if self.is_closed() && current.is_after_idling {
            outcome_of_end(self.requests, &current.stamps)
        } else {
            Outcome::Reset
        };
        let exchanged = Exchanged {
            // A server that rejects a single request may keep the connection.
            is_servers_end: self.is_closed() && !is_malformed,
            is_reusable: self.is_shared() && !current.is_last && !self.is_closed(),
            ..Exchanged::unreusable(outcome, current.status)
        };
        self.ended.push_back(Progress::Ended(place, exchanged));
    }

    /// The connection is over, and with it all exchanges.
    fn end(&mut self, is_malformed: bool) {
        self.is_over = true;
        for place in 0..self.places.len() {
            if self.streams[place] != 0 {
                self.fail(place, is_malformed);
            }
        }
    }
}

/// Receiving. `request_at` gives the request in each place.
impl Http2Connection {
    fn has_read_enough(&self) -> bool {
        self.reads_left == 0 || self.counter.has_taken_enough()
    }

    /// Reads once, and processes all frames that have arrived.
    fn read_once<'r>(
        &mut self,
        request_at: &impl Fn(usize) -> Option<&'r Request>,
        inbox: &mut Inbox,
    ) {
        if self.output.is_overfull() {
            self.flush();
        }
        if self.output.is_overfull() {
            // The reactor reports when the socket accepts the answers to what was read before.
            self.is_drained = true;
            return;
        }

        self.reads_left = self.reads_left.saturating_sub(1);
        let buffer = &mut inbox.buffer[..READ_BYTES];
        match self.transport.receive(buffer) {
            Transfer::Bytes(count) => {
                // The reactor reports data that arrives later, but it has already reported a close.
                self.is_drained = count < READ_BYTES
                    && self.transport.is_emptied_by_short_read()
                    && !self.is_hangup;
                self.received_ns = self.transport.received_ns();
                self.take(&buffer[..count], request_at);
            }
            Transfer::WouldBlock => self.is_drained = true,
            Transfer::Closed | Transfer::Broken => self.end(false),
        }
    }

    fn take<'r>(&mut self, bytes: &[u8], request_at: &impl Fn(usize) -> Option<&'r Request>) {
        self.counter.received(bytes.len());
        let mut frames = std::mem::take(&mut self.frames);
        let taken = frames.take(bytes, |frame, payload| {
            self.take_frame(frame, payload, request_at)
        });
        self.frames = frames;
        if let Err(code) = taken {
            self.output.go_away(code);
            self.flush();
            self.end(true);
        }
    }

    #[inline]
    fn take_frame<'r>(
        &mut self,
        frame: FrameHeader,
        payload: &[u8],
        request_at: &impl Fn(usize) -> Option<&'r Request>,
    ) -> Result<(), ErrorCode> {
        if self.counter.is_flooded_by(frame) {
            return Err(ErrorCode::Calm);
        }
        let continues = |(head, _): &(FrameHeader, _)| {
            frame.kind == CONTINUATION && frame.stream == head.stream
        };
        if self
            .unfinished_head
            .as_ref()
            .is_some_and(|head| !continues(head))
        {
            return Err(ErrorCode::Protocol);
        }

        match frame.kind {
            DATA => self.take_data(frame, payload, request_at),
            HEADERS if !frame.has(END_HEADERS) => {
                self.place_of(frame.stream)?;
                let block = frame.unpadded(payload)?.to_vec();
                self.unfinished_head = Some((frame, block));
                Ok(())
            }
            HEADERS => self.take_head(frame, frame.unpadded(payload)?, request_at),
            CONTINUATION => {
                let (head, mut block) = self.unfinished_head.take().ok_or(ErrorCode::Protocol)?;
                block.extend_from_slice(payload);
                if frame.has(END_HEADERS) {
                    return self.take_head(head, &block, request_at);
                }
                self.unfinished_head = Some((head, block));
                Ok(())
            }
            _ => self.take_control(frame, payload),
        }
    }

    fn take_control(&mut self, frame: FrameHeader, payload: &[u8]) -> Result<(), ErrorCode> {
        let is_of_stream = frame.stream != 0;
        match (frame.kind, payload.len()) {
            (PUSH_PROMISE, _) => Err(ErrorCode::Protocol),
            (SETTINGS | PING | GOAWAY, _) if is_of_stream => Err(ErrorCode::Protocol),
            (PRIORITY | RST_STREAM, _) if !is_of_stream => Err(ErrorCode::Protocol),
            (SETTINGS, 0) if frame.has(ACK) => Ok(()),
            (SETTINGS, bytes) if bytes.is_multiple_of(6) && !frame.has(ACK) => {
                self.take_settings(payload)
            }
            (PING, 8) => {
                if !frame.has(ACK) {
                    self.output.control(PING, ACK, 0, payload);
                }
                Ok(())
            }
            (GOAWAY, 8..) => {
                self.go_away(number_of(payload)? & MAX_31_BITS);
                Ok(())
            }
            (RST_STREAM, 4) => {
                if let Some(place) = self.place_of(frame.stream)? {
                    self.fail(place, false);
                }
                Ok(())
            }
            (WINDOW_UPDATE, 4) => self.take_window(frame.stream, number_of(payload)?),
            (PRIORITY, 5) => Ok(()),
            (SETTINGS | PING | GOAWAY | RST_STREAM | WINDOW_UPDATE | PRIORITY, _) => {
                Err(ErrorCode::FrameSize)
            }
            // Extensions.
            _ => Ok(()),
        }
    }

    /// The place of a stream, unless it has ended.
    #[inline]
    fn place_of(&self, stream: u32) -> Result<Option<usize>, ErrorCode> {
        let is_opened = stream % 2 == 1 && stream < self.next_stream;
        if !is_opened {
            return Err(ErrorCode::Protocol);
        }
        Ok(self.streams.iter().position(|one| *one == stream))
    }

    fn take_data<'r>(
        &mut self,
        frame: FrameHeader,
        payload: &[u8],
        request_at: &impl Fn(usize) -> Option<&'r Request>,
    ) -> Result<(), ErrorCode> {
        let bytes = payload.len() as i64;
        let body = frame.unpadded(payload)?;
        let place = self.place_of(frame.stream)?;
        take_window(&mut self.receive_window, bytes)?;
        if let Some(more) = missing(&mut self.receive_window, CONNECTION_WINDOW_BYTES) {
            self.output.open_window(0, more);
        }
        let Some((place, request)) = place.and_then(|place| Some((place, request_at(place)?)))
        else {
            return take_window(&mut self.cancelled_window, bytes);
        };

        let current = &mut self.places[place];
        take_window(&mut current.receive_window, bytes)?;
        if current.status.is_none() {
            return Err(ErrorCode::Protocol);
        }
        current.stamps.last_byte_ns = self.received_ns;
        current.received_bytes += body.len() as u64;
        let is_too_long = |length| current.received_bytes > length;
        if current.content_length.is_some_and(is_too_long) {
            self.reject(place, ErrorCode::Protocol);
            return Ok(());
        }

        current.check.take(&request.expected_body, body);
        if frame.has(END_STREAM) {
            self.complete(place, request);
        } else if let Some(more) = missing(&mut current.receive_window, STREAM_WINDOW_BYTES) {
            self.output.open_window(frame.stream, more);
        }
        Ok(())
    }

    fn take_head<'r>(
        &mut self,
        frame: FrameHeader,
        block: &[u8],
        request_at: &impl Fn(usize) -> Option<&'r Request>,
    ) -> Result<(), ErrorCode> {
        let place = self.place_of(frame.stream)?;
        let Some((place, request)) = place.and_then(|place| Some((place, request_at(place)?)))
        else {
            // The dynamic table must follow.
            return self
                .heads
                .read(block, None, &mut KeptFields::default())
                .map(drop);
        };

        let current = &mut self.places[place];
        let is_end = frame.has(END_STREAM);
        if current.status.is_some() {
            let trailers = self.heads.read(block, None, &mut KeptFields::default())?;
            current.stamps.last_byte_ns = self.received_ns;
            if trailers.is_malformed || trailers.status.is_some() || !is_end {
                self.reject(place, ErrorCode::Protocol);
            } else {
                self.complete(place, request);
            }
            return Ok(());
        }

        let head = self.heads.read(block, Some(request), &mut current.kept)?;
        match head {
            ResponseHead {
                status: Some(100..=199),
                is_malformed: false,
                ..
            } if !is_end => current.kept.set_cookies.clear(),
            ResponseHead {
                status: Some(status @ 200..),
                is_malformed: false,
                content_length,
            } => {
                current.status = Some(status);
                current.content_length = if request.response_may_have_body(status) {
                    content_length
                } else {
                    Some(0)
                };
                // Frames of the connection may have arrived before.
                current.stamps.first_byte_ns = self.received_ns;
                current.stamps.last_byte_ns = self.received_ns;
                if is_end {
                    self.complete(place, request);
                }
            }
            _ => self.reject(place, ErrorCode::Protocol),
        }
        Ok(())
    }

    fn take_settings(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
        let mut limit = self.limit.unwrap_or(usize::MAX);
        let (settings, _) = payload.as_chunks::<6>();
        for [name @ .., a, b, c, d] in settings {
            let value = u32::from_be_bytes([*a, *b, *c, *d]);
            match u16::from_be_bytes(*name) {
                HEADER_TABLE_SIZE => self.encoder.limit_table(value as usize),
                ENABLE_PUSH if value > 1 => return Err(ErrorCode::Protocol),
                MAX_CONCURRENT_STREAMS => limit = value as usize,
                INITIAL_WINDOW_SIZE => self.set_initial_window(value)?,
                MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(ErrorCode::Protocol);
                }
                _ => {}
            }
        }
        self.limit = Some(limit.min(self.places.len()));
        self.output.control(SETTINGS, ACK, 0, &[]);
        Ok(())
    }

    /// Streams that are open have the new window, too: RFC 9113, section 6.9.2.
    fn set_initial_window(&mut self, bytes: u32) -> Result<(), ErrorCode> {
        let change = i64::from(bytes) - self.initial_window;
        self.initial_window = bytes.into();
        let places = self.streams.iter().zip(&mut self.places);
        let mut open = places.filter(|(stream, _)| **stream != 0);
        let is_valid = bytes <= MAX_31_BITS
            && open.all(|(_, place)| {
                place.send_window += change;
                place.send_window <= MAX_31_BITS.into()
            });
        is_valid.then_some(()).ok_or(ErrorCode::FlowControl)
    }

    fn take_window(&mut self, stream: u32, bytes: u32) -> Result<(), ErrorCode> {
        let bytes = i64::from(bytes & MAX_31_BITS);
        if bytes == 0 {
            return Err(ErrorCode::Protocol);
        }
        if stream == 0 {
            self.send_window += bytes;
            let is_valid = self.send_window <= MAX_31_BITS.into();
            return is_valid.then_some(()).ok_or(ErrorCode::FlowControl);
        }

        if let Some(place) = self.place_of(stream)? {
            let window = &mut self.places[place].send_window;
            *window += bytes;
            if *window > MAX_31_BITS.into() {
                self.reject(place, ErrorCode::FlowControl);
            }
        }
        Ok(())
    }

    /// The server accepts no more requests, and none after this stream.
    fn go_away(&mut self, last: u32) {
        self.is_going_away = true;
        for place in 0..self.places.len() {
            if self.streams[place] > last {
                self.fail(place, false);
            }
        }
    }
}

/// Takes bytes from a window.
fn take_window(window: &mut i64, bytes: i64) -> Result<(), ErrorCode> {
    *window -= bytes;
    (*window >= 0).then_some(()).ok_or(ErrorCode::FlowControl)
}

/// Fills a window if most of it is used; returns by how much.
fn missing(window: &mut i64, full: u32) -> Option<u32> {
    let missing = i64::from(full) - *window;
    (missing > i64::from(full / 2)).then(|| {
        *window = full.into();
        missing as u32
    })
}

/// The number at the beginning of a payload.
fn number_of(payload: &[u8]) -> Result<u32, ErrorCode> {
    let bytes = payload.first_chunk().ok_or(ErrorCode::FrameSize)?;
    Ok(u32::from_be_bytes(*bytes))
}
