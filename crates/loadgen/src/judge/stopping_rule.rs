//! The stopping rule of a measurement that runs until a quantile reaches its target precision.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use crate::judge::uncertainty::MIN_BEYOND;
use crate::plan::Precision;
use crate::record::batches::Batches;
use crate::record::possible_ends::{Ends, Snapshot};
use crate::statistics::over_dispersion::Dispersion;

/// Factor on the target half-width. The rule has less data than the report: some responses are
/// still missing, and its histogram slots are up to 3 % wide.
const SAFETY_FACTOR: f64 = 0.97;

/// Analyzes the threads' snapshots until all threads stop submitting them. Ends the measurement at
/// the first possible end at which the quantile reaches the target precision.
pub(crate) fn apply(
    precision: &Precision,
    ends: &Ends,
    threads: usize,
    snapshots: &Receiver<Snapshot>,
) {
    let mut merged: BTreeMap<usize, (usize, Batches)> = BTreeMap::new();
    while let Ok(snapshot) = snapshots.recv() {
        let (count, all) = match merged.remove(&snapshot.place) {
            None => (1, snapshot.batches),
            Some((count, mut all)) => {
                all.add(&snapshot.batches);
                (count + 1, all)
            }
        };
        if count == threads
            && half_width(&all, precision.quantile)
                .is_some_and(|half| half <= SAFETY_FACTOR * precision.half_width)
        {
            // No effect if the analysis took too long; the measurement then continues to the next
            // end.
            ends.end_at(snapshot.place);
        }
        merged.insert(snapshot.place, (count, all));
    }
}

/// Half-width of the 95 % confidence interval relative to the quantile, estimated from the batches
/// while the load runs. Quantiles are interpolated within a slot.
fn half_width(batches: &Batches, quantile: f64) -> Option<f64> {
    let dispersion = Dispersion::of(&batches.beyond_of_offered(quantile), quantile)?;
    if dispersion.effective_beyond(quantile) < MIN_BEYOND || dispersion.high >= 1.0 {
        return None;
    }
    let [low_ns, value_ns, high_ns] = [dispersion.low, quantile, dispersion.high]
        .map(|quantile| batches.offered_quantile_ns(quantile));
    Some((high_ns? - low_ns?) / 2.0 / value_ns.filter(|value_ns| *value_ns > 0.0)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::LoadPlan;
    use crate::record::possible_ends::EndCursor;

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

    /// Applies the rule to snapshots that two threads submit before the first possible end.
    fn ends_after(half_width: f64, response_ns: impl Fn(u64) -> u64) -> Arc<Ends> {
        let ends = Ends::of(&plan(half_width), 0).expect("the plan has a precision");
        let (sender, snapshots) = channel();
        for half in 0..2_u64 {
            let mut batches = Batches::new(5 * S, 15 * S);
            (0..900).for_each(|index| {
                let at_ns = 5 * S + (2 * index + half) * S / 200;
                batches.record(at_ns, at_ns, Some(response_ns(2 * index + half)));
            });
            EndCursor::new(Arc::clone(&ends), Some(sender.clone())).submit(batches);
        }
        drop(sender);
        apply(
            &Precision {
                quantile: 0.5,
                half_width,
                max_duration_ns: 50 * S,
            },
            &ends,
            2,
            &snapshots,
        );
        ends
    }

    #[test]
    fn a_measurement_ends_when_the_quantile_is_precise_enough_and_continues_otherwise() {
        let scattered = |index: u64| (index * 377 % 1_000 + 1) * 1_000_000;
        assert_eq!(ends_after(0.1, |_| 1_000_000).load_end_ns(), 17 * S);
        assert_eq!(
            ends_after(0.1, scattered).load_end_ns(),
            17 * S,
            "half-width 5 %"
        );
        assert_eq!(ends_after(0.01, scattered).load_end_ns(), u64::MAX);
    }

    #[test]
    fn the_measurement_continues_until_every_thread_has_submitted() {
        let ends = Ends::of(&plan(0.5), 0).expect("the plan has a precision");
        let (sender, snapshots) = channel();
        let mut batches = Batches::new(5 * S, 15 * S);
        (0..1_000)
            .map(|index| 5 * S + index * S / 200)
            .for_each(|at_ns| batches.record(at_ns, at_ns, Some(1_000)));
        EndCursor::new(Arc::clone(&ends), Some(sender)).submit(batches);
        apply(
            &Precision {
                quantile: 0.5,
                half_width: 0.5,
                max_duration_ns: 50 * S,
            },
            &ends,
            2,
            &snapshots,
        );
        assert_eq!(ends.load_end_ns(), u64::MAX);
    }

    #[test]
    fn the_batches_give_the_same_half_width_as_the_whole_histogram() {
        let length_ns = 120 * NS_PER_S;
        let (mut batches, requests) = (Batches::new(0, length_ns), 60_000_u64);
        // Every millisecond from 1 to 1,000 ms, in an order that scatters them over the batches.
        for index in 0..requests {
            let at_ns = index * (length_ns / requests);
            batches.record(
                at_ns,
                at_ns + 5,
                Some((index * 377 % 1_000 + 1) * 1_000_000),
            );
        }
        // For independent requests, the half-width is 2.045 √(0.5 · 0.5 / 60,000) in terms of the
        // quantile. The values are proportional to the quantile, so dividing by 0.5 gives the
        // relative half-width.
        let expected = 2.045 * (0.25 / requests as f64).sqrt() / 0.5;
        let measured = half_width(&batches, 0.5).expect("enough requests");
        assert!(
            (measured / expected - 1.0).abs() < 0.1,
            "{measured} {expected}"
        );
        assert_eq!(
            half_width(&batches, 0.9999),
            None,
            "fewer than ten lie beyond it"
        );
    }
}
