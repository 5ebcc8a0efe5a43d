//! Measurements with a target precision: they end exactly after a doubling of their length, and
//! contain what a load of that length contains.

use std::thread;
use std::time::Duration;

use loadgen::plan::{Phases, Precision};
use loadgen::{LoadPlan, Outcome, Schedule, StopToken, run};
use refsrv::{Config, Service};

use crate::support::{
    MS, SECOND, Trial, alone, assert_sound, constant, holding, judge_timing, open_loop,
    server_with, url_of,
};

const RATE_PER_S: f64 = 500.0;

fn until(quantile: f64, half_width: f64, max_duration_ns: u64) -> Option<Precision> {
    Some(Precision {
        quantile,
        half_width,
        max_duration_ns,
    })
}

/// Asserts that the measurement lasted exactly this many times its shortest length, and that every
/// phase has its arrivals.
fn assert_lasted(trial: &Trial, times: u64) {
    let report = &trial.report;
    assert_eq!(report.measured_ns, times * SECOND);
    assert_eq!(report.intervals.len() as u64, times);
    assert!(
        report
            .intervals
            .iter()
            .all(|interval| interval.length_ns == SECOND)
    );
    assert_eq!(
        report.plan.phases.measure_ns, SECOND,
        "the plan as requested"
    );
    let mut plan = report.plan.clone();
    let (seed, phases) = (
        plan.seed,
        Phases {
            measure_ns: times * SECOND,
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
        "nothing of another phase is lost, and nothing comes after it"
    );
}

#[test]
fn the_measurement_ends_at_the_first_analysis_with_enough_precision() {
    for threads in [1, 2] {
        judge_timing(|timing| {
            let trial = timing.trial(holding(5 * MS), |url| {
                let phases = Phases {
                    warmup_ns: SECOND / 2,
                    measure_ns: SECOND,
                    cooldown_ns: SECOND / 4,
                    drain_ns: None,
                };
                let precision = until(0.5, 0.5, 10 * SECOND);
                LoadPlan {
                    precision,
                    threads,
                    phases,
                    ..constant(url, RATE_PER_S, SECOND)
                }
            });
            let times = trial.report.measured_ns / SECOND;
            assert_lasted(&trial, times);
            assert!(trial.report.precision.unwrap().is_reached);
            // An analysis that is too late leaves the decision to the next one, as it should.
            timing.expect(
                times == 1,
                &format!("it took {times} times the shortest length"),
            );
        });
    }
}

#[test]
fn a_measurement_without_enough_precision_ends_after_the_last_doubling_and_reports_it() {
    let _alone = alone();
    let scattered = Service::Exponential {
        mean_ns: MS,
        seed: 4,
    };
    let trial = Trial::of(
        Config {
            service: scattered,
            ..Config::default()
        },
        |url| {
            let phases = Phases {
                warmup_ns: SECOND / 4,
                measure_ns: SECOND,
                cooldown_ns: SECOND / 4,
                drain_ns: None,
            };
            let precision = until(0.9, 0.000_1, 7 * SECOND);
            LoadPlan {
                precision,
                phases,
                threads: 2,
                seed: 9,
                ..LoadPlan::open(url, RATE_PER_S, SECOND)
            }
        },
    );
    assert_lasted(&trial, 4);
    let precision = trial.report.precision.unwrap();
    assert!(
        !precision.is_reached
            && precision
                .half_width
                .is_some_and(|half_width| half_width > 0.000_1),
        "{precision:?}"
    );
}

#[test]
fn a_load_of_fixed_length_reports_no_precision() {
    let _alone = alone();
    let trial = Trial::of(holding(0), |url| constant(url, RATE_PER_S, SECOND));
    assert_eq!(trial.report.precision, None);
}

#[test]
fn a_stop_between_two_analyses_ends_the_measurement() {
    let _alone = alone();
    let server = server_with(holding(0));
    let precision = until(0.9, 0.000_1, 8 * SECOND);
    let plan = LoadPlan {
        precision,
        threads: 2,
        ..constant(&url_of(&server), RATE_PER_S, SECOND)
    };
    let stop = StopToken::new();
    let stopped = stop.clone();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(2_500));
        stopped.stop();
    });
    let report = run(&plan, &stop).unwrap();
    stopping.join().unwrap();
    assert_sound(&report);
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
    let precision = until(0.99, 0.1, 60 * SECOND);
    let closed = LoadPlan {
        precision,
        ..LoadPlan::closed("http://127.0.0.1:9/", 4, SECOND)
    };
    let message = run(&closed, &StopToken::new()).unwrap_err().to_string();
    assert!(message.contains("constant rate"), "{message}");
}
