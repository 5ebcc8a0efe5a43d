//! Users who think: whose next request becomes due at a known instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Users in the order in which they will ask.
#[derive(Debug, Default)]
pub(crate) struct Thinkers {
    thinking: BinaryHeap<Reverse<Thinking>>,
    thoughts: u64,
}

/// A user that will ask at `ready_ns`; of two at the same instant, the one that began to think
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thinking {
    ready_ns: u64,
    order: u64,
    slot: usize,
}

impl Thinkers {
    /// The user of this slot thinks until then.
    pub fn add(&mut self, ready_ns: u64, slot: usize) {
        self.thinking.push(Reverse(Thinking {
            ready_ns,
            order: self.thoughts,
            slot,
        }));
        self.thoughts += 1;
    }

    /// When the next one asks.
    pub fn next_ns(&self) -> Option<u64> {
        self.thinking.peek().map(|next| next.0.ready_ns)
    }

    /// Takes the next one: its instant and its slot.
    pub fn take(&mut self) -> Option<(u64, usize)> {
        self.thinking
            .pop()
            .map(|Reverse(user)| (user.ready_ns, user.slot))
    }
}
