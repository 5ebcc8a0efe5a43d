//! Carries out a plan: one thread per generator, one runtime per thread, one record per runtime, merged at the end.

use std::rc::Rc;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::arrivals::Share;
use crate::clock::{NS_PER_MS, monotonic_ns, realtime_ns, thread_cpu_ns};
use crate::closed_loop::{self, ClosedSource};
use crate::connection::{Connection, HyperConnection};
use crate::error::LoadError;
use crate::lane::{Shared, Source};
use crate::open_loop::{self, BusyPolicy, OpenSource};
use crate::pacer::{Pacer, automatic_spin_window_ns};
use crate::plan::{ClosedLoop, LoadModel, LoadPlan, OpenLoop, Wire};
use crate::recorder::Recorder;
use crate::report::{LoadReport, RunFacts};
use crate::self_measure::{CostMeter, HostTicks, ThreadCost};
use crate::stop::StopToken;
use crate::target::Target;
use crate::wire::WireConnection;

/// The first intended send lies this far ahead, so that every thread is ready for it.
const LEAD_NS: u64 = 20 * NS_PER_MS;

/// Ready tasks run this many times before sockets are looked at again: cheaper than the runtime's default, and
/// harmless, because the runtime also looks whenever it has nothing else to do.
const EVENT_INTERVAL: u32 = 256;

/// Descriptors that the process needs for other things than connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// More connections than this are only opened when asked for: no backlog holds more.
const AUTOMATIC_MAX_CONNECTIONS: usize = 4_096;

/// The drain is looked at this often; nothing is paced by it.
const DRAIN_POLL: Duration = Duration::from_millis(2);

/// Carries out the plan and returns its report. Blocks; [`StopToken::stop`] from another thread ends it early.
///
/// # Errors
/// Any [`LoadError`]: a plan that cannot be carried out, a host without address, or a defect. Failed requests are
/// outcomes in the report, never errors.
pub fn run(plan: &LoadPlan, stop: &StopToken) -> Result<LoadReport, LoadError> {
    plan.validate()?;
    let target = Target::prepare(plan)?;
    let max_lanes = connection_cap(plan)?;
    let host_before = HostTicks::read();
    let (start_ns, start_realtime_ns) = (monotonic_ns() + LEAD_NS, realtime_ns());
    let threads: Vec<ThreadPlan> = (0..plan.threads)
        .map(|thread| ThreadPlan {
            plan: plan.clone(),
            target: target.clone(),
            thread,
            max_lanes: share_of(max_lanes, thread, plan.threads),
            start_ns,
        })
        .collect();
    let records = run_threads(threads, stop)?;
    let mut recorder = Recorder::new(plan, start_ns);
    records.iter().for_each(|record| recorder.merge(&record.recorder));
    recorder.check_conservation()?;
    let host_at_end = records.first().and_then(|record| record.host_at_end);
    let facts = RunFacts {
        cpu_ns: records.iter().map(|record| record.cpu_ns).sum(),
        costs: records.iter().map(|record| record.load).collect(),
        steal_share: host_at_end.zip(host_before).map(|(now, then)| now.steal_share_since(&then)),
        start_realtime_ns: start_realtime_ns + LEAD_NS,
        measured_ns: recorder.measured_ns(stop.stopped_ns().unwrap_or(u64::MAX)),
        is_interrupted: stop.is_stopped(),
        max_connections: max_lanes,
    };
    LoadReport::new(plan, &recorder, &facts)
}

/// What one thread needs to know.
struct ThreadPlan {
    plan: LoadPlan,
    target: Target,
    thread: usize,
    max_lanes: usize,
    start_ns: u64,
}

/// What one thread brings back.
struct ThreadRecord {
    recorder: Recorder,
    /// Cost from its start to its last send.
    load: ThreadCost,
    /// CPU time over its whole life.
    cpu_ns: u64,
    host_at_end: Option<HostTicks>,
}

type ThreadResult = Result<ThreadRecord, LoadError>;

fn run_threads(plans: Vec<ThreadPlan>, stop: &StopToken) -> Result<Vec<ThreadRecord>, LoadError> {
    let spawn = |plan: ThreadPlan| {
        let stop = stop.clone();
        thread::Builder::new()
            .name(format!("loadgen-{}", plan.thread))
            .spawn(move || run_thread(plan, stop))
            .map_err(|source| LoadError::System { action: "start a thread", source })
    };
    let handles: Vec<_> = plans.into_iter().map(spawn).collect();
    // Join all before the first failure is passed on: no thread may outlive the run.
    let results: Vec<ThreadResult> =
        handles.into_iter().map(|handle| handle?.join().map_err(|_| LoadError::ThreadPanicked)?).collect();
    results.into_iter().collect()
}

fn run_thread(own: ThreadPlan, stop: StopToken) -> ThreadResult {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()
        .map_err(|source| LoadError::System { action: "start its runtime", source })?;
    match own.plan.wire {
        Wire::Native => run_over::<WireConnection>(&runtime, own, stop),
        Wire::Hyper => run_over::<HyperConnection>(&runtime, own, stop),
    }
}

fn run_over<C: Connection + 'static>(runtime: &Runtime, own: ThreadPlan, stop: StopToken) -> ThreadResult {
    match own.plan.load.clone() {
        LoadModel::Open(open) => run_open::<C>(runtime, own, &open, stop),
        LoadModel::Closed(closed) => run_closed::<C>(runtime, own, &closed, stop),
    }
}

fn run_open<C: Connection + 'static>(
    runtime: &Runtime,
    own: ThreadPlan,
    open: &OpenLoop,
    stop: StopToken,
) -> ThreadResult {
    let threads = own.plan.threads;
    let peak_rate_per_s = open.profile.peak_rate_per_s();
    let ten_seconds_worth = (10.0 * peak_rate_per_s).ceil() as usize;
    let max_pending = open.max_pending.unwrap_or(ten_seconds_worth.max(10 * own.max_lanes)) / threads;
    let policy = BusyPolicy { on_busy: open.on_busy, max_lanes: own.max_lanes, max_pending };
    let source = OpenSource::new(policy, own.plan.seed, own.thread);
    let share = Share::new(open, own.plan.seed, &own.plan.phases, own.thread, threads);
    let thread_rate_per_s = peak_rate_per_s / threads as f64;
    let spin_window_ns =
        own.plan.spin_window_ns.unwrap_or_else(|| automatic_spin_window_ns(Some(thread_rate_per_s)));
    let start_ns = own.start_ns;
    run_lanes(runtime, own, source, spin_window_ns, stop, async move |shared, pacer| {
        open_loop::drive::<C>(shared, share, start_ns, pacer).await;
    })
}

fn run_closed<C: Connection + 'static>(
    runtime: &Runtime,
    own: ThreadPlan,
    closed: &ClosedLoop,
    stop: StopToken,
) -> ThreadResult {
    let users = share_of(closed.connections, own.thread, own.plan.threads);
    let end_ns = own.start_ns + own.plan.phases.load_ns();
    let source = ClosedSource::new(closed.think_time_ns, end_ns, own.plan.seed, own.thread, stop.clone());
    let spin_window_ns = own.plan.spin_window_ns.unwrap_or_else(|| automatic_spin_window_ns(None));
    let start_ns = own.start_ns;
    run_lanes(runtime, own, source, spin_window_ns, stop, async move |shared, pacer| {
        closed_loop::drive::<C>(shared, users, start_ns, pacer).await;
    })
}

/// Runs one load model's `drive` to its end on this thread, waits for what is still out, and returns the record.
fn run_lanes<S: Source + 'static>(
    runtime: &Runtime,
    own: ThreadPlan,
    source: S,
    spin_window_ns: u64,
    stop: StopToken,
    drive: impl AsyncFnOnce(&Rc<Shared<S>>, &mut Pacer),
) -> ThreadResult {
    let (meter, cpu_before_ns) = (CostMeter::start(), thread_cpu_ns());
    let plan = Rc::new(own.plan);
    let shared = Rc::new(Shared::new(plan, own.target, own.start_ns, source, stop.clone()));
    let tasks = LocalSet::new();
    let (load, host_at_end) = tasks.block_on(runtime, async {
        let mut pacer = Pacer::new(spin_window_ns, stop)?;
        drive(&shared, &mut pacer).await;
        // Before the drain, whose idle waiting would make a saturated generator look relaxed.
        let at_end = (meter.stop(pacer.spin_cpu_ns()), HostTicks::read());
        drain(&shared).await;
        Ok::<_, LoadError>(at_end)
    })?;
    shared.end_unfinished();
    // Dropping the tasks closes the connections that are still open.
    drop(tasks);
    let recorder = shared.recorder.borrow().clone();
    Ok(ThreadRecord { recorder, load, cpu_ns: thread_cpu_ns() - cpu_before_ns, host_at_end })
}

/// Waits for the answers that are still out, no longer than the plan allows.
async fn drain<S: Source + 'static>(shared: &Rc<Shared<S>>) {
    let until_ns = monotonic_ns() + shared.plan.drain_ns();
    while shared.is_busy() && monotonic_ns() < until_ns && !shared.stop.is_stopped() {
        tokio::time::sleep(DRAIN_POLL).await;
    }
}

/// The part of `total` that falls to `part` of `parts`, as even as whole numbers allow.
fn share_of(total: usize, part: usize, parts: usize) -> usize {
    total / parts + usize::from(part < total % parts)
}

/// The most connections this load may hold, within what the process may open.
fn connection_cap(plan: &LoadPlan) -> Result<usize, LoadError> {
    let descriptors = raise_descriptor_limit();
    let possible = usize::try_from(descriptors.saturating_sub(SPARE_DESCRIPTORS)).unwrap_or(usize::MAX);
    let asked = match &plan.load {
        LoadModel::Open(open) => open.max_connections,
        LoadModel::Closed(closed) => Some(closed.connections),
    };
    match asked {
        Some(asked) if asked > possible => Err(LoadError::Plan(format!(
            "{asked} connections need more descriptors than the {descriptors} this process may open; \
             raise the limit with: ulimit -n {}",
            asked as u64 + SPARE_DESCRIPTORS
        ))),
        Some(asked) => Ok(asked),
        None => Ok(AUTOMATIC_MAX_CONNECTIONS.max(plan.threads).min(possible)),
    }
}

/// Raises the soft limit on descriptors to the hard one; returns what holds.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(u64::MAX);
    }
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, parts) in [(10, 3), (3, 3), (4_096, 7)] {
            let shares: Vec<usize> = (0..parts).map(|part| share_of(total, part, parts)).collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(shares.iter().max().zip(shares.iter().min()).is_some_and(|(max, min)| max - min <= 1));
        }
    }
}
