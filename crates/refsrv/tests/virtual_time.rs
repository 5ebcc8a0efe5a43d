//! The queue against queueing theory, in virtual time: no network, no clock, no tolerance for
//! the machine. What is left is sampling error, and the tolerances are four times that
//! (docs: method, tier T; tables F4 to F9).

use refsrv::{FaultPlan, Service, VirtualQueue, random};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const N: u64 = 600_000;

/// Instants of a Poisson process of `rate_per_s`.
fn poisson(rate_per_s: f64, seed: u64) -> impl Iterator<Item = u64> {
    (0..N).scan(0.0, move |now, i| {
        *now += random::exponential(seed, i) / rate_per_s;
        Some((*now * 1e9) as u64)
    })
}

/// Evenly spaced instants, in the middle of their intervals: none falls on a window's edge.
fn evenly(rate_per_s: u64, count: u64) -> impl Iterator<Item = u64> {
    let gap_ns = SECOND / rate_per_s;
    (0..count).map(move |i| i * gap_ns + gap_ns / 2)
}

/// The sorted response times, in nanoseconds.
fn responses(service: Service, servers: Option<usize>, arrivals: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut queue = VirtualQueue::new(service, servers, FaultPlan::none(), 0);
    let mut responses: Vec<u64> =
        arrivals.map(|arrive_ns| queue.arrive(arrive_ns).0.finish_ns - arrive_ns).collect();
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
        let got_ms = quantile_ms(sorted, p);
        let error = got_ms / expected_ms - 1.0;
        assert!(
            error.abs() <= tolerance,
            "p{p}: {got_ms} ms against {expected_ms} ms, {:.2} % off, {:.2} % allowed",
            error * 100.0,
            tolerance * 100.0
        );
    }
}

/// Tier T at utilisation 0.5 and 600 000 arrivals.
const TOLERANCE_HALF: [f64; 4] = [0.014, 0.018, 0.033, 0.077];
/// Tier T at utilisation 0.8.
const TOLERANCE_EIGHTY: [f64; 4] = [0.038, 0.051, 0.095, 0.21];

fn tail(expected_ms: [f64; 4], tolerance: [f64; 4]) -> Vec<(f64, f64, f64)> {
    let p = [0.5, 0.9, 0.99, 0.999];
    (0..4).map(|i| (p[i], expected_ms[i], tolerance[i])).collect()
}

#[test]
fn f4_a_stall_before_infinite_servers_shows_its_length_in_the_tail() {
    let stall =
        Service::PeriodicStall { base_ns: MS, period_ns: 10 * SECOND, stall_ns: SECOND, offset_ns: 5 * SECOND };
    let sorted = responses(stall, None, evenly(1_000, 60_000));
    // R_p = 1 ms + max(0, H - (1 - p) P)
    let expected = [(0.5, 1.0), (0.9, 1.0), (0.95, 501.0), (0.99, 901.0), (0.999, 991.0)];
    assert_quantiles(&sorted, &expected.map(|(p, ms)| (p, ms, 0.01)));
    assert_eq!(sorted.iter().filter(|&&ns| ns > MS).count(), 6_000);
}

#[test]
fn f5_a_stall_before_one_server_lasts_until_the_queue_has_drained() {
    let stall =
        Service::PeriodicStall { base_ns: MS, period_ns: 10 * SECOND, stall_ns: SECOND, offset_ns: 5 * SECOND };
    // R_p = H - (1 - p)(1 - rho) P, within one service and half an arrival gap.
    for (rate_per_s, gap_ms) in [(500, 2.0), (100, 10.0)] {
        let rho = rate_per_s as f64 / 1_000.0;
        let sorted = responses(stall.clone(), Some(1), evenly(rate_per_s, rate_per_s * 600));
        for p in [0.9, 0.95, 0.99, 0.999] {
            let expected_ms = (1.0 - (1.0 - p) * (1.0 - rho) * 10.0) * 1_000.0;
            let error_ms = quantile_ms(&sorted, p) - expected_ms;
            assert!((-gap_ms..=gap_ms).contains(&error_ms), "rho {rho}, p{p}: {error_ms} ms off {expected_ms} ms");
        }
    }
}

#[test]
fn f6_mm1_response_times_are_exponential() {
    let service = Service::Exponential { mean_ns: 2 * MS, seed: 1 };
    for (rho, tolerance) in [(0.5, TOLERANCE_HALF), (0.8, TOLERANCE_EIGHTY)] {
        let sorted = responses(service.clone(), Some(1), poisson(rho * 500.0, 2));
        let mean_ms = 2.0 / (1.0 - rho);
        let expected = [0.5, 0.9, 0.99, 0.999].map(|p: f64| -(1.0 - p).ln() * mean_ms);
        assert_quantiles(&sorted, &tail(expected, tolerance));
    }
}

#[test]
fn f7_md1_response_times_follow_the_table() {
    let cases = [
        (0.5, [1.0, 2.5157, 4.3363, 6.1684], TOLERANCE_HALF),
        (0.8, [2.2759, 6.0115, 11.356, 16.700], TOLERANCE_EIGHTY),
    ];
    for (rho, in_services, tolerance) in cases {
        let service = Service::Constant { hold_ns: 2 * MS };
        let sorted = responses(service, Some(1), poisson(rho * 500.0, 3));
        assert_quantiles(&sorted, &tail(in_services.map(|d| d * 2.0), tolerance));
    }
}

#[test]
fn f8_even_arrivals_wait_less_than_random_ones() {
    // D/M/1: R ~ Exp(mu (1 - sigma)), sigma = exp(-(1 - sigma) / rho).
    for (rate_per_s, sigma, tolerance) in [(250, 0.2032, TOLERANCE_HALF), (400, 0.6286, TOLERANCE_EIGHTY)] {
        let service = Service::Exponential { mean_ns: 2 * MS, seed: 4 };
        let sorted = responses(service, Some(1), evenly(rate_per_s, N));
        let expected = [0.5, 0.9, 0.99, 0.999].map(|p: f64| -(1.0 - p).ln() * 2.0 / (1.0 - sigma));
        assert_quantiles(&sorted, &tail(expected, tolerance));
    }
}

#[test]
fn f9_mm4_response_times_follow_the_table() {
    let cases = [
        (0.5, [0.783, 2.450, 4.764, 7.068], TOLERANCE_HALF),
        (0.8, [1.346, 3.776, 6.893, 9.880], TOLERANCE_EIGHTY),
    ];
    for (rho, in_services, tolerance) in cases {
        let service = Service::Exponential { mean_ns: 2 * MS, seed: 5 };
        let sorted = responses(service, Some(4), poisson(rho * 2_000.0, 6));
        assert_quantiles(&sorted, &tail(in_services.map(|s| s * 2.0), tolerance));
    }
}
