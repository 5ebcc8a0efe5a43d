//! Tier P and F22: the client's excess over the server's own measurement, per request.
//!
//! The generator keeps no record of single requests. But an interval with one arrival has one
//! response time, and its maximum is exact: intervals as long as the constant gap between arrivals
//! form a record of requests.

use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, Service};

use crate::statistics::{correlation, quantile};
use crate::support::{
    MS, SECOND, Timing, Trial, constant, floor_ns, judge, judge_timing, open_loop, total,
};

/// The shortest interval of a plan, and therefore the shortest gap.
const GAP_NS: u64 = 10 * MS;

/// Each load keeps all its intervals in memory.
const LOAD_NS: u64 = 15 * SECOND;
const LOADS: u64 = 4;

/// One request, measured at both ends. All times are on one clock.
struct Pair {
    /// From its scheduled send to its arrival at the server.
    to_server_ns: u64,
    /// From the server's write to the last byte at the client.
    to_client_ns: u64,
    /// Time within the server.
    in_server_ns: u64,
}

impl Pair {
    /// The client's excess over the server's time, including its own lateness.
    fn excess_ns(&self) -> u64 {
        self.to_server_ns + self.to_client_ns
    }
}

fn single_requests(trial: &Trial) -> Vec<Pair> {
    let mut plan = trial.report.plan.clone();
    let (seed, phases) = (plan.seed, plan.phases.clone());
    let start_ns = trial.report.clock.monotonic_ns;
    let intended =
        Schedule::new(open_loop(&mut plan), seed, &phases).map(|offset_ns| start_ns + offset_ns);
    let intervals = &trial.report.intervals;
    assert_eq!(
        (intervals.len(), trial.log.len()),
        (trial.scheduled() as usize, trial.scheduled() as usize)
    );
    intended
        .zip(intervals)
        .zip(&trial.log)
        .map(|((intended_ns, interval), entry)| {
            assert_eq!(
                (interval.scheduled, interval.ok),
                (1, 1),
                "one request per interval"
            );
            let response_ns = interval
                .max_ns
                .expect("a correct response has a response time");
            let write_ns = entry.write_ns.expect("answered");
            let early =
                "a request arrives after its scheduled send, and a response after its write";
            Pair {
                to_server_ns: entry.arrive_ns.checked_sub(intended_ns).expect(early),
                to_client_ns: (intended_ns + response_ns)
                    .checked_sub(write_ns)
                    .expect(early),
                in_server_ns: write_ns - entry.arrive_ns,
            }
        })
        .collect()
}

fn expect_small(timing: &mut Timing, pairs: &[Pair]) {
    let mut excess_ns: Vec<u64> = pairs.iter().map(Pair::excess_ns).collect();
    excess_ns.sort_unstable();
    for share in [0.5, 0.99, 0.999] {
        let what = format!("p{} of what the client adds", share * 100.0);
        timing.about(&what, Some(quantile(&excess_ns, share)), 0, floor_ns(share));
    }
}

fn expect_independent_of_length(timing: &mut Timing, pairs: &[Pair]) {
    // Above its p99, the excess consists of a few scheduling delays, which alone would determine a
    // correlation.
    let mut excess_ns: Vec<u64> = pairs.iter().map(Pair::excess_ns).collect();
    excess_ns.sort_unstable();
    let usual_ns = quantile(&excess_ns, 0.99);
    let usual: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|pair| pair.excess_ns() <= usual_ns)
        .map(|pair| (pair.excess_ns() as f64, pair.in_server_ns as f64))
        .collect();
    let r = correlation(&usual);
    // Four standard errors of independent values, if that exceeds the method's limit.
    let limit = f64::max(0.05, 4.0 / (usual.len() as f64).sqrt());
    timing.expect(
        r.abs() <= limit,
        &format!("what the client adds depends on what the server takes: r = {r:.3}"),
    );
}

#[test]
#[ignore = "four loads of 15 s: make test-long"]
fn tier_p_the_client_adds_little_to_each_request_whatever_its_length() {
    judge(1, |timing| {
        let mut pairs = Vec::new();
        for seed in 0..LOADS {
            let service = Service::Exponential {
                mean_ns: 4 * MS,
                seed,
            };
            let config = Config {
                service,
                ..Config::default()
            };
            let trial = timing.trial(config, |url| LoadPlan {
                interval_ns: Some(GAP_NS),
                ..constant(url, (SECOND / GAP_NS) as f64, LOAD_NS)
            });
            assert_eq!(trial.count(Outcome::Ok), trial.scheduled());
            pairs.extend(single_requests(&trial));
        }
        assert_eq!(pairs.len() as u64, LOADS * LOAD_NS / GAP_NS);
        expect_small(timing, &pairs);
        expect_independent_of_length(timing, &pairs);
    });
}

#[test]
fn f22_littles_law_holds_at_both_ends() {
    judge_timing(|timing| {
        let service = Service::Exponential {
            mean_ns: 2 * MS,
            seed: 3,
        };
        let config = Config {
            service,
            servers: Some(1),
            ..Config::default()
        };
        let trial = timing.trial(config, |url| LoadPlan::open(url, 250.0, 2 * SECOND));
        let scheduled = trial.scheduled();
        assert_eq!(
            (trial.count(Outcome::Ok), trial.stats.in_system),
            (scheduled, 0)
        );

        // Little's law for a system that ends empty: the integral of the number in the system is
        // the sum of the times that requests spent in it.
        let in_server_sum_ns: u64 = trial.times_in_server().iter().sum();
        assert_eq!(
            trial.stats.in_system_integral_ns,
            u128::from(in_server_sum_ns),
            "exact: both are sums of integers"
        );

        // The integral of the client's requests in flight is the sum of its service times.
        let in_flight_ns = total(&trial.report.measures().service);
        assert!(
            in_flight_ns >= in_server_sum_ns,
            "a request is in flight while it is in the server"
        );
        let max_ns = in_server_sum_ns + in_server_sum_ns / 100 + scheduled * floor_ns(0.5);
        timing.about(
            "request time in flight",
            Some(in_flight_ns),
            in_server_sum_ns,
            max_ns,
        );

        // The generator's own count, which starts at each scheduled send. Requests in the system at
        // the end stay longer.
        let counted_ns = (trial.report.in_system.mean * 2.0 * SECOND as f64) as u64;
        let longest_ns = trial.times_in_server().into_iter().max().unwrap_or(0);
        let lag_ns = total(&trial.report.measures().send_lag);
        timing.about(
            "requests in the system",
            Some(counted_ns),
            in_server_sum_ns - 2 * longest_ns,
            max_ns + lag_ns,
        );
    });
}
