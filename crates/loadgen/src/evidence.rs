//! The figures of a run that the verdict looks at, gathered from its record.

use crate::exchange::Outcome;
use crate::histogram::REPORTED_QUANTILES;
use crate::measures::Measures;
use crate::plan::{Arrivals, LoadModel, LoadPlan, LoadProfile};
use crate::recorder::{Phase, Recorder};
use crate::report::RunFacts;
use crate::self_measure::ThreadCost;
use crate::verdict::{Evidence, Expected};

pub(crate) fn evidence(plan: &LoadPlan, recorder: &Recorder, facts: &RunFacts, measures: &Measures) -> Evidence {
    let counts = recorder.phase(Phase::Measure);
    let scheduled = counts.scheduled.max(1) as f64;
    let sending = recorder.sending();
    let lag_impact = REPORTED_QUANTILES
        .into_iter()
        // A quantile that fewer than ten requests lie above is not a result, so its lateness is no doubt about one.
        .filter(|quantile| measures.response.count() as f64 * (1.0 - quantile) >= 10.0)
        .filter_map(|quantile| {
            let with = measures.response.quantile_ns(quantile)?;
            let without = measures.response_without_lag.quantile_ns(quantile)?;
            Some((quantile, with as f64 / without.max(1) as f64 - 1.0))
        })
        .collect();
    Evidence {
        scheduled: counts.scheduled,
        arrivals: recorder.sessions.map_or(counts.scheduled, |sessions| sessions.started()),
        expected_arrivals: expected_arrivals(plan, facts.measured_ns),
        offered_rates_per_s: offered_rates(plan, facts.measured_ns),
        lag_impact,
        send_lag_p99_ns: sending.lag.quantile_ns(0.99),
        send_lag_p999_ns: sending.lag.quantile_ns(0.999),
        response_p50_ns: measures.response.quantile_ns(0.5),
        busiest_thread_share: facts.busiest_share(),
        run_queue_share: facts.costs.iter().filter_map(ThreadCost::run_queue_share).reduce(f64::max),
        steal_share: facts.steal_share,
        hiccup_share: facts.costs.iter().map(ThreadCost::hiccup_share).fold(0.0, f64::max),
        hiccups: facts.hiccups(),
        throttled_periods: facts.throttled_periods.unwrap_or(0),
        client_errors: counts.of(Outcome::ClientError),
        inconsistent: recorder.inconsistent(),
        ok: counts.of(Outcome::Ok),
        waited_for_connection_share: sending.waited as f64 / scheduled,
        max_connections: facts.max_connections,
        dropped: counts.of(Outcome::Dropped),
        unanswered_share: (counts.scheduled - counts.of(Outcome::Ok)) as f64 / scheduled,
        is_interrupted: facts.is_interrupted,
    }
}

fn expected_arrivals(plan: &LoadPlan, measured_ns: u64) -> Option<Expected> {
    let LoadModel::Open(open) = &plan.load else { return None };
    let from_ns = plan.phases.warmup_ns;
    let mean = open.profile.arrivals_between(&plan.phases, from_ns, from_ns + measured_ns);
    let tolerance = match (&open.profile, open.arrivals) {
        (LoadProfile::Replay(_), _) => 0.0,
        (_, Arrivals::Constant) => 1.0,
        (_, Arrivals::Poisson) => 4.0 * mean.sqrt(),
    };
    Some(Expected { mean, tolerance })
}

fn offered_rates(plan: &LoadPlan, measured_ns: u64) -> Option<(f64, f64)> {
    let LoadModel::Open(open) = &plan.load else { return None };
    let from_ns = plan.phases.warmup_ns;
    open.profile.rates_between(&plan.phases, from_ns, from_ns + measured_ns)
}
