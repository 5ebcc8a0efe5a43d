//! F12: connection limits are detected, reported and accounted for.

use loadgen::plan::OnBusy;
use loadgen::{Blame, LoadPlan, Outcome};

use crate::support::{MS, SECOND, Timing, Trial, capped, holding, judge_timing, open_loop};

/// Ten connections with this hold serve ten requests per 100 ms: with arrivals every 5 ms, a hold
/// of a full 100 ms would just miss the arrival at its end.
const HOLD_NS: u64 = 98 * MS;

fn ten_connections(
    timing: &mut Timing,
    rate_per_s: f64,
    on_busy: OnBusy,
    max_pending: Option<usize>,
) -> Trial {
    let trial = timing.trial(holding(HOLD_NS), |url| {
        let mut plan = capped(url, rate_per_s, SECOND, 10);
        let open = open_loop(&mut plan);
        (open.on_busy, open.max_pending) = (on_busy, max_pending);
        plan
    });
    assert_eq!(trial.scheduled(), rate_per_s as u64);
    assert_eq!(
        trial.count(Outcome::Ok) + trial.count(Outcome::Dropped),
        trial.scheduled()
    );
    assert_eq!(
        trial.count(Outcome::Ok),
        trial.log.len() as u64,
        "what was dropped was never sent"
    );
    assert!(trial.report.connections.peak <= 10 && trial.stats.connections <= 10);
    trial
}

fn blames_the_server_for(trial: &Trial, check: &str) -> bool {
    trial
        .report
        .verdict
        .reasons
        .iter()
        .any(|reason| reason.check == check && reason.blame == Blame::Server)
}

#[test]
fn f12_below_capacity_no_request_waits_for_a_connection() {
    judge_timing(|timing| {
        let trial = ten_connections(timing, 80.0, OnBusy::Queue, None);
        assert_eq!(trial.count(Outcome::Dropped), 0);
        let longest_ns = trial.report.measures().pool_wait.max_ns();
        timing.expect(
            longest_ns == Some(0),
            &format!("the longest wait for a connection was {longest_ns:?} ns"),
        );
        assert_eq!(trial.has_reason("capped"), longest_ns != Some(0));
        assert!(!trial.has_reason("shed"));
    });
}

#[test]
fn f12_beyond_capacity_the_queue_fills_and_further_requests_are_dropped_and_both_are_reported() {
    judge_timing(|timing| {
        let trial = ten_connections(timing, 200.0, OnBusy::Queue, Some(20));
        assert!(blames_the_server_for(&trial, "capped") && blames_the_server_for(&trial, "shed"));
        let reason = trial
            .report
            .verdict
            .reasons
            .iter()
            .find(|reason| reason.check == "capped")
            .unwrap();
        assert!(
            reason
                .message
                .contains("waited because all 10 connections were busy"),
            "{}",
            reason.message
        );
        let offered = &trial.report.offered_quantiles_ns["0.99"];
        assert_eq!(
            offered.high, None,
            "a dropped request has no finite response time"
        );
        // 200 arrivals; 100 responses within the second, and 30 more requests in the system at its
        // end.
        let dropped = trial.count(Outcome::Dropped);
        timing.expect(
            dropped.abs_diff(70) <= 8,
            &format!("{dropped} were dropped, not 70"),
        );
        // A request that waits has 20 requests ahead of it, and ten are served every 100 ms.
        timing.about(
            "pool wait p99",
            trial.report.measures().pool_wait.quantile_ns(0.99),
            190 * MS,
            215 * MS,
        );
    });
}

#[test]
fn f12_shedding_drops_at_once_and_no_request_waits() {
    judge_timing(|timing| {
        let trial = ten_connections(timing, 200.0, OnBusy::Shed, None);
        assert!(blames_the_server_for(&trial, "shed"));
        // An arrival may wait instead of being dropped if the generator noticed too late that a
        // connection was idle.
        let longest_ns = trial.report.measures().pool_wait.max_ns();
        timing.expect(
            longest_ns == Some(0),
            &format!("the longest wait for a connection was {longest_ns:?} ns"),
        );
        assert_eq!(trial.has_reason("capped"), longest_ns != Some(0));
        // Of each twenty arrivals in 100 ms, the first ten find a connection.
        let dropped = trial.count(Outcome::Dropped);
        timing.expect(
            dropped.abs_diff(100) <= 6,
            &format!("{dropped} were dropped, not 100"),
        );
    });
}

#[test]
fn by_default_connections_are_opened_on_demand() {
    judge_timing(|timing| {
        let trial = timing.trial(holding(100 * MS), |url| LoadPlan::open(url, 200.0, SECOND));
        assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
        assert_eq!(trial.report.measures().pool_wait.max_ns(), Some(0));
        let connections = &trial.report.connections;
        assert_eq!(connections.opened, trial.stats.connections);
        // Twenty are busy on average.
        let peak = connections.peak;
        timing.expect(
            (20..=45).contains(&peak),
            &format!("{peak} connections at once"),
        );
    });
}

#[test]
fn requests_past_their_deadline_are_dropped() {
    judge_timing(|timing| {
        let trial = timing.trial(holding(100 * MS), |url| LoadPlan {
            deadline_ns: Some(150 * MS),
            ..capped(url, 50.0, SECOND, 1)
        });
        assert_eq!(trial.scheduled(), 50);
        assert!(trial.count(Outcome::Dropped) > 0);
        assert_eq!(trial.count(Outcome::Ok) + trial.count(Outcome::Dropped), 50);
        assert_eq!(trial.count(Outcome::Ok), trial.stats.arrivals);
        assert!(trial.report.measures().pool_wait.max_ns() < Some(150 * MS));
        expect_no_lateness(timing, &trial);
    });
}

#[test]
fn drops_from_a_full_queue_are_not_lateness_whatever_the_deadline() {
    judge_timing(|timing| {
        let trial = timing.trial(holding(100 * MS), |url| {
            let mut plan = LoadPlan {
                deadline_ns: Some(SECOND),
                ..capped(url, 50.0, SECOND, 1)
            };
            open_loop(&mut plan).on_busy = OnBusy::Shed;
            plan
        });
        assert!(trial.count(Outcome::Dropped) > 0);
        expect_no_lateness(timing, &trial);
    });
}

/// Asserts that the verdict blames the server for every dropped arrival, and the generator for
/// none.
fn expect_no_lateness(timing: &mut Timing, trial: &Trial) {
    let reasons = &trial.report.verdict.reasons;
    let shed = reasons
        .iter()
        .find(|reason| reason.check == "shed")
        .map(|reason| (reason.value, reason.blame));
    let all_shed = shed == Some((trial.count(Outcome::Dropped) as f64, Blame::Server));
    timing.expect(
        all_shed && !trial.has_reason("missed-sends"),
        &format!("the verdict's reasons: {reasons:?}"),
    );
}
