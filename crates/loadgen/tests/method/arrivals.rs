//! F15: arrivals at the server follow the requested process, measured by the server alone.

use loadgen::statistics::arrivals::{anderson_darling, kolmogorov_distance};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::long_ns;
use crate::own_core::{run_trial_on_own_core, send_duration_ns};
use crate::statistics::quantile;
use crate::support::{MS, SECOND, Timing, Trial, US, constant_rate, judge_after};

/// Number of attempts. The test fails once this many attempts deviated without a detected
/// disturbance.
const ATTEMPTS: usize = 5;
const MAX_UNEXPLAINED: usize = 3;

/// The sample size for which the method states its power; a larger sample would detect harmless
/// deviations.
const SAMPLE: usize = 10_000;

/// Critical value of the Anderson-Darling statistic at 1 %, for exponential gaps with an estimated
/// mean.
const ANDERSON_DARLING_1_PERCENT: f64 = 1.959;

/// Maximum duration of a send, including waking up the server.
const MAX_SEND_NS: u64 = 20 * US;

/// A sample cannot be distinguished from a Poisson process if at most this share of its gaps (the
/// shortest) is wrong: the Anderson-Darling statistic grows by half the sample size times the
/// square of this share.
const MAX_MISSED_SHARE: f64 = 0.01;

/// Busy-wait before each send: at 1,000/s and more, the generator's core hardly ever sleeps.
const SPIN_WINDOW_NS: u64 = 2 * MS;

/// Maximum deviation from 1 ms of these shares of the gaps.
const MAX_DEVIATIONS_NS: [(f64, u64); 3] = [(0.5, 2 * US), (0.99, 10 * US), (0.999, 50 * US)];

/// A server with kernel receive timestamps, which do not depend on its wake-ups. It does not
/// busy-wait, because a hypervisor takes cores away from a machine with all cores busy. Its
/// responses are due halfway between constant arrivals, so that a response and a request are never
/// in flight at the same time.
fn timestamping_server(rate_per_s: f64) -> Config {
    let hold_ns = (20.5 * SECOND as f64 / rate_per_s) as u64;
    let service = Service::Constant { hold_ns };
    Config {
        service,
        spin_ns: 0,
        log_queued: true,
        stamp_headers: false,
        ..Config::default()
    }
}

/// Gaps between arrivals, from kernel timestamps. The kernel starts them shortly after they are
/// enabled. A timestamp that is missing later was rejected, for example after a step of the wall
/// clock.
fn gaps_ns(timing: &mut Timing, trial: &Trial) -> Vec<u64> {
    let stamps = trial
        .log
        .iter()
        .map(|entry| entry.queued_ns)
        .skip_while(Option::is_none);
    let (since_first, mut arrivals_ns) = (
        stamps.clone().count(),
        stamps.flatten().collect::<Vec<u64>>(),
    );

    assert!(
        since_first > trial.log.len() * 9 / 10,
        "only {since_first} of {} requests since the first timestamp",
        trial.log.len()
    );

    let missing = since_first - arrivals_ns.len();
    let what = format!("{missing} timestamps are missing");
    timing.expect(missing == 0, &what);
    timing.note_disturbances((missing > 0).then_some(what));

    arrivals_ns.sort_unstable();
    arrivals_ns
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect()
}

/// Expects exponential gaps, with any mean.
fn expect_exponential(timing: &mut Timing, gaps_ns: &[u64], description: &str) {
    let gaps: Vec<f64> = gaps_ns.iter().map(|&gap_ns| gap_ns as f64).collect();
    let (statistic, distance) = (anderson_darling(&gaps), kolmogorov_distance(&gaps));
    let is_likely = statistic < ANDERSON_DARLING_1_PERCENT;
    timing.expect(
        is_likely,
        &format!(
            "Anderson-Darling {statistic:.2} of {} {description}",
            gaps.len()
        ),
    );
    timing.expect(
        distance < 0.02,
        &format!(
            "Kolmogorov distance {distance:.4} of {} {description}",
            gaps.len()
        ),
    );
}

/// Runs a Poisson load; returns a sample of the gaps between arrivals at the server.
fn poisson_gaps(timing: &mut Timing, server: Config, rate_per_s: f64, length_ns: u64) -> Vec<u64> {
    let plan = |url: &str| LoadPlan {
        seed: 9,
        spin_window_ns: Some(SPIN_WINDOW_NS),
        ..LoadPlan::open(url, rate_per_s, length_ns)
    };
    // The tolerance covers lateness below 1 % of a mean gap, and lateness in less than 1 % of the
    // time.
    let max_late_ns = (0.01 * SECOND as f64 / rate_per_s) as u64;
    let trial = run_trial_on_own_core(timing, server, plan, &[(0.01, max_late_ns)]);

    assert_eq!(
        (trial.count(Outcome::Ok), trial.log.len() as u64),
        (trial.scheduled(), trial.scheduled())
    );

    gaps_ns(timing, &trial).into_iter().take(SAMPLE).collect()
}

/// Share of a Poisson process's gaps that are longer than `gap_ns`.
fn share_beyond(gap_ns: u64, rate_per_s: f64) -> f64 {
    (-rate_per_s * gap_ns as f64 / SECOND as f64).exp()
}

/// Notes a disturbance if a send takes too long on this host. Requests are sent one after another,
/// so a sender cannot reproduce gaps that are shorter than a send.
fn note_send_duration(timing: &mut Timing, rate_per_s: f64) {
    let send_ns = send_duration_ns();
    let missed = 1.0 - share_beyond(send_ns, rate_per_s);
    let cause = format!("a send takes {send_ns} ns, but {missed:.4} of the gaps should be shorter");
    timing.note_disturbances((missed > MAX_MISSED_SHARE).then_some(cause));
}

fn assert_poisson_at_server(server: Config, rate_per_s: f64, length_ns: u64) {
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let gaps = poisson_gaps(timing, server.clone(), rate_per_s, length_ns);
        note_send_duration(timing, rate_per_s);
        expect_exponential(timing, &gaps, &format!("gaps at {rate_per_s} per second"));
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f15_poisson_arrivals_at_100_per_second_are_poisson_at_the_server() {
    assert_poisson_at_server(timestamping_server(100.0), 100.0, long_ns());
}

#[test]
#[ignore = "12 s of load: make test-long"]
fn f15_poisson_arrivals_at_1000_per_second_are_poisson_at_the_server() {
    assert_poisson_at_server(timestamping_server(1_000.0), 1_000.0, 12 * SECOND);
}

#[test]
#[ignore = "4 s of load: make test-long"]
fn f15_poisson_arrivals_at_5000_per_second_are_poisson_at_the_server() {
    // The server busy-waits for its next response: waking it up would lengthen each send.
    assert_poisson_at_server(
        Config {
            spin_ns: SECOND,
            ..timestamping_server(5_000.0)
        },
        5_000.0,
        4 * SECOND,
    );
}

/// Gaps up to the maximum duration of a send are excluded: an exponential distribution truncated at
/// any gap is the same distribution.
#[test]
#[ignore = "4 s of load: make test-long"]
fn f15_poisson_gaps_at_5000_per_second_that_exceed_a_send_are_exponential() {
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let rate_per_s = 5_000.0;
        let gaps = poisson_gaps(
            timing,
            timestamping_server(rate_per_s),
            rate_per_s,
            4 * SECOND,
        );
        let beyond: Vec<u64> = gaps
            .iter()
            .filter_map(|gap_ns| gap_ns.checked_sub(MAX_SEND_NS))
            .collect();
        let expected = share_beyond(MAX_SEND_NS, rate_per_s);
        let (share, count) = (beyond.len() as f64 / gaps.len() as f64, gaps.len() as f64);
        let standard_error = (expected * (1.0 - expected) / count).sqrt();

        let is_near = (share - expected).abs() < 4.0 * standard_error;
        timing.expect(
            is_near,
            &format!(
                "{share:.4} of the gaps exceed the duration of a send, expected {expected:.4}"
            ),
        );
        expect_exponential(timing, &beyond, "gaps beyond the duration of a send");
    });
}

#[test]
#[ignore = "20 s of load with one core spinning: make test-long"]
fn f15_constant_arrivals_are_evenly_spaced_to_the_microsecond() {
    // A late send distorts the gap before it and the gap after it.
    let host_limits = MAX_DEVIATIONS_NS.map(|(share, limit_ns)| ((1.0 - share) / 2.0, limit_ns));
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let plan = |url: &str| LoadPlan {
            spin_window_ns: Some(SPIN_WINDOW_NS),
            ..constant_rate(url, 1_000.0, 20 * SECOND)
        };
        let trial = run_trial_on_own_core(timing, timestamping_server(1_000.0), plan, &host_limits);
        assert_eq!(trial.log.len(), 20_000);

        let mut deviations_ns: Vec<u64> = gaps_ns(timing, &trial)
            .iter()
            .map(|gap_ns| gap_ns.abs_diff(MS))
            .collect();
        deviations_ns.sort_unstable();
        for (share, limit_ns) in MAX_DEVIATIONS_NS {
            let what = format!("p{} of the deviation of a gap from 1 ms", share * 100.0);
            timing.expect_range(&what, Some(quantile(&deviations_ns, share)), 0, limit_ns);
        }
    });
}
