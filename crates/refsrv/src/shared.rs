//! State that all connections of one server share: the queue, the log, the counts, the timer.
//!
//! One thread owns it, so there is no lock; no borrow is held across an await.

use std::cell::RefCell;

use crate::config::Config;
use crate::fault::Fault;
use crate::log::{LogEntry, Outcome};
use crate::occupancy::Occupancy;
use crate::queue::{Slot, VirtualQueue};
use crate::timer::Timer;

/// Counts of a server since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Requests that took an arrival number; in fast mode, responses.
    pub arrivals: u64,
    /// Requests that have left the system, whatever their outcome.
    pub departures: u64,
    /// Requests that found their connection closed because of an earlier [`Fault::StaleClose`]; not
    /// in `arrivals`.
    pub stale_closed: u64,
    /// Heads rejected with 400, 411 or 431; not in `arrivals`.
    pub refused_heads: u64,
    /// Requests between arrival and write.
    pub in_system: u64,
    /// The integral of `in_system` over time, up to the last arrival or departure. By Little's
    /// law it is the sum of all `write_ns - arrive_ns` when nothing is left in the system.
    pub in_system_integral_ns: u128,
}

/// The log and the counts at one point in time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub log: Vec<LogEntry>,
    pub stats: Stats,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub config: Config,
    pub timer: Timer,
    /// The body with its last byte altered.
    pub wrong_body: Vec<u8>,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    queue: VirtualQueue,
    occupancy: Occupancy,
    log: Vec<LogEntry>,
    stats: Stats,
}

impl Shared {
    pub(crate) fn new(config: Config, timer: Timer, epoch_ns: u64) -> Self {
        let service = config.service.clone();
        let faults = config.faults.clone();
        let mut wrong_body = config.body.clone();
        if let Some(last) = wrong_body.last_mut() {
            *last ^= 1;
        }

        let state = RefCell::new(State {
            queue: VirtualQueue::new(service, config.servers, faults, epoch_ns),
            occupancy: Occupancy::default(),
            log: Vec::new(),
            stats: Stats::default(),
        });
        Self {
            config,
            timer,
            wrong_body,
            state,
        }
    }

    /// Queues a request. Call it immediately after its arrival was timestamped, without an await in
    /// between: arrivals must be in order of time.
    pub(crate) fn arrive(&self, arrive_ns: u64) -> (Slot, Option<Fault>) {
        let mut state = self.state.borrow_mut();
        state.stats.arrivals += 1;
        state.occupancy.arrive(arrive_ns);
        state.queue.arrive(arrive_ns)
    }

    /// Records that a request left the system; like [`Shared::arrive`], immediately.
    pub(crate) fn depart(&self, at_ns: u64) {
        let mut state = self.state.borrow_mut();
        state.stats.departures += 1;
        state.occupancy.depart(at_ns);
    }

    /// Logs the outcome of a request.
    pub(crate) fn record(
        &self,
        slot: &Slot,
        queued_ns: Option<u64>,
        write_ns: Option<u64>,
        outcome: Outcome,
    ) {
        if !self.config.log {
            return;
        }

        let Slot {
            id,
            arrive_ns,
            hold_ns,
            finish_ns,
            ..
        } = *slot;
        let entry = LogEntry {
            id,
            arrive_ns,
            queued_ns,
            hold_ns,
            finish_ns,
            write_ns,
            outcome,
        };
        self.state.borrow_mut().log.push(entry);
    }

    /// Updates the counts.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.state.borrow_mut().stats);
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.state.borrow();
        Stats {
            in_system: state.occupancy.in_system(),
            in_system_integral_ns: state.occupancy.integral_ns(),
            ..state.stats
        }
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            log: self.state.borrow().log.clone(),
            stats: self.stats(),
        }
    }
}
