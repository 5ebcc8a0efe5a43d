//! Open loop: arrivals follow a schedule, regardless of the server.

use std::sync::Arc;

use crate::arrivals::draw::Draw;
use crate::arrivals::filled_requests::FilledRequests;
use crate::arrivals::schedule::Share;
use crate::arrivals::source::{Due, Next, Source};
use crate::http::request::Request;
use crate::plan::Order;
use crate::record::exchange::{Arrival, Completion};
use crate::record::possible_ends::Ends;

/// Which of several requests an arrival sends.
pub(crate) enum Choice {
    Drawn(Draw),
    Recorded(Order),
}

impl Choice {
    /// The request of the arrival with this index in the whole schedule.
    fn pick(&self, place: u64) -> u32 {
        match self {
            Self::Drawn(draw) => draw.pick(place),
            Self::Recorded(order) => order.at(place),
        }
    }
}

/// The share of a schedule that one thread sends.
pub(crate) struct OpenSource<'a> {
    offsets_ns: Share,
    choice: Choice,
    start_ns: u64,
    next_ns: Option<u64>,
    /// Set if the load may end before its schedule.
    ends: Option<Arc<Ends>>,
    /// Requests with placeholders, filled in per slot.
    filled_requests: Option<FilledRequests<'a>>,
}

impl<'a> OpenSource<'a> {
    pub fn new(
        mut offsets_ns: Share,
        choice: Choice,
        start_ns: u64,
        ends: Option<Arc<Ends>>,
    ) -> Self {
        let next_ns = offsets_ns.next().map(|offset_ns| start_ns + offset_ns);
        Self {
            offsets_ns,
            choice,
            start_ns,
            next_ns,
            ends,
            filled_requests: None,
        }
    }

    /// Adds requests with placeholders.
    pub fn with_filled_requests(self, filled_requests: Option<FilledRequests<'a>>) -> Self {
        Self {
            filled_requests,
            ..self
        }
    }
}

impl Source for OpenSource<'_> {
    fn next_due_ns(&self) -> Option<u64> {
        let is_sent = |due_ns: &u64| {
            self.ends
                .as_ref()
                .is_none_or(|ends| *due_ns < ends.load_end_ns())
        };
        self.next_ns.filter(is_sent)
    }

    fn take_due(&mut self) -> Option<Due> {
        let intended_ns = self.next_ns?;
        let place = self.offsets_ns.place();
        let request = self.choice.pick(place);
        self.next_ns = self
            .offsets_ns
            .next()
            .map(|offset_ns| self.start_ns + offset_ns);

        Some(Due {
            intended_ns,
            request,
            place,
            slot: None,
        })
    }

    fn after(&mut self, _slot: usize, _ended: &Completion) -> Next {
        Next::Free
    }

    fn is_exhausted(&self, _now_ns: u64) -> bool {
        self.next_due_ns().is_none()
    }

    fn prepare(&mut self, slot: usize, arrival: &Arrival) {
        if let Some(filled_requests) = &mut self.filled_requests {
            filled_requests.fill(slot, arrival);
        }
    }

    fn slot_request(&self, slot: usize) -> Option<&Request> {
        self.filled_requests.as_ref()?.get(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{NS_PER_MS, NS_PER_S};
    use crate::plan::{LoadModel, LoadPlan, LoadProfile, Replay, Trace};

    #[test]
    fn recorded_requests_are_replayed_in_order_for_any_number_of_threads() {
        let offsets_ns: Vec<u64> = (0..1_000).map(|place| place * NS_PER_MS / 2).collect();
        let recorded: Vec<u32> = (0..1_000).map(|place| place * place % 7).collect();
        let mut plan = LoadPlan::open("http://h/", 1.0, NS_PER_S);
        let LoadModel::Open(open) = &mut plan.load else {
            unreachable!("an open loop");
        };
        open.profile = LoadProfile::Replay(Replay {
            offsets_ns: Trace::new(offsets_ns.clone()).expect("sorted"),
            speed: 1.0,
            requests: None,
        });

        for threads in [1, 3] {
            let mut sent: Vec<(u64, u32)> = Vec::new();
            for thread in 0..threads {
                let share = Share::new(open, 1, &plan.phases, thread, threads);
                let choice = Choice::Recorded(Order::new(recorded.clone()));
                let mut source = OpenSource::new(share, choice, 0, None);
                while let Some(due) = source.take_due() {
                    sent.push((due.intended_ns, due.request));
                }
            }
            sent.sort_by_key(|(intended_ns, _)| *intended_ns);
            let expected: Vec<_> = offsets_ns.iter().copied().zip(recorded.clone()).collect();
            assert_eq!(sent, expected, "{threads} threads");
        }
    }
}
