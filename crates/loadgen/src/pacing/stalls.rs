//! Stalls of the generator's event loop, which no server causes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::NS_PER_MS;

/// A longer gap between turns of the loop is a stall.
const MIN_STALL_NS: u64 = 5 * NS_PER_MS;

/// Stalls of the generator's event loop that were longer than 5 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Stalls {
    /// Number of stalls.
    pub count: u64,
    /// Total duration of the stalls.
    pub total_ns: u64,
    /// Duration of the longest stall.
    pub longest_ns: u64,
    /// Part of `total_ns` in which the thread was runnable but had no CPU.
    pub waited_ns: u64,
    /// Requests of the measurement that were due during a stall.
    pub arrivals: u64,
    /// Responses of the measurement that may have been read late because of a stall.
    pub responses: u64,
    #[serde(skip)]
    latest: (u64, u64),
}

impl Stalls {
    /// The loop continued at `now_ns`, but should have continued at `expected_ns`. `waited` returns
    /// the thread's recent run-queue wait; it is called only after a stall.
    pub(crate) fn note(&mut self, expected_ns: u64, now_ns: u64, waited: impl FnOnce() -> u64) {
        let gap_ns = now_ns.saturating_sub(expected_ns);
        if gap_ns > MIN_STALL_NS {
            self.count += 1;
            self.total_ns += gap_ns;
            self.longest_ns = self.longest_ns.max(gap_ns);
            self.waited_ns += waited().min(gap_ns);
            self.latest = (expected_ns, now_ns);
        }
    }

    /// Whether an arrival that becomes due was scheduled during the latest stall.
    pub(crate) fn has_delayed_arrival(&self, intended_ns: u64) -> bool {
        (self.latest.0..self.latest.1).contains(&intended_ns)
    }

    /// Whether a response to a request sent at `sent_ns` may have arrived during the latest stall,
    /// if everything that had arrived by `read_until_ns` was read before.
    pub(crate) fn may_have_delayed_response(&self, sent_ns: u64, read_until_ns: u64) -> bool {
        let ended_ns = self.latest.1;
        ended_ns > read_until_ns && ended_ns > sent_ns
    }

    /// Adds the stalls of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.waited_ns += other.waited_ns;
        self.arrivals += other.arrivals;
        self.responses += other.responses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_gap_is_a_stall_and_it_delays_the_arrivals_due_in_it() {
        let mut stalls = Stalls::default();
        stalls.note(0, MIN_STALL_NS, || 7);

        assert_eq!(stalls, Stalls::default());

        stalls.note(100, 100 + 2 * MIN_STALL_NS, || MIN_STALL_NS);
        let intended_ns = [99, 100, 100 + MIN_STALL_NS, 100 + 2 * MIN_STALL_NS];

        assert_eq!(
            intended_ns.map(|timestamp_ns| stalls.has_delayed_arrival(timestamp_ns)),
            [false, true, true, false]
        );
        assert_eq!((stalls.count, stalls.longest_ns), (1, 2 * MIN_STALL_NS));
        assert_eq!(stalls.waited_ns, MIN_STALL_NS);
    }

    #[test]
    fn a_stall_may_have_delayed_a_response_if_the_request_was_sent_before_it_ended() {
        let mut stalls = Stalls::default();
        assert!(!stalls.may_have_delayed_response(0, 0), "there was none");

        stalls.note(100, 100 + 2 * MIN_STALL_NS, || 0);
        let ended_ns = 100 + 2 * MIN_STALL_NS;

        for (sent_ns, read_until_ns, expected, case) in [
            (50, 60, true, "sent before, last read before"),
            (100 + MIN_STALL_NS, 60, true, "sent during the stall"),
            (ended_ns, 60, false, "sent afterwards"),
            (50, ended_ns, false, "read again since the stall"),
        ] {
            assert_eq!(
                stalls.may_have_delayed_response(sent_ns, read_until_ns),
                expected,
                "{case}"
            );
        }
    }
}
