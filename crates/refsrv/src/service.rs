//! Service plans: how long request `i` is held, as a pure function of `i`.
//!
//! This module uses no clock and no queue; it computes how long a service takes and when it may
//! start.

use crate::error::ConfigError;
use crate::random;

/// How long each request occupies a server. Indexed by arrival number, from 0.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// The same hold for every request.
    Constant {
        /// The hold of every request.
        hold_ns: u64,
    },
    /// Explicit holds, cycled.
    List {
        /// Request `i` is held `holds_ns[i % len]`.
        holds_ns: Vec<u64>,
    },
    /// Exponential holds, as in M/M/1.
    Exponential {
        /// The mean hold.
        mean_ns: u64,
        /// The stream of draws.
        seed: u64,
    },
    /// Two holds: the last of every `slow_every` requests is slow, so counts are exact.
    Bimodal {
        /// The usual hold.
        fast_ns: u64,
        /// The rare hold.
        slow_ns: u64,
        /// Requests `slow_every - 1`, `2 * slow_every - 1`, … are slow.
        slow_every: u64,
    },
    /// Lognormal holds: `median * exp(sigma * N(0, 1))`.
    Lognormal {
        /// The median hold.
        median_ns: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// The stream of draws.
        seed: u64,
    },
    /// Pareto holds, truncated (not clamped: no mass piles up at the maximum).
    Pareto {
        /// Tail index; below 2 the untruncated variance is infinite.
        alpha: f64,
        /// Smallest hold.
        min_ns: u64,
        /// Largest hold.
        max_ns: u64,
        /// The stream of draws.
        seed: u64,
    },
    /// Nothing starts during the stall windows `[k * period + offset, … + stall)`, counted from the
    /// server's epoch; instead it starts at the window's end. A service already started is not
    /// interrupted.
    PeriodicStall {
        /// The hold outside the stalls.
        base_ns: u64,
        /// Time between the starts of two stalls.
        period_ns: u64,
        /// Length of a stall, less than the period.
        stall_ns: u64,
        /// Start of the first stall after the epoch.
        offset_ns: u64,
    },
}

impl Service {
    /// The hold of arrival number `index`, excluding stalls.
    ///
    /// It is 0 for an empty list, which [`Service::validate`] rejects.
    #[must_use]
    pub fn hold_ns(&self, index: u64) -> u64 {
        match *self {
            Self::Constant { hold_ns } => hold_ns,
            Self::List { ref holds_ns } => cycled(holds_ns, index),
            Self::Exponential { mean_ns, seed } => {
                scaled(mean_ns, random::exponential(seed, index))
            }
            Self::Bimodal {
                fast_ns,
                slow_ns,
                slow_every,
            } => {
                let is_slow = index.wrapping_add(1).checked_rem(slow_every) == Some(0);
                if is_slow { slow_ns } else { fast_ns }
            }
            Self::Lognormal {
                median_ns,
                sigma,
                seed,
            } => scaled(median_ns, (sigma * random::normal(seed, index)).exp()),
            Self::Pareto {
                alpha,
                min_ns,
                max_ns,
                seed,
            } => truncated_pareto(alpha, min_ns, max_ns, random::uniform(seed, index)),
            Self::PeriodicStall { base_ns, .. } => base_ns,
        }
    }

    /// The first time at or after `since_epoch_ns` at which a service may start.
    #[must_use]
    pub fn may_begin_ns(&self, since_epoch_ns: u64) -> u64 {
        let Self::PeriodicStall {
            period_ns,
            stall_ns,
            offset_ns,
            ..
        } = *self
        else {
            return since_epoch_ns;
        };

        if period_ns == 0 {
            return since_epoch_ns;
        }

        let (now, begin) = (since_epoch_ns % period_ns, offset_ns % period_ns);
        let into_period = if now >= begin {
            now - begin
        } else {
            period_ns - (begin - now)
        };

        since_epoch_ns.saturating_add(stall_ns.saturating_sub(into_period))
    }

    /// Rejects plans that cannot be carried out as written.
    ///
    /// # Errors
    /// Names the offending field and what it must be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (is_sound, field, must_be) = match *self {
            Self::Constant { .. } | Self::Exponential { .. } => return Ok(()),
            Self::List { ref holds_ns } => (!holds_ns.is_empty(), "holds_ns", "not empty"),
            Self::Bimodal { slow_every, .. } => (slow_every > 0, "slow_every", "at least 1"),
            Self::Lognormal { sigma, .. } => (
                sigma.is_finite() && sigma >= 0.0,
                "sigma",
                "finite and not negative",
            ),
            Self::Pareto {
                alpha,
                min_ns,
                max_ns,
                ..
            } => (
                alpha.is_finite() && alpha > 0.0 && 0 < min_ns && min_ns <= max_ns,
                "pareto",
                "alpha > 0 and 0 < min <= max",
            ),
            Self::PeriodicStall {
                period_ns,
                stall_ns,
                ..
            } => (stall_ns < period_ns, "stall_ns", "shorter than the period"),
        };
        if is_sound {
            Ok(())
        } else {
            Err(ConfigError { field, must_be })
        }
    }
}

fn cycled(holds_ns: &[u64], index: u64) -> u64 {
    let position = index.checked_rem(holds_ns.len() as u64).unwrap_or(0);
    holds_ns.get(position as usize).copied().unwrap_or(0)
}

fn scaled(unit_ns: u64, factor: f64) -> u64 {
    // `as` saturates, so a draw beyond 584 years is held for 584 years.
    (unit_ns as f64 * factor).round() as u64
}

/// Inverse of the truncated distribution function
/// `F(x) = (1 - (min/x)^alpha) / (1 - (min/max)^alpha)`.
fn truncated_pareto(alpha: f64, min_ns: u64, max_ns: u64, uniform: f64) -> u64 {
    let mass_below_max = 1.0 - (min_ns as f64 / max_ns as f64).powf(alpha);
    let hold_ns = scaled(min_ns, (1.0 - uniform * mass_below_max).powf(-1.0 / alpha));
    // Rounding can exceed the bounds.
    hold_ns.max(min_ns).min(max_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sorted_holds(service: &Service, count: u64) -> Vec<u64> {
        let mut holds: Vec<u64> = (0..count).map(|i| service.hold_ns(i)).collect();
        holds.sort_unstable();
        holds
    }

    #[test]
    fn bimodal_counts_are_exact() {
        let service = Service::Bimodal {
            fast_ns: 1,
            slow_ns: 50,
            slow_every: 200,
        };
        let slow = (0..10_000).filter(|&i| service.hold_ns(i) == 50).count();

        assert_eq!(slow, 50);
        assert_eq!(service.hold_ns(199), 50);
        assert_eq!(service.hold_ns(0), 1);
    }

    #[test]
    fn a_list_is_cycled() {
        let service = Service::List {
            holds_ns: vec![5, 6, 7],
        };
        let holds: Vec<u64> = (0..7).map(|i| service.hold_ns(i)).collect();
        assert_eq!(holds, [5, 6, 7, 5, 6, 7, 5]);
    }

    #[test]
    fn exponential_quantiles_follow_the_formula() {
        let holds = sorted_holds(
            &Service::Exponential {
                mean_ns: 2 * MS,
                seed: 1,
            },
            200_000,
        );
        for (p, tolerance) in [(0.5, 0.015), (0.9, 0.015), (0.99, 0.03)] {
            let expected = -(1.0_f64 - p).ln() * 2e6;
            let got = holds[(p * 200_000.0) as usize] as f64;
            assert!(
                (got / expected - 1.0).abs() < tolerance,
                "p{p}: {got} against {expected}"
            );
        }
    }

    #[test]
    fn lognormal_has_its_median_and_spread() {
        let holds = sorted_holds(
            &Service::Lognormal {
                median_ns: MS,
                sigma: 1.5,
                seed: 1,
            },
            200_000,
        );
        let median = holds[100_000] as f64;
        let one_sigma_up = holds[(0.841_344_7 * 200_000.0) as usize] as f64;

        assert!((median / 1e6 - 1.0).abs() < 0.02, "{median}");
        assert!(
            (one_sigma_up / 1e6 / 1.5_f64.exp() - 1.0).abs() < 0.03,
            "{one_sigma_up}"
        );
    }

    #[test]
    fn pareto_stays_within_its_bounds_and_has_its_median() {
        let service = Service::Pareto {
            alpha: 1.5,
            min_ns: MS,
            max_ns: 60_000 * MS,
            seed: 1,
        };
        let holds = sorted_holds(&service, 200_000);

        assert!(holds[0] >= MS && holds[199_999] <= 60_000 * MS);

        let median = holds[100_000] as f64;
        assert!(
            (median / 1e6 / 2_f64.powf(1.0 / 1.5) - 1.0).abs() < 0.02,
            "{median}"
        );
    }

    #[test]
    fn a_stall_only_delays_starts_to_its_end() {
        let service = Service::PeriodicStall {
            base_ns: 1,
            period_ns: 100,
            stall_ns: 10,
            offset_ns: 30,
        };
        let cases = [
            (0, 0),
            (29, 29),
            (30, 40),
            (39, 40),
            (40, 40),
            (129, 129),
            (135, 140),
        ];

        for (at, expected) in cases {
            assert_eq!(service.may_begin_ns(at), expected, "at {at}");
        }
    }

    #[test]
    fn invalid_plans_are_rejected_by_field_name() {
        let unsound = [
            (Service::List { holds_ns: vec![] }, "holds_ns"),
            (
                Service::Bimodal {
                    fast_ns: 1,
                    slow_ns: 2,
                    slow_every: 0,
                },
                "slow_every",
            ),
            (
                Service::Lognormal {
                    median_ns: 1,
                    sigma: f64::NAN,
                    seed: 0,
                },
                "sigma",
            ),
            (
                Service::Pareto {
                    alpha: 1.0,
                    min_ns: 2,
                    max_ns: 1,
                    seed: 0,
                },
                "pareto",
            ),
            (
                Service::PeriodicStall {
                    base_ns: 0,
                    period_ns: 5,
                    stall_ns: 5,
                    offset_ns: 0,
                },
                "stall_ns",
            ),
        ];
        for (service, field) in unsound {
            assert_eq!(
                service.validate().expect_err("must be refused").field,
                field
            );
        }
    }
}
