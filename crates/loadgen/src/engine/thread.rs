//! The part of a load that one thread runs: its share of the arrivals, with its own engine, over
//! one kind of connection.

use serde::{Deserialize, Serialize};

use crate::arrivals::closed_loop::{ClosedPlan, ClosedSource};
use crate::arrivals::draw::Draw;
use crate::arrivals::filled_requests::FilledRequests;
use crate::arrivals::open_loop::{Choice, OpenSource};
use crate::arrivals::schedule::Share;
use crate::arrivals::sessions::SessionSource;
use crate::arrivals::source::Source;
use crate::base::clock::thread_cpu_ns;
use crate::base::error::LoadError;
use crate::base::random::Stream;
use crate::base::stop::StopToken;
use crate::engine::event_loop::{BusyPolicy, Engine, EngineConfig};
use crate::engine::file_descriptors::use_private_table;
use crate::engine::idle_slots::IdleSlots;
use crate::facts::cost::{CostMeter, HostTicks, ThreadCost};
use crate::http::connection::Connection;
use crate::http::http2::connection::Http2Connection;
use crate::http::hyper_http1::HyperConnection;
use crate::http::native::WireConnection;
use crate::http::target::Target;
use crate::pacing::pacer::Pacer;
use crate::plan::portion::Portion;
use crate::plan::{
    ClosedLoop, HttpVersion, Keepalive, LoadModel, LoadPlan, LoadProfile, OnBusy, OpenLoop, Phases,
    Replay, Wire,
};
use crate::record::possible_ends::EndCursor;
use crate::record::progress::{Progress, ProgressFile};
use crate::record::recorder::Recorder;

/// The input of one thread.
pub(crate) struct ThreadPlan {
    pub plan: LoadPlan,
    pub target: Target,
    pub portion: Portion,
    pub max_connections: usize,
    pub pacer: Pacer,
    pub start_ns: u64,
    pub cursor: Option<EndCursor>,
    pub progress: Option<ProgressFile>,
}

/// The result of one thread.
#[derive(Serialize, Deserialize)]
pub(crate) struct ThreadRecord {
    pub recorder: Recorder,
    /// When the last of a limited number of requests ended, if they all did.
    pub finished_ns: Option<u64>,
    /// Cost from its start to the end of the load's time.
    pub load: ThreadCost,
    /// CPU time over its whole life.
    pub cpu_ns: u64,
    pub host_at_end: Option<HostTicks>,
}

pub(crate) type ThreadResult = Result<ThreadRecord, LoadError>;

/// Runs the thread's share of the load.
pub(crate) fn run_thread(input: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match (input.plan.http_version, input.plan.wire) {
        (HttpVersion::Http2, _) => run_over::<Http2Connection>(input, stop),
        (_, Wire::Native) => run_over::<WireConnection>(input, stop),
        (_, Wire::Hyper) => run_over::<HyperConnection>(input, stop),
    }
}

fn run_over<C: Connection>(input: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match &input.plan.load {
        LoadModel::Open(open) if !input.plan.sessions.is_empty() => run_engine::<C, _>(
            input,
            stop,
            open_policy(input, open),
            session_source(input, open, stop),
        ),
        LoadModel::Open(open) => run_engine::<C, _>(
            input,
            stop,
            open_policy(input, open),
            open_source(input, open),
        ),
        LoadModel::Closed(closed) => {
            let max_connections = input.portion.of(closed.connections);
            let policy = BusyPolicy {
                on_busy: OnBusy::Queue,
                max_connections,
                max_pending: 0,
            };
            run_engine::<C, _>(input, stop, policy, closed_source(input, closed, stop))
        }
    }
}

fn open_policy(input: &ThreadPlan, open: &OpenLoop) -> BusyPolicy {
    let ten_seconds_worth =
        (10.0 * open.profile.peak_rate_per_s() / input.portion.count as f64).ceil() as usize;
    let requested = open.max_pending.map(|total| input.portion.of(total));
    let max_pending = requested.unwrap_or(ten_seconds_worth.max(10 * input.max_connections));

    BusyPolicy {
        on_busy: open.on_busy,
        max_connections: input.max_connections,
        max_pending,
    }
}

fn open_source<'a>(input: &'a ThreadPlan, open: &OpenLoop) -> OpenSource<'a> {
    let plan = &input.plan;
    let share = share(input, open, &plan.longest_phases());
    let ends = input.cursor.as_ref().map(EndCursor::ends);

    OpenSource::new(share, choice(plan, open), input.start_ns, ends)
        .with_filled_requests(filled_requests(input))
}

fn share(input: &ThreadPlan, open: &OpenLoop, phases: &Phases) -> Share {
    let Portion { index, count } = input.portion;
    Share::new(open, input.plan.seed, phases, index, count)
}

fn filled_requests(input: &ThreadPlan) -> Option<FilledRequests<'_>> {
    let target = &input.target;
    let may_be_last = target.shortest_keepalive(&input.plan) != Keepalive::On;
    FilledRequests::of(&target.requests, may_be_last)
}

fn choice(plan: &LoadPlan, open: &OpenLoop) -> Choice {
    match &open.profile {
        LoadProfile::Replay(Replay {
            requests: Some(order),
            ..
        }) => Choice::Recorded(order.clone()),
        _ => Choice::Drawn(draw(plan, Stream::Requests)),
    }
}

fn session_source<'a>(
    input: &'a ThreadPlan,
    open: &OpenLoop,
    stop: &StopToken,
) -> SessionSource<'a> {
    let plan = &input.plan;
    SessionSource::new(
        plan,
        (share(input, open, &plan.phases), input.portion.index),
        input.start_ns,
        &input.target.requests,
        stop.clone(),
    )
}

fn closed_source<'a>(
    input: &'a ThreadPlan,
    closed: &ClosedLoop,
    stop: &StopToken,
) -> ClosedSource<'a> {
    let share = |requests: u64| input.portion.of(requests as usize) as u64;
    let plan = ClosedPlan {
        connections: closed.connections,
        users_per_connection: input.plan.streams,
        think_time_ns: closed.think_time_ns,
        requests: input.plan.requests.map(share),
        start_ns: input.start_ns,
        end_ns: input.start_ns + input.plan.phases.load_ns(),
        seed: input.plan.seed,
        thread: input.portion.index,
        threads: input.portion.count,
    };
    ClosedSource::new(
        &plan,
        draw(&input.plan, Stream::UserRequests(input.portion.index)),
        stop.clone(),
    )
    .with_filled_requests(filled_requests(input))
}

fn draw(plan: &LoadPlan, stream: Stream) -> Draw {
    let weights: Vec<f64> = plan.targets.iter().map(|target| target.weight).collect();
    Draw::new(&weights, plan.seed, stream)
}

/// Runs one thread's load to its end, waits for outstanding responses, and returns the record.
fn run_engine<C: Connection, S: Source>(
    input: &ThreadPlan,
    stop: &StopToken,
    policy: BusyPolicy,
    source: S,
) -> ThreadResult {
    let mut pacer = input.pacer.clone();
    pacer.take_priority();
    let meter = CostMeter::start();
    let cpu_before_ns = thread_cpu_ns();
    use_private_table();
    let plan = &input.plan;
    let config = EngineConfig {
        plan,
        target: &input.target,
        policy,
        stop: stop.clone(),
        cursor: input.cursor.clone(),
        progress: input
            .progress
            .as_ref()
            .and_then(|file| Progress::open(file, input.portion.index)),
    };
    let idle = IdleSlots::new(plan.seed, input.portion.index);
    let mut engine = Engine::<C, S>::new(config, source, pacer, idle, input.start_ns)?;
    engine.drive()?;
    // Before the drain, whose idle waiting would make a saturated generator look less busy.
    let load = meter.stop(engine.pacer());
    let host_at_end = HostTicks::read();
    engine.drain()?;
    let ended = engine.end();
    let load = ThreadCost {
        stalls: ended.stalls,
        rejected_timestamps: ended.rejected_timestamps,
        ..load
    };

    Ok(ThreadRecord {
        recorder: ended.recorder,
        finished_ns: ended.finished_ns,
        load,
        cpu_ns: thread_cpu_ns() - cpu_before_ns,
        host_at_end,
    })
}
