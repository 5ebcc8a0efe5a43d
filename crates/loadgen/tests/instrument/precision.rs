//! Measurements with a target precision: their length is doubled until the target is reached, and
//! they contain the same requests as a load of that length.

use std::thread;
use std::time::Duration;

use loadgen::plan::{Phases, Precision};
use loadgen::{LoadPlan, Outcome, Schedule, StopToken, run};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Trial, assert_consistent, constant_hold, constant_rate, judge_timing, lock_host,
    open_loop, server_with, url_of,
};

const RATE_PER_S: f64 = 500.0;

fn target_precision(quantile: f64, half_width: f64, max_duration_ns: u64) -> Option<Precision> {
    Some(Precision {
        quantile,
        half_width,
        max_duration_ns,
    })
}

/// Asserts that the measurement lasted exactly `multiple` times its shortest length, and that the
/// requests of all phases were sent.
fn assert_measured(trial: &Trial, multiple: u64) {
    let report = &trial.report;
    assert_eq!(report.measured_ns, multiple * SECOND);
    assert_eq!(report.intervals.len() as u64, multiple);
    assert!(
        report
            .intervals
            .iter()
            .all(|interval| interval.length_ns == SECOND)
    );
    assert_eq!(
        report.plan.phases.measure_ns, SECOND,
        "the report contains the original plan"
    );

    let mut plan = report.plan.clone();
    let (seed, phases) = (
        plan.seed,
        Phases {
            measure_ns: multiple * SECOND,
            ..plan.phases.clone()
        },
    );
    let offsets: Vec<u64> = Schedule::new(open_loop(&mut plan), seed, &phases).collect();
    let (from_ns, to_ns) = (phases.warmup_ns, phases.warmup_ns + phases.measure_ns);

    let measured = offsets
        .iter()
        .filter(|offset_ns| (from_ns..to_ns).contains(*offset_ns))
        .count() as u64;
    assert_eq!(
        (trial.scheduled(), trial.count(Outcome::Ok)),
        (measured, measured)
    );
    assert_eq!(
        trial.log.len(),
        offsets.len(),
        "all requests of all phases are sent, and no others"
    );
}

#[test]
fn a_measurement_ends_at_the_first_analysis_with_enough_precision() {
    for threads in [1, 2] {
        judge_timing(|timing| {
            let trial = timing.run_trial(constant_hold(5 * MS), |url| {
                let phases = Phases {
                    warmup_ns: SECOND / 2,
                    measure_ns: SECOND,
                    cooldown_ns: SECOND / 4,
                    drain_ns: None,
                };
                let precision = target_precision(0.5, 0.5, 10 * SECOND);
                LoadPlan {
                    precision,
                    threads,
                    phases,
                    ..constant_rate(url, RATE_PER_S, SECOND)
                }
            });
            let multiple = trial.report.measured_ns / SECOND;

            assert_measured(&trial, multiple);
            assert!(trial.report.precision.unwrap().is_reached);
            // If an analysis is late, the next analysis decides.
            timing.expect(
                multiple == 1,
                &format!("the measurement lasted {multiple} times its shortest length"),
            );
        });
    }
}

#[test]
fn a_measurement_without_enough_precision_ends_after_the_last_doubling_and_reports_it() {
    let _host = lock_host();
    let service = Service::Exponential {
        mean_ns: MS,
        seed: 4,
    };
    let trial = Trial::of(
        Config {
            service,
            ..Config::default()
        },
        |url| {
            let phases = Phases {
                warmup_ns: SECOND / 4,
                measure_ns: SECOND,
                cooldown_ns: SECOND / 4,
                drain_ns: None,
            };
            let precision = target_precision(0.9, 0.000_1, 7 * SECOND);
            LoadPlan {
                precision,
                phases,
                threads: 2,
                seed: 9,
                ..LoadPlan::open(url, RATE_PER_S, SECOND)
            }
        },
    );

    assert_measured(&trial, 4);

    let precision = trial.report.precision.unwrap();
    assert!(
        !precision.is_reached
            // None if too few of the requests were independent, as beside a busy neighbour.
            && precision
                .half_width
                .is_none_or(|half_width| half_width > 0.000_1),
        "{precision:?}"
    );
}

#[test]
fn a_load_of_fixed_length_reports_no_precision() {
    let _host = lock_host();
    let trial = Trial::of(constant_hold(0), |url| {
        constant_rate(url, RATE_PER_S, SECOND)
    });
    assert_eq!(trial.report.precision, None);
}

#[test]
fn stopping_between_two_analyses_ends_the_measurement() {
    let _host = lock_host();
    let server = server_with(constant_hold(0));
    let precision = target_precision(0.9, 0.000_1, 8 * SECOND);
    let plan = LoadPlan {
        precision,
        threads: 2,
        ..constant_rate(&url_of(&server), RATE_PER_S, SECOND)
    };
    let stop = StopToken::new();
    let stopped = stop.clone();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(2_500));
        stopped.stop();
    });
    let report = run(&plan, &stop).unwrap();
    stopping.join().unwrap();

    assert_consistent(&report);
    assert!(
        (2 * SECOND..4 * SECOND).contains(&report.measured_ns),
        "{}",
        report.measured_ns
    );
    assert!(
        report
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.check == "interrupted")
    );
    assert!(!report.precision.unwrap().is_reached);
}

#[test]
fn only_an_open_loop_at_a_constant_rate_can_be_extended() {
    let precision = target_precision(0.99, 0.1, 60 * SECOND);
    let closed = LoadPlan {
        precision,
        ..LoadPlan::closed("http://127.0.0.1:9/", 4, SECOND)
    };
    let message = run(&closed, &StopToken::new()).unwrap_err().to_string();
    assert!(message.contains("constant rate"), "{message}");
}
