//! Where arrivals come from: the engine's interface to a load model.

use crate::http::request::Request;
use crate::record::exchange::{Arrival, Completion, Outcome};
use crate::record::session_tally::SessionTally;

/// An arrival that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub intended_ns: u64,
    /// Index of the target's request.
    pub request: u32,
    /// Index of the arrival, or of its session, in the whole load.
    pub place: u64,
    /// The slot that must serve it; `None` means any.
    pub slot: Option<usize>,
}

/// What happens to a slot whose arrival has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It serves any arrival.
    Free,
    /// It serves any arrival, over a new connection.
    Renew,
    /// It is reserved for its next arrival, which becomes due later.
    Reserved,
    /// It serves this arrival at once.
    Serve(Due),
    /// It ends, and its connection with it.
    End,
}

/// A load model, for one thread.
pub(crate) trait Source {
    /// Whether it uses cookies and captured values.
    const KEEPS_COOKIES: bool = false;

    /// When the next arrival becomes due.
    fn next_due_ns(&self) -> Option<u64>;

    /// Takes the next arrival.
    fn take_due(&mut self) -> Option<Due>;

    /// Decides what happens to a slot whose arrival has ended.
    fn after(&mut self, slot: usize, ended: &Completion) -> Next;

    /// Whether no arrival is left that was scheduled before `now_ns`.
    fn is_exhausted(&self, now_ns: u64) -> bool;

    /// When the last of a limited number of arrivals ended; `None` before that, or without a limit.
    fn finished_ns(&self) -> Option<u64> {
        None
    }

    /// Records an arrival without a fixed slot that ended before it got one.
    fn unserved(&mut self, _due: &Due, _outcome: Outcome) {}

    /// Prepares this slot to serve an arrival.
    fn prepare(&mut self, _slot: usize, _arrival: &Arrival) {}

    /// The request to send in this slot, if it differs from the shared one.
    fn slot_request(&self, _slot: usize) -> Option<&Request> {
        None
    }

    /// The `Set-Cookie` fields of the response whose completion is reported next.
    fn set_cookies(&mut self, _fields: Vec<Vec<u8>>) {}

    /// The values captured from the response whose completion is reported next.
    fn captured(&mut self, _values: Vec<Vec<u8>>) {}

    /// Statistics of its sessions, if it has any.
    fn sessions(&self) -> Option<SessionTally> {
        None
    }
}
