//! One place for a request on a connection, and the arrival that it serves.

use crate::engine::lines::Lines;
use crate::http::connection::{Connection, ExchangeStamps};
use crate::record::exchange::{Arrival, Completion, Outcome, Stamps};

/// A place on a line's connection, serving one arrival at a time.
pub(crate) struct Slot {
    pub line: usize,
    /// Its number on the line.
    pub place: usize,
    pub work: Option<Work>,
}

/// An arrival served by a slot.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub arrival: Arrival,
    /// When the slot took it: the timeout counts from here.
    pub started_ns: u64,
    /// When it began to open the connection; 0 if it does not open one.
    pub connect_start_ns: u64,
    pub connect_ready_ns: u64,
    /// Since when it has waited for a connection that another slot opens, or for a stream; 0 if it
    /// does not wait.
    pub waiting_since_ns: u64,
    /// The connection that it was written to.
    pub token: u64,
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
            waiting_since_ns: 0,
            token: 0,
            is_written: false,
            is_last: false,
        }
    }

    /// Whether it opens a connection that is not established yet.
    pub fn is_connecting(&self) -> bool {
        self.connect_start_ns != 0 && self.connect_ready_ns == 0
    }

    /// Counts the time in which the server read nothing from the connection as a wait. If the
    /// request was never written, the wait ended at `until_ns`.
    pub fn note_block(&mut self, stamps: &ExchangeStamps, until_ns: u64) {
        // The first request of a connection has nothing before it.
        if stamps.blocked_since_ns == 0 || self.connect_start_ns != 0 {
            return;
        }

        let until_ns = match stamps.write_start_ns {
            0 => until_ns,
            write_start_ns => write_start_ns,
        };
        self.arrival.wait_again(stamps.blocked_since_ns, until_ns);
    }

    /// Ends its wait for a connection or a stream, if it waits.
    pub fn end_wait(&mut self, now_ns: u64) {
        let since_ns = std::mem::take(&mut self.waiting_since_ns);
        if since_ns != 0 {
            self.arrival.wait_again(since_ns, now_ns);
        }
    }
}

impl Slot {
    /// How this work ended, with the timestamps of its exchange as far as the request got.
    pub fn completion<C: Connection>(
        &self,
        lines: &Lines<C>,
        work: &Work,
        (outcome, status, ended_ns): (Outcome, Option<u16>, u64),
    ) -> Completion {
        let mut work = *work;
        work.end_wait(ended_ns);
        let mut stamps = Stamps {
            connect_start_ns: work.connect_start_ns,
            connect_ready_ns: work.connect_ready_ns,
            ..Stamps::default()
        };
        if let (true, Some(link)) = (work.is_written, lines.link(work.token)) {
            let exchange = link.connection.stamps(self.place);
            work.note_block(&exchange, ended_ns);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_server_reads_nothing_counts_as_a_wait() {
        let waited = |connect_start_ns, write_start_ns| {
            let mut work = Work {
                connect_start_ns,
                ..Work::new(Arrival::unqueued(1_000, 0), 1_050)
            };
            let stamps = ExchangeStamps {
                blocked_since_ns: 1_100,
                write_start_ns,
                ..ExchangeStamps::default()
            };
            work.note_block(&stamps, 1_800);
            let arrival = work.arrival;
            (
                arrival.eligible_ns - arrival.waits_from_ns,
                arrival.waits_from_ns - arrival.intended_ns,
            )
        };

        assert_eq!(waited(0, 1_500), (400, 100));
        assert_eq!(waited(0, 0), (700, 100), "never written");
        assert_eq!(waited(1_060, 1_500), (0, 0), "nothing was before it");
    }
}
