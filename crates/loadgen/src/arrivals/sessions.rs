//! Sessions: users arrive on a schedule, regardless of the server; each user then waits for
//! responses and thinks, as in a closed loop. The scheduled send of a later request is the end of
//! the previous one plus the think time.

use rand_chacha::ChaCha8Rng;

use crate::arrivals::cookies::CookieJar;
use crate::arrivals::draw::Draw;
use crate::arrivals::schedule::Share;
use crate::arrivals::source::{Due, Next, Source};
use crate::arrivals::think_time::Thinkers;
use crate::base::random::{Stream, exponential, generator};
use crate::base::stop::StopToken;
use crate::http::request::Request;
use crate::http::template::Scratch;
use crate::http::values::Inputs;
use crate::plan::{LoadPlan, SessionPlan};
use crate::record::exchange::{Arrival, Completion, Outcome};
use crate::record::session_tally::SessionTally;

/// One step of a session.
struct Step {
    /// Remaining requests of its session, including itself.
    remaining: u64,
    is_first: bool,
    think_time_ns: u64,
}

/// A session in a slot.
#[derive(Default)]
struct Session {
    /// Scheduled start, if it is in the measurement.
    measured_since_ns: Option<u64>,
    jar: CookieJar,
    /// Captured values, by variable.
    values: Vec<Option<Vec<u8>>>,
    /// The next request, if placeholders or cookies change it.
    filled_request: Option<Request>,
    /// Index of the next request.
    next: u32,
    /// Index among all sessions.
    place: u64,
}

impl Session {
    fn keep(&mut self, variable: usize, value: Vec<u8>) {
        if variable >= self.values.len() {
            self.values.resize(variable + 1, None);
        }
        self.values[variable] = Some(value);
    }
}

/// Start and end of the load, and the measurement window.
pub(crate) struct SessionTimes {
    pub start_ns: u64,
    pub measure_ns: (u64, u64),
    pub end_ns: u64,
}

/// The sessions of one thread.
pub(crate) struct SessionSource<'a> {
    offsets_ns: Share,
    draw: Draw,
    times: SessionTimes,
    next_start_ns: Option<u64>,
    requests: &'a [Request],
    steps: Vec<Step>,
    /// The first request of each kind of session.
    firsts: Vec<u32>,
    random: ChaCha8Rng,
    thinkers: Thinkers,
    by_slot: Vec<Option<Box<Session>>>,
    active: usize,
    set_cookies: Vec<Vec<u8>>,
    captured: Vec<Vec<u8>>,
    scratch: Scratch,
    tally: SessionTally,
    stop: StopToken,
}

impl<'a> SessionSource<'a> {
    /// The sessions of `thread`, which start on its share of the schedule.
    pub fn new(
        plan: &LoadPlan,
        (mut offsets_ns, thread): (Share, usize),
        start_ns: u64,
        requests: &'a [Request],
        stop: StopToken,
    ) -> Self {
        let (from, to) = plan.measure_window();
        let weights: Vec<f64> = plan.sessions.iter().map(|session| session.weight).collect();
        let (steps, firsts) = steps_of(&plan.sessions);

        Self {
            next_start_ns: offsets_ns.next().map(|offset_ns| start_ns + offset_ns),
            offsets_ns,
            draw: Draw::new(&weights, plan.seed, Stream::Requests),
            times: SessionTimes {
                start_ns,
                measure_ns: (start_ns + from, start_ns + to),
                end_ns: start_ns + plan.phases.load_ns(),
            },
            requests,
            steps,
            firsts,
            random: generator(plan.seed, Stream::ThinkTime(thread)),
            thinkers: Thinkers::default(),
            by_slot: Vec::new(),
            active: 0,
            set_cookies: Vec::new(),
            captured: Vec::new(),
            scratch: Scratch::default(),
            tally: SessionTally::default(),
            stop,
        }
    }

    fn is_measured(&self, begin_ns: u64) -> bool {
        (self.times.measure_ns.0..self.times.measure_ns.1).contains(&begin_ns)
    }

    /// Starts a session with its first request.
    fn begin(&mut self) -> Option<Due> {
        let intended_ns = self.next_start_ns?;
        let place = self.offsets_ns.place();
        let request = self.firsts[self.draw.pick(place) as usize];
        self.next_start_ns = self
            .offsets_ns
            .next()
            .map(|offset_ns| self.times.start_ns + offset_ns);
        self.active += 1;
        if self.is_measured(intended_ns) {
            self.tally.started += 1;
            self.tally.requests_planned += self.steps[request as usize].remaining;
            self.tally.requests_scheduled += 1;
        }

        Some(Due {
            intended_ns,
            request,
            place,
            slot: None,
        })
    }

    /// Continues the session in this slot with its next request.
    fn continue_session(&mut self, intended_ns: u64, slot: usize) -> Option<Due> {
        let session = self.by_slot.get(slot)?.as_ref()?;
        self.tally.requests_scheduled += u64::from(session.measured_since_ns.is_some());
        Some(Due {
            intended_ns,
            request: session.next,
            place: session.place,
            slot: Some(slot),
        })
    }

    /// The session of this exchange; a new one if this was its first request.
    fn take_session(&mut self, slot: usize, ended: &Completion) -> Box<Session> {
        let known = self.by_slot.get_mut(slot).and_then(Option::take);
        if self.steps[ended.arrival.request as usize].is_first {
            let begin_ns = ended.arrival.intended_ns;
            let measured_since_ns = self.is_measured(begin_ns).then_some(begin_ns);
            return Box::new(Session {
                measured_since_ns,
                place: ended.arrival.place,
                ..Session::default()
            });
        }

        known.unwrap_or_default()
    }

    fn put(&mut self, slot: usize, session: Box<Session>) {
        if slot >= self.by_slot.len() {
            self.by_slot.resize_with(slot + 1, || None);
        }
        self.by_slot[slot] = Some(session);
    }

    fn think_ns(&mut self, mean_ns: u64) -> u64 {
        match mean_ns {
            0 => 0,
            mean_ns => exponential(&mut self.random, mean_ns as f64).round() as u64,
        }
    }

    /// The request with this index, filled in; `None` if it has no placeholders.
    fn filled(
        &mut self,
        request: u32,
        place: u64,
        captured: &[Option<Vec<u8>>],
    ) -> Option<Request> {
        let shared = &self.requests[request as usize];
        shared.has_placeholders().then(|| {
            let mut filled_request = shared.clone();
            filled_request.fill(shared, &Inputs { place, captured }, &mut self.scratch, true);
            filled_request
        })
    }

    /// Prepares the next request of a session.
    fn prepare_next(&mut self, session: &mut Session, completed: u32) {
        let shared = &self.requests[completed as usize];
        let answered = session.filled_request.as_ref().unwrap_or(shared);
        for field in self.set_cookies.drain(..) {
            session.jar.take(&field, answered.path());
        }
        if let Some(captures) = &self.requests[completed as usize].captures {
            for (variable, value) in captures.variables().zip(self.captured.drain(..)) {
                session.keep(variable, value);
            }
        }

        session.next = completed + 1;
        let shared = &self.requests[session.next as usize];
        session.filled_request = self.filled(session.next, session.place, &session.values);
        let request = session.filled_request.as_ref().unwrap_or(shared);
        if let Some(cookie) = session.jar.field(request.path(), request.cookies()) {
            session.filled_request = Some(request.with_cookie(&cookie));
        }
    }

    fn end(&mut self) -> Next {
        self.active -= 1;
        self.set_cookies.clear();
        self.captured.clear();
        Next::Renew
    }
}

impl Source for SessionSource<'_> {
    const KEEPS_COOKIES: bool = true;

    fn next_due_ns(&self) -> Option<u64> {
        [self.next_start_ns, self.thinkers.next_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    fn take_due(&mut self) -> Option<Due> {
        match (self.next_start_ns, self.thinkers.next_ns()) {
            (Some(start_ns), Some(ready_ns)) if start_ns <= ready_ns => self.begin(),
            (Some(_), None) => self.begin(),
            _ => {
                let (ready_ns, slot) = self.thinkers.take()?;
                self.continue_session(ready_ns, slot)
            }
        }
    }

    fn after(&mut self, slot: usize, ended: &Completion) -> Next {
        let mut session = self.take_session(slot, ended);
        let request = ended.arrival.request;
        let Step {
            remaining,
            think_time_ns,
            ..
        } = self.steps[request as usize];
        if ended.outcome != Outcome::Ok {
            self.tally.failed += u64::from(session.measured_since_ns.is_some());
            return self.end();
        }

        if remaining == 1 {
            if let Some(begin_ns) = session.measured_since_ns {
                self.tally.complete(ended.ended_ns.saturating_sub(begin_ns));
            }
            return self.end();
        }

        let ready_ns = ended.ended_ns + self.think_ns(think_time_ns);
        if ready_ns >= self.times.end_ns || self.stop.is_stopped() {
            return self.end();
        }

        self.prepare_next(&mut session, request);
        self.put(slot, session);
        if ready_ns == ended.ended_ns {
            return self
                .continue_session(ready_ns, slot)
                .map_or(Next::Reserved, Next::Serve);
        }

        self.thinkers.add(ready_ns, slot);
        Next::Reserved
    }

    fn is_exhausted(&self, now_ns: u64) -> bool {
        // After the end no session continues: requests in flight or waiting for a connection are
        // left to the drain.
        let is_over = now_ns >= self.times.end_ns && self.thinkers.next_ns().is_none();
        self.next_start_ns.is_none() && (self.active == 0 || is_over)
    }

    fn prepare(&mut self, slot: usize, arrival: &Arrival) {
        if !self.steps[arrival.request as usize].is_first {
            return;
        }
        if let Some(filled_request) = self.filled(arrival.request, arrival.place, &[]) {
            // Until the first response, only the filled-in request is needed.
            let session = Session {
                filled_request: Some(filled_request),
                ..Session::default()
            };
            self.put(slot, Box::new(session));
        }
    }

    fn unserved(&mut self, due: &Due, outcome: Outcome) {
        self.active -= 1;
        // Requests still waiting at the end of the load have not failed; they are unfinished.
        let has_failed = outcome != Outcome::Unfinished && self.is_measured(due.intended_ns);
        self.tally.failed += u64::from(has_failed);
    }

    fn slot_request(&self, slot: usize) -> Option<&Request> {
        self.by_slot.get(slot)?.as_ref()?.filled_request.as_ref()
    }

    fn set_cookies(&mut self, fields: Vec<Vec<u8>>) {
        self.set_cookies = fields;
    }

    fn captured(&mut self, values: Vec<Vec<u8>>) {
        self.captured = values;
    }

    fn sessions(&self) -> Option<SessionTally> {
        Some(self.tally.clone())
    }
}

fn steps_of(sessions: &[SessionPlan]) -> (Vec<Step>, Vec<u32>) {
    let (mut steps, mut firsts) = (Vec::new(), Vec::new());
    for session in sessions {
        firsts.push(steps.len() as u32);
        for (place, step) in session.steps.iter().enumerate() {
            let remaining = (session.steps.len() - place) as u64;
            steps.push(Step {
                remaining,
                is_first: place == 0,
                think_time_ns: step.think_time_ns,
            });
        }
    }

    (steps, firsts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::http::target::Target;
    use crate::plan::{Arrivals, LoadModel, RequestPlan, StepPlan};
    use crate::record::exchange::Stamps;
    use crate::report::sessions::SessionReport;

    const END_NS: u64 = 10 * NS_PER_S;

    /// One session per second, of three requests with a think time after the first.
    fn plan() -> LoadPlan {
        let mut plan = LoadPlan::open("http://127.0.0.1:1/", 1.0, END_NS);
        if let LoadModel::Open(open) = &mut plan.load {
            open.arrivals = Arrivals::Constant;
        }

        let step = |think_time_ns| StepPlan {
            request: RequestPlan {
                name: None,
                method: "GET".to_owned(),
                url: "/".to_owned(),
                headers: Vec::new(),
                body_base64: None,
                check: None,
            },
            think_time_ns,
            captures: Vec::new(),
        };
        let steps = vec![step(NS_PER_S / 10), step(0), step(0)];
        plan.sessions = vec![SessionPlan {
            name: "browse".to_owned(),
            weight: 1.0,
            steps,
        }];

        plan
    }

    fn with_source(test: impl FnOnce(&mut SessionSource<'_>)) {
        let plan = plan();
        let target = Target::prepare(&plan).expect("target");
        let LoadModel::Open(open) = &plan.load else {
            panic!("an open loop")
        };

        let share = Share::new(open, 1, &plan.phases, 0, 1);
        test(&mut SessionSource::new(
            &plan,
            (share, 0),
            0,
            &target.requests,
            StopToken::new(),
        ));
    }

    fn ended(due: &Due, outcome: Outcome, ended_ns: u64) -> Completion {
        let intended_ns = due.intended_ns;
        Completion {
            arrival: Arrival::unqueued(intended_ns, due.request),
            stamps: Stamps::default(),
            outcome,
            status: None,
            ended_ns,
        }
    }

    #[test]
    fn a_session_keeps_its_slot_until_its_last_response() {
        with_source(|source| {
            let first = source.take_due().expect("a session");
            assert_eq!(
                first,
                Due {
                    intended_ns: 0,
                    request: 0,
                    place: 0,
                    slot: None
                }
            );
            assert_eq!(
                source.after(3, &ended(&first, Outcome::Ok, 500)),
                Next::Reserved
            );
            let second_ns = source.next_due_ns().expect("it thinks");
            assert!(second_ns > 500 && second_ns < NS_PER_S, "{second_ns}");
            let second = source.take_due().expect("its second request");
            assert_eq!(
                second,
                Due {
                    intended_ns: second_ns,
                    request: 1,
                    place: 0,
                    slot: Some(3)
                }
            );
            // Without a think time the end of the response is the next scheduled send, however late
            // it is noticed.
            let third = Due {
                intended_ns: second_ns + 7,
                request: 2,
                place: 0,
                slot: Some(3),
            };
            assert_eq!(
                source.after(3, &ended(&second, Outcome::Ok, second_ns + 7)),
                Next::Serve(third)
            );
            assert_eq!(
                source.after(3, &ended(&third, Outcome::Ok, second_ns + 9)),
                Next::Renew
            );
            let report = SessionReport::of(&source.tally).expect("figures");
            assert_eq!(
                (
                    report.started,
                    report.completed,
                    report.requests_not_reached
                ),
                (1, 1, 0)
            );
            let duration_ns = report.duration_ns.expect("one was completed");
            assert_eq!(
                (duration_ns.count, duration_ns.max),
                (1, second_ns + 9),
                "from the scheduled start, 0"
            );
        });
    }

    #[test]
    fn a_failure_ends_the_session_and_its_remaining_requests_are_counted() {
        with_source(|source| {
            let first = source.take_due().expect("a session");
            assert_eq!(
                source.after(0, &ended(&first, Outcome::BadBody, 500)),
                Next::Renew
            );
            let second = source.take_due().expect("another");
            source.unserved(&second, Outcome::Dropped);
            let report = SessionReport::of(&source.tally).expect("figures");
            assert_eq!(
                (report.started, report.failed, report.unfinished),
                (2, 2, 0)
            );
            assert_eq!(report.requests_not_reached, 4);
            assert!(
                report.duration_ns.is_none(),
                "a failed session has no duration"
            );
        });
    }

    #[test]
    fn the_end_of_the_load_leaves_sessions_unfinished() {
        with_source(|source| {
            let first = source.take_due().expect("a session");
            assert_eq!(
                source.after(0, &ended(&first, Outcome::Ok, END_NS - 1)),
                Next::Renew
            );
            while let Some(due) = source.take_due() {
                assert!(!source.is_exhausted(END_NS - 1));
                source.unserved(&due, Outcome::Unfinished);
            }
            assert!(source.is_exhausted(END_NS - 1));
            let report = SessionReport::of(&source.tally).expect("figures");
            assert_eq!(
                (
                    report.started,
                    report.unfinished,
                    report.requests_not_reached
                ),
                (10, 10, 20)
            );
        });
    }

    #[test]
    fn sessions_do_not_continue_after_the_end_of_the_load() {
        with_source(|source| {
            let first = source.take_due().expect("a session");
            source.after(0, &ended(&first, Outcome::Ok, 500));
            let waiting = source.take_due().expect("its second request");
            assert_eq!(waiting.slot, Some(0));
            while source.take_due().is_some() {}
            assert!(
                !source.is_exhausted(END_NS - 1),
                "sessions may still continue"
            );
            assert!(
                source.is_exhausted(END_NS),
                "their responses are left to the drain"
            );
        });
    }

    #[test]
    fn cookies_are_sent_with_the_next_request_and_dropped_with_the_session() {
        with_source(|source| {
            let first = source.take_due().expect("a session");
            source.set_cookies(vec![b"id=7; Path=/".to_vec()]);
            source.after(0, &ended(&first, Outcome::Ok, 500));
            let request = source
                .slot_request(0)
                .expect("a filled request")
                .bytes(false);
            assert!(String::from_utf8_lossy(request).contains("\r\ncookie: id=7\r\n"));
            let second = source.take_due().expect("its second request");
            source.after(
                0,
                &ended(&second, Outcome::Timeout, second.intended_ns + 500),
            );
            assert!(source.slot_request(0).is_none());
        });
    }
}
