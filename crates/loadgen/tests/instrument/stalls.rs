//! F4 and F5: a server that stalls, measured by open and closed loops.
//!
//! A stall of [`STALL_NS`] starts every [`PERIOD_NS`]. Loads last whole periods, so each part of
//! the period is covered equally, whenever the load starts.

use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Timing, Trial, US, assert_encloses, capped, constant_rate, judge_timing,
    median_excess_ns, noise_floor_ns, open_loop,
};

const BASE_NS: u64 = MS;
const PERIOD_NS: u64 = SECOND;
const STALL_NS: u64 = SECOND / 5;

fn stalling(servers: Option<usize>) -> Config {
    let (period_ns, stall_ns, offset_ns) = (PERIOD_NS, STALL_NS, 300 * MS);
    let service = Service::PeriodicStall {
        base_ns: BASE_NS,
        period_ns,
        stall_ns,
        offset_ns,
    };
    Config {
        service,
        servers,
        ..Config::default()
    }
}

/// Quantile of the response time with constant arrivals, if the wait decreases by `slope` per unit
/// of time from the start of a stall.
fn stalled_quantile_ns(quantile: f64, slope: f64) -> u64 {
    let wait_ns = STALL_NS as f64 - (1.0 - quantile) * slope * PERIOD_NS as f64;
    BASE_NS + wait_ns.max(0.0) as u64
}

fn expect_quantiles(timing: &mut Timing, trial: &Trial, slope: f64, resolution_ns: u64) {
    for quantile in [0.5, 0.9, 0.95, 0.99] {
        let expected_ns = stalled_quantile_ns(quantile, slope);
        let tolerance_ns = resolution_ns + expected_ns / 100;
        timing.assert_min_expect_max(
            &format!("response p{}", quantile * 100.0),
            trial.report.measures().response.quantile_ns(quantile),
            expected_ns.saturating_sub(tolerance_ns).max(BASE_NS),
            expected_ns + tolerance_ns + noise_floor_ns(quantile),
        );
    }
}

#[test]
fn f4_a_stall_lengthens_response_times_as_calculated() {
    judge_timing(|timing| {
        let trial = timing.run_trial(stalling(None), |url| {
            constant_rate(url, 500.0, 2 * PERIOD_NS)
        });
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (1_000, 1_000, 1_000)
        );
        assert_encloses(&trial.report.measures().service, &trial.times_in_server());
        // Arrivals every 2 ms limit the resolution of a quantile.
        expect_quantiles(timing, &trial, 1.0, 2 * MS);
        timing.assert_min_expect_max(
            "service p50",
            trial.report.measures().service.quantile_ns(0.5),
            BASE_NS,
            BASE_NS + noise_floor_ns(0.5),
        );

        let slow = trial
            .log
            .iter()
            .filter(|entry| entry.hold_ns > STALL_NS / 2)
            .count() as u64;
        let measured = trial.report.measures().response.count_above(STALL_NS / 2);
        timing.expect(
            measured.abs_diff(slow) <= 2,
            &format!("{measured} response times exceed half a stall, expected {slow}"),
        );
    });
}

#[test]
fn f4_a_closed_loop_of_one_user_hides_the_same_stall() {
    judge_timing(|timing| {
        let trial = timing.run_trial(stalling(None), |url| {
            LoadPlan::closed(url, 1, 2 * PERIOD_NS)
        });
        assert_eq!(trial.count(Outcome::Ok), trial.log.len() as u64);
        assert_encloses(&trial.report.measures().service, &trial.times_in_server());

        let response = &trial.report.measures().response;
        let slow = response.count_above(STALL_NS / 2);
        timing.expect(
            slow == 2,
            &format!("{slow} response times exceed half a stall, expected one per stall (2)"),
        );
        timing.assert_min_expect_max(
            "response p99",
            response.quantile_ns(0.99),
            BASE_NS,
            BASE_NS + noise_floor_ns(0.99),
        );
        // For the same stalls, an open loop measures a p99 of 191 ms.
        assert_eq!(stalled_quantile_ns(0.99, 1.0), 191 * MS);
    });
}

#[test]
fn f4_with_one_connection_a_stall_shows_in_response_times_but_not_in_service_times() {
    judge_timing(|timing| {
        let trial = timing.run_trial(stalling(None), |url| capped(url, 200.0, 2 * PERIOD_NS, 1));
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (400, 400, 400)
        );
        let measures = trial.report.measures();
        // One connection is served in order, so the i-th log entry is the i-th arrival of the
        // schedule.
        let mut plan = trial.report.plan.clone();
        let schedule = Schedule::new(open_loop(&mut plan), 0, &trial.report.plan.phases);
        let start_ns = trial.report.clock.monotonic_ns;
        let mut server_response_ns: Vec<u64> = schedule
            .zip(&trial.log)
            .map(|(offset_ns, entry)| {
                entry.write_ns.expect("a write time") - (start_ns + offset_ns)
            })
            .collect();
        server_response_ns.sort_unstable();
        assert_encloses(&measures.response, &server_response_ns);
        assert_encloses(&measures.service, &trial.times_in_server());

        let excess_ns = median_excess_ns(&measures.response, &server_response_ns);
        timing.expect(
            excess_ns <= 200 * US,
            &format!("the client adds {excess_ns} ns at the median"),
        );
        timing.assert_min_expect_max(
            "service p99",
            measures.service.quantile_ns(0.99),
            BASE_NS,
            BASE_NS + noise_floor_ns(0.99),
        );
        let response_p99_ns = measures.response.quantile_ns(0.99);
        timing.assert_min_expect_max("response p99", response_p99_ns, 180 * MS, 205 * MS);
        timing.expect_range(
            "pool wait p99",
            measures.pool_wait.quantile_ns(0.99),
            175 * MS,
            205 * MS,
        );
        timing.assert_min_expect_max(
            "send lag p99",
            measures.send_lag.quantile_ns(0.99),
            0,
            noise_floor_ns(0.99),
        );
    });
}

#[test]
fn f5_the_backlog_of_a_stalled_single_server_drains_as_calculated() {
    judge_timing(|timing| {
        let trial = timing.run_trial(stalling(Some(1)), |url| {
            constant_rate(url, 500.0, 2 * PERIOD_NS)
        });
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (1_000, 1_000, 1_000)
        );
        assert_encloses(&trial.report.measures().service, &trial.times_in_server());
        // At 50 % utilization, the backlog drains half as fast as it grew during the stall.
        expect_quantiles(timing, &trial, 0.5, BASE_NS);
    });
}
