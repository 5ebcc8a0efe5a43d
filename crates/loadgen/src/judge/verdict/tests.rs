use std::collections::BTreeSet;

use super::evidence::{Expected, LagImpact};
use super::*;
use crate::judge::derived::Known;
use crate::judge::stationarity::{Backlog, InSystem, State, Stationarity};
use crate::pacing::stalls::Stalls;
use crate::record::batches::Silence;
use crate::record::send_sample::SendGaps;

fn sound() -> Evidence {
    Evidence {
        scheduled: 1_000,
        arrivals: 1_000,
        expected_arrivals: Some(Expected {
            mean: 1_000.0,
            tolerance: 1.0,
        }),
        offered_rates_per_s: None,
        lag_impact: vec![lag(0.5, 10.0, 0)],
        send_lag_p99_ns: Some(10_000),
        send_lag_p999_ns: Some(20_000),
        response_p99_ns: Some(10_000_000),
        busiest_thread_share: 0.1,
        run_queue_share: Some(0.0),
        steal_share: Some(0.0),
        stalls: Stalls::default(),
        stalled_share: 0.0,
        throttled_periods: Some(0),
        client_errors: 0,
        inconsistent: 0,
        ok: 1_000,
        unsolicited: 0,
        is_closed_loop: false,
        waited_for_connection_share: 0.0,
        max_connections: 10,
        lacks_connections: false,
        threads: 1,
        processes: 1,
        dropped: 0,
        unanswered_share: 0.0,
        is_interrupted: false,
        lost_generator: None,
        sent_in_time_share: Some(1.0),
        floor_ratio: Ok((0.5, 20.0)),
        send_gaps: Ok(gaps(1.0, 0.01, 1.0)),
        differing_threads: Ok(0),
        in_system: (2.0, 2.0),
        silence: Silence::default(),
        backlog: backlog(100.0, Some(0.1), 0.0),
        stationarity: stationary(),
    }
}

/// A quantile that is `without_ms` without send lag, and `added_us` longer with it.
fn lag(quantile: f64, without_ms: f64, added_us: u64) -> LagImpact {
    LagImpact {
        quantile,
        without_ns: (without_ms * 1e6) as u64,
        added_ns: added_us * 1_000,
    }
}

fn gaps(anderson_darling: f64, kolmogorov_distance: f64, dispersion_deviation: f64) -> SendGaps {
    let dispersion_deviation = Some(dispersion_deviation);
    SendGaps {
        count: 10_000,
        anderson_darling,
        kolmogorov_distance,
        dispersion_deviation,
    }
}

fn backlog(mean: f64, growth: Option<f64>, queue_full_share: f64) -> Known<Backlog> {
    Ok(Backlog {
        in_system: InSystem { mean, growth },
        queue_full_share,
    })
}

fn grown(growth: f64) -> Evidence {
    Evidence {
        backlog: backlog(100.0, Some(growth), 0.0),
        ..sound()
    }
}

fn stationary() -> Stationarity {
    Stationarity {
        state: Some(State::Stationary),
        ..Stationarity::default()
    }
}

fn changing(state: State, p50_drift: f64, p50_range: f64) -> Evidence {
    let stationarity = Stationarity {
        state: Some(state),
        p50_drift: Some(p50_drift),
        p99_drift: Some(0.2),
        p50_range: Some(p50_range),
        settled_after_ns: Some(5_000_000_000),
        ..Stationarity::default()
    };
    Evidence {
        stationarity,
        ..sound()
    }
}

/// Stalls during this many arrivals and responses.
fn stalls(arrivals: u64, responses: u64) -> Stalls {
    let mut stalls = Stalls::default();
    stalls.note(0, 10_000_000, || 0);
    (stalls.arrivals, stalls.responses) = (arrivals, responses);
    stalls
}

fn judge(evidence: &Evidence) -> Verdict {
    Verdict::judge(evidence, &Thresholds::default()).verdict
}

fn checks(evidence: &Evidence) -> (Level, Vec<String>) {
    let verdict = judge(evidence);
    (
        verdict.status,
        verdict
            .reasons
            .into_iter()
            .map(|reason| reason.check)
            .collect(),
    )
}

#[test]
fn a_sound_load_is_valid_and_every_check_is_applied() {
    let judgement = Verdict::judge(&sound(), &Thresholds::default());
    let verdict = judgement.verdict;
    assert_eq!(
        (verdict.status, verdict.blame, verdict.reasons.len()),
        (Level::Valid, None, 0)
    );
    assert_eq!(
        (judgement.diagnostics, judgement.not_checked),
        (vec![], vec![])
    );
}

#[test]
fn each_check_fires_at_its_limit() {
    let cases: Vec<(&str, Level, Evidence)> = vec![
        (
            "timestamp-order",
            Level::Invalid,
            Evidence {
                inconsistent: 1,
                ..sound()
            },
        ),
        (
            "arrival-count",
            Level::Warn,
            Evidence {
                expected_arrivals: Some(Expected {
                    mean: 1_200.0,
                    tolerance: 139.0,
                }),
                ..sound()
            },
        ),
        (
            "missed-sends",
            Level::Warn,
            Evidence {
                sent_in_time_share: Some(0.998),
                ..sound()
            },
        ),
        (
            "missed-sends",
            Level::Invalid,
            Evidence {
                sent_in_time_share: Some(0.98),
                ..sound()
            },
        ),
        (
            "send-lag",
            Level::Warn,
            Evidence {
                lag_impact: vec![lag(0.5, 1.0, 0), lag(0.99, 1.0, 60)],
                ..sound()
            },
        ),
        (
            "send-lag",
            Level::Warn,
            Evidence {
                // More than 10 %: p99 is only an upper bound.
                lag_impact: vec![lag(0.99, 1.0, 900)],
                ..sound()
            },
        ),
        (
            "send-lag",
            Level::Invalid,
            Evidence {
                // More than twice as long as without the generator.
                lag_impact: vec![lag(0.99, 1.0, 1_100)],
                ..sound()
            },
        ),
        (
            "send-lag",
            Level::Warn,
            Evidence {
                // Above p99, lateness affects only that quantile.
                lag_impact: vec![lag(0.99, 1.0, 0), lag(0.999, 1.0, 900)],
                ..sound()
            },
        ),
        (
            "noise-floor",
            Level::Warn,
            Evidence {
                floor_ratio: Ok((0.5, 2.0)),
                ..sound()
            },
        ),
        (
            "client-cpu",
            Level::Warn,
            Evidence {
                busiest_thread_share: 0.7,
                ..sound()
            },
        ),
        (
            "client-throttling",
            Level::Warn,
            Evidence {
                throttled_periods: Some(1),
                ..sound()
            },
        ),
        (
            "steal",
            Level::Warn,
            Evidence {
                steal_share: Some(0.02),
                ..sound()
            },
        ),
        (
            "client-stalls",
            Level::Warn,
            Evidence {
                stalls: stalls(2, 0),
                ..sound()
            },
        ),
        (
            "client-stalls",
            Level::Warn,
            Evidence {
                stalls: stalls(1, 1),
                ..sound()
            },
        ),
        (
            "client-stalls",
            Level::Invalid,
            Evidence {
                stalls: stalls(0, 2),
                ..sound()
            },
        ),
        (
            "client-resources",
            Level::Warn,
            Evidence {
                client_errors: 1,
                ..sound()
            },
        ),
        (
            "client-resources",
            Level::Invalid,
            Evidence {
                lacks_connections: true,
                waited_for_connection_share: 0.1,
                ..sound()
            },
        ),
        (
            "client-resources",
            Level::Invalid,
            Evidence {
                client_errors: 2,
                ..sound()
            },
        ),
        (
            "stationarity",
            Level::Warn,
            changing(State::Drifting, 0.06, 0.0),
        ),
        (
            "stationarity",
            Level::Warn,
            changing(State::NonStationary, 0.3, 0.3),
        ),
        ("backlog-growth", Level::Warn, grown(0.6)),
        ("backlog-growth", Level::Warn, grown(1.1)),
        (
            "backlog-growth",
            Level::Warn,
            Evidence {
                backlog: backlog(100.0, Some(0.0), 0.02),
                ..sound()
            },
        ),
        ("server-stall", Level::Warn, stalled(5_000, 5, 0)),
        (
            "unsolicited-responses",
            Level::Warn,
            Evidence {
                unsolicited: 1,
                ..sound()
            },
        ),
        (
            "unsolicited-responses",
            Level::Invalid,
            Evidence {
                unsolicited: 1,
                is_closed_loop: true,
                ..sound()
            },
        ),
        (
            "in-system-count",
            Level::Invalid,
            Evidence {
                in_system: (2.0, 2.01),
                ..sound()
            },
        ),
        (
            "thread-agreement",
            Level::Warn,
            Evidence {
                differing_threads: Ok(1),
                ..sound()
            },
        ),
        (
            "thread-agreement",
            Level::Invalid,
            Evidence {
                differing_threads: Ok(2),
                ..sound()
            },
        ),
        (
            "capped",
            Level::Warn,
            Evidence {
                waited_for_connection_share: 0.1,
                ..sound()
            },
        ),
        (
            "shed",
            Level::Warn,
            Evidence {
                dropped: 1,
                ..sound()
            },
        ),
        (
            "failed",
            Level::Warn,
            Evidence {
                unanswered_share: 0.1,
                ..sound()
            },
        ),
        (
            "mixed-rates",
            Level::Warn,
            Evidence {
                offered_rates_per_s: Some((10.0, 20.0)),
                ..sound()
            },
        ),
        (
            "generator-lost",
            Level::Invalid,
            Evidence {
                is_interrupted: true,
                lost_generator: Some("generator 2 of 3 was lost".to_owned()),
                ..sound()
            },
        ),
        (
            "interrupted",
            Level::Invalid,
            Evidence {
                is_interrupted: true,
                ..sound()
            },
        ),
    ];
    for (check, level, evidence) in cases {
        assert_eq!(
            checks(&evidence),
            (level, vec![check.to_owned()]),
            "{check}"
        );
    }
}

/// A silent server with changed response times, and a stall of the generator.
fn stalled(silence_ms: u64, waiting: u64, generator_ms: u64) -> Evidence {
    let mut evidence = changing(State::NonStationary, 9.0, 9.0);
    evidence.silence = Silence {
        length_ns: silence_ms * 1_000_000,
        waiting,
        usual_ns: 1_000_000_000,
    };
    evidence.stalls.note(0, generator_ms * 1_000_000, || 0);
    (evidence.backlog, evidence.stalled_share) = (backlog(100.0, Some(2.0), 0.0), 0.0);
    evidence
}

#[test]
fn a_stall_of_the_server_or_the_generator_explains_response_times_and_backlog() {
    let effects = ["backlog-growth", "stationarity"].map(str::to_owned);
    let names = |evidence: &Evidence| checks(evidence).1;

    assert_eq!(names(&stalled(2_000, 5, 0)), ["server-stall"]);
    assert_eq!(
        names(&stalled(1_999, 5, 0)),
        effects,
        "usual for this server"
    );
    assert_eq!(
        names(&stalled(2_000, 4, 0)),
        effects,
        "few requests at once"
    );
    assert!(!names(&stalled(2_000, 5, 1_001)).contains(&"server-stall".to_owned()));
    let of_generator = names(&stalled(0, 0, 1_001));
    assert!(
        effects.iter().all(|effect| !of_generator.contains(effect)),
        "{of_generator:?}"
    );
}

#[test]
fn checks_that_could_not_be_applied_are_listed_with_the_reason() {
    let blind = Evidence {
        floor_ratio: Err("not known"),
        backlog: backlog(1.0, None, 0.0),
        stationarity: Stationarity::unknown("too short"),
        run_queue_share: None,
        ..sound()
    };
    let judgement = Verdict::judge(&blind, &Thresholds::default());
    let (verdict, not_checked) = (judgement.verdict, judgement.not_checked);
    assert_eq!(verdict.status, Level::Valid);
    let names: Vec<_> = not_checked.iter().map(|missing| missing.check).collect();
    assert_eq!(
        names,
        [
            "run-queue-wait",
            "noise-floor",
            "backlog-growth",
            "stationarity"
        ]
    );
    assert!(
        not_checked.iter().all(|missing| !missing.reason.is_empty()),
        "{not_checked:?}"
    );
    let stopped = Evidence {
        is_interrupted: true,
        backlog: backlog(1.0, None, 0.0),
        ..sound()
    };
    let judgement = Verdict::judge(&stopped, &Thresholds::default());
    let reason = judgement
        .not_checked
        .iter()
        .find(|missing| missing.check == "backlog-growth")
        .map(|missing| missing.reason);
    assert_eq!(reason, Some("the load was stopped early"));
}

#[test]
fn a_threshold_of_the_plan_replaces_the_default() {
    let late = Evidence {
        lag_impact: vec![lag(0.99, 1.0, 60)],
        ..sound()
    };
    let with = |key, limit| {
        let thresholds = Thresholds::default()
            .with("send-lag", key, limit)
            .expect("known");
        Verdict::judge(&late, &thresholds).verdict
    };
    assert_eq!(with("warn", 0.07).status, Level::Valid);
    assert_eq!(with("warn_ns", 70_000.0).status, Level::Valid);
    let strict = Thresholds::default()
        .with("send-lag", "invalid", 0.015)
        .and_then(|thresholds| thresholds.with("send-lag", "invalid_ns", 0.0))
        .expect("known");
    let reason = Verdict::judge(&late, &strict).verdict.reasons.remove(0);
    assert_eq!((reason.level, reason.limit), (Level::Invalid, 0.015));
}

#[test]
fn observations_that_change_no_conclusion_are_diagnostics() {
    let cases: Vec<(&str, Evidence)> = vec![
        // A large share of a short time, and a long time that is a small share.
        (
            "send-lag",
            Evidence {
                lag_impact: vec![lag(0.99, 0.15, 45)],
                ..sound()
            },
        ),
        (
            "send-lag",
            Evidence {
                lag_impact: vec![lag(0.99, 100.0, 4_000)],
                ..sound()
            },
        ),
        (
            "send-lag-absolute",
            Evidence {
                send_lag_p99_ns: Some(1_100_000),
                ..sound()
            },
        ),
        (
            "send-lag-absolute",
            Evidence {
                send_lag_p999_ns: Some(6_000_000),
                ..sound()
            },
        ),
        (
            "run-queue-wait",
            Evidence {
                run_queue_share: Some(0.02),
                ..sound()
            },
        ),
        (
            "steal",
            Evidence {
                steal_share: Some(0.005),
                ..sound()
            },
        ),
        (
            "poisson-gaps",
            Evidence {
                send_gaps: Ok(gaps(50.0, 0.09, 1.0)),
                ..sound()
            },
        ),
        (
            "poisson-gaps",
            Evidence {
                send_gaps: Ok(gaps(1.0, 0.01, 5.0)),
                ..sound()
            },
        ),
        (
            "noise-floor",
            Evidence {
                floor_ratio: Ok((0.5, 9.0)),
                ..sound()
            },
        ),
        (
            "client-stalls",
            Evidence {
                // Stalls of 10 ms do not matter to a p99 of 1 s.
                response_p99_ns: Some(1_000_000_000),
                stalls: stalls(5, 5),
                ..sound()
            },
        ),
    ];
    for (check, evidence) in cases {
        let judgement = Verdict::judge(&evidence, &Thresholds::default());
        assert_eq!(judgement.verdict.reasons, [], "{check}");
        let diagnostics: Vec<_> = judgement
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.check)
            .collect();
        assert_eq!(diagnostics, [check]);
        assert!(
            judgement.diagnostics[0].value > judgement.diagnostics[0].limit
                || check == "noise-floor"
        );
    }
}

#[test]
fn throttling_that_distorted_the_figures_is_the_cause_of_an_invalid_load() {
    let evidence = Evidence {
        throttled_periods: Some(3),
        lag_impact: vec![lag(0.99, 1.0, 50_000)],
        ..sound()
    };
    let verdict = judge(&evidence);
    assert_eq!(
        (verdict.status, verdict.blame),
        (Level::Invalid, Some(Blame::Client))
    );
    assert_eq!(verdict.reasons[0].check, "client-throttling");
}

#[test]
fn the_most_severe_reason_decides_and_comes_first() {
    let evidence = Evidence {
        dropped: 5,
        client_errors: 5,
        ..sound()
    };
    let verdict = judge(&evidence);
    assert_eq!(
        (verdict.status, verdict.blame),
        (Level::Invalid, Some(Blame::Client))
    );
    assert_eq!(verdict.reasons[0].check, "client-resources");
}

#[test]
fn a_constant_rate_is_not_mixed_and_mixed_rates_are_reported_last() {
    let flat = Evidence {
        offered_rates_per_s: Some((10.0, 10.0)),
        ..sound()
    };
    assert_eq!(checks(&flat), (Level::Valid, vec![]));
    let shed = Evidence {
        offered_rates_per_s: Some((10.0, 20.0)),
        dropped: 1,
        ..sound()
    };
    assert_eq!(checks(&shed).1, ["shed", "mixed-rates"]);
    assert_eq!(judge(&shed).blame, Some(Blame::Server));
}

#[test]
fn the_host_is_blamed_for_lateness_if_the_thread_waited_for_a_core() {
    let late = Evidence {
        lag_impact: vec![lag(0.99, 1.0, 1_500)],
        ..sound()
    };
    assert_eq!(judge(&late).blame, Some(Blame::Client));
    let disturbed = Evidence {
        run_queue_share: Some(0.02),
        ..late.clone()
    };
    assert_eq!(judge(&disturbed).blame, Some(Blame::Host));

    // In a stall, only waits during the stall count, not those before and after.
    let stalled = |waited_ns: u64| {
        let mut stalls = stalls(0, 0);
        stalls.waited_ns = waited_ns;
        Evidence {
            stalls,
            stalled_share: 0.003,
            ..disturbed.clone()
        }
    };
    assert_eq!(judge(&stalled(1_000_000)).blame, Some(Blame::Client));
    assert_eq!(judge(&stalled(8_000_000)).blame, Some(Blame::Host));
    let stolen = Evidence {
        steal_share: Some(0.002),
        ..stalled(0)
    };
    assert_eq!(judge(&stolen).blame, Some(Blame::Host));
}

#[test]
fn a_closed_loop_is_not_said_to_be_partly_one() {
    let evidence = Evidence {
        sent_in_time_share: None,
        waited_for_connection_share: 0.9,
        ..sound()
    };
    assert_eq!(judge(&evidence).reasons, []);
}

#[test]
fn an_overloaded_server_is_to_blame_and_does_not_invalidate() {
    let evidence = Evidence {
        dropped: 5,
        unanswered_share: 0.5,
        waited_for_connection_share: 0.9,
        ..grown(2.0)
    };
    let verdict = judge(&evidence);
    assert_eq!(
        (verdict.status, verdict.blame),
        (Level::Warn, Some(Blame::Server))
    );
    assert!(
        verdict.reasons[0]
            .message
            .starts_with("UNSTABLE: the server cannot sustain the offered rate")
    );
}

#[test]
fn a_full_pool_of_one_of_several_threads_is_explained_in_the_fix() {
    let fixes = |processes, threads| {
        let evidence = Evidence {
            threads,
            processes,
            waited_for_connection_share: 0.9,
            dropped: 5,
            ..sound()
        };
        judge(&evidence)
            .reasons
            .into_iter()
            .filter_map(|reason| reason.fix)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(!fixes(1, 1).contains("threads"), "{}", fixes(1, 1));
    for (processes, one) in [(1, "--threads 1"), (2, "--processes 1 --threads 1")] {
        let text = fixes(processes, 2);
        let fix = format!("or use {one}, because threads do not share connections");
        assert_eq!(text.matches(&fix).count(), 2, "{text}");
    }
}

#[test]
fn a_backlog_of_one_or_two_requests_is_ignored() {
    let small = Evidence {
        backlog: backlog(1.5, Some(1.9), 0.0),
        ..sound()
    };
    assert_eq!(checks(&small), (Level::Valid, vec![]));
}

#[test]
fn the_fix_gives_the_missing_warm_up() {
    let reason = judge(&changing(State::NonStationary, 0.0, 19.0))
        .reasons
        .remove(0);
    assert!(
        reason.message.starts_with("NON-STATIONARY"),
        "{}",
        reason.message
    );
    assert!(
        reason.fix.as_deref().is_some_and(|fix| fix
            .contains("warm up 5 s longer (--warmup); response times were steady from then on")),
        "{:?}",
        reason.fix
    );
}

#[test]
fn a_sentence_has_the_cause_the_check_and_the_fix() {
    let mut reason = Reason {
        check: "send-lag".to_owned(),
        level: Level::Warn,
        message: "sends are late".to_owned(),
        fix: Some("use fewer connections".to_owned()),
        value: 2.0,
        limit: 1.0,
        blame: Blame::Client,
    };
    assert_eq!(
        reason.sentence(),
        "sends are late (send-lag). Use fewer connections"
    );
    reason.fix = None;
    assert_eq!(reason.sentence(), "sends are late (send-lag)");
}

#[test]
fn names_are_unique_and_every_threshold_belongs_to_a_check() {
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());

    let table = serde_json::to_value(Thresholds::default()).expect("plain data");
    for check in table.as_object().expect("a table").keys() {
        assert!(names.contains(check.as_str()), "{check}");
    }
}
