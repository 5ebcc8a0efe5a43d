//! Runs a plan: one engine per thread, one record per engine, merged at the end.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::base::clock::{NS_PER_MS, monotonic_ns, realtime_ns};
use crate::base::error::LoadError;
use crate::base::stop::StopToken;
use crate::engine::thread::{ThreadPlan, ThreadRecord, ThreadResult, run_thread, share_of};
use crate::facts::cost::HostTicks;
use crate::facts::run::{RunFacts, ThreadTail};
use crate::facts::throttling::throttled_periods;
use crate::http::target::Target;
use crate::judge::stopping_rule;
use crate::net::connection_cap::connection_cap;
use crate::net::conntrack::{TrackedConnections, TrackingTable};
use crate::net::ports::SourcePorts;
use crate::pacing::decision::Pacing;
use crate::pacing::pacer::Pacer;
use crate::plan::{LoadPlan, Phases};
use crate::record::possible_ends::{EndCursor, Ends};
use crate::record::progress::ProgressFile;
use crate::record::recorder::Recorder;
use crate::report::LoadReport;

/// The first scheduled send is this far ahead, so that every thread is ready for it.
const LEAD_NS: u64 = 20 * NS_PER_MS;

/// Runs the plan and returns its report. Blocks; [`StopToken::stop`] from another thread ends it
/// early.
///
/// # Errors
/// Any [`LoadError`]: a plan that cannot be run, a host without address, or a defect. Failed
/// requests are outcomes in the report, never errors.
pub fn run(plan: &LoadPlan, stop: &StopToken) -> Result<LoadReport, LoadError> {
    prepare(plan)?.run(stop)
}

/// A load that is ready to start: its plan is valid, its host has an address, its limits suffice.
pub struct PreparedLoad {
    plan: LoadPlan,
    target: Target,
    max_connections: usize,
    source_ports: Option<SourcePorts>,
    progress: Option<ProgressFile>,
}

/// Checks everything that can be checked before the first connection of the load is opened.
///
/// # Errors
/// As [`run`].
pub fn prepare(plan: &LoadPlan) -> Result<PreparedLoad, LoadError> {
    plan.validate()?;
    let mut target = Target::prepare(plan)?;
    let (requested, possible) = connection_cap(plan)?;
    let as_kept = LoadPlan {
        keepalive: target.shortest_keepalive(plan),
        ..plan.clone()
    };
    let (max_connections, source_ports) = target.route.fit_ports(&as_kept, requested, possible)?;

    Ok(PreparedLoad {
        plan: plan.clone(),
        target,
        max_connections,
        source_ports,
        progress: None,
    })
}

impl PreparedLoad {
    /// Likely problems of this load, each with a fix.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.source_ports.as_ref()?.warning.as_deref()
    }

    /// Also writes the load's progress to this file, for [`LoadProgress::read`].
    ///
    /// [`LoadProgress::read`]: crate::LoadProgress::read
    #[must_use]
    pub fn showing(self, progress: Option<ProgressFile>) -> Self {
        Self { progress, ..self }
    }

    /// Runs the load.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(self, stop: &StopToken) -> Result<LoadReport, LoadError> {
        execute(&self, stop)
    }
}

fn execute(load: &PreparedLoad, stop: &StopToken) -> Result<LoadReport, LoadError> {
    let plan = &load.plan;
    let pacing = Pacing::of(plan);
    let start = Start::soon(load);
    let mut records = drive(load, &pacing.pacer, &start, stop)?;
    let (spin, watch_cpu_ns) = pacing.end();
    let early_end_ns = start.early_end_ns(plan, &records, stop);
    let mut recorder = merged(plan, &start, &mut records);
    recorder.check_conservation()?;
    if let Some(end_ns) = early_end_ns {
        recorder.cut(end_ns);
    }
    let host_at_end = records.first().and_then(|record| record.host_at_end);
    let facts = RunFacts {
        cpu_ns: records.iter().map(|record| record.cpu_ns).sum::<u64>() + watch_cpu_ns,
        costs: records.iter().map(|record| record.load).collect(),
        steal_share: host_at_end
            .zip(start.host)
            .map(|(now, then)| now.steal_share_since(&then)),
        spin,
        throttled_periods: throttled_periods()
            .zip(start.throttled_periods)
            .map(|(now, then)| now.saturating_sub(then)),
        start_realtime_ns: start.realtime_ns,
        measured_ns: recorder.measured_ns(stop.stopped_ns().unwrap_or(u64::MAX)),
        is_interrupted: stop.is_stopped(),
        max_connections: load.max_connections,
        source_ports: load.source_ports.clone(),
        tracked: start
            .tracking
            .zip(load.target.route.tracking_table())
            .map(|(before, after)| TrackedConnections::between(before, after)),
        thread_tails: thread_tails(&records),
    };
    let (from_ns, to_ns) = recorder.measure_window_ns();
    let mut report = LoadReport::new(
        &with_actual_length(plan, to_ns - from_ns),
        &recorder,
        &facts,
    )?;
    // The plan records what was requested.
    report.plan = plan.clone();

    Ok(report)
}

/// When a load starts, and the host's counters at that time.
struct Start {
    monotonic_ns: u64,
    realtime_ns: u64,
    /// When its measurement may end; `None` if its length is fixed.
    ends: Option<Arc<Ends>>,
    host: Option<HostTicks>,
    throttled_periods: Option<u64>,
    tracking: Option<TrackingTable>,
}

impl Start {
    fn soon(load: &PreparedLoad) -> Self {
        let host = HostTicks::read();
        let throttled_periods = throttled_periods();
        let tracking = load.target.route.tracking_table();
        let (monotonic_ns, realtime_ns) = (monotonic_ns() + LEAD_NS, realtime_ns() + LEAD_NS);
        let ends = Ends::of(&load.plan, monotonic_ns);

        Self {
            monotonic_ns,
            realtime_ns,
            ends,
            host,
            throttled_periods,
            tracking,
        }
    }

    /// The end of a load with a limited number of requests, which is usually earlier than planned:
    /// the rest of the planned length was not measured. `None` for any other load.
    fn early_end_ns(
        &self,
        plan: &LoadPlan,
        records: &[ThreadRecord],
        stop: &StopToken,
    ) -> Option<u64> {
        let ends = self.ends.as_ref().filter(|_| plan.requests.is_some())?;
        let finished: Option<Vec<u64>> = records.iter().map(|record| record.finished_ns).collect();
        let last_ns = finished.and_then(|each_ns| each_ns.into_iter().max());
        let planned_ns = self.monotonic_ns + plan.longest_phases().load_ns();
        let end_ns = last_ns.or(stop.stopped_ns()).unwrap_or(planned_ns);
        ends.extend_to(end_ns);

        Some(end_ns)
    }
}

/// Runs all threads to their end, and meanwhile decides whether to extend the measurement.
fn drive(
    load: &PreparedLoad,
    pacer: &Pacer,
    start: &Start,
    stop: &StopToken,
) -> Result<Vec<ThreadRecord>, LoadError> {
    let plan = &load.plan;
    let (sender, snapshots) = mpsc::channel();
    let threads: Vec<ThreadPlan> = (0..plan.threads)
        .map(|thread| ThreadPlan {
            plan: plan.clone(),
            target: load.target.clone(),
            thread,
            max_connections: share_of(load.max_connections, thread, plan.threads),
            pacer: pacer.clone(),
            start_ns: start.monotonic_ns,
            progress: load.progress.clone(),
            cursor: start.ends.as_ref().map(|ends| {
                // Without a target precision, no thread reads snapshots.
                let sender = plan.precision.is_some().then(|| sender.clone());
                EndCursor::new(Arc::clone(ends), sender)
            }),
        })
        .collect();
    drop(sender);

    run_threads(threads, stop, || {
        if let Some((precision, ends)) = plan.precision.as_ref().zip(start.ends.as_deref()) {
            stopping_rule::apply(precision, ends, plan.threads, &snapshots);
        }
    })
}

/// The plan with the actual length of the measurement, which is now fixed.
fn with_actual_length(plan: &LoadPlan, measure_ns: u64) -> LoadPlan {
    LoadPlan {
        phases: Phases {
            measure_ns,
            ..plan.phases.clone()
        },
        requests: None,
        ..plan.clone()
    }
}

/// The record of the whole load. Its measurement ended at the same time for all threads, whether or
/// not all of them reached it.
fn merged(plan: &LoadPlan, start: &Start, records: &mut [ThreadRecord]) -> Recorder {
    let cursor = start
        .ends
        .as_ref()
        .map(|ends| EndCursor::new(Arc::clone(ends), None));
    let mut all = Recorder::new(plan, start.monotonic_ns).with_cursor(cursor);
    all.settle();

    for record in records {
        record.recorder.settle();
        all.merge(&record.recorder);
    }

    all
}

/// Results of each thread; empty for a single thread.
fn thread_tails(records: &[ThreadRecord]) -> Vec<ThreadTail> {
    let is_several = records.len() > 1;
    let several = records.iter().filter(|_| is_several);
    several
        .map(|record| ThreadTail::of(&record.recorder.measures().response))
        .collect()
}

/// Runs all threads to their end, and `meanwhile` alongside them.
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
            .map_err(|source| LoadError::System {
                action: "start a thread",
                source,
            })
    };
    let handles: Vec<_> = plans.into_iter().map(spawn).collect();
    if handles.iter().any(Result::is_err) {
        stop.stop();
    }

    meanwhile();
    // Join all before returning the first failure: no thread may outlive the run.
    let results: Vec<ThreadResult> = handles
        .into_iter()
        .map(|handle| handle?.join().map_err(|_| LoadError::ThreadPanicked)?)
        .collect();

    results.into_iter().collect()
}

/// Stops all threads if one fails or panics: the results of the others will not be reported.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;

    #[test]
    fn a_failing_thread_stops_the_others_and_a_finished_one_does_not() {
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
    fn each_request_that_closes_its_connection_needs_a_port() {
        let needed = |value: &str| {
            let mut plan = LoadPlan::open("http://127.0.0.1:9/", 500.0, NS_PER_S);
            plan.headers = vec![("Connection".to_owned(), value.to_owned())];
            prepare(&plan)
                .expect("possible")
                .source_ports
                .expect("Linux")
                .needed_at_most
        };
        assert_eq!(needed("close"), needed("keep-alive") + 500);
    }
}
