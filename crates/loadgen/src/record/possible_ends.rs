//! How a measurement of adaptive length ends: only after one of a few possible lengths.
//!
//! Shortly before each possible end every thread submits a snapshot, and the stopping rule may end
//! the measurement there. If it has not decided by then, the measurement is extended: the first
//! thread that records anything later decides this for all threads. So the phase of every timestamp
//! is known before it is counted, and the measurement contains exactly what a load of that fixed
//! length would contain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use crate::base::clock::NS_PER_S;
use crate::plan::LoadPlan;
use crate::record::batches::Batches;

/// Threads submit their snapshots at most this long before an end: enough time to analyse them.
const MAX_AHEAD_NS: u64 = NS_PER_S;
/// The same as a fraction of the shortest length.
const AHEAD_PARTS: u64 = 10;

/// The timestamps at which a measurement may end, and the one at which it does.
#[derive(Debug)]
pub(crate) struct Ends {
    from_ns: u64,
    lengths_ns: Vec<u64>,
    cooldown_ns: u64,
    /// Twice the index of the next end, plus 1 if the measurement ends there.
    settled: AtomicUsize,
}

impl Ends {
    /// `None` if the plan fixes the length of the measurement.
    pub fn of(plan: &LoadPlan, start_ns: u64) -> Option<Arc<Self>> {
        let lengths_ns = plan.possible_lengths_ns()?;
        let from_ns = start_ns + plan.phases.warmup_ns;
        let settled = AtomicUsize::new(0);

        Some(Arc::new(Self {
            from_ns,
            lengths_ns,
            cooldown_ns: plan.phases.cooldown_ns,
            settled,
        }))
    }

    /// Ends the measurement at this index; returns whether it was in time.
    pub fn end_at(&self, place: usize) -> bool {
        self.settled
            .compare_exchange(
                2 * place,
                2 * place + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Whether the measurement continues beyond this index. If this is still open, the call decides
    /// that it does.
    fn is_extended(&self, place: usize) -> bool {
        if place + 1 == self.lengths_ns.len() {
            return false;
        }

        let next = 2 * (place + 1);
        match self
            .settled
            .compare_exchange(2 * place, next, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => true,
            Err(settled) => settled >= next,
        }
    }

    fn is_beyond(&self, place: usize) -> bool {
        self.settled.load(Ordering::Acquire) >= 2 * (place + 1)
    }

    fn end_ns(&self, place: usize) -> u64 {
        self.from_ns + self.lengths_ns[place]
    }

    /// Continues the measurement beyond every end up to this timestamp, whether or not a thread
    /// recorded anything there.
    pub fn extend_to(&self, timestamp_ns: u64) {
        let reached = self.lengths_ns.iter();
        let count = reached
            .take_while(|length_ns| self.from_ns + **length_ns <= timestamp_ns)
            .count();
        (0..count).for_each(|place| {
            self.is_extended(place);
        });
    }

    /// When sending stops; `u64::MAX` while this is still open.
    pub fn load_end_ns(&self) -> u64 {
        let settled = self.settled.load(Ordering::Acquire);
        let is_end = settled % 2 == 1 || settled / 2 + 1 == self.lengths_ns.len();
        if is_end {
            self.end_ns(settled / 2) + self.cooldown_ns
        } else {
            u64::MAX
        }
    }

    fn ahead_ns(&self) -> u64 {
        (self.lengths_ns[0] / AHEAD_PARTS).min(MAX_AHEAD_NS)
    }
}

/// The snapshot of one thread, shortly before the end at this index.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub place: usize,
    pub batches: Batches,
}

/// The next step of a thread at a possible end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is time to submit a snapshot.
    Submit,
    /// The measurement continues until this timestamp.
    Extended(u64),
    /// It has ended.
    Ends,
}

/// One thread's progress through the possible ends.
#[derive(Clone, Debug)]
pub(crate) struct EndCursor {
    ends: Arc<Ends>,
    place: usize,
    has_submitted: bool,
    sender: Option<Sender<Snapshot>>,
}

impl EndCursor {
    /// Starts before the first end; without `sender` no snapshot is ever submitted.
    pub fn new(ends: Arc<Ends>, sender: Option<Sender<Snapshot>>) -> Self {
        Self {
            ends,
            place: 0,
            has_submitted: false,
            sender,
        }
    }

    /// The possible ends.
    pub fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.ends)
    }

    /// When the next step is due.
    pub fn checkpoint_ns(&self) -> u64 {
        let end_ns = self.ends.end_ns(self.place);
        if self.must_submit() {
            end_ns - self.ends.ahead_ns()
        } else {
            end_ns
        }
    }

    fn must_submit(&self) -> bool {
        self.sender.is_some() && !self.has_submitted && self.place + 1 < self.ends.lengths_ns.len()
    }

    /// Takes that step.
    pub fn step(&mut self) -> Step {
        if self.must_submit() {
            self.has_submitted = true;
            return Step::Submit;
        }
        if self.ends.is_extended(self.place) {
            self.advance()
        } else {
            Step::Ends
        }
    }

    /// The next extension that other threads have decided while this one was idle.
    pub fn step_behind(&mut self) -> Option<Step> {
        self.ends.is_beyond(self.place).then(|| self.advance())
    }

    fn advance(&mut self) -> Step {
        self.place += 1;
        self.has_submitted = false;
        Step::Extended(self.ends.end_ns(self.place))
    }

    /// Submits a snapshot.
    pub fn submit(&self, batches: Batches) {
        if let Some(sender) = &self.sender {
            // The receiver no longer exists if the load is being aborted.
            let _ = sender.send(Snapshot {
                place: self.place,
                batches,
            });
        }
    }

    /// Submits no more snapshots.
    pub fn stop_snapshots(&mut self) {
        self.sender = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::plan::Precision;

    const S: u64 = NS_PER_S;

    fn plan(half_width: f64) -> LoadPlan {
        let mut plan = LoadPlan::open("http://h/", 100.0, 10 * S);
        (plan.phases.warmup_ns, plan.phases.cooldown_ns) = (5 * S, 2 * S);
        plan.precision = Some(Precision {
            quantile: 0.5,
            half_width,
            max_duration_ns: 50 * S,
        });

        plan
    }

    impl Ends {
        /// Length of the measurement, as far as decided.
        pub(crate) fn length_ns(&self) -> u64 {
            self.lengths_ns[self.settled.load(Ordering::Acquire) / 2]
        }
    }

    fn ends() -> Arc<Ends> {
        Ends::of(&plan(0.1), 100 * S).expect("the plan has a precision")
    }

    #[test]
    fn a_fixed_length_has_no_other_end() {
        assert!(Ends::of(&LoadPlan::open("http://h/", 1.0, S), 0).is_none());
    }

    #[test]
    fn the_first_thread_decides_an_end_for_all() {
        let ends = ends();
        assert_eq!((ends.length_ns(), ends.load_end_ns()), (10 * S, u64::MAX));
        assert!(ends.is_extended(0), "nobody ended it");
        assert!(!ends.end_at(0), "too late");
        assert!(ends.is_extended(0), "for a thread that lags behind, too");
        assert!(ends.end_at(1));
        assert!(!ends.is_extended(1) && ends.is_extended(0));
        assert!(!ends.end_at(1), "it ends once");
        assert_eq!(
            (ends.length_ns(), ends.load_end_ns()),
            (20 * S, (100 + 5 + 20 + 2) * S)
        );
    }

    #[test]
    fn ends_without_a_record_are_passed() {
        let ends = ends();
        ends.extend_to((100 + 5 + 19) * S);
        assert_eq!(ends.length_ns(), 20 * S, "beyond the first");
        ends.extend_to(1_000 * S);
        assert_eq!(ends.length_ns(), 40 * S, "there is nothing beyond the last");
    }

    #[test]
    fn the_last_end_is_limited_by_the_maximum_duration() {
        let ends = ends();
        assert!(ends.is_extended(0) && ends.is_extended(1));
        assert_eq!((ends.length_ns(), ends.load_end_ns()), (40 * S, 147 * S));
        assert!(!ends.is_extended(2));
    }

    #[test]
    fn a_thread_submits_a_snapshot_before_each_end_except_the_last() {
        let ends = ends();
        let (sender, snapshots) = channel();
        let mut cursor = EndCursor::new(Arc::clone(&ends), Some(sender));
        let mut steps = Vec::new();

        while steps.last().is_none_or(|(_, step)| *step != Step::Ends) {
            steps.push((cursor.checkpoint_ns() / S, cursor.step()));
        }

        let is_extended = |until_s: u64| Step::Extended(until_s * S);
        assert_eq!(
            steps,
            [
                (114, Step::Submit),
                (115, is_extended(125)),
                (124, Step::Submit),
                (125, is_extended(145)),
                (145, Step::Ends)
            ]
        );

        let mut late = EndCursor::new(ends, None);
        let behind: Vec<Step> = std::iter::from_fn(|| late.step_behind()).collect();

        assert_eq!(
            behind,
            [is_extended(125), is_extended(145)],
            "other threads decided"
        );

        drop(cursor);
        assert!(
            snapshots.recv().is_err(),
            "the channel closes with the last cursor"
        );
    }
}
