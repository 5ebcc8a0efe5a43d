//! Users that think, in a queue ordered by the due times of their next requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Users in the order of their next requests.
#[derive(Debug, Default)]
pub(crate) struct Thinkers {
    thinking: BinaryHeap<Reverse<Thinking>>,
    next_order: u64,
}

/// A user whose next request is due at `ready_ns`. Of two users with the same time, the one that
/// started to think first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thinking {
    ready_ns: u64,
    order: u64,
    slot: usize,
}

impl Thinkers {
    /// Adds the user of `slot`, whose next request is due at `ready_ns`.
    pub fn add(&mut self, ready_ns: u64, slot: usize) {
        self.thinking.push(Reverse(Thinking {
            ready_ns,
            order: self.next_order,
            slot,
        }));
        self.next_order += 1;
    }

    /// When the next request is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.thinking.peek().map(|next| next.0.ready_ns)
    }

    /// Takes the next user: its due time and its slot.
    pub fn take(&mut self) -> Option<(u64, usize)> {
        self.thinking
            .pop()
            .map(|Reverse(user)| (user.ready_ns, user.slot))
    }
}
