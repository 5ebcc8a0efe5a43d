//! A lane: one connection slot of one thread, serving one arrival at a time. The loop is the same for every load
//! model and every protocol; where the next arrival comes from is the [`Source`]'s to say.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::monotonic_ns;
use crate::connection::{Connection, EagerSend, NothingSent, connect_failure};
use crate::exchange::{Arrival, Completion, Outcome, Stamps};
use crate::plan::LoadPlan;
use crate::recorder::Recorder;
use crate::stamped_io::SocketStamps;
use crate::stop::StopToken;
use crate::target::Target;

/// What a lane does after an arrival has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Serves this one at once.
    Serve(Arrival),
    /// Waits until an arrival is handed over.
    Wait,
    /// Ends.
    End,
}

/// Where arrivals come from once a lane is free.
pub(crate) trait Source {
    /// Says what the lane does next. Counts an arrival that it makes up itself as scheduled.
    fn after(&self, lane: &Rc<Lane>, ended: &Completion, recorder: &mut Recorder) -> Next;

    /// Whether arrivals wait for a lane.
    fn has_waiting(&self) -> bool {
        false
    }

    /// The intended instants of the arrivals that wait for a lane, which then wait no longer.
    fn take_waiting(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// One connection slot.
#[derive(Default)]
pub(crate) struct Lane {
    handed_over: Cell<Option<Arrival>>,
    current: Cell<Option<Arrival>>,
    progress: Cell<Stamps>,
    wire: RefCell<Option<Rc<SocketStamps>>>,
    /// Requests that the lane's connection has carried, the one under way included; 0 without a connection.
    carried: Cell<u64>,
    /// While the lane waits: its connection, for sending before the lane has its turn.
    offered: RefCell<Option<Offer>>,
    is_sent_ahead: Cell<bool>,
    wake: Notify,
}

/// A kept connection that whoever hands over an arrival may send on at once.
struct Offer {
    sender: Rc<dyn EagerSend>,
    wire: Rc<SocketStamps>,
    is_last: bool,
}

impl Lane {
    /// Gives a waiting lane its next arrival, and sends its request at once where the lane's connection can.
    pub fn hand_over(&self, arrival: Arrival) {
        self.handed_over.set(Some(arrival));
        // At once, not when the lane runs: until then the instants would be those of the arrival before.
        self.begin(arrival);
        if let Some(offer) = self.offered.take()
            && offer.sender.try_send(offer.is_last)
        {
            self.wire.replace(Some(offer.wire));
            self.is_sent_ahead.set(true);
        }
        self.wake.notify_one();
    }

    /// Whether an arrival is in the lane's hands.
    pub fn is_busy(&self) -> bool {
        self.current.get().is_some()
    }

    /// The arrival in the lane's hands, ended as it stands.
    pub fn unfinished(&self, now_ns: u64) -> Option<Completion> {
        let arrival = self.current.get()?;
        Some(Completion {
            arrival,
            stamps: self.stamps(),
            outcome: Outcome::Unfinished,
            status: None,
            ended_ns: now_ns,
        })
    }

    async fn handed_over(&self) -> Arrival {
        loop {
            if let Some(arrival) = self.handed_over.take() {
                return arrival;
            }
            self.wake.notified().await;
        }
    }

    fn begin(&self, arrival: Arrival) {
        self.current.set(Some(arrival));
        self.progress.set(Stamps::default());
        self.wire.replace(None);
    }

    fn watch(&self, wire: Rc<SocketStamps>) {
        wire.arm();
        self.wire.replace(Some(wire));
    }

    /// Instants so far.
    fn stamps(&self) -> Stamps {
        let mut stamps = self.progress.get();
        if let Some(wire) = self.wire.borrow().as_ref() {
            stamps.write_start_ns = wire.write_start_ns();
            stamps.first_byte_ns = wire.first_read_ns();
            stamps.last_byte_ns = wire.last_read_ns();
        }
        stamps
    }
}

/// What all lanes of one thread share.
pub(crate) struct Shared<S> {
    pub plan: Rc<LoadPlan>,
    pub target: Target,
    pub recorder: RefCell<Recorder>,
    pub source: S,
    pub stop: StopToken,
    lanes: RefCell<Vec<Rc<Lane>>>,
    connections_now: Cell<u64>,
}

impl<S: Source + 'static> Shared<S> {
    pub fn new(plan: Rc<LoadPlan>, target: Target, start_ns: u64, source: S, stop: StopToken) -> Self {
        let recorder = RefCell::new(Recorder::new(&plan, start_ns));
        Self { plan, target, recorder, source, stop, lanes: RefCell::default(), connections_now: Cell::new(0) }
    }

    /// How many lanes have been made.
    pub fn lane_count(&self) -> usize {
        self.lanes.borrow().len()
    }

    /// Makes a lane that waits for its first arrival.
    pub fn spawn_lane<C: Connection + 'static>(self: &Rc<Self>) -> Rc<Lane> {
        let lane = Rc::new(Lane::default());
        self.lanes.borrow_mut().push(Rc::clone(&lane));
        let (shared, task_lane) = (Rc::clone(self), Rc::clone(&lane));
        tokio::task::spawn_local(async move { shared.run_lane::<C>(&task_lane).await });
        lane
    }

    /// Counts an arrival that ended without ever reaching a lane: turned away at once, or after waiting.
    pub fn ended_unserved(&self, intended_ns: u64, outcome: Outcome) {
        let now_ns = monotonic_ns();
        let eligible_ns = if outcome == Outcome::Dropped { intended_ns } else { now_ns.max(intended_ns) };
        self.recorder.borrow_mut().ended(&Completion {
            arrival: Arrival { intended_ns, eligible_ns },
            stamps: Stamps::default(),
            outcome,
            status: None,
            ended_ns: now_ns,
        });
    }

    /// Whether any lane has an arrival in its hands, or any arrival waits for one.
    pub fn is_busy(&self) -> bool {
        self.source.has_waiting() || self.lanes.borrow().iter().any(|lane| lane.is_busy())
    }

    /// Ends every arrival that waits or is in a lane's hands, and every connection. The lanes must not run again
    /// afterwards.
    pub fn end_unfinished(&self) {
        for intended_ns in self.source.take_waiting() {
            self.ended_unserved(intended_ns, Outcome::Unfinished);
        }
        let now_ns = monotonic_ns();
        let mut recorder = self.recorder.borrow_mut();
        for lane in self.lanes.borrow().iter() {
            if let Some(completion) = lane.unfinished(now_ns) {
                recorder.ended(&completion);
            }
            if lane.carried.get() > 0 {
                recorder.connections.ended(lane.carried.take());
            }
        }
    }

    async fn run_lane<C: Connection>(&self, lane: &Rc<Lane>) {
        let mut slot: Option<C> = None;
        let mut next = Next::Wait;
        loop {
            let arrival = match next {
                Next::Serve(arrival) => {
                    lane.begin(arrival);
                    arrival
                }
                Next::Wait => self.wait(&mut slot, lane).await,
                Next::End => break,
            };
            let completion = self.serve(&mut slot, lane, arrival).await;
            lane.current.set(None);
            let mut recorder = self.recorder.borrow_mut();
            recorder.ended(&completion);
            next = self.source.after(lane, &completion, &mut recorder);
        }
        if slot.is_some() {
            self.connection_ended(lane);
        }
    }

    /// Waits for the next arrival with the connection on offer, and lets go of one that the server ends meanwhile.
    async fn wait<C: Connection>(&self, slot: &mut Option<C>, lane: &Lane) -> Arrival {
        loop {
            let Some(connection) = slot.as_ref() else { return lane.handed_over().await };
            // With a deadline the lane looks at the clock before it sends.
            if self.plan.deadline_ns.is_none() {
                lane.offered.replace(connection.eager().map(|sender| Offer {
                    sender,
                    wire: connection.stamps(),
                    is_last: self.plan.keepalive.is_last(connection.requests()),
                }));
            }
            tokio::select! {
                biased;
                arrival = lane.handed_over() => return arrival,
                () = connection.ended_while_idle() => {
                    lane.offered.take();
                    self.let_go(slot, lane, true);
                }
            }
        }
    }

    /// Serves one arrival to its end.
    async fn serve<C: Connection>(&self, slot: &mut Option<C>, lane: &Lane, arrival: Arrival) -> Completion {
        let started_ns = monotonic_ns();
        let is_late = |deadline_ns| started_ns >= arrival.intended_ns.saturating_add(deadline_ns);
        if self.plan.deadline_ns.is_some_and(is_late) {
            return self.completion(lane, arrival, Outcome::Dropped, None, started_ns);
        }
        let limit = Duration::from_nanos(self.plan.timeout_ns);
        match tokio::time::timeout(limit, self.attempt(slot, lane, arrival)).await {
            Ok(completion) => completion,
            Err(_) => {
                if slot.take().is_some() {
                    self.connection_ended(lane);
                }
                // The instant of expiry, not the later one at which it was noticed: the bound is exact.
                let expired_ns = started_ns + self.plan.timeout_ns;
                let stamps = lane.stamps();
                let is_connecting = stamps.connect_start_ns != 0 && stamps.connect_ready_ns == 0;
                let outcome = if is_connecting { Outcome::ConnectTimeout } else { Outcome::Timeout };
                self.completion(lane, arrival, outcome, None, expired_ns)
            }
        }
    }

    fn completion(
        &self,
        lane: &Lane,
        arrival: Arrival,
        outcome: Outcome,
        status: Option<u16>,
        ended_ns: u64,
    ) -> Completion {
        Completion { arrival, stamps: lane.stamps(), outcome, status, ended_ns }
    }

    async fn attempt<C: Connection>(&self, slot: &mut Option<C>, lane: &Lane, arrival: Arrival) -> Completion {
        loop {
            let is_fresh = match self.connected(slot, lane).await {
                Ok(is_fresh) => is_fresh,
                Err(error) => {
                    let outcome = connect_failure(&error);
                    return self.completion(lane, arrival, outcome, None, monotonic_ns());
                }
            };
            let Some(connection) = slot.as_mut() else { continue };
            if !lane.is_sent_ahead.take() {
                lane.watch(connection.stamps());
            }
            lane.carried.set(connection.requests() + 1);
            let is_last = self.plan.keepalive.is_last(connection.requests());
            match connection.exchange(&self.target, is_last).await {
                Ok(exchanged) => {
                    let mut completion = self.completion(
                        lane,
                        arrival,
                        exchanged.outcome,
                        exchanged.status,
                        exchanged.last_byte_ns,
                    );
                    completion.stamps.last_byte_ns = exchanged.last_byte_ns;
                    if !exchanged.is_reusable {
                        self.let_go(slot, lane, !is_last);
                    }
                    return completion;
                }
                Err(NothingSent) => {
                    lane.carried.set(lane.carried.get() - 1);
                    self.let_go(slot, lane, true);
                    if is_fresh {
                        return self.completion(lane, arrival, Outcome::Reset, None, monotonic_ns());
                    }
                    // Not a byte went out on the kept connection, so taking a new one repeats nothing.
                }
            }
        }
    }

    /// Makes sure that the slot holds a live connection; says whether this arrival had to open it.
    async fn connected<C: Connection>(&self, slot: &mut Option<C>, lane: &Lane) -> std::io::Result<bool> {
        if slot.as_ref().is_some_and(Connection::is_closed) {
            self.let_go(slot, lane, true);
        }
        if slot.is_some() {
            return Ok(false);
        }
        let connect_start_ns = monotonic_ns();
        lane.progress.set(Stamps { connect_start_ns, ..Stamps::default() });
        *slot = Some(C::open(&self.target).await?);
        lane.progress.set(Stamps { connect_start_ns, connect_ready_ns: monotonic_ns(), ..Stamps::default() });
        self.connections_now.set(self.connections_now.get() + 1);
        let counts = &mut self.recorder.borrow_mut().connections;
        counts.opened += 1;
        counts.peak = counts.peak.max(self.connections_now.get());
        Ok(true)
    }

    fn let_go<C: Connection>(&self, slot: &mut Option<C>, lane: &Lane, is_servers_doing: bool) {
        if slot.take().is_some() {
            self.recorder.borrow_mut().connections.closed_by_server += u64::from(is_servers_doing);
            self.connection_ended(lane);
        }
    }

    fn connection_ended(&self, lane: &Lane) {
        self.connections_now.set(self.connections_now.get().saturating_sub(1));
        self.recorder.borrow_mut().connections.ended(lane.carried.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_that_was_just_handed_over_has_none_of_the_instants_of_the_one_before() {
        let lane = Lane::default();
        let arrival = |intended_ns| Arrival { intended_ns, eligible_ns: intended_ns };
        lane.begin(arrival(1));
        lane.progress.set(Stamps { connect_start_ns: 2, connect_ready_ns: 3, ..Stamps::default() });
        lane.hand_over(arrival(4));
        let unfinished = lane.unfinished(5).expect("the lane has an arrival in its hands");
        assert_eq!((unfinished.arrival, unfinished.stamps), (arrival(4), Stamps::default()));
    }
}
