//! The record of one thread while its load runs: what has ended is noted at once and counted later,
//! many together.
//!
//! Counting reaches for histograms all over the memory, and between two answers the kernel fills
//! the caches with its own: each count would begin with cold ones. Counted in one go they share
//! what the first has fetched, and the next request is on its way before the last is counted. A few
//! that have ended wait for more, over as many turns as it takes.

use std::collections::VecDeque;

use crate::record::connect_failures::ConnectFailures;
use crate::record::connection_counts::ConnectionCounts;
use crate::record::exchange::Completion;
use crate::record::recorder::Recorder;

/// Counted in one go. It takes about a microsecond, in which a send may become due.
const BATCH: usize = 16;
/// No more wait to be counted, whatever ends at once: as many as one wait brings answers, so that
/// these are counted after the sends that follow them.
const MOST_UNCOUNTED: usize = 256;

/// A record, and what has ended but is not counted in it yet.
pub(crate) struct Books {
    recorder: Recorder,
    uncounted: VecDeque<Completion>,
}

impl Books {
    /// Keeps this record.
    pub fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            uncounted: VecDeque::with_capacity(MOST_UNCOUNTED),
        }
    }

    /// As [`Recorder::scheduled`].
    pub fn scheduled(&mut self, intended_ns: u64) {
        if self.recorder.is_at_checkpoint(intended_ns) {
            // What has ended belongs before it.
            self.count_all();
        }
        self.recorder.scheduled(intended_ns);
    }

    /// As [`Recorder::is_measured`].
    pub fn is_measured(&self, intended_ns: u64) -> bool {
        self.recorder.is_measured(intended_ns)
    }

    /// Notes the end of an arrival. Called once for each.
    pub fn ended(&mut self, completion: Completion) {
        if self.uncounted.len() == MOST_UNCOUNTED {
            self.count_some();
        }
        self.uncounted.push_back(completion);
    }

    /// Whether enough has ended for counting it to be worth fetching the record into the caches.
    pub fn is_worth_counting(&self) -> bool {
        self.uncounted.len() >= BATCH
    }

    /// Counts some of what has ended, the earliest first; whether there was any.
    pub fn count_some(&mut self) -> bool {
        let count = self.uncounted.len().min(BATCH);
        self.uncounted
            .drain(..count)
            .for_each(|completion| self.recorder.ended(&completion));
        count > 0
    }

    fn count_all(&mut self) {
        while self.count_some() {}
    }

    /// Connections, which are counted at once.
    pub fn connections(&mut self) -> &mut ConnectionCounts {
        &mut self.recorder.connections
    }

    /// Why connections were not made, which is counted at once.
    pub fn connect_failures(&mut self) -> &mut ConnectFailures {
        &mut self.recorder.connect_failures
    }

    /// The record, with everything in it.
    pub fn closed(mut self) -> Recorder {
        self.count_all();
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
    use crate::record::possible_ends::{Course, Ends};
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
    fn each_end_is_counted_once_and_none_waits_without_bound() {
        let mut books = Books::new(Recorder::new(&plan(), 0));
        let many = 3 * MOST_UNCOUNTED as u64 + 7;
        for instant_ns in 0..many {
            books.scheduled(instant_ns);
            books.ended(ended(instant_ns));
            assert!(books.uncounted.len() <= MOST_UNCOUNTED);
        }
        assert_eq!(
            books.uncounted.capacity(),
            MOST_UNCOUNTED,
            "no more memory than at the start"
        );
        assert!(books.count_some(), "some have waited");
        let record = books.closed();
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
    fn a_few_wait_for_more_and_then_all_are_counted() {
        let mut books = Books::new(Recorder::new(&plan(), 0));
        for instant_ns in 0..BATCH as u64 {
            assert!(!books.is_worth_counting(), "{instant_ns} have ended");
            books.ended(ended(instant_ns));
        }
        books.ended(ended(BATCH as u64));
        assert!(books.is_worth_counting());
        while books.count_some() {}
        assert!(
            books.uncounted.is_empty(),
            "one more than a batch is not left behind"
        );
        assert_eq!(
            books.recorder.phase(Phase::Measure).of(Outcome::Ok),
            BATCH as u64 + 1
        );
    }

    #[test]
    fn what_has_ended_is_counted_before_a_look_at_the_record() {
        let precision = Some(Precision {
            quantile: 0.5,
            share: 0.1,
            longest_ns: 9 * NS_PER_S,
        });
        let plan = LoadPlan {
            precision,
            ..plan()
        };
        let (shows, shown) = channel();
        let course = Course::new(Ends::of(&plan, 0).expect("a precision"), Some(shows));
        let look_ns = course.checkpoint_ns();
        let mut books = Books::new(Recorder::new(&plan, 0).on(Some(course)));
        let instants_ns = [0, look_ns / 2, look_ns - 200];
        instants_ns
            .into_iter()
            .for_each(|instant_ns| books.ended(ended(instant_ns)));
        books.scheduled(look_ns);
        let seen = shown.try_recv().expect("the look").batches.beyond(0.5);
        let requests: f64 = seen.iter().map(|stretch| stretch.requests).sum();
        assert!((requests - 3.0).abs() < 1e-9, "{requests}");
    }
}
