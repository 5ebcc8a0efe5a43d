//! One stream: a request, and the part of its response that has arrived.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::HeaderMap;
use http::header::SET_COOKIE;

use crate::http::body_check::BodyCheck;
use crate::http::captures::KeptResponse;
use crate::http::connection::ExchangeStamps;
use crate::http::request::Request;

/// A stream in progress. If it is dropped before its response is complete, h2 resets it.
pub(crate) struct Stream {
    pub id: u32,
    start: Start,
    phase: Phase,
}

/// How a stream began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Whether the client closes the connection after it.
    pub is_last: bool,
    /// Whether its connection had been used before and was idle.
    pub is_after_idling: bool,
}

enum Phase {
    Head(ResponseFuture),
    Body {
        status: u16,
        /// The header fields that the request captures.
        fields: Vec<Option<Vec<u8>>>,
        body: RecvStream,
        check: BodyCheck,
    },
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub status: u16,
    pub is_body_correct: bool,
}

/// The results of a stream, for its connection.
#[derive(Default)]
pub(crate) struct Notes {
    pub stamps: ExchangeStamps,
    pub set_cookies: Vec<Vec<u8>>,
    /// The values captured from a correct response.
    pub captured: Vec<Vec<u8>>,
}

impl Notes {
    /// Captures the values; returns whether the response has all of them.
    fn capture(&mut self, request: &Request, response: &KeptResponse<'_>) -> bool {
        let Some(captures) = &request.captures else {
            return true;
        };

        let values = captures.of(response);
        let is_complete = values.is_ok();
        self.captured = values.unwrap_or_default();
        is_complete
    }
}

impl Stream {
    /// A stream whose request is being sent.
    pub fn new(response: ResponseFuture, start: Start) -> Self {
        Self {
            id: response.stream_id().as_u32(),
            start,
            phase: Phase::Head(response),
        }
    }

    /// How the stream began, and the status of its response, if the head has arrived.
    pub fn facts(&self) -> (Start, Option<u16>) {
        let status = match self.phase {
            Phase::Head(_) => None,
            Phase::Body { status, .. } => Some(status),
        };
        (self.start, status)
    }

    /// Processes the data that arrived for it at `received_ns`.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        request: &Request,
        (received_ns, notes): (u64, &mut Notes),
    ) -> Poll<Result<Response, h2::Error>> {
        loop {
            match &mut self.phase {
                Phase::Head(response) => {
                    let response = ready!(Pin::new(response).poll(context))?;
                    // Frames of the connection may have arrived before.
                    notes.stamps.first_byte_ns = received_ns;
                    notes.stamps.last_byte_ns = received_ns;
                    if request.keeps_cookies {
                        notes.set_cookies = set_cookies(response.headers());
                    }
                    let captures = request.captures.as_ref();
                    self.phase = Phase::Body {
                        status: response.status().as_u16(),
                        fields: captures.map_or_else(Vec::new, |captures| {
                            captures.fields_of(response.headers())
                        }),
                        body: response.into_body(),
                        check: BodyCheck::new(),
                    };
                }
                Phase::Body {
                    status,
                    fields,
                    body,
                    check,
                } => {
                    let expected = &request.expected_body;
                    let ended = poll_body(context, body, |part| {
                        notes.stamps.last_byte_ns = received_ns;
                        check.take(expected, part);
                    });
                    ready!(ended)?;
                    notes.stamps.last_byte_ns = received_ns;
                    let kept = KeptResponse {
                        fields,
                        body: check.kept(),
                    };
                    return Poll::Ready(Ok(Response {
                        status: *status,
                        is_body_correct: check.is_correct(expected)
                            && notes.capture(request, &kept),
                    }));
                }
            }
        }
    }
}

/// Reads a body to the end of its trailers, and releases the flow-control window of the bytes read.
fn poll_body(
    context: &mut Context<'_>,
    body: &mut RecvStream,
    mut take: impl FnMut(&[u8]),
) -> Poll<Result<(), h2::Error>> {
    while let Some(part) = ready!(body.poll_data(context)) {
        let part = part?;
        take(&part);
        body.flow_control().release_capacity(part.len())?;
    }
    body.poll_trailers(context).map_ok(drop)
}

fn set_cookies(headers: &HeaderMap) -> Vec<Vec<u8>> {
    let fields = headers.get_all(SET_COOKIE).iter();
    fields.map(|value| value.as_bytes().to_vec()).collect()
}
