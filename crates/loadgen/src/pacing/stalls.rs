//! Stalls of the generator's event loop, which no server causes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::clock::NS_PER_MS;

/// A longer gap between turns of the loop is a stall.
const SHORTEST_NS: u64 = 5 * NS_PER_MS;

/// Stalls of the generator's event loop that were longer than 5 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
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
    /// The loop turned at `now_ns`, but should have turned at `expected_ns`. `waited` returns the
    /// thread's recent run-queue wait; it is called only after a stall.
    pub(crate) fn note(&mut self, expected_ns: u64, now_ns: u64, waited: impl FnOnce() -> u64) {
        let gap_ns = now_ns.saturating_sub(expected_ns);
        if gap_ns > SHORTEST_NS {
            self.count += 1;
            self.total_ns += gap_ns;
            self.longest_ns = self.longest_ns.max(gap_ns);
            self.waited_ns += waited().min(gap_ns);
            self.latest = (expected_ns, now_ns);
        }
    }

    /// Whether an arrival that becomes due was scheduled during the latest stall.
    pub(crate) fn has_kept_arrival(&self, intended_ns: u64) -> bool {
        (self.latest.0..self.latest.1).contains(&intended_ns)
    }

    /// Whether a response to a request sent at `sent_ns` may have arrived during the latest stall,
    /// if everything that had arrived by `looked_ns` was read before.
    pub(crate) fn may_have_kept_response(&self, sent_ns: u64, looked_ns: u64) -> bool {
        let ended_ns = self.latest.1;
        ended_ns > looked_ns && ended_ns > sent_ns
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
    fn only_a_long_gap_is_a_stall_and_it_owns_the_arrivals_intended_in_it() {
        let mut stalls = Stalls::default();
        stalls.note(0, SHORTEST_NS, || 7);

        assert_eq!(stalls, Stalls::default());

        stalls.note(100, 100 + 2 * SHORTEST_NS, || SHORTEST_NS);
        let intended_ns = [99, 100, 100 + SHORTEST_NS, 100 + 2 * SHORTEST_NS];

        assert_eq!(
            intended_ns.map(|timestamp_ns| stalls.has_kept_arrival(timestamp_ns)),
            [false, true, true, false]
        );
        assert_eq!((stalls.count, stalls.longest_ns), (1, 2 * SHORTEST_NS));
        assert_eq!(stalls.waited_ns, SHORTEST_NS);
    }

    #[test]
    fn a_response_may_have_waited_through_a_stall_since_the_last_look_if_its_request_was_out() {
        let mut stalls = Stalls::default();
        assert!(!stalls.may_have_kept_response(0, 0), "there was none");

        stalls.note(100, 100 + 2 * SHORTEST_NS, || 0);
        let ended_ns = 100 + 2 * SHORTEST_NS;

        for (sent_ns, looked_ns, expected, case) in [
            (50, 60, true, "out before, looked for before"),
            (100 + SHORTEST_NS, 60, true, "went out meanwhile"),
            (ended_ns, 60, false, "went out afterwards"),
            (
                50,
                ended_ns,
                false,
                "had not come when the loop looked again",
            ),
        ] {
            assert_eq!(
                stalls.may_have_kept_response(sent_ns, looked_ns),
                expected,
                "{case}"
            );
        }
    }
}
