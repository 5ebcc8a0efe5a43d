//! F4 and F5 as specified by the method: a stall of 1 s every 10 s, for one minute, and the
//! published values.

use loadgen::plan::{LoadModel, Phases};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::support::{MS, SECOND, Timing, Trial, assert_encloses, constant, floor_ns, judge};

const PERIOD_NS: u64 = 10 * SECOND;
/// Whole periods, so that every part of the period is covered equally.
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

/// Maximum deviation of a response time below and above the formula, excluding the floor.
struct Tolerance {
    share: f64,
    below_ms: f64,
    above_ms: f64,
}

/// Expects `(quantile, milliseconds)` within the tolerance and the floor.
fn expect_response(
    timing: &mut Timing,
    trial: &Trial,
    expected: &[(f64, f64)],
    tolerance: &Tolerance,
) {
    for &(share, expected_ms) in expected {
        let (least_ms, most_ms) = (
            expected_ms * (1.0 - tolerance.share) - tolerance.below_ms,
            expected_ms * (1.0 + tolerance.share) + tolerance.above_ms,
        );
        timing.about(
            &format!("response p{}", share * 100.0),
            trial.report.measures().response.quantile_ns(share),
            (least_ms.max(1.0) * MS as f64) as u64,
            (most_ms * MS as f64) as u64 + floor_ns(share),
        );
    }
}

/// At most one service time above the formula, and at most one gap below, depending on where the
/// first arrival falls within a stall.
fn of_a_backlog(gap_ms: f64) -> Tolerance {
    Tolerance {
        share: 0.0,
        below_ms: gap_ms,
        above_ms: 1.0,
    }
}

fn open_loop_at_a_stall(timing: &mut Timing, servers: Option<usize>, rate_per_s: f64) -> Trial {
    let trial = timing.trial(stalling(servers), |url| constant(url, rate_per_s, LOAD_NS));
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
fn f4_a_stall_of_a_second_is_in_the_open_loops_tail() {
    judge(1, |timing| {
        let trial = open_loop_at_a_stall(timing, None, 1_000.0);
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
fn f4_a_waiting_user_meets_all_six_stalls_but_its_p99_is_a_millisecond() {
    judge(1, |timing| {
        let trial = timing.trial(stalling(None), |url| {
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
            "a stall was measured as a fast answer"
        );
        let seen = response.count_above(SECOND / 10);
        timing.expect(
            (stalled, seen) == (6, 6),
            &format!("{stalled} requests were stalled, and {seen} took long"),
        );
        timing.within(
            "p99 of who waits",
            response.quantile_ns(0.99),
            MS,
            MS + floor_ns(0.99),
        );
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f5_a_backlog_at_half_load_drains_at_half_speed() {
    judge(1, |timing| {
        let trial = open_loop_at_a_stall(timing, Some(1), 500.0);
        expect_response(
            timing,
            &trial,
            &[(0.9, 500.0), (0.95, 750.0), (0.99, 950.0), (0.999, 995.0)],
            &of_a_backlog(2.0),
        );
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f5_a_backlog_at_a_tenth_of_the_load_drains_fast() {
    judge(1, |timing| {
        let trial = open_loop_at_a_stall(timing, Some(1), 100.0);
        expect_response(
            timing,
            &trial,
            &[(0.9, 100.0), (0.95, 550.0), (0.99, 910.0), (0.999, 991.0)],
            &of_a_backlog(10.0),
        );
    });
}
