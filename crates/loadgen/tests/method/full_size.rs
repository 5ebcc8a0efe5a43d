//! F4 and F5 at full size: a stall of 1 s every 10 s for one minute, compared with the published
//! values.

use loadgen::plan::{LoadModel, Phases};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Timing, Trial, assert_encloses, constant_rate, judge, noise_floor_ns,
};

const PERIOD_NS: u64 = 10 * SECOND;
/// A multiple of the period, so that every part of the period is covered equally.
const LOAD_NS: u64 = 6 * PERIOD_NS;

fn stalling(servers: Option<usize>) -> Config {
    let service = Service::PeriodicStall {
        base_ns: MS,
        period_ns: PERIOD_NS,
        stall_ns: SECOND,
        offset_ns: 5 * SECOND,
    };
    Config {
        service,
        servers,
        ..Config::default()
    }
}

/// Maximum deviation of a response time below and above the formula, excluding the noise floor.
struct Tolerance {
    share: f64,
    below_ms: f64,
    above_ms: f64,
}

/// Expects each `(quantile, milliseconds)` within the tolerance plus the noise floor.
fn expect_response(
    timing: &mut Timing,
    trial: &Trial,
    expected: &[(f64, f64)],
    tolerance: &Tolerance,
) {
    for &(share, expected_ms) in expected {
        let (min_ms, max_ms) = (
            expected_ms * (1.0 - tolerance.share) - tolerance.below_ms,
            expected_ms * (1.0 + tolerance.share) + tolerance.above_ms,
        );
        timing.expect_range(
            &format!("response p{}", share * 100.0),
            trial.report.measures().response.quantile_ns(share),
            (min_ms.max(1.0) * MS as f64) as u64,
            (max_ms * MS as f64) as u64 + noise_floor_ns(share),
        );
    }
}

/// At most one service time above the formula and one gap below, depending on when the first
/// request of a stall arrives.
fn backlog_tolerance(gap_ms: f64) -> Tolerance {
    Tolerance {
        share: 0.0,
        below_ms: gap_ms,
        above_ms: 1.0,
    }
}

fn run_stalled_open_loop(timing: &mut Timing, servers: Option<usize>, rate_per_s: f64) -> Trial {
    let trial = timing.run_trial(stalling(servers), |url| {
        constant_rate(url, rate_per_s, LOAD_NS)
    });
    let scheduled = trial.scheduled();
    assert_eq!(
        (trial.count(Outcome::Ok), trial.log.len() as u64),
        (scheduled, scheduled)
    );
    assert_encloses(&trial.report.measures().service, &trial.times_in_server());

    trial
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f4_a_stall_of_one_second_shows_in_the_tail_of_an_open_loop() {
    judge(1, |timing| {
        let trial = run_stalled_open_loop(timing, None, 1_000.0);
        let expected = [
            (0.5, 1.0),
            (0.9, 1.0),
            (0.95, 501.0),
            (0.99, 901.0),
            (0.999, 991.0),
        ];
        let tolerance = Tolerance {
            share: 0.01,
            below_ms: 1.0,
            above_ms: 1.0,
        };

        expect_response(timing, &trial, &expected, &tolerance);
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f4_a_closed_loop_of_one_user_has_six_slow_responses_and_a_p99_of_one_millisecond() {
    judge(1, |timing| {
        let trial = timing.run_trial(stalling(None), |url| {
            let plan = LoadPlan::closed(url, 1, LOAD_NS);
            assert!(matches!(plan.load, LoadModel::Closed(_)));

            LoadPlan {
                phases: Phases {
                    warmup_ns: 0,
                    measure_ns: LOAD_NS,
                    cooldown_ns: 0,
                    drain_ns: None,
                },
                ..plan
            }
        });
        let stalled = trial
            .log
            .iter()
            .filter(|entry| entry.hold_ns > SECOND / 10)
            .count() as u64;

        let response = &trial.report.measures().response;
        assert!(
            response.count_above(SECOND / 10) >= stalled,
            "a stalled response was measured as fast"
        );

        let measured = response.count_above(SECOND / 10);
        timing.expect(
            (stalled, measured) == (6, 6),
            &format!("{stalled} stalls and {measured} slow responses, expected 6 each"),
        );
        timing.assert_min_expect_max(
            "p99 of the closed loop",
            response.quantile_ns(0.99),
            MS,
            MS + noise_floor_ns(0.99),
        );
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f5_at_50_percent_utilization_a_backlog_drains_at_half_speed() {
    judge(1, |timing| {
        let trial = run_stalled_open_loop(timing, Some(1), 500.0);
        expect_response(
            timing,
            &trial,
            &[(0.9, 500.0), (0.95, 750.0), (0.99, 950.0), (0.999, 995.0)],
            &backlog_tolerance(2.0),
        );
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f5_at_10_percent_utilization_a_backlog_drains_fast() {
    judge(1, |timing| {
        let trial = run_stalled_open_loop(timing, Some(1), 100.0);
        expect_response(
            timing,
            &trial,
            &[(0.9, 100.0), (0.95, 550.0), (0.99, 910.0), (0.999, 991.0)],
            &backlog_tolerance(10.0),
        );
    });
}
