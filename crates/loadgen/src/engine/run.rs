//! Runs a plan: one record per thread of every generator process, merged at the end.

use std::ffi::OsString;
use std::sync::Arc;

use crate::base::clock::{NS_PER_MS, monotonic_ns, realtime_ns};
use crate::base::error::LoadError;
use crate::base::stop::StopToken;
use crate::engine::generators::Generators;
use crate::engine::part::Part;
use crate::engine::thread::ThreadRecord;
use crate::facts::cost::HostTicks;
use crate::facts::run::{RunFacts, ThreadTail};
use crate::facts::throttling::throttled_periods;
use crate::http::target::Target;
use crate::net::connection_cap::connection_cap;
use crate::net::conntrack::{TrackedConnections, TrackingTable};
use crate::net::ports::SourcePorts;
use crate::plan::portion::Portion;
use crate::plan::{LoadPlan, Phases};
use crate::record::possible_ends::{EndCursor, Ends};
use crate::record::progress::ProgressFile;
use crate::record::recorder::Recorder;
use crate::report::LoadReport;

/// The first scheduled send is this far ahead for each process, so that every thread is ready for it.
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
    pub(super) plan: LoadPlan,
    pub(super) target: Target,
    pub(super) max_connections: usize,
    pub(super) source_ports: Option<SourcePorts>,
    pub(super) progress: Option<ProgressFile>,
    pub(super) generator: Vec<OsString>,
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
        generator: Vec::new(),
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

    /// The program, with its arguments, that runs [`run_generator`] on its standard streams; a
    /// plan with several processes starts it once for each.
    ///
    /// [`run_generator`]: crate::run_generator
    #[must_use]
    pub fn with_generator(self, generator: Vec<OsString>) -> Self {
        Self { generator, ..self }
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
    let generators = Generators::of(load)?;
    let start = Start::soon(load);
    let (part, lost) = match generators {
        None => (run_here(load, &start, stop)?, None),
        Some(generators) => generators.run(start.monotonic_ns, stop)?,
    };
    let mut records = part.records;
    let early_end_ns = start.early_end_ns(plan, &records, stop);
    let mut recorder = merged(plan, &start, &mut records);
    recorder.check_conservation()?;
    if let Some(end_ns) = early_end_ns {
        recorder.cut(end_ns);
    }
    let lost_ns = lost.as_ref().map(|lost| lost.at_ns);
    let stopped_ns = stop.stopped_ns().into_iter().chain(lost_ns).min();
    let host_at_end = records.first().and_then(|record| record.host_at_end);
    let facts = RunFacts {
        cpu_ns: records.iter().map(|record| record.cpu_ns).sum::<u64>() + part.watch_cpu_ns,
        costs: records.iter().map(|record| record.load).collect(),
        steal_share: host_at_end
            .zip(start.host)
            .map(|(now, then)| now.steal_share_since(&then)),
        spin: part.spin,
        throttled_periods: throttled_periods()
            .zip(start.throttled_periods)
            .map(|(now, then)| now.saturating_sub(then)),
        start_realtime_ns: start.realtime_ns,
        measured_ns: recorder.measured_ns(stopped_ns.unwrap_or(u64::MAX)),
        is_interrupted: stopped_ns.is_some(),
        lost: lost.map(|lost| lost.text),
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

/// Runs the whole load in threads of this process.
fn run_here(load: &PreparedLoad, start: &Start, stop: &StopToken) -> Result<Part, LoadError> {
    let ends = start.ends.as_ref();
    Part::run(load, Portion::WHOLE, (start.monotonic_ns, ends), stop)
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
        let lead_ns = LEAD_NS * load.plan.processes as u64;
        let (monotonic_ns, realtime_ns) = (monotonic_ns() + lead_ns, realtime_ns() + lead_ns);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;

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
