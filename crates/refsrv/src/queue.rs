//! The queue in virtual time: from arrival times to planned finish times, by arithmetic alone.
//!
//! It never reads a clock and never sleeps, so the same code is checked against queueing theory in
//! virtual time and run against a real client.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::fault::{Fault, FaultPlan};
use crate::service::Service;

/// The place of one request in the queue. `finish_ns = start_ns + hold_ns`, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Arrival number, from 0.
    pub id: u64,
    /// When the request arrived.
    pub arrive_ns: u64,
    /// When a server was free for it.
    pub start_ns: u64,
    /// How long it occupies that server, including a stall at its start.
    pub hold_ns: u64,
    /// When its response is due.
    pub finish_ns: u64,
}

/// A first-come-first-served queue before `c` servers, or before infinitely many.
#[derive(Debug)]
pub struct VirtualQueue {
    service: Service,
    faults: FaultPlan,
    /// When each server is free again, earliest first; `None` for infinitely many servers.
    free_at_ns: Option<BinaryHeap<Reverse<u64>>>,
    epoch_ns: u64,
    next_id: u64,
}

impl VirtualQueue {
    /// An empty queue. Stall windows count from `epoch_ns`.
    #[must_use]
    pub fn new(service: Service, servers: Option<usize>, faults: FaultPlan, epoch_ns: u64) -> Self {
        let free_at_ns = servers.map(|count| vec![Reverse(0); count].into());
        Self {
            service,
            faults,
            free_at_ns,
            epoch_ns,
            next_id: 0,
        }
    }

    /// Queues the next arrival. Arrivals must be in order of time.
    pub fn arrive(&mut self, arrive_ns: u64) -> (Slot, Option<Fault>) {
        let id = self.next_id;
        self.next_id += 1;
        let fault = self.faults.fault_for(id);
        let slot = match fault {
            Some(Fault::Status(_)) => Slot {
                id,
                arrive_ns,
                start_ns: arrive_ns,
                hold_ns: 0,
                finish_ns: arrive_ns,
            },
            Some(Fault::HoldFor(hold_ns)) => self.occupy(id, arrive_ns, hold_ns),
            _ => self.occupy(id, arrive_ns, self.service.hold_ns(id)),
        };

        (slot, fault)
    }

    fn occupy(&mut self, id: u64, arrive_ns: u64, service_ns: u64) -> Slot {
        let earliest = self.free_at_ns.as_mut().and_then(BinaryHeap::peek_mut);
        let free_ns = earliest.as_ref().map_or(0, |free| free.0);
        let start_ns = arrive_ns.max(free_ns);
        let since_epoch_ns = start_ns.saturating_sub(self.epoch_ns);
        let stalled_ns = self.service.may_begin_ns(since_epoch_ns) - since_epoch_ns;
        let hold_ns = stalled_ns.saturating_add(service_ns);
        let finish_ns = start_ns.saturating_add(hold_ns);
        if let Some(mut free) = earliest {
            *free = Reverse(finish_ns);
        }

        Slot {
            id,
            arrive_ns,
            start_ns,
            hold_ns,
            finish_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::When;

    fn finishes(queue: &mut VirtualQueue, arrivals: &[u64]) -> Vec<u64> {
        arrivals
            .iter()
            .map(|&a| queue.arrive(a).0.finish_ns)
            .collect()
    }

    fn constant(hold_ns: u64, servers: Option<usize>) -> VirtualQueue {
        VirtualQueue::new(Service::Constant { hold_ns }, servers, FaultPlan::none(), 0)
    }

    #[test]
    fn one_server_serves_requests_one_after_another() {
        let mut queue = constant(10, Some(1));
        assert_eq!(
            finishes(&mut queue, &[0, 1, 2, 50, 55]),
            [10, 20, 30, 60, 70]
        );
    }

    #[test]
    fn a_request_gets_the_server_that_is_free_first() {
        let holds_ns = vec![30, 10, 10, 10, 10];
        let mut queue =
            VirtualQueue::new(Service::List { holds_ns }, Some(2), FaultPlan::none(), 0);
        // 0: server A till 30. 1: B till 11. 2: B 11..21. 3: B 21..31. 4: A 30..40.
        assert_eq!(finishes(&mut queue, &[0, 1, 2, 3, 4]), [30, 11, 21, 31, 40]);
    }

    #[test]
    fn infinite_servers_never_queue() {
        assert_eq!(
            finishes(&mut constant(10, None), &[0, 1, 1, 2]),
            [10, 11, 11, 12]
        );
    }

    #[test]
    fn a_slot_adds_up() {
        let mut queue = constant(10, Some(1));
        queue.arrive(100);
        let (slot, fault) = queue.arrive(103);
        let expected = Slot {
            id: 1,
            arrive_ns: 103,
            start_ns: 110,
            hold_ns: 10,
            finish_ns: 120,
        };

        assert_eq!((slot, fault), (expected, None));
    }

    #[test]
    fn an_error_status_occupies_no_server_and_is_immediate() {
        let faults = FaultPlan::none().with(Fault::Status(503), When::at(vec![1]));
        let mut queue = VirtualQueue::new(Service::Constant { hold_ns: 10 }, Some(1), faults, 0);
        assert_eq!(finishes(&mut queue, &[0, 1, 2]), [10, 1, 20]);
    }

    #[test]
    fn an_overridden_hold_occupies_the_server() {
        let faults = FaultPlan::none().with(Fault::HoldFor(100), When::at(vec![0]));
        let mut queue = VirtualQueue::new(Service::Constant { hold_ns: 10 }, Some(1), faults, 0);
        assert_eq!(finishes(&mut queue, &[0, 1]), [100, 110]);
    }

    #[test]
    fn stall_windows_count_from_the_epoch() {
        let stall = Service::PeriodicStall {
            base_ns: 1,
            period_ns: 100,
            stall_ns: 10,
            offset_ns: 50,
        };
        let mut queue = VirtualQueue::new(stall.clone(), None, FaultPlan::none(), 1_000);
        assert_eq!(
            finishes(&mut queue, &[1_049, 1_050, 1_059, 1_060]),
            [1_050, 1_061, 1_061, 1_061]
        );

        // One server: the requests that waited for the end of the stall are then served one by one.
        let mut queue = VirtualQueue::new(stall, Some(1), FaultPlan::none(), 1_000);
        assert_eq!(
            finishes(&mut queue, &[1_049, 1_050, 1_059, 1_060]),
            [1_050, 1_061, 1_062, 1_063]
        );
    }

    #[test]
    fn absurd_holds_saturate_instead_of_wrapping() {
        let mut queue = constant(u64::MAX, Some(1));
        assert_eq!(finishes(&mut queue, &[5, 6]), [u64::MAX, u64::MAX]);
    }
}
