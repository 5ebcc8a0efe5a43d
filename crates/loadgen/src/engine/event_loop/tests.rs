//! The order of work within a turn, tested with scripted connections.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use super::*;
use crate::arrivals::source::Next;
use crate::base::clock::NS_PER_S;
use crate::http::connection::{ExchangeStamps, Exchanged, NothingSent, Progress};
use crate::http::request::Request;
use crate::net::route::Route;
use crate::pacing::rt_budget::RtBudget;
use crate::plan::{HttpVersion, ReceiveStamps};
use crate::record::recorder::Phase;

const MS: u64 = 1_000_000;

/// A recorded action on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Sent(usize),
    Read(usize),
}

/// How the connections of one test behave, and the actions recorded on them.
#[derive(Default)]
struct Script {
    /// The server's sockets, by connection; `None` after it has hung up.
    peers: Vec<Option<UnixStream>>,
    /// Requests sent and responses read.
    done: Vec<Action>,
    /// Whether each response is followed by another request.
    sends_again: bool,
    /// When the kernel received the response; `None` means as soon as there was a request.
    response_ns: Option<u64>,
    /// Checking whether an idle connection is closed lasts until this time.
    idle_until_ns: u64,
    /// Connecting lasts until this time, and completes with an event.
    connected_ns: u64,
    /// Responses never end.
    is_endless: bool,
    /// How many exchanges a connection allows at once, if fewer than it has places.
    allowed: Option<usize>,
    /// Connections take no more requests.
    is_going_away: bool,
    /// The next request on a connection detects that the connection has ended.
    is_ended: bool,
    /// The second check of a connection that is being opened reports a refusal.
    is_refused: bool,
    /// Places whose exchanges were cancelled.
    cancelled: Vec<usize>,
}

thread_local! {
    static SCRIPT: RefCell<Script> = RefCell::default();
}

fn script<T>(use_it: impl FnOnce(&mut Script) -> T) -> T {
    SCRIPT.with_borrow_mut(use_it)
}

/// Which connection each request went to.
fn sent_over() -> Vec<usize> {
    let sent = |action: &Action| {
        if let Action::Sent(number) = action {
            Some(*number)
        } else {
            None
        }
    };
    script(|script| script.done.iter().filter_map(sent).collect())
}

fn work_until(until_ns: u64) {
    while monotonic_ns() < until_ns {}
}

struct Scripted {
    number: usize,
    near: UnixStream,
    requests: u64,
    places: Vec<Place>,
    has_waited: bool,
}

#[derive(Clone, Default)]
struct Place {
    stamps: ExchangeStamps,
    is_in_progress: bool,
}

impl Scripted {
    fn next(&self) -> Option<usize> {
        self.places.iter().position(|place| place.is_in_progress)
    }
}

impl Connection for Scripted {
    fn open(_route: &Route, _stamps: ReceiveStamps, places: usize) -> io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        let number = script(|script| {
            script.peers.push(Some(far));
            script.peers.len() - 1
        });
        Ok(Self {
            number,
            near,
            requests: 0,
            places: vec![Place::default(); places],
            has_waited: false,
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.near.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        let until_ns = script(|script| script.connected_ns);
        if until_ns > 0 && !std::mem::replace(&mut self.has_waited, true) {
            return Ok(false);
        }
        if script(|script| script.is_refused) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        work_until(until_ns);
        Ok(true)
    }

    fn max_exchanges(&self) -> usize {
        script(|script| script.allowed).unwrap_or(self.places.len())
    }

    fn announced_limit(&self) -> Option<usize> {
        Some(self.max_exchanges())
    }

    fn begin(
        &mut self,
        place: usize,
        _: &Request,
        _: bool,
        now_ns: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        self.requests += 1;
        let stamps = ExchangeStamps {
            write_start_ns: now_ns,
            ..ExchangeStamps::default()
        };
        self.places[place] = Place {
            stamps,
            is_in_progress: true,
        };
        if script(|script| script.is_ended) {
            self.places[place].is_in_progress = false;
            return Ok(Some(Exchanged::unreusable(Outcome::Reset, None)));
        }
        script(|script| script.done.push(Action::Sent(self.number)));
        Ok(None)
    }

    fn advance<'r>(
        &mut self,
        _: impl Fn(usize) -> &'r Request,
        _: bool,
        _: &mut Inbox,
    ) -> Progress {
        let response_ns = script(|script| script.response_ns);
        let (Some(response_ns), Some(number)) = (response_ns, self.next()) else {
            return Progress::Waiting;
        };

        script(|script| script.done.push(Action::Read(self.number)));
        if script(|script| script.is_endless) {
            return Progress::Yielding;
        }

        let place = &mut self.places[number];
        let response_ns = response_ns.max(place.stamps.write_start_ns);
        place.is_in_progress = false;
        place.stamps.first_byte_ns = response_ns;
        place.stamps.last_byte_ns = response_ns;

        let exchanged = Exchanged {
            last_byte_ns: response_ns,
            is_reusable: true,
            ..Exchanged::unreusable(Outcome::Ok, Some(200))
        };
        Progress::Ended(number, exchanged)
    }

    fn take_set_cookies(&mut self, _: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn cancel(&mut self, place: usize) -> bool {
        self.places[place].is_in_progress = false;
        script(|script| script.cancelled.push(place));
        self.places.len() > 1
    }

    fn is_over_while_idle(&mut self, _: &mut Inbox) -> bool {
        work_until(script(|script| script.idle_until_ns));
        script(|script| script.peers[self.number].is_none())
    }

    fn has_left_unread(&self) -> bool {
        let may_end = |script: &mut Script| script.response_ns.is_some() && !script.is_endless;
        self.places.len() > 1 && self.next().is_some() && script(may_end)
    }

    fn is_closed(&self) -> bool {
        script(|script| script.is_going_away)
    }

    fn stamps(&self, place: usize) -> ExchangeStamps {
        self.places[place].stamps
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

/// Arrivals at these timestamps.
struct Timestamps(VecDeque<u64>);

impl Source for Timestamps {
    fn next_due_ns(&self) -> Option<u64> {
        self.0.front().copied()
    }

    fn take_due(&mut self) -> Option<Due> {
        let intended_ns = self.0.pop_front()?;
        Some(Due {
            intended_ns,
            request: 0,
            place: 0,
            slot: None,
        })
    }

    fn after(&mut self, slot: usize, ended: &Completion) -> Next {
        let again = Due {
            intended_ns: ended.ended_ns,
            request: 0,
            place: 0,
            slot: Some(slot),
        };
        if script(|script| script.sends_again) {
            Next::Serve(again)
        } else {
            Next::Free
        }
    }

    fn is_exhausted(&self, _now_ns: u64) -> bool {
        self.0.is_empty()
    }
}

/// Runs until the first two connections have received their responses and are idle. The server's
/// sockets of the `closed` connections are closed when the next arrival becomes due, while the
/// first connection is checked for a close.
fn idle_with_closed(engine: &mut Engine<'_, Scripted, Timestamps>, closed: &[usize]) {
    script(|script| script.response_ns = Some(monotonic_ns()));
    turns(engine, 3);

    assert_eq!(sent_over(), [0, 1]);

    let due_ns = monotonic_ns() + 200 * MS;
    engine.source.0.push_back(due_ns);
    script(|script| {
        script.idle_until_ns = due_ns;
        closed
            .iter()
            .for_each(|number| script.peers[*number] = None);
    });
}

/// Runs a test with an engine that starts with this many due arrivals.
fn with_engine(
    change: impl FnOnce(&mut LoadPlan),
    (arrivals, max_connections): (usize, usize),
    test: impl FnOnce(Engine<'_, Scripted, Timestamps>),
) {
    SCRIPT.take();
    let mut plan = LoadPlan::open("http://127.0.0.1:1/", 1.0, 60 * NS_PER_S);
    change(&mut plan);
    let target = Target::prepare(&plan).expect("target");
    let policy = BusyPolicy {
        on_busy: OnBusy::Queue,
        max_connections,
        max_pending: 10,
    };
    let config = EngineConfig {
        plan: &plan,
        target: &target,
        policy,
        stop: StopToken::new(),
        progress: None,
        cursor: None,
    };
    let start_ns = monotonic_ns();
    let source = Timestamps(std::iter::repeat_n(start_ns, arrivals).collect());
    test(
        Engine::new(
            config,
            source,
            Pacer::new(0),
            IdleSlots::new(1, 0),
            start_ns,
        )
        .expect("engine"),
    );
}

fn turns(engine: &mut Engine<'_, Scripted, Timestamps>, count: usize) {
    for _ in 0..count {
        let until_ns = monotonic_ns() + MS;
        engine.turn(until_ns).expect("a turn");
    }
}

fn outcomes(engine: Engine<'_, Scripted, Timestamps>) -> Vec<(Outcome, u64)> {
    let recorder = engine.end().recorder;
    recorder.check_conservation().expect("nothing is lost");
    let measured = recorder.phase(Phase::Measure);

    Outcome::ALL
        .map(|outcome| (outcome, measured.of(outcome)))
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[test]
fn a_response_received_in_time_is_not_a_timeout_even_if_read_late() {
    for (came_in_time, expected) in [(true, Outcome::Ok), (false, Outcome::Timeout)] {
        with_engine(
            |plan| plan.timeout_ns = 200 * MS,
            (1, 1),
            |mut engine| {
                turns(&mut engine, 2);
                let sent_ns = engine.in_flight.oldest().expect("it was sent").1;
                sleep(Duration::from_millis(250));
                let late_ns = if came_in_time { 199 * MS } else { 201 * MS };
                script(|script| script.response_ns = Some(sent_ns + late_ns));
                turns(&mut engine, 2);
                assert_eq!(engine.in_flight.count(), 0);
                assert_eq!(outcomes(engine), [(expected, 1)]);
            },
        );
    }
}

#[test]
fn a_send_does_not_use_a_connection_known_to_be_closed() {
    with_engine(
        |_| {},
        (2, 3),
        |mut engine| {
            idle_with_closed(&mut engine, &[0, 1]);
            turns(&mut engine, 1);
            assert_eq!(sent_over(), [0, 1, 2]);
            turns(&mut engine, 1);
            assert_eq!(outcomes(engine), [(Outcome::Ok, 3)]);
        },
    );
}

#[test]
fn a_send_that_becomes_due_during_a_read_precedes_the_next_read() {
    with_engine(
        |_| {},
        (2, 3),
        |mut engine| {
            idle_with_closed(&mut engine, &[0]);
            turns(&mut engine, 1);
            // The closed connection had the only event, and the next turn is just starting.
            engine.dispatch_due();
            assert_eq!(sent_over(), [0, 1, 1]);
        },
    );
}

#[test]
fn a_request_past_its_deadline_when_connected_is_not_sent() {
    with_engine(
        |plan| plan.deadline_ns = Some(300 * MS),
        (1, 1),
        |mut engine| {
            script(|script| script.connected_ns = engine.now_ns + 301 * MS);
            turns(&mut engine, 2);
            assert!(sent_over().is_empty());
            assert_eq!(outcomes(engine), [(Outcome::Dropped, 1)]);
        },
    );
}

#[test]
fn a_request_that_waited_past_its_deadline_is_dropped_and_not_unfinished() {
    let both_unfinished = vec![(Outcome::Unfinished, 2)];
    let one_dropped = vec![(Outcome::Dropped, 1), (Outcome::Unfinished, 1)];

    for (deadline_ns, expected) in [(None, both_unfinished), (Some(200 * MS), one_dropped)] {
        with_engine(
            |plan| plan.deadline_ns = deadline_ns,
            (2, 1),
            |mut engine| {
                turns(&mut engine, 1);
                sleep(Duration::from_millis(250));
                assert_eq!(outcomes(engine), expected);
            },
        );
    }
}

#[test]
fn a_user_sends_again_before_the_next_response_is_read() {
    use Action::{Read, Sent};
    with_engine(
        |_| {},
        (3, 3),
        |mut engine| {
            turns(&mut engine, 2);
            script(|script| {
                (script.response_ns, script.sends_again) = (Some(monotonic_ns()), true);
                script.done.clear();
                script
                    .peers
                    .iter()
                    .flatten()
                    .for_each(|mut peer| peer.write_all(b"x").expect("a response"));
            });
            turns(&mut engine, 1);
            let expected = [Read(0), Sent(0), Read(1), Sent(1), Read(2), Sent(2)];
            assert_eq!(script(|script| script.done.clone()), expected);
        },
    );
}

#[test]
fn cpu_time_used_during_a_sleep_does_not_count_as_sleep() {
    let waits = [
        (50 * MS, Some(50 * MS), true),
        (50 * MS, Some(0), false),
        (50 * MS, None, false),
        (0, None, true),
    ];
    for (sleep_ns, cpu_ns, is_short_of_sleep) in waits {
        with_engine(
            |_| {},
            (0, 1),
            |mut engine| {
                engine.pacer = Pacer::new(0).with_rt_budget(RtBudget::sleeping());
                engine.now_ns = monotonic_ns() - 50 * MS;
                engine.awake_since_ns = engine.now_ns;
                engine.waited(&Wait {
                    sleep_ns,
                    after_ns: engine.now_ns + 50 * MS,
                    cpu_ns,
                    count: 0,
                });
                assert_eq!(
                    engine.pacer.counts_sleep(0),
                    is_short_of_sleep,
                    "{sleep_ns} {cpu_ns:?}"
                );
            },
        );
    }
}

/// Runs a test with an engine that is late: the second of two arrivals finds the only slot taken by
/// the first.
fn with_late_engine(on_busy: OnBusy, test: impl FnOnce(Engine<'_, Scripted, Timestamps>, u64)) {
    with_engine(
        |_| {},
        (2, 1),
        |mut engine| {
            engine.config.policy.on_busy = on_busy;
            sleep(Duration::from_millis(50));
            engine.read_clock();
            let late_ns = 50 * MS;
            test(engine, late_ns);
        },
    );
}

#[test]
fn an_arrival_overlooked_while_a_slot_was_idle_counts_as_send_lag() {
    with_late_engine(OnBusy::Queue, |mut engine, late_ns| {
        turns(&mut engine, 1);
        script(|script| script.response_ns = Some(monotonic_ns()));
        for _ in 0..2 {
            script(|script| {
                script.peers[0]
                    .as_mut()
                    .expect("open")
                    .write_all(b"x")
                    .expect("a response")
            });
            turns(&mut engine, 1);
        }
        assert_eq!(sent_over(), [0, 0]);
        let recorder = engine.end().recorder;
        let lag = &recorder.sending().lag;
        let pool_wait = &recorder.measures().pool_wait;
        assert_eq!((lag.count(), pool_wait.count()), (2, 2));
        assert!(lag.min_ns() >= Some(late_ns - MS), "{:?}", lag.min_ns());
        let (longest_ns, waited_ns) = (recorder.measures().response.max_ns(), pool_wait.max_ns());
        assert!(
            waited_ns.map(|waited_ns| waited_ns + late_ns - MS) <= longest_ns,
            "{waited_ns:?} {longest_ns:?}"
        );
    });
}

#[test]
fn an_arrival_overlooked_while_a_slot_was_idle_is_not_dropped() {
    with_late_engine(OnBusy::Shed, |mut engine, _| {
        turns(&mut engine, 1);
        assert_eq!(engine.pending.len(), 1);
        engine.source.0.push_back(engine.slot_idle_until_ns + 1);
        turns(&mut engine, 2);
        assert_eq!(engine.pending.len(), 1);
        assert_eq!(
            outcomes(engine),
            [(Outcome::Dropped, 1), (Outcome::Unfinished, 2)]
        );
    });
}

#[test]
fn a_wait_for_a_connection_past_the_deadline_is_not_send_lag() {
    with_engine(
        |plan| plan.deadline_ns = Some(200 * MS),
        (2, 1),
        |mut engine| {
            turns(&mut engine, 1);
            sleep(Duration::from_millis(250));
            let recorder = engine.end().recorder;
            assert_eq!(recorder.phase(Phase::Measure).of(Outcome::Dropped), 1);
            assert!(recorder.sending().lag.max_ns() < Some(200 * MS));
        },
    );
}

#[test]
fn a_connection_with_more_to_read_is_read_once_more_per_turn() {
    with_engine(
        |_| {},
        (1, 1),
        |mut engine| {
            script(|script| (script.response_ns, script.is_endless) = (Some(0), true));
            turns(&mut engine, 2);
            for _ in 0..3 {
                script(|script| {
                    script.done.clear();
                    script
                        .peers
                        .iter()
                        .flatten()
                        .for_each(|mut peer| peer.write_all(b"x").expect("more"));
                });
                turns(&mut engine, 1);
                assert_eq!(engine.yielding.len(), 1);
                assert_eq!(
                    script(|script| script.done.len()),
                    2,
                    "once for the event and once for its turn"
                );
            }
        },
    );
}

#[test]
fn data_that_arrives_before_the_first_request_of_a_connection_is_read() {
    with_engine(
        |_| {},
        (1, 1),
        |mut engine| {
            script(|script| (script.connected_ns, script.response_ns) = (1, Some(0)));
            turns(&mut engine, 3);
            assert_eq!(
                script(|script| script.done.clone()),
                [Action::Sent(0), Action::Read(0)]
            );
            assert_eq!(outcomes(engine), [(Outcome::Ok, 1)]);
        },
    );
}

#[test]
fn a_request_that_becomes_due_during_a_stall_is_counted() {
    with_engine(
        |_| {},
        (1, 1),
        |mut engine| {
            turns(&mut engine, 2);
            let response_ns = monotonic_ns();
            script(|script| (script.response_ns, script.sends_again) = (Some(response_ns), true));
            engine.read_clock();
            engine
                .stalls
                .note(response_ns - MS, response_ns + 10 * MS, || 0);
            let before = engine.stalls.arrivals;
            engine.handle(Readiness {
                token: engine.lines.token(0),
                is_hangup: false,
                is_readable: true,
            });
            assert_eq!(engine.stalls.arrivals, before + 1);
        },
    );
}

#[test]
fn a_response_may_have_waited_through_a_stall_unless_the_loop_has_polled_since() {
    with_engine(
        |_| {},
        (1, 1),
        |mut engine| {
            turns(&mut engine, 2);
            script(|script| (script.response_ns, script.sends_again) = (Some(0), true));
            let readiness = Readiness {
                token: engine.lines.token(0),
                is_hangup: false,
                is_readable: true,
            };
            let now_ns = engine.read_clock();
            engine.stalls.note(now_ns - 10 * MS, now_ns, || 0);
            engine.handle(readiness);
            engine.serve_ready();
            assert_eq!(engine.stalls.responses, 1);
            // If the test itself is preempted, that is another stall.
            let has_run_undisturbed = (0..100).any(|_| {
                turns(&mut engine, 1);
                let before = (engine.stalls.count, engine.stalls.responses);
                engine.handle(readiness);
                engine.serve_ready();
                assert!(
                    engine.stalls.count > before.0 || engine.stalls.responses == before.1,
                    "{before:?}"
                );
                engine.stalls.count == before.0
            });
            assert!(has_run_undisturbed, "the host never lets the test run");
        },
    );
}

#[test]
fn arrivals_and_responses_delayed_by_a_stall_count_only_if_measured() {
    for (warmup_ns, expected) in [(0, (1, 1)), (30 * NS_PER_S, (0, 0))] {
        with_engine(
            |plan| plan.phases.warmup_ns = warmup_ns,
            (1, 1),
            |mut engine| {
                turns(&mut engine, 2);
                let now_ns = engine.read_clock();
                engine.stalls.note(now_ns - 10 * MS, now_ns, || 0);
                engine.source.0.push_back(now_ns - MS);
                script(|script| script.response_ns = Some(0));
                engine.handle(Readiness {
                    token: engine.lines.token(0),
                    is_hangup: false,
                    is_readable: true,
                });
                turns(&mut engine, 1);
                assert_eq!((engine.stalls.arrivals, engine.stalls.responses), expected);
            },
        );
    }
}

/// Runs a test with connections that have places for several requests.
fn with_places(
    places: usize,
    numbers: (usize, usize),
    test: impl FnOnce(Engine<'_, Scripted, Timestamps>),
) {
    let several = |plan: &mut LoadPlan| {
        (plan.http_version, plan.streams) = (HttpVersion::Http2, places);
        plan.timeout_ns = 2_000 * MS;
    };
    with_engine(several, numbers, test);
}

/// Lets all servers respond, and their clients notice.
fn respond(engine: &mut Engine<'_, Scripted, Timestamps>) {
    script(|script| {
        script.response_ns = Some(monotonic_ns());
        for mut peer in script.peers.iter().flatten() {
            // Some clients have closed their side.
            let _ = peer.write_all(b"x");
        }
    });
    turns(engine, 1);
}

#[test]
fn a_connection_is_filled_before_another_is_opened() {
    with_places(3, (5, 2), |mut engine| {
        turns(&mut engine, 1);
        assert_eq!(sent_over(), [0, 0, 0, 1, 1]);
        respond(&mut engine);
        assert_eq!(engine.in_flight.count(), 0);
        assert_eq!(outcomes(engine), [(Outcome::Ok, 5)]);
    });
}

#[test]
fn all_requests_wait_for_the_connection_that_is_being_opened() {
    with_places(3, (3, 2), |mut engine| {
        script(|script| script.connected_ns = 1);
        turns(&mut engine, 3);
        assert_eq!(sent_over(), [0, 0, 0]);
        respond(&mut engine);
        let recorder = engine.end().recorder;
        let counts = &recorder.connections;
        assert_eq!((counts.opened, counts.reused), (1, 2));
        let pool_wait = &recorder.measures().pool_wait;
        assert!(pool_wait.max_ns() > Some(0), "for the connection");
        assert_eq!(pool_wait.min_ns(), Some(0), "who opened it did not wait");
        assert_eq!(recorder.sending().waited, 0, "nothing was busy");
    });
}

#[test]
fn a_refused_connection_fails_each_waiting_request_once() {
    with_places(3, (3, 1), |mut engine| {
        script(|script| (script.connected_ns, script.is_refused) = (1, true));
        turns(&mut engine, 3);
        assert!(sent_over().is_empty());
        let recorder = engine.end().recorder;
        recorder.check_conservation().expect("nothing is lost");
        assert_eq!(recorder.phase(Phase::Measure).of(Outcome::Refused), 3);
        let causes = recorder.connect_failures.causes();
        assert_eq!(causes.values().sum::<u64>(), 1, "{causes:?}");
    });
}

#[test]
fn a_wait_for_a_stream_counts_as_a_wait_for_a_connection() {
    with_places(3, (4, 1), |mut engine| {
        script(|script| script.allowed = Some(2));
        turns(&mut engine, 1);
        assert_eq!((sent_over().len(), engine.pending.len()), (2, 2));
        respond(&mut engine);
        respond(&mut engine);
        assert_eq!((sent_over().len(), engine.pending.len()), (4, 0));
        let recorder = engine.end().recorder;
        assert_eq!(recorder.connections.fewest_streams, Some(2));
        assert_eq!(recorder.phase(Phase::Measure).of(Outcome::Ok), 4);
        assert_eq!(recorder.sending().waited, 2);
    });
}

#[test]
fn a_connection_is_reused_once_its_server_allows_a_stream_again() {
    with_places(1, (1, 1), |mut engine| {
        turns(&mut engine, 1);
        script(|script| script.allowed = Some(0));
        respond(&mut engine);
        assert_eq!(engine.lines.line(0).parked, [0]);
        script(|script| script.allowed = Some(1));
        engine.handle(Readiness {
            token: engine.lines.token(0),
            is_hangup: false,
            is_readable: true,
        });
        assert!(engine.lines.line(0).parked.is_empty());
    });
}

#[test]
fn a_slot_is_reused_once_more_streams_are_allowed() {
    with_places(3, (4, 1), |mut engine| {
        script(|script| script.allowed = Some(1));
        turns(&mut engine, 1);
        assert_eq!((sent_over().len(), engine.pending.len()), (1, 3));
        script(|script| script.allowed = Some(3));
        respond(&mut engine);
        assert_eq!((sent_over().len(), engine.pending.len()), (4, 0));
        respond(&mut engine);
        assert_eq!(outcomes(engine), [(Outcome::Ok, 4)]);
    });
}

#[test]
fn a_timeout_cancels_its_stream_and_keeps_the_connection_open() {
    with_places(2, (1, 1), |mut engine| {
        turns(&mut engine, 1);
        sleep(Duration::from_millis(1_500));
        engine.source.0.push_back(monotonic_ns());
        turns(&mut engine, 1);
        sleep(Duration::from_millis(1_000));
        turns(&mut engine, 1);
        assert_eq!(script(|script| script.cancelled.clone()), [0]);
        assert_eq!(engine.in_flight.count(), 1, "the other goes on");
        respond(&mut engine);
        assert_eq!(sent_over(), [0, 0]);
        let recorder = engine.end().recorder;
        assert_eq!(recorder.connections.opened, 1);
        let measured = recorder.phase(Phase::Measure);
        assert_eq!(
            (measured.of(Outcome::Timeout), measured.of(Outcome::Ok)),
            (1, 1)
        );
    });
}

#[test]
fn a_connection_that_ends_while_a_request_begins_ends_its_other_exchanges_too() {
    with_places(2, (1, 1), |mut engine| {
        turns(&mut engine, 1);
        assert_eq!(engine.in_flight.count(), 1);

        // No event reports what there is to read.
        script(|script| (script.is_ended, script.response_ns) = (true, Some(monotonic_ns())));
        engine.source.0.push_back(monotonic_ns());
        turns(&mut engine, 2);
        assert_eq!(engine.in_flight.count(), 0);
        assert_eq!(outcomes(engine), [(Outcome::Ok, 1), (Outcome::Reset, 1)]);
    });
}

#[test]
fn a_connection_that_takes_no_more_requests_ends_with_its_last_exchange() {
    with_places(2, (2, 1), |mut engine| {
        turns(&mut engine, 1);
        script(|script| script.is_going_away = true);
        // Those in progress end first, and the next one opens a connection.
        engine.source.0.push_back(monotonic_ns());
        respond(&mut engine);
        script(|script| script.is_going_away = false);
        respond(&mut engine);
        let sent = sent_over();
        assert_eq!((sent.len(), sent.last()), (3, Some(&1)));
        let recorder = engine.end().recorder;
        recorder.check_conservation().expect("nothing is lost");
        let counts = &recorder.connections;
        assert_eq!((counts.opened, counts.closed_by_server), (2, 1));
        assert_eq!(recorder.phase(Phase::Measure).of(Outcome::Ok), 3);
    });
}
