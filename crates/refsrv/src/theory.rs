//! Response times according to queueing theory: the expected figures of a queue, without running a
//! server.
//!
//! Times are in mean service times. Each queue is first come, first served, in equilibrium, and
//! named in Kendall's notation: arrivals / service times / servers, M for exponential and D for
//! constant.

/// A queue whose response time distribution has a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownQueue {
    /// Poisson arrivals and exponential service times; M/M/1 with one server.
    Mmc {
        /// Number of servers.
        servers: u32,
    },
    /// Poisson arrivals, constant service times, one server.
    Md1,
    /// Constant inter-arrival times, exponential service times, one server.
    Dm1,
}

/// Larger than any quantile in use, and small enough for the bisection to converge.
const MAX_TIME: f64 = 1e9;
const BISECTION_STEPS: usize = 100;

impl KnownQueue {
    /// The given quantile of the response time, in mean service times, if the servers are busy for
    /// a share `utilisation` of the time.
    ///
    /// # Panics
    /// If `utilisation` or `quantile` is not between 0 and 1: no queue has such a time.
    #[must_use]
    pub fn response_quantile(self, utilisation: f64, quantile: f64) -> f64 {
        let is_a_share = |number: f64| number > 0.0 && number < 1.0;
        assert!(
            is_a_share(utilisation) && is_a_share(quantile),
            "utilisation {utilisation}, quantile {quantile}"
        );

        let is_within: Box<dyn Fn(f64) -> f64> = match self {
            Self::Mmc { servers } => {
                let waiting = erlang_c(servers, utilisation);
                let drain = f64::from(servers) * (1.0 - utilisation);
                Box::new(move |time| 1.0 - mmc_beyond(waiting, drain, time))
            }
            Self::Md1 => Box::new(move |time| md1_waits_within(utilisation, time - 1.0)),
            Self::Dm1 => {
                let drain = 1.0 - dm1_root(utilisation);
                Box::new(move |time| 1.0 - (-drain * time).exp())
            }
        };
        let (mut below, mut above) = (0.0, 1.0);

        while is_within(above) < quantile && above < MAX_TIME {
            (below, above) = (above, above * 2.0);
        }

        bisect(below, above, |time| is_within(time) < quantile)
    }

    /// The mean response time, in mean service times, if the servers are busy for a share
    /// `utilisation` of the time (M/M/c by Erlang's C; M/D/1 by Pollaczek and Khinchine; D/M/1 by
    /// the root of its equation).
    #[must_use]
    pub fn mean_response(self, utilisation: f64) -> f64 {
        match self {
            Self::Mmc { servers } => {
                1.0 + erlang_c(servers, utilisation) / (f64::from(servers) * (1.0 - utilisation))
            }
            Self::Md1 => 1.0 + utilisation / (2.0 * (1.0 - utilisation)),
            Self::Dm1 => 1.0 / (1.0 - dm1_root(utilisation)),
        }
    }
}

/// The number at which `is_below` changes from true (at `below`) to false (at `above`).
fn bisect(mut below: f64, mut above: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..BISECTION_STEPS {
        let middle = (below + above) / 2.0;
        *(if is_below(middle) {
            &mut below
        } else {
            &mut above
        }) = middle;
    }
    above
}

/// Share of requests that have to wait in M/M/c: Erlang's C, by the recursion of Erlang's B.
#[must_use]
pub fn erlang_c(servers: u32, utilisation: f64) -> f64 {
    let offered = f64::from(servers) * utilisation;
    let blocked = (1..=servers).fold(1.0, |blocked, server| {
        offered * blocked / (f64::from(server) + offered * blocked)
    });
    blocked / (1.0 - utilisation * (1.0 - blocked))
}

/// Share of requests of M/M/c whose response time exceeds `time`: an exponential service time and,
/// for the share `waiting` of them, an exponential wait of rate `drain` before it.
fn mmc_beyond(waiting: f64, drain: f64, time: f64) -> f64 {
    let without_wait = (-time).exp();
    let with_wait = if (drain - 1.0).abs() < 1e-9 {
        (1.0 + time) * without_wait
    } else {
        (drain * without_wait - (-drain * time).exp()) / (drain - 1.0)
    };
    (1.0 - waiting) * without_wait + waiting * with_wait
}

/// The root below 1 of `x = exp(-(1 - x) / utilisation)`: a response time of D/M/1 is exponential
/// with the rate `1 - x` (Kleinrock, Queueing Systems I, 1975, G/M/1).
fn dm1_root(utilisation: f64) -> f64 {
    // Between 0 and the point where both sides have the same slope, they are equal exactly once.
    bisect(0.0, 1.0 + utilisation * utilisation.ln(), |x| {
        x < (-(1.0 - x) / utilisation).exp()
    })
}

/// Share of requests of M/D/1 that wait no longer than `wait`: Franx, A simple solution for the
/// M/D/c waiting time distribution, Operations Research Letters 29 (2001). Unlike the alternating
/// sum in textbooks, it has no cancellation.
fn md1_waits_within(utilisation: f64, wait: f64) -> f64 {
    if wait < 0.0 {
        return 0.0;
    }

    let periods = wait.floor() as usize + 1;
    let queued = md1_queued_at_most(utilisation, periods);
    let arrivals = utilisation * (periods as f64 - wait);
    let mut probability = (-arrivals).exp();
    let mut sum = 0.0;

    for (count, at_most) in queued.iter().rev().enumerate() {
        sum += probability * at_most;
        probability *= arrivals / (count + 1) as f64;
    }

    sum.min(1.0)
}

/// For each number below `count`, the probability that at most that many requests of M/D/1 wait for
/// the server.
fn md1_queued_at_most(utilisation: f64, count: usize) -> Vec<f64> {
    let (exactly, at_least) = poisson(utilisation, count + 2);
    let mut present = vec![1.0 - utilisation];

    for level in 0..count {
        // The number of requests left behind at departures rises above a level as often as it falls
        // back to it.
        let from_empty = present[0] * at_least[level + 1];
        let from_busy: f64 = (1..=level)
            .map(|left| present[left] * at_least[level + 2 - left])
            .sum();
        present.push((from_empty + from_busy) / exactly[0]);
    }

    let mut sum = present[0];
    present[1..]
        .iter()
        .map(|probability| {
            sum += probability;
            sum
        })
        .collect()
}

/// Probabilities that a Poisson variable of this mean equals each number below `count`, and that it
/// is at least that large.
fn poisson(mean: f64, count: usize) -> (Vec<f64>, Vec<f64>) {
    // Large enough for a negligible remainder, for means up to 1.
    const BEYOND: usize = 40;
    let mut exactly = vec![(-mean).exp()];

    for number in 1..count + BEYOND {
        exactly.push(exactly[number - 1] * mean / number as f64);
    }

    let mut at_least = exactly.clone();
    for number in (0..at_least.len() - 1).rev() {
        at_least[number] += at_least[number + 1];
    }

    (exactly, at_least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

    /// Compares with a figure that was rounded to a multiple of `digit`.
    fn assert_rounded(actual: f64, printed: f64, digit: f64) {
        assert!(
            (actual - printed).abs() <= 0.51 * digit,
            "{actual}, not {printed}"
        );
    }

    #[test]
    fn md1_quantiles_equal_those_evaluated_with_120_digits() {
        let table = [
            (0.5, [1.0000, 2.5157, 3.0506, 4.3363, 6.1684, 8.0010]),
            (0.7, [1.7298, 4.0771, 5.1029, 7.4855, 10.894, 14.303]),
            (0.8, [2.2759, 6.0115, 7.6203, 11.356, 16.700, 22.045]),
            (0.9, [4.0130, 11.7825, 15.129, 22.898, 34.014, 45.130]),
            (0.95, [7.4807, 23.302, 30.116, 45.938, 68.573, 91.209]),
        ];
        for (utilisation, printed) in table {
            for (quantile, printed) in QUANTILES.into_iter().zip(printed) {
                let actual = KnownQueue::Md1.response_quantile(utilisation, quantile);
                assert_rounded(actual, printed, if printed < 10.0 { 1e-4 } else { 1e-3 });
            }
        }
    }

    #[test]
    fn mmc_quantiles_equal_those_of_the_tables() {
        let mm4 = [
            (0.5, 0.1739, [0.783, 2.450, 4.764, 7.068]),
            (0.7, 0.4287, [1.029, 2.976, 5.493, 7.902]),
            (0.8, 0.5964, [1.346, 3.776, 6.893, 9.880]),
            (0.9, 0.7878, [2.255, 6.424, 12.193, 17.950]),
        ];
        for (utilisation, waiting, printed) in mm4 {
            assert_rounded(erlang_c(4, utilisation), waiting, 1e-4);
            for (quantile, printed) in [0.5, 0.9, 0.99, 0.999].into_iter().zip(printed) {
                assert_rounded(
                    KnownQueue::Mmc { servers: 4 }.response_quantile(utilisation, quantile),
                    printed,
                    1e-3,
                );
            }
        }

        for (utilisation, mean) in [(0.5, 2.0), (0.8, 5.0)] {
            for quantile in QUANTILES {
                let actual =
                    KnownQueue::Mmc { servers: 1 }.response_quantile(utilisation, quantile);
                assert!(
                    (actual / (-(1.0 - quantile).ln() * mean) - 1.0).abs() < 1e-9,
                    "{actual}"
                );
            }
        }

        // Enough servers for the wait to drain as fast as a service ends.
        let near = KnownQueue::Mmc { servers: 2 };
        let at = KnownQueue::Mmc { servers: 2 }.response_quantile(0.5, 0.9);

        assert!((near.response_quantile(0.500_001, 0.9) / at - 1.0).abs() < 1e-5);
    }

    #[test]
    fn dm1_solves_its_equation() {
        for (utilisation, root) in [(0.5, 0.2032), (0.7, 0.4670), (0.8, 0.6286), (0.9, 0.8069)] {
            assert_rounded(dm1_root(utilisation), root, 1e-4);
        }

        assert_rounded(
            KnownQueue::Dm1.response_quantile(0.8, 0.99) * 2.0,
            24.80,
            1e-2,
        );

        // Close to 1 the rate is 2 (1 - utilisation), to the first order.
        let rate = 1.0 - dm1_root(0.999_9);
        assert!((rate / 2e-4 - 1.0).abs() < 1e-3, "{rate}");
    }
}
