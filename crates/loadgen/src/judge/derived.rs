//! Values derived once from the record, for the report and as evidence for the verdict.

use crate::base::clock::NS_PER_S;
use crate::facts::run::RunFacts;
use crate::judge::stationarity::{Backlog, InSystem, Stationarity, intervals_in_slice};
use crate::judge::uncertainty::{Measured, Uncertainty};
use crate::plan::{LoadModel, LoadPlan, LoadProfile, OnBusy};
use crate::record::exchange::Outcome;
use crate::record::histogram::LatencyHistogram;
use crate::record::interval::IntervalRecord;
use crate::record::measures::Measures;
use crate::record::recorder::{Phase, Recorder};
use crate::record::send_sample::{SendGaps, poisson_rate_per_s};
use crate::statistics::group;

/// A value, or why it is unknown.
pub(crate) type Known<T> = Result<T, &'static str>;

/// The derived values.
#[derive(Clone, Debug)]
pub(crate) struct SelfChecks {
    pub uncertainty: Uncertainty,
    pub stationarity: Stationarity,
    pub in_system: InSystem,
    pub backlog: Known<Backlog>,
    pub send_gaps: Known<SendGaps>,
}

impl SelfChecks {
    pub fn of(plan: &LoadPlan, recorder: &Recorder, measures: &Measures, facts: &RunFacts) -> Self {
        let is_steady = is_steady_open_loop(plan);
        let may_grow = is_steady && !facts.is_interrupted;
        let scheduled = recorder.phase(Phase::Measure).scheduled;
        let in_system = InSystem::of(
            &recorder.observations().batches,
            may_grow.then_some(scheduled),
        );
        let queue_full_share = queue_full_drops(plan, recorder) as f64 / scheduled.max(1) as f64;
        let backlog = Backlog {
            in_system,
            queue_full_share,
        };
        let is_unstable = is_steady && backlog.is_unstable(&plan.thresholds.backlog);
        Self {
            uncertainty: uncertainty(plan, recorder, &measures.response, facts),
            stationarity: stationarity(plan, recorder, measures.response.count(), facts)
                .with_backlog(is_unstable),
            in_system,
            backlog: if is_steady {
                Ok(backlog)
            } else {
                Err("a backlog can be detected only in an open loop at a constant rate")
            },
            send_gaps: send_gaps(plan, recorder),
        }
    }
}

fn uncertainty(
    plan: &LoadPlan,
    recorder: &Recorder,
    response: &LatencyHistogram,
    facts: &RunFacts,
) -> Uncertainty {
    let measured = Measured {
        batches: &recorder.observations().batches,
        correct: response,
        given_up: recorder.censored(),
        offered: recorder.phase(Phase::Measure).scheduled,
        is_interrupted: facts.is_interrupted,
        floor: plan.noise_floor.as_ref(),
        min_floor_ratio: plan.thresholds.floor.unresolved,
    };
    measured.uncertainty()
}

/// Whether the load is an open loop at a constant rate, which a server either sustains or does not.
fn is_steady_open_loop(plan: &LoadPlan) -> bool {
    matches!(&plan.load, LoadModel::Open(open) if matches!(open.profile, LoadProfile::Flat { .. }))
}

/// Arrivals dropped because the queue was full. A queue holds ten seconds' worth of arrivals, so a
/// full one means overload. With shedding or a deadline, one slow response is enough to drop
/// arrivals, so these do not count.
fn queue_full_drops(plan: &LoadPlan, recorder: &Recorder) -> u64 {
    let LoadModel::Open(open) = &plan.load else {
        return 0;
    };
    let is_queue = open.on_busy != OnBusy::Shed && plan.deadline_ns.is_none();
    if is_queue {
        recorder.phase(Phase::Measure).of(Outcome::Dropped)
    } else {
        0
    }
}

fn stationarity(
    plan: &LoadPlan,
    recorder: &Recorder,
    responses: u64,
    facts: &RunFacts,
) -> Stationarity {
    if matches!(&plan.load, LoadModel::Open(_)) && !is_steady_open_loop(plan) {
        return Stationarity::unknown("the offered rate varied");
    }
    if facts.is_interrupted {
        return Stationarity::unknown("the load was stopped early");
    }
    let responses_per_s = responses as f64 * NS_PER_S as f64 / facts.measured_ns.max(1) as f64;
    let in_slice = intervals_in_slice(plan.interval_ns(), responses_per_s);
    let intervals: Vec<&IntervalRecord> = recorder
        .intervals(facts.measured_ns)
        .map(|(_, _, record)| record)
        .collect();
    let slices: Vec<LatencyHistogram> = group(&intervals, in_slice).map(merged).collect();
    Stationarity::of(
        &slices,
        in_slice as u64 * plan.interval_ns(),
        &recorder.observations().batches,
        &plan.thresholds,
    )
}

fn merged(intervals: &[&IntervalRecord]) -> LatencyHistogram {
    let mut all = LatencyHistogram::new();
    intervals
        .iter()
        .for_each(|interval| all.add(&interval.response()));
    all
}

/// Compares consecutive sends with a Poisson process, if only the generator determined their times.
fn send_gaps(plan: &LoadPlan, recorder: &Recorder) -> Known<SendGaps> {
    poisson_rate_per_s(plan).ok_or("only Poisson arrivals at a constant rate are tested")?;
    if recorder.sending().waited > 0 || recorder.phase(Phase::Measure).of(Outcome::Dropped) > 0 {
        return Err("requests waited for a connection, so the server affected their send times");
    }
    recorder
        .observations()
        .sends
        .test()
        .ok_or("fewer than 1,000 consecutive sends")
}
