//! The evidence for the verdict, gathered from a load's record.

use crate::facts::cost::ThreadCost;
use crate::facts::run::{RunFacts, ThreadTail};
use crate::http::malformed::Rejection;
use crate::judge::derived::{Known, SelfChecks};
use crate::judge::stationarity::{Backlog, Stationarity};
use crate::judge::uncertainty::{NotResolved, ResolutionStatus, Uncertainty};
use crate::net::connection_cap::AUTOMATIC_MAX_CONNECTIONS;
use crate::pacing::stalls::Stalls;
use crate::plan::floor::NoiseFloor;
use crate::plan::precision::REPORTED_QUANTILES;
use crate::plan::{Arrivals, LoadModel, LoadPlan, LoadProfile};
use crate::record::batches::Silence;
use crate::record::exchange::Outcome;
use crate::record::histogram::LatencyHistogram;
use crate::record::measures::Measures;
use crate::record::recorder::{Phase, Recorder};
use crate::record::send_sample::SendGaps;
use crate::record::session_tally::SessionTally;

/// Input of the checks. Shares are in `[0, 1]`; `None` if unknown.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub scheduled: u64,
    /// Scheduled arrivals: requests, or sessions if the plan has sessions.
    pub arrivals: u64,
    pub expected_arrivals: Option<Expected>,
    /// Lowest and highest offered rate of the measurement.
    pub offered_rates_per_s: Option<(f64, f64)>,
    /// Effect of the generator's lateness on each reported quantile.
    pub lag_impact: Vec<LagImpact>,
    pub send_lag_p99_ns: Option<u64>,
    pub send_lag_p999_ns: Option<u64>,
    pub response_p99_ns: Option<u64>,
    pub busiest_thread_share: f64,
    pub run_queue_share: Option<f64>,
    pub steal_share: Option<f64>,
    pub stalls: Stalls,
    pub stalled_share: f64,
    pub throttled_periods: Option<u64>,
    pub client_errors: u64,
    pub inconsistent: u64,
    pub ok: u64,
    /// Connections with a response to no request.
    pub unsolicited: u64,
    pub is_closed_loop: bool,
    pub waited_for_connection_share: f64,
    pub max_connections: usize,
    /// The process's file descriptor limit allows fewer connections than usual, although the plan
    /// does not limit them.
    pub lacks_connections: bool,
    /// Of all processes.
    pub threads: usize,
    pub processes: usize,
    /// Excluding requests dropped because the generator was late.
    pub dropped: u64,
    pub unanswered_share: f64,
    pub is_interrupted: bool,
    /// The first generator process that was lost, and how.
    pub lost_generator: Option<String>,
    /// Share of the requests that could be sent within the measurement and were; `None` in a closed
    /// loop.
    pub sent_in_time_share: Option<f64>,
    /// The quantile with the lowest ratio to its noise floor, and this ratio.
    pub floor_ratio: Known<(f64, f64)>,
    pub send_gaps: Known<SendGaps>,
    /// Number of threads whose p99 differs significantly from the overall p99.
    pub differing_threads: Known<usize>,
    /// Mean requests in the system: from arrivals and departures, and from the time each request
    /// spent there.
    pub in_system: (f64, f64),
    pub silence: Silence,
    pub backlog: Known<Backlog>,
    pub stationarity: Stationarity,
}

/// Effect of the generator's lateness on one quantile of the response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LagImpact {
    pub quantile: f64,
    /// The quantile after subtracting each request's send lag.
    pub without_ns: u64,
    /// Increase caused by send lag.
    pub added_ns: u64,
}

impl LagImpact {
    /// The relative increase.
    pub fn share(&self) -> f64 {
        self.added_ns as f64 / self.without_ns.max(1) as f64
    }
}

/// Expected number of arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub mean: f64,
    pub tolerance: f64,
}

impl Evidence {
    pub fn of(
        plan: &LoadPlan,
        recorder: &Recorder,
        measures: &Measures,
        facts: &RunFacts,
        checks: &SelfChecks,
    ) -> Self {
        let (counts, sending) = (recorder.phase(Phase::Measure), recorder.sending());
        let scheduled = counts.scheduled.max(1) as f64;
        let batches = &recorder.observations().batches;
        Self {
            scheduled: counts.scheduled,
            arrivals: recorder
                .sessions
                .as_ref()
                .map_or(counts.scheduled, SessionTally::started),
            expected_arrivals: expected_arrivals(plan, facts.measured_ns),
            offered_rates_per_s: offered_rates(plan, facts.measured_ns),
            lag_impact: lag_impact(measures),
            send_lag_p99_ns: sending.lag.quantile_ns(0.99),
            send_lag_p999_ns: sending.lag.quantile_ns(0.999),
            response_p99_ns: measures.response.quantile_ns(0.99),
            busiest_thread_share: facts.busiest_share(),
            run_queue_share: facts
                .costs
                .iter()
                .filter_map(ThreadCost::run_queue_share)
                .reduce(f64::max),
            steal_share: facts.steal_share,
            stalled_share: facts
                .costs
                .iter()
                .map(ThreadCost::stalled_share)
                .fold(0.0, f64::max),
            stalls: facts.stalls(),
            throttled_periods: facts.throttled_periods,
            client_errors: counts.of(Outcome::ClientError),
            inconsistent: recorder.inconsistent(),
            ok: counts.of(Outcome::Ok),
            unsolicited: unsolicited(recorder),
            is_closed_loop: matches!(plan.load, LoadModel::Closed(_)),
            waited_for_connection_share: sending.waited as f64 / scheduled,
            max_connections: facts.max_connections,
            lacks_connections: lacks_connections(plan, facts),
            threads: plan.all_threads(),
            processes: plan.processes,
            dropped: dropped_by_server(plan, recorder),
            unanswered_share: (counts.scheduled - counts.of(Outcome::Ok)) as f64 / scheduled,
            is_interrupted: facts.is_interrupted,
            lost_generator: facts.lost.clone(),
            sent_in_time_share: sent_in_time_share(plan, recorder),
            floor_ratio: floor_ratio(plan.noise_floor.as_ref(), measures, &checks.uncertainty),
            send_gaps: checks.send_gaps,
            differing_threads: differing_threads(
                &facts.thread_tails,
                &measures.response,
                &checks.uncertainty,
            ),
            in_system: (
                batches.mean_in_system(),
                batches.mean_in_system_by_stays(measures.response.sum_ns()),
            ),
            silence: batches.silence(),
            backlog: checks.backlog,
            stationarity: checks.stationarity.clone(),
        }
    }
}

fn unsolicited(recorder: &Recorder) -> u64 {
    let cause = Rejection::Unsolicited.to_string();
    let causes = recorder.connect_failures.causes();
    causes.get(&cause).copied().unwrap_or(0)
}

fn lacks_connections(plan: &LoadPlan, facts: &RunFacts) -> bool {
    let is_unlimited =
        matches!(&plan.load, LoadModel::Open(open) if open.max_connections.is_none());
    is_unlimited && facts.max_connections < AUTOMATIC_MAX_CONNECTIONS
}

fn lag_impact(measures: &Measures) -> Vec<LagImpact> {
    REPORTED_QUANTILES
        .into_iter()
        // A quantile with fewer than ten requests above it is not reported as a result, so lateness
        // cannot distort a result.
        .filter(|quantile| measures.response.count() as f64 * (1.0 - quantile) >= 10.0)
        .filter_map(|quantile| {
            let with_ns = measures.response.quantile_ns(quantile)?;
            let without_ns = measures.response_without_lag.quantile_ns(quantile)?;
            Some(LagImpact {
                quantile,
                without_ns,
                added_ns: with_ns.saturating_sub(without_ns),
            })
        })
        .collect()
}

fn expected_arrivals(plan: &LoadPlan, measured_ns: u64) -> Option<Expected> {
    let LoadModel::Open(open) = &plan.load else {
        return None;
    };
    let from_ns = plan.phases.warmup_ns;
    let mean = open
        .profile
        .arrivals_between(&plan.phases, from_ns, from_ns + measured_ns);
    let tolerance = match (&open.profile, open.arrivals) {
        (LoadProfile::Replay(_), _) => 0.0,
        (_, Arrivals::Constant) => 1.0,
        (_, Arrivals::Poisson) => plan.thresholds.scheduled.warn_standard_errors * mean.sqrt(),
    };
    Some(Expected { mean, tolerance })
}

fn offered_rates(plan: &LoadPlan, measured_ns: u64) -> Option<(f64, f64)> {
    let LoadModel::Open(open) = &plan.load else {
        return None;
    };
    let from_ns = plan.phases.warmup_ns;
    open.profile
        .rates_between(&plan.phases, from_ns, from_ns + measured_ns)
}

fn sent_in_time_share(plan: &LoadPlan, recorder: &Recorder) -> Option<f64> {
    let LoadModel::Open(_) = &plan.load else {
        return None;
    };
    let counts = recorder.phase(Phase::Measure);
    let sendable = (counts.scheduled - dropped_by_server(plan, recorder)).max(1) as f64;
    let observations = recorder.observations();
    Some(1.0 - (observations.late_sends + observations.late_drops) as f64 / sendable)
}

/// Dropped requests, except those that an open loop dropped because the generator was late
/// (`missed-sends` reports these).
fn dropped_by_server(plan: &LoadPlan, recorder: &Recorder) -> u64 {
    let is_open = matches!(&plan.load, LoadModel::Open(_));
    let late_drops = if is_open {
        recorder.observations().late_drops
    } else {
        0
    };
    recorder.phase(Phase::Measure).of(Outcome::Dropped) - late_drops
}

fn floor_ratio(
    floor: Option<&NoiseFloor>,
    measures: &Measures,
    uncertainty: &Uncertainty,
) -> Known<(f64, f64)> {
    let floor = floor.ok_or("this machine's noise floor is unknown; run wsgiload calibrate")?;
    REPORTED_QUANTILES
        .into_iter()
        .filter(|quantile| {
            uncertainty.response_time_ns[&quantile.to_string()]
                .reason
                .is_none_or(|reason| reason == NotResolved::BelowNoiseFloor)
        })
        .filter_map(|quantile| {
            let value_ns = measures.response.quantile_ns(quantile)?;
            Some((quantile, floor.ratio(quantile, value_ns)?))
        })
        .min_by(|left, right| left.1.total_cmp(&right.1))
        .ok_or("no quantile is resolved")
}

/// One thread in a thousand differs this much by chance.
const THREAD_STANDARD_ERRORS: f64 = 3.29;

/// Smaller differences between threads do not matter: relative to p99, and absolute.
const MIN_THREAD_DIFFERENCE_SHARE: f64 = 0.1;
const MIN_THREAD_DIFFERENCE_NS: u64 = 100_000;

/// Threads whose p99 differs significantly and relevantly from the overall p99. The significance
/// takes into account that each thread has only part of the responses.
fn differing_threads(
    tails: &[ThreadTail],
    all: &LatencyHistogram,
    uncertainty: &Uncertainty,
) -> Known<usize> {
    const QUANTILE: f64 = 0.99;
    if tails.len() < 2 {
        return Err("the generator has only one thread");
    }
    let p99 = &uncertainty.response_time_ns[&QUANTILE.to_string()];
    let Some(effective) = p99
        .effective_requests
        .filter(|_| p99.resolution_status != ResolutionStatus::NotResolved)
    else {
        return Err("p99 is not resolved");
    };
    if tails
        .iter()
        .any(|tail| (tail.responses as f64) * (1.0 - QUANTILE) < 10.0)
    {
        return Err("a thread has fewer than ten responses beyond p99");
    }
    let all_ns = all.quantile_ns(QUANTILE).unwrap_or(0);
    let min_difference_ns =
        MIN_THREAD_DIFFERENCE_NS.max((all_ns as f64 * MIN_THREAD_DIFFERENCE_SHARE) as u64);
    let is_relevant = |p99_ns: Option<u64>| {
        p99_ns.is_some_and(|p99_ns| p99_ns.abs_diff(all_ns) > min_difference_ns)
    };
    let differs = |tail: &&ThreadTail| {
        let variance =
            QUANTILE * (1.0 - QUANTILE) * (1.0 / effective + 1.0 / tail.responses as f64);
        let reach = THREAD_STANDARD_ERRORS * variance.sqrt();
        let low_ns = all.quantile_ns(QUANTILE - reach);
        let high_ns = if QUANTILE + reach < 1.0 {
            all.quantile_ns(QUANTILE + reach)
        } else {
            all.max_ns()
        };
        (tail.p99_ns < low_ns || tail.p99_ns > high_ns) && is_relevant(tail.p99_ns)
    };
    Ok(tails.iter().filter(differs).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::uncertainty::QuantileUncertainty;

    fn uncertainty(effective: f64) -> Uncertainty {
        let quantile_uncertainty = QuantileUncertainty {
            interval_95_ns: Some((1, None)),
            effective_requests: Some(effective),
            resolution_status: ResolutionStatus::Resolved,
            reason: None,
        };
        let all = || {
            REPORTED_QUANTILES
                .into_iter()
                .map(|quantile| (quantile.to_string(), quantile_uncertainty))
                .collect()
        };
        Uncertainty {
            offered_quantiles_ns: all(),
            response_time_ns: all(),
        }
    }

    #[test]
    fn a_thread_differs_if_chance_does_not_explain_its_p99() {
        let mut all = LatencyHistogram::new();
        (1..=100_000).for_each(|value| all.record(value * 1_000));
        let tails = |p99s: [u64; 2]| {
            p99s.map(|p99| ThreadTail {
                responses: 50_000,
                p99_ns: Some(p99 * 1_000),
            })
        };
        // The standard error of the share is 0.00054, so p98.9 and p99.1 are within 3.29 standard
        // errors.
        assert_eq!(
            differing_threads(&tails([98_900, 99_100]), &all, &uncertainty(1e5)),
            Ok(0)
        );
        // Significant, but only half a percent.
        assert_eq!(
            differing_threads(&tails([98_500, 99_000]), &all, &uncertainty(1e5)),
            Ok(0)
        );
        assert_eq!(
            differing_threads(&tails([80_000, 99_000]), &all, &uncertainty(1e5)),
            Ok(1)
        );
        assert_eq!(
            differing_threads(&tails([80_000, 85_000]), &all, &uncertainty(1e5)),
            Ok(2)
        );
        assert_eq!(
            differing_threads(&tails([80_000, 85_000]), &all, &uncertainty(2.0)),
            Ok(0),
            "hardly known"
        );
        assert!(differing_threads(&tails([1, 1])[..1], &all, &uncertainty(1e5)).is_err());
    }

    #[test]
    fn only_resolved_quantiles_are_compared_with_the_floor() {
        let mut measures = Measures::default();
        (1..=1_000).for_each(|value| measures.response.record(value * 1_000));
        let floor = NoiseFloor {
            p50_ns: 100_000,
            p99_ns: 300_000,
            p999_ns: 900_000,
        };
        assert!(floor_ratio(None, &measures, &uncertainty(1e3)).is_err());
        let (quantile, ratio) =
            floor_ratio(Some(&floor), &measures, &uncertainty(1e3)).expect("known");
        assert_eq!(quantile, 0.999);
        assert!((ratio - 1.11).abs() < 0.01, "{ratio}");
        let mut uncertain = uncertainty(1e3);
        for (name, quantile) in &mut uncertain.response_time_ns {
            if name != "0.5" {
                quantile.reason = Some(NotResolved::TooFewEffectiveRequests);
            }
        }
        assert_eq!(
            floor_ratio(Some(&floor), &measures, &uncertain).map(|lowest| lowest.0),
            Ok(0.5)
        );
    }
}
