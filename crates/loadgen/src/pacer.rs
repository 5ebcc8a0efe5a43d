//! Waiting for an instant: a timerfd for the long part, a short spin for the rest.
//!
//! `tokio::time` has a wheel of one millisecond and is never used to pace sends.

use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::{NS_PER_MS, NS_PER_S, monotonic_ns, thread_cpu_ns};
use crate::error::LoadError;
use crate::stop::StopToken;

/// A wait is cut into slices of this length, so that a stop is noticed soon.
const SLICE_NS: u64 = 50 * NS_PER_MS;

/// The spin that bridges the wake-up time of an idle core, about 20 µs to 50 µs.
const DEFAULT_SPIN_WINDOW_NS: u64 = 60_000;

/// Above this share of a core the spin would cost more than the lateness it removes.
const MOST_SPIN_SHARE: f64 = 0.2;

/// The spin window for a thread that sends at this rate: the usual one, or none where it would eat the core.
#[must_use]
pub(crate) fn automatic_spin_window_ns(rate_per_s: Option<f64>) -> u64 {
    let share = rate_per_s.map_or(1.0, |rate| rate * DEFAULT_SPIN_WINDOW_NS as f64 / NS_PER_S as f64);
    if share <= MOST_SPIN_SHARE { DEFAULT_SPIN_WINDOW_NS } else { 0 }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The instant has come.
    Due,
    /// A stop was asked for.
    Stopped,
}

#[expect(unsafe_code, reason = "tokio takes foreign descriptors by an unsafe function only")]
fn timer() -> std::io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // SAFETY: `OwnedFd` keeps the same open descriptor for as long as it lives, and the `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register(timer) }?)
}

/// Waits for instants on `CLOCK_MONOTONIC`, for one task of one thread.
pub(crate) struct Pacer {
    timer: AsyncFd<OwnedFd>,
    spin_window_ns: u64,
    stop: StopToken,
    spin_cpu_ns: u64,
}

impl Pacer {
    /// A pacer that spins for the last `spin_window_ns` before each instant. Needs a running tokio runtime.
    pub fn new(spin_window_ns: u64, stop: StopToken) -> Result<Self, LoadError> {
        let timer = timer().map_err(|source| LoadError::System { action: "create its timer", source })?;
        Ok(Self { timer, spin_window_ns, stop, spin_cpu_ns: 0 })
    }

    /// CPU time spent in the turns of the spin so far. It holds what other tasks did in those turns, so a busy
    /// share computed without it is a lower bound.
    pub fn spin_cpu_ns(&self) -> u64 {
        self.spin_cpu_ns
    }

    /// Returns at `due_ns`, never before; other tasks of the thread run meanwhile.
    pub async fn wait_until(&mut self, due_ns: u64) -> Waited {
        let sleep_until_ns = due_ns.saturating_sub(self.spin_window_ns);
        loop {
            if self.stop.is_stopped() {
                return Waited::Stopped;
            }
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                return Waited::Due;
            }
            if now_ns >= sleep_until_ns {
                self.spin(due_ns).await;
                return Waited::Due;
            }
            self.sleep_until(sleep_until_ns.min(now_ns + SLICE_NS)).await;
        }
    }

    /// Each turn yields, so that answers that have arrived are taken in and not starved by the spin.
    async fn spin(&mut self, due_ns: u64) {
        let cpu_before_ns = thread_cpu_ns();
        while monotonic_ns() < due_ns {
            tokio::task::yield_now().await;
        }
        self.spin_cpu_ns += thread_cpu_ns().saturating_sub(cpu_before_ns);
    }

    /// May return early; the caller looks at the clock.
    async fn sleep_until(&self, due_ns: u64) {
        let due = Timespec {
            tv_sec: i64::try_from(due_ns / NS_PER_S).unwrap_or(i64::MAX),
            tv_nsec: (due_ns % NS_PER_S) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: due };
        // Setting an existing timer to a valid time cannot fail; if it did, the loop of the caller would spin,
        // late for nobody.
        let set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once);
        debug_assert!(set.is_ok(), "{set:?}");
        if let Ok(mut ready) = self.timer.readable().await {
            // The timer is not read: setting it again clears it.
            ready.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime").block_on(work)
    }

    #[test]
    fn never_returns_before_the_instant() {
        on_runtime(async {
            let mut pacer = Pacer::new(60_000, StopToken::new()).expect("timer");
            for step_ns in [1, 1_000, 50_000, 100_000, 1_000_000, 3_700_000] {
                let due_ns = monotonic_ns() + step_ns;
                assert_eq!(pacer.wait_until(due_ns).await, Waited::Due);
                assert!(monotonic_ns() >= due_ns);
            }
        });
    }

    #[test]
    fn an_instant_in_the_past_is_due_at_once() {
        on_runtime(async {
            let mut pacer = Pacer::new(0, StopToken::new()).expect("timer");
            assert_eq!(pacer.wait_until(1).await, Waited::Due);
        });
    }

    #[test]
    fn a_stop_ends_a_long_wait() {
        on_runtime(async {
            let stop = StopToken::new();
            let mut pacer = Pacer::new(60_000, stop.clone()).expect("timer");
            let started_ns = monotonic_ns();
            std::thread::spawn(move || stop.stop());
            assert_eq!(pacer.wait_until(started_ns + 3_600 * NS_PER_S).await, Waited::Stopped);
            assert!(monotonic_ns() - started_ns < 10 * NS_PER_S);
        });
    }

    #[test]
    fn the_spin_is_off_where_it_would_eat_the_core() {
        assert_eq!(automatic_spin_window_ns(Some(1_000.0)), DEFAULT_SPIN_WINDOW_NS);
        assert_eq!(automatic_spin_window_ns(Some(20_000.0)), 0);
        assert_eq!(automatic_spin_window_ns(None), 0);
    }
}
