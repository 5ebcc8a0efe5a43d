//! Requests with placeholders, filled in for the slots that send them.

use crate::http::request::Request;
use crate::http::template::Scratch;
use crate::http::values::Inputs;
use crate::record::exchange::Arrival;

/// The requests of one thread's slots.
pub(crate) struct FilledRequests<'a> {
    requests: &'a [Request],
    may_be_last: bool,
    by_slot: Vec<Option<Request>>,
    scratch: Scratch,
}

impl<'a> FilledRequests<'a> {
    /// `None` if no request has placeholders. `may_be_last`: whether connections may be closed
    /// after a request.
    pub fn of(requests: &'a [Request], may_be_last: bool) -> Option<Self> {
        requests
            .iter()
            .any(Request::has_placeholders)
            .then(|| Self {
                requests,
                may_be_last,
                by_slot: Vec::new(),
                scratch: Scratch::default(),
            })
    }

    /// Fills in the next request of this slot.
    pub fn fill(&mut self, slot: usize, arrival: &Arrival) {
        let shared = &self.requests[arrival.request as usize];
        if slot >= self.by_slot.len() {
            self.by_slot.resize(slot + 1, None);
        }

        let inputs = Inputs {
            place: arrival.place,
            captured: &[],
        };
        let filled = self.by_slot[slot].get_or_insert_with(|| shared.clone());
        filled.fill(shared, &inputs, &mut self.scratch, self.may_be_last);
    }

    /// The filled-in request of this slot; `None` if its request has no placeholders.
    pub fn get(&self, slot: usize) -> Option<&Request> {
        let filled = self.by_slot.get(slot)?.as_ref()?;
        filled.has_placeholders().then_some(filled)
    }
}
