//! The queue of streams that can make progress, so that the connection does not poll all of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The queue of places that were woken, each at most once.
pub(crate) struct Wakes {
    queue: Arc<Queue>,
    places: Vec<(Arc<Place>, Waker)>,
}

/// Wakers must be shareable between threads; here, one thread owns all of them.
#[derive(Default)]
struct Queue(Mutex<VecDeque<usize>>);

struct Place {
    number: usize,
    is_queued: AtomicBool,
    queue: Arc<Queue>,
}

impl Wake for Place {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.lock().push_back(self.number);
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wakes {
    /// A queue for this many places.
    pub fn new(places: usize) -> Self {
        let queue: Arc<Queue> = Arc::default();
        let place = |number| {
            let place = Arc::new(Place {
                number,
                is_queued: AtomicBool::new(false),
                queue: Arc::clone(&queue),
            });
            (Arc::clone(&place), Waker::from(place))
        };
        Self {
            places: (0..places).map(place).collect(),
            queue,
        }
    }

    /// The waker of this place.
    pub fn waker(&self, place: usize) -> &Waker {
        &self.places[place].1
    }

    /// The place that was woken first.
    pub fn take(&self) -> Option<usize> {
        let number = self.queue.lock().pop_front()?;
        self.places[number]
            .0
            .is_queued
            .store(false, Ordering::Relaxed);
        Some(number)
    }

    /// Whether no place was woken.
    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_queued_once_until_it_is_taken() {
        let wakes = Wakes::new(3);
        for place in [2, 0, 2] {
            wakes.waker(place).wake_by_ref();
        }

        assert_eq!(
            [wakes.take(), wakes.take(), wakes.take()],
            [Some(2), Some(0), None]
        );

        wakes.waker(2).wake_by_ref();
        assert!(!wakes.is_empty());
        assert_eq!((wakes.take(), wakes.take()), (Some(2), None));
    }
}
