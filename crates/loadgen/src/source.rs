//! Where arrivals come from: what the engine has to know of a load model.

use crate::exchange::Completion;

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
    /// It is kept for an arrival of its own, which becomes due later.
    Reserved,
    /// It serves this arrival at once.
    Serve(Due),
    /// It ends, and its connection with it.
    End,
}

/// A load model, for one thread.
pub(crate) trait Source {
    /// When the next arrival becomes due.
    fn next_due_ns(&self) -> Option<u64>;

    /// Takes that arrival.
    fn take_due(&mut self) -> Option<Due>;

    /// Says what becomes of a slot whose arrival has ended.
    fn after(&mut self, slot: usize, ended: &Completion) -> Next;

    /// Whether no arrival will come any more.
    fn is_exhausted(&self) -> bool;
}
