//! F10: a closed loop matches queueing theory.

use loadgen::plan::{ClosedLoop, LoadModel, Phases};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Timing, Trial, US, assert_encloses, constant_hold, judge, judge_timing, lock_host,
    median_excess_ns, noise_floor_ns,
};

const THINK_NS: u64 = 20 * MS;
const SERVICE_NS: u64 = 2 * MS;
const MEASURE_NS: u64 = 3 * SECOND;
const LONG_NS: u64 = 60 * SECOND;

/// Relative standard errors of a load of [`MEASURE_NS`], from hundreds of simulated loads.
struct StandardErrors {
    throughput: f64,
    response: f64,
    response_p99: f64,
    law: f64,
}

/// Throughput per second and mean response time in seconds, by exact mean value analysis.
fn mean_value_analysis(users: usize) -> (f64, f64) {
    let (service_s, think_s) = (SERVICE_NS as f64 / 1e9, THINK_NS as f64 / 1e9);
    let (mut throughput, mut response_s, mut queued) = (0.0, 0.0, 0.0);
    for others in 0..users {
        response_s = service_s * (1.0 + queued);
        throughput = (others + 1) as f64 / (response_s + think_s);
        queued = throughput * response_s;
    }
    (throughput, response_s)
}

#[test]
fn mean_value_analysis_gives_the_published_figures() {
    for (users, throughput, response_ms) in [
        (5, 218.02, 2.933),
        (10, 392.71, 5.464),
        (20, 499.07, 20.075),
    ] {
        let (computed, computed_s) = mean_value_analysis(users);
        assert!(
            (computed / throughput - 1.0).abs() < 1e-4,
            "{users} users: {computed} per second"
        );
        assert!(
            (computed_s * 1e3 / response_ms - 1.0).abs() < 2e-4,
            "{users} users: {computed_s} s"
        );
    }
}

fn thinking_users(url: &str, users: usize, measure_ns: u64) -> LoadPlan {
    let load = LoadModel::Closed(ClosedLoop {
        connections: users,
        think_time_ns: THINK_NS,
    });
    let phases = Phases {
        warmup_ns: SECOND / 2,
        measure_ns,
        cooldown_ns: 0,
        drain_ns: None,
    };

    LoadPlan {
        load,
        phases,
        seed: 3,
        ..LoadPlan::closed(url, users, measure_ns)
    }
}

/// A number of users, their p99 response time according to the arrival theorem, and the standard
/// errors.
struct Users {
    count: usize,
    p99_ms: f64,
    errors: StandardErrors,
}

const FIVE: Users = Users {
    count: 5,
    p99_ms: 12.82,
    errors: StandardErrors {
        throughput: 0.034,
        response: 0.060,
        response_p99: 0.112,
        law: 0.035,
    },
};
const TEN: Users = Users {
    count: 10,
    p99_ms: 20.30,
    errors: StandardErrors {
        throughput: 0.023,
        response: 0.070,
        response_p99: 0.110,
        law: 0.024,
    },
};
const TWENTY: Users = Users {
    count: 20,
    p99_ms: 43.71,
    errors: StandardErrors {
        throughput: 0.027,
        response: 0.060,
        response_p99: 0.085,
        law: 0.015,
    },
};

fn assert_mean_value_analysis(timing: &mut Timing, users: &Users, measure_ns: u64) {
    let Users {
        count: users,
        p99_ms,
        ref errors,
    } = *users;
    let service = Service::Exponential {
        mean_ns: SERVICE_NS,
        seed: 3,
    };
    let config = Config {
        service,
        servers: Some(1),
        ..Config::default()
    };
    let trial = timing.run_trial(config, |url| thinking_users(url, users, measure_ns));
    assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
    assert_eq!(
        (trial.report.connections.opened, trial.stats.connections),
        (users as u64, users as u64)
    );

    let (expected_per_s, expected_s) = mean_value_analysis(users);
    let response = &trial.report.measures().response;
    let (per_s, response_s) = (
        trial.report.rate.goodput_per_s.unwrap(),
        response.mean_ns().unwrap() / 1e9,
    );
    // Standard errors decrease with the square root of the length.
    let error_factor = 4.0 * (MEASURE_NS as f64 / measure_ns as f64).sqrt();
    // The noise floor of client, kernel and server lengthens each cycle.
    let floor_share = 200e-6 / (THINK_NS as f64 / 1e9);
    let max_per_s = expected_per_s * (1.0 + error_factor * errors.throughput);
    assert!(
        per_s <= max_per_s,
        "{per_s} per second: impossible with this think time"
    );
    let mut expect = |what: &str, measured: f64, expected: f64, tolerance: f64| {
        let deviation = measured / expected - 1.0;
        timing.expect(
            deviation.abs() <= tolerance,
            &format!("{what}: {measured:.4}, expected {expected:.4}"),
        );
    };
    expect(
        "throughput",
        per_s,
        expected_per_s,
        error_factor * errors.throughput + floor_share,
    );
    expect(
        "response time",
        response_s,
        expected_s,
        error_factor * errors.response + 200e-6 / expected_s,
    );
    let (p99_s, measured_p99_s) = (
        p99_ms / 1e3,
        response.quantile_ns(0.99).unwrap() as f64 / 1e9,
    );
    let floor_share_of_p99 = noise_floor_ns(0.99) as f64 / 1e9 / p99_s;
    expect(
        "response time p99",
        measured_p99_s,
        p99_s,
        error_factor * errors.response_p99 + floor_share_of_p99,
    );
    let cycle_s = response_s + THINK_NS as f64 / 1e9;
    expect(
        "X(R + Z)",
        per_s * cycle_s,
        users as f64,
        error_factor * errors.law + floor_share,
    );
}

#[test]
fn f10_five_users_follow_mean_value_analysis() {
    judge_timing(|timing| assert_mean_value_analysis(timing, &FIVE, MEASURE_NS));
}

#[test]
fn f10_ten_users_follow_mean_value_analysis() {
    judge_timing(|timing| assert_mean_value_analysis(timing, &TEN, MEASURE_NS));
}

#[test]
fn f10_twenty_users_follow_mean_value_analysis() {
    judge_timing(|timing| assert_mean_value_analysis(timing, &TWENTY, MEASURE_NS));
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f10_five_users_follow_mean_value_analysis_for_a_minute() {
    judge(1, |timing| {
        assert_mean_value_analysis(timing, &FIVE, LONG_NS)
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f10_ten_users_follow_mean_value_analysis_for_a_minute() {
    judge(1, |timing| {
        assert_mean_value_analysis(timing, &TEN, LONG_NS)
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f10_twenty_users_follow_mean_value_analysis_for_a_minute() {
    judge(1, |timing| {
        assert_mean_value_analysis(timing, &TWENTY, LONG_NS)
    });
}

#[test]
fn users_without_think_time_send_at_once_but_never_before_the_response() {
    judge_timing(|timing| {
        let trial = timing.run_trial(constant_hold(5 * MS), |url| {
            LoadPlan::closed(url, 1, SECOND / 2)
        });
        assert_eq!(
            (trial.count(Outcome::Ok), trial.report.connections.opened),
            (trial.log.len() as u64, 1)
        );

        let pauses: Vec<u64> = trial
            .log
            .windows(2)
            .map(|pair| {
                pair[1]
                    .arrive_ns
                    .checked_sub(pair[0].write_ns.unwrap())
                    .expect("each request follows the response")
            })
            .collect();
        let mean_ns = pauses.iter().sum::<u64>() / pauses.len() as u64;

        timing.expect(
            mean_ns <= 300 * US,
            &format!("a user pauses for {mean_ns} ns without think time"),
        );
        assert_encloses(&trial.report.measures().service, &trial.times_in_server());

        let excess_ns =
            median_excess_ns(&trial.report.measures().service, &trial.times_in_server());
        timing.expect(
            excess_ns <= 200 * US,
            &format!("the client adds {excess_ns} ns at the median"),
        );
    });
}

#[test]
fn users_are_distributed_over_threads() {
    let _host = lock_host();
    let trial = Trial::of(constant_hold(5 * MS), |url| LoadPlan {
        threads: 2,
        ..LoadPlan::closed(url, 5, SECOND / 2)
    });
    assert_eq!(
        (trial.stats.connections, trial.report.connections.opened),
        (5, 5)
    );
    assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
    assert_eq!(trial.scheduled(), trial.log.len() as u64);
    assert_encloses(&trial.report.measures().service, &trial.times_in_server());
}

#[test]
fn a_closed_loop_ends_after_its_number_of_requests() {
    let _host = lock_host();
    for threads in [1, 2] {
        let trial = Trial::of(constant_hold(5 * MS), |url| LoadPlan {
            threads,
            requests: Some(101),
            ..LoadPlan::closed(url, 4, 30 * SECOND)
        });
        let report = &trial.report;
        assert_eq!((trial.scheduled(), trial.log.len()), (101, 101));
        assert_eq!(trial.count(Outcome::Ok), 101);
        assert_eq!(report.connections.opened, 4);

        // With four users, 26 rounds of 5 ms, and much less than 30 s.
        assert!(
            (130 * MS..10 * SECOND).contains(&report.measured_ns),
            "{} ns",
            report.measured_ns
        );
        let achieved_per_s = report.rate.achieved_per_s.unwrap();
        assert!((achieved_per_s - 101e9 / report.measured_ns as f64).abs() < 1.0);
        assert!(
            (1.0..=4.0).contains(&report.in_system.mean),
            "{:?}",
            report.in_system
        );
        let counted: u64 = report.intervals.iter().map(|one| one.scheduled).sum();
        assert_eq!(counted, 101);
        assert_eq!(report.plan.requests, Some(101), "the number in the plan");
        assert!(report.plan.phases.measure_ns == 30 * SECOND && !trial.has_reason("interrupted"));
    }
}

#[test]
fn a_closed_loop_ends_after_its_duration_even_if_requests_remain() {
    let _host = lock_host();
    let trial = Trial::of(constant_hold(5 * MS), |url| LoadPlan {
        requests: Some(1_000_000),
        ..LoadPlan::closed(url, 2, SECOND / 2)
    });
    let report = &trial.report;
    assert_eq!(trial.count(Outcome::Ok), trial.log.len() as u64);
    assert!(
        report.measured_ns.abs_diff(SECOND / 2) < MS,
        "{} ns",
        report.measured_ns
    );
}
