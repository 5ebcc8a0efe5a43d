//! The event loop of one thread, for every load model and protocol.
//!
//! A turn sends what is due, expires timed-out requests, waits for sockets or the next timestamp,
//! reads what has arrived, and counts completed requests once there are enough. Before each
//! response is read, and between batches of counting, sends that have become due go out.
//! Completions from before the wait are counted after it. Nothing blocks except the one wait.

mod service;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;

use crate::arrivals::source::{Due, Source};
use crate::base::clock::{NS_PER_MS, NS_PER_S, monotonic_ns, thread_cpu_ns};
use crate::base::error::LoadError;
use crate::base::stop::StopToken;
use crate::engine::idle_slots::IdleSlots;
use crate::engine::in_flight::InFlight;
use crate::engine::ledger::Ledger;
use crate::engine::lines::Lines;
use crate::engine::reactor::{Reactor, Readiness};
use crate::engine::slot::Slot;
use crate::http::connection::Connection;
use crate::http::inbox::{Inbox, RejectedTimestamps};
use crate::http::target::Target;
use crate::pacing::pacer::Pacer;
use crate::pacing::run_queue::RunQueueWaits;
use crate::pacing::stalls::Stalls;
use crate::plan::{LoadModel, LoadPlan, OnBusy};
use crate::record::exchange::{Arrival, Completion, Outcome, Stamps};
use crate::record::possible_ends::EndCursor;
use crate::record::progress::Progress;
use crate::record::recorder::Recorder;

/// The kernel stamps the responses of one in this many sampled connections.
const STAMPED_ONE_IN: usize = 16;

/// How long a closed loop keeps its connections after its last response: twice the slowest of their
/// latest response times, but not shorter or longer than this.
const MIN_UNSOLICITED_WAIT_NS: u64 = 10 * NS_PER_MS;
const MAX_UNSOLICITED_WAIT_NS: u64 = NS_PER_S;

/// How one thread treats arrivals that find every connection busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyPolicy {
    pub on_busy: OnBusy,
    pub max_connections: usize,
    pub max_pending: usize,
}

/// The fixed configuration of an engine.
pub(crate) struct EngineConfig<'a> {
    pub plan: &'a LoadPlan,
    pub target: &'a Target,
    pub policy: BusyPolicy,
    pub stop: StopToken,
    /// How the measurement ends, if its length is not fixed.
    pub cursor: Option<EndCursor>,
    /// The live progress of the thread, if requested.
    pub progress: Option<Progress>,
}

impl EngineConfig<'_> {
    /// The reactor to wait with. An overlong wait for responses means a slow server or a stalled
    /// thread; without kernel receive timestamps only a heartbeat can distinguish them. If receive
    /// timestamps are requested, the heartbeat starts with the first response that lacks one.
    fn reactor(&self) -> io::Result<Reactor> {
        let mut reactor = Reactor::new()?;
        if !self.target.may_have_kernel_timestamps(self.plan) {
            reactor.enable_heartbeat();
        }
        Ok(reactor)
    }
}

/// The running load of one thread.
pub(crate) struct Engine<'a, C, S> {
    config: EngineConfig<'a>,
    source: S,
    reactor: Reactor,
    /// Places for concurrent requests on each connection.
    places: usize,
    lines: Lines<C>,
    slots: Vec<Slot>,
    idle: IdleSlots,
    in_flight: InFlight,
    /// Arrivals that wait for a slot.
    pending: VecDeque<Waiting>,
    /// The latest time at which a slot is known to have been idle.
    slot_idle_until_ns: u64,
    /// Arrivals with a slot that are served next.
    ready: VecDeque<(usize, Arrival)>,
    /// Connections with requests that are queued but not written.
    unwritten: Vec<u64>,
    /// Connections with more to read, which the reactor will not report again.
    yielding: VecDeque<u64>,
    pacer: Pacer,
    stalls: Stalls,
    /// Run-queue waits, which may explain a stall.
    run_queue_waits: RunQueueWaits,
    ledger: Ledger,
    connections_now: u64,
    inbox: Inbox,
    /// The latest reading of the clock.
    now_ns: u64,
    /// When the latest wait ended.
    awake_since_ns: u64,
    /// Everything that had arrived by this time has been read.
    read_until_ns: u64,
    /// Latest end of the load.
    last_end_ns: u64,
}

/// An arrival that waits for a slot, and the time from which no slot was free.
struct Waiting {
    due: Due,
    from_ns: u64,
}

/// A completed wait.
struct Wait {
    /// Its maximum length.
    sleep_ns: u64,
    /// When it ended.
    after_ns: u64,
    /// CPU time it used, if measured.
    cpu_ns: Option<u64>,
    /// How many sockets have events.
    count: usize,
}

/// What an engine returns when it ends.
pub(crate) struct Ended {
    pub recorder: Recorder,
    /// When the last of a limited number of requests ended, if they all did.
    pub finished_ns: Option<u64>,
    pub stalls: Stalls,
    pub rejected_timestamps: RejectedTimestamps,
}

impl<'a, C: Connection, S: Source> Engine<'a, C, S> {
    pub fn new(
        mut config: EngineConfig<'a>,
        source: S,
        pacer: Pacer,
        idle: IdleSlots,
        start_ns: u64,
    ) -> Result<Self, LoadError> {
        let now_ns = monotonic_ns();
        let recorder = Recorder::new(config.plan, start_ns).with_cursor(config.cursor.clone());
        let ledger = Ledger::new(recorder).showing(config.progress.take());
        let reactor = config.reactor().map_err(|source| LoadError::System {
            action: "watch sockets",
            source,
        })?;
        let places = config.plan.streams;
        Ok(Self {
            last_end_ns: start_ns.saturating_add(config.plan.longest_phases().load_ns()),
            ledger,
            config,
            source,
            reactor,
            places,
            lines: Lines::new(),
            slots: Vec::new(),
            idle,
            in_flight: InFlight::new(),
            pending: VecDeque::new(),
            slot_idle_until_ns: 0,
            ready: VecDeque::new(),
            unwritten: Vec::new(),
            yielding: VecDeque::new(),
            pacer,
            stalls: Stalls::default(),
            run_queue_waits: RunQueueWaits::of_this_thread(now_ns),
            connections_now: 0,
            inbox: Inbox::new(),
            now_ns,
            awake_since_ns: now_ns,
            read_until_ns: now_ns,
        })
    }

    /// Sends until the load's time is over and no arrival is left, or until a stop is requested. A
    /// load without arrivals near its end still runs to its end.
    pub fn drive(&mut self) -> Result<(), LoadError> {
        while !self.config.stop.is_stopped() {
            let end_ns = self.end_ns();
            let is_time_over = self.now_ns >= end_ns;
            let is_over = is_time_over && self.source.is_exhausted(self.now_ns);
            if is_over || self.source.finished_ns().is_some() {
                break;
            }
            self.turn(if is_time_over { u64::MAX } else { end_ns })?;
        }
        Ok(())
    }

    fn end_ns(&self) -> u64 {
        let cursor = self.config.cursor.as_ref();
        cursor
            .map_or(u64::MAX, |cursor| cursor.ends().load_end_ns())
            .min(self.last_end_ns)
    }

    /// Waits for outstanding responses, no longer than the plan allows.
    pub fn drain(&mut self) -> Result<(), LoadError> {
        let until_ns = monotonic_ns() + self.config.plan.drain_ns();
        let is_busy = |engine: &Self| engine.in_flight.count() > 0 || !engine.pending.is_empty();
        while is_busy(self) && self.now_ns < until_ns && !self.config.stop.is_stopped() {
            self.turn(until_ns)?;
        }
        self.await_unsolicited()
    }

    /// Waits a moment for responses to no request. While a closed loop runs, the next request
    /// always goes out before such a response arrives, and takes it for its own.
    fn await_unsolicited(&mut self) -> Result<(), LoadError> {
        let slowest_ns = self.lines.slowest_ns();
        let wait_ns = (2 * slowest_ns).clamp(MIN_UNSOLICITED_WAIT_NS, MAX_UNSOLICITED_WAIT_NS);
        let until_ns = self.now_ns + wait_ns;
        let is_closed_loop = matches!(self.config.plan.load, LoadModel::Closed(_));
        while is_closed_loop && self.now_ns < until_ns && !self.config.stop.is_stopped() {
            self.turn(until_ns)?;
        }
        Ok(())
    }

    /// The pacer, which records how the waits were spent.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// Ends every waiting or running arrival, and every connection.
    pub fn end(mut self) -> Ended {
        let now_ns = monotonic_ns();
        self.now_ns = now_ns;

        for Waiting { due, from_ns } in std::mem::take(&mut self.pending) {
            let is_late = self.is_past_deadline(due.intended_ns);
            self.ended_unserved(
                &due,
                Some(from_ns),
                if is_late {
                    Outcome::Dropped
                } else {
                    Outcome::Unfinished
                },
            );
        }

        for index in 0..self.slots.len() {
            if let Some(work) = self.slots[index].work.take() {
                let end = (Outcome::Unfinished, None, now_ns);
                let completion = self.slots[index].completion(&self.lines, &work, end);
                self.ledger.ended(completion);
            }
        }
        for link in self.lines.drain().filter(|link| link.is_ready) {
            self.ledger.connections().ended(link.connection.requests());
        }

        let mut recorder = self.ledger.into_recorder();
        recorder.sessions = self.source.sessions();
        recorder.wrong_responses = std::mem::take(&mut self.inbox.wrong_responses);
        recorder.stop_snapshots();

        Ended {
            recorder,
            finished_ns: self.source.finished_ns(),
            stalls: self.stalls,
            rejected_timestamps: self.inbox.rejected_timestamps(),
        }
    }

    fn turn(&mut self, until_ns: u64) -> Result<(), LoadError> {
        self.dispatch_due();
        self.expire();
        self.write_queued();
        let count = self.wait(until_ns)?;
        self.note_events(count);

        for index in 0..count {
            self.process(self.reactor.event(index));
        }

        for _ in 0..self.yielding.len() {
            let Some(token) = self.yielding.pop_front() else {
                break;
            };
            if let Some(link) = self.lines.link_mut(token) {
                link.is_yielding = false;
            }
            self.process(Readiness {
                token,
                is_hangup: false,
                is_readable: true,
            });
        }

        if self.reactor.has_reported_all() && self.yielding.is_empty() {
            self.read_until_ns = self.awake_since_ns;
        }

        self.count_completed();
        self.ledger.show_progress(self.now_ns);
        Ok(())
    }

    /// Counts completed requests if there are enough of them, and sends what becomes due meanwhile.
    fn count_completed(&mut self) {
        let has_batch = self.ledger.has_batch();
        while has_batch && self.ledger.count_batch() {
            // In a closed loop, too: the time spent here must not count as the server's.
            self.read_clock();
            self.dispatch_due();
        }
    }

    /// Sends before reading: any delay adds to the lag of a due send, while a response that has
    /// arrived stays in the socket buffer.
    #[inline(always)]
    fn process(&mut self, event: Readiness) {
        self.dispatch_due();
        self.handle(event);
        self.serve_ready();
        self.write_queued();
        self.refresh_clock();
    }

    /// A send that becomes due must not get a connection that is known to be closed but has not
    /// been handled yet, nor one with bytes that arrived before the send.
    fn note_events(&mut self, count: usize) {
        let may_become_due = self.source.next_due_ns().is_some();
        for event in (0..count)
            .map(|index| self.reactor.event(index))
            .filter(|event| event.is_hangup || may_become_due)
        {
            if let Some(link) = self
                .lines
                .link_mut(event.token)
                .filter(|link| link.is_ready)
            {
                let is_idle = link.exchanges == 0;
                link.is_hung_up |= event.is_hangup && (is_idle || self.places > 1);
                link.has_idle_event = is_idle;
            }
        }
    }

    /// Waits for a socket, the next send or the next expiry.
    fn wait(&mut self, until_ns: u64) -> Result<usize, LoadError> {
        let due_ns = self.source.next_due_ns().unwrap_or(u64::MAX);
        let expiry_ns = self.in_flight.oldest().map_or(u64::MAX, |(_, started_ns)| {
            started_ns.saturating_add(self.config.plan.timeout_ns)
        });
        self.refresh_clock();
        let other_ns = if self.yielding.is_empty() {
            expiry_ns.min(until_ns)
        } else {
            self.now_ns
        };
        let sleep_ns = self.pacer.sleep_ns(self.now_ns, due_ns, other_ns);
        let cpu_before_ns = (sleep_ns > 0 && self.pacer.counts_sleep(due_ns)).then(thread_cpu_ns);
        let waited = self.reactor.wait(sleep_ns);
        let count = waited.map_err(|source| LoadError::System {
            action: "wait for sockets",
            source,
        })?;
        let after_ns = monotonic_ns();
        let cpu_ns = cpu_before_ns.map(|before_ns| thread_cpu_ns().saturating_sub(before_ns));
        self.waited(&Wait {
            sleep_ns,
            after_ns,
            cpu_ns,
            count,
        });

        Ok(count)
    }

    /// Records how a wait was spent.
    fn waited(
        &mut self,
        &Wait {
            sleep_ns,
            after_ns,
            cpu_ns,
            count,
        }: &Wait,
    ) {
        let before_ns = self.now_ns;
        let wake_ns = before_ns.saturating_add(sleep_ns);
        let expected_ns = before_ns.saturating_add(self.reactor.longest_wait_ns(sleep_ns));
        match (count, sleep_ns) {
            (0, 0) => self.pacer.spun(before_ns, after_ns),
            (0, _) if after_ns >= wake_ns => self.pacer.woke(after_ns - wake_ns),
            _ => {}
        }
        let waited_ns = after_ns - before_ns;
        let awake_ns = if sleep_ns == 0 {
            waited_ns
        } else {
            cpu_ns.unwrap_or(0).min(waited_ns)
        };
        let busy_ns = before_ns - self.awake_since_ns;
        self.pacer.passed(busy_ns + awake_ns, waited_ns - awake_ns);
        self.note_stall(expected_ns, after_ns);
        self.run_queue_waits.refresh(after_ns);
        (self.awake_since_ns, self.now_ns) = (after_ns, after_ns);
    }

    /// Reads the clock between pieces of work.
    fn read_clock(&mut self) -> u64 {
        self.advance_clock(monotonic_ns());
        self.now_ns
    }

    /// Reads the clock after work of any length, if sends are scheduled by time; other sources only
    /// wait for sockets.
    fn refresh_clock(&mut self) {
        if self.source.next_due_ns().is_some() {
            self.read_clock();
        }
    }

    /// Whether the arrival's deadline has passed.
    fn is_past_deadline(&self, intended_ns: u64) -> bool {
        let deadline_ns = self.config.plan.deadline_ns;
        deadline_ns
            .is_some_and(|deadline_ns| self.now_ns >= intended_ns.saturating_add(deadline_ns))
    }

    fn advance_clock(&mut self, now_ns: u64) {
        self.note_stall(self.now_ns, now_ns);
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Records a stall if the gap is long enough, and how much of it the thread waited for a core.
    fn note_stall(&mut self, expected_ns: u64, now_ns: u64) {
        self.stalls
            .note(expected_ns, now_ns, || self.run_queue_waits.take(now_ns));
    }

    fn dispatch_due(&mut self) {
        let mut has_dispatched = false;
        while self
            .source
            .next_due_ns()
            .is_some_and(|due_ns| due_ns <= self.now_ns)
        {
            let Some(due) = self.source.take_due() else {
                break;
            };
            self.ledger.scheduled(due.intended_ns);
            self.note_arrival(due.intended_ns);
            self.dispatch(due);
            self.serve_ready();
            has_dispatched = true;
        }
        if has_dispatched {
            self.write_queued();
        }
    }

    /// Records whether a measured arrival was due while the loop was stalled.
    fn note_arrival(&mut self, intended_ns: u64) {
        if self.stalls.has_delayed_arrival(intended_ns) && self.ledger.is_measured(intended_ns) {
            self.stalls.arrivals += 1;
        }
    }

    fn dispatch(&mut self, due: Due) {
        let slot = due.slot.or_else(|| self.take_idle());
        if let Some(slot) = slot {
            if due.slot.is_none() {
                self.slot_idle_until_ns = self.now_ns;
            }
            let arrival = Arrival::unqueued(due.intended_ns, due.request).at(due.place);
            return self.serve_in(slot, arrival);
        }

        let from_ns = due.intended_ns.max(self.slot_idle_until_ns);
        // Handled on time, it would have had a slot, so it may be queued even if the policy is to
        // shed.
        let is_overlooked = from_ns > due.intended_ns;
        let is_shed = self.config.policy.on_busy == OnBusy::Shed && !is_overlooked;

        if is_shed || self.pending.len() >= self.config.policy.max_pending {
            self.ended_unserved(&due, None, Outcome::Dropped);
        } else {
            self.pending.push_back(Waiting { due, from_ns });
        }
    }

    /// A slot for an arrival that is not bound to one, on an open connection if possible.
    fn take_idle(&mut self) -> Option<usize> {
        while let Some(index) = self.idle.take() {
            let line = self.slots[index].line;
            if self.lines.may_serve(line) {
                return Some(index);
            }
            self.lines.line(line).parked.push(index);
        }
        if self.lines.count() >= self.config.policy.max_connections {
            return None;
        }

        let first = self.add_line();
        let others = first + 1..first + self.places;
        others.rev().for_each(|index| self.idle.add(index, false));
        Some(first)
    }

    /// Adds a line with its slots; returns the first of them.
    fn add_line(&mut self) -> usize {
        let line = self.lines.add();
        let first = self.slots.len();
        let slot = |place| Slot {
            line,
            place,
            work: None,
        };
        self.slots.extend((0..self.places).map(slot));
        first
    }

    fn serve_ready(&mut self) {
        while let Some((slot, arrival)) = self.ready.pop_front() {
            self.serve_in(slot, arrival);
        }
    }

    /// Counts an arrival that ended without a slot: rejected at once, or after waiting for one.
    fn ended_unserved(&mut self, due: &Due, waited_from_ns: Option<u64>, outcome: Outcome) {
        let now_ns = monotonic_ns();
        let arrival = waited_from_ns.map_or_else(
            || Arrival::unqueued(due.intended_ns, due.request),
            |from_ns| Arrival::queued(due.intended_ns, from_ns, now_ns, due.request),
        );
        self.ledger.ended(Completion {
            arrival,
            stamps: Stamps::default(),
            outcome,
            status: None,
            ended_ns: now_ns,
        });
        self.source.unserved(due, outcome);
    }
}
