//! When individual requests were in the system: the slowest requests, and an equally large random
//! sample.
//!
//! Histograms show how slow, not when. Only a request's own timestamps show whether it was in
//! the system while the server stalled; a bounded number is kept, however long the load is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::random::scatter;
use crate::record::exchange::{Completion, Outcome, Parts};

/// Scheduled send, and end.
type Flight = (u64, u64);

/// Wait for a connection, connecting, time to first byte and transfer, in nanoseconds. The rest of
/// the response time is the send lag.
type FlightParts = (u64, u64, u64, u64);

/// Larger than any rank key of a success: failures sort first, whenever they ended.
const FAILED: u64 = 1 << 63;

/// Requests of the measure phase, of one thread or of all threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flights {
    slowest: Largest<Option<FlightParts>>,
    sample: Largest<()>,
}

/// When selected requests were in the system. In a sweep, `slowest` and `sample` contain at most
/// 2,000 requests each.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FlightReport {
    /// The slowest requests of the measurement, slowest first, each as `[scheduled send time,
    /// end]`. A failure counts as slower than any response.
    pub slowest: Vec<Flight>,
    /// For each request in `slowest`: pool wait, connect time, time to first byte, and transfer.
    /// The rest of the response time is the send lag. Empty in reports of older versions. `None`:
    /// an entry: the request failed.
    pub slowest_parts: Vec<Option<FlightParts>>,
    /// A random sample of the requests, in the order of their scheduled send times, each as
    /// `[scheduled send time, end]`.
    pub sample: Vec<Flight>,
}

/// The entries with the largest keys, each with further details.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Largest<Details: Ord> {
    capacity: usize,
    entries: BinaryHeap<Reverse<(u64, Flight, Details)>>,
}

impl Flights {
    /// Keeps up to `capacity` requests of each kind; `None` if that is 0.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        (capacity > 0).then(|| Self {
            slowest: Largest::new(capacity),
            sample: Largest::new(capacity),
        })
    }

    /// Considers a request of the measure phase, with the parts of a correct response.
    pub(crate) fn record(&mut self, completion: &Completion, parts: Option<&Parts>) {
        let (intended_ns, ended_ns) = (completion.arrival.intended_ns, completion.ended_ns);
        let elapsed_ns = ended_ns.saturating_sub(intended_ns);
        let place = if completion.outcome == Outcome::Ok {
            elapsed_ns
        } else {
            FAILED | elapsed_ns
        };
        let flight = (intended_ns, ended_ns.max(intended_ns));
        self.slowest.offer(place, flight, parts.map(flight_parts));
        // Those with the largest hashed timestamp form a random sample, also after threads are
        // merged.
        self.sample.offer(scatter(0, intended_ns), flight, ());
    }

    /// Adds another thread's requests.
    pub(crate) fn add(&mut self, other: &Self) {
        self.slowest.add(&other.slowest);
        self.sample.add(&other.sample);
    }

    /// The report.
    pub(crate) fn report(&self) -> FlightReport {
        let slowest = self.slowest.entries.clone().into_sorted_vec();
        let mut sample: Vec<Flight> = self
            .sample
            .entries
            .iter()
            .map(|Reverse((_, flight, ()))| *flight)
            .collect();
        sample.sort_unstable();

        let (slowest, slowest_parts) = slowest
            .into_iter()
            .map(|Reverse((_, flight, parts))| (flight, parts))
            .unzip();

        FlightReport {
            slowest,
            slowest_parts,
            sample,
        }
    }
}

fn flight_parts(parts: &Parts) -> FlightParts {
    (
        parts.pool_wait_ns,
        parts.connect_ns.unwrap_or(0),
        parts.first_byte_ns,
        parts.service_ns - parts.first_byte_ns,
    )
}

impl<Details: Copy + Ord> Largest<Details> {
    fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: BinaryHeap::with_capacity(capacity),
        }
    }

    fn offer(&mut self, key: u64, flight: Flight, details: Details) {
        if self.entries.len() < self.capacity {
            self.entries.push(Reverse((key, flight, details)));
        } else if let Some(mut least) = self.entries.peek_mut()
            && key > least.0.0
        {
            *least = Reverse((key, flight, details));
        }
    }

    fn add(&mut self, other: &Self) {
        for Reverse((key, flight, details)) in &other.entries {
            self.offer(*key, *flight, *details);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::exchange::{Arrival, Stamps};

    fn ended(intended_ns: u64, elapsed_ns: u64, outcome: Outcome) -> Completion {
        let arrival = Arrival::unqueued(intended_ns, 0);
        Completion {
            arrival,
            stamps: Stamps::default(),
            outcome,
            status: None,
            ended_ns: intended_ns + elapsed_ns,
        }
    }

    #[test]
    fn the_slowest_are_kept_and_failures_rank_above_any_response() {
        let mut flights = Flights::new(3).expect("some are kept");
        for step in 0..100 {
            flights.record(
                &ended(step * 1_000, 500 + step * 37 % 100, Outcome::Ok),
                None,
            );
        }

        flights.record(&ended(7, 1, Outcome::Refused), None);
        let slowest: Vec<u64> = flights
            .report()
            .slowest
            .iter()
            .map(|(from, to)| to - from)
            .collect();

        assert_eq!(slowest, [1, 599, 598]);
    }

    #[test]
    fn the_sample_is_uniform_and_does_not_depend_on_the_threads() {
        let mut whole = Flights::new(200).expect("some are kept");
        let mut parts = [whole.clone(), whole.clone()];

        for step in 0..20_000_u64 {
            // Every tenth request is slow, which must not make it more likely to be drawn.
            let completion = ended(
                step * 10_000,
                if step % 10 == 0 { 900 } else { 100 },
                Outcome::Ok,
            );
            whole.record(&completion, None);
            parts[(step % 2) as usize].record(&completion, None);
        }

        let sample = whole.report().sample;
        let slow = sample.iter().filter(|(from, to)| to - from == 900).count();
        let early = sample
            .iter()
            .filter(|(from, _)| *from < 100_000_000)
            .count();

        assert_eq!(sample.len(), 200);
        // Five standard deviations of a binomial.
        assert!((1..=41).contains(&slow), "{slow} of 200 are slow");
        assert!(
            (65..=135).contains(&early),
            "{early} of 200 are of the first half"
        );

        let [mut one, other] = parts;
        one.add(&other);

        assert_eq!(one.report().sample, sample);
    }

    #[test]
    fn each_of_the_slowest_keeps_its_parts_and_a_failure_has_none() {
        let parts = |response_ns: u64| Parts {
            response_ns,
            pool_wait_ns: 10,
            send_lag_ns: response_ns - 10 - 20 - 30 - 5,
            connect_ns: Some(20),
            first_byte_ns: 30,
            service_ns: 35,
        };
        let mut flights = Flights::new(2).expect("some are kept");
        let mut other = flights.clone();
        flights.record(&ended(0, 100, Outcome::Ok), Some(&parts(100)));
        flights.record(&ended(1, 1, Outcome::Timeout), None);
        other.record(&ended(2, 400, Outcome::Ok), Some(&parts(400)));
        flights.add(&other);

        let report = flights.report();

        assert_eq!(report.slowest, [(1, 2), (2, 402)]);
        assert_eq!(report.slowest_parts, [None, Some((10, 20, 30, 5))]);
    }

    #[test]
    fn nothing_is_kept_unless_requested() {
        assert!(Flights::new(0).is_none());
    }
}
