//! Closed loop: each user waits for the response, thinks, and sends the next request. A request's
//! scheduled send is the end of the user's previous request plus the think time, so delays of the
//! generator still show as send lag.

use rand_chacha::ChaCha8Rng;

use crate::arrivals::draw::Draw;
use crate::arrivals::filled_requests::FilledRequests;
use crate::arrivals::source::{Due, Next, Source};
use crate::arrivals::think_time::Thinkers;
use crate::base::clock::{NS_PER_MS, monotonic_ns};
use crate::base::random::{Stream, exponential, generator};
use crate::base::stop::StopToken;
use crate::http::request::Request;
use crate::record::exchange::{Arrival, Completion, Outcome};

/// Pause of a user after a failure without a response, so that a server that refuses connections is
/// not flooded with connects.
const PAUSE_AFTER_FAILURE_NS: u64 = 10 * NS_PER_MS;

/// When the users of one thread start and stop.
pub(crate) struct ClosedPlan {
    /// Connections of all threads.
    pub connections: usize,
    /// Each user has one request at a time.
    pub users_per_connection: usize,
    /// Mean of an exponential distribution.
    pub think_time_ns: u64,
    /// How many requests this thread may send.
    pub requests: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub seed: u64,
    pub thread: usize,
    pub threads: usize,
}

/// Users of one thread, each with its own slot.
pub(crate) struct ClosedSource<'a> {
    think_time_ns: u64,
    end_ns: u64,
    stop: StopToken,
    random: ChaCha8Rng,
    draw: Draw,
    /// Index of the next request in the whole load. Each of n threads uses every n-th index,
    /// because the number of requests per thread is not known in advance.
    place: u64,
    threads: u64,
    requests: u64,
    thinkers: Thinkers,
    users_left: usize,
    /// Requests that no user has claimed yet.
    requests_left: Option<u64>,
    latest_end_ns: u64,
    /// Requests with placeholders, filled in per slot.
    filled_requests: Option<FilledRequests<'a>>,
}

impl<'a> ClosedSource<'a> {
    /// The users of one thread: those of every n-th connection, for n threads. Their starts are
    /// spread over one think time; users that would start after the end, or for whom no request is
    /// left, are omitted.
    pub fn new(plan: &ClosedPlan, draw: Draw, stop: StopToken) -> Self {
        let mut source = Self {
            think_time_ns: plan.think_time_ns,
            end_ns: plan.end_ns,
            stop,
            random: generator(plan.seed, Stream::ThinkTime(plan.thread)),
            draw,
            place: plan.thread as u64,
            threads: plan.threads as u64,
            requests: 0,
            thinkers: Thinkers::default(),
            users_left: 0,
            requests_left: plan.requests,
            latest_end_ns: plan.start_ns,
            filled_requests: None,
        };
        let per_connection = plan.users_per_connection;
        let gap_ns = plan.think_time_ns / (plan.connections * per_connection) as u64;
        let connections = (plan.thread..plan.connections).step_by(plan.threads);
        let users = connections.flat_map(|connection| {
            let first = connection * per_connection;
            first..first + per_connection
        });
        let begins_ns = users.map(|user| plan.start_ns + gap_ns * user as u64);

        for (slot, begin_ns) in begins_ns
            .take_while(|begin_ns| *begin_ns < plan.end_ns)
            .enumerate()
        {
            if !source.claim_request() {
                break;
            }
            source.thinkers.add(begin_ns, slot);
            source.users_left += 1;
        }

        source
    }

    /// Adds requests with placeholders.
    pub fn with_filled_requests(self, filled_requests: Option<FilledRequests<'a>>) -> Self {
        Self {
            filled_requests,
            ..self
        }
    }

    /// Claims another request for a user; `false` if none is left.
    fn claim_request(&mut self) -> bool {
        match &mut self.requests_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn think_ns(&mut self) -> u64 {
        match self.think_time_ns {
            0 => 0,
            mean_ns => exponential(&mut self.random, mean_ns as f64).round() as u64,
        }
    }

    fn due(&mut self, intended_ns: u64, slot: usize) -> Due {
        let (place, number) = (self.place, self.requests);
        self.place += self.threads;
        self.requests += 1;
        Due {
            intended_ns,
            request: self.draw.pick(number),
            place,
            slot: Some(slot),
        }
    }
}

impl Source for ClosedSource<'_> {
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
        self.latest_end_ns = self.latest_end_ns.max(ended.ended_ns);
        let ready_ns = ended.ended_ns + self.think_ns() + pause_ns;
        if ready_ns >= self.end_ns || self.stop.is_stopped() || !self.claim_request() {
            self.users_left -= 1;
            return Next::End;
        }
        if ready_ns == ended.ended_ns || ready_ns <= monotonic_ns() {
            return Next::Serve(self.due(ready_ns, slot));
        }

        self.thinkers.add(ready_ns, slot);
        Next::Reserved
    }

    fn is_exhausted(&self, now_ns: u64) -> bool {
        // After the end no user sends another request: requests in flight are left to the drain.
        self.users_left == 0 || (now_ns >= self.end_ns && self.thinkers.next_ns().is_none())
    }

    fn finished_ns(&self) -> Option<u64> {
        (self.requests_left == Some(0) && self.users_left == 0).then_some(self.latest_end_ns)
    }

    fn prepare(&mut self, slot: usize, arrival: &Arrival) {
        if let Some(filled_requests) = &mut self.filled_requests {
            filled_requests.fill(slot, arrival);
        }
    }

    fn slot_request(&self, slot: usize) -> Option<&Request> {
        self.filled_requests.as_ref()?.get(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::record::exchange::{Arrival, Stamps};

    fn source(
        users_and_thread: (usize, usize, usize),
        think_time_ns: u64,
    ) -> ClosedSource<'static> {
        limited(users_and_thread, think_time_ns, None)
    }

    fn limited(
        (users, thread, threads): (usize, usize, usize),
        think_time_ns: u64,
        requests: Option<u64>,
    ) -> ClosedSource<'static> {
        let end_ns = 10 * NS_PER_S;
        let plan = ClosedPlan {
            connections: users,
            users_per_connection: 1,
            think_time_ns,
            requests,
            start_ns: 0,
            end_ns,
            seed: 1,
            thread,
            threads,
        };
        ClosedSource::new(
            &plan,
            Draw::new(&[], 1, Stream::UserRequests(thread)),
            StopToken::new(),
        )
    }

    /// When each user starts, in whole seconds, and its slot.
    fn begins_s(thread: usize, threads: usize) -> Vec<(u64, usize)> {
        let mut source = source((10, thread, threads), 30 * NS_PER_S);
        let begins = std::iter::from_fn(|| source.take_due());
        begins
            .map(|due| {
                (
                    due.intended_ns / NS_PER_S,
                    due.slot.expect("a reserved slot"),
                )
            })
            .collect()
    }

    #[test]
    fn user_starts_are_staggered_over_all_threads_and_none_is_after_the_end() {
        assert_eq!(begins_s(0, 1), [(0, 0), (3, 1), (6, 2), (9, 3)]);
        assert_eq!(begins_s(0, 2), [(0, 0), (6, 1)]);
        assert_eq!(begins_s(1, 2), [(3, 0), (9, 1)]);
        assert_eq!(begins_s(9, 10), []);
    }

    #[test]
    fn all_users_of_a_connection_share_a_thread() {
        let plan = ClosedPlan {
            connections: 3,
            users_per_connection: 2,
            think_time_ns: 12,
            requests: None,
            start_ns: 0,
            end_ns: 100,
            seed: 1,
            thread: 0,
            threads: 2,
        };
        let begins = |thread| {
            let plan = ClosedPlan { thread, ..plan };
            let draw = Draw::new(&[], 1, Stream::UserRequests(thread));
            let mut source = ClosedSource::new(&plan, draw, StopToken::new());
            let begins = std::iter::from_fn(|| source.take_due());
            begins
                .map(|due| (due.intended_ns, due.slot.expect("a slot")))
                .collect::<Vec<_>>()
        };
        assert_eq!(begins(0), [(0, 0), (2, 1), (8, 2), (10, 3)]);
        assert_eq!(begins(1), [(4, 0), (6, 1)]);
    }

    #[test]
    fn a_thread_without_users_is_exhausted() {
        assert!(source((2, 1, 2), 30 * NS_PER_S).is_exhausted(0));
    }

    /// A correct response to this request, completed at `ended_ns`.
    fn ended(due: &Due, ended_ns: u64) -> Completion {
        Completion {
            arrival: Arrival::unqueued(due.intended_ns, due.request),
            stamps: Stamps::default(),
            outcome: Outcome::Ok,
            status: Some(200),
            ended_ns,
        }
    }

    #[test]
    fn users_end_when_no_request_is_left() {
        let mut source = limited((2, 0, 1), 0, Some(3));
        let first = source.take_due().expect("the first user's");
        let second = source.take_due().expect("the second user's");
        assert_eq!(
            source.after(0, &ended(&first, 5)),
            Next::Serve(Due {
                intended_ns: 5,
                place: 2,
                ..first
            })
        );
        assert_eq!(source.after(1, &ended(&second, 9)), Next::End);
        assert_eq!(source.finished_ns(), None, "the third request is in flight");
        assert_eq!(source.after(0, &ended(&first, 7)), Next::End);
        assert_eq!(source.finished_ns(), Some(9), "when the last one ended");
    }

    #[test]
    fn no_more_users_start_than_requests_are_allowed() {
        let mut source = limited((10, 0, 1), 0, Some(2));
        assert_eq!(std::iter::from_fn(|| source.take_due()).count(), 2);
        assert_eq!(limited((10, 0, 1), 0, Some(0)).finished_ns(), Some(0));
    }

    #[test]
    fn requests_in_flight_at_the_end_are_left_to_the_drain() {
        let mut source = source((1, 0, 1), 0);
        assert!(
            !source.is_exhausted(10 * NS_PER_S),
            "its user has not sent a request yet"
        );

        source.take_due().expect("a request");
        assert!(!source.is_exhausted(10 * NS_PER_S - 1));
        assert!(source.is_exhausted(10 * NS_PER_S));
    }
}
