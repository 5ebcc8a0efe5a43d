//! The requests in flight, oldest first: one queue for all of them instead of a timer for each.
//!
//! Every request has the same timeout, so the one that started first expires first. A linked list
//! through the slots costs two writes per request and no further memory.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    started_ns: u64,
    is_linked: bool,
}

const UNLINKED: Link = Link {
    before: NONE,
    after: NONE,
    started_ns: 0,
    is_linked: false,
};

/// Slots with a request in flight, in the order in which they started.
#[derive(Debug)]
pub(crate) struct InFlight {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    count: usize,
}

impl InFlight {
    pub fn new() -> Self {
        Self {
            links: Vec::new(),
            oldest: NONE,
            newest: NONE,
            count: 0,
        }
    }

    /// Number of requests in flight.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The slot whose request started first, and when.
    pub fn oldest(&self) -> Option<(usize, u64)> {
        (self.oldest != NONE).then(|| {
            (
                self.oldest as usize,
                self.links[self.oldest as usize].started_ns,
            )
        })
    }

    /// A request has started in this slot, later than all others.
    pub fn begin(&mut self, slot: usize, started_ns: u64) {
        if slot >= self.links.len() {
            self.links.resize(slot + 1, UNLINKED);
        }

        debug_assert!(
            !self.links[slot].is_linked,
            "slot {slot} has a request already"
        );

        let index = slot as u32;
        self.links[slot] = Link {
            before: self.newest,
            after: NONE,
            started_ns,
            is_linked: true,
        };
        match self.newest {
            NONE => self.oldest = index,
            newest => self.links[newest as usize].after = index,
        }

        self.newest = index;
        self.count += 1;
    }

    /// The request of this slot has ended. Does nothing if the slot had none.
    pub fn end(&mut self, slot: usize) {
        let Some(link) = self.links.get(slot).copied().filter(|link| link.is_linked) else {
            return;
        };

        match link.before {
            NONE => self.oldest = link.after,
            before => self.links[before as usize].after = link.after,
        }
        match link.after {
            NONE => self.newest = link.before,
            after => self.links[after as usize].before = link.before,
        }

        self.links[slot] = UNLINKED;
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_whatever_the_order_of_ends() {
        for ended in [vec![0, 1, 2], vec![2, 1, 0], vec![1, 0, 2], vec![1, 2, 0]] {
            let mut in_flight = InFlight::new();
            (0..3).for_each(|slot| in_flight.begin(slot, slot as u64 * 10));
            let mut remaining: Vec<usize> = vec![0, 1, 2];
            for slot in ended {
                in_flight.end(slot);
                remaining.retain(|other| *other != slot);
                let oldest = remaining.first().map(|slot| (*slot, *slot as u64 * 10));
                assert_eq!(
                    (in_flight.oldest(), in_flight.count()),
                    (oldest, remaining.len())
                );
            }
        }
    }

    #[test]
    fn a_slot_that_begins_again_is_the_newest() {
        let mut in_flight = InFlight::new();
        in_flight.begin(4, 1);
        in_flight.begin(2, 2);
        in_flight.end(4);
        in_flight.begin(4, 3);

        assert_eq!(in_flight.oldest(), Some((2, 2)));

        in_flight.end(2);
        in_flight.end(2);

        assert_eq!((in_flight.oldest(), in_flight.count()), (Some((4, 3)), 1));
    }
}
