//! One arrival in a slot, from connecting to its entry in the ledger.
//!
//! Functions between the loop and a socket call are always inlined, here and below: returning from
//! each of them right after a system call costs more than their work (decision 6).

use crate::arrivals::source::{Next, Source};
use crate::engine::event_loop::{Engine, STAMPED_ONE_IN, Waiting};
use crate::engine::lines::{Link, line_of};
use crate::engine::reactor::Readiness;
use crate::engine::slot::Work;
use crate::http::connection::{Connection, Exchanged, NothingSent, Progress, connect_failure};
use crate::plan::{HttpVersion, ReceiveStamps};
use crate::record::exchange::{Arrival, Completion, Outcome};

impl<C: Connection, S: Source> Engine<'_, C, S> {
    /// Gives an arrival to a slot.
    #[inline(always)]
    pub(super) fn serve_in(&mut self, index: usize, arrival: Arrival) {
        while index >= self.slots.len() {
            self.add_line();
        }

        let started_ns = self.read_clock();
        let work = Work::new(arrival, started_ns);
        self.slots[index].work = Some(work);
        self.in_flight.begin(index, started_ns);
        self.source.prepare(index, &arrival);
        self.attempt(index);
    }

    /// Sends the slot's request over its line's connection or over a new one, unless its deadline
    /// has passed. If the connection has no room, it waits.
    #[inline(always)]
    fn attempt(&mut self, index: usize) {
        let line = self.slots[index].line;
        while !self.drop_late(index) {
            if self
                .lines
                .current(line)
                .is_some_and(|link| link.has_idle_event)
            {
                self.handle_idle(self.lines.token(line));
            }
            if self.lines.current(line).is_some_and(Link::is_lost) {
                self.retire(self.lines.token(line), true);
            }
            match self.lines.current(line) {
                None => match self.connect(index) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => return self.failed_to_connect(line, index, &error),
                },
                Some(link) if !link.has_room() => return self.wait_for_room(index),
                Some(_) => {}
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

    /// Queues the slot until the connection that another slot opens is established, or until a
    /// stream is free.
    fn wait_for_room(&mut self, index: usize) {
        let now_ns = self.now_ns;
        let slot = &mut self.slots[index];
        if let Some(work) = slot.work.as_mut() {
            let line = self.lines.line(slot.line);
            work.waiting_since_ns = now_ns;
            work.arrival.waited_for_capacity |=
                line.link.as_ref().is_some_and(|link| link.is_ready);
            line.waiting.push_back(index);
        }
    }

    /// Serves the slots that wait on a line as far as it has room.
    pub(super) fn serve_waiting(&mut self, line: usize) {
        while let Some(index) = self.lines.next_waiting(line) {
            let now_ns = self.read_clock();
            if let Some(work) = self.slots[index].work.as_mut() {
                work.end_wait(now_ns);
            }
            self.attempt(index);
        }
    }

    /// Starts to connect; returns whether the connection is already established.
    fn connect(&mut self, index: usize) -> std::io::Result<bool> {
        let connect_start_ns = self.read_clock();
        let line = self.slots[index].line;
        let stamps = self.receive_stamps_of(line);
        let Some(work) = self.slots[index].work.as_mut() else {
            return Ok(false);
        };

        work.connect_start_ns = connect_start_ns;
        work.connect_ready_ns = 0;
        let connection = C::open(&self.config.target.route, stamps, self.places)?;
        let token = self.lines.open(line, index, connection);
        if let Some(link) = self.lines.current(line) {
            self.reactor.register(link.connection.socket(), token)?;
        }
        let is_established = self.continue_connecting(line)?;
        if !is_established {
            // The kernel does not report a connection that was established meanwhile.
            self.reactor.enable_heartbeat();
        }

        Ok(is_established)
    }

    /// The sample is a fixed set of lines, because receive timestamps are a socket option.
    fn receive_stamps_of(&self, line: usize) -> ReceiveStamps {
        match self.config.plan.receive_stamps() {
            ReceiveStamps::Sampled if !line.is_multiple_of(STAMPED_ONE_IN) => ReceiveStamps::User,
            stamps => stamps,
        }
    }

    fn continue_connecting(&mut self, line: usize) -> std::io::Result<bool> {
        let Some(link) = self.lines.line(line).link.as_mut() else {
            return Ok(false);
        };

        if !link.connection.is_connected()? {
            return Ok(false);
        }

        link.is_ready = true;
        let opener = link.opener;
        let connect_ready_ns = self.read_clock();
        if let Some(work) = self.slots[opener].work.as_mut() {
            work.connect_ready_ns = connect_ready_ns;
            let work = *work;
            self.note_wait(&work, work.connect_start_ns);
        }

        self.connections_now += 1;
        let counts = self.ledger.connections();
        counts.opened += 1;
        counts.peak = counts.peak.max(self.connections_now);
        self.note_connected(line);

        Ok(true)
    }

    /// Fails the request of `opener`, whose connection could not be established, and all requests
    /// that wait for this connection.
    fn failed_to_connect(&mut self, line: usize, opener: usize, error: &std::io::Error) {
        self.ledger.connect_failures().note(error);
        let outcome = connect_failure(error);
        let now_ns = self.read_clock();
        let waiting = std::mem::take(&mut self.lines.line(line).waiting);
        if self.lines.current(line).is_some() {
            // It was never established, so there is no connection to count.
            self.close(self.lines.token(line), false);
        }

        for index in std::iter::once(opener).chain(waiting) {
            self.finish(index, outcome, None, now_ns);
        }
    }

    /// Writes the slot's request; `false` if nothing was sent and another connection may be tried.
    #[inline(always)]
    fn send(&mut self, index: usize) -> bool {
        let now_ns = self.now_ns;
        let slot = &mut self.slots[index];
        let (line, place) = (slot.line, slot.place);
        let token = self.lines.token(line);
        let (Some(link), Some(work)) = (self.lines.line(line).link.as_mut(), slot.work.as_mut())
        else {
            return true;
        };

        let shared = &self.config.target.requests[work.arrival.request as usize];
        let request = self.source.slot_request(index).unwrap_or(shared);
        // HTTP/2 has no such header field and does not send it.
        let has_close = request.has_close && self.config.plan.http_version.is_http1();
        let served = link.connection.requests();
        work.is_last = has_close || self.config.plan.keepalive.is_last(served);
        let is_fresh = work.connect_start_ns != 0;
        let is_last = work.is_last;

        match link.connection.begin(place, request, is_last, now_ns) {
            Ok(ended) => {
                (work.is_written, work.token) = (true, token);
                link.exchanges += 1;
                if is_last && self.places > 1 {
                    self.retire(token, false);
                }
                if let Some(exchanged) = ended {
                    self.exchanged(index, &exchanged);
                }
                if !C::IS_BATCHED {
                    self.read_on_later(token);
                } else if self.unwritten.last() != Some(&token) {
                    self.unwritten.push(token);
                }
                true
            }
            Err(NothingSent) => self.nothing_sent(index, token, is_fresh),
        }
    }

    /// Writes the requests that are queued on their connections.
    #[inline(always)]
    pub(super) fn write_queued(&mut self) {
        while C::IS_BATCHED
            && let Some(token) = self.unwritten.pop()
        {
            let Some(link) = self.lines.link_mut(token) else {
                continue;
            };
            link.connection.flush();
            if link.connection.is_closed() {
                self.read_on_later(token);
            }
        }
    }

    /// No byte was sent: on a kept connection, retrying over a new one repeats nothing. Returns
    /// whether the arrival has ended.
    fn nothing_sent(&mut self, index: usize, token: u64, is_fresh: bool) -> bool {
        self.retire(token, true);
        self.read_on_later(token);
        if is_fresh {
            let now_ns = self.read_clock();
            self.finish(index, Outcome::Reset, None, now_ns);
        }

        is_fresh
    }

    pub(super) fn handle(&mut self, event: Readiness) {
        let Some(link) = self.lines.link(event.token) else {
            return;
        };

        if !link.is_ready {
            self.continue_opening(event);
        } else if link.exchanges == 0 {
            self.handle_idle(event.token);
        } else {
            self.read(event.token, event.is_hangup);
        }
        self.serve_waiting(line_of(event.token).0);
    }

    /// Continues to open a connection, and then sends over it.
    fn continue_opening(&mut self, event: Readiness) {
        let (line, _) = line_of(event.token);
        let opener = self.lines.current(line).map_or(0, |link| link.opener);
        match self.continue_connecting(line) {
            Ok(true) => {
                if !self.drop_late(opener) && !self.send(opener) {
                    self.attempt(opener);
                }
                self.serve_waiting(line);
                if let (true, Some(link)) = (event.is_readable, self.lines.link_mut(event.token)) {
                    link.connection.note_early_bytes();
                }
                // The reactor has already reported what had arrived by then, including a close, and
                // will not report it again.
                self.read(event.token, event.is_hangup);
            }
            Ok(false) => {}
            Err(error) => self.failed_to_connect(line, opener, &error),
        }
    }

    fn handle_idle(&mut self, token: u64) {
        let Some(link) = self.lines.link_mut(token) else {
            return;
        };
        link.has_idle_event = false;
        if link.connection.is_over_while_idle(&mut self.inbox) {
            self.note_refusal(token);
            self.retire(token, true);
        } else {
            self.note_limit(token);
            self.read_on_if_idle(token);
        }
    }

    /// Reads what has arrived on a connection for the exchanges in progress.
    #[inline(always)]
    fn read(&mut self, token: u64, is_hangup: bool) {
        match self.lines.link_mut(token) {
            Some(link) if link.exchanges > 0 => link.connection.start_turn(),
            _ => return,
        }
        while self.read_on(token, is_hangup) {
            // Before reading the next response, users that got one send their next request, and due
            // requests are sent.
            self.serve_waiting(line_of(token).0);
            self.serve_ready();
            self.dispatch_due();
        }
        self.note_limit(token);
    }

    /// Reads until an exchange ends; returns whether there may be more to read for other exchanges.
    #[inline(always)]
    fn read_on(&mut self, token: u64, is_hangup: bool) -> bool {
        let first = line_of(token).0 * self.places;
        match self.advance(token, is_hangup) {
            Progress::Waiting => return false,
            Progress::Yielding => {
                self.enqueue_read(token);
                return false;
            }
            Progress::Ended(place, exchanged) => self.exchanged(first + place, &exchanged),
            Progress::NothingSent(place) => self.retry(first + place, token),
        }
        self.places > 1 && self.has_left_unread(token) && self.is_busy(token)
    }

    /// Continues the exchanges on a connection until one ends.
    #[inline(always)]
    fn advance(&mut self, token: u64, is_hangup: bool) -> Progress {
        let Some(link) = self.lines.link_mut(token) else {
            return Progress::Waiting;
        };
        let first = line_of(token).0 * self.places;
        let (slots, source) = (&self.slots, &self.source);
        let requests = &self.config.target.requests;
        let request_at = |place: usize| {
            let index = first + place;
            let number = slots[index].work.map_or(0, |work| work.arrival.request);
            let shared = &requests[number as usize];
            source.slot_request(index).unwrap_or(shared)
        };
        link.connection
            .advance(request_at, is_hangup, &mut self.inbox)
    }

    /// Retries the slot's request: the connection reported only now that none of it was sent.
    fn retry(&mut self, index: usize, token: u64) {
        let Some(mut work) = self.take_work(index) else {
            return;
        };
        let is_fresh = work.connect_start_ns != 0;
        if let Some(link) = self.lines.link(token) {
            let stamps = link.connection.stamps(self.slots[index].place);
            work.note_block(&stamps, self.now_ns);
        }
        work.is_written = false;
        self.slots[index].work = Some(work);
        if !self.nothing_sent(index, token, is_fresh) {
            self.attempt(index);
        }
    }

    /// Whether exchanges are in progress on a connection.
    fn is_busy(&self, token: u64) -> bool {
        self.lines
            .link(token)
            .is_some_and(|link| link.exchanges > 0)
    }

    /// Whether data is left unread on the connection that no event will report.
    #[inline(always)]
    fn has_left_unread(&self, token: u64) -> bool {
        let link = self.lines.link(token);
        link.is_some_and(|link| link.connection.has_left_unread())
    }

    /// Queues the connection behind all others that have more to read, unless it is already queued.
    fn enqueue_read(&mut self, token: u64) {
        let Some(link) = self.lines.link_mut(token) else {
            return;
        };
        if !std::mem::replace(&mut link.is_yielding, true) {
            self.yielding.push_back(token);
        }
    }

    fn exchanged(&mut self, index: usize, exchanged: &Exchanged) {
        let ended_ns = exchanged.last_byte_ns;
        self.advance_clock(exchanged.known_ns);
        let Some(work) = self.take_work(index) else {
            return;
        };

        self.note_response(index, &work, exchanged);
        let expires_ns = work.started_ns.saturating_add(self.config.plan.timeout_ns);
        if ended_ns > expires_ns {
            self.expired(index, &work, expires_ns);
            return self.read_on_if_idle(work.token);
        }

        let slot = &self.slots[index];
        let end = (exchanged.outcome, exchanged.status, ended_ns);
        let mut completion = slot.completion(&self.lines, &work, end);
        completion.stamps.last_byte_ns = ended_ns;
        completion.stamps.receive_delay_ns = exchanged.receive_delay_ns;
        if let (true, Some(link)) = (S::KEEPS_COOKIES, self.lines.link_mut(work.token)) {
            let fields = link.connection.take_set_cookies(slot.place);
            let values = link.connection.take_captured(slot.place);
            self.source.set_cookies(fields);
            self.source.captured(values);
        }
        if matches!(exchanged.outcome, Outcome::Reset | Outcome::BadBody) {
            self.note_refusal(work.token);
        }
        if !exchanged.is_reusable {
            self.retire(work.token, exchanged.is_servers_end && !work.is_last);
        } else if self.lines.is_retired(work.token) {
            self.retire(work.token, false);
        } else {
            self.read_on_if_idle(work.token);
        }

        self.ended(index, &completion);
    }

    /// Records why a connection ended, if that is not known from its request.
    #[cold]
    fn note_refusal(&mut self, token: u64) {
        let link = self.lines.link_mut(token);
        if let Some(error) = link.and_then(|link| link.connection.take_refusal()) {
            self.ledger.connect_failures().note(&error);
        }
    }

    /// Schedules another read if data is left unread and no exchange is in progress that would read
    /// it.
    fn read_on_if_idle(&mut self, token: u64) {
        if !self.is_busy(token) {
            self.read_on_later(token);
        }
    }

    /// Schedules another read if data is left unread. Beginning or cancelling an exchange may read
    /// ahead, for example the end of the connection, and no further event reports that to the other
    /// exchanges.
    #[inline(always)]
    fn read_on_later(&mut self, token: u64) {
        if self.has_left_unread(token) {
            self.enqueue_read(token);
        }
    }

    /// Records whether a measured response may have waited for a stalled loop; one with a kernel
    /// timestamp cannot have. From the first such response on, a heartbeat detects stalls.
    fn note_response(&mut self, index: usize, work: &Work, exchanged: &Exchanged) {
        let has_kernel_stamps = self.config.plan.receive_stamps() == ReceiveStamps::Kernel;
        if has_kernel_stamps && exchanged.receive_delay_ns.is_some() {
            return;
        }

        self.reactor.enable_heartbeat();
        let place = self.slots[index].place;
        let link = self.lines.link(work.token);
        let sent_ns = link.map_or(work.started_ns, |link| {
            link.connection.stamps(place).write_start_ns
        });
        self.note_wait(work, sent_ns);
    }

    /// Records whether what has arrived since `from_ns` may have waited for a stalled loop.
    fn note_wait(&mut self, work: &Work, from_ns: u64) {
        let may_have_waited = self
            .stalls
            .may_have_delayed_response(from_ns, self.read_until_ns);
        if may_have_waited && self.ledger.is_measured(work.arrival.intended_ns) {
            self.stalls.responses += 1;
        }
    }

    /// Ends the slot's arrival.
    fn finish(&mut self, index: usize, outcome: Outcome, status: Option<u16>, ended_ns: u64) {
        let Some(work) = self.take_work(index) else {
            return;
        };
        let end = (outcome, status, ended_ns);
        let completion = self.slots[index].completion(&self.lines, &work, end);
        self.ended(index, &completion);
    }

    /// Takes the arrival out of its slot and ends its exchange on the connection.
    #[inline(always)]
    fn take_work(&mut self, index: usize) -> Option<Work> {
        let work = self.slots[index].work.take()?;
        if let (true, Some(link)) = (work.is_written, self.lines.link_mut(work.token)) {
            link.exchanges -= 1;
        }
        Some(work)
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
            // An open connection may still get an unsolicited response.
            Next::Reserved | Next::End => {}
            Next::Free => self.free(index, completion.freed_ns()),
            Next::Renew => {
                self.drop_connection(index);
                self.free(index, completion.freed_ns());
            }
        }
    }

    /// Gives the slot to the arrival that has waited longest, if there is one.
    fn free(&mut self, index: usize, freed_ns: u64) {
        let line = self.slots[index].line;
        if !self.lines.may_serve(line) {
            return self.lines.line(line).parked.push(index);
        }

        match self.pending.pop_front() {
            Some(Waiting { due, from_ns }) => {
                let arrival = Arrival::queued(due.intended_ns, from_ns, freed_ns, due.request);
                self.ready.push_back((index, arrival.at(due.place)));
            }
            None => self.idle.add(index, self.lines.current(line).is_some()),
        }
    }

    /// Expires timed-out requests.
    pub(super) fn expire(&mut self) {
        let timeout_ns = self.config.plan.timeout_ns;
        while let Some(oldest @ (index, started_ns)) = self.in_flight.oldest() {
            // The time of expiry, not the later time at which it was noticed: the bound is exact.
            let expired_ns = started_ns.saturating_add(timeout_ns);
            let Some(work) = self.slots[index].work.filter(|_| expired_ns <= self.now_ns) else {
                return;
            };

            // The loop may be late itself: a response that the kernel received in time has not
            // timed out.
            if work.is_written {
                self.read(work.token, false);
            }
            if self.in_flight.oldest() == Some(oldest)
                && let Some(work) = self.take_work(index)
            {
                self.expired(index, &work, expired_ns);
            }
            self.serve_waiting(self.slots[index].line);
            self.serve_ready();
        }
    }

    fn expired(&mut self, index: usize, work: &Work, expired_ns: u64) {
        let slot = &self.slots[index];
        let link = self.lines.current(slot.line);
        let is_unconnected = !work.is_written && link.is_none_or(|link| !link.is_ready);
        let outcome = if is_unconnected {
            Outcome::ConnectTimeout
        } else {
            Outcome::Timeout
        };
        let completion = slot.completion(&self.lines, work, (outcome, None, expired_ns));
        self.abandon(index, work);
        self.ended(index, &completion);
    }

    /// Abandons what was begun for an arrival: its place in a queue, the connection that it opens,
    /// or its exchange. If an exchange cannot be cancelled, its connection is closed, because the
    /// response may still arrive.
    fn abandon(&mut self, index: usize, work: &Work) {
        let (line, place) = (self.slots[index].line, self.slots[index].place);
        if work.is_written {
            let link = self.lines.link_mut(work.token);
            let is_cancelled = link.is_some_and(|link| link.connection.cancel(place));
            if !is_cancelled || self.lines.is_retired(work.token) {
                self.retire(work.token, false);
            }
            self.read_on_later(work.token);
        } else if work.is_connecting() {
            // It was never established, so there is no connection to count.
            self.close(self.lines.token(line), false);
        } else {
            self.lines.line(line).waiting.retain(|slot| *slot != index);
        }
    }

    /// Sends no more requests over a connection, and closes it when its last exchange has ended.
    fn retire(&mut self, token: u64, by_server: bool) {
        let Some(link) = self.lines.link_mut(token) else {
            return;
        };

        link.is_servers_end |= by_server;
        if link.exchanges == 0 {
            let by_server = link.is_servers_end;
            return self.close(token, by_server);
        }
        if self.lines.retire(token) {
            self.note_disconnected(line_of(token).0);
        }
    }

    /// Closes a connection; counts it if it was established.
    fn close(&mut self, token: u64, by_server: bool) {
        let is_retired = self.lines.is_retired(token);
        let Some(link) = self.lines.take(token) else {
            return;
        };

        if link.is_ready {
            self.connections_now -= 1;
            let counts = self.ledger.connections();
            counts.closed_by_server += u64::from(by_server);
            counts.ended(link.connection.requests());
        }
        if !is_retired {
            self.note_disconnected(line_of(token).0);
        }
    }

    /// Closes the connection of a slot whose user has ended or continues over a new connection. A
    /// connection that several slots share stays open.
    fn drop_connection(&mut self, index: usize) {
        if self.places == 1 {
            self.close(self.lines.token(self.slots[index].line), false);
        }
    }

    /// A line's connection has been established: its idle slots are the first to be taken.
    fn note_connected(&mut self, line: usize) {
        let first = line * self.places;
        (first..first + self.places).for_each(|index| self.idle.got_connection(index));
    }

    /// A line's connection has gone: its idle slots are the last to be taken, and its parked slots
    /// are free again.
    fn note_disconnected(&mut self, line: usize) {
        let first = line * self.places;
        (first..first + self.places).for_each(|index| self.idle.lost_connection(index));
        self.unpark(line);
    }

    fn unpark(&mut self, line: usize) {
        for index in std::mem::take(&mut self.lines.line(line).parked) {
            self.free(index, self.now_ns);
        }
    }

    /// Records how many streams the server allows, and frees parked slots if it allows more.
    fn note_limit(&mut self, token: u64) {
        if self.config.plan.http_version != HttpVersion::Http2 {
            return;
        }
        let Some(link) = self.lines.link_mut(token) else {
            return;
        };

        let allowed = link.connection.max_exchanges();
        let has_more = allowed > std::mem::replace(&mut link.allowed, allowed);
        if let Some(limit) = link.connection.announced_limit()
            && limit < self.places
            && self.places > 1
        {
            self.ledger.connections().note_limit(limit);
        }
        if has_more && !self.lines.is_retired(token) {
            self.unpark(line_of(token).0);
        }
    }
}
