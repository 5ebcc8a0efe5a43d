//! What one thread does of a load: its share of the arrivals, over connections of one kind, by an
//! engine of its own.

use crate::arrivals::closed_loop::{ClosedPlan, ClosedSource};
use crate::arrivals::draw::Draw;
use crate::arrivals::open_loop::OpenSource;
use crate::arrivals::schedule::Share;
use crate::arrivals::sessions::SessionSource;
use crate::arrivals::source::Source;
use crate::base::clock::thread_cpu_ns;
use crate::base::error::LoadError;
use crate::base::random::Stream;
use crate::base::stop::StopToken;
use crate::engine::descriptors::have_own_table;
use crate::engine::event_loop::{BusyPolicy, Engine, Orders};
use crate::engine::idle_slots::IdleSlots;
use crate::facts::cost::{CostMeter, HostTicks, ThreadCost};
use crate::http::connection::Connection;
use crate::http::hyper_http1::HyperConnection;
use crate::http::hyper_http2::Http2Connection;
use crate::http::native::WireConnection;
use crate::http::target::Target;
use crate::pacing::pacer::Pacer;
use crate::plan::{ClosedLoop, HttpVersion, LoadModel, LoadPlan, OnBusy, OpenLoop, Wire};
use crate::record::possible_ends::Course;
use crate::record::recorder::Recorder;

/// What one thread needs to know.
pub(crate) struct ThreadPlan {
    pub plan: LoadPlan,
    pub target: Target,
    pub thread: usize,
    pub max_slots: usize,
    pub pacer: Pacer,
    pub start_ns: u64,
    pub course: Option<Course>,
}

/// What one thread brings back.
pub(crate) struct ThreadRecord {
    pub recorder: Recorder,
    /// Cost from its start to the end of the load's time.
    pub load: ThreadCost,
    /// CPU time over its whole life.
    pub cpu_ns: u64,
    pub host_at_end: Option<HostTicks>,
}

pub(crate) type ThreadResult = Result<ThreadRecord, LoadError>;

/// Carries out its share of the load.
pub(crate) fn run_thread(own: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match (own.plan.http_version, own.plan.wire) {
        (HttpVersion::Http1, Wire::Native) => run_over::<WireConnection>(own, stop),
        (HttpVersion::Http1, Wire::Hyper) => run_over::<HyperConnection>(own, stop),
        (HttpVersion::Http2, _) => run_over::<Http2Connection>(own, stop),
    }
}

fn run_over<C: Connection>(own: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match &own.plan.load {
        LoadModel::Open(open) if !own.plan.sessions.is_empty() => run_engine::<C, _>(
            own,
            stop,
            open_policy(own, open),
            session_source(own, open, stop),
        ),
        LoadModel::Open(open) => {
            run_engine::<C, _>(own, stop, open_policy(own, open), open_source(own, open))
        }
        LoadModel::Closed(closed) => {
            let users = share_of(closed.connections, own.thread, own.plan.threads);
            let policy = BusyPolicy {
                on_busy: OnBusy::Queue,
                max_slots: users,
                max_pending: 0,
            };
            run_engine::<C, _>(own, stop, policy, closed_source(own, closed, stop))
        }
    }
}

fn open_policy(own: &ThreadPlan, open: &OpenLoop) -> BusyPolicy {
    let threads = own.plan.threads;
    let ten_seconds_worth =
        (10.0 * open.profile.peak_rate_per_s() / threads as f64).ceil() as usize;
    let asked = open
        .max_pending
        .map(|total| share_of(total, own.thread, threads));
    let max_pending = asked.unwrap_or(ten_seconds_worth.max(10 * own.max_slots));
    BusyPolicy {
        on_busy: open.on_busy,
        max_slots: own.max_slots,
        max_pending,
    }
}

fn open_source(own: &ThreadPlan, open: &OpenLoop) -> OpenSource {
    let plan = &own.plan;
    let share = Share::new(
        open,
        plan.seed,
        &plan.longest_phases(),
        own.thread,
        plan.threads,
    );
    let ends = own.course.as_ref().map(Course::ends);
    OpenSource::new(share, draw(plan, Stream::Requests), own.start_ns, ends)
}

fn session_source<'a>(own: &'a ThreadPlan, open: &OpenLoop, stop: &StopToken) -> SessionSource<'a> {
    let plan = &own.plan;
    let share = Share::new(open, plan.seed, &plan.phases, own.thread, plan.threads);
    SessionSource::new(
        plan,
        (share, own.thread),
        own.start_ns,
        &own.target.requests,
        stop.clone(),
    )
}

fn closed_source(own: &ThreadPlan, closed: &ClosedLoop, stop: &StopToken) -> ClosedSource {
    let plan = ClosedPlan {
        users: closed.connections,
        think_time_ns: closed.think_time_ns,
        start_ns: own.start_ns,
        end_ns: own.start_ns + own.plan.phases.load_ns(),
        seed: own.plan.seed,
        thread: own.thread,
        threads: own.plan.threads,
    };
    ClosedSource::new(
        &plan,
        draw(&own.plan, Stream::UserRequests(own.thread)),
        stop.clone(),
    )
}

fn draw(plan: &LoadPlan, stream: Stream) -> Draw {
    let weights: Vec<f64> = plan.targets.iter().map(|target| target.weight).collect();
    Draw::new(&weights, plan.seed, stream)
}

/// Runs one thread's load to its end, waits for what is still out, and returns the record.
fn run_engine<C: Connection, S: Source>(
    own: &ThreadPlan,
    stop: &StopToken,
    policy: BusyPolicy,
    source: S,
) -> ThreadResult {
    let (meter, cpu_before_ns) = (CostMeter::start(), thread_cpu_ns());
    have_own_table();
    let plan = &own.plan;
    let orders = Orders {
        plan,
        target: &own.target,
        policy,
        stop: stop.clone(),
        course: own.course.clone(),
    };
    let idle = IdleSlots::new(plan.seed, own.thread);
    let mut engine = Engine::<C, S>::new(orders, source, own.pacer.clone(), idle, own.start_ns)?;
    engine.drive()?;
    // Before the drain, whose idle waiting would make a saturated generator look relaxed.
    let (load, host_at_end) = (meter.stop(engine.pacer()), HostTicks::read());
    engine.drain()?;
    let ended = engine.end();
    let load = ThreadCost {
        stalls: ended.stalls,
        stamp_doubts: ended.stamp_doubts,
        ..load
    };
    Ok(ThreadRecord {
        recorder: ended.recorder,
        load,
        cpu_ns: thread_cpu_ns() - cpu_before_ns,
        host_at_end,
    })
}

/// The part of `total` that falls to `part` of `parts`, as even as whole numbers allow.
pub(crate) fn share_of(total: usize, part: usize, parts: usize) -> usize {
    total / parts + usize::from(part < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, parts) in [(10, 3), (3, 3), (4_096, 7)] {
            let shares: Vec<usize> = (0..parts)
                .map(|part| share_of(total, part, parts))
                .collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(
                shares
                    .iter()
                    .max()
                    .zip(shares.iter().min())
                    .is_some_and(|(max, min)| max - min <= 1)
            );
        }
    }
}
