//! Closed loop: each user waits for its answer, thinks, and asks again. The intended instant of a request is the
//! end of the one before plus the think time, so lateness of our own still shows as send lag.

use rand_chacha::ChaCha8Rng;

use crate::arrivals::{Stream, exponential, generator};
use crate::clock::{NS_PER_MS, monotonic_ns};
use crate::draw::Draw;
use crate::exchange::{Completion, Outcome};
use crate::source::{Due, Next, Source};
use crate::stop::StopToken;
use crate::thinking::Thinkers;

/// A user whose request failed before it was answered waits this long, so that a server that refuses at once does
/// not turn the load into a connect flood.
const PAUSE_AFTER_FAILURE_NS: u64 = 10 * NS_PER_MS;

/// When the users of one thread ask, and when they stop.
pub(crate) struct ClosedPlan {
    pub users: usize,
    /// Mean of an exponential distribution.
    pub think_time_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub seed: u64,
    pub thread: usize,
}

/// Users of one thread, each with a slot of its own.
pub(crate) struct ClosedSource {
    think_time_ns: u64,
    end_ns: u64,
    stop: StopToken,
    random: ChaCha8Rng,
    draw: Draw,
    asked: u64,
    thinkers: Thinkers,
    users_left: usize,
}

impl ClosedSource {
    /// Users who begin spread over one think time.
    pub fn new(plan: &ClosedPlan, draw: Draw, stop: StopToken) -> Self {
        let mut source = Self {
            think_time_ns: plan.think_time_ns,
            end_ns: plan.end_ns,
            stop,
            random: generator(plan.seed, Stream::ThinkTime(plan.thread)),
            draw,
            asked: 0,
            thinkers: Thinkers::default(),
            users_left: plan.users,
        };
        for user in 0..plan.users {
            let offset_ns = plan.think_time_ns / plan.users as u64 * user as u64;
            source.thinkers.add(plan.start_ns + offset_ns, user);
        }
        source
    }

    fn think_ns(&mut self) -> u64 {
        match self.think_time_ns {
            0 => 0,
            mean_ns => exponential(&mut self.random, mean_ns as f64).round() as u64,
        }
    }

    fn due(&mut self, intended_ns: u64, slot: usize) -> Due {
        self.asked += 1;
        Due { intended_ns, request: self.draw.pick(self.asked - 1), slot: Some(slot) }
    }
}

impl Source for ClosedSource {
    fn next_due_ns(&self) -> Option<u64> {
        self.thinkers.next_ns()
    }

    fn take_due(&mut self) -> Option<Due> {
        let (ready_ns, slot) = self.thinkers.take()?;
        Some(self.due(ready_ns, slot))
    }

    fn after(&mut self, slot: usize, ended: &Completion) -> Next {
        let pause_ns = if ended.outcome.is_answered() || ended.outcome == Outcome::Timeout {
            0
        } else {
            PAUSE_AFTER_FAILURE_NS
        };
        let ready_ns = ended.ended_ns + self.think_ns() + pause_ns;
        if ready_ns >= self.end_ns || self.stop.is_stopped() {
            self.users_left -= 1;
            return Next::End;
        }
        if ready_ns == ended.ended_ns || ready_ns <= monotonic_ns() {
            return Next::Serve(self.due(ready_ns, slot));
        }
        self.thinkers.add(ready_ns, slot);
        Next::Reserved
    }

    fn is_exhausted(&self) -> bool {
        self.users_left == 0
    }
}
