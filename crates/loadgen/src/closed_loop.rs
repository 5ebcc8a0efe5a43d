//! Closed loop: each user waits for its answer, thinks, and asks again. The intended instant of a request is the
//! end of the one before plus the think time, so lateness of our own still shows as send lag.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;

use crate::arrivals::{Stream, exponential, generator};
use crate::clock::{NS_PER_MS, monotonic_ns};
use crate::connection::Connection;
use crate::exchange::{Arrival, Completion, Outcome};
use crate::lane::{Lane, Next, Shared, Source};
use crate::pacer::Pacer;
use crate::recorder::Recorder;
use crate::stop::StopToken;

/// A user whose request failed before it was answered waits this long, so that a server that refuses at once does
/// not turn the load into a connect flood.
const PAUSE_AFTER_FAILURE_NS: u64 = 10 * NS_PER_MS;

/// With every user at work there is no instant to wait for; then the stop signal is looked at this often.
const LONGEST_WAIT_NS: u64 = 50 * NS_PER_MS;

/// Users of one thread that think.
pub(crate) struct ClosedSource {
    think_time_ns: u64,
    end_ns: u64,
    stop: StopToken,
    random: RefCell<ChaCha8Rng>,
    thinking: RefCell<BinaryHeap<Reverse<Thinking>>>,
    thoughts: Cell<u64>,
    changed: Notify,
    users_left: Cell<usize>,
}

/// A user that will ask at `ready_ns`.
struct Thinking {
    ready_ns: u64,
    order: u64,
    lane: Rc<Lane>,
}

impl Thinking {
    fn key(&self) -> (u64, u64) {
        (self.ready_ns, self.order)
    }
}

impl PartialEq for Thinking {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Thinking {}

impl PartialOrd for Thinking {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Thinking {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl ClosedSource {
    pub fn new(think_time_ns: u64, end_ns: u64, seed: u64, thread: usize, stop: StopToken) -> Self {
        Self {
            think_time_ns,
            end_ns,
            stop,
            random: RefCell::new(generator(seed, Stream::ThinkTime(thread))),
            thinking: RefCell::default(),
            thoughts: Cell::new(0),
            changed: Notify::new(),
            users_left: Cell::new(0),
        }
    }

    fn think_ns(&self) -> u64 {
        match self.think_time_ns {
            0 => 0,
            mean_ns => exponential(&mut self.random.borrow_mut(), mean_ns as f64).round() as u64,
        }
    }

    fn think_until(&self, ready_ns: u64, lane: Rc<Lane>) {
        let order = self.thoughts.get();
        self.thoughts.set(order + 1);
        self.thinking.borrow_mut().push(Reverse(Thinking { ready_ns, order, lane }));
        self.changed.notify_one();
    }

    fn user_left(&self) -> Next {
        self.users_left.set(self.users_left.get() - 1);
        self.changed.notify_one();
        Next::End
    }
}

impl Source for ClosedSource {
    fn after(&self, lane: &Rc<Lane>, ended: &Completion, recorder: &mut Recorder) -> Next {
        let pause_ns = if ended.outcome.is_answered() || ended.outcome == Outcome::Timeout {
            0
        } else {
            PAUSE_AFTER_FAILURE_NS
        };
        let ready_ns = ended.ended_ns + self.think_ns() + pause_ns;
        if ready_ns >= self.end_ns || self.stop.is_stopped() {
            return self.user_left();
        }
        if ready_ns <= monotonic_ns() {
            recorder.scheduled(ready_ns);
            return Next::Serve(Arrival { intended_ns: ready_ns, eligible_ns: ready_ns });
        }
        self.think_until(ready_ns, Rc::clone(lane));
        Next::Wait
    }
}

/// Starts the thread's users, spread over one think time, and wakes each when it has thought; returns when no user
/// will ask again.
pub(crate) async fn drive<C: Connection + 'static>(
    shared: &Rc<Shared<ClosedSource>>,
    users: usize,
    start_ns: u64,
    pacer: &mut Pacer,
) {
    let source = &shared.source;
    source.users_left.set(users);
    for user in 0..users {
        let offset_ns = source.think_time_ns / users as u64 * user as u64;
        source.think_until(start_ns + offset_ns, shared.spawn_lane::<C>());
    }
    while source.users_left.get() > 0 && !source.stop.is_stopped() {
        let next_ns = source.thinking.borrow().peek().map(|next| next.0.ready_ns);
        let due_ns = next_ns.unwrap_or_else(|| monotonic_ns() + LONGEST_WAIT_NS);
        tokio::select! {
            biased;
            _ = pacer.wait_until(due_ns) => wake_due(source, &shared.recorder),
            () = source.changed.notified() => {}
        }
    }
}

fn wake_due(source: &ClosedSource, recorder: &RefCell<Recorder>) {
    let now_ns = monotonic_ns();
    let mut thinking = source.thinking.borrow_mut();
    while thinking.peek().is_some_and(|next| next.0.ready_ns <= now_ns) {
        let Some(Reverse(user)) = thinking.pop() else { return };
        recorder.borrow_mut().scheduled(user.ready_ns);
        user.lane.hand_over(Arrival { intended_ns: user.ready_ns, eligible_ns: user.ready_ns });
    }
}
