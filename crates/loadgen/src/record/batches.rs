//! The measure phase in [`BATCHES`] batches of equal duration: the basis of the statistics of one
//! load.
//!
//! Each batch has a coarse histogram of response times and counts arrivals and departures. Both
//! cost a few additions per request in preallocated memory; nothing is derived before the load is
//! over.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::statistics::over_dispersion::{BATCHES, Batch};

/// Buckets of a coarse histogram: 32 per power of two, so none is wider than a thirtieth of its
/// values.
pub(super) const BUCKETS: usize = 1_216;
/// Larger values are counted as this one, which is more than an hour.
const MAX_NS: u64 = (1 << 42) - 1;

/// Arrivals to and departures from the system in one batch. The sums of their offsets from the
/// start of the batch give the time spent in the system.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Flow {
    arrived: u64,
    departed: u64,
    arrival_offsets_ns: u128,
    departure_offsets_ns: u128,
}

impl Flow {
    /// Combined with the next batch, which starts `length_ns` later.
    fn then(&self, next: &Self, length_ns: u64) -> Self {
        let shift_ns = |count: u64| u128::from(count) * u128::from(length_ns);
        Self {
            arrived: self.arrived + next.arrived,
            departed: self.departed + next.departed,
            arrival_offsets_ns: self.arrival_offsets_ns
                + next.arrival_offsets_ns
                + shift_ns(next.arrived),
            departure_offsets_ns: self.departure_offsets_ns
                + next.departure_offsets_ns
                + shift_ns(next.departed),
        }
    }
}

/// Times that requests spent in the system, summed request by request.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Stays {
    /// Of requests without a correct response.
    failed_ns: u128,
    /// After the end of the measurement, of requests that arrived during it.
    after_end_ns: u128,
    /// During the measurement, of requests that arrived before it.
    carried_in_ns: u128,
}

/// A time in which no request in the system ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Silence {
    /// Its length; it may have been up to two batches longer.
    pub length_ns: u64,
    /// Requests in the system at its end.
    pub waiting: u64,
    /// p99 of the response times of requests that arrived at other times.
    pub usual_ns: u64,
}

/// The batches of one thread, or of the load after merging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batches {
    from_ns: u64,
    to_ns: u64,
    length_ns: u64,
    /// Correct responses by batch and bucket.
    #[serde(with = "non_zero")]
    counts: Vec<u32>,
    /// All other completions by batch.
    failed: Vec<u64>,
    flows: Vec<Flow>,
    /// Number of requests in the system when the measurement began.
    carried_in: u64,
    stays: Stays,
}

/// Most buckets are empty: only the others travel, each with its place.
mod non_zero {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{BATCHES, BUCKETS};

    pub fn serialize<S: Serializer>(counts: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        let places = counts.iter().enumerate();
        serializer.collect_seq(places.filter(|(_, count)| **count > 0))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
        let mut counts = vec![0; BATCHES * BUCKETS];
        for (place, count) in Vec::<(usize, u32)>::deserialize(deserializer)? {
            *counts
                .get_mut(place)
                .ok_or_else(|| D::Error::custom("a bucket beyond the last"))? = count;
        }
        Ok(counts)
    }
}

impl Batches {
    /// Empty batches between two timestamps.
    #[must_use]
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns,
            length_ns: (to_ns - from_ns).div_ceil(BATCHES as u64).max(1),
            counts: vec![0; BATCHES * BUCKETS],
            failed: vec![0; BATCHES],
            flows: vec![Flow::default(); BATCHES],
            carried_in: 0,
            stays: Stays::default(),
        }
    }

    /// Counts a request by its scheduled send and its end; `response_ns` if the response was
    /// correct.
    pub fn record(&mut self, intended_ns: u64, ended_ns: u64, response_ns: Option<u64>) {
        if intended_ns >= self.to_ns {
            return;
        }

        let ended_ns = ended_ns.max(intended_ns);
        if intended_ns < self.from_ns {
            self.record_carried_in(ended_ns);
        } else {
            let (index, offset_ns) = self.place(intended_ns);
            self.flows[index].arrived += 1;
            self.flows[index].arrival_offsets_ns += u128::from(offset_ns);
            match response_ns {
                Some(response_ns) => self.counts[index * BUCKETS + bucket_of(response_ns)] += 1,
                None => {
                    self.failed[index] += 1;
                    self.stays.failed_ns += u128::from(ended_ns - intended_ns);
                }
            }
            self.stays.after_end_ns += u128::from(ended_ns.saturating_sub(self.to_ns));
        }

        if (self.from_ns..self.to_ns).contains(&ended_ns) {
            let (index, offset_ns) = self.place(ended_ns);
            self.flows[index].departed += 1;
            self.flows[index].departure_offsets_ns += u128::from(offset_ns);
        }
    }

    fn record_carried_in(&mut self, ended_ns: u64) {
        if ended_ns >= self.from_ns {
            self.carried_in += 1;
            self.stays.carried_in_ns += u128::from(ended_ns.min(self.to_ns) - self.from_ns);
        }
    }

    fn place(&self, timestamp_ns: u64) -> (usize, u64) {
        let since_ns = timestamp_ns - self.from_ns;
        (
            (since_ns / self.length_ns) as usize,
            since_ns % self.length_ns,
        )
    }

    /// Extends the measurement to `to_ns`, twice its length: each two batches become one, followed
    /// by as many empty ones.
    pub(crate) fn double(&mut self, to_ns: u64) {
        for index in 0..BATCHES / 2 {
            let (first, second) = (2 * index, 2 * index + 1);
            for bucket in 0..BUCKETS {
                let both =
                    self.counts[first * BUCKETS + bucket] + self.counts[second * BUCKETS + bucket];
                self.counts[index * BUCKETS + bucket] = both;
            }
            self.failed[index] = self.failed[first] + self.failed[second];
            self.flows[index] = self.flows[first].then(&self.flows[second], self.length_ns);
        }

        self.counts[BATCHES / 2 * BUCKETS..].fill(0);
        self.failed[BATCHES / 2..].fill(0);
        self.flows[BATCHES / 2..].fill(Flow::default());
        self.length_ns *= 2;
        self.to_ns = to_ns;
    }

    /// Ends the measurement earlier, at a timestamp after which nothing was counted; the batches
    /// beyond it stay empty.
    pub(crate) fn cut(&mut self, to_ns: u64) {
        self.to_ns = to_ns;
    }

    /// Adds another thread's batches.
    pub fn add(&mut self, other: &Self) {
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.failed
            .iter_mut()
            .zip(&other.failed)
            .for_each(|(mine, theirs)| *mine += theirs);

        for (mine, theirs) in self.flows.iter_mut().zip(&other.flows) {
            mine.arrived += theirs.arrived;
            mine.departed += theirs.departed;
            mine.arrival_offsets_ns += theirs.arrival_offsets_ns;
            mine.departure_offsets_ns += theirs.departure_offsets_ns;
        }

        self.carried_in += other.carried_in;
        self.stays.failed_ns += other.stays.failed_ns;
        self.stays.after_end_ns += other.stays.after_end_ns;
        self.stays.carried_in_ns += other.stays.carried_in_ns;
    }

    /// For each batch, the part of its correct responses beyond a quantile.
    #[must_use]
    pub fn beyond(&self, quantile: f64) -> [Batch; BATCHES] {
        self.beyond_of(quantile, &[0; BATCHES])
    }

    /// For each batch, the part of all its requests beyond a quantile; failures rank above every
    /// response.
    #[must_use]
    pub fn beyond_of_offered(&self, quantile: f64) -> [Batch; BATCHES] {
        self.beyond_of(quantile, &self.failed)
    }

    fn beyond_of(&self, quantile: f64, failed: &[u64]) -> [Batch; BATCHES] {
        let correct: [u64; BATCHES] =
            std::array::from_fn(|index| self.buckets(index).iter().copied().map(u64::from).sum());
        let requests: [u64; BATCHES] = std::array::from_fn(|index| correct[index] + failed[index]);
        let tail = requests.iter().sum::<u64>() as f64 * (1.0 - quantile);
        let all_failed = failed.iter().sum::<u64>() as f64;
        if all_failed > tail {
            // The quantile is among the failures: they form one bucket, split proportionally.
            let share = tail / all_failed;
            return std::array::from_fn(|index| Batch {
                requests: requests[index] as f64,
                beyond: failed[index] as f64 * share,
            });
        }

        let (bucket, share) = self.bucket_at_tail(tail - all_failed);
        std::array::from_fn(|index| {
            let buckets = self.buckets(index);
            let above: u64 = buckets[bucket + 1..].iter().copied().map(u64::from).sum();
            let beyond = (above + failed[index]) as f64 + f64::from(buckets[bucket]) * share;
            Batch {
                requests: requests[index] as f64,
                beyond,
            }
        })
    }

    /// The lowest bucket of the tail, which contains this number of the largest responses, and the
    /// share of this bucket that belongs to the tail.
    fn bucket_at_tail(&self, tail: f64) -> (usize, f64) {
        let mut totals = vec![0_u64; BUCKETS];
        for index in 0..BATCHES {
            totals
                .iter_mut()
                .zip(self.buckets(index))
                .for_each(|(all, count)| *all += u64::from(*count));
        }

        let mut above = 0.0;
        for bucket in (0..BUCKETS).rev() {
            let inside = totals[bucket] as f64;
            if inside > 0.0 && above + inside >= tail {
                return (bucket, (tail - above) / inside);
            }
            above += inside;
        }

        (0, 1.0)
    }

    /// A quantile over all requests, interpolated linearly within its bucket; `None` if it is among
    /// the failures.
    pub(crate) fn offered_quantile_ns(&self, quantile: f64) -> Option<f64> {
        let failed = self.failed.iter().sum::<u64>();
        let requests = failed + self.counts.iter().copied().map(u64::from).sum::<u64>();
        let tail = requests as f64 * (1.0 - quantile) - failed as f64;
        if requests == failed || tail < 0.0 {
            return None;
        }

        let (bucket, share) = self.bucket_at_tail(tail);
        let (from_ns, width_ns) = bounds_of(bucket);

        Some(from_ns as f64 + width_ns as f64 * (1.0 - share))
    }

    /// The longest series of batches in which requests waited and none ended.
    pub(crate) fn silence(&self) -> Silence {
        let (mut present, mut begin, mut longest) = (self.carried_in, 0, Silence::default());
        for (index, flow) in self.flows.iter().enumerate() {
            present = (present + flow.arrived).saturating_sub(flow.departed);
            if flow.departed > 0 || present == 0 {
                begin = index + 1;
            }
            let length_ns: u64 = (begin..=index).map(|at| self.batch_ns(at)).sum();
            if length_ns > longest.length_ns {
                longest = Silence {
                    length_ns,
                    waiting: present,
                    usual_ns: self.p99_ns_outside(begin.saturating_sub(1)..=index),
                };
            }
        }
        longest
    }

    /// p99 of the correct responses to requests that arrived outside these batches.
    fn p99_ns_outside(&self, excluded: RangeInclusive<usize>) -> u64 {
        let mut buckets = [0; BUCKETS];
        for index in (0..BATCHES).filter(|index| !excluded.contains(index)) {
            for (all, one) in buckets.iter_mut().zip(self.buckets(index)) {
                *all += u64::from(*one);
            }
        }
        let tail = buckets.iter().sum::<u64>() / 100;
        let mut above = 0;
        let bucket = (0..BUCKETS).rev().find(|&bucket| {
            above += buckets[bucket];
            above > tail
        });
        bucket.map_or(0, |bucket| bounds_of(bucket).0)
    }

    /// Length of the measurement.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Correct responses of the measurement.
    pub(crate) fn responses(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }

    /// The median response time of each of `count` equal slices, interpolated linearly within its
    /// bucket; `None` if a slice has no correct response. `count` divides the number of batches.
    pub(crate) fn medians_ns(&self, count: usize) -> Option<Vec<f64>> {
        let in_slice = BATCHES / count;
        (0..count)
            .map(|slice| {
                let mut buckets = vec![0_u64; BUCKETS];
                for index in slice * in_slice..(slice + 1) * in_slice {
                    let of_batch = self.buckets(index).iter().copied().map(u64::from);
                    buckets
                        .iter_mut()
                        .zip(of_batch)
                        .for_each(|(all, one)| *all += one);
                }
                median_of(&buckets)
            })
            .collect()
    }

    fn buckets(&self, index: usize) -> &[u32] {
        &self.counts[index * BUCKETS..(index + 1) * BUCKETS]
    }

    /// Time in the system per batch, in nanoseconds, from arrivals and departures: requests of the
    /// measure phase and those carried in from before it.
    fn time_in_system_ns(&self) -> [f64; BATCHES] {
        let mut present = i128::from(self.carried_in);
        std::array::from_fn(|index| {
            let flow = &self.flows[index];
            let length_ns = i128::from(self.batch_ns(index));
            let (arrived, departed) = (i128::from(flow.arrived), i128::from(flow.departed));
            let arrived_ns = arrived * length_ns - flow.arrival_offsets_ns as i128;
            let departed_ns = departed * length_ns - flow.departure_offsets_ns as i128;
            let time_ns = present * length_ns + arrived_ns - departed_ns;
            present += arrived - departed;
            time_ns as f64
        })
    }

    /// The last batch is shorter if the phase cannot be divided evenly.
    fn batch_ns(&self, index: usize) -> u64 {
        let begin_ns = self.from_ns + self.length_ns * index as u64;
        self.length_ns.min(self.to_ns.saturating_sub(begin_ns))
    }

    /// Mean number of requests in the system per batch; 0 for a batch without length.
    #[must_use]
    pub fn in_system(&self) -> [f64; BATCHES] {
        let times_ns = self.time_in_system_ns();
        std::array::from_fn(|index| times_ns[index] / self.batch_ns(index).max(1) as f64)
    }

    /// Mean number of requests in the system over the measurement.
    #[must_use]
    pub fn mean_in_system(&self) -> f64 {
        self.time_in_system_ns().iter().sum::<f64>() / (self.to_ns - self.from_ns).max(1) as f64
    }

    /// The same from each request's time in the system, given the sum of the response times of the
    /// correct responses: Little's law, minus the time after the measurement, plus the time of
    /// requests that arrived before it.
    #[must_use]
    pub fn mean_in_system_by_stays(&self, response_times_ns: u128) -> f64 {
        let stays_ns = response_times_ns + self.stays.failed_ns + self.stays.carried_in_ns;
        stays_ns.saturating_sub(self.stays.after_end_ns) as f64
            / (self.to_ns - self.from_ns).max(1) as f64
    }
}

/// The median of values, given their number in each bucket.
fn median_of(buckets: &[u64]) -> Option<f64> {
    let half = buckets.iter().sum::<u64>() as f64 / 2.0;
    let mut below = 0.0;
    for (bucket, &inside) in buckets
        .iter()
        .enumerate()
        .filter(|(_, inside)| **inside > 0)
    {
        let inside = inside as f64;
        if below + inside >= half {
            let (from_ns, width_ns) = bounds_of(bucket);
            return Some(from_ns as f64 + width_ns as f64 * (half - below) / inside);
        }
        below += inside;
    }
    None
}

/// Below 64 each value has its own bucket; above, there are 32 per power of two.
pub(super) fn bucket_of(value_ns: u64) -> usize {
    let value_ns = value_ns.min(MAX_NS);
    let shift = 58 - (value_ns | 32).leading_zeros();
    (shift * 32) as usize + (value_ns >> shift) as usize
}

/// The smallest value of a bucket, and its width.
pub(super) fn bounds_of(bucket: usize) -> (u64, u64) {
    let shift = (bucket / 32).saturating_sub(1);
    (((bucket - 32 * shift) as u64) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        assert_eq!(
            [0, 1, 63, 64, 65, 66].map(bucket_of),
            [0, 1, 63, 64, 64, 65]
        );
        assert_eq!(
            (bucket_of(MAX_NS), bucket_of(u64::MAX)),
            (BUCKETS - 1, BUCKETS - 1)
        );

        for value_ns in (100..10_000_000).step_by(997) {
            assert!(bucket_of(value_ns) <= bucket_of(value_ns + 1));
            assert!(
                bucket_of(value_ns + value_ns / 30) > bucket_of(value_ns),
                "{value_ns}"
            );
        }
    }

    #[test]
    fn a_bucket_contains_exactly_the_values_within_its_bounds() {
        for value_ns in (0..200).chain((200..90_000_000).step_by(100_003)) {
            let (from_ns, width_ns) = bounds_of(bucket_of(value_ns));
            assert!(
                (from_ns..from_ns + width_ns).contains(&value_ns),
                "{value_ns}"
            );
            assert_eq!(
                bucket_of(from_ns + width_ns),
                bucket_of(value_ns) + 1,
                "{value_ns}"
            );
        }
    }

    #[test]
    fn a_bucket_quantile_is_close_to_the_exact_one_and_failures_rank_last() {
        let mut batches = Batches::new(0, 100_000);
        (0..90_000).for_each(|at_ns| batches.record(at_ns, at_ns, Some(at_ns % 1_000 * 1_000)));
        (90_000..100_000).for_each(|at_ns| batches.record(at_ns, at_ns, None));

        for (quantile, expected_ns) in [(0.45, 500_000.0), (0.81, 900_000.0)] {
            let actual_ns = batches.offered_quantile_ns(quantile).expect("met");
            assert!(
                (actual_ns / expected_ns - 1.0).abs() < 0.01,
                "{quantile}: {actual_ns}"
            );
        }

        assert_eq!(batches.offered_quantile_ns(0.91), None);
        assert_eq!(Batches::new(0, 100).offered_quantile_ns(0.5), None);
    }

    /// The same requests, some of them before and after the measurement, in batches that were
    /// doubled whenever the measurement was extended, and in batches of the final length.
    fn twice(first_to_ns: u64, to_ns: u64) -> (Batches, Batches) {
        let (mut doubled, mut whole) =
            (Batches::new(1_200, first_to_ns), Batches::new(1_200, to_ns));
        let mut ends: Vec<(u64, u64, bool)> = (0..60_000_u64)
            .map(|index| {
                (
                    index,
                    index + index * index % 3_001,
                    !index.is_multiple_of(7),
                )
            })
            .collect();
        ends.sort_unstable_by_key(|(_, ended_ns, _)| *ended_ns);

        for (intended_ns, ended_ns, is_correct) in ends {
            while ended_ns >= doubled.to_ns && doubled.to_ns < to_ns {
                let twice_ns = 2 * doubled.to_ns - 1_200;
                doubled.double(twice_ns);
            }
            for batches in [&mut doubled, &mut whole] {
                batches.record(
                    intended_ns,
                    ended_ns,
                    is_correct.then_some(ended_ns - intended_ns),
                );
            }
        }

        (doubled, whole)
    }

    #[test]
    fn doubled_batches_equal_batches_that_were_long_from_the_start() {
        let (doubled, whole) = twice(13_200, 49_200);
        assert_eq!(
            (doubled.to_ns, doubled.length_ns),
            (whole.to_ns, whole.length_ns)
        );
        assert_eq!(
            (&doubled.counts, &doubled.failed),
            (&whole.counts, &whole.failed)
        );
        assert_eq!(doubled.in_system(), whole.in_system());
        assert_eq!(
            doubled.mean_in_system_by_stays(7_777),
            whole.mean_in_system_by_stays(7_777)
        );
        assert_eq!(doubled.beyond_of_offered(0.9), whole.beyond_of_offered(0.9));
    }

    #[test]
    fn no_request_is_lost_if_the_length_is_no_multiple_of_the_batches() {
        let (doubled, whole) = twice(1_200 + 12_007, 1_200 + 4 * 12_007);
        let all = |batches: &Batches| {
            batches
                .beyond(0.5)
                .iter()
                .map(|batch| batch.requests)
                .sum::<f64>()
        };

        assert_eq!(all(&doubled), all(&whole));
        assert!((doubled.mean_in_system() / whole.mean_in_system() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_share_beyond_a_quantile_is_exact_despite_buckets() {
        let mut batches = Batches::new(0, 120_000);
        (0..120_000).for_each(|at_ns| batches.record(at_ns, at_ns + 500, Some(at_ns % 1_000)));

        for quantile in [0.5, 0.99, 0.999] {
            let beyond = batches.beyond(quantile);
            assert!(beyond.iter().all(|batch| batch.requests == 1_000.0));
            let all: f64 = beyond.iter().map(|batch| batch.beyond).sum();
            assert!((all - 120_000.0 * (1.0 - quantile)).abs() < 1e-6, "{all}");
        }
    }

    #[test]
    fn failures_rank_above_every_response() {
        let mut batches = Batches::new(0, 1_200);
        // One batch fails completely, and each other one has a single slow response.
        for at_ns in 0..1_200 {
            let response_ns = if at_ns % 10 == 0 { 1_000_000 } else { 10 };
            batches.record(at_ns, at_ns, (at_ns >= 10).then_some(response_ns));
        }

        let beyond = batches.beyond_of_offered(0.9);
        assert_eq!(beyond[0].beyond, 10.0);
        assert!(
            (beyond[1].beyond - 110.0 / 119.0).abs() < 1e-9,
            "{:?}",
            beyond[1]
        );

        // There are more failures than one in a thousand, so the quantile is among them.
        let beyond = batches.beyond_of_offered(0.999);
        assert!((beyond[0].beyond - 1.2).abs() < 1e-9 && beyond[1].beyond == 0.0);
        assert_eq!(batches.beyond(0.9)[0], Batch::default());
    }

    #[test]
    fn time_in_the_system_is_the_same_by_flows_and_by_stays() {
        let (from_ns, to_ns) = (1_000, 13_007);
        let mut batches = Batches::new(from_ns, to_ns);
        let mut other = Batches::new(from_ns, to_ns);
        let mut correct_ns = 0;

        for at_ns in (0..15_000_u64).step_by(7) {
            let stay_ns = at_ns * at_ns % 3_001;
            let is_correct = !at_ns.is_multiple_of(5);
            let half = if at_ns % 2 == 0 {
                &mut batches
            } else {
                &mut other
            };
            half.record(at_ns, at_ns + stay_ns, is_correct.then_some(stay_ns));
            if is_correct && (from_ns..to_ns).contains(&at_ns) {
                correct_ns += u128::from(stay_ns);
            }
        }

        batches.add(&other);
        let (by_flows, by_stays) = (
            batches.mean_in_system(),
            batches.mean_in_system_by_stays(correct_ns),
        );

        assert!((by_flows - by_stays).abs() < 1e-9, "{by_flows} {by_stays}");
        // One every seven nanoseconds, each for about 1,500.
        assert!((190.0..240.0).contains(&by_flows), "{by_flows}");
        assert!(
            batches.mean_in_system_by_stays(correct_ns / 2) < by_flows * 0.7,
            "missing time is noticed"
        );
    }

    #[test]
    fn a_silence_is_a_time_in_which_requests_wait_and_none_ends() {
        let mut batches = Batches::new(0, 120_000);
        for at_ns in (0..120_000_u64).step_by(100) {
            // Nothing ends between 40,000 and 70,000.
            let ended_ns = if (40_000..70_000).contains(&at_ns) {
                70_000
            } else {
                at_ns + 50
            };
            batches.record(at_ns, ended_ns, Some(ended_ns - at_ns));
        }

        let silence = batches.silence();
        assert_eq!((silence.length_ns, silence.waiting), (30_000, 300));
        assert!((48..=50).contains(&silence.usual_ns), "{silence:?}");

        // Nobody waits between two requests.
        let mut idle = Batches::new(0, 120_000);
        for at_ns in [0, 119_000] {
            idle.record(at_ns, at_ns + 500, Some(500));
        }
        assert_eq!(idle.silence().length_ns, 0);
    }
}
