//! What is recorded for every request for the load's self-checks, in addition to the reported
//! figures.

use serde::{Deserialize, Serialize};

use crate::base::clock::NS_PER_MS;
use crate::plan::LoadPlan;
use crate::record::batches::Batches;
use crate::record::exchange::{Completion, Outcome};
use crate::record::send_sample::SendSample;

/// A request with a larger send lag that was sent after the measurement because of it, or was
/// dropped because of it, is missing from the measurement.
const LATE_NS: u64 = NS_PER_MS;

/// Observations of one thread, or of the load after merging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Observations {
    measure_from_ns: u64,
    measure_to_ns: u64,
    deadline_ns: Option<u64>,
    /// The measure phase in batches.
    pub batches: Batches,
    /// Timestamps of consecutive sends.
    pub sends: SendSample,
    /// Requests that could have been sent within the measurement but were sent after it because the
    /// generator was late.
    pub late_sends: u64,
    /// Requests of the measurement that were dropped at their deadline and would have been sent if
    /// the generator had not been late.
    pub late_drops: u64,
}

impl Observations {
    pub fn new(plan: &LoadPlan, start_ns: u64) -> Self {
        let (from, to) = plan.measure_window();
        Self {
            measure_from_ns: start_ns + from,
            measure_to_ns: start_ns + to,
            deadline_ns: plan.deadline_ns,
            batches: Batches::new(start_ns + from, start_ns + to),
            sends: SendSample::new(plan, start_ns),
            late_sends: 0,
            late_drops: 0,
        }
    }

    /// Records a completed request of any phase; `response_ns` if the response was correct.
    pub fn ended(&mut self, completion: &Completion, response_ns: Option<u64>) {
        self.batches.record(
            completion.arrival.intended_ns,
            completion.ended_ns,
            response_ns,
        );
        self.sends.note(completion.stamps.write_start_ns);
        if completion.stamps.write_start_ns >= self.measure_to_ns {
            self.late_sends += u64::from(self.is_late(completion));
        }

        if completion.outcome == Outcome::Dropped {
            self.late_drops += u64::from(self.is_dropped_by_generator(completion));
        }
    }

    /// Extends the measurement to `to_ns`, twice its length.
    pub fn double(&mut self, to_ns: u64) {
        self.measure_to_ns = to_ns;
        self.batches.double(to_ns);
    }

    fn is_late(&self, completion: &Completion) -> bool {
        let Some((slot_lag_ns, lag_ns)) = completion.slot_lag_ns().zip(completion.send_lag_ns())
        else {
            return false;
        };
        let sent_ns = completion.arrival.eligible_ns + slot_lag_ns;
        lag_ns > LATE_NS && sent_ns >= self.measure_to_ns && sent_ns - lag_ns < self.measure_to_ns
    }

    fn is_dropped_by_generator(&self, completion: &Completion) -> bool {
        let Some((deadline_ns, lag_ns)) = self.deadline_ns.zip(completion.send_lag_ns()) else {
            return false;
        };

        let is_measured =
            (self.measure_from_ns..self.measure_to_ns).contains(&completion.arrival.intended_ns);
        let elapsed_ns = completion.elapsed_ns();
        // Arrivals rejected by a full queue missed no deadline.
        let is_missed =
            elapsed_ns >= deadline_ns && elapsed_ns.saturating_sub(lag_ns) < deadline_ns;

        is_measured && is_missed && lag_ns > LATE_NS
    }

    pub fn add(&mut self, other: &Self) {
        self.batches.add(&other.batches);
        self.sends.add(&other.sends);
        self.late_sends += other.late_sends;
        self.late_drops += other.late_drops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::record::exchange::{Arrival, Stamps};

    fn sent(intended_ns: u64, eligible_ns: u64, write_start_ns: u64) -> Completion {
        let stamps = Stamps {
            write_start_ns,
            ..Stamps::default()
        };
        let arrival = Arrival::queued(intended_ns, intended_ns, eligible_ns, 0);
        Completion {
            arrival,
            stamps,
            outcome: Outcome::Ok,
            status: Some(200),
            ended_ns: write_start_ns + 1,
        }
    }

    #[test]
    fn a_send_after_the_end_is_late_only_if_the_generator_was_late() {
        let mut observations = Observations::new(&LoadPlan::open("http://h/", 100.0, NS_PER_S), 0);
        let end_ns = NS_PER_S;
        let cases = [
            (sent(end_ns - 10, end_ns - 10, end_ns - 5), 0, "in time"),
            (
                sent(end_ns - 10, end_ns - 10, end_ns + 10),
                0,
                "hardly late",
            ),
            (
                sent(end_ns - 10, end_ns + 9 * LATE_NS, end_ns + 9 * LATE_NS),
                0,
                "waited for a connection",
            ),
            (
                sent(end_ns - 10, end_ns - 10, end_ns + 2 * LATE_NS),
                1,
                "late",
            ),
            (
                sent(end_ns + 1, end_ns + 1, end_ns + 3 * LATE_NS),
                1,
                "of the cool-down",
            ),
        ];

        for (completion, expected, case) in cases {
            observations.ended(&completion, Some(1));
            assert_eq!(observations.late_sends, expected, "{case}");
        }
    }

    #[test]
    fn a_drop_is_late_only_if_the_request_would_have_met_its_deadline_without_send_lag() {
        let plan = LoadPlan {
            deadline_ns: Some(100 * NS_PER_MS),
            ..LoadPlan::open("http://h/", 100.0, NS_PER_S)
        };
        let mut observations = Observations::new(&plan, 0);
        let dropped =
            |intended_ms: u64, waits_from_ms: u64, eligible_ms: u64, ended_ms: u64| Completion {
                arrival: Arrival::queued(
                    intended_ms * NS_PER_MS,
                    waits_from_ms * NS_PER_MS,
                    eligible_ms * NS_PER_MS,
                    0,
                ),
                stamps: Stamps::default(),
                outcome: Outcome::Dropped,
                status: None,
                ended_ns: ended_ms * NS_PER_MS,
            };
        let connecting = Completion {
            stamps: Stamps {
                connect_start_ns: 5,
                ..Stamps::default()
            },
            ..dropped(0, 0, 0, 150)
        };
        let cases = [
            (
                dropped(0, 0, 150, 150),
                0,
                "waited for a connection until then",
            ),
            (dropped(0, 0, 100, 150), 0, "was too late when it got one"),
            (connecting, 0, "connecting took so long"),
            (
                dropped(0, 0, 99, 150),
                1,
                "a slot was free in time, but it was handled too late",
            ),
            (
                dropped(0, 60, 150, 150),
                2,
                "waited for the generator, then for a connection",
            ),
            (dropped(0, 0, 99, 100), 2, "was hardly late"),
            (dropped(0, 0, 0, 50), 2, "found the queue full"),
            (dropped(1_000, 1_000, 1_000, 1_150), 2, "was not measured"),
        ];

        for (completion, expected, case) in cases {
            observations.ended(&completion, None);
            assert_eq!(observations.late_drops, expected, "{case}");
        }
    }
}
