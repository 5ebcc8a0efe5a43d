//! Carries out a plan: one engine per thread, one record per engine, merged at the end.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::sched_getaffinity;

use crate::arrivals::{Share, Stream};
use crate::clock::{NS_PER_MS, monotonic_ns, realtime_ns, thread_cpu_ns};
use crate::closed_loop::{ClosedPlan, ClosedSource};
use crate::connection::Connection;
use crate::draw::Draw;
use crate::engine::{BusyPolicy, Engine, Orders};
use crate::error::LoadError;
use crate::http2_connection::Http2Connection;
use crate::hyper_connection::HyperConnection;
use crate::idle::IdleSlots;
use crate::idle_time::IdleWatch;
use crate::looks::{Course, Ends, look};
use crate::open_loop::OpenSource;
use crate::pacer::{Pacer, Spin, SpinReason};
use crate::plan::{ClosedLoop, HttpVersion, LoadModel, LoadPlan, OnBusy, OpenLoop, Phases, Wire};
use crate::ports::SourcePorts;
use crate::recorder::Recorder;
use crate::report::LoadReport;
use crate::run_facts::{RunFacts, ThreadTail};
use crate::self_measure::{CostMeter, HostTicks, ThreadCost};
use crate::sessions::SessionSource;
use crate::source::Source;
use crate::stop::StopToken;
use crate::target::Target;
use crate::throttling::throttled_periods;
use crate::tracking::TrackedConnections;
use crate::wire::WireConnection;

/// The first intended send lies this far ahead, so that every thread is ready for it.
const LEAD_NS: u64 = 20 * NS_PER_MS;

/// Descriptors that the process needs for other things than connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// More connections than this are only opened when asked for: no backlog holds more.
const AUTOMATIC_MAX_CONNECTIONS: usize = 4_096;

/// Carries out the plan and returns its report. Blocks; [`StopToken::stop`] from another thread ends it early.
///
/// # Errors
/// Any [`LoadError`]: a plan that cannot be carried out, a host without address, or a defect. Failed requests are
/// outcomes in the report, never errors.
pub fn run(plan: &LoadPlan, stop: &StopToken) -> Result<LoadReport, LoadError> {
    prepare(plan)?.run(stop)
}

/// A load that could begin now: its plan is sound, its host has an address, its limits suffice.
pub struct PreparedLoad {
    plan: LoadPlan,
    target: Target,
    max_slots: usize,
    source_ports: Option<SourcePorts>,
}

/// Checks everything that can be checked before the first connection is opened.
///
/// # Errors
/// As [`run`].
pub fn prepare(plan: &LoadPlan) -> Result<PreparedLoad, LoadError> {
    plan.validate()?;
    let mut target = Target::prepare(plan)?;
    let (asked, possible) = connection_cap(plan)?;
    let (max_slots, source_ports) = target.route.fit_ports(plan, asked, possible)?;
    Ok(PreparedLoad { plan: plan.clone(), target, max_slots, source_ports })
}

impl PreparedLoad {
    /// What may spoil this load, with its cure, as far as it can be foreseen.
    #[must_use]
    pub fn remark(&self) -> Option<&str> {
        self.source_ports.as_ref()?.remark.as_deref()
    }

    /// Carries it out.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(self, stop: &StopToken) -> Result<LoadReport, LoadError> {
        carry_out(self, stop)
    }
}

fn carry_out(load: PreparedLoad, stop: &StopToken) -> Result<LoadReport, LoadError> {
    let PreparedLoad { plan, target, max_slots, source_ports } = load;
    let plan = &plan;
    let peak_rate_per_s = match &plan.load {
        LoadModel::Open(open) => Some(open.profile.peak_rate_per_s()),
        LoadModel::Closed(_) => None,
    };
    let thread_rate_per_s = peak_rate_per_s.map(|rate| rate / plan.threads as f64);
    let has_own_core = !plan.shares_cores && has_core_for_each(plan.threads);
    let spin = Spin::decide(plan.spin_window_ns, thread_rate_per_s, has_own_core);
    let idle_watch = (spin.reason == SpinReason::Automatic).then(|| IdleWatch::start(plan.threads));
    let pacer = Pacer::new(spin.window_ns).within(idle_watch.as_ref().map(IdleWatch::seen));
    let (host_before, throttled_before) = (HostTicks::read(), throttled_periods());
    let tracking_before = target.route.tracking_table();
    let (start_ns, start_realtime_ns) = (monotonic_ns() + LEAD_NS, realtime_ns());
    let ends = Ends::of(plan, start_ns);
    let (shows, shown) = mpsc::channel();
    let threads: Vec<ThreadPlan> = (0..plan.threads)
        .map(|thread| ThreadPlan {
            plan: plan.clone(),
            target: target.clone(),
            thread,
            max_slots: share_of(max_slots, thread, plan.threads),
            pacer: pacer.clone(),
            start_ns,
            course: ends.as_ref().map(|ends| Course::new(Arc::clone(ends), Some(shows.clone()))),
        })
        .collect();
    drop(shows);
    let mut records = run_threads(threads, stop, || {
        if let Some((asked, ends)) = plan.precision.as_ref().zip(ends.as_deref()) {
            look(asked, ends, plan.threads, &shown);
        }
    })?;
    let watch_cpu_ns = idle_watch.map_or(0, IdleWatch::end);
    let recorder = merged(plan, start_ns, ends.as_ref(), &mut records);
    recorder.check_conservation()?;
    let host_at_end = records.first().and_then(|record| record.host_at_end);
    let facts = RunFacts {
        cpu_ns: records.iter().map(|record| record.cpu_ns).sum::<u64>() + watch_cpu_ns,
        costs: records.iter().map(|record| record.load).collect(),
        steal_share: host_at_end.zip(host_before).map(|(now, then)| now.steal_share_since(&then)),
        spin,
        throttled_periods: throttled_periods().zip(throttled_before).map(|(now, then)| now.saturating_sub(then)),
        start_realtime_ns: start_realtime_ns + LEAD_NS,
        measured_ns: recorder.measured_ns(stop.stopped_ns().unwrap_or(u64::MAX)),
        is_interrupted: stop.is_stopped(),
        max_connections: max_slots,
        source_ports,
        tracked: tracking_before
            .zip(target.route.tracking_table())
            .map(|(before, after)| TrackedConnections::between(before, after)),
        thread_tails: thread_tails(&records),
    };
    let measure_ns = ends.map_or(plan.phases.measure_ns, |ends| ends.length_ns());
    let carried_out = LoadPlan { phases: Phases { measure_ns, ..plan.phases.clone() }, ..plan.clone() };
    let mut report = LoadReport::new(&carried_out, &recorder, &facts)?;
    // A plan is what was asked for.
    report.plan = plan.clone();
    Ok(report)
}

/// The record of the whole load. Its measurement ended at one instant for all threads, whether or not all came to it.
fn merged(plan: &LoadPlan, start_ns: u64, ends: Option<&Arc<Ends>>, records: &mut [ThreadRecord]) -> Recorder {
    let course = ends.map(|ends| Course::new(Arc::clone(ends), None));
    let mut all = Recorder::new(plan, start_ns).on(course);
    all.settle();
    for record in records {
        record.recorder.settle();
        all.merge(&record.recorder);
    }
    all
}

/// What each of several threads measured; one thread is all of them.
fn thread_tails(records: &[ThreadRecord]) -> Vec<ThreadTail> {
    let is_several = records.len() > 1;
    let several = records.iter().filter(|_| is_several);
    several.map(|record| ThreadTail::of(&record.recorder.measures().response)).collect()
}

/// What one thread needs to know.
struct ThreadPlan {
    plan: LoadPlan,
    target: Target,
    thread: usize,
    max_slots: usize,
    pacer: Pacer,
    start_ns: u64,
    course: Option<Course>,
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

/// Runs all threads to their end, and `meanwhile` beside them.
fn run_threads(
    plans: Vec<ThreadPlan>,
    stop: &StopToken,
    meanwhile: impl FnOnce(),
) -> Result<Vec<ThreadRecord>, LoadError> {
    let spawn = |plan: ThreadPlan| {
        let stop = stop.clone();
        thread::Builder::new()
            .name(format!("loadgen-{}", plan.thread))
            .spawn(move || {
                let unless_done = StopUnlessDone(Some(&stop));
                let record = run_thread(&plan, &stop)?;
                unless_done.done();
                Ok(record)
            })
            .map_err(|source| LoadError::System { action: "start a thread", source })
    };
    let handles: Vec<_> = plans.into_iter().map(spawn).collect();
    if handles.iter().any(Result::is_err) {
        stop.stop();
    }
    meanwhile();
    // Join all before the first failure is passed on: no thread may outlive the run.
    let results: Vec<ThreadResult> =
        handles.into_iter().map(|handle| handle?.join().map_err(|_| LoadError::ThreadPanicked)?).collect();
    results.into_iter().collect()
}

/// Stops all threads where one fails or panics: of what the others do nothing will be told.
struct StopUnlessDone<'a>(Option<&'a StopToken>);

impl StopUnlessDone<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.0 {
            stop.stop();
        }
    }
}

fn run_thread(own: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match (own.plan.http_version, own.plan.wire) {
        (HttpVersion::Http1, Wire::Native) => run_over::<WireConnection>(own, stop),
        (HttpVersion::Http1, Wire::Hyper) => run_over::<HyperConnection>(own, stop),
        (HttpVersion::Http2, _) => run_over::<Http2Connection>(own, stop),
    }
}

fn run_over<C: Connection>(own: &ThreadPlan, stop: &StopToken) -> ThreadResult {
    match &own.plan.load {
        LoadModel::Open(open) if !own.plan.sessions.is_empty() => {
            run_engine::<C, _>(own, stop, open_policy(own, open), session_source(own, open, stop))
        }
        LoadModel::Open(open) => run_engine::<C, _>(own, stop, open_policy(own, open), open_source(own, open)),
        LoadModel::Closed(closed) => {
            let users = share_of(closed.connections, own.thread, own.plan.threads);
            let policy = BusyPolicy { on_busy: OnBusy::Queue, max_slots: users, max_pending: 0 };
            run_engine::<C, _>(own, stop, policy, closed_source(own, closed, stop))
        }
    }
}

fn open_policy(own: &ThreadPlan, open: &OpenLoop) -> BusyPolicy {
    let threads = own.plan.threads;
    let ten_seconds_worth = (10.0 * open.profile.peak_rate_per_s() / threads as f64).ceil() as usize;
    let asked = open.max_pending.map(|total| share_of(total, own.thread, threads));
    let max_pending = asked.unwrap_or(ten_seconds_worth.max(10 * own.max_slots));
    BusyPolicy { on_busy: open.on_busy, max_slots: own.max_slots, max_pending }
}

fn open_source(own: &ThreadPlan, open: &OpenLoop) -> OpenSource {
    let plan = &own.plan;
    let share = Share::new(open, plan.seed, &plan.longest_phases(), own.thread, plan.threads);
    let ends = own.course.as_ref().map(Course::ends);
    OpenSource::new(share, draw(plan, Stream::Requests), own.start_ns, ends)
}

fn session_source<'a>(own: &'a ThreadPlan, open: &OpenLoop, stop: &StopToken) -> SessionSource<'a> {
    let plan = &own.plan;
    let share = Share::new(open, plan.seed, &plan.phases, own.thread, plan.threads);
    SessionSource::new(plan, (share, own.thread), own.start_ns, &own.target.requests, stop.clone())
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
    ClosedSource::new(&plan, draw(&own.plan, Stream::UserRequests(own.thread)), stop.clone())
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
    let plan = &own.plan;
    let orders = Orders { plan, target: &own.target, policy, stop: stop.clone(), course: own.course.clone() };
    let idle = IdleSlots::new(plan.seed, own.thread);
    let mut engine = Engine::<C, S>::new(orders, source, own.pacer.clone(), idle, own.start_ns)?;
    engine.drive()?;
    // Before the drain, whose idle waiting would make a saturated generator look relaxed.
    let (load, host_at_end) = (meter.stop(engine.pacer()), HostTicks::read());
    engine.drain()?;
    let ended = engine.end();
    let load = ThreadCost { hiccups: ended.hiccups, stamp_doubts: ended.stamp_doubts, ..load };
    Ok(ThreadRecord { recorder: ended.recorder, load, cpu_ns: thread_cpu_ns() - cpu_before_ns, host_at_end })
}

/// The part of `total` that falls to `part` of `parts`, as even as whole numbers allow.
fn share_of(total: usize, part: usize, parts: usize) -> usize {
    total / parts + usize::from(part < total % parts)
}

/// Whether each generator thread has a core that it does not take from the server: more cores than threads, or cores
/// that were set aside for it.
fn has_core_for_each(threads: usize) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let allowed = allowed.count() as usize;
    let configured = std::fs::read_to_string("/proc/stat")
        .map(|text| text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count());
    allowed > threads || configured.is_ok_and(|all| allowed < all && allowed >= threads)
}

/// Connections that the plan asks for by number, and the most that are opened without: both within what the process may
/// open.
fn connection_cap(plan: &LoadPlan) -> Result<(Option<usize>, usize), LoadError> {
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
        _ => Ok((asked, AUTOMATIC_MAX_CONNECTIONS.max(plan.threads).min(possible))),
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
    fn a_thread_that_fails_stops_the_others_and_one_that_is_done_does_not() {
        let stop = StopToken::new();
        StopUnlessDone(Some(&stop)).done();
        assert!(!stop.is_stopped());
        let failing = || -> Result<(), LoadError> {
            let _unless_done = StopUnlessDone(Some(&stop));
            Err(LoadError::ThreadPanicked)
        };
        failing().expect_err("a failure");
        assert!(stop.is_stopped());
    }

    #[test]
    fn shares_add_up() {
        for (total, parts) in [(10, 3), (3, 3), (4_096, 7)] {
            let shares: Vec<usize> = (0..parts).map(|part| share_of(total, part, parts)).collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(shares.iter().max().zip(shares.iter().min()).is_some_and(|(max, min)| max - min <= 1));
        }
    }
}
