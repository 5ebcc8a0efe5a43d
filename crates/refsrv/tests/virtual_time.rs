//! Compares the queue with queueing theory in virtual time, without network or clock, so that no
//! tolerance is needed for the machine. Only the sampling error remains; the tolerances are four
//! times its estimate from simulations with different draws (docs: method, tier T; F4 to F10).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use refsrv::{FaultPlan, KnownQueue, Service, VirtualQueue, random};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Arrival times of a Poisson process of `rate_per_s`.
fn poisson(rate_per_s: f64, seed: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).scan(0.0, move |now, i| {
        *now += random::exponential(seed, i) / rate_per_s;
        Some((*now * 1e9) as u64)
    })
}

/// Evenly spaced times in the middle of their intervals, so that none is at the start or end of a
/// stall.
fn evenly(rate_per_s: u64, count: u64) -> impl Iterator<Item = u64> {
    let gap_ns = SECOND / rate_per_s;
    (0..count).map(move |i| i * gap_ns + gap_ns / 2)
}

/// The sorted response times, in nanoseconds.
fn responses(
    service: Service,
    servers: Option<usize>,
    arrivals: impl Iterator<Item = u64>,
) -> Vec<u64> {
    let mut queue = VirtualQueue::new(service, servers, FaultPlan::none(), 0);
    let mut responses: Vec<u64> = arrivals
        .map(|arrive_ns| queue.arrive(arrive_ns).0.finish_ns - arrive_ns)
        .collect();
    responses.sort_unstable();
    responses
}

/// Nearest-rank quantile in milliseconds.
fn quantile_ms(sorted: &[u64], p: f64) -> f64 {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64 / MS as f64
}

/// Checks `(p, expected in ms, relative tolerance)`.
fn assert_quantiles(sorted: &[u64], expected: &[(f64, f64, f64)]) {
    for &(p, expected_ms, tolerance) in expected {
        let actual_ms = quantile_ms(sorted, p);
        let error = actual_ms / expected_ms - 1.0;
        assert!(
            error.abs() <= tolerance,
            "p{p}: {actual_ms} ms against {expected_ms} ms, {:.2} % off, {:.2} % allowed",
            error * 100.0,
            tolerance * 100.0
        );
    }
}

#[test]
fn f4_a_stall_before_infinite_servers_shows_its_length_in_the_tail() {
    let stall = Service::PeriodicStall {
        base_ns: MS,
        period_ns: 10 * SECOND,
        stall_ns: SECOND,
        offset_ns: 5 * SECOND,
    };
    let sorted = responses(stall, None, evenly(1_000, 60_000));
    // R_p = 1 ms + max(0, H - (1 - p) P)
    let expected = [
        (0.5, 1.0),
        (0.9, 1.0),
        (0.95, 501.0),
        (0.99, 901.0),
        (0.999, 991.0),
    ];

    assert_quantiles(&sorted, &expected.map(|(p, ms)| (p, ms, 0.01)));
    assert_eq!(sorted.iter().filter(|&&ns| ns > MS).count(), 6_000);
}

#[test]
fn f5_a_stall_before_one_server_lasts_until_the_queue_has_drained() {
    let stall = Service::PeriodicStall {
        base_ns: MS,
        period_ns: 10 * SECOND,
        stall_ns: SECOND,
        offset_ns: 5 * SECOND,
    };
    // R_p = H - (1 - p)(1 - rho) P: above it by at most one service time, below by half an
    // inter-arrival time.
    for (rate_per_s, gap_ms) in [(500, 2.0), (100, 10.0)] {
        let rho = rate_per_s as f64 / 1_000.0;
        let sorted = responses(stall.clone(), Some(1), evenly(rate_per_s, rate_per_s * 600));
        for p in [0.9, 0.95, 0.99, 0.999] {
            let expected_ms = (1.0 - (1.0 - p) * (1.0 - rho) * 10.0) * 1_000.0;
            let error_ms = quantile_ms(&sorted, p) - expected_ms;
            assert!(
                (-gap_ms / 2.0..=1.0).contains(&error_ms),
                "rho {rho}, p{p}: {error_ms} ms off {expected_ms} ms"
            );
        }
    }
}

/// The quantiles that the documented method reports.
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];
const REPLICATIONS: u64 = 16;

/// Mean over replications, and the standard error of that mean.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);

    (mean, (variance / n).sqrt())
}

/// Response times of one simulation of the queue with service times of 2 ms, ascending.
fn simulate(queue: KnownQueue, utilisation: f64, replication: u64) -> Vec<u64> {
    // In a busier queue, waiting times are correlated over more requests.
    let count = if utilisation < 0.9 {
        600_000
    } else {
        2_400_000
    };
    let servers = if let KnownQueue::Mmc { servers } = queue {
        servers
    } else {
        1
    };
    let rate_per_s = utilisation * f64::from(servers) * 500.0;
    let random_holds = Service::Exponential {
        mean_ns: 2 * MS,
        seed: 2 * replication,
    };
    let random_arrivals = poisson(rate_per_s, 2 * replication + 1, count);

    match queue {
        KnownQueue::Mmc { .. } => responses(random_holds, Some(servers as usize), random_arrivals),
        KnownQueue::Md1 => responses(
            Service::Constant { hold_ns: 2 * MS },
            Some(1),
            random_arrivals,
        ),
        KnownQueue::Dm1 => responses(
            random_holds,
            Some(1),
            evenly(rate_per_s.round() as u64, count),
        ),
    }
}

/// Over simulations with different draws, the mean of each quantile equals that of theory, within
/// four standard errors.
fn assert_follows_theory(queue: KnownQueue, utilisations: &[f64]) {
    for &utilisation in utilisations {
        let expected_ms =
            QUANTILES.map(|quantile| 2.0 * queue.response_quantile(utilisation, quantile));
        let expected_mean_ms = 2.0 * queue.mean_response(utilisation);
        let simulations: Vec<([f64; 6], f64)> = (0..REPLICATIONS)
            .map(|replication| simulate(queue, utilisation, replication))
            .map(|sorted| {
                (
                    QUANTILES.map(|quantile| quantile_ms(&sorted, quantile)),
                    mean_ms(&sorted),
                )
            })
            .collect();

        for (index, quantile) in QUANTILES.into_iter().enumerate() {
            let ratios: Vec<f64> = simulations
                .iter()
                .map(|(actual_ms, _)| actual_ms[index] / expected_ms[index])
                .collect();
            assert_is_one(
                &format!("{queue:?} at {utilisation}, p{}", quantile * 100.0),
                &ratios,
            );
        }

        let ratios: Vec<f64> = simulations
            .iter()
            .map(|(_, actual_ms)| actual_ms / expected_mean_ms)
            .collect();
        assert_is_one(&format!("{queue:?} at {utilisation}, mean"), &ratios);
    }
}

fn mean_ms(responses_ns: &[u64]) -> f64 {
    responses_ns.iter().sum::<u64>() as f64 / responses_ns.len() as f64 / MS as f64
}

/// The mean of these ratios to theory is 1, within four standard errors.
fn assert_is_one(what: &str, ratios: &[f64]) {
    let (mean, error) = mean_and_error(ratios);
    assert!(
        error < 0.05,
        "too few replications: {what}: {mean} ± {error}"
    );
    assert!(
        (mean - 1.0).abs() <= 4.0 * error,
        "{what}: {mean} ± {error} times theory"
    );
}

/// Throughput per second of `users` with mean think times of 20 ms and mean service times of 2 ms,
/// both exponential, and their response times, ascending.
fn closed_loop(users: usize, seed: u64, count: u64) -> (f64, Vec<u64>) {
    let service = Service::Exponential {
        mean_ns: 2 * MS,
        seed,
    };
    let mut queue = VirtualQueue::new(service, Some(1), FaultPlan::none(), 0);
    let mut think_times_ns =
        (0..).map(|i| (random::exponential(seed + 1, i) * 20.0 * MS as f64) as u64);
    let mut arrivals: BinaryHeap<Reverse<u64>> =
        think_times_ns.by_ref().take(users).map(Reverse).collect();
    let mut last_ns = 0;
    let mut responses: Vec<u64> = (0..count)
        .map(|_| {
            let Reverse(arrive_ns) = arrivals.pop().expect("a user");
            let finish_ns = queue.arrive(arrive_ns).0.finish_ns;
            arrivals.push(Reverse(finish_ns + think_times_ns.next().expect("endless")));
            last_ns = arrive_ns;
            finish_ns - arrive_ns
        })
        .collect();
    responses.sort_unstable();

    (count as f64 / (last_ns as f64 / 1e9), responses)
}

#[test]
fn f10_closed_loops_with_think_time_follow_mean_value_analysis() {
    let ten: &[(f64, f64)] = &[(0.5, 4.314), (0.9, 11.77), (0.99, 20.30), (0.999, 27.77)];
    for (users, per_s, response_ms, quantiles) in [
        (5, 218.02, 2.933, &[(0.99, 12.82)][..]),
        (10, 392.71, 5.464, ten),
        (20, 499.07, 20.075, &[(0.99, 43.71)]),
    ] {
        let (actual_per_s, sorted) = closed_loop(users, 11, 4_000_000);
        assert!(
            (actual_per_s / per_s - 1.0).abs() < 0.01,
            "{users} users: {actual_per_s} per second, not {per_s}"
        );

        let actual_ms = mean_ms(&sorted);
        assert!(
            (actual_ms / response_ms - 1.0).abs() < 0.02,
            "{users} users: {actual_ms} ms, not {response_ms}"
        );

        assert_quantiles(
            &sorted,
            &quantiles
                .iter()
                .map(|&(p, ms)| (p, ms, 0.02))
                .collect::<Vec<_>>(),
        );
    }
}

#[test]
fn f6_mm1_response_times_are_exponential() {
    assert_follows_theory(KnownQueue::Mmc { servers: 1 }, &[0.5, 0.8]);
}

#[test]
fn f7_md1_response_times_follow_the_table() {
    assert_follows_theory(KnownQueue::Md1, &[0.5, 0.7, 0.8, 0.9, 0.95]);
}

#[test]
fn f8_dm1_response_times_follow_the_formula() {
    assert_follows_theory(KnownQueue::Dm1, &[0.5, 0.7, 0.8, 0.9]);
}

#[test]
fn f9_mm4_response_times_follow_the_table() {
    assert_follows_theory(KnownQueue::Mmc { servers: 4 }, &[0.5, 0.7, 0.8, 0.9]);
}
