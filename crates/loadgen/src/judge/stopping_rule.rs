//! Where a measurement ends whose length depends on how well a quantile is known.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use crate::judge::uncertainty::FEWEST_BEYOND;
use crate::plan::Precision;
use crate::record::batches::Batches;
use crate::record::possible_ends::{Ends, Shown};
use crate::statistics::over_dispersion::Dispersion;

/// Of what was asked for: a look knows less than the report, because some responses are still out
/// and
/// it has no more than the slots of the stretches, which are up to 3 % wide.
const STRICTER: f64 = 0.97;

/// Looks at what the threads show, until none of them shows anything any more, and ends the
/// measurement at the first end at which the quantile is known as well as was asked for.
pub(crate) fn look(asked: &Precision, ends: &Ends, threads: usize, shown: &Receiver<Shown>) {
    let mut looks: BTreeMap<usize, (usize, Batches)> = BTreeMap::new();
    while let Ok(one) = shown.recv() {
        let (count, all) = match looks.remove(&one.place) {
            None => (1, one.batches),
            Some((count, mut all)) => {
                all.add(&one.batches);
                (count + 1, all)
            }
        };
        if count == threads
            && half_width(&all, asked.quantile)
                .is_some_and(|half| half <= STRICTER * asked.half_width)
        {
            // Too late, where this took too long: the measurement then goes on to the next end.
            ends.end_at(one.place);
        }
        looks.insert(one.place, (count, all));
    }
}

/// Half of the 95 % interval as a share of the quantile, from the stretches alone while a load
/// runs: the quantiles lie within a slot, shared out evenly.
fn half_width(batches: &Batches, quantile: f64) -> Option<f64> {
    let dispersion = Dispersion::of(&batches.beyond_of_offered(quantile), quantile)?;
    if dispersion.effective_beyond(quantile) < FEWEST_BEYOND || dispersion.high >= 1.0 {
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
    use crate::record::possible_ends::Course;

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

    /// What two threads show ahead of the first end: every request takes as long as the one before,
    /// or they scatter.
    fn looked_at(half_width: f64, response_ns: impl Fn(u64) -> u64) -> Arc<Ends> {
        let ends = Ends::of(&plan(half_width), 0).expect("a precision is asked for");
        let (shows, shown) = channel();
        for half in 0..2_u64 {
            let mut batches = Batches::new(5 * S, 15 * S);
            (0..900).for_each(|index| {
                let at_ns = 5 * S + (2 * index + half) * S / 200;
                batches.record(at_ns, at_ns, Some(response_ns(2 * index + half)));
            });
            Course::new(Arc::clone(&ends), Some(shows.clone())).show(batches);
        }
        drop(shows);
        look(
            &Precision {
                quantile: 0.5,
                half_width,
                max_duration_ns: 50 * S,
            },
            &ends,
            2,
            &shown,
        );
        ends
    }

    #[test]
    fn a_measurement_ends_where_the_quantile_is_known_well_enough_and_goes_on_otherwise() {
        let scattered = |index: u64| (index * 377 % 1_000 + 1) * 1_000_000;
        assert_eq!(looked_at(0.1, |_| 1_000_000).load_end_ns(), 17 * S);
        assert_eq!(
            looked_at(0.1, scattered).load_end_ns(),
            17 * S,
            "half-width 5 %"
        );
        assert_eq!(looked_at(0.01, scattered).load_end_ns(), u64::MAX);
    }

    #[test]
    fn nothing_is_decided_before_every_thread_has_shown_what_it_has() {
        let ends = Ends::of(&plan(0.5), 0).expect("a precision is asked for");
        let (shows, shown) = channel();
        let mut batches = Batches::new(5 * S, 15 * S);
        (0..1_000)
            .map(|index| 5 * S + index * S / 200)
            .for_each(|at_ns| batches.record(at_ns, at_ns, Some(1_000)));
        Course::new(Arc::clone(&ends), Some(shows)).show(batches);
        look(
            &Precision {
                quantile: 0.5,
                half_width: 0.5,
                max_duration_ns: 50 * S,
            },
            &ends,
            2,
            &shown,
        );
        assert_eq!(ends.load_end_ns(), u64::MAX);
    }

    #[test]
    fn the_stretches_know_a_half_width_as_the_whole_histogram_does() {
        let length_ns = 120 * NS_PER_S;
        let (mut batches, requests) = (Batches::new(0, length_ns), 60_000_u64);
        // Every thousandth part of a second from 1 to 1,000 ms, in an order that scatters them over
        // the stretches.
        for index in 0..requests {
            let at_ns = index * (length_ns / requests);
            batches.record(
                at_ns,
                at_ns + 5,
                Some((index * 377 % 1_000 + 1) * 1_000_000),
            );
        }
        // Of independent requests: 2.045 √(0.5 · 0.5 / 60,000) of quantile, which is as much of the
        // values from 1 to 1,000.
        let expected = 2.045 * (0.25 / requests as f64).sqrt() / 0.5;
        let found = half_width(&batches, 0.5).expect("enough requests");
        assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        assert_eq!(
            half_width(&batches, 0.9999),
            None,
            "fewer than ten lie beyond it"
        );
    }
}
