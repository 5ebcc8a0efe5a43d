//! How to wait for a timestamp: sleep most of the time, and spin for the last few microseconds.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::{NS_PER_MS, NS_PER_S};
use crate::pacing::idle_cores::IdleTime;
use crate::pacing::rt_budget::RtBudget;

/// A wait is split into parts of this length, so that a stop is noticed soon.
const SLICE_NS: u64 = 50 * NS_PER_MS;

/// The spin that covers the wake-up time of an idle core, about 20 µs to 50 µs.
const DEFAULT_SPIN_WINDOW_NS: u64 = 60_000;

/// Maximum share of a core to spend on spinning: beyond it, the spin would cost more than the lag
/// it removes.
pub(crate) const MAX_SPIN_SHARE: f64 = 0.2;

/// A longer poll was interrupted, so only this much of it counts as spinning.
const MAX_POLL_NS: u64 = 10_000;

/// Why the spin window has its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpinReason {
    /// The plan sets it.
    UserSet,
    /// The default window.
    Automatic,
    /// Off: at this rate it would use a fifth of a core or more.
    OffAtThisRate,
    /// Off: the plan says that the cores are shared, or there are no more cores than generator
    /// threads; it would take CPU time from the server.
    OffOnSharedCores,
}

/// Busy-waiting before sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Spin {
    /// Duration of the busy-wait before each send. A busy-waiting generator polls its sockets
    /// instead of sleeping.
    pub window_ns: u64,
    /// Why `window_ns` has this value: `user_set`, `automatic`, `off_at_this_rate` (busy-waiting
    /// would use more than 20 % of a core, or the load has no rate) or `off_on_shared_cores` (other
    /// processes use the generator's cores, or the generator has as many threads as cores).
    pub reason: SpinReason,
}

impl Spin {
    /// The window that the plan sets, or else the default one if it takes no CPU time from others.
    pub(crate) fn decide(
        requested_ns: Option<u64>,
        thread_rate_per_s: Option<f64>,
        has_spare_core: bool,
    ) -> Self {
        let share = thread_rate_per_s.map_or(1.0, |rate| {
            rate * DEFAULT_SPIN_WINDOW_NS as f64 / NS_PER_S as f64
        });
        match requested_ns {
            Some(window_ns) => Self {
                window_ns,
                reason: SpinReason::UserSet,
            },
            None if !has_spare_core => Self {
                window_ns: 0,
                reason: SpinReason::OffOnSharedCores,
            },
            None if share > MAX_SPIN_SHARE => Self {
                window_ns: 0,
                reason: SpinReason::OffAtThisRate,
            },
            None => Self {
                window_ns: DEFAULT_SPIN_WINDOW_NS,
                reason: SpinReason::Automatic,
            },
        }
    }
}

/// A sleep shorter than this is spent entirely on falling asleep and waking up.
const MIN_NAP_NS: u64 = 5_000;

/// Maximum lead of a nap's timer: a host that sometimes wakes the thread even later does so
/// whatever the timer is set to.
const MAX_NAP_LEAD_NS: u64 = 30_000;

/// The minimum wake-up time is estimated from this many wake-ups, so about one in as many is too
/// early and followed by a spin.
const WAKE_UPS: usize = 16;

/// Maximum lead of a timer: a host that always wakes the thread later is not idle, and compensating
/// for that would amount to spinning.
const MAX_LEAD_NS: u64 = 20_000;

/// Recent wake-up latencies of the thread.
#[derive(Clone, Debug, Default)]
struct WakeUps {
    late_ns: [u64; WAKE_UPS],
    next: usize,
}

impl WakeUps {
    fn note(&mut self, late_ns: u64) {
        self.late_ns[self.next] = late_ns;
        self.next = (self.next + 1) % WAKE_UPS;
    }

    /// How much earlier to set a timer to compensate for the minimum wake-up time.
    fn lead_ns(&self) -> u64 {
        self.late_ns
            .iter()
            .copied()
            .min()
            .map_or(0, |min_ns| min_ns.min(MAX_LEAD_NS))
    }

    /// How much earlier to set a timer to be in time even after the slowest recent wake-up.
    fn nap_lead_ns(&self) -> u64 {
        self.late_ns
            .iter()
            .copied()
            .max()
            .map_or(0, |max_ns| max_ns.min(MAX_NAP_LEAD_NS))
    }
}

/// Decides how each wait is spent.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    requested_window_ns: u64,
    /// The idle time that the spin may use, if it is limited.
    idle_time: Option<Arc<IdleTime>>,
    /// The minimum wake-up time.
    lead_ns: u64,
    wake_ups: WakeUps,
    spin_ns: u64,
    rt_budget: RtBudget,
    curtailed: u64,
    /// How long spinning was off for lack of idle time.
    off_ns: u64,
}

impl Pacer {
    /// A pacer that spins for the last `requested_window_ns` before each send.
    pub fn new(requested_window_ns: u64) -> Self {
        Self {
            requested_window_ns,
            idle_time: None,
            lead_ns: 0,
            wake_ups: WakeUps::default(),
            spin_ns: 0,
            rt_budget: RtBudget::unlimited(),
            curtailed: 0,
            off_ns: 0,
        }
    }

    /// The same, but without spinning while idle time is scarce.
    pub fn within(self, idle_time: Option<Arc<IdleTime>>) -> Self {
        Self { idle_time, ..self }
    }

    /// The same, with the RT-throttling debt of a thread of its priority.
    pub fn with_rt_budget(self, rt_budget: RtBudget) -> Self {
        Self { rt_budget, ..self }
    }

    /// Makes the calling thread a real-time thread if its budget is one for real-time threads.
    pub fn take_priority(&mut self) {
        self.rt_budget.take_priority();
    }

    /// How long before a send it currently spins.
    fn window_ns(&self) -> u64 {
        if self.is_off() {
            0
        } else {
            self.requested_window_ns
        }
    }

    fn is_off(&self) -> bool {
        self.idle_time.as_ref().is_some_and(|idle| idle.is_scarce())
    }

    /// How long to sleep at most at `now_ns`, with a send due at `due_ns` and other work at
    /// `other_ns`; 0 means not to sleep, because the send is near.
    pub fn sleep_ns(&mut self, now_ns: u64, due_ns: u64, other_ns: u64) -> u64 {
        let until_ns = |window_ns| {
            due_ns
                .saturating_sub(window_ns)
                .min(other_ns)
                .saturating_sub(now_ns)
                .min(SLICE_NS)
        };
        let sleep_ns = until_ns(self.window_ns() + self.lead_ns);
        self.rt_budget
            .change_priority(sleep_ns >= MIN_NAP_NS && due_ns != u64::MAX);
        if sleep_ns > 0 || !self.rt_budget.should_sleep() {
            return sleep_ns;
        }

        let nap_ns = until_ns(self.wake_ups.nap_lead_ns());
        let taken_ns = match (nap_ns >= MIN_NAP_NS, self.rt_budget.must_sleep()) {
            (true, _) => nap_ns,
            (false, true) => until_ns(0),
            (false, false) => 0,
        };
        self.curtailed += u64::from(self.window_ns() > 0 && taken_ns > 0);

        taken_ns
    }

    /// Records that a sleep ended without an event, this much later than planned.
    pub fn woke(&mut self, late_ns: u64) {
        self.wake_ups.note(late_ns);
        self.lead_ns = self.wake_ups.lead_ns();
    }

    /// Records a poll of the sockets from `before_ns` to `after_ns` without an event.
    pub fn spun(&mut self, before_ns: u64, after_ns: u64) {
        self.spin_ns += (after_ns - before_ns).min(MAX_POLL_NS);
    }

    /// Records how an interval was spent.
    pub fn passed(&mut self, busy_ns: u64, slept_ns: u64) {
        self.off_ns += if self.is_off() { busy_ns + slept_ns } else { 0 };
        self.rt_budget.passed(busy_ns, slept_ns);
    }

    /// Whether the CPU time of the next sleep must be measured, with a send due at `due_ns`. It
    /// matters if there may be too little sleep, not if a thread only waits for sockets and sleeps
    /// whenever there is nothing to do.
    pub fn counts_sleep(&self, due_ns: u64) -> bool {
        due_ns != u64::MAX && self.rt_budget.counts_sleep()
    }

    /// How long the thread was busy after giving up its real-time priority; `None` if it never has
    /// to, or is not permitted to.
    pub fn sched_other_ns(&self) -> Option<u64> {
        self.rt_budget.sched_other_ns()
    }

    /// Time spent polling without an event: CPU time spent only on precision.
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    /// How long the spin was off because idle time was scarce; `None` without a sample of idle
    /// time.
    pub fn off_ns(&self) -> Option<u64> {
        self.idle_time
            .as_ref()
            .is_some_and(|idle| idle.has_sample())
            .then_some(self.off_ns)
    }

    /// How often a spin was shortened so that the thread slept at all.
    pub fn curtailed(&self) -> u64 {
        self.curtailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::rt_budget::{BUDGET_NS, MIN_REST_SHARE};

    #[test]
    fn a_thread_does_not_sleep_in_the_window_before_a_send() {
        let mut pacer = Pacer::new(60_000);
        assert_eq!(pacer.sleep_ns(0, 1_000_000, u64::MAX), 940_000);
        assert_eq!(pacer.sleep_ns(940_000, 1_000_000, u64::MAX), 0);
        assert_eq!(pacer.sleep_ns(2_000_000, 1_000_000, u64::MAX), 0);
        assert_eq!(pacer.sleep_ns(0, 1_000_000, 10), 10);
        assert_eq!(
            pacer.sleep_ns(0, u64::MAX, u64::MAX),
            SLICE_NS,
            "a stop has to be noticed"
        );
        assert_eq!(Pacer::new(0).sleep_ns(0, 1_000, u64::MAX), 1_000);
    }

    #[test]
    fn a_sleep_is_shortened_by_the_minimum_wake_up_delay() {
        let mut pacer = Pacer::new(0);
        for _ in 0..WAKE_UPS - 1 {
            pacer.woke(9_000);
            assert_eq!(
                pacer.sleep_ns(0, 1_000_000, u64::MAX),
                1_000_000,
                "too few wake-ups"
            );
        }
        pacer.woke(7_000);
        assert_eq!(pacer.sleep_ns(0, 1_000_000, u64::MAX), 993_000);
        assert_eq!(
            pacer.sleep_ns(994_000, 1_000_000, u64::MAX),
            0,
            "sleeping again would take longer"
        );
        pacer.woke(2_000);
        assert_eq!(
            pacer.sleep_ns(0, 1_000_000, u64::MAX),
            998_000,
            "one quick wake-up is enough"
        );
        (0..WAKE_UPS).for_each(|_| pacer.woke(300_000));
        assert_eq!(
            pacer.sleep_ns(0, 1_000_000, u64::MAX),
            1_000_000 - MAX_LEAD_NS
        );

        let mut spinning = Pacer::new(60_000);
        (0..WAKE_UPS).for_each(|_| spinning.woke(9_000));
        assert_eq!(
            spinning.sleep_ns(0, 1_000_000, u64::MAX),
            931_000,
            "awake when its window begins"
        );
    }

    #[test]
    fn a_thread_does_not_spin_while_the_cores_have_no_idle_time() {
        let idle_time = Arc::new(IdleTime::new(MAX_SPIN_SHARE));
        let mut pacer = Pacer::new(60_000).within(Some(Arc::clone(&idle_time)));

        assert_eq!(pacer.off_ns(), None);

        for (idle_cores, sleep_ns) in [(0.5, 940_000), (0.01, 1_000_000), (0.5, 940_000)] {
            idle_time.note(idle_cores);
            assert_eq!(pacer.sleep_ns(0, 1_000_000, u64::MAX), sleep_ns);
            pacer.passed(60_000, sleep_ns);
        }

        assert_eq!(pacer.off_ns(), Some(1_060_000));
    }

    #[test]
    fn an_interrupted_poll_counts_as_a_short_one() {
        let mut pacer = Pacer::new(1);
        pacer.spun(0, 400);
        pacer.spun(0, 5_000_000);
        assert_eq!(pacer.spin_ns(), 400 + MAX_POLL_NS);
    }

    /// Spins throughout, with a send every 50 µs for a second: returns the share of time that it
    /// slept.
    fn slept_share(pacer: &mut Pacer) -> f64 {
        let (mut now_ns, mut slept_ns) = (0, 0);
        for send in 1..=20_000 {
            let due_ns = send * 50_000;
            while now_ns < due_ns {
                let sleep_ns = pacer.sleep_ns(now_ns, due_ns, u64::MAX);
                let step_ns = if sleep_ns > 0 {
                    sleep_ns
                } else {
                    500.min(due_ns - now_ns)
                };
                pacer.passed(if sleep_ns > 0 { 0 } else { step_ns }, sleep_ns);
                slept_ns += sleep_ns;
                now_ns += step_ns;
            }
        }

        slept_ns as f64 / now_ns as f64
    }

    #[test]
    fn a_real_time_thread_that_only_spins_sleeps_before_it_is_throttled() {
        let mut pacer = Pacer::new(60_000).with_rt_budget(RtBudget::sleeping());
        let share = slept_share(&mut pacer);
        assert!((share - MIN_REST_SHARE).abs() < 0.01, "{share}");
        assert!(pacer.curtailed() > 1_000, "{}", pacer.curtailed());
    }

    #[test]
    fn a_sched_other_thread_may_spin_throughout() {
        let mut pacer = Pacer::new(60_000);
        assert_eq!((slept_share(&mut pacer), pacer.curtailed()), (0.0, 0));
        assert!(!pacer.counts_sleep(1));
    }

    #[test]
    fn a_thread_in_debt_naps_if_the_send_is_far_enough_away() {
        let mut pacer = Pacer::new(60_000).with_rt_budget(RtBudget::sleeping());
        (0..WAKE_UPS as u64).for_each(|late_us| pacer.woke((5 + late_us) * 1_000));
        pacer.passed(BUDGET_NS / 8, 0);
        assert_eq!(
            pacer.sleep_ns(0, 40_000, u64::MAX),
            0,
            "a short burst may spin throughout"
        );
        pacer.passed(BUDGET_NS / 4, 0);
        assert_eq!(
            pacer.sleep_ns(0, 40_000, u64::MAX),
            20_000,
            "awake before the send, even after the slowest wake-up so far"
        );
        assert_eq!(
            pacer.sleep_ns(0, 24_000, u64::MAX),
            0,
            "too short to be worth it"
        );
        pacer.passed(BUDGET_NS, 0);
        assert_eq!(pacer.sleep_ns(0, 40_000, u64::MAX), 20_000);
        assert_eq!(
            pacer.sleep_ns(0, 24_000, u64::MAX),
            24_000,
            "late rather than throttled"
        );
        assert_eq!(pacer.curtailed(), 3);

        (0..WAKE_UPS).for_each(|_| pacer.woke(300_000));
        assert_eq!(
            pacer.sleep_ns(0, 40_000, u64::MAX),
            40_000 - MAX_NAP_LEAD_NS
        );
    }

    #[test]
    fn the_cpu_time_of_a_sleep_is_measured_only_before_a_send_and_after_little_sleep() {
        for requested_window_ns in [0, 60_000] {
            let mut pacer = Pacer::new(requested_window_ns).with_rt_budget(RtBudget::sleeping());
            pacer.passed(BUDGET_NS / 16, 0);
            assert!(!pacer.counts_sleep(1), "a short burst");
            pacer.passed(BUDGET_NS / 8, 0);
            assert!(pacer.counts_sleep(1));
            assert!(!pacer.counts_sleep(u64::MAX), "it only waits for responses");
            pacer.passed(0, NS_PER_MS);
            assert!(!pacer.counts_sleep(1), "it has slept");
        }
    }

    #[test]
    fn the_spin_is_off_if_it_would_use_a_whole_core_or_take_cpu_time_from_the_server() {
        let decide = |rate, has_spare_core| {
            let spin = Spin::decide(None, rate, has_spare_core);
            (spin.window_ns, spin.reason)
        };
        assert_eq!(
            decide(Some(1_000.0), true),
            (DEFAULT_SPIN_WINDOW_NS, SpinReason::Automatic)
        );
        assert_eq!(decide(Some(20_000.0), true), (0, SpinReason::OffAtThisRate));
        assert_eq!(decide(None, true), (0, SpinReason::OffAtThisRate));
        assert_eq!(
            decide(Some(1_000.0), false),
            (0, SpinReason::OffOnSharedCores)
        );

        let requested = Spin::decide(Some(7), Some(20_000.0), false);
        assert_eq!(
            (requested.window_ns, requested.reason),
            (7, SpinReason::UserSet)
        );
    }
}
