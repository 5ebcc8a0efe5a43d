//! F12: limits on connections are enforced, and their effects reported.

use loadgen::plan::OnBusy;
use loadgen::{Blame, LoadPlan, Outcome};

use crate::support::{MS, SECOND, Timing, Trial, capped, constant_hold, judge_timing, open_loop};

/// With this hold, ten connections serve ten requests per 100 ms. With arrivals every 5 ms and a
/// hold of 100 ms, a connection would become idle just after an arrival.
const HOLD_NS: u64 = 98 * MS;

fn run_with_ten_connections(
    timing: &mut Timing,
    rate_per_s: f64,
    on_busy: OnBusy,
    max_pending: Option<usize>,
) -> Trial {
    let trial = timing.run_trial(constant_hold(HOLD_NS), |url| {
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
        "no dropped request is sent"
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
        let trial = run_with_ten_connections(timing, 80.0, OnBusy::Queue, None);
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
fn f12_beyond_capacity_the_wait_and_the_drops_of_a_full_queue_are_reported() {
    judge_timing(|timing| {
        let trial = run_with_ten_connections(timing, 200.0, OnBusy::Queue, Some(20));
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

        // 200 arrivals, of which 100 get a response within the second and 30 are in the system at
        // its end.
        let dropped = trial.count(Outcome::Dropped);
        timing.expect(
            dropped.abs_diff(70) <= 8,
            &format!("{dropped} requests were dropped, not 70"),
        );
        // A waiting request has up to 20 requests ahead of it, and ten are served every 100 ms.
        timing.expect_range(
            "pool wait p99",
            trial.report.measures().pool_wait.quantile_ns(0.99),
            190 * MS,
            215 * MS,
        );
    });
}

#[test]
fn f12_with_shedding_requests_are_dropped_at_once_and_none_waits() {
    judge_timing(|timing| {
        let trial = run_with_ten_connections(timing, 200.0, OnBusy::Shed, None);
        assert!(blames_the_server_for(&trial, "shed"));

        // An arrival may wait instead of being dropped if the generator noticed an idle connection
        // too late.
        let longest_ns = trial.report.measures().pool_wait.max_ns();
        timing.expect(
            longest_ns == Some(0),
            &format!("the longest wait for a connection was {longest_ns:?} ns"),
        );
        assert_eq!(trial.has_reason("capped"), longest_ns != Some(0));

        // Of the twenty arrivals per 100 ms, the first ten find a connection.
        let dropped = trial.count(Outcome::Dropped);
        timing.expect(
            dropped.abs_diff(100) <= 6,
            &format!("{dropped} requests were dropped, not 100"),
        );
    });
}

#[test]
fn by_default_connections_are_opened_on_demand() {
    judge_timing(|timing| {
        let trial = timing.run_trial(constant_hold(100 * MS), |url| {
            LoadPlan::open(url, 200.0, SECOND)
        });
        assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
        assert_eq!(trial.report.measures().pool_wait.max_ns(), Some(0));

        let connections = &trial.report.connections;
        assert_eq!(connections.opened, trial.stats.connections);

        // On average, twenty connections are busy.
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
        let trial = timing.run_trial(constant_hold(100 * MS), |url| LoadPlan {
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
fn dropped_arrivals_are_not_counted_as_late_whatever_the_deadline() {
    judge_timing(|timing| {
        let trial = timing.run_trial(constant_hold(100 * MS), |url| {
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

/// Expects that the verdict blames the server, and not the generator, for every dropped arrival.
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
