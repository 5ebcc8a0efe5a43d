//! Whole loads: schedule, phases, early end.

use std::thread;
use std::time::{Duration, Instant};

use loadgen::plan::{
    Arrivals, ClosedLoop, LoadModel, LoadProfile, Phases, Ramp, Replay, Step, Trace,
};
use loadgen::{Level, LoadPlan, LoadReport, Outcome, Schedule, StopToken, run};
use refsrv::{Config, Fault, FaultPlan, ReferenceServer, Service, When};
use serde_json::json;

use crate::support::{
    MS, SECOND, Timing, Trial, US, alone, assert_sound, capped, constant, holding, judge_timing,
    open_loop, server_with, url_of,
};

/// No request arrives before its scheduled time; the typical arrival follows right after it.
fn arrivals_follow_the_schedule(timing: &mut Timing, trial: &Trial) {
    let mut plan = trial.report.plan.clone();
    let (seed, phases) = (plan.seed, plan.phases.clone());
    let start_ns = trial.report.clock.monotonic_ns;
    let intended: Vec<u64> = Schedule::new(open_loop(&mut plan), seed, &phases)
        .map(|offset_ns| start_ns + offset_ns)
        .collect();
    let arrivals = trial.arrivals();
    assert_eq!(
        arrivals.len(),
        intended.len(),
        "every arrival of the schedule, and no others"
    );
    assert_eq!(
        (trial.scheduled(), trial.count(Outcome::Ok)),
        (intended.len() as u64, intended.len() as u64)
    );

    let late = |(arrival_ns, intended_ns): (&u64, &u64)| {
        arrival_ns
            .checked_sub(*intended_ns)
            .expect("nothing arrives before it was to be sent")
    };
    let mut late_ns: Vec<u64> = arrivals.iter().zip(&intended).map(late).collect();
    late_ns.sort_unstable();
    let (median_ns, p99_ns) = (
        late_ns[late_ns.len() / 2],
        late_ns[late_ns.len() * 99 / 100],
    );
    timing.expect(
        median_ns <= 200 * US,
        &format!("the median arrival is {median_ns} ns late"),
    );
    timing.expect(
        p99_ns <= 2 * MS,
        &format!("one arrival in a hundred is {p99_ns} ns late"),
    );
}

#[test]
fn evenly_spaced_arrivals_reach_the_server_evenly_spaced() {
    judge_timing(|timing| {
        let trial = timing.trial(holding(0), |url| constant(url, 500.0, SECOND));
        assert_eq!(trial.scheduled(), 500);
        arrivals_follow_the_schedule(timing, &trial);
        let mut gaps: Vec<u64> = trial
            .arrivals()
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        gaps.sort_unstable();
        for (share, slack_ns) in [(5, 200 * US), (50, 20 * US), (95, 200 * US)] {
            let gap_ns = gaps[gaps.len() * share / 100];
            timing.about(
                &format!("gap p{share}"),
                Some(gap_ns),
                2 * MS - slack_ns,
                2 * MS + slack_ns,
            );
        }
    });
}

#[test]
fn random_arrivals_reach_the_server_as_drawn_and_depend_on_the_seed() {
    judge_timing(|timing| {
        let trial = timing.trial(holding(0), |url| LoadPlan {
            seed: 11,
            ..LoadPlan::open(url, 500.0, SECOND)
        });
        arrivals_follow_the_schedule(timing, &trial);
    });
}

#[test]
fn two_threads_share_one_schedule() {
    for poisson in [false, true] {
        judge_timing(|timing| {
            let trial = timing.trial(holding(0), |url| {
                let plan = if poisson {
                    LoadPlan::open(url, 500.0, SECOND)
                } else {
                    constant(url, 500.0, SECOND)
                };
                LoadPlan {
                    threads: 2,
                    seed: 5,
                    ..plan
                }
            });
            arrivals_follow_the_schedule(timing, &trial);
        });
    }
}

fn offering(url: &str, profile: &LoadProfile) -> LoadPlan {
    let mut plan = LoadPlan {
        interval_ns: Some(SECOND / 2),
        seed: 3,
        ..constant(url, 1.0, SECOND)
    };
    open_loop(&mut plan).profile = profile.clone();
    plan
}

fn arrivals_by_interval(trial: &Trial) -> Vec<u64> {
    trial
        .report
        .intervals
        .iter()
        .map(|interval| interval.scheduled)
        .collect()
}

#[test]
fn a_load_whose_rate_varies_is_sent_as_planned_and_reported_as_a_mixture() {
    let step = |rate_per_s: f64| Step {
        rate_per_s,
        duration_ns: SECOND / 2,
    };
    // 200 t + 200 t² arrivals after t seconds: 150 in the first half, 250 in the second.
    let ramp = LoadProfile::Ramp(Ramp {
        from_per_s: 200.0,
        to_per_s: 600.0,
        over_ns: None,
    });
    let steps = LoadProfile::Steps(vec![step(600.0), step(100.0)]);
    for (profile, expected) in [(ramp, [150, 250]), (steps, [300, 50])] {
        judge_timing(|timing| {
            let trial = timing.trial(holding(0), |url| LoadPlan {
                threads: 2,
                ..offering(url, &profile)
            });
            arrivals_follow_the_schedule(timing, &trial);
            assert_eq!(arrivals_by_interval(&trial), expected);
            assert_eq!(
                trial.report.rate.offered_per_s,
                Some((expected[0] + expected[1]) as f64)
            );
            assert!(trial.has_reason("mixed-rates") && !trial.has_reason("arrival-count"));
        });
    }
}

#[test]
fn a_random_ramp_is_sent_as_drawn() {
    judge_timing(|timing| {
        let ramp = LoadProfile::Ramp(Ramp {
            from_per_s: 0.0,
            to_per_s: 800.0,
            over_ns: None,
        });
        let trial = timing.trial(holding(0), |url| {
            let mut plan = LoadPlan {
                threads: 2,
                ..offering(url, &ramp)
            };
            open_loop(&mut plan).arrivals = Arrivals::Poisson;
            plan
        });
        arrivals_follow_the_schedule(timing, &trial);
        assert!(
            !trial.has_reason("arrival-count"),
            "{} arrivals",
            trial.scheduled()
        );
    });
}

#[test]
fn a_trace_is_sent_arrival_for_arrival() {
    judge_timing(|timing| {
        // Bursts of five every ten milliseconds, in the first half of the load only.
        let bursts = (0..100)
            .flat_map(|burst| std::iter::repeat_n(burst * 10 * MS, 5))
            .collect();
        let replay = LoadProfile::Replay(Replay {
            offsets_ns: Trace::new(bursts).unwrap(),
            speed: 2.0,
            requests: None,
        });
        let trial = timing.trial(holding(0), |url| LoadPlan {
            threads: 2,
            ..offering(url, &replay)
        });
        arrivals_follow_the_schedule(timing, &trial);
        assert_eq!(arrivals_by_interval(&trial), [500, 0]);
        assert_eq!(trial.report.rate.offered_per_s, Some(500.0));
        assert!(!trial.has_reason("mixed-rates") && !trial.has_reason("arrival-count"));
    });
}

#[test]
fn on_shared_cores_nothing_busy_waits_unless_requested() {
    let _alone = alone();
    for (requested_ns, window_ns, reason) in
        [(None, 0, "off_on_shared_cores"), (Some(9), 9, "user_set")]
    {
        let trial = Trial::of(holding(0), |url| LoadPlan {
            shares_cores: true,
            spin_window_ns: requested_ns,
            ..constant(url, 100.0, SECOND / 10)
        });
        let spin = serde_json::to_value(trial.report.client.spin).unwrap();
        assert_eq!(spin, json!({ "window_ns": window_ns, "reason": reason }));
    }
}

#[test]
fn a_stalled_server_does_not_hold_up_the_schedule() {
    judge_timing(|timing| {
        let service = Service::PeriodicStall {
            base_ns: 0,
            period_ns: SECOND,
            stall_ns: 300 * MS,
            offset_ns: 200 * MS,
        };
        let config = Config {
            service,
            ..Config::default()
        };
        let trial = timing.trial(config, |url| constant(url, 500.0, SECOND));
        arrivals_follow_the_schedule(timing, &trial);
    });
}

#[test]
fn only_the_measure_phase_is_reported() {
    let _alone = alone();
    // Only the hundred requests of the measure phase are held, and one connection keeps the order.
    let mut holds_ns = vec![0; 60];
    holds_ns.extend(vec![2 * MS; 100]);
    holds_ns.extend(vec![0; 40]);
    let config = Config {
        service: Service::List { holds_ns },
        ..Config::default()
    };
    let phases = Phases {
        warmup_ns: 300 * MS,
        measure_ns: 500 * MS,
        cooldown_ns: 200 * MS,
        drain_ns: None,
    };
    let trial = Trial::of(config, |url| LoadPlan {
        phases: phases.clone(),
        interval_ns: Some(100 * MS),
        ..capped(url, 200.0, SECOND, 1)
    });
    let report = &trial.report;
    assert_eq!(trial.log.len(), 200, "the server saw every phase");
    assert_eq!((trial.scheduled(), trial.count(Outcome::Ok)), (100, 100));
    assert!(
        report.measures().service.min_ns() >= Some(2 * MS),
        "a request of another phase was reported"
    );
    assert_eq!(report.rate.offered_per_s, Some(200.0));
    assert_eq!(report.status_codes.values().sum::<u64>(), 100);

    let measure_from_ns = report.clock.monotonic_ns + 300 * MS;
    let intervals: Vec<(u64, u64, u64)> = report
        .intervals
        .iter()
        .map(|interval| {
            (
                interval.start_ns - measure_from_ns,
                interval.length_ns,
                interval.scheduled,
            )
        })
        .collect();
    let expected: Vec<(u64, u64, u64)> = (0..5)
        .map(|index| (index * 100 * MS, 100 * MS, 20))
        .collect();
    assert_eq!(intervals, expected);
}

/// Stops a load of one minute as soon as the server has received `arrivals`; returns how long the
/// load then continued.
fn stopped_after(
    arrivals: u64,
    server: &ReferenceServer,
    plan: &LoadPlan,
) -> (LoadReport, Duration) {
    let stop = StopToken::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let report = run(plan, &stop).expect("a report of what there is");
            (report, Instant::now())
        });
        let patience = Instant::now() + Duration::from_secs(10);
        while server.stats().arrivals < arrivals {
            assert!(
                Instant::now() < patience,
                "the server has seen {:?}",
                server.stats()
            );
            thread::sleep(Duration::from_millis(1));
        }
        let stopped = Instant::now();
        stop.stop();
        let (report, ended) = running.join().expect("the run does not panic");
        assert_sound(&report);
        (report, ended - stopped)
    })
}

fn assert_interrupted(report: &LoadReport, took: Duration) {
    assert!(
        took < Duration::from_millis(500),
        "the run went on for {took:?}"
    );
    assert_eq!(report.verdict.status, Level::Invalid);
    assert!(
        report
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.check == "interrupted")
    );
}

fn never_responding() -> ReferenceServer {
    server_with(Config {
        faults: FaultPlan::none().with(Fault::NeverAnswer, When::every(1)),
        ..holding(0)
    })
}

#[test]
fn a_stop_ends_an_open_loop_at_once_and_requests_in_the_system_are_unfinished() {
    let _alone = alone();
    for (threads, max_connections) in [(1, 4_000), (2, 4_000), (1, 2)] {
        let server = never_responding();
        let plan = LoadPlan {
            threads,
            ..capped(&url_of(&server), 100.0, 60 * SECOND, max_connections)
        };
        let seen = 8.min(max_connections as u64);
        let (report, took) = stopped_after(seen, &server, &plan);
        assert_interrupted(&report, took);
        assert!(report.scheduled() >= seen, "{:?}", report.outcomes);
        assert_eq!(report.outcome(Outcome::Unfinished), report.scheduled());
        assert!(report.offered_quantiles_ns["0.5"].high.is_none());
    }
}

#[test]
fn a_stop_ends_a_closed_loop_at_once_and_keeps_the_results() {
    let _alone = alone();
    for think_time_ns in [0, 30 * MS] {
        let faults = FaultPlan::none().with(Fault::NeverAnswer, When::at(vec![20]));
        let server = server_with(Config {
            faults,
            ..holding(2 * MS)
        });
        let load = LoadModel::Closed(ClosedLoop {
            connections: 3,
            think_time_ns,
        });
        let plan = LoadPlan {
            load,
            ..LoadPlan::closed(&url_of(&server), 3, 60 * SECOND)
        };
        let (report, took) = stopped_after(30, &server, &plan);
        assert_interrupted(&report, took);
        assert!(report.outcome(Outcome::Ok) >= 26, "{:?}", report.outcomes);
        assert!(
            (1..=3).contains(&report.outcome(Outcome::Unfinished)),
            "{:?}",
            report.outcomes
        );
    }
}

#[test]
fn a_run_that_was_stopped_before_it_began_sends_nothing() {
    let _alone = alone();
    let server = server_with(holding(0));
    let stop = StopToken::new();
    stop.stop();
    let report = run(&constant(&url_of(&server), 100.0, 60 * SECOND), &stop).unwrap();
    assert_interrupted(&report, Duration::ZERO);
    assert_eq!((report.scheduled(), server.stats().arrivals), (0, 0));
    assert!(report.offered_quantiles_ns.is_empty());
}

#[test]
fn responses_after_the_drain_are_unfinished() {
    let _alone = alone();
    let server = never_responding();
    let mut plan = constant(&url_of(&server), 100.0, SECOND / 5);
    plan.phases.drain_ns = Some(100 * MS);
    let report = run(&plan, &StopToken::new()).unwrap();
    assert_sound(&report);
    assert_eq!(
        (report.scheduled(), report.outcome(Outcome::Unfinished)),
        (20, 20)
    );
    assert!(
        !report
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.check == "interrupted")
    );
    let offered = &report.offered_quantiles_ns["0.5"];
    assert!(
        offered.low >= Some(100 * MS) && offered.high.is_none(),
        "{offered:?}"
    );
}

#[test]
fn the_same_seed_draws_the_same_load() {
    let _alone = alone();
    let counts: Vec<u64> = [4, 4, 5]
        .map(|seed| {
            let trial = Trial::of(holding(0), |url| LoadPlan {
                seed,
                ..LoadPlan::open(url, 2_000.0, SECOND / 5)
            });
            trial.scheduled()
        })
        .to_vec();
    assert_eq!(counts[0], counts[1]);
    assert_ne!(counts[0], counts[2]);
}

#[test]
fn a_load_lasts_as_long_as_planned_even_without_further_requests() {
    let _alone = alone();
    let few = |url: &str| constant(url, 2.0, SECOND);
    let thinking = |url: &str| {
        let mut plan = LoadPlan::closed(url, 2, SECOND);
        let LoadModel::Closed(closed) = &mut plan.load else {
            panic!("a closed loop")
        };
        closed.think_time_ns = 3_600 * SECOND;
        plan
    };
    for (kind, plan_of) in [
        ("open", &few as &dyn Fn(&str) -> LoadPlan),
        ("closed", &thinking),
    ] {
        let began = Instant::now();
        let trial = Trial::of(Config::default(), plan_of);
        let took_ns = began.elapsed().as_nanos();
        assert_eq!(trial.report.measured_ns, SECOND, "{kind}");
        assert!(
            took_ns >= u128::from(SECOND),
            "{kind}: it took {took_ns} ns"
        );
        assert!(!trial.has_reason("client-cpu"), "{kind}: nobody was busy");
    }
}
