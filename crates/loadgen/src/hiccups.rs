//! Gaps in which the loop should have been turning and was not: our own stalls, which no server has to answer for.

use serde::Serialize;

use crate::clock::NS_PER_MS;

/// A gap that is longer than this is a hiccup.
const SHORTEST_NS: u64 = 5 * NS_PER_MS;

/// The hiccups of one thread, or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hiccups {
    /// How many.
    pub count: u64,
    /// How long all of them were together.
    pub total_ns: u64,
    /// How long the longest was.
    pub longest_ns: u64,
    /// Arrivals that were intended in one.
    pub arrivals: u64,
    /// Answers that may have come in one and waited to be read, where their instant is our own.
    pub answers: u64,
    #[serde(skip)]
    latest: (u64, u64),
}

impl Hiccups {
    /// The loop turned at `now_ns` and should have at `expected_ns`.
    pub(crate) fn note(&mut self, expected_ns: u64, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(expected_ns);
        if gap_ns > SHORTEST_NS {
            self.count += 1;
            self.total_ns += gap_ns;
            self.longest_ns = self.longest_ns.max(gap_ns);
            self.latest = (expected_ns, now_ns);
        }
    }

    /// An arrival becomes due; late ones belong to the latest hiccup if they were intended in it.
    pub(crate) fn arrival(&mut self, intended_ns: u64) {
        self.arrivals += u64::from((self.latest.0..self.latest.1).contains(&intended_ns));
    }

    /// An answer was read, to a request sent at `sent_ns`; all that had come by `looked_ns` had been read before. If the
    /// loop stood still since then, nobody knows how much of its time it spent waiting for us.
    pub(crate) fn answer(&mut self, sent_ns: u64, looked_ns: u64) {
        let ended_ns = self.latest.1;
        self.answers += u64::from(ended_ns > looked_ns && ended_ns > sent_ns);
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.arrivals += other.arrivals;
        self.answers += other.answers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_gap_is_a_hiccup_and_it_owns_the_arrivals_intended_in_it() {
        let mut hiccups = Hiccups::default();
        hiccups.note(0, SHORTEST_NS);
        assert_eq!(hiccups, Hiccups::default());
        hiccups.note(100, 100 + 2 * SHORTEST_NS);
        for intended_ns in [99, 100, 100 + SHORTEST_NS, 100 + 2 * SHORTEST_NS] {
            hiccups.arrival(intended_ns);
        }
        assert_eq!((hiccups.count, hiccups.longest_ns, hiccups.arrivals), (1, 2 * SHORTEST_NS, 2));
    }

    #[test]
    fn an_answer_may_have_waited_through_a_hiccup_since_the_last_look_if_its_request_was_out() {
        let mut hiccups = Hiccups::default();
        hiccups.answer(0, 0);
        assert_eq!(hiccups.answers, 0, "there was none");
        hiccups.note(100, 100 + 2 * SHORTEST_NS);
        let ended_ns = 100 + 2 * SHORTEST_NS;
        for (sent_ns, looked_ns, expected, case) in [
            (50, 60, 1, "out before, looked for before"),
            (100 + SHORTEST_NS, 60, 2, "went out meanwhile"),
            (ended_ns, 60, 2, "went out afterwards"),
            (50, ended_ns, 2, "had not come when the loop looked again"),
        ] {
            hiccups.answer(sent_ns, looked_ns);
            assert_eq!(hiccups.answers, expected, "{case}");
        }
    }
}
