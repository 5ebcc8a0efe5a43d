//! Whole loads: schedule, phases and early end.

use std::thread;
use std::time::{Duration, Instant};

use loadgen::plan::{
    Arrivals, ClosedLoop, LoadModel, LoadProfile, Phases, Ramp, Replay, Step, Trace,
};
use loadgen::{Level, LoadPlan, LoadReport, Outcome, Schedule, StopToken, run};
use refsrv::{Config, Fault, FaultPlan, ReferenceServer, Service, When};
use serde_json::json;

use crate::support::{
    MS, SECOND, Timing, Trial, US, assert_consistent, capped, constant_hold, constant_rate,
    judge_timing, lock_host, open_loop, server_with, url_of,
};

/// Asserts that every request arrives after its scheduled send, and usually right after it.
fn assert_arrivals_follow_schedule(timing: &mut Timing, trial: &Trial) {
    let mut plan = trial.report.plan.clone();
    let (seed, phases) = (plan.seed, plan.phases.clone());
    let start_ns = trial.report.clock.monotonic_ns;
    let scheduled_ns: Vec<u64> = Schedule::new(open_loop(&mut plan), seed, &phases)
        .map(|offset_ns| start_ns + offset_ns)
        .collect();
    let arrivals = trial.arrivals();
    assert_eq!(
        arrivals.len(),
        scheduled_ns.len(),
        "all scheduled requests arrive, and no others"
    );
    assert_eq!(
        (trial.scheduled(), trial.count(Outcome::Ok)),
        (scheduled_ns.len() as u64, scheduled_ns.len() as u64)
    );

    let late = |(arrival_ns, due_ns): (&u64, &u64)| {
        arrival_ns
            .checked_sub(*due_ns)
            .expect("no request arrives before its scheduled send")
    };
    let mut late_ns: Vec<u64> = arrivals.iter().zip(&scheduled_ns).map(late).collect();
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
        let trial = timing.run_trial(constant_hold(0), |url| constant_rate(url, 500.0, SECOND));
        assert_eq!(trial.scheduled(), 500);
        assert_arrivals_follow_schedule(timing, &trial);

        let mut gaps: Vec<u64> = trial
            .arrivals()
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        gaps.sort_unstable();

        for (share, slack_ns) in [(5, 200 * US), (50, 20 * US), (95, 200 * US)] {
            let gap_ns = gaps[gaps.len() * share / 100];
            timing.expect_range(
                &format!("gap p{share}"),
                Some(gap_ns),
                2 * MS - slack_ns,
                2 * MS + slack_ns,
            );
        }
    });
}

#[test]
fn poisson_arrivals_reach_the_server_at_the_times_drawn_from_the_seed() {
    judge_timing(|timing| {
        let trial = timing.run_trial(constant_hold(0), |url| LoadPlan {
            seed: 11,
            ..LoadPlan::open(url, 500.0, SECOND)
        });
        assert_arrivals_follow_schedule(timing, &trial);
    });
}

#[test]
fn two_threads_share_one_schedule() {
    for poisson in [false, true] {
        judge_timing(|timing| {
            let trial = timing.run_trial(constant_hold(0), |url| {
                let plan = if poisson {
                    LoadPlan::open(url, 500.0, SECOND)
                } else {
                    constant_rate(url, 500.0, SECOND)
                };
                LoadPlan {
                    threads: 2,
                    seed: 5,
                    ..plan
                }
            });
            assert_arrivals_follow_schedule(timing, &trial);
        });
    }
}

fn with_profile(url: &str, profile: &LoadProfile) -> LoadPlan {
    let mut plan = LoadPlan {
        interval_ns: Some(SECOND / 2),
        seed: 3,
        ..constant_rate(url, 1.0, SECOND)
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
fn a_varying_rate_is_sent_as_planned_and_reported_as_mixed_rates() {
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
            let trial = timing.run_trial(constant_hold(0), |url| LoadPlan {
                threads: 2,
                ..with_profile(url, &profile)
            });
            assert_arrivals_follow_schedule(timing, &trial);
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
fn a_poisson_ramp_is_sent_as_drawn() {
    judge_timing(|timing| {
        let ramp = LoadProfile::Ramp(Ramp {
            from_per_s: 0.0,
            to_per_s: 800.0,
            over_ns: None,
        });
        let trial = timing.run_trial(constant_hold(0), |url| {
            let mut plan = LoadPlan {
                threads: 2,
                ..with_profile(url, &ramp)
            };
            open_loop(&mut plan).arrivals = Arrivals::Poisson;
            plan
        });

        assert_arrivals_follow_schedule(timing, &trial);
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
        // Bursts of five every 10 ms. At double speed, they fill the first half of the load.
        let bursts = (0..100)
            .flat_map(|burst| std::iter::repeat_n(burst * 10 * MS, 5))
            .collect();
        let replay = LoadProfile::Replay(Replay {
            offsets_ns: Trace::new(bursts).unwrap(),
            speed: 2.0,
            requests: None,
        });
        let trial = timing.run_trial(constant_hold(0), |url| LoadPlan {
            threads: 2,
            ..with_profile(url, &replay)
        });

        assert_arrivals_follow_schedule(timing, &trial);
        assert_eq!(arrivals_by_interval(&trial), [500, 0]);
        assert_eq!(trial.report.rate.offered_per_s, Some(500.0));
        assert!(!trial.has_reason("mixed-rates") && !trial.has_reason("arrival-count"));
    });
}

#[test]
fn on_shared_cores_the_generator_busy_waits_only_if_requested() {
    let _host = lock_host();
    for (requested_ns, window_ns, reason) in
        [(None, 0, "off_on_shared_cores"), (Some(9), 9, "user_set")]
    {
        let trial = Trial::of(constant_hold(0), |url| LoadPlan {
            shares_cores: true,
            spin_window_ns: requested_ns,
            ..constant_rate(url, 100.0, SECOND / 10)
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
        let trial = timing.run_trial(config, |url| constant_rate(url, 500.0, SECOND));

        assert_arrivals_follow_schedule(timing, &trial);
    });
}

#[test]
fn only_the_measurement_phase_is_reported() {
    let _host = lock_host();
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
    assert_eq!(
        trial.log.len(),
        200,
        "the server receives the requests of every phase"
    );
    assert_eq!((trial.scheduled(), trial.count(Outcome::Ok)), (100, 100));
    assert!(
        report.measures().service.min_ns() >= Some(2 * MS),
        "a request of another phase is in the report"
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

/// Stops a load of one minute as soon as the server has received this many requests; returns the
/// report and how long the load then continued.
fn stop_after(arrivals: u64, server: &ReferenceServer, plan: &LoadPlan) -> (LoadReport, Duration) {
    let stop = StopToken::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let report = run(plan, &stop).expect("a report of the results so far");
            (report, Instant::now())
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.stats().arrivals < arrivals {
            assert!(
                Instant::now() < deadline,
                "the server has received {:?}",
                server.stats()
            );
            thread::sleep(Duration::from_millis(1));
        }

        let stopped = Instant::now();
        stop.stop();
        let (report, ended) = running.join().expect("the load does not panic");
        assert_consistent(&report);

        (report, ended - stopped)
    })
}

fn assert_interrupted(report: &LoadReport, elapsed: Duration) {
    assert!(
        elapsed < Duration::from_millis(500),
        "the load continued for {elapsed:?}"
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
        ..constant_hold(0)
    })
}

#[test]
fn stopping_an_open_loop_ends_it_at_once_and_leaves_its_requests_unfinished() {
    let _host = lock_host();
    for (threads, max_connections) in [(1, 4_000), (2, 4_000), (1, 2)] {
        let server = never_responding();
        let plan = LoadPlan {
            threads,
            ..capped(&url_of(&server), 100.0, 60 * SECOND, max_connections)
        };
        let arrivals = 8.min(max_connections as u64);
        let (report, elapsed) = stop_after(arrivals, &server, &plan);

        assert_interrupted(&report, elapsed);
        assert!(report.scheduled() >= arrivals, "{:?}", report.outcomes);
        assert_eq!(report.outcome(Outcome::Unfinished), report.scheduled());
        assert!(report.offered_quantiles_ns["0.5"].high.is_none());
    }
}

#[test]
fn stopping_a_closed_loop_ends_it_at_once_and_keeps_its_results() {
    let _host = lock_host();
    for think_time_ns in [0, 30 * MS] {
        let faults = FaultPlan::none().with(Fault::NeverAnswer, When::at(vec![20]));
        let server = server_with(Config {
            faults,
            ..constant_hold(2 * MS)
        });
        let load = LoadModel::Closed(ClosedLoop {
            connections: 3,
            think_time_ns,
        });
        let plan = LoadPlan {
            load,
            ..LoadPlan::closed(&url_of(&server), 3, 60 * SECOND)
        };
        let (report, elapsed) = stop_after(30, &server, &plan);

        assert_interrupted(&report, elapsed);
        assert!(report.outcome(Outcome::Ok) >= 26, "{:?}", report.outcomes);
        assert!(
            (1..=3).contains(&report.outcome(Outcome::Unfinished)),
            "{:?}",
            report.outcomes
        );
    }
}

#[test]
fn a_load_stopped_before_its_start_sends_nothing() {
    let _host = lock_host();
    let server = server_with(constant_hold(0));
    let stop = StopToken::new();
    stop.stop();
    let report = run(&constant_rate(&url_of(&server), 100.0, 60 * SECOND), &stop).unwrap();
    assert_interrupted(&report, Duration::ZERO);
    assert_eq!((report.scheduled(), server.stats().arrivals), (0, 0));
    assert!(report.offered_quantiles_ns.is_empty());
}

#[test]
fn responses_after_the_drain_are_unfinished() {
    let _host = lock_host();
    let server = never_responding();
    let mut plan = constant_rate(&url_of(&server), 100.0, SECOND / 5);
    plan.phases.drain_ns = Some(100 * MS);
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);
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
    let _host = lock_host();
    let counts: Vec<u64> = [4, 4, 5]
        .map(|seed| {
            let trial = Trial::of(constant_hold(0), |url| LoadPlan {
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
fn a_load_lasts_as_long_as_planned_even_if_no_more_requests_are_due() {
    let _host = lock_host();
    let two_requests = |url: &str| constant_rate(url, 2.0, SECOND);
    let thinking = |url: &str| {
        let mut plan = LoadPlan::closed(url, 2, SECOND);
        let LoadModel::Closed(closed) = &mut plan.load else {
            panic!("a closed loop")
        };
        closed.think_time_ns = 3_600 * SECOND;
        plan
    };

    for (kind, plan_of) in [
        ("open", &two_requests as &dyn Fn(&str) -> LoadPlan),
        ("closed", &thinking),
    ] {
        let start = Instant::now();
        let trial = Trial::of(Config::default(), plan_of);
        let elapsed_ns = start.elapsed().as_nanos();
        assert_eq!(trial.report.measured_ns, SECOND, "{kind}");
        assert!(
            elapsed_ns >= u128::from(SECOND),
            "{kind}: the load took {elapsed_ns} ns"
        );
        assert!(
            !trial.has_reason("client-cpu"),
            "{kind}: the client was idle"
        );
    }
}
