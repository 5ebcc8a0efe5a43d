//! F1, F2 and the comparison per request: the client measures the same times as the server.

use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Timing, Trial, US, assert_encloses, constant_hold, constant_rate, judge_timing,
    median_excess_ns, noise_floor_ns,
};

fn assert_constant_hold_measured(timing: &mut Timing, hold_ns: u64) {
    let trial = timing.run_trial(constant_hold(hold_ns), |url| {
        constant_rate(url, 1_000.0, SECOND)
    });
    let counts = (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len());
    assert_eq!(
        counts,
        (1_000, 1_000, 1_000),
        "every request is sent once and gets a response"
    );

    let service = &trial.report.measures().service;
    assert!(
        service.min_ns() >= Some(hold_ns),
        "{:?} is shorter than the hold",
        service.min_ns()
    );
    assert_encloses(service, &trial.times_in_server());
    for (name, times) in [
        ("service", service),
        ("response", &trial.report.measures().response),
    ] {
        for quantile in [0.5, 0.9, 0.95, 0.99, 0.999] {
            let what = format!(
                "{name} time p{} with a hold of {hold_ns} ns",
                quantile * 100.0
            );
            timing.assert_min_expect_max(
                &what,
                times.quantile_ns(quantile),
                hold_ns,
                hold_ns + noise_floor_ns(quantile),
            );
        }
    }
}

#[test]
fn f1_an_immediate_response_is_measured_at_every_quantile() {
    judge_timing(|timing| assert_constant_hold_measured(timing, 0));
}

#[test]
fn f1_a_hold_of_1_ms_is_measured_at_every_quantile() {
    judge_timing(|timing| assert_constant_hold_measured(timing, MS));
}

#[test]
fn f1_a_hold_of_10_ms_is_measured_at_every_quantile() {
    judge_timing(|timing| assert_constant_hold_measured(timing, 10 * MS));
}

#[test]
fn f1_a_hold_of_100_ms_is_measured_at_every_quantile() {
    judge_timing(|timing| assert_constant_hold_measured(timing, 100 * MS));
}

#[test]
fn f2_rare_slow_responses_are_counted_exactly_and_show_in_the_correct_quantiles() {
    judge_timing(|timing| {
        let service = Service::Bimodal {
            fast_ns: MS,
            slow_ns: 50 * MS,
            slow_every: 200,
        };
        let config = Config {
            service,
            ..Config::default()
        };
        let trial = timing.run_trial(config, |url| constant_rate(url, 1_000.0, SECOND));
        assert_eq!(
            (trial.scheduled(), trial.count(Outcome::Ok), trial.log.len()),
            (1_000, 1_000, 1_000)
        );
        let planned_slow = trial
            .log
            .iter()
            .filter(|entry| entry.hold_ns == 50 * MS)
            .count() as u64;
        assert_eq!(planned_slow, 5, "one in 200 of 1,000");

        let service = &trial.report.measures().service;
        assert!(
            service.count_above(50 * MS - MS) >= planned_slow,
            "a slow response was measured as fast"
        );
        let slow =
            [service, &trial.report.measures().response].map(|times| times.count_above(25 * MS));
        timing.expect(
            slow == [planned_slow; 2],
            &format!("{slow:?} responses took more than 25 ms, not 5"),
        );
        for times in [service, &trial.report.measures().response] {
            timing.assert_min_expect_max(
                "p99",
                times.quantile_ns(0.99),
                MS,
                MS + noise_floor_ns(0.99),
            );
            timing.assert_min_expect_max(
                "p99.9",
                times.quantile_ns(0.999),
                50 * MS,
                50 * MS + noise_floor_ns(0.999),
            );
        }
    });
}

fn expect_small_excess(timing: &mut Timing, trial: &Trial) {
    let in_server = trial.times_in_server();
    let service = &trial.report.measures().service;
    assert_encloses(service, &in_server);
    let excess_ns = median_excess_ns(service, &in_server);
    timing.expect(
        excess_ns <= 200 * US,
        &format!("the client adds {excess_ns} ns at the median"),
    );
}

#[test]
fn client_times_enclose_server_times_rank_by_rank_and_tightly() {
    judge_timing(|timing| {
        let service = Service::Exponential {
            mean_ns: 2 * MS,
            seed: 7,
        };
        let config = Config {
            service,
            ..Config::default()
        };
        let trial = timing.run_trial(config, |url| LoadPlan::open(url, 500.0, SECOND));

        assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
        expect_small_excess(timing, &trial);
    });
}

#[test]
fn client_times_enclose_server_times_with_a_single_server_queue() {
    judge_timing(|timing| {
        let service = Service::Exponential {
            mean_ns: 2 * MS,
            seed: 7,
        };
        let config = Config {
            service,
            servers: Some(1),
            ..Config::default()
        };
        let trial = timing.run_trial(config, |url| LoadPlan {
            threads: 2,
            ..LoadPlan::open(url, 250.0, 2 * SECOND)
        });

        assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
        expect_small_excess(timing, &trial);
    });
}
