//! One HTTP/1.1 connection with native framing: request bytes prepared once, timestamps directly
//! around the socket calls, nothing allocated per request.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::http::body_check::BodyCheck;
use crate::http::captures::{Captures, KeptResponse};
use crate::http::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_end,
    outcome_of_response,
};
use crate::http::decoder::{Decoder, Progress as Decoded};
use crate::http::inbox::{Inbox, Received};
use crate::http::malformed::{Malformed, Rejection, is_unsolicited_response};
use crate::http::request::Request;
use crate::net::route::Route;
use crate::net::socket::Transfer;
use crate::net::transport::Transport;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;
use crate::record::wrong_responses::{KEPT_BYTES, WrongResponse};

/// An endless response must not block the thread's other connections.
const MAX_READS_PER_TURN: usize = 16;

/// HTTP/1.1 with native framing.
pub(crate) struct WireConnection {
    transport: Transport,
    decoder: Decoder,
    check: BodyCheck,
    /// The beginning of a response that has not arrived in one read.
    opening: Vec<u8>,
    /// The values captured from the response, or why one is missing.
    captured: Option<Box<Result<Vec<Vec<u8>>, String>>>,
    stamps: ExchangeStamps,
    requests: u64,
    receive_stamps: ReceiveStamps,
    /// When the latest bytes were read.
    read_ns: u64,
    /// Delay from their kernel timestamp to that read.
    receive_delay_ns: Option<u64>,
    /// Bytes of the current request that the socket has accepted.
    written: usize,
    is_last: bool,
    /// The peer has closed its side, but bytes may still be unread.
    is_hangup: bool,
    /// No more bytes will arrive.
    is_over: bool,
    /// Whether the server responded while no request was in flight.
    is_unsolicited: bool,
}

/// How reading a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Complete {
        surplus: usize,
    },
    Malformed,
    Closed,
    /// The connection ended, but not by an orderly close by the server.
    CutOff,
}

impl Connection for WireConnection {
    fn open(route: &Route, stamps: ReceiveStamps, _: usize) -> io::Result<Self> {
        let transport = Transport::connect(route)?;
        let is_stamped = stamps != ReceiveStamps::User && transport.stamp_arrivals();
        Ok(Self {
            receive_stamps: if is_stamped {
                stamps
            } else {
                ReceiveStamps::User
            },
            transport,
            decoder: Decoder::new(false),
            check: BodyCheck::new(),
            opening: Vec::new(),
            captured: None,
            stamps: ExchangeStamps::default(),
            requests: 0,
            read_ns: 0,
            receive_delay_ns: None,
            written: 0,
            is_last: false,
            is_hangup: false,
            is_over: false,
            is_unsolicited: false,
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        self.transport.is_connected()
    }

    #[inline(always)]
    fn begin(
        &mut self,
        _: usize,
        request: &Request,
        is_last: bool,
        now_ns: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        self.decoder.reset(request.is_head());
        if request.accepts_switch {
            self.decoder.accept_switch();
        }
        if request.keeps_cookies {
            self.decoder.keep_set_cookies();
        }
        if let Some(captures) = &request.captures {
            self.decoder.keep_fields(captures.fields());
        }

        self.captured = None;
        self.check.reset();
        self.opening.clear();
        self.stamps = ExchangeStamps {
            write_start_ns: now_ns,
            ..ExchangeStamps::default()
        };
        self.written = 0;
        self.is_last = is_last;
        if self.write(request) == Transfer::Closed && self.written == 0 {
            self.stamps.write_start_ns = 0;
            return Err(NothingSent);
        }

        self.requests += 1;
        Ok(None)
    }

    #[inline(always)]
    fn advance<'r>(
        &mut self,
        request_at: impl Fn(usize) -> &'r Request,
        is_hangup: bool,
        inbox: &mut Inbox,
    ) -> Progress {
        let request = request_at(0);
        self.is_hangup |= is_hangup;
        if self.written < request.bytes(self.is_last).len() {
            // If the rest cannot be sent, the reader still finds out whether a response arrives.
            self.write(request);
        }
        self.read(request, inbox)
    }

    fn take_set_cookies(&mut self, _: usize) -> Vec<Vec<u8>> {
        self.decoder.take_set_cookies()
    }

    fn take_captured(&mut self, _: usize) -> Vec<Vec<u8>> {
        let captured = self.captured.take();
        captured
            .and_then(|captured| captured.ok())
            .unwrap_or_default()
    }

    fn is_over_while_idle(&mut self, inbox: &mut Inbox) -> bool {
        // Unsolicited bytes end the connection just like a close.
        let received = self.transport.receive(&mut inbox.buffer);
        if let Transfer::Bytes(count) = received {
            self.is_unsolicited = is_unsolicited_response(&inbox.buffer[..count]);
        }
        self.is_over |= received != Transfer::WouldBlock;
        self.is_over
    }

    fn is_closed(&self) -> bool {
        self.is_over || self.is_hangup
    }

    fn note_early_bytes(&mut self) {
        // With TLS, these may be session tickets.
        if !self.transport.is_tls() {
            self.decoder.reject(Rejection::Unsolicited);
        }
    }

    fn take_refusal(&mut self) -> Option<io::Error> {
        let is_rejected = self.decoder.rejection() == Some(Rejection::Unsolicited);
        (std::mem::take(&mut self.is_unsolicited) || is_rejected)
            .then(Rejection::unsolicited)
            .or_else(|| self.transport.take_refusal())
    }

    fn stamps(&self, _: usize) -> ExchangeStamps {
        self.stamps
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

impl WireConnection {
    /// Writes as much of the request as the socket accepts; returns the result of the last call.
    #[inline(always)]
    fn write(&mut self, request: &Request) -> Transfer {
        let bytes = request.bytes(self.is_last);
        loop {
            let transfer = self.transport.send(&bytes[self.written..]);
            let Transfer::Bytes(count) = transfer else {
                return transfer;
            };
            self.written += count;
            if self.written == bytes.len() {
                return transfer;
            }
        }
    }

    /// Reads and decodes what has arrived.
    #[inline(always)]
    fn read(&mut self, request: &Request, inbox: &mut Inbox) -> Progress {
        for _ in 0..MAX_READS_PER_TURN {
            let received = self.receive(inbox);
            let count = match received.transfer {
                Transfer::Bytes(count) => count,
                Transfer::WouldBlock => return Progress::Waiting,
                ended @ (Transfer::Closed | Transfer::Broken) => {
                    self.is_over = true;
                    let is_cut_off = ended == Transfer::Broken || self.transport.is_truncated();
                    let end = if is_cut_off {
                        End::CutOff
                    } else if self.decoder.is_malformed_at_end() {
                        End::Malformed
                    } else {
                        End::Closed
                    };
                    return self.ended(request, end, 0, inbox);
                }
            };
            self.stamp(received.queued_realtime_ns, inbox);
            let check = &mut self.check;
            let expected = &request.expected_body;
            let bytes = &inbox.buffer[..count];
            let end = match self
                .decoder
                .feed(bytes, &mut inbox.known_head, &mut |part| {
                    check.take(expected, part)
                }) {
                Ok(Decoded::NeedMore)
                    if count < inbox.buffer.len()
                        && !self.is_hangup
                        && self.transport.is_emptied_by_short_read() =>
                {
                    // A short read has emptied the socket, and the reactor reports data that
                    // arrives later. A close by the peer was already reported, so it is read at
                    // once.
                    keep_opening(&mut self.opening, bytes);
                    return Progress::Waiting;
                }
                Ok(Decoded::NeedMore) => {
                    keep_opening(&mut self.opening, bytes);
                    continue;
                }
                Ok(Decoded::Complete { surplus }) => {
                    if surplus > 0 && is_unsolicited_response(&bytes[count - surplus..]) {
                        // One of the two responses arrived before its request was sent, maybe the
                        // first.
                        self.decoder.reject(Rejection::Unsolicited);
                    }
                    End::Complete { surplus }
                }
                Err(Malformed) => End::Malformed,
            };
            return self.ended(request, end, count, inbox);
        }
        Progress::Yielding
    }

    #[inline(always)]
    fn receive(&self, inbox: &mut Inbox) -> Received {
        if self.receive_stamps != ReceiveStamps::User {
            return inbox.receive_stamped(self.transport.as_fd());
        }
        Received {
            transfer: self.transport.receive(&mut inbox.buffer),
            queued_realtime_ns: None,
        }
    }

    /// Records when the latest bytes were read, and when they had arrived.
    #[inline(always)]
    fn stamp(&mut self, queued_realtime_ns: Option<u64>, inbox: &mut Inbox) {
        let now_ns = self.transport.received_ns();
        let earliest_ns = self.stamps.last_byte_ns.max(self.stamps.write_start_ns);
        let queued_ns =
            queued_realtime_ns.and_then(|stamp_ns| inbox.queued_ns(stamp_ns, earliest_ns, now_ns));
        let uses_kernel = self.receive_stamps == ReceiveStamps::Kernel;
        let arrived_ns = queued_ns.filter(|_| uses_kernel).unwrap_or(now_ns);
        self.stamps.last_byte_ns = arrived_ns;
        self.receive_delay_ns = queued_ns.map(|queued_ns| now_ns - queued_ns);
        self.read_ns = now_ns;

        if self.stamps.first_byte_ns == 0 {
            self.stamps.first_byte_ns = arrived_ns;
        }
    }

    /// Ends an exchange, with the last `count` bytes of the response still in the buffer.
    #[inline(always)]
    fn ended(&mut self, request: &Request, end: End, count: usize, inbox: &mut Inbox) -> Progress {
        let exchanged = self.judge(request, end);
        let (outcome, status) = (exchanged.outcome, exchanged.status);
        if inbox.wrong_responses.wants(outcome, status) {
            self.keep_wrong(request, &exchanged, count, inbox);
        }
        Progress::Ended(0, exchanged)
    }

    #[cold]
    fn keep_wrong(
        &mut self,
        request: &Request,
        exchanged: &Exchanged,
        count: usize,
        inbox: &mut Inbox,
    ) {
        keep_opening(&mut self.opening, &inbox.buffer[..count]);
        let is_rejected = exchanged.outcome == Outcome::BadBody;
        inbox.wrong_responses.keep(WrongResponse {
            outcome: exchanged.outcome,
            status: exchanged.status,
            reason: is_rejected.then(|| self.reason(request)).flatten(),
            bytes: std::mem::take(&mut self.opening),
        });
    }

    /// Why head or body were rejected.
    fn reason(&self, request: &Request) -> Option<String> {
        let rejection = self.decoder.rejection().map(|one| one.to_string());
        let mismatch = self.check.mismatch(&request.expected_body);
        let missing = || match self.captured.as_deref() {
            Some(Err(reason)) => Some(reason.clone()),
            _ => None,
        };
        rejection
            .or_else(|| mismatch.map(|one| one.to_string()))
            .or_else(missing)
    }

    /// Captures the values of a correct response; without one of them, the response is incorrect.
    #[cold]
    fn capture(&mut self, captures: &Captures) -> Outcome {
        let captured = captures.of(&KeptResponse {
            fields: self.decoder.kept_fields(),
            body: self.check.kept(),
        });
        let outcome = if captured.is_ok() {
            Outcome::Ok
        } else {
            Outcome::BadBody
        };
        self.captured = Some(Box::new(captured));
        outcome
    }

    fn judge(&mut self, request: &Request, end: End) -> Exchanged {
        let head = self.decoder.head();
        let status = head.map(|head| head.status);
        let is_complete = match end {
            End::Complete { .. } => true,
            End::Closed => self.decoder.is_complete_at_end(),
            End::Malformed | End::CutOff => false,
        };
        let (Some(head), true) = (head, is_complete) else {
            let is_servers_end = end != End::Malformed;
            let outcome = if is_servers_end {
                outcome_of_end(self.requests, &self.stamps)
            } else {
                Outcome::BadBody
            };
            return Exchanged {
                is_servers_end,
                ..Exchanged::unreusable(outcome, status)
            };
        };
        let is_solicited = self.decoder.rejection().is_none();
        let mut outcome = outcome_of_response(
            request,
            head.status,
            is_solicited && self.check.is_correct(&request.expected_body),
        );
        if let (Outcome::Ok, Some(captures)) = (outcome, &request.captures) {
            outcome = self.capture(captures);
        }
        if head.is_until_close {
            // The end of the stream has no kernel timestamp.
            return Exchanged::unreusable(outcome, status);
        }

        let is_request_out = self.written == request.bytes(self.is_last).len();
        let keeps_alive = if request.is_http1_0() {
            head.has_keep_alive
        } else {
            head.keeps_alive
        };
        let is_reusable = !self.is_last
            && keeps_alive
            && is_request_out
            && is_solicited
            && end == End::Complete { surplus: 0 };

        Exchanged {
            outcome,
            status,
            last_byte_ns: self.stamps.last_byte_ns,
            known_ns: self.read_ns,
            receive_delay_ns: self.receive_delay_ns,
            is_reusable,
            is_servers_end: !keeps_alive,
        }
    }
}

/// Appends bytes, up to the length that is kept of a response.
fn keep_opening(opening: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT_BYTES.saturating_sub(opening.len());
    opening.extend_from_slice(&bytes[..bytes.len().min(room)]);
}
