//! The record of one thread during its load: completions are queued at once and counted later, in
//! batches.
//!
//! Counting touches histograms all over memory, and between two responses the kernel evicts them
//! from the caches. Counted in batches, requests share the cache lines that the first one fetched,
//! and the next request is sent before the last is counted. Fewer completions than a batch stay
//! queued, for as many turns as needed.

use std::collections::VecDeque;

use crate::base::clock::monotonic_ns;
use crate::record::connect_failures::ConnectFailures;
use crate::record::connection_counts::ConnectionCounts;
use crate::record::exchange::Completion;
use crate::record::progress::Progress;
use crate::record::recorder::Recorder;

/// Completions counted in one batch. It takes about a microsecond, in which a send may become due.
const BATCH: usize = 16;
/// Maximum number of queued completions: as many as the events of one wait, so that they can be
/// counted after the sends that follow them.
const MAX_UNCOUNTED: usize = 256;

/// A record, and the completions not yet counted in it.
pub(crate) struct Ledger {
    recorder: Recorder,
    uncounted: VecDeque<Completion>,
    /// The live progress of this thread, if requested.
    progress: Option<Progress>,
}

impl Ledger {
    /// Starts with this record.
    pub fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            uncounted: VecDeque::with_capacity(MAX_UNCOUNTED),
            progress: None,
        }
    }

    /// Also writes the load's progress.
    pub fn showing(self, progress: Option<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// Writes the progress so far, if the next write is due.
    pub fn show_progress(&mut self, now_ns: u64) {
        let is_due = |progress: &Progress| progress.is_due(now_ns);
        if self.progress.as_ref().is_some_and(is_due) {
            self.show_all(now_ns);
        }
    }

    fn show_all(&mut self, now_ns: u64) {
        self.count_all();
        if let Some(progress) = &mut self.progress {
            progress.show(now_ns, &self.recorder);
        }
    }

    /// As [`Recorder::scheduled`].
    pub fn scheduled(&mut self, intended_ns: u64) {
        if self.recorder.is_at_checkpoint(intended_ns) {
            // Queued completions come before it.
            self.count_all();
        }
        self.recorder.scheduled(intended_ns);
    }

    /// As [`Recorder::is_measured`].
    pub fn is_measured(&self, intended_ns: u64) -> bool {
        self.recorder.is_measured(intended_ns)
    }

    /// Queues the end of an arrival. Called once for each.
    pub fn ended(&mut self, completion: Completion) {
        if self.uncounted.len() == MAX_UNCOUNTED {
            self.count_batch();
        }
        self.uncounted.push_back(completion);
    }

    /// Whether there are enough completions to make fetching the record into the caches worthwhile.
    pub fn has_batch(&self) -> bool {
        self.uncounted.len() >= BATCH
    }

    /// Counts one batch of completions, the earliest first; returns whether there were any.
    pub fn count_batch(&mut self) -> bool {
        let count = self.uncounted.len().min(BATCH);
        for completion in self.uncounted.drain(..count) {
            self.recorder.ended(&completion);
            if let Some(progress) = &mut self.progress {
                progress.ended(&completion, &self.recorder);
            }
        }
        count > 0
    }

    fn count_all(&mut self) {
        while self.count_batch() {}
    }

    /// Connection counts, updated immediately.
    pub fn connections(&mut self) -> &mut ConnectionCounts {
        &mut self.recorder.connections
    }

    /// Causes of failed connections, updated immediately.
    pub fn connect_failures(&mut self) -> &mut ConnectFailures {
        &mut self.recorder.connect_failures
    }

    /// The record with all completions counted.
    pub fn into_recorder(mut self) -> Recorder {
        self.show_all(monotonic_ns());
        self.recorder
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::{LoadPlan, Precision};
    use crate::record::exchange::{Arrival, Outcome, Stamps};
    use crate::record::possible_ends::{EndCursor, Ends};
    use crate::record::recorder::Phase;

    fn plan() -> LoadPlan {
        LoadPlan::open("http://h/", 10.0, 2 * NS_PER_S)
    }

    fn ended(intended_ns: u64) -> Completion {
        let ended_ns = intended_ns + 100;
        let stamps = Stamps {
            write_start_ns: intended_ns + 10,
            first_byte_ns: ended_ns,
            last_byte_ns: ended_ns,
            ..Stamps::default()
        };
        let arrival = Arrival::unqueued(intended_ns, 0);

        Completion {
            arrival,
            stamps,
            outcome: Outcome::Ok,
            status: Some(200),
            ended_ns,
        }
    }

    #[test]
    fn each_completion_is_counted_once_and_the_queue_is_bounded() {
        let mut ledger = Ledger::new(Recorder::new(&plan(), 0));
        let many = 3 * MAX_UNCOUNTED as u64 + 7;

        for timestamp_ns in 0..many {
            ledger.scheduled(timestamp_ns);
            ledger.ended(ended(timestamp_ns));
            assert!(ledger.uncounted.len() <= MAX_UNCOUNTED);
        }

        assert_eq!(
            ledger.uncounted.capacity(),
            MAX_UNCOUNTED,
            "no more memory than at the start"
        );
        assert!(ledger.count_batch(), "some have waited");

        let record = ledger.into_recorder();
        record
            .check_conservation()
            .expect("each arrival has one outcome");

        assert_eq!(record.phase(Phase::Measure).of(Outcome::Ok), many);

        let service = record.measures().service;
        assert_eq!(
            (service.count(), service.min_ns(), service.max_ns()),
            (many, Some(90), Some(90))
        );
    }

    #[test]
    fn completions_wait_for_a_full_batch_and_then_all_are_counted() {
        let mut ledger = Ledger::new(Recorder::new(&plan(), 0));
        for timestamp_ns in 0..BATCH as u64 {
            assert!(!ledger.has_batch(), "{timestamp_ns} have ended");
            ledger.ended(ended(timestamp_ns));
        }

        ledger.ended(ended(BATCH as u64));
        assert!(ledger.has_batch());

        while ledger.count_batch() {}
        assert!(
            ledger.uncounted.is_empty(),
            "one more than a batch is not left behind"
        );
        assert_eq!(
            ledger.recorder.phase(Phase::Measure).of(Outcome::Ok),
            BATCH as u64 + 1
        );
    }

    #[test]
    fn queued_completions_are_counted_before_a_snapshot() {
        let precision = Some(Precision {
            quantile: 0.5,
            half_width: 0.1,
            max_duration_ns: 9 * NS_PER_S,
        });
        let plan = LoadPlan {
            precision,
            ..plan()
        };
        let (sender, snapshots) = channel();
        let cursor = EndCursor::new(Ends::of(&plan, 0).expect("a precision"), Some(sender));
        let checkpoint_ns = cursor.checkpoint_ns();
        let mut ledger = Ledger::new(Recorder::new(&plan, 0).with_cursor(Some(cursor)));
        let timestamps_ns = [0, checkpoint_ns / 2, checkpoint_ns - 200];
        timestamps_ns
            .into_iter()
            .for_each(|timestamp_ns| ledger.ended(ended(timestamp_ns)));
        ledger.scheduled(checkpoint_ns);
        let batches = snapshots
            .try_recv()
            .expect("a snapshot")
            .batches
            .beyond(0.5);
        let requests: f64 = batches.iter().map(|batch| batch.requests).sum();

        assert!((requests - 3.0).abs() < 1e-9, "{requests}");
    }
}
