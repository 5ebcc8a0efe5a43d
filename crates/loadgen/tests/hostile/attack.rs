//! Attacks by hostile servers, and their possible outcomes.

use std::time::Duration;

use loadgen::Outcome;
use loadgen::plan::Keepalive;

const CHUNK_BYTES: usize = 16 * 1024;

/// More than the buffers and windows of a server that does not read can hold.
const LARGE_REQUEST_BYTES: usize = 256 * 1024;

/// What a server sends after the head of the first request on each connection.
#[derive(Clone)]
pub struct Attack {
    pub name: &'static str,
    pub start: Vec<u8>,
    /// Sent repeatedly until the client closes the connection, unless empty.
    pub endless: Vec<u8>,
    /// Pause before each repetition of `endless`.
    pub pause: Duration,
    pub closes: bool,
    /// Whether the server keeps reading. Otherwise, data from the client stays in the socket
    /// buffers.
    pub keeps_reading: bool,
    /// The client's connection reuse.
    pub keepalive: Keepalive,
    pub request_bytes: usize,
    /// Possible outcomes, of which one occurs depending on the speed of the client.
    pub expected: Vec<Outcome>,
    /// Additional outcomes of the other concurrent requests on the connection; the attack is on the
    /// first request.
    pub expected_for_others: Vec<Outcome>,
}

/// Sends this once and then nothing.
pub fn sends(name: &'static str, start: impl AsRef<[u8]>, expected: Outcome) -> Attack {
    Attack {
        name,
        start: start.as_ref().to_vec(),
        endless: Vec::new(),
        pause: Duration::ZERO,
        closes: false,
        keeps_reading: true,
        keepalive: Keepalive::On,
        request_bytes: 0,
        expected: vec![expected],
        expected_for_others: Vec::new(),
    }
}

/// Sends this repeatedly without a pause.
pub fn floods(name: &'static str, unit: impl AsRef<[u8]>) -> Attack {
    let unit = unit.as_ref();
    Attack {
        // Large writes, so that the server can outrun its client.
        endless: unit.repeat(CHUNK_BYTES.div_ceil(unit.len())),
        ..sends(name, [], Outcome::BadBody)
    }
}

/// Sends this and closes the connection.
pub fn closes(name: &'static str, start: impl AsRef<[u8]>) -> Attack {
    Attack {
        closes: true,
        ..sends(name, start, Outcome::Reset)
    }
}

impl Attack {
    pub fn after(mut self, start: impl AsRef<[u8]>) -> Self {
        self.start = start.as_ref().to_vec();
        self
    }

    /// Sends this repeatedly, with a pause before each repetition.
    pub fn trickles(mut self, piece: impl AsRef<[u8]>, pause: Duration) -> Self {
        (self.endless, self.pause) = (piece.as_ref().to_vec(), pause);
        self
    }

    pub fn ends_as(mut self, expected: &[Outcome]) -> Self {
        self.expected = expected.to_vec();
        self
    }

    pub fn others_end_as(mut self, expected: Outcome) -> Self {
        self.expected_for_others = vec![expected];
        self
    }

    pub fn unread(mut self) -> Self {
        self.keeps_reading = false;
        self
    }

    pub fn once_per_connection(mut self) -> Self {
        self.keepalive = Keepalive::Off;
        self
    }

    pub fn with_large_request(mut self) -> Self {
        self.request_bytes = LARGE_REQUEST_BYTES;
        self
    }
}
