//! F12 and F21 with real loads: a server that warms up, one that slows down, and one that is
//! overloaded.

use loadgen::plan::OnBusy;
use loadgen::{Level, LoadPlan, Outcome, State};
use refsrv::{Config, Service};

use crate::support::{MS, SECOND, Timing, Trial, US, capped, constant_hold, judge, open_loop};

const RATE_PER_S: f64 = 1_000.0;

fn listed_holds(holds_ns: Vec<u64>) -> Config {
    Config {
        service: Service::List { holds_ns },
        ..Config::default()
    }
}

fn run_poisson(timing: &mut Timing, config: Config, seconds: u64) -> Trial {
    let trial = timing.run_trial(config, |url| {
        LoadPlan::open(url, RATE_PER_S, seconds * SECOND)
    });
    assert_eq!(
        trial.count(Outcome::Ok),
        trial.scheduled(),
        "{:?}",
        trial.report.outcomes
    );

    trial
}

fn reason_sentence(trial: &Trial, check: &str) -> String {
    let reasons = &trial.report.verdict.reasons;
    reasons
        .iter()
        .find(|reason| reason.check == check)
        .map(|reason| reason.sentence())
        .unwrap_or_default()
}

#[test]
#[ignore = "30 s of load: make test-long"]
fn f21_the_end_of_a_five_second_warm_up_is_detected() {
    judge(1, |timing| {
        // The requests of the first five seconds take 20 ms, all later ones 1 ms.
        let holds_ns = (0..40_000)
            .map(|index| if index < 5_000 { 20 * MS } else { MS })
            .collect();
        let trial = run_poisson(timing, listed_holds(holds_ns), 30);

        let stationarity = &trial.report.stationarity;
        timing.expect(
            stationarity.state == Some(State::NonStationary),
            &format!("{stationarity:?}"),
        );

        let settled_ns = stationarity.settled_after_ns.unwrap_or(0);
        timing.expect_range(
            "end of the warm-up",
            Some(settled_ns),
            4 * SECOND,
            6 * SECOND,
        );

        let reason = reason_sentence(&trial, "stationarity");
        timing.expect(reason.contains("longer (--warmup)"), &format!("{reason:?}"));
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f21_response_times_that_rise_by_one_percent_per_second_are_non_stationary() {
    judge(1, |timing| {
        let hold_ns =
            |index: i32| (5.0 * MS as f64 * 1.01_f64.powf(f64::from(index) / RATE_PER_S)) as u64;
        let trial = run_poisson(timing, listed_holds((0..70_000).map(hold_ns).collect()), 60);
        let reason = reason_sentence(&trial, "stationarity");
        timing.expect(
            reason.starts_with("NON-STATIONARY"),
            &format!("{reason:?}: {:?}", trial.report.stationarity),
        );
    });
}

#[test]
#[ignore = "20 s of load: make test-long"]
fn a_steady_server_is_stationary_and_its_p99_is_resolved() {
    judge(1, |timing| {
        let service = Service::Exponential {
            mean_ns: 500 * US,
            seed: 8,
        };
        let trial = run_poisson(
            timing,
            Config {
                service,
                servers: Some(1),
                ..Config::default()
            },
            20,
        );

        let report = &trial.report;
        timing.expect(
            report.stationarity.state == Some(State::Stationary),
            &format!("{:?}", report.stationarity),
        );
        timing.expect(
            report
                .diagnostics
                .iter()
                .all(|diagnostic| diagnostic.check != "poisson-gaps"),
            &format!("{:?}", report.send_gaps),
        );

        let uncertainty = &report.uncertainty.offered_quantiles_ns["0.99"];
        let Some((low_ns, high_ns)) = uncertainty.interval_95_ns else {
            return timing.expect(false, &format!("p99 is not resolved: {uncertainty:?}"));
        };

        let p99_ns = report.offered_quantiles_ns["0.99"].high;
        assert!(
            Some(low_ns) <= p99_ns && p99_ns <= high_ns,
            "{uncertainty:?} does not contain {p99_ns:?}"
        );
        assert!(
            uncertainty.effective_requests < Some(20_000.0),
            "waiting requests are not independent: {uncertainty:?}"
        );
    });
}

fn assert_unstable(trial: &Trial) {
    let report = &trial.report;
    assert!(
        reason_sentence(trial, "backlog-growth").starts_with("UNSTABLE"),
        "{:?}",
        report.verdict
    );
    assert_eq!(
        report.stationarity.state,
        Some(State::Unstable),
        "{:?}",
        report.stationarity
    );

    let reason = report
        .verdict
        .reasons
        .iter()
        .find(|reason| reason.check == "backlog-growth")
        .expect("a reason of backlog-growth");
    assert_eq!(
        reason.level,
        Level::Warn,
        "an overload does not invalidate the measurement"
    );
}

#[test]
#[ignore = "12 s of load and its drain: make test-long"]
fn f21_an_overloaded_server_is_unstable() {
    judge(1, |timing| {
        // A capacity of 800 per second: the backlog grows by 200 each second, to 2,400.
        let config = Config {
            servers: Some(1),
            ..constant_hold(1_250 * US)
        };
        let trial = timing.run_trial(config, |url| LoadPlan::open(url, RATE_PER_S, 12 * SECOND));
        assert_unstable(&trial);

        let growth = trial.report.in_system.growth.unwrap_or(0.0);
        timing.expect(
            (1.5..2.2).contains(&growth),
            &format!("the backlog grew by {growth}"),
        );
    });
}

#[test]
fn f12_a_server_with_a_full_queue_is_unstable_even_with_few_requests() {
    judge(1, |timing| {
        let trial = timing.run_trial(constant_hold(98 * MS), |url| {
            let mut plan = capped(url, 200.0, SECOND, 10);
            let open = open_loop(&mut plan);
            (open.on_busy, open.max_pending) = (OnBusy::Queue, Some(20));
            plan
        });
        assert!(trial.count(Outcome::Dropped) > 0);
        assert_unstable(&trial);
    });
}
