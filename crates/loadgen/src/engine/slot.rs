//! One connection slot, and the arrival it serves.

use crate::http::connection::Connection;
use crate::record::exchange::{Arrival, Completion, Outcome, Stamps};

/// One connection slot, serving one arrival at a time.
pub(crate) struct Slot<C> {
    pub connection: Option<C>,
    /// Distinguishes events of this connection from those of the previous one.
    pub generation: u32,
    pub work: Option<Work>,
    /// Whether the peer is known to have closed its side of the connection while it was idle.
    pub is_hung_up: bool,
    /// Whether the connection waits for its turn to be read further.
    pub is_yielding: bool,
}

/// An arrival served by a slot.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub arrival: Arrival,
    /// When the slot took it: the timeout counts from here.
    pub started_ns: u64,
    pub connect_start_ns: u64,
    pub connect_ready_ns: u64,
    pub is_written: bool,
    /// Whether the client closes the connection after it.
    pub is_last: bool,
}

impl Work {
    /// Work that starts at `started_ns`.
    pub fn new(arrival: Arrival, started_ns: u64) -> Self {
        Self {
            arrival,
            started_ns,
            connect_start_ns: 0,
            connect_ready_ns: 0,
            is_written: false,
            is_last: false,
        }
    }

    /// Whether its connection is not established yet.
    pub fn is_connecting(&self) -> bool {
        self.connect_start_ns != 0 && self.connect_ready_ns == 0
    }
}

impl<C: Connection> Slot<C> {
    /// A slot without a connection.
    pub fn new() -> Self {
        Self {
            connection: None,
            generation: 0,
            work: None,
            is_hung_up: false,
            is_yielding: false,
        }
    }

    /// Whether its connection is known to be closed, without checking the socket.
    pub fn has_lost_connection(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| self.is_hung_up || connection.is_closed())
    }

    /// How this work ended, with the timestamps of the slot's connection as far as the request got.
    pub fn completion(
        &self,
        work: &Work,
        outcome: Outcome,
        status: Option<u16>,
        ended_ns: u64,
    ) -> Completion {
        let mut stamps = Stamps {
            connect_start_ns: work.connect_start_ns,
            connect_ready_ns: work.connect_ready_ns,
            ..Stamps::default()
        };
        if let (true, Some(connection)) = (work.is_written, &self.connection) {
            let exchange = connection.stamps();
            stamps.write_start_ns = exchange.write_start_ns;
            stamps.first_byte_ns = exchange.first_byte_ns;
            stamps.last_byte_ns = exchange.last_byte_ns;
        }

        Completion {
            arrival: work.arrival,
            stamps,
            outcome,
            status,
            ended_ns,
        }
    }
}

/// A slot's number and the generation of its connection, packed into one word.
pub(crate) fn token(index: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | index as u64
}

/// Unpacks a token.
pub(crate) fn slot_of(token: u64) -> (usize, u32) {
    ((token & u64::from(u32::MAX)) as usize, (token >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_both_numbers() {
        for pair in [(0, 0), (7, 1), (4_294_967_294, u32::MAX)] {
            assert_eq!(slot_of(token(pair.0, pair.1)), pair);
        }
    }
}
