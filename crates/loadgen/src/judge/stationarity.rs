//! Whether response times drifted or jumped during the measurement, and whether a backlog grew.

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::clock::NS_PER_S;
use crate::plan::thresholds::{BacklogLimits, Thresholds};
use crate::record::batches::Batches;
use crate::record::histogram::LatencyHistogram;
use crate::statistics::changes::{changes, drift, kpss, median, median_slope};
use crate::statistics::group;
use crate::statistics::over_dispersion::BATCHES;

/// Slices last one to five seconds: the time of a thousand requests.
const REQUESTS_IN_SLICE: f64 = 1_000.0;
const MAX_SLICE_NS: u64 = 5 * NS_PER_S;
/// Minimum number of slices for detecting a change.
const MIN_SLICES: usize = 10;

/// A shorter load is divided into this many slices, or fewer if a slice would have less than
/// [`RESPONSES_IN_MEDIAN`] responses; each count divides [`BATCHES`]. Only the medians of short
/// slices are compared.
const COUNTS_OF_SHORT_SLICES: [usize; 6] = [30, 24, 20, 15, 12, MIN_SLICES];
const RESPONSES_IN_MEDIAN: u64 = 5;

const EMPTY_SLICE: &str = "a slice of the measurement has no correct response";

/// Number of slices for detecting the growth of a backlog.
const GROWTH_SLICES: usize = 30;
/// With fewer requests, random variation between slices can look like growth.
const MIN_REQUESTS: u64 = 1_000;
/// Growth by fewer requests than this is ignored.
const MIN_BACKLOG_GROWTH: f64 = 4.0;

/// Whether one quantile describes the whole measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No change was detected.
    Stationary,
    /// Response times drifted between the first and the last third.
    Drifting,
    /// Response times changed so much that one quantile does not describe them.
    NonStationary,
    /// A backlog grew: the server cannot sustain the offered rate, and quantiles grow with the
    /// duration.
    Unstable,
}

/// A change of the median response time during the measurement.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Change {
    /// Time of the change.
    pub at_ns: u64,
    /// Median response time before the change.
    pub p50_before_ns: u64,
    /// Median response time after the change.
    pub p50_after_ns: u64,
}

/// Whether response times changed during the measurement.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Stationarity {
    /// `stationary`; `drifting` (response times changed between the first and the last third,
    /// confirmed by the KPSS stationarity test); `non_stationary` (the median response time changed
    /// by more than 25 % and 50 µs); or `unstable` (the backlog grew, or more than 1 % of the
    /// requests were dropped because the queue was full). `None`: not checked.
    pub state: Option<State>,
    /// Why the response times were not checked. `None`: they were checked.
    pub reason: Option<&'static str>,
    /// Length of the compared time slices. A slice is long enough for 1,000 responses, but at
    /// least 1 s, at most 5 s, and never shorter than a report interval. A measurement that is
    /// shorter than ten such slices is divided into 10 to 30 shorter slices. `None`: not checked.
    pub slice_ns: Option<u64>,
    /// Relative change of the median response time between the first and the last third of the
    /// measurement. `None`: not checked.
    pub p50_drift: Option<f64>,
    /// Relative change of the p99 response time between the first and the last third of the
    /// measurement. `None`: not checked, or the measurement was divided into shorter slices
    /// (`slice_ns`).
    pub p99_drift: Option<f64>,
    /// KPSS statistic of the logarithms of the slices' median response times. It exceeds 0.739 in 1
    /// % of stationary series. `None`: not checked.
    pub p50_kpss: Option<f64>,
    /// KPSS statistic of the logarithms of the slices' p99 response times. It exceeds 0.739 in 1 %
    /// of stationary series. `None`: as for `p99_drift`.
    pub p99_kpss: Option<f64>,
    /// Changes of the median response time divide the measurement into segments. The value is the
    /// difference between the highest and the lowest segment median, relative to the
    /// lowest. `None`: not checked.
    pub p50_range: Option<f64>,
    /// All changes of the median response time.
    pub changes: Vec<Change>,
    /// Time of the last change, after which response times were steady. Lengthen the warm-up by
    /// this time. `None`: no change, or a change in the second half.
    pub settled_after_ns: Option<u64>,
}

/// The number of requests in the system.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct InSystem {
    /// Mean number of requests in the system during the measurement.
    pub mean: f64,
    /// Growth of the number of requests in the system during the measurement, divided by `mean`;
    /// about 2 if a backlog grew steadily from zero. `None`: closed loop, varying rate, fewer than
    /// 1,000 requests, or interrupted load.
    pub growth: Option<f64>,
}

impl InSystem {
    /// Computes the mean and, if `requests` (their number) is given and large enough, the growth.
    pub(crate) fn of(batches: &Batches, requests: Option<u64>) -> Self {
        let mean = batches.mean_in_system();
        let is_enough = requests.is_some_and(|requests| requests >= MIN_REQUESTS);
        Self {
            mean,
            growth: (is_enough && mean > 0.0).then(|| growth(&batches.in_system()) / mean),
        }
    }

    /// Whether the backlog grew by more than `limit` times its mean, and by more than a few
    /// requests.
    pub(crate) fn grew_beyond(&self, limit: f64) -> bool {
        self.growth
            .is_some_and(|growth| growth > limit && growth * self.mean >= MIN_BACKLOG_GROWTH)
    }
}

/// Signs that the server cannot sustain the offered rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backlog {
    pub in_system: InSystem,
    /// Share of arrivals that were dropped because the queue was full.
    pub queue_full_share: f64,
}

impl Backlog {
    pub fn is_unstable(&self, limits: &BacklogLimits) -> bool {
        self.in_system.grew_beyond(limits.unstable)
            || self.queue_full_share > limits.unstable_turned_away
    }
}

/// Growth of the number of requests in the system, from the Theil–Sen slope (median of all pairwise
/// slopes), which a stall hardly changes.
fn growth(in_system: &[f64; BATCHES]) -> f64 {
    let slices: Vec<f64> = group(in_system, BATCHES / GROWTH_SLICES)
        .map(|slice| slice.iter().sum::<f64>() / slice.len() as f64)
        .collect();
    median_slope(&slices) * slices.len() as f64
}

/// Equal slices of the measurement, each with the logarithms of its quantiles.
struct Series {
    slice_ns: u64,
    ln_p50: Vec<f64>,
    /// `None` if the slices have too few responses.
    ln_p99: Option<Vec<f64>>,
}

impl Stationarity {
    /// Compares equal slices of this length, or the medians of shorter slices if there are too few.
    pub(crate) fn of(
        slices: &[LatencyHistogram],
        slice_ns: u64,
        batches: &Batches,
        thresholds: &Thresholds,
    ) -> Self {
        if slices.len() < MIN_SLICES {
            return Self::of_short_slices(batches, thresholds);
        }
        let ln = |quantile: f64| -> Option<Vec<f64>> {
            slices
                .iter()
                .map(|slice| Some((slice.quantile_ns(quantile)?.max(1) as f64).ln()))
                .collect()
        };
        match (ln(0.5), ln(0.99)) {
            (Some(ln_p50), Some(ln_p99)) => Series {
                slice_ns,
                ln_p50,
                ln_p99: Some(ln_p99),
            }
            .judge(thresholds),
            _ => Self::unknown(EMPTY_SLICE),
        }
    }

    fn of_short_slices(batches: &Batches, thresholds: &Thresholds) -> Self {
        let responses = batches.responses();
        let count = COUNTS_OF_SHORT_SLICES
            .into_iter()
            .find(|&count| responses >= RESPONSES_IN_MEDIAN * count as u64);
        let Some(count) = count else {
            return Self::unknown("fewer than 50 correct responses");
        };
        let Some(medians_ns) = batches.medians_ns(count) else {
            return Self::unknown(EMPTY_SLICE);
        };
        Series {
            slice_ns: batches.measured_ns() / count as u64,
            ln_p50: medians_ns.iter().map(|ns| ns.max(1.0).ln()).collect(),
            ln_p99: None,
        }
        .judge(thresholds)
    }

    pub(crate) fn unknown(reason: &'static str) -> Self {
        Self {
            reason: Some(reason),
            ..Self::default()
        }
    }

    /// A growing backlog is more severe and explains the other states.
    pub(crate) fn with_backlog(self, is_unstable: bool) -> Self {
        if is_unstable {
            Self {
                state: Some(State::Unstable),
                ..self
            }
        } else {
            self
        }
    }
}

impl Series {
    fn judge(&self, thresholds: &Thresholds) -> Stationarity {
        let (p50_drift, p50_kpss) = (drift(&self.ln_p50).exp_m1(), kpss(&self.ln_p50));
        let p99 = self
            .ln_p99
            .as_ref()
            .map(|ln| (drift(ln).exp_m1(), kpss(ln)));
        let places = self.changes_of_level(thresholds.stationarity.warn_p50_drift);
        let levels = self.levels(&places);
        let (low, high) = levels
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), &level| {
                (low.min(level), high.max(level))
            });
        let range = (high - low).exp_m1();
        let limits = &thresholds.stationarity;
        let drifts = |ln: &[f64], kpss: f64, limit: f64| {
            drift(ln).exp_m1().abs() > limit
                && kpss > limits.warn_kpss
                && drift_ns(ln) > limits.warn_ns
        };
        let state = if range > limits.non_stationary && high.exp() - low.exp() > limits.warn_ns {
            State::NonStationary
        } else if drifts(&self.ln_p50, p50_kpss, limits.warn_p50_drift)
            || self
                .ln_p99
                .as_ref()
                .zip(p99)
                .is_some_and(|(ln, (_, kpss))| drifts(ln, kpss, limits.warn_p99_drift))
        {
            State::Drifting
        } else {
            State::Stationary
        };
        Stationarity {
            state: Some(state),
            reason: None,
            slice_ns: Some(self.slice_ns),
            p50_drift: Some(p50_drift),
            p99_drift: p99.map(|(drift, _)| drift),
            p50_kpss: Some(p50_kpss),
            p99_kpss: p99.map(|(_, kpss)| kpss),
            p50_range: Some(range),
            changes: self.changes_at(&places, &levels),
            settled_after_ns: self.settled_after_ns(&places),
        }
    }

    /// Changes of the level by more than `min_change`, a share. Edges of stalls are excluded.
    fn changes_of_level(&self, min_change: f64) -> Vec<usize> {
        let mut places = changes(&self.ln_p50);
        loop {
            let levels = self.levels(&places);
            let steps = levels
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).abs().exp_m1());
            let smallest = steps
                .enumerate()
                .min_by(|left, right| left.1.total_cmp(&right.1));
            match smallest {
                Some((index, step)) if step <= min_change => drop(places.remove(index)),
                _ => return places,
            }
        }
    }

    /// The level between two changes: the median, which a stall of one slice does not affect.
    fn levels(&self, places: &[usize]) -> Vec<f64> {
        let begins = std::iter::once(0).chain(places.iter().copied());
        let ends = places.iter().copied().chain([self.ln_p50.len()]);
        begins
            .zip(ends)
            .map(|(begin, end)| median(self.ln_p50[begin..end].to_vec()))
            .collect()
    }

    fn changes_at(&self, places: &[usize], levels: &[f64]) -> Vec<Change> {
        let change = |(&place, pair): (&usize, &[f64])| Change {
            at_ns: place as u64 * self.slice_ns,
            p50_before_ns: pair[0].exp() as u64,
            p50_after_ns: pair[1].exp() as u64,
        };
        places.iter().zip(levels.windows(2)).map(change).collect()
    }

    fn settled_after_ns(&self, places: &[usize]) -> Option<u64> {
        let last = *places.last()?;
        (last <= self.ln_p50.len() / 2).then_some(last as u64 * self.slice_ns)
    }
}

/// Difference in nanoseconds between the mean level of the last and the first third.
fn drift_ns(ln: &[f64]) -> f64 {
    let third = (ln.len() / 3).max(1);
    let first = ln[..third].iter().sum::<f64>() / third as f64;
    first.exp() * drift(ln).exp_m1().abs()
}

/// Number of recording intervals per slice.
pub(crate) fn intervals_in_slice(interval_ns: u64, responses_per_s: f64) -> usize {
    let target_ns = REQUESTS_IN_SLICE / responses_per_s * NS_PER_S as f64;
    let target_ns = target_ns.min(MAX_SLICE_NS as f64) as u64;
    // Rates slightly below 1,000/s also get slices of one second.
    let whole_s = target_ns
        .saturating_sub(NS_PER_S / 20)
        .div_ceil(NS_PER_S)
        .max(1);
    (whole_s * NS_PER_S).div_ceil(interval_ns) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_MS;

    /// The result for slices of one second, each with a thousand exponential response times whose
    /// mean is `mean_ms(second)`.
    fn judged(seconds: u64, mean_ms: impl Fn(u64) -> f64) -> Stationarity {
        let slice = |second: u64| {
            let mut histogram = LatencyHistogram::new();
            let draw = |index| refsrv::random::exponential(17, second * 1_000 + index);
            (0..1_000).for_each(|index| {
                histogram.record((draw(index) * mean_ms(second) * NS_PER_MS as f64) as u64)
            });
            histogram
        };
        let slices: Vec<_> = (0..seconds).map(slice).collect();
        Stationarity::of(
            &slices,
            NS_PER_S,
            &Batches::new(0, 1),
            &Thresholds::default(),
        )
    }

    #[test]
    fn f21_the_end_of_a_warm_up_of_five_seconds_is_located() {
        for (slow_ms, seconds) in [(20.0, 30), (1.5, 60)] {
            let result = judged(seconds, |second| if second < 5 { slow_ms } else { 1.0 });
            assert_eq!(result.state, Some(State::NonStationary));
            let [change] = result.changes[..] else {
                panic!("one change: {result:?}")
            };
            assert!(
                change.at_ns.abs_diff(5 * NS_PER_S) <= NS_PER_S,
                "{change:?}"
            );
            assert_eq!(result.settled_after_ns, Some(change.at_ns));
            assert!(
                change.p50_before_ns as f64 > change.p50_after_ns as f64 * slow_ms * 0.9,
                "{change:?}"
            );
        }
    }

    #[test]
    fn f21_response_times_that_rise_by_one_percent_per_second_are_not_stationary() {
        let result = judged(60, |second| 1.01_f64.powi(second as i32));
        assert_eq!(result.state, Some(State::NonStationary));
        assert_eq!(
            result.settled_after_ns, None,
            "it never settles: {result:?}"
        );
        assert!(
            result.p50_drift > Some(0.4) && result.p50_kpss > Some(0.739),
            "{result:?}"
        );
    }

    #[test]
    fn constant_response_times_are_stationary_and_slow_changes_are_drift() {
        assert_eq!(judged(60, |_| 1.0).state, Some(State::Stationary));
        assert_eq!(
            judged(60, |second| 1.0 + second as f64 * 0.003).state,
            Some(State::Drifting)
        );
        // A stall in one slice, or in one slice in ten, is normal for such a server.
        for period in [10, 60] {
            let result = judged(60, |second| if second % period == 7 { 50.0 } else { 1.0 });
            assert_eq!(
                (result.state, result.changes),
                (Some(State::Stationary), vec![]),
                "every {period} s"
            );
        }
    }

    #[test]
    fn short_measurements_and_measurements_with_empty_slices_are_not_judged() {
        let short = judged(9, |_| 1.0);
        assert_eq!(short.reason, Some("fewer than 50 correct responses"));
        let empty = vec![LatencyHistogram::new(); 20];
        let result = Stationarity::of(
            &empty,
            NS_PER_S,
            &Batches::new(0, 1),
            &Thresholds::default(),
        );
        assert!(
            result
                .reason
                .is_some_and(|reason| reason.contains("no correct response"))
        );
    }

    /// The result for a load of ten seconds with evenly spaced, lognormal responses. Their median
    /// is 6 ms times `factor(place)`, where `place` runs from 0 to 1.
    fn short_load(seed: u64, responses: u64, factor: impl Fn(f64) -> f64) -> Stationarity {
        let mut batches = Batches::new(0, 10 * NS_PER_S);
        for index in 0..responses {
            let at_ns = index * 10 * NS_PER_S / responses;
            let noise = (0.3 * refsrv::random::normal(seed, index)).exp();
            let median_ms = 6.0 * factor(index as f64 / responses as f64);
            let response_ns = (median_ms * noise * NS_PER_MS as f64) as u64;
            batches.record(at_ns, at_ns + response_ns, Some(response_ns));
        }
        Stationarity::of(&[], NS_PER_S, &batches, &Thresholds::default())
    }

    /// How many of 100 short loads (seeds 0 to 99) have this state.
    fn loads_with_state(responses: u64, factor: fn(f64) -> f64, state: State) -> usize {
        (0..100)
            .filter(|&seed| short_load(seed, responses, factor).state == Some(state))
            .count()
    }

    #[test]
    fn fifty_responses_are_judged_and_fewer_are_not() {
        assert_eq!(
            short_load(1, 49, |_| 1.0).reason,
            Some("fewer than 50 correct responses")
        );
        let result = short_load(1, 50, |_| 1.0);
        assert_eq!(
            (result.state, result.reason, result.p99_drift),
            (Some(State::Stationary), None, None)
        );
        assert_eq!(result.slice_ns, Some(NS_PER_S));
        assert_eq!(short_load(1, 1_000, |_| 1.0).slice_ns, Some(NS_PER_S / 3));
    }

    #[test]
    fn warm_up_and_drift_of_a_short_load_are_detected() {
        let warm_up = |place: f64| if place < 0.2 { 13.6 / 6.1 } else { 1.0 };
        assert!(loads_with_state(1_000, warm_up, State::NonStationary) >= 95);
        let settled_ns = short_load(1, 1_000, warm_up)
            .settled_after_ns
            .expect("settled");
        assert!(
            settled_ns.abs_diff(2 * NS_PER_S) <= NS_PER_S / 3,
            "{settled_ns}"
        );

        let drift = |place: f64| 1.0 + place * (8.1 / 5.9 - 1.0);
        let detected = loads_with_state(1_000, drift, State::NonStationary)
            + loads_with_state(1_000, drift, State::Drifting);
        assert!(detected >= 80, "{detected}");
    }

    #[test]
    fn a_change_of_a_few_microseconds_is_ignored() {
        let step = |from: f64| move |place: f64| if place < 0.5 { from } else { 1.6 * from };
        let (small, large) = (
            short_load(1, 4_000, step(0.01)),
            short_load(1, 4_000, step(0.02)),
        );
        assert!(small.p50_range > Some(0.4), "60 and 96 µs: {small:?}");
        assert_eq!(small.state, Some(State::Stationary));
        assert_eq!(large.state, Some(State::NonStationary), "120 and 192 µs");
    }

    #[test]
    fn a_short_load_of_a_steady_server_is_usually_stationary() {
        for responses in [50, 100, 150, 400, 1_000, 4_000] {
            let steady = loads_with_state(responses, |_| 1.0, State::Stationary);
            assert!(steady >= 92, "{steady} of 100 with {responses} responses");
        }
    }

    #[test]
    fn a_slice_lasts_as_long_as_a_thousand_requests() {
        let cases = [
            (5_000.0, 1),
            (1_000.0, 1),
            (990.0, 1),
            (500.0, 2),
            (200.0, 5),
            (1.0, 5),
            (0.0, 5),
        ];
        for (responses_per_s, seconds) in cases {
            assert_eq!(
                intervals_in_slice(NS_PER_S, responses_per_s),
                seconds,
                "{responses_per_s}"
            );
        }
        assert_eq!(intervals_in_slice(NS_PER_S / 10, 1_000.0), 10);
        assert_eq!(intervals_in_slice(30 * NS_PER_S, 1.0), 1);
    }

    /// A single-server queue in virtual time with 1,000 Poisson arrivals per second and exponential
    /// service times whose mean is `hold_ns(time)`.
    fn queue(
        seed: u64,
        seconds: u64,
        hold_ns: impl Fn(u64) -> f64,
    ) -> (Batches, Vec<LatencyHistogram>) {
        let mut batches = Batches::new(0, seconds * NS_PER_S);
        let mut slices = vec![LatencyHistogram::new(); seconds as usize];
        let (mut now_ns, mut free_ns) = (0.0, 0.0_f64);
        for index in 0_u64.. {
            now_ns += refsrv::random::exponential(seed, 2 * index) * 1e6;
            if now_ns >= (seconds * NS_PER_S) as f64 {
                break;
            }
            let hold_ns = hold_ns(now_ns as u64) * refsrv::random::exponential(seed, 2 * index + 1);
            free_ns = free_ns.max(now_ns) + hold_ns;
            let response_ns = (free_ns - now_ns) as u64;
            batches.record(
                now_ns as u64,
                now_ns as u64 + response_ns,
                Some(response_ns),
            );
            slices[(now_ns as u64 / NS_PER_S) as usize].record(response_ns);
        }
        (batches, slices)
    }

    #[test]
    fn f21_a_queue_below_its_capacity_is_stable_and_one_above_it_is_not() {
        for (utilisation, max_false) in [(0.5, 1), (0.8, 3), (0.9, 10)] {
            let (mut unstable, mut not_stationary) = (0, 0);
            for seed in 0..50 {
                let (batches, slices) = queue(seed, 30, |_| utilisation * 1e6);
                unstable += u32::from(InSystem::of(&batches, Some(30_000)).grew_beyond(1.0));
                let result = Stationarity::of(&slices, NS_PER_S, &batches, &Thresholds::default());
                not_stationary += u32::from(result.state == Some(State::NonStationary));
            }
            assert!(unstable <= 1, "{unstable} of 50 unstable at {utilisation}");
            assert!(
                not_stationary <= max_false,
                "{not_stationary} of 50 not stationary at {utilisation}"
            );
        }
        for utilisation in [1.1, 1.5] {
            let (batches, _) = queue(1, 30, |_| utilisation * 1e6);
            let in_system = InSystem::of(&batches, Some(30_000));
            assert!(in_system.grew_beyond(1.0), "{in_system:?}");
            assert!(
                (1.7..2.1).contains(&in_system.growth.expect("enough requests")),
                "{in_system:?}"
            );
        }
    }

    #[test]
    fn a_stall_is_not_a_growing_backlog() {
        let stall_ns = 3 * NS_PER_S;
        for at_ns in [0, 12 * NS_PER_S, 26 * NS_PER_S] {
            let mut batches = Batches::new(0, 30 * NS_PER_S);
            for index in 0..30_000_u64 {
                let intended_ns = index * NS_PER_MS;
                let end_ns = if (at_ns..at_ns + stall_ns).contains(&intended_ns) {
                    at_ns + stall_ns
                } else {
                    intended_ns
                };
                batches.record(
                    intended_ns,
                    end_ns + NS_PER_MS,
                    Some(end_ns + NS_PER_MS - intended_ns),
                );
            }
            let in_system = InSystem::of(&batches, Some(30_000));
            assert!(!in_system.grew_beyond(0.5), "{in_system:?}");
        }
    }

    #[test]
    fn growth_is_not_computed_for_few_requests_or_closed_loops() {
        let (batches, _) = queue(3, 2, |_| 1.5e6);
        assert_eq!(InSystem::of(&batches, None).growth, None);
        assert_eq!(InSystem::of(&batches, Some(999)).growth, None);
        assert!(InSystem::of(&batches, None).mean > 1.0);
    }
}
