//! F15: arrivals at the server are the process that their label says, measured by the server alone.

use loadgen::statistics::arrivals::{anderson_darling, kolmogorov_distance};
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Service};

use crate::long_ns;
use crate::statistics::quantile;
use crate::support::{MS, SECOND, Trial, US, constant, judge};

/// The sample for which the method states its power; a larger one would find what harms nobody.
const SAMPLE: usize = 10_000;

/// Critical value of Anderson and Darling's statistic at 1 %, for exponential gaps whose mean is estimated.
const ANDERSON_DARLING_1_PERCENT: f64 = 1.959;

fn gaps_ns(trial: &Trial) -> Vec<u64> {
    trial.arrivals().windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A server that never sleeps, so that waking it does not blur its stamps: it spins towards the next answer that is
/// due, and there always is one, because twenty requests are held on average.
fn sleepless(rate_per_s: f64) -> Config {
    let hold_ns = (20.0 * SECOND as f64 / rate_per_s) as u64;
    Config { service: Service::Constant { hold_ns }, spin_ns: SECOND, stamp_headers: false, ..Config::default() }
}

fn poisson_arrivals(rate_per_s: f64, length_ns: u64) {
    judge(1, |timing| {
        let trial = timing.trial(sleepless(rate_per_s), |url| LoadPlan {
            seed: 9,
            ..LoadPlan::open(url, rate_per_s, length_ns)
        });
        assert_eq!((trial.count(Outcome::Ok), trial.log.len() as u64), (trial.scheduled(), trial.scheduled()));
        let gaps: Vec<f64> = gaps_ns(&trial).iter().take(SAMPLE).map(|&gap_ns| gap_ns as f64).collect();
        let (statistic, distance) = (anderson_darling(&gaps), kolmogorov_distance(&gaps));
        timing.expect(
            statistic < ANDERSON_DARLING_1_PERCENT,
            &format!("Anderson-Darling {statistic:.2} of {} gaps at {rate_per_s} per second", gaps.len()),
        );
        timing.expect(distance < 0.02, &format!("Kolmogorov distance {distance:.4} at {rate_per_s} per second"));
    });
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f15_poisson_arrivals_at_100_per_second_are_poisson_at_the_server() {
    poisson_arrivals(100.0, long_ns());
}

#[test]
#[ignore = "12 s of load: make test-long"]
fn f15_poisson_arrivals_at_1000_per_second_are_poisson_at_the_server() {
    poisson_arrivals(1_000.0, 12 * SECOND);
}

#[test]
#[ignore = "4 s of load: make test-long"]
fn f15_poisson_arrivals_at_5000_per_second_are_poisson_at_the_server() {
    poisson_arrivals(5_000.0, 4 * SECOND);
}

#[test]
#[ignore = "20 s of load with both cores spinning: make test-long"]
fn f15_even_arrivals_are_even_to_the_microsecond() {
    judge(1, |timing| {
        let trial = timing.trial(sleepless(1_000.0), |url| LoadPlan {
            spin_window_ns: Some(2 * MS),
            ..constant(url, 1_000.0, 20 * SECOND)
        });
        assert_eq!(trial.log.len(), 20_000);
        let mut off_ns: Vec<u64> = gaps_ns(&trial).iter().map(|gap_ns| gap_ns.abs_diff(MS)).collect();
        off_ns.sort_unstable();
        for (share, limit_ns) in [(0.5, 2 * US), (0.99, 10 * US), (0.999, 50 * US)] {
            let what = format!("p{} of the distance of a gap from 1 ms", share * 100.0);
            timing.about(&what, Some(quantile(&off_ns, share)), 0, limit_ns);
        }
    });
}
