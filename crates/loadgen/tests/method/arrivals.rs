//! F15: arrivals at the server follow the requested process, measured by the server alone.

use loadgen::statistics::arrivals::{anderson_darling, kolmogorov_distance};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::long_ns;
use crate::own_core::{send_duration_ns, trial_on_own_core};
use crate::statistics::quantile;
use crate::support::{MS, SECOND, Timing, Trial, US, constant, judge_after};

/// Number of attempts, and how many of them may deviate without a detected disturbance before the
/// test fails.
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

/// Shares of the gaps, and their maximum deviation from 1 ms.
const EVENNESS: [(f64, u64); 3] = [(0.5, 2 * US), (0.99, 10 * US), (0.999, 50 * US)];

/// A server with kernel receive timestamps, which do not depend on its wake-ups. It does not
/// busy-wait, because a hypervisor takes cores away from a machine with all cores busy. Its
/// responses are due halfway between constant arrivals, so that a response and a request are never
/// in flight at the same time.
fn witness(rate_per_s: f64) -> Config {
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

/// Gaps between arrivals by kernel timestamps, which start shortly after they are enabled; a later
/// missing timestamp was rejected, for example after a step of the wall clock.
fn gaps_ns(timing: &mut Timing, trial: &Trial) -> Vec<u64> {
    let stamped = trial
        .log
        .iter()
        .map(|entry| entry.queued_ns)
        .skip_while(Option::is_none);
    let (begun, mut arrivals_ns) = (
        stamped.clone().count(),
        stamped.flatten().collect::<Vec<u64>>(),
    );
    assert!(
        begun > trial.log.len() * 9 / 10,
        "{begun} of {} came after the first stamp",
        trial.log.len()
    );
    let missing = begun - arrivals_ns.len();
    let what = format!("{missing} stamps are missing");
    timing.expect(missing == 0, &what);
    timing.disturbed_by((missing > 0).then_some(what));
    arrivals_ns.sort_unstable();
    arrivals_ns
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect()
}

/// Expects exponential gaps, with any mean.
fn expect_exponential(timing: &mut Timing, gaps_ns: &[u64], which: &str) {
    let gaps: Vec<f64> = gaps_ns.iter().map(|&gap_ns| gap_ns as f64).collect();
    let (statistic, distance) = (anderson_darling(&gaps), kolmogorov_distance(&gaps));
    let is_likely = statistic < ANDERSON_DARLING_1_PERCENT;
    timing.expect(
        is_likely,
        &format!("Anderson-Darling {statistic:.2} of {} {which}", gaps.len()),
    );
    timing.expect(
        distance < 0.02,
        &format!(
            "Kolmogorov distance {distance:.4} of {} {which}",
            gaps.len()
        ),
    );
}

/// A sample of the gaps between arrivals at this server.
fn poisson_gaps(timing: &mut Timing, server: Config, rate_per_s: f64, length_ns: u64) -> Vec<u64> {
    let plan = |url: &str| LoadPlan {
        seed: 9,
        spin_window_ns: Some(SPIN_WINDOW_NS),
        ..LoadPlan::open(url, rate_per_s, length_ns)
    };
    // Lateness below a hundredth of a gap, or in less than a hundredth of the time, is within the
    // tolerance.
    let late_ns = (0.01 * SECOND as f64 / rate_per_s) as u64;
    let trial = trial_on_own_core(timing, server, plan, &[(0.01, late_ns)]);
    assert_eq!(
        (trial.count(Outcome::Ok), trial.log.len() as u64),
        (trial.scheduled(), trial.scheduled())
    );
    gaps_ns(timing, &trial).into_iter().take(SAMPLE).collect()
}

/// The share of a Poisson process's gaps that are longer than this.
fn share_beyond(gap_ns: u64, rate_per_s: f64) -> f64 {
    (-rate_per_s * gap_ns as f64 / SECOND as f64).exp()
}

/// One thread sends one request after another. If a send takes so long on this host that more of a
/// Poisson process's gaps are shorter than the tolerance allows, no sender can follow the process.
fn note_send_duration(timing: &mut Timing, rate_per_s: f64) {
    let send_ns = send_duration_ns();
    let missed = 1.0 - share_beyond(send_ns, rate_per_s);
    let cause = format!(
        "a bare send takes {send_ns} ns here, and {missed:.4} of the gaps should be shorter"
    );
    timing.disturbed_by((missed > MAX_MISSED_SHARE).then_some(cause));
}

fn poisson_arrivals(server: Config, rate_per_s: f64, length_ns: u64) {
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let gaps = poisson_gaps(timing, server.clone(), rate_per_s, length_ns);
        note_send_duration(timing, rate_per_s);
        expect_exponential(timing, &gaps, &format!("gaps at {rate_per_s} per second"));
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f15_poisson_arrivals_at_100_per_second_are_poisson_at_the_server() {
    poisson_arrivals(witness(100.0), 100.0, long_ns());
}

#[test]
#[ignore = "12 s of load: make test-long"]
fn f15_poisson_arrivals_at_1000_per_second_are_poisson_at_the_server() {
    poisson_arrivals(witness(1_000.0), 1_000.0, 12 * SECOND);
}

#[test]
#[ignore = "4 s of load: make test-long"]
fn f15_poisson_arrivals_at_5000_per_second_are_poisson_at_the_server() {
    // The server busy-waits for its next response: waking it up would make each send longer.
    poisson_arrivals(
        Config {
            spin_ns: SECOND,
            ..witness(5_000.0)
        },
        5_000.0,
        4 * SECOND,
    );
}

/// Gaps up to the maximum duration of a send are excluded: an exponential distribution truncated at
/// any gap is the same distribution.
#[test]
#[ignore = "4 s of load: make test-long"]
fn f15_poisson_arrivals_at_5000_per_second_are_poisson_beyond_the_time_of_a_send() {
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let rate_per_s = 5_000.0;
        let gaps = poisson_gaps(timing, witness(rate_per_s), rate_per_s, 4 * SECOND);
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
            &format!("{share:.4} of the gaps beyond the time of a send instead of {expected:.4}"),
        );
        expect_exponential(timing, &beyond, "gaps beyond the time of a send");
    });
}

#[test]
#[ignore = "20 s of load with one core spinning: make test-long"]
fn f15_even_arrivals_are_even_to_the_microsecond() {
    // A late send distorts the gap before it and the gap after it.
    let host_limits = EVENNESS.map(|(share, limit_ns)| ((1.0 - share) / 2.0, limit_ns));
    judge_after(MAX_UNEXPLAINED, ATTEMPTS, |timing| {
        let plan = |url: &str| LoadPlan {
            spin_window_ns: Some(SPIN_WINDOW_NS),
            ..constant(url, 1_000.0, 20 * SECOND)
        };
        let trial = trial_on_own_core(timing, witness(1_000.0), plan, &host_limits);
        assert_eq!(trial.log.len(), 20_000);
        let mut off_ns: Vec<u64> = gaps_ns(timing, &trial)
            .iter()
            .map(|gap_ns| gap_ns.abs_diff(MS))
            .collect();
        off_ns.sort_unstable();
        for (share, limit_ns) in EVENNESS {
            let what = format!("p{} of the distance of a gap from 1 ms", share * 100.0);
            timing.about(&what, Some(quantile(&off_ns, share)), 0, limit_ns);
        }
    });
}
