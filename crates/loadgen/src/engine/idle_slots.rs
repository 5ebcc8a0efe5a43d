//! Idle slots, separated into those with and without an open connection: a new connection is opened
//! only if no open one is idle.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::base::random::{Stream, generator};

/// Idle slots of one thread.
pub(crate) struct IdleSlots {
    connected: Vec<u32>,
    unconnected: Vec<u32>,
    /// Where each slot is.
    places: Vec<Place>,
    random: ChaCha8Rng,
}

/// Where a slot is, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    InUse,
    Connected(u32),
    Unconnected(u32),
}

impl IdleSlots {
    pub fn new(seed: u64, thread: usize) -> Self {
        let random = generator(seed, Stream::IdleChoice(thread));
        Self {
            connected: Vec::new(),
            unconnected: Vec::new(),
            places: Vec::new(),
            random,
        }
    }

    /// Marks a slot as idle.
    pub fn add(&mut self, slot: usize, is_connected: bool) {
        if slot >= self.places.len() {
            self.places.resize(slot + 1, Place::InUse);
        }

        self.places[slot] = if is_connected {
            self.connected.push(slot as u32);
            Place::Connected(self.connected.len() as u32 - 1)
        } else {
            self.unconnected.push(slot as u32);
            Place::Unconnected(self.unconnected.len() as u32 - 1)
        };
    }

    /// The connection of an idle slot has closed.
    pub fn lost_connection(&mut self, slot: usize) {
        if let Some(Place::Connected(place)) = self.places.get(slot).copied() {
            self.remove_connected(place as usize);
            self.add(slot, false);
        }
    }

    /// An idle slot has a connection that another one has opened.
    pub fn got_connection(&mut self, slot: usize) {
        if let Some(Place::Unconnected(place)) = self.places.get(slot).copied() {
            self.remove_unconnected(place as usize);
            self.add(slot, true);
        }
    }

    /// A uniformly random slot with an open connection, or else any slot. Any fixed order could
    /// synchronize with the server's workers.
    pub fn take(&mut self) -> Option<usize> {
        match self.connected.len() {
            0 => {
                let last = self.unconnected.len().checked_sub(1)?;
                Some(self.remove_unconnected(last))
            }
            1 => Some(self.remove_connected(0)),
            count => {
                let place = self.random.random_range(0..count);
                Some(self.remove_connected(place))
            }
        }
    }

    fn remove_connected(&mut self, place: usize) -> usize {
        let slot = self.connected.swap_remove(place) as usize;
        self.places[slot] = Place::InUse;
        if let Some(moved) = self.connected.get(place) {
            self.places[*moved as usize] = Place::Connected(place as u32);
        }
        slot
    }

    fn remove_unconnected(&mut self, place: usize) -> usize {
        let slot = self.unconnected.swap_remove(place) as usize;
        self.places[slot] = Place::InUse;
        if let Some(moved) = self.unconnected.get(place) {
            self.places[*moved as usize] = Place::Unconnected(place as u32);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connected_slots_are_taken_first_and_every_slot_is_taken_once() {
        let mut idle = IdleSlots::new(1, 0);
        (0..10).for_each(|slot| idle.add(slot, slot % 2 == 0));
        let taken: Vec<usize> = std::iter::from_fn(|| idle.take()).collect();
        let (mut kept, mut others) = (taken[..5].to_vec(), taken[5..].to_vec());
        kept.sort_unstable();
        others.sort_unstable();
        assert_eq!((kept, others), (vec![0, 2, 4, 6, 8], vec![1, 3, 5, 7, 9]));
    }

    #[test]
    fn a_slot_that_lost_its_connection_is_taken_last() {
        let mut idle = IdleSlots::new(1, 0);
        (0..4).for_each(|slot| idle.add(slot, true));
        idle.lost_connection(2);
        idle.lost_connection(2);
        idle.lost_connection(7);
        let taken: Vec<usize> = std::iter::from_fn(|| idle.take()).collect();
        assert_eq!((taken.len(), taken[3]), (4, 2));
    }

    #[test]
    fn a_slot_that_gets_a_connection_is_taken_first() {
        let mut idle = IdleSlots::new(1, 0);
        (0..4).for_each(|slot| idle.add(slot, false));
        idle.got_connection(1);
        idle.got_connection(1);
        idle.got_connection(7);
        let taken: Vec<usize> = std::iter::from_fn(|| idle.take()).collect();
        assert_eq!((taken.len(), taken[0]), (4, 1));
    }

    #[test]
    fn slots_are_chosen_uniformly() {
        let mut idle = IdleSlots::new(3, 0);
        (0..8).for_each(|slot| idle.add(slot, true));
        let mut counts = [0_u32; 8];

        for _ in 0..8_000 {
            let slot = idle.take().expect("one is idle");
            counts[slot] += 1;
            idle.add(slot, true);
        }

        // One standard deviation is about 30.
        assert!(
            counts.iter().all(|count| (850..1_150).contains(count)),
            "{counts:?}"
        );
    }
}
