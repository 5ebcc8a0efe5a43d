//! Attacks by a hostile server, and their outcomes.

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
    /// Whether the server keeps reading; otherwise, data from the client stays in the socket
    /// buffers.
    pub reads_on: bool,
    /// The client's connection reuse.
    pub keepalive: Keepalive,
    pub request_bytes: usize,
    /// Possible outcomes; which one occurs depends on how fast the client is.
    pub expected: Vec<Outcome>,
    /// Other possible outcomes of the other requests of a connection that carries several; the
    /// attack concerns the first.
    pub expected_of_others: Vec<Outcome>,
}

/// A server that sends this once and then nothing.
pub fn sends(name: &'static str, start: impl AsRef<[u8]>, expected: Outcome) -> Attack {
    Attack {
        name,
        start: start.as_ref().to_vec(),
        endless: Vec::new(),
        pause: Duration::ZERO,
        closes: false,
        reads_on: true,
        keepalive: Keepalive::On,
        request_bytes: 0,
        expected: vec![expected],
        expected_of_others: Vec::new(),
    }
}

/// A server that sends this again and again.
pub fn floods(name: &'static str, unit: impl AsRef<[u8]>) -> Attack {
    let unit = unit.as_ref();
    Attack {
        // Large writes, so that the server can outrun its client.
        endless: unit.repeat(CHUNK_BYTES.div_ceil(unit.len())),
        ..sends(name, [], Outcome::BadBody)
    }
}

/// A server that sends this and ends the connection.
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

    /// Sends this piece by piece without end.
    pub fn trickles(mut self, piece: impl AsRef<[u8]>, pause: Duration) -> Self {
        (self.endless, self.pause) = (piece.as_ref().to_vec(), pause);
        self
    }

    pub fn ends_as(mut self, expected: &[Outcome]) -> Self {
        self.expected = expected.to_vec();
        self
    }

    pub fn others_end_as(mut self, expected: Outcome) -> Self {
        self.expected_of_others = vec![expected];
        self
    }

    pub fn unread(mut self) -> Self {
        self.reads_on = false;
        self
    }

    pub fn once_per_connection(mut self) -> Self {
        self.keepalive = Keepalive::Off;
        self
    }

    pub fn of_a_large_request(mut self) -> Self {
        self.request_bytes = LARGE_REQUEST_BYTES;
        self
    }
}
