//! Keeps a real-time thread within its CPU budget: the kernel reserves a twentieth of each second
//! for SCHED_OTHER threads, and throttles real-time threads for tens of milliseconds if they leave
//! less (RT throttling).

use crate::base::clock::{NS_PER_MS, monotonic_ns, thread_cpu_ns};
use crate::pacing::priority::RealTime;

/// Share of time in which a real-time thread must rest: sleep, or run as SCHED_OTHER. Slightly more
/// than the kernel requires.
pub(crate) const MIN_REST_SHARE: f64 = 0.07;

/// The share is kept over this period, so that a short burst need not rest at all.
pub(crate) const BUDGET_NS: u64 = 20 * NS_PER_MS;

/// A thread with more RT-throttling debt than this must rest.
const MAX_DEBT_NS: f64 = BUDGET_NS as f64 * MIN_REST_SHARE;

/// A thread with more debt than this rests if that delays no send.
const EARLY_REST_DEBT_NS: f64 = MAX_DEBT_NS / 4.0;

/// How often a thread that may give up its priority checks its CPU time.
const CHECK_NS: u64 = 200_000;

/// At most this much of a sleep counts towards the next check: a thread that sleeps long has rested
/// anyway.
const MAX_SLEPT_NS: u64 = 20_000;

/// How a thread reduces its RT-throttling debt.
#[derive(Clone, Copy, Debug)]
enum RestMode {
    /// A SCHED_OTHER thread has no debt: the kernel shares the core fairly.
    Never,
    /// It gives up its real-time priority for a while and continues.
    SchedOther(RealTime),
    /// It may not take its priority back, so it sleeps.
    Sleep,
}

/// Wall and CPU time of the calling thread at one point in time.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Clocks {
    fn read() -> Self {
        Self {
            wall_ns: monotonic_ns(),
            cpu_ns: thread_cpu_ns(),
        }
    }
}

/// The RT-throttling debt of a thread, and how it rests.
#[derive(Clone, Debug)]
pub(crate) struct RtBudget {
    mode: RestMode,
    /// RT-throttling debt; CPU time at real-time priority increases it.
    debt_ns: f64,
    has_given_up_priority: bool,
    sched_other_ns: u64,
    read_clocks: fn() -> Clocks,
    last_check: Option<Clocks>,
    /// Time passed since.
    unchecked_ns: u64,
}

impl RtBudget {
    /// For the generator threads that the calling thread starts: with the inherited real-time
    /// priority, or else with a new one if `may_raise_priority`.
    pub fn for_generator_threads(may_raise_priority: bool) -> Self {
        if let Some(inherited) = RealTime::of_this_thread() {
            return Self::with_mode(
                inherited
                    .with_permitted_fallback()
                    .map_or(RestMode::Sleep, RestMode::SchedOther),
            );
        }

        // Only if it can be given up for a while: other processes must not be blocked.
        let real_time = may_raise_priority
            .then(RealTime::of_threads_to_start)
            .flatten()
            .and_then(RealTime::with_permitted_fallback);
        Self::with_mode(real_time.map_or(RestMode::Never, RestMode::SchedOther))
    }

    /// For a SCHED_OTHER thread.
    pub fn unlimited() -> Self {
        Self::with_mode(RestMode::Never)
    }

    /// For a real-time thread that is not permitted to take its priority back.
    #[cfg(test)]
    pub fn sleeping() -> Self {
        Self::with_mode(RestMode::Sleep)
    }

    fn with_mode(mode: RestMode) -> Self {
        let read_clocks = Clocks::read;
        Self {
            mode,
            debt_ns: 0.0,
            has_given_up_priority: false,
            sched_other_ns: 0,
            read_clocks,
            last_check: None,
            unchecked_ns: 0,
        }
    }

    /// Gives the calling thread real-time priority if it should have it and did not inherit it.
    /// Other threads of the process are not affected.
    pub fn take_priority(&mut self) {
        if let RestMode::SchedOther(real_time) = self.mode
            && RealTime::of_this_thread().is_none()
            && real_time.take_back().is_err()
        {
            self.mode = RestMode::Never;
        }
    }

    /// Gives up the calling thread's priority if its debt is large enough, and takes it back when
    /// the debt is repaid. A thread about to sleep until a send keeps its priority: the sleep
    /// repays the debt, and a real-time thread wakes up sooner.
    pub fn change_priority(&mut self, is_about_to_sleep: bool) {
        let RestMode::SchedOther(real_time) = self.mode else {
            return;
        };
        if self.has_given_up_priority && (self.debt_ns <= 0.0 || is_about_to_sleep) {
            self.check();
            // If the kernel now refuses what it permitted before the start, the thread stays
            // SCHED_OTHER and tries again.
            self.has_given_up_priority = real_time.take_back().is_err();
        } else if !self.has_given_up_priority
            && self.debt_ns > EARLY_REST_DEBT_NS
            && !is_about_to_sleep
        {
            self.check();
            // Every thread may become SCHED_OTHER; an error can only concern the niceness.
            let _ = real_time.give_up();
            self.has_given_up_priority = true;
        }
    }

    /// Whether it should sleep if that delays no send.
    pub fn should_sleep(&self) -> bool {
        matches!(self.mode, RestMode::Sleep) && self.debt_ns > EARLY_REST_DEBT_NS
    }

    /// Whether it must sleep, even if that delays a send.
    pub fn must_sleep(&self) -> bool {
        matches!(self.mode, RestMode::Sleep) && self.debt_ns > MAX_DEBT_NS
    }

    /// Records how an interval was spent, as far as known without checking CPU time.
    pub fn passed(&mut self, busy_ns: u64, slept_ns: u64) {
        match self.mode {
            RestMode::Never => {}
            RestMode::Sleep => self.spent(busy_ns, slept_ns),
            RestMode::SchedOther(_) => {
                self.unchecked_ns += busy_ns + slept_ns.min(MAX_SLEPT_NS);
                if self.unchecked_ns >= CHECK_NS {
                    self.check();
                }
            }
        }
    }

    /// Checks the kernel's CPU time since the last check. A wait is not always sleep: it may return
    /// at once, and falling asleep and waking up take CPU time.
    fn check(&mut self) {
        let now = (self.read_clocks)();
        if let Some(before) = self.last_check.replace(now) {
            let busy_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            self.spent(
                busy_ns,
                now.wall_ns
                    .saturating_sub(before.wall_ns)
                    .saturating_sub(busy_ns),
            );
        }

        self.unchecked_ns = 0;
    }

    fn spent(&mut self, busy_ns: u64, slept_ns: u64) {
        let worked_ns = if self.has_given_up_priority {
            self.sched_other_ns += busy_ns;
            -(busy_ns as f64)
        } else {
            busy_ns as f64 * MIN_REST_SHARE / (1.0 - MIN_REST_SHARE)
        };
        // Excess rest is a credit, because a rest lasts at least one turn of the loop.
        let debt_ns = (self.debt_ns + worked_ns).max(-(BUDGET_NS as f64));
        // A long sleep gives no credit, because the kernel gives none.
        self.debt_ns = (debt_ns - slept_ns as f64).max(debt_ns.min(0.0));
    }

    /// Whether the CPU time of the next sleep must be measured. Falling asleep and waking up use
    /// CPU time, on some virtual machines 20 µs, and the kernel counts only the remainder as sleep.
    pub fn counts_sleep(&self) -> bool {
        matches!(self.mode, RestMode::Sleep) && self.debt_ns > EARLY_REST_DEBT_NS / 2.0
    }

    /// How long it was busy as SCHED_OTHER; `None` for a thread that never changes its policy.
    pub fn sched_other_ns(&self) -> Option<u64> {
        matches!(self.mode, RestMode::SchedOther(_)).then_some(self.sched_other_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    use super::*;

    #[test]
    fn a_sched_other_thread_has_no_debt() {
        let mut budget = RtBudget::for_generator_threads(false);
        budget.passed(100 * BUDGET_NS, 0);
        budget.change_priority(false);
        assert!(!budget.should_sleep() && !budget.must_sleep() && !budget.counts_sleep());
        assert_eq!(budget.sched_other_ns(), None);
    }

    #[test]
    fn without_permission_to_take_priority_back_the_thread_must_sleep() {
        let mut budget = RtBudget::sleeping();
        budget.passed(BUDGET_NS / 8, 0);

        assert!(!budget.should_sleep());

        budget.passed(BUDGET_NS / 4, 0);
        assert!(budget.should_sleep() && !budget.must_sleep());

        budget.passed(BUDGET_NS, 0);
        assert!(budget.must_sleep());

        budget.passed(0, 2 * BUDGET_NS);
        budget.passed(BUDGET_NS / 8, 0);

        assert!(!budget.should_sleep(), "a long sleep");
        assert_eq!(budget.sched_other_ns(), None);
    }

    /// Policy and niceness of the calling thread, according to the kernel.
    fn scheduled() -> (u32, i32) {
        let text = fs::read_to_string("/proc/thread-self/stat").expect("proc");
        let fields: Vec<&str> = text
            .rsplit_once(')')
            .expect("a name")
            .1
            .split_ascii_whitespace()
            .collect();
        (
            fields[38].parse().expect("policy"),
            fields[16].parse().expect("niceness"),
        )
    }

    thread_local! {
        static CLOCKS: Cell<Clocks> = const { Cell::new(Clocks { wall_ns: 0, cpu_ns: 0 }) };
    }

    /// Makes the calling thread a real-time thread with stopped clocks; `None` if that is not
    /// permitted.
    fn real_time_budget() -> Option<RtBudget> {
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        let priority = ThreadPriority::Crossplatform(3.try_into().expect("a priority"));
        set_thread_priority_and_policy(thread_native_id(), priority, policy).ok()?;
        let budget = RtBudget {
            read_clocks: || CLOCKS.get(),
            ..RtBudget::for_generator_threads(false)
        };

        matches!(budget.mode, RestMode::SchedOther(_)).then_some(budget)
    }

    /// An interval in which the thread believes it slept for `slept_ns`.
    fn pass(budget: &mut RtBudget, [wall_ns, cpu_ns, slept_ns]: [u64; 3]) {
        let before = CLOCKS.get();
        CLOCKS.set(Clocks {
            wall_ns: before.wall_ns + wall_ns,
            cpu_ns: before.cpu_ns + cpu_ns,
        });
        budget.passed(wall_ns - slept_ns, slept_ns);
    }

    /// The share of time in which it is SCHED_OTHER, over this many such intervals.
    fn sched_other_share(interval: [u64; 3], intervals: u64) -> Option<f64> {
        let mut budget = real_time_budget()?;
        let mut sched_other = 0;

        for _ in 0..intervals {
            budget.change_priority(false);
            assert!(!budget.should_sleep() && !budget.must_sleep() && !budget.counts_sleep());
            let (policy, niceness) = scheduled();
            assert!(
                (policy, niceness) == (0, -10) || policy == 2,
                "round robin: {policy}"
            );
            sched_other += u64::from(policy == 0);
            pass(&mut budget, interval);
        }

        budget.check();
        let reported_ns = budget.sched_other_ns().expect("it was one");

        assert!(
            reported_ns.abs_diff(sched_other * interval[1]) <= CHECK_NS + interval[1],
            "{reported_ns} {sched_other}"
        );

        Some(sched_other as f64 / intervals as f64)
    }

    #[test]
    fn a_busy_real_time_thread_is_sched_other_for_its_share_of_the_time() {
        let looks_like_sleep = [10_000, 10_000, 7_000];
        for interval in [
            [10_000, 10_000, 0],
            looks_like_sleep,
            [1_000_000, 1_000_000, 0],
            [2_500_000, 2_500_000, 0],
        ] {
            let Some(share) = sched_other_share(interval, 20_000) else {
                return;
            };
            assert!(
                (share - MIN_REST_SHARE).abs() < 0.005,
                "{interval:?}: {share}"
            );
        }
    }

    #[test]
    fn a_real_time_thread_that_sleeps_enough_keeps_its_priority() {
        for interval in [[100_000, 92_000, 8_000], [5_000_000, 40_000, 4_960_000]] {
            let Some(share) = sched_other_share(interval, 2_000) else {
                return;
            };
            assert_eq!(share, 0.0, "{interval:?}");
        }
    }

    #[test]
    fn a_thread_takes_its_priority_back_before_and_after_a_sleep() {
        let Some(mut budget) = real_time_budget() else {
            return;
        };

        budget.check();
        pass(&mut budget, [BUDGET_NS, BUDGET_NS, 0]);

        for (is_about_to_sleep, policy) in [(true, 2), (false, 0), (true, 2), (false, 0)] {
            budget.change_priority(is_about_to_sleep);
            assert_eq!(scheduled().0, policy);
        }

        pass(&mut budget, [BUDGET_NS, 0, BUDGET_NS]);
        budget.check();
        budget.change_priority(false);

        assert_eq!(scheduled().0, 2, "it has slept");
    }
}
