//! The record of a load whose measurement can be extended: whether it ends at a possible end is
//! decided before anything later is counted.

use crate::record::interval::IntervalRecord;
use crate::record::possible_ends::{EndCursor, Step};
use crate::record::recorder::Recorder;

impl Recorder {
    /// Makes the measurement extendable.
    pub(crate) fn with_cursor(self, cursor: Option<EndCursor>) -> Self {
        let checkpoint_ns = cursor.as_ref().map_or(u64::MAX, EndCursor::checkpoint_ns);
        Self {
            checkpoint_ns,
            cursor,
            ..self
        }
    }

    /// Takes every step that is due before a timestamp can be counted.
    #[cold]
    pub(super) fn pass_checkpoints(&mut self, timestamp_ns: u64) {
        while timestamp_ns >= self.checkpoint_ns {
            let Some(cursor) = &mut self.cursor else {
                return;
            };
            let step = cursor.step();
            self.checkpoint_ns = if step == Step::Ends {
                u64::MAX
            } else {
                cursor.checkpoint_ns()
            };
            match step {
                Step::Submit => cursor.submit(self.observations.batches.clone()),
                Step::Extended(to_ns) => self.extend(to_ns),
                Step::Ends => {}
            }
        }
    }

    /// Applies the extensions that other threads have decided. Nothing may be recorded afterwards.
    pub(crate) fn settle(&mut self) {
        while let Some(Step::Extended(to_ns)) =
            self.cursor.as_mut().and_then(EndCursor::step_behind)
        {
            self.extend(to_ns);
        }
    }

    /// Ends the measurement at this timestamp, by which all its requests have ended.
    pub(crate) fn cut(&mut self, end_ns: u64) {
        self.measure_to_ns = end_ns.clamp(self.measure_from_ns, self.measure_to_ns);
        self.observations.batches.cut(self.measure_to_ns);
    }

    /// Submits no more snapshots while the load runs.
    pub(crate) fn stop_snapshots(&mut self) {
        self.cursor.iter_mut().for_each(EndCursor::stop_snapshots);
    }

    /// Extends the measurement to `to_ns`, twice its length.
    fn extend(&mut self, to_ns: u64) {
        self.measure_to_ns = to_ns;
        let count = (to_ns - self.measure_from_ns).div_ceil(self.interval_ns);
        self.intervals.resize(
            usize::try_from(count).unwrap_or(usize::MAX),
            IntervalRecord::default(),
        );
        self.observations.double(to_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::{LoadPlan, Phases, Precision};
    use crate::record::exchange::{Arrival, Completion, Outcome, Stamps};
    use crate::record::possible_ends::Ends;
    use crate::record::recorder::Phase;

    const S: u64 = NS_PER_S;
    const START_NS: u64 = 100 * S;

    /// One second before the measurement, and one after it; the measurement takes 2, 4 or 8.
    fn plan() -> LoadPlan {
        let precision = Some(Precision {
            quantile: 0.5,
            half_width: 0.1,
            max_duration_ns: 9 * S,
        });
        let phases = Phases {
            warmup_ns: S,
            measure_ns: 2 * S,
            cooldown_ns: S,
            drain_ns: None,
        };
        LoadPlan {
            precision,
            phases,
            ..LoadPlan::open("http://h/", 10.0, 2 * S)
        }
    }

    fn record(recorder: &mut Recorder, seconds: impl IntoIterator<Item = u64>) {
        for intended_ns in seconds.into_iter().map(|second| START_NS + second * S) {
            recorder.scheduled(intended_ns);
            // The response arrives in the next second: some arrive beyond an end that their request
            // precedes.
            let ended_ns = intended_ns + S;
            let stamps = Stamps {
                write_start_ns: intended_ns,
                first_byte_ns: ended_ns,
                last_byte_ns: ended_ns,
                ..Stamps::default()
            };
            let arrival = Arrival::unqueued(intended_ns, 0);
            recorder.ended(&Completion {
                arrival,
                stamps,
                outcome: Outcome::Ok,
                status: Some(200),
                ended_ns,
            });
        }
    }

    fn counts(recorder: &Recorder) -> [u64; 3] {
        [Phase::Warmup, Phase::Measure, Phase::Cooldown]
            .map(|phase| recorder.phase(phase).of(Outcome::Ok))
    }

    /// A record of a load that may be extended, and its possible ends.
    fn extendable() -> (Arc<Ends>, Recorder) {
        let ends = Ends::of(&plan(), START_NS).expect("a precision");
        let recorder = Recorder::new(&plan(), START_NS)
            .with_cursor(Some(EndCursor::new(Arc::clone(&ends), None)));
        (ends, recorder)
    }

    /// A record of a load that had this length from the start.
    fn of_length(seconds: u64, ended_s: u64) -> Recorder {
        let phases = Phases {
            measure_ns: seconds * S,
            ..plan().phases
        };
        let mut recorder = Recorder::new(
            &LoadPlan {
                phases,
                precision: None,
                ..plan()
            },
            START_NS,
        );
        record(&mut recorder, 0..ended_s);

        recorder
    }

    fn assert_same(one: &Recorder, other: &Recorder) {
        one.check_conservation()
            .expect("each arrival has one outcome");
        assert_eq!(counts(one), counts(other));
        assert_eq!(
            (one.window(), one.measured_ns(u64::MAX)),
            (other.window(), other.measured_ns(u64::MAX))
        );
        assert_eq!(one.measures().response, other.measures().response);

        let slices = |recorder: &Recorder| -> Vec<(u64, u64, u64)> {
            recorder
                .intervals(u64::MAX)
                .map(|(begin_ns, _, slice)| (begin_ns, slice.scheduled, slice.ok))
                .collect()
        };
        assert_eq!(slices(one), slices(other));

        let in_system = |recorder: &Recorder| recorder.observations().batches.mean_in_system();
        assert!(
            (in_system(one) - in_system(other)).abs() < 1e-6,
            "{} {}",
            in_system(one),
            in_system(other)
        );
    }

    #[test]
    fn an_extended_measurement_equals_one_that_had_its_length_from_the_start() {
        let (ends, mut recorder) = extendable();
        record(&mut recorder, 0..10);
        assert_eq!((counts(&recorder), ends.length_ns()), ([1, 8, 1], 8 * S));
        assert_same(&recorder, &of_length(8, 10));
    }

    #[test]
    fn requests_after_an_early_end_count_as_cooldown() {
        let (ends, mut recorder) = extendable();
        // Up to the response of the third second, which arrives beyond the first end.
        record(&mut recorder, 0..3);

        assert!(
            ends.end_at(1),
            "the first end has passed, the second lies ahead"
        );

        record(&mut recorder, 3..7);
        assert_eq!((counts(&recorder), ends.length_ns()), ([1, 4, 2], 4 * S));
        assert_same(&recorder, &of_length(4, 7));
    }

    #[test]
    fn the_record_of_an_idle_thread_ends_where_the_others_end() {
        let ends = Ends::of(&plan(), START_NS).expect("a precision");
        let cursor = || Some(EndCursor::new(Arc::clone(&ends), None));
        let (mut busy, mut idle) = (
            Recorder::new(&plan(), START_NS).with_cursor(cursor()),
            Recorder::new(&plan(), START_NS).with_cursor(cursor()),
        );
        record(&mut idle, 0..1);
        record(&mut busy, 1..10);
        idle.settle();
        busy.settle();
        idle.merge(&busy);

        assert_same(&idle, &of_length(8, 10));
    }

    #[test]
    fn a_snapshot_is_submitted_before_each_end_except_the_last() {
        let ends = Ends::of(&plan(), START_NS).expect("a precision");
        let (sender, snapshots) = channel();
        let mut recorder =
            Recorder::new(&plan(), START_NS).with_cursor(Some(EndCursor::new(ends, Some(sender))));
        record(&mut recorder, 0..10);

        assert_eq!(
            snapshots.try_iter().count(),
            2,
            "before the first and the second end, but not before the last"
        );

        recorder.stop_snapshots();
        assert!(
            snapshots.recv().is_err(),
            "the stopping rule need not wait any longer"
        );
    }
}
