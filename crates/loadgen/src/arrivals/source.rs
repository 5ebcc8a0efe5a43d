//! Where arrivals come from: what the engine has to know of a load model.

use crate::http::request::Request;
use crate::record::exchange::{Completion, Outcome};
use crate::record::session_tally::SessionTally;

/// An arrival whose instant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub intended_ns: u64,
    /// Which of the target's requests.
    pub request: u32,
    /// The slot that has to serve it; `None`: any.
    pub slot: Option<usize>,
}

/// What becomes of a slot whose arrival has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It serves any arrival.
    Free,
    /// It serves any arrival, over a new connection.
    Renew,
    /// It is kept for an arrival of its own, which becomes due later.
    Reserved,
    /// It serves this arrival at once.
    Serve(Due),
    /// It ends, and its connection with it.
    End,
}

/// A load model, for one thread.
pub(crate) trait Source {
    /// Whether cookies are to be kept for it.
    const KEEPS_COOKIES: bool = false;

    /// When the next arrival becomes due.
    fn next_due_ns(&self) -> Option<u64>;

    /// Takes that arrival.
    fn take_due(&mut self) -> Option<Due>;

    /// Says what becomes of a slot whose arrival has ended.
    fn after(&mut self, slot: usize, ended: &Completion) -> Next;

    /// Whether no arrival will come any more that was to, by the schedule, before now.
    fn is_exhausted(&self, now_ns: u64) -> bool;

    /// An arrival for any slot has ended without one.
    fn turned_away(&mut self, _due: &Due, _outcome: Outcome) {}

    /// The request to send in this slot, where it differs from the one that everybody sends.
    fn own_request(&self, _slot: usize) -> Option<&Request> {
        None
    }

    /// What the response whose end is told next has said in `Set-Cookie` fields.
    fn set_cookies(&mut self, _fields: Vec<Vec<u8>>) {}

    /// What became of its sessions, if it has any.
    fn sessions(&self) -> Option<SessionTally> {
        None
    }
}
