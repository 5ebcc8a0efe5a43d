//! What is noted of every request for the checks of the load itself, beside the figures of the report.

use crate::batches::Batches;
use crate::clock::NS_PER_MS;
use crate::exchange::Completion;
use crate::plan::LoadPlan;
use crate::send_sample::SendSample;

/// A send that is later than this after the end of the measurement was missing in it.
const LATE_NS: u64 = NS_PER_MS;

/// Notes of one thread, and after merging of the load.
#[derive(Clone, Debug)]
pub(crate) struct Observations {
    measure_to_ns: u64,
    /// The measure phase in stretches.
    pub batches: Batches,
    /// Instants of consecutive sends.
    pub sends: SendSample,
    /// Requests that could have gone out inside the measurement and went out after it, by our own lateness.
    pub late_sends: u64,
}

impl Observations {
    pub fn new(plan: &LoadPlan, start_ns: u64) -> Self {
        let (from, to) = plan.measure_window();
        Self {
            measure_to_ns: start_ns + to,
            batches: Batches::new(start_ns + from, start_ns + to),
            sends: SendSample::new(plan, start_ns),
            late_sends: 0,
        }
    }

    /// Notes a request that has ended, of any phase; `response_ns` where it was answered rightly.
    pub fn ended(&mut self, completion: &Completion, response_ns: Option<u64>) {
        self.batches.record(completion.arrival.intended_ns, completion.ended_ns, response_ns);
        self.sends.note(completion.stamps.write_start_ns);
        if completion.stamps.write_start_ns >= self.measure_to_ns {
            self.late_sends += u64::from(self.is_late(completion));
        }
    }

    /// The measurement goes on until `to_ns`, twice as far as before.
    pub fn double(&mut self, to_ns: u64) {
        self.measure_to_ns = to_ns;
        self.batches.double(to_ns);
    }

    fn is_late(&self, completion: &Completion) -> bool {
        let Some((slot_lag_ns, lag_ns)) = completion.slot_lag_ns().zip(completion.send_lag_ns()) else {
            return false;
        };
        let sent_ns = completion.arrival.eligible_ns + slot_lag_ns;
        lag_ns > LATE_NS && sent_ns >= self.measure_to_ns && sent_ns - lag_ns < self.measure_to_ns
    }

    pub fn add(&mut self, other: &Self) {
        self.batches.add(&other.batches);
        self.sends.add(&other.sends);
        self.late_sends += other.late_sends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::NS_PER_S;
    use crate::exchange::{Arrival, Outcome, Stamps};

    fn sent(intended_ns: u64, eligible_ns: u64, write_start_ns: u64) -> Completion {
        let stamps = Stamps { write_start_ns, ..Stamps::default() };
        let arrival = Arrival::queued(intended_ns, intended_ns, eligible_ns, 0);
        Completion { arrival, stamps, outcome: Outcome::Ok, status: Some(200), ended_ns: write_start_ns + 1 }
    }

    #[test]
    fn a_send_after_the_end_is_late_only_by_our_own_lateness() {
        let mut observations = Observations::new(&LoadPlan::open("http://h/", 100.0, NS_PER_S), 0);
        let end_ns = NS_PER_S;
        let cases = [
            (sent(end_ns - 10, end_ns - 10, end_ns - 5), 0, "in time"),
            (sent(end_ns - 10, end_ns - 10, end_ns + 10), 0, "hardly late"),
            (sent(end_ns - 10, end_ns + 9 * LATE_NS, end_ns + 9 * LATE_NS), 0, "waited for a connection"),
            (sent(end_ns - 10, end_ns - 10, end_ns + 2 * LATE_NS), 1, "late"),
            (sent(end_ns + 1, end_ns + 1, end_ns + 3 * LATE_NS), 1, "of the cool-down"),
        ];
        for (completion, expected, case) in cases {
            observations.ended(&completion, Some(1));
            assert_eq!(observations.late_sends, expected, "{case}");
        }
    }
}
