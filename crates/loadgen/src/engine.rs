//! The engine of one thread: one loop for every load model and every protocol.
//!
//! A turn sends what is due, gives up what has expired, waits for sockets or the next instant, and reads what has come;
//! before each answer is read, sends that have become due meanwhile go out. Nothing in it blocks but the one wait.

use std::collections::VecDeque;

use crate::clock::monotonic_ns;
use crate::connection::{Connection, Exchanged, NothingSent, Progress, connect_failure};
use crate::error::LoadError;
use crate::exchange::{Arrival, Completion, Outcome, Stamps};
use crate::hiccups::Hiccups;
use crate::idle::IdleSlots;
use crate::in_flight::InFlight;
use crate::inbox::{Inbox, StampDoubts};
use crate::pacer::Pacer;
use crate::plan::{LoadPlan, OnBusy, ReceiveStamps};
use crate::reactor::{Reactor, Readiness};
use crate::recorder::Recorder;
use crate::slot::{Slot, Work, slot_of, token};
use crate::source::{Due, Next, Source};
use crate::stop::StopToken;
use crate::target::Target;

/// Of sampled connections, the kernel stamps the answers of one in so many.
const STAMPED_ONE_IN: usize = 16;

/// How one thread treats arrivals that find every connection busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyPolicy {
    pub on_busy: OnBusy,
    pub max_slots: usize,
    pub max_pending: usize,
}

/// What an engine is told and does not change.
pub(crate) struct Orders<'a> {
    pub plan: &'a LoadPlan,
    pub target: &'a Target,
    pub policy: BusyPolicy,
    pub stop: StopToken,
}

/// The load of one thread under way.
pub(crate) struct Engine<'a, C, S> {
    orders: Orders<'a>,
    source: S,
    reactor: Reactor,
    slots: Vec<Slot<C>>,
    idle: IdleSlots,
    in_flight: InFlight,
    /// Arrivals that wait for a slot.
    pending: VecDeque<Due>,
    /// Arrivals that have a slot and are to be served next.
    ready: VecDeque<(usize, Due, u64)>,
    /// Connections with more to read, which the reactor will not tell of again.
    yielding: VecDeque<u64>,
    pacer: Pacer,
    hiccups: Hiccups,
    recorder: Recorder,
    connections_now: u64,
    inbox: Inbox,
    /// The latest reading of the clock.
    now_ns: u64,
    /// When the latest wait ended.
    awake_since_ns: u64,
}

/// What an engine leaves behind.
pub(crate) struct Ended {
    pub recorder: Recorder,
    pub hiccups: Hiccups,
    pub stamp_doubts: StampDoubts,
}

impl<'a, C: Connection, S: Source> Engine<'a, C, S> {
    pub fn new(
        orders: Orders<'a>,
        source: S,
        pacer: Pacer,
        idle: IdleSlots,
        start_ns: u64,
    ) -> Result<Self, LoadError> {
        let now_ns = monotonic_ns();
        let reactor = Reactor::new().map_err(|source| LoadError::System { action: "watch sockets", source })?;
        Ok(Self {
            recorder: Recorder::new(orders.plan, start_ns),
            orders,
            source,
            reactor,
            slots: Vec::new(),
            idle,
            in_flight: InFlight::new(),
            pending: VecDeque::new(),
            ready: VecDeque::new(),
            yielding: VecDeque::new(),
            pacer,
            hiccups: Hiccups::default(),
            connections_now: 0,
            inbox: Inbox::new(),
            now_ns,
            awake_since_ns: now_ns,
        })
    }

    /// Sends until no arrival will come any more, or a stop is asked for.
    pub fn drive(&mut self) -> Result<(), LoadError> {
        while !self.source.is_exhausted() && !self.orders.stop.is_stopped() {
            self.turn(u64::MAX)?;
        }
        Ok(())
    }

    /// Waits for the answers that are still out, no longer than the plan allows.
    pub fn drain(&mut self) -> Result<(), LoadError> {
        let until_ns = monotonic_ns() + self.orders.plan.drain_ns();
        let is_busy = |engine: &Self| engine.in_flight.count() > 0 || !engine.pending.is_empty();
        while is_busy(self) && self.now_ns < until_ns && !self.orders.stop.is_stopped() {
            self.turn(until_ns)?;
        }
        Ok(())
    }

    /// How the waits were spent so far.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// Ends every arrival that waits or is in a slot's hands, and every connection.
    pub fn end(mut self) -> Ended {
        let now_ns = monotonic_ns();
        for due in std::mem::take(&mut self.pending) {
            self.ended_unserved(&due, Outcome::Unfinished);
        }
        for index in 0..self.slots.len() {
            if let Some(work) = self.slots[index].work.take() {
                let completion = self.slots[index].completion(&work, Outcome::Unfinished, None, now_ns);
                self.recorder.ended(&completion);
                self.give_up(index, &work);
            }
            self.drop_connection(index);
        }
        self.recorder.sessions = self.source.sessions();
        Ended { recorder: self.recorder, hiccups: self.hiccups, stamp_doubts: self.inbox.doubts() }
    }

    fn turn(&mut self, until_ns: u64) -> Result<(), LoadError> {
        self.dispatch_due();
        self.expire();
        let count = self.wait(until_ns)?;
        for index in 0..count {
            // A due send is late from now on; an answer that has come keeps its place in the socket.
            self.dispatch_due();
            self.handle(self.reactor.event(index));
            self.serve_ready();
        }
        for _ in 0..self.yielding.len() {
            let Some(token) = self.yielding.pop_front() else { break };
            self.dispatch_due();
            self.handle(Readiness { token, is_hangup: false });
            self.serve_ready();
        }
        Ok(())
    }

    /// Waits for a socket, the next send or the next expiry.
    fn wait(&mut self, until_ns: u64) -> Result<usize, LoadError> {
        let due_ns = self.source.next_due_ns().unwrap_or(u64::MAX);
        let expiry_ns = self
            .in_flight
            .oldest()
            .map_or(u64::MAX, |(_, started_ns)| started_ns.saturating_add(self.orders.plan.timeout_ns));
        let before_ns = self.now_ns;
        let busy_ns = before_ns - self.awake_since_ns;
        let other_ns = if self.yielding.is_empty() { expiry_ns.min(until_ns) } else { before_ns };
        let sleep_ns = self.pacer.sleep_ns(before_ns, due_ns, other_ns);
        let waited = self.reactor.wait(sleep_ns);
        let count = waited.map_err(|source| LoadError::System { action: "wait for sockets", source })?;
        let after_ns = monotonic_ns();
        if count == 0 && sleep_ns == 0 {
            self.pacer.spun(before_ns, after_ns);
        }
        let waited_ns = after_ns - before_ns;
        let (looked_ns, slept_ns) = if sleep_ns == 0 { (waited_ns, 0) } else { (0, waited_ns) };
        self.pacer.passed(busy_ns + looked_ns, slept_ns);
        self.awake_since_ns = after_ns;
        self.hiccups.note(before_ns.saturating_add(sleep_ns), after_ns);
        self.now_ns = after_ns;
        Ok(count)
    }

    /// Reads the clock in the course of work.
    fn look_at_clock(&mut self) -> u64 {
        self.working_until(monotonic_ns());
        self.now_ns
    }

    fn working_until(&mut self, now_ns: u64) {
        self.hiccups.note(self.now_ns, now_ns);
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn dispatch_due(&mut self) {
        while self.source.next_due_ns().is_some_and(|due_ns| due_ns <= self.now_ns) {
            let Some(due) = self.source.take_due() else { return };
            self.recorder.scheduled(due.intended_ns);
            self.hiccups.arrival(due.intended_ns);
            self.dispatch(due);
            self.serve_ready();
        }
    }

    fn dispatch(&mut self, due: Due) {
        let slot = match due.slot {
            Some(slot) => Some(slot),
            None => self.idle.take().or_else(|| {
                let next = self.slots.len();
                (next < self.orders.policy.max_slots).then_some(next)
            }),
        };
        if let Some(slot) = slot {
            self.serve_in(slot, due, due.intended_ns);
        } else if self.orders.policy.on_busy == OnBusy::Shed
            || self.pending.len() >= self.orders.policy.max_pending
        {
            self.ended_unserved(&due, Outcome::Dropped);
        } else {
            self.pending.push_back(due);
        }
    }

    fn serve_ready(&mut self) {
        while let Some((slot, due, eligible_ns)) = self.ready.pop_front() {
            self.serve_in(slot, due, eligible_ns);
        }
    }

    /// Gives an arrival to a slot.
    fn serve_in(&mut self, index: usize, due: Due, eligible_ns: u64) {
        while index >= self.slots.len() {
            self.slots.push(Slot::new());
        }
        let started_ns = self.look_at_clock();
        let arrival = Arrival { intended_ns: due.intended_ns, eligible_ns, request: due.request };
        let work = Work::new(arrival, started_ns);
        self.slots[index].work = Some(work);
        self.in_flight.begin(index, started_ns);
        let deadline_ns = self.orders.plan.deadline_ns;
        if deadline_ns.is_some_and(|deadline_ns| started_ns >= due.intended_ns.saturating_add(deadline_ns)) {
            self.finish(index, Outcome::Dropped, None, started_ns);
        } else {
            self.attempt(index);
        }
    }

    /// Sends the slot's request over its connection, or over a new one.
    fn attempt(&mut self, index: usize) {
        loop {
            if self.slots[index].connection.as_ref().is_some_and(C::is_closed) {
                self.let_go(index, true);
            }
            if self.slots[index].connection.is_none() {
                match self.connect(index) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => return self.failed_to_connect(index, &error),
                }
            }
            if self.send(index) {
                return;
            }
        }
    }

    /// Begins to connect; whether the connection is made already.
    fn connect(&mut self, index: usize) -> std::io::Result<bool> {
        let connect_start_ns = self.look_at_clock();
        let stamps = self.receive_stamps_of(index);
        let slot = &mut self.slots[index];
        let Some(work) = slot.work.as_mut() else { return Ok(false) };
        (work.connect_start_ns, work.connect_ready_ns) = (connect_start_ns, 0);
        let connection = C::open(&self.orders.target.route, stamps)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.reactor.register(connection.socket(), token(index, slot.generation))?;
        slot.connection = Some(connection);
        self.go_on_connecting(index)
    }

    /// A sample is a fixed set of slots: asking is a property of the socket.
    fn receive_stamps_of(&self, index: usize) -> ReceiveStamps {
        match self.orders.plan.receive_stamps() {
            ReceiveStamps::Sampled if !index.is_multiple_of(STAMPED_ONE_IN) => ReceiveStamps::User,
            stamps => stamps,
        }
    }

    fn go_on_connecting(&mut self, index: usize) -> std::io::Result<bool> {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.as_mut() else { return Ok(false) };
        if !connection.is_connected()? {
            return Ok(false);
        }
        let connect_ready_ns = self.look_at_clock();
        if let Some(work) = self.slots[index].work.as_mut() {
            work.connect_ready_ns = connect_ready_ns;
        }
        self.connections_now += 1;
        let counts = &mut self.recorder.connections;
        counts.opened += 1;
        counts.peak = counts.peak.max(self.connections_now);
        Ok(true)
    }

    fn failed_to_connect(&mut self, index: usize, error: &std::io::Error) {
        // It never became a connection, so there is none to count.
        self.slots[index].connection = None;
        self.recorder.connect_failures.note(error);
        let now_ns = self.look_at_clock();
        self.finish(index, connect_failure(error), None, now_ns);
    }

    /// Writes the slot's request; `false` when nothing went out and another connection may be tried.
    fn send(&mut self, index: usize) -> bool {
        let now_ns = self.now_ns;
        let slot = &mut self.slots[index];
        let (Some(connection), Some(work)) = (slot.connection.as_mut(), slot.work.as_mut()) else { return true };
        let shared = &self.orders.target.requests[work.arrival.request as usize];
        let request = self.source.own_request(index).unwrap_or(shared);
        let is_last = self.orders.plan.keepalive.is_last(connection.requests());
        let is_fresh = work.connect_start_ns != 0;
        match connection.begin(request, is_last, now_ns) {
            Ok(ended) => {
                work.is_written = true;
                if let Some(exchanged) = ended {
                    self.exchanged(index, &exchanged);
                }
                true
            }
            Err(NothingSent) => self.nothing_sent(index, is_fresh),
        }
    }

    /// Not a byte went out: on a kept connection taking a new one repeats nothing. Whether the arrival has ended.
    fn nothing_sent(&mut self, index: usize, is_fresh: bool) -> bool {
        self.let_go(index, true);
        if let Some(work) = self.slots[index].work.as_mut() {
            work.is_written = false;
        }
        if is_fresh {
            let now_ns = self.look_at_clock();
            self.finish(index, Outcome::Reset, None, now_ns);
        }
        is_fresh
    }

    fn handle(&mut self, event: Readiness) {
        let (index, generation) = slot_of(event.token);
        let slot = &mut self.slots[index];
        if slot.generation != generation || slot.connection.is_none() {
            return;
        }
        match slot.work {
            None => self.handle_idle(index),
            Some(work) if work.is_written => self.go_on(index, &work, event.is_hangup),
            Some(_) => match self.go_on_connecting(index) {
                Ok(true) => {
                    if !self.send(index) {
                        self.attempt(index);
                    }
                }
                Ok(false) => {}
                Err(error) => self.failed_to_connect(index, &error),
            },
        }
    }

    fn handle_idle(&mut self, index: usize) {
        let Some(connection) = self.slots[index].connection.as_mut() else { return };
        if connection.is_over_while_idle(&mut self.inbox) {
            self.let_go(index, true);
            self.idle.lost_connection(index);
        }
    }

    fn go_on(&mut self, index: usize, work: &Work, is_hangup: bool) {
        let shared = &self.orders.target.requests[work.arrival.request as usize];
        let request = self.source.own_request(index).unwrap_or(shared);
        let Some(connection) = self.slots[index].connection.as_mut() else { return };
        match connection.advance(request, is_hangup, &mut self.inbox) {
            Progress::Waiting => {}
            Progress::Yielding => self.yielding.push_back(token(index, self.slots[index].generation)),
            Progress::Ended(exchanged) => self.exchanged(index, &exchanged),
            Progress::NothingSent if self.nothing_sent(index, work.connect_start_ns != 0) => {}
            Progress::NothingSent => self.attempt(index),
        }
    }

    fn exchanged(&mut self, index: usize, exchanged: &Exchanged) {
        let ended_ns = exchanged.last_byte_ns;
        self.working_until(exchanged.known_ns);
        let Some(work) = self.slots[index].work.take() else { return };
        let expires_ns = work.started_ns.saturating_add(self.orders.plan.timeout_ns);
        if ended_ns > expires_ns {
            return self.expired(index, &work, expires_ns);
        }
        let mut completion = self.slots[index].completion(&work, exchanged.outcome, exchanged.status, ended_ns);
        completion.stamps.last_byte_ns = ended_ns;
        completion.stamps.receive_delay_ns = exchanged.receive_delay_ns;
        if let (true, Some(connection)) = (S::KEEPS_COOKIES, &mut self.slots[index].connection) {
            self.source.set_cookies(connection.take_set_cookies());
        }
        if !exchanged.is_reusable {
            let is_ours = self.slots[index]
                .connection
                .as_ref()
                .is_some_and(|connection| self.orders.plan.keepalive.is_last(connection.requests() - 1));
            self.let_go(index, !is_ours);
        }
        self.close_the_books(index, &completion);
    }

    /// Ends the slot's arrival.
    fn finish(&mut self, index: usize, outcome: Outcome, status: Option<u16>, ended_ns: u64) {
        let Some(work) = self.slots[index].work.take() else { return };
        let completion = self.slots[index].completion(&work, outcome, status, ended_ns);
        self.close_the_books(index, &completion);
    }

    fn close_the_books(&mut self, index: usize, completion: &Completion) {
        self.in_flight.end(index);
        self.recorder.ended(completion);
        match self.source.after(index, completion) {
            Next::Serve(due) => {
                self.recorder.scheduled(due.intended_ns);
                self.ready.push_back((index, due, due.intended_ns));
            }
            Next::Reserved => {}
            Next::End => self.drop_connection(index),
            Next::Free => self.free(index, completion.ended_ns),
            Next::Renew => {
                self.drop_connection(index);
                self.free(index, completion.ended_ns);
            }
        }
    }

    /// Gives the slot to the arrival that has waited longest, if one has.
    fn free(&mut self, index: usize, ended_ns: u64) {
        match self.pending.pop_front() {
            Some(due) => {
                let eligible_ns = ended_ns.max(due.intended_ns);
                self.ready.push_back((index, due, eligible_ns));
            }
            None => self.idle.add(index, self.slots[index].connection.is_some()),
        }
    }

    /// Gives up the requests whose time is over.
    fn expire(&mut self) {
        let timeout_ns = self.orders.plan.timeout_ns;
        while let Some((index, started_ns)) = self.in_flight.oldest() {
            // The instant of expiry, not the later one at which it was noticed: the bound is exact.
            let expired_ns = started_ns.saturating_add(timeout_ns);
            let Some(work) = self.slots[index].work.filter(|_| expired_ns <= self.now_ns) else { return };
            self.slots[index].work = None;
            self.expired(index, &work, expired_ns);
            self.serve_ready();
        }
    }

    fn expired(&mut self, index: usize, work: &Work, expired_ns: u64) {
        let outcome = if work.is_connecting() { Outcome::ConnectTimeout } else { Outcome::Timeout };
        let completion = self.slots[index].completion(work, outcome, None, expired_ns);
        self.give_up(index, work);
        self.close_the_books(index, &completion);
    }

    /// Closes the connection over which an answer may still come.
    fn give_up(&mut self, index: usize, work: &Work) {
        if work.is_connecting() {
            // It never became a connection, so there is none to count.
            self.slots[index].connection = None;
        } else {
            self.drop_connection(index);
        }
    }

    /// Counts an arrival that ended without ever reaching a slot: turned away at once, or after waiting.
    fn ended_unserved(&mut self, due: &Due, outcome: Outcome) {
        let now_ns = monotonic_ns();
        let intended_ns = due.intended_ns;
        let eligible_ns = if outcome == Outcome::Dropped { intended_ns } else { now_ns.max(intended_ns) };
        self.recorder.ended(&Completion {
            arrival: Arrival { intended_ns, eligible_ns, request: due.request },
            stamps: Stamps::default(),
            outcome,
            status: None,
            ended_ns: now_ns,
        });
        self.source.turned_away(due, outcome);
    }

    fn let_go(&mut self, index: usize, is_servers_doing: bool) {
        if self.slots[index].connection.is_some() {
            self.recorder.connections.closed_by_server += u64::from(is_servers_doing);
        }
        self.drop_connection(index);
    }

    /// Closes the slot's connection, if it has one that was made.
    fn drop_connection(&mut self, index: usize) {
        if let Some(connection) = self.slots[index].connection.take() {
            self.connections_now -= 1;
            self.recorder.connections.ended(connection.requests());
        }
    }
}
