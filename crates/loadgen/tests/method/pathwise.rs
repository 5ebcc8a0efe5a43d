//! Comparison per request, and F22: the client's excess over the server's own measurement.
//!
//! The generator keeps no record of single requests. But if the report intervals are as long as the
//! constant gap between arrivals, each interval has one request, and its maximum is the exact
//! response time of this request.

use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, Service};

use crate::statistics::{correlation, quantile};
use crate::support::{
    MS, SECOND, Timing, Trial, constant_rate, judge, judge_timing, noise_floor_ns, open_loop, total,
};

/// Gap between arrivals: the shortest interval that a plan allows.
const GAP_NS: u64 = 10 * MS;

/// Short, because a load keeps all its intervals in memory.
const LOAD_NS: u64 = 15 * SECOND;
const LOADS: u64 = 4;

/// Times of one request, measured by client and server on the same clock.
struct RequestTimes {
    /// From the scheduled send to the arrival at the server.
    to_server_ns: u64,
    /// From the server's write to the last byte at the client.
    to_client_ns: u64,
    /// Time within the server.
    in_server_ns: u64,
}

impl RequestTimes {
    /// The client's excess over the server's time, including send lag.
    fn excess_ns(&self) -> u64 {
        self.to_server_ns + self.to_client_ns
    }
}

fn times_by_request(trial: &Trial) -> Vec<RequestTimes> {
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
            let write_ns = entry.write_ns.expect("a write time");
            let order =
                "a request arrives after its scheduled send, and a response after its write";

            RequestTimes {
                to_server_ns: entry.arrive_ns.checked_sub(intended_ns).expect(order),
                to_client_ns: (intended_ns + response_ns)
                    .checked_sub(write_ns)
                    .expect(order),
                in_server_ns: write_ns - entry.arrive_ns,
            }
        })
        .collect()
}

fn expect_small_excess(timing: &mut Timing, requests: &[RequestTimes]) {
    let mut excess_ns: Vec<u64> = requests.iter().map(RequestTimes::excess_ns).collect();
    excess_ns.sort_unstable();
    for share in [0.5, 0.99, 0.999] {
        let what = format!("p{} of the client's excess", share * 100.0);
        timing.expect_range(
            &what,
            Some(quantile(&excess_ns, share)),
            0,
            noise_floor_ns(share),
        );
    }
}

fn expect_excess_independent_of_length(timing: &mut Timing, requests: &[RequestTimes]) {
    // Above its p99, the excess consists of a few scheduling delays, which would dominate the
    // correlation.
    let mut excess_ns: Vec<u64> = requests.iter().map(RequestTimes::excess_ns).collect();
    excess_ns.sort_unstable();
    let p99_ns = quantile(&excess_ns, 0.99);
    let below_p99: Vec<(f64, f64)> = requests
        .iter()
        .filter(|request| request.excess_ns() <= p99_ns)
        .map(|request| (request.excess_ns() as f64, request.in_server_ns as f64))
        .collect();
    let r = correlation(&below_p99);
    // The limit of the method, or four standard errors of independent values.
    let limit = f64::max(0.05, 4.0 / (below_p99.len() as f64).sqrt());

    timing.expect(
        r.abs() <= limit,
        &format!("the client's excess correlates with the time in the server: r = {r:.3}"),
    );
}

#[test]
#[ignore = "four loads of 15 s: make test-long"]
fn the_client_adds_little_to_each_request_whatever_its_length() {
    judge(1, |timing| {
        let mut requests = Vec::new();
        for seed in 0..LOADS {
            let service = Service::Exponential {
                mean_ns: 4 * MS,
                seed,
            };
            let config = Config {
                service,
                ..Config::default()
            };
            let trial = timing.run_trial(config, |url| LoadPlan {
                interval_ns: Some(GAP_NS),
                ..constant_rate(url, (SECOND / GAP_NS) as f64, LOAD_NS)
            });

            assert_eq!(trial.count(Outcome::Ok), trial.scheduled());

            requests.extend(times_by_request(&trial));
        }

        assert_eq!(requests.len() as u64, LOADS * LOAD_NS / GAP_NS);
        expect_small_excess(timing, &requests);
        expect_excess_independent_of_length(timing, &requests);
    });
}

#[test]
fn f22_littles_law_holds_at_client_and_server() {
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
        let trial = timing.run_trial(config, |url| LoadPlan::open(url, 250.0, 2 * SECOND));
        let scheduled = trial.scheduled();
        assert_eq!(
            (trial.count(Outcome::Ok), trial.stats.in_system),
            (scheduled, 0)
        );

        // Little's law for a system that is empty at the end: the integral of the number of
        // requests in the system is the sum of the times that they spent there.
        let in_server_sum_ns: u64 = trial.times_in_server().iter().sum();
        assert_eq!(
            trial.stats.in_system_integral_ns,
            u128::from(in_server_sum_ns),
            "equal: both are sums of integers"
        );

        // Likewise, the integral of the requests in flight is the sum of the service times.
        let in_flight_ns = total(&trial.report.measures().service);
        assert!(
            in_flight_ns >= in_server_sum_ns,
            "a request is in flight while it is in the server"
        );
        let max_ns = in_server_sum_ns + in_server_sum_ns / 100 + scheduled * noise_floor_ns(0.5);
        timing.expect_range(
            "sum of the service times",
            Some(in_flight_ns),
            in_server_sum_ns,
            max_ns,
        );

        // The generator counts from each scheduled send to the end of the measurement, when some
        // requests are still in the system.
        let counted_ns = (trial.report.in_system.mean * 2.0 * SECOND as f64) as u64;
        let longest_ns = trial.times_in_server().into_iter().max().unwrap_or(0);
        let lag_ns = total(&trial.report.measures().send_lag);
        timing.expect_range(
            "integral of the requests in the system",
            Some(counted_ns),
            in_server_sum_ns - 2 * longest_ns,
            max_ns + lag_ns,
        );
    });
}
