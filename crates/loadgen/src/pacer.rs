//! How to wait for an instant: sleep for the long part, and look again and again for the last few microseconds.

use serde::Serialize;

use crate::clock::{NS_PER_MS, NS_PER_S};

/// A wait is cut into slices of this length, so that a stop is noticed soon.
const SLICE_NS: u64 = 50 * NS_PER_MS;

/// The spin that bridges the wake-up time of an idle core, about 20 µs to 50 µs.
const DEFAULT_SPIN_WINDOW_NS: u64 = 60_000;

/// Above this share of a core the spin would cost more than the lateness it removes.
const MOST_SPIN_SHARE: f64 = 0.2;

/// A look that took longer than this was no spin: something else ran.
const LONGEST_LOOK_NS: u64 = 10_000;

/// Why the spin window is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpinReason {
    /// The plan asked for it.
    Asked,
    /// The usual window.
    Automatic,
    /// Off: at this rate it would eat a fifth of a core or more.
    OffAtThisRate,
    /// Off: there are no more cores than generator threads, so it would take the server's time.
    OffOnSharedCores,
}

/// How long before a send a thread looks again and again instead of sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spin {
    /// The window; 0: none.
    pub window_ns: u64,
    /// Who decided so.
    pub reason: SpinReason,
}

impl Spin {
    /// The window that was asked for, or else the usual one where it costs nobody anything.
    pub(crate) fn decide(asked_ns: Option<u64>, thread_rate_per_s: Option<f64>, has_own_core: bool) -> Self {
        let share = thread_rate_per_s.map_or(1.0, |rate| rate * DEFAULT_SPIN_WINDOW_NS as f64 / NS_PER_S as f64);
        match asked_ns {
            Some(window_ns) => Self { window_ns, reason: SpinReason::Asked },
            None if !has_own_core => Self { window_ns: 0, reason: SpinReason::OffOnSharedCores },
            None if share > MOST_SPIN_SHARE => Self { window_ns: 0, reason: SpinReason::OffAtThisRate },
            None => Self { window_ns: DEFAULT_SPIN_WINDOW_NS, reason: SpinReason::Automatic },
        }
    }
}

/// Decides how each wait is spent.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    spin_window_ns: u64,
    spin_ns: u64,
}

impl Pacer {
    /// A pacer that spins for the last `spin_window_ns` before each send.
    pub fn new(spin_window_ns: u64) -> Self {
        Self { spin_window_ns, spin_ns: 0 }
    }

    /// How long to sleep at most at `now_ns`, with a send due at `due_ns` and something else to do at `other_ns`; 0: not
    /// at all, for the send is near.
    pub fn sleep_ns(&self, now_ns: u64, due_ns: u64, other_ns: u64) -> u64 {
        due_ns.saturating_sub(self.spin_window_ns).min(other_ns).saturating_sub(now_ns).min(SLICE_NS)
    }

    /// Notes a look at the sockets, from `before_ns` to `after_ns`, that found nothing.
    pub fn spun(&mut self, before_ns: u64, after_ns: u64) {
        self.spin_ns += (after_ns - before_ns).min(LONGEST_LOOK_NS);
    }

    /// Time spent looking and finding nothing: CPU time that was spent for nothing but precision.
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_before_a_send_is_not_slept_through() {
        let pacer = Pacer::new(60_000);
        assert_eq!(pacer.sleep_ns(0, 1_000_000, u64::MAX), 940_000);
        assert_eq!(pacer.sleep_ns(940_000, 1_000_000, u64::MAX), 0);
        assert_eq!(pacer.sleep_ns(2_000_000, 1_000_000, u64::MAX), 0);
        assert_eq!(pacer.sleep_ns(0, 1_000_000, 10), 10);
        assert_eq!(pacer.sleep_ns(0, u64::MAX, u64::MAX), SLICE_NS, "a stop has to be noticed");
        assert_eq!(Pacer::new(0).sleep_ns(0, 1_000, u64::MAX), 1_000);
    }

    #[test]
    fn a_look_that_was_interrupted_counts_as_a_short_one() {
        let mut pacer = Pacer::new(1);
        pacer.spun(0, 400);
        pacer.spun(0, 5_000_000);
        assert_eq!(pacer.spin_ns(), 400 + LONGEST_LOOK_NS);
    }

    #[test]
    fn the_spin_is_off_where_it_would_eat_the_core_or_the_servers_time() {
        let decide = |rate, has_own_core| {
            let spin = Spin::decide(None, rate, has_own_core);
            (spin.window_ns, spin.reason)
        };
        assert_eq!(decide(Some(1_000.0), true), (DEFAULT_SPIN_WINDOW_NS, SpinReason::Automatic));
        assert_eq!(decide(Some(20_000.0), true), (0, SpinReason::OffAtThisRate));
        assert_eq!(decide(None, true), (0, SpinReason::OffAtThisRate));
        assert_eq!(decide(Some(1_000.0), false), (0, SpinReason::OffOnSharedCores));
        let asked = Spin::decide(Some(7), Some(20_000.0), false);
        assert_eq!((asked.window_ns, asked.reason), (7, SpinReason::Asked));
    }
}
