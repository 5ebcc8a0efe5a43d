//! How a measurement ends whose length depends on what it finds: after one of a few lengths, and
//! nowhere between.
//!
//! Shortly before each of these ends every thread shows what it has, and whoever looks at all of it
//! may end the measurement there. Where nobody has by then it goes on: the first thread that comes
//! to anything later settles it for all. So the phase of every instant is known before anything of
//! it is counted, and the measurement holds exactly what a load of that length would have held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use crate::base::clock::NS_PER_S;
use crate::plan::LoadPlan;
use crate::record::batches::Batches;

/// The longest time before an end at which threads show what they have: enough to look at it.
const LONGEST_AHEAD_NS: u64 = NS_PER_S;
/// The same as a part of the shortest length.
const AHEAD_PARTS: u64 = 10;

/// The instants at which a measurement may end, and which of them it is.
#[derive(Debug)]
pub(crate) struct Ends {
    from_ns: u64,
    lengths_ns: Vec<u64>,
    cooldown_ns: u64,
    /// Twice the place of the end that lies ahead, and 1 if the measurement ends there.
    settled: AtomicUsize,
}

impl Ends {
    /// `None` where the length of the plan's measurement is fixed.
    pub fn of(plan: &LoadPlan, start_ns: u64) -> Option<Arc<Self>> {
        let lengths_ns = plan.precision.as_ref()?.lengths_ns(plan.phases.measure_ns);
        let from_ns = start_ns + plan.phases.warmup_ns;
        let settled = AtomicUsize::new(0);
        Some(Arc::new(Self {
            from_ns,
            lengths_ns,
            cooldown_ns: plan.phases.cooldown_ns,
            settled,
        }))
    }

    /// Ends the measurement at this place; whether it was not too late to.
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

    /// Whether the measurement goes on beyond this place, which is settled by asking.
    fn goes_on(&self, place: usize) -> bool {
        if place + 1 == self.lengths_ns.len() {
            return false;
        }
        let next = 2 * (place + 1);
        match self
            .settled
            .compare_exchange(2 * place, next, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => true,
            Err(found) => found >= next,
        }
    }

    fn is_beyond(&self, place: usize) -> bool {
        self.settled.load(Ordering::Acquire) >= 2 * (place + 1)
    }

    fn end_ns(&self, place: usize) -> u64 {
        self.from_ns + self.lengths_ns[place]
    }

    /// How long the measurement is, as far as it is settled.
    pub fn length_ns(&self) -> u64 {
        self.lengths_ns[self.settled.load(Ordering::Acquire) / 2]
    }

    /// From when on nothing is sent, as far as it is settled.
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
        (self.lengths_ns[0] / AHEAD_PARTS).min(LONGEST_AHEAD_NS)
    }
}

/// What one thread has, shortly before the end at this place.
#[derive(Debug)]
pub(crate) struct Shown {
    pub place: usize,
    pub batches: Batches,
}

/// What comes next on the way through the ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is time to show what there is.
    Show,
    /// The measurement goes on until this instant.
    GoesOn(u64),
    /// It has ended.
    Ends,
}

/// One thread's way through the ends.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    ends: Arc<Ends>,
    place: usize,
    has_shown: bool,
    shows: Option<Sender<Shown>>,
}

impl Course {
    /// The way from the first end on; without `shows` nothing is ever shown.
    pub fn new(ends: Arc<Ends>, shows: Option<Sender<Shown>>) -> Self {
        Self {
            ends,
            place: 0,
            has_shown: false,
            shows,
        }
    }

    /// Where it leads to.
    pub fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.ends)
    }

    /// From when on the next step is due.
    pub fn checkpoint_ns(&self) -> u64 {
        let end_ns = self.ends.end_ns(self.place);
        if self.has_to_show() {
            end_ns - self.ends.ahead_ns()
        } else {
            end_ns
        }
    }

    fn has_to_show(&self) -> bool {
        self.shows.is_some() && !self.has_shown && self.place + 1 < self.ends.lengths_ns.len()
    }

    /// Takes that step.
    pub fn step(&mut self) -> Step {
        if self.has_to_show() {
            self.has_shown = true;
            return Step::Show;
        }
        if self.ends.goes_on(self.place) {
            self.advance()
        } else {
            Step::Ends
        }
    }

    /// The steps that others have settled, where nothing has come since.
    pub fn step_behind(&mut self) -> Option<Step> {
        self.ends.is_beyond(self.place).then(|| self.advance())
    }

    fn advance(&mut self) -> Step {
        (self.place, self.has_shown) = (self.place + 1, false);
        Step::GoesOn(self.ends.end_ns(self.place))
    }

    /// Shows what there is.
    pub fn show(&self, batches: Batches) {
        if let Some(shows) = &self.shows {
            // Nobody looks any longer once the load is being given up.
            let _ = shows.send(Shown {
                place: self.place,
                batches,
            });
        }
    }

    /// Nothing will be shown any more.
    pub fn stop_showing(&mut self) {
        self.shows = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::plan::Precision;

    const S: u64 = NS_PER_S;

    fn plan(share: f64) -> LoadPlan {
        let mut plan = LoadPlan::open("http://h/", 100.0, 10 * S);
        (plan.phases.warmup_ns, plan.phases.cooldown_ns) = (5 * S, 2 * S);
        plan.precision = Some(Precision {
            quantile: 0.5,
            share,
            longest_ns: 50 * S,
        });
        plan
    }

    fn ends() -> Arc<Ends> {
        Ends::of(&plan(0.1), 100 * S).expect("a precision is asked for")
    }

    #[test]
    fn a_fixed_length_has_no_other_end() {
        assert!(Ends::of(&LoadPlan::open("http://h/", 1.0, S), 0).is_none());
    }

    #[test]
    fn whoever_is_first_settles_an_end_for_all() {
        let ends = ends();
        assert_eq!((ends.length_ns(), ends.load_end_ns()), (10 * S, u64::MAX));
        assert!(ends.goes_on(0), "nobody ended it");
        assert!(!ends.end_at(0), "too late");
        assert!(ends.goes_on(0), "for a thread that lags behind, too");
        assert!(ends.end_at(1));
        assert!(!ends.goes_on(1) && ends.goes_on(0));
        assert!(!ends.end_at(1), "it ends once");
        assert_eq!(
            (ends.length_ns(), ends.load_end_ns()),
            (20 * S, (100 + 5 + 20 + 2) * S)
        );
    }

    #[test]
    fn the_last_end_is_the_last_that_the_longest_duration_allows() {
        let ends = ends();
        assert!(ends.goes_on(0) && ends.goes_on(1));
        assert_eq!((ends.length_ns(), ends.load_end_ns()), (40 * S, 147 * S));
        assert!(!ends.goes_on(2));
    }

    #[test]
    fn a_thread_shows_what_it_has_ahead_of_each_end_but_the_last() {
        let (ends, (shows, shown)) = (ends(), channel());
        let mut course = Course::new(Arc::clone(&ends), Some(shows));
        let mut steps = Vec::new();
        while steps.last().is_none_or(|(_, step)| *step != Step::Ends) {
            steps.push((course.checkpoint_ns() / S, course.step()));
        }
        let goes_on = |until_s: u64| Step::GoesOn(until_s * S);
        assert_eq!(
            steps,
            [
                (114, Step::Show),
                (115, goes_on(125)),
                (124, Step::Show),
                (125, goes_on(145)),
                (145, Step::Ends)
            ]
        );
        let mut late = Course::new(ends, None);
        let behind: Vec<Step> = std::iter::from_fn(|| late.step_behind()).collect();
        assert_eq!(
            behind,
            [goes_on(125), goes_on(145)],
            "where nothing came, others settled it"
        );
        drop(course);
        assert!(
            shown.recv().is_err(),
            "with the threads ends what they show"
        );
    }
}
