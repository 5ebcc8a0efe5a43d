//! One arrival in a slot, from connecting to its entry in the ledger.
//!
//! Functions between the loop and a socket call are always inlined, here and below: returning from
//! each of them right after a system call costs more than their work (decision 6).

use crate::arrivals::source::{Next, Source};
use crate::engine::event_loop::{Engine, STAMPED_ONE_IN, Waiting};
use crate::engine::reactor::Readiness;
use crate::engine::slot::{Slot, Work, slot_of, token};
use crate::http::connection::{Connection, Exchanged, NothingSent, Progress, connect_failure};
use crate::plan::{HttpVersion, ReceiveStamps};
use crate::record::exchange::{Arrival, Completion, Outcome};

impl<C: Connection, S: Source> Engine<'_, C, S> {
    /// Gives an arrival to a slot.
    #[inline(always)]
    pub(super) fn serve_in(&mut self, index: usize, arrival: Arrival) {
        while index >= self.slots.len() {
            self.slots.push(Slot::new());
        }

        let started_ns = self.read_clock();
        let work = Work::new(arrival, started_ns);
        self.slots[index].work = Some(work);
        self.in_flight.begin(index, started_ns);
        self.source.prepare(index, &arrival);
        self.attempt(index);
    }

    /// Sends the slot's request over its connection or over a new one, unless its deadline has
    /// passed.
    #[inline(always)]
    fn attempt(&mut self, index: usize) {
        while !self.drop_late(index) {
            if self.slots[index].has_lost_connection() {
                self.close_connection(index, true);
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

    /// Drops the slot's arrival before it is sent if its deadline has passed. Returns whether it
    /// did.
    fn drop_late(&mut self, index: usize) -> bool {
        let is_late = self.slots[index]
            .work
            .is_some_and(|work| self.is_past_deadline(work.arrival.intended_ns));
        if is_late {
            self.finish(index, Outcome::Dropped, None, self.now_ns);
        }
        is_late
    }

    /// Starts to connect; returns whether the connection is already established.
    fn connect(&mut self, index: usize) -> std::io::Result<bool> {
        let connect_start_ns = self.read_clock();
        let stamps = self.receive_stamps_of(index);
        let slot = &mut self.slots[index];
        let Some(work) = slot.work.as_mut() else {
            return Ok(false);
        };

        work.connect_start_ns = connect_start_ns;
        work.connect_ready_ns = 0;
        let connection = C::open(&self.config.target.route, stamps)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.reactor
            .register(connection.socket(), token(index, slot.generation))?;
        slot.connection = Some(connection);
        slot.is_hung_up = false;
        slot.is_yielding = false;
        let is_established = self.continue_connecting(index)?;
        if !is_established {
            // The kernel does not report a connection that was established meanwhile.
            self.reactor.enable_heartbeat();
        }

        Ok(is_established)
    }

    /// The sample is a fixed set of slots, because receive timestamps are a socket option.
    fn receive_stamps_of(&self, index: usize) -> ReceiveStamps {
        match self.config.plan.receive_stamps() {
            ReceiveStamps::Sampled if !index.is_multiple_of(STAMPED_ONE_IN) => ReceiveStamps::User,
            stamps => stamps,
        }
    }

    fn continue_connecting(&mut self, index: usize) -> std::io::Result<bool> {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.as_mut() else {
            return Ok(false);
        };

        if !connection.is_connected()? {
            return Ok(false);
        }

        let connect_ready_ns = self.read_clock();
        if let Some(work) = self.slots[index].work.as_mut() {
            work.connect_ready_ns = connect_ready_ns;
            let work = *work;
            self.note_wait(&work, work.connect_start_ns);
        }

        self.connections_now += 1;
        let counts = self.ledger.connections();
        counts.opened += 1;
        counts.peak = counts.peak.max(self.connections_now);

        Ok(true)
    }

    fn failed_to_connect(&mut self, index: usize, error: &std::io::Error) {
        // It was never established, so there is no connection to count.
        self.slots[index].connection = None;
        self.ledger.connect_failures().note(error);
        let now_ns = self.read_clock();
        self.finish(index, connect_failure(error), None, now_ns);
    }

    /// Writes the slot's request; `false` if nothing was sent and another connection may be tried.
    #[inline(always)]
    fn send(&mut self, index: usize) -> bool {
        let now_ns = self.now_ns;
        let slot = &mut self.slots[index];
        let (Some(connection), Some(work)) = (slot.connection.as_mut(), slot.work.as_mut()) else {
            return true;
        };

        let shared = &self.config.target.requests[work.arrival.request as usize];
        let request = self.source.slot_request(index).unwrap_or(shared);
        // HTTP/2 has no such header field and does not send it.
        let says_close = request.says_close && self.config.plan.http_version == HttpVersion::Http1;
        work.is_last = says_close || self.config.plan.keepalive.is_last(connection.requests());
        let is_fresh = work.connect_start_ns != 0;

        match connection.begin(request, work.is_last, now_ns) {
            Ok(ended) => {
                work.is_written = true;
                match ended {
                    Some(exchanged) => self.exchanged(index, &exchanged),
                    None if self.has_left_unread(index) => self.yields(index),
                    None => {}
                }
                true
            }
            Err(NothingSent) => self.nothing_sent(index, is_fresh),
        }
    }

    /// No byte was sent: on a kept connection, retrying over a new one repeats nothing. Returns
    /// whether the arrival has ended.
    fn nothing_sent(&mut self, index: usize, is_fresh: bool) -> bool {
        self.close_connection(index, true);
        if let Some(work) = self.slots[index].work.as_mut() {
            work.is_written = false;
        }
        if is_fresh {
            let now_ns = self.read_clock();
            self.finish(index, Outcome::Reset, None, now_ns);
        }

        is_fresh
    }

    pub(super) fn handle(&mut self, event: Readiness) {
        let (index, generation) = slot_of(event.token);
        let slot = &mut self.slots[index];
        if slot.generation != generation || slot.connection.is_none() {
            return;
        }

        match slot.work {
            None => self.handle_idle(index),
            Some(work) if work.is_written => self.continue_exchange(index, &work, event.is_hangup),
            Some(_) => match self.continue_connecting(index) {
                Ok(true) => {
                    if !self.drop_late(index) && !self.send(index) {
                        self.attempt(index);
                    }
                    self.read_after_send(index, event);
                }
                Ok(false) => {}
                Err(error) => self.failed_to_connect(index, &error),
            },
        }
    }

    /// Reads after the first send over a new connection: the reactor has already reported what had
    /// arrived by then, including a close, and will not report it again.
    fn read_after_send(&mut self, index: usize, event: Readiness) {
        let slot = &self.slots[index];
        let is_same = slot.generation == slot_of(event.token).1 && slot.connection.is_some();
        if let Some(work) = slot.work.filter(|work| is_same && work.is_written) {
            self.continue_exchange(index, &work, event.is_hangup);
        }
    }

    fn handle_idle(&mut self, index: usize) {
        let Some(connection) = self.slots[index].connection.as_mut() else {
            return;
        };
        if connection.is_over_while_idle(&mut self.inbox) {
            self.close_connection(index, true);
            self.idle.lost_connection(index);
        }
    }

    /// Reads what has arrived for the slot's request.
    #[inline(always)]
    fn advance(&mut self, index: usize, work: &Work, is_hangup: bool) -> Progress {
        let shared = &self.config.target.requests[work.arrival.request as usize];
        let request = self.source.slot_request(index).unwrap_or(shared);
        let connection = self.slots[index].connection.as_mut();
        connection.map_or(Progress::Waiting, |connection| {
            connection.advance(request, is_hangup, &mut self.inbox)
        })
    }

    #[inline(always)]
    fn continue_exchange(&mut self, index: usize, work: &Work, is_hangup: bool) {
        match self.advance(index, work, is_hangup) {
            Progress::Waiting => {}
            Progress::Yielding => self.yields(index),
            Progress::Ended(exchanged) => self.exchanged(index, &exchanged),
            Progress::NothingSent if self.nothing_sent(index, work.connect_start_ns != 0) => {}
            Progress::NothingSent => self.attempt(index),
        }
    }

    /// Whether the slot's connection has to be read further without an event.
    #[inline(always)]
    fn has_left_unread(&self, index: usize) -> bool {
        let connection = self.slots[index].connection.as_ref();
        connection.is_some_and(C::has_left_unread)
    }

    /// Moves the slot's connection behind all others that have more to read, once.
    fn yields(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !std::mem::replace(&mut slot.is_yielding, true) {
            self.yielding.push_back(token(index, slot.generation));
        }
    }

    fn exchanged(&mut self, index: usize, exchanged: &Exchanged) {
        let ended_ns = exchanged.last_byte_ns;
        self.advance_clock(exchanged.known_ns);
        let Some(work) = self.slots[index].work.take() else {
            return;
        };

        self.note_response(index, &work, exchanged);
        let expires_ns = work.started_ns.saturating_add(self.config.plan.timeout_ns);
        if ended_ns > expires_ns {
            return self.expired(index, &work, expires_ns);
        }

        let mut completion =
            self.slots[index].completion(&work, exchanged.outcome, exchanged.status, ended_ns);
        completion.stamps.last_byte_ns = ended_ns;
        completion.stamps.receive_delay_ns = exchanged.receive_delay_ns;
        if let (true, Some(connection)) = (S::KEEPS_COOKIES, &mut self.slots[index].connection) {
            self.source.set_cookies(connection.take_set_cookies());
            self.source.captured(connection.take_captured());
        }
        if !exchanged.is_reusable {
            self.close_connection(index, exchanged.is_servers_end && !work.is_last);
        } else if self.has_left_unread(index) {
            self.yields(index);
        }

        self.ended(index, &completion);
    }

    /// Records whether a measured response may have waited for a stalled loop; one with a kernel
    /// timestamp cannot have. From the first such response on, a heartbeat detects stalls.
    fn note_response(&mut self, index: usize, work: &Work, exchanged: &Exchanged) {
        let has_kernel_stamps = self.config.plan.receive_stamps() == ReceiveStamps::Kernel;
        if has_kernel_stamps && exchanged.receive_delay_ns.is_some() {
            return;
        }

        self.reactor.enable_heartbeat();
        let connection = self.slots[index].connection.as_ref();
        let sent_ns = connection.map_or(work.started_ns, |connection| {
            connection.stamps().write_start_ns
        });
        self.note_wait(work, sent_ns);
    }

    /// Records whether what has arrived since `from_ns` may have waited for a stalled loop.
    fn note_wait(&mut self, work: &Work, from_ns: u64) {
        let may_have_waited = self
            .stalls
            .may_have_kept_response(from_ns, self.read_until_ns);
        if may_have_waited && self.ledger.is_measured(work.arrival.intended_ns) {
            self.stalls.responses += 1;
        }
    }

    /// Ends the slot's arrival.
    fn finish(&mut self, index: usize, outcome: Outcome, status: Option<u16>, ended_ns: u64) {
        let Some(work) = self.slots[index].work.take() else {
            return;
        };
        let completion = self.slots[index].completion(&work, outcome, status, ended_ns);
        self.ended(index, &completion);
    }

    /// The slot's arrival has ended: records it, and decides what the slot does next.
    fn ended(&mut self, index: usize, completion: &Completion) {
        self.in_flight.end(index);
        self.ledger.ended(*completion);

        match self.source.after(index, completion) {
            Next::Serve(due) => {
                self.ledger.scheduled(due.intended_ns);
                self.note_arrival(due.intended_ns);
                let arrival = Arrival::unqueued(due.intended_ns, due.request).at(due.place);
                self.ready.push_back((index, arrival));
            }
            Next::Reserved => {}
            Next::End => self.drop_connection(index),
            Next::Free => self.free(index, completion.freed_ns()),
            Next::Renew => {
                self.drop_connection(index);
                self.free(index, completion.freed_ns());
            }
        }
    }

    /// Gives the slot to the arrival that has waited longest, if there is one.
    fn free(&mut self, index: usize, freed_ns: u64) {
        match self.pending.pop_front() {
            Some(Waiting { due, from_ns }) => {
                let arrival = Arrival::queued(due.intended_ns, from_ns, freed_ns, due.request);
                self.ready.push_back((index, arrival.at(due.place)));
            }
            None => self.idle.add(index, self.slots[index].connection.is_some()),
        }
    }

    /// Expires timed-out requests.
    pub(super) fn expire(&mut self) {
        let timeout_ns = self.config.plan.timeout_ns;
        while let Some((index, started_ns)) = self.in_flight.oldest() {
            // The time of expiry, not the later time at which it was noticed: the bound is exact.
            let expired_ns = started_ns.saturating_add(timeout_ns);
            let Some(work) = self.slots[index].work.filter(|_| expired_ns <= self.now_ns) else {
                return;
            };
            // The loop may be late itself: a response that the kernel received in time has not
            // timed out.
            if let (true, Progress::Ended(exchanged)) =
                (work.is_written, self.advance(index, &work, false))
            {
                self.exchanged(index, &exchanged);
            } else {
                self.slots[index].work = None;
                self.expired(index, &work, expired_ns);
            }
            self.serve_ready();
        }
    }

    fn expired(&mut self, index: usize, work: &Work, expired_ns: u64) {
        let outcome = if work.is_connecting() {
            Outcome::ConnectTimeout
        } else {
            Outcome::Timeout
        };
        let completion = self.slots[index].completion(work, outcome, None, expired_ns);
        self.abandon(index, work);
        self.ended(index, &completion);
    }

    /// Closes the connection on which a response may still arrive.
    pub(super) fn abandon(&mut self, index: usize, work: &Work) {
        if work.is_connecting() {
            // It was never established, so there is no connection to count.
            self.slots[index].connection = None;
        } else {
            self.drop_connection(index);
        }
    }

    fn close_connection(&mut self, index: usize, by_server: bool) {
        if self.slots[index].connection.is_some() {
            self.ledger.connections().closed_by_server += u64::from(by_server);
        }
        self.drop_connection(index);
    }

    /// Closes the slot's connection if one was established.
    pub(super) fn drop_connection(&mut self, index: usize) {
        if let Some(connection) = self.slots[index].connection.take() {
            self.connections_now -= 1;
            self.ledger.connections().ended(connection.requests());
        }
    }
}
