//! How a real-time thread keeps within its time: the kernel keeps a twentieth of each second for ordinary threads, and stops
//! by force, for tens of milliseconds, who leaves them less.

use crate::clock::NS_PER_MS;
use crate::real_time::RealTime;

/// Share of the time in which a real-time thread has to rest: to sleep, or to be an ordinary thread. A little more than
/// the kernel asks for.
pub(crate) const LEAST_REST_SHARE: f64 = 0.07;

/// The share is kept over this long, so that a short burst need not rest at all.
pub(crate) const BUDGET_NS: u64 = 20 * NS_PER_MS;

/// Who owes more rest than this has to take it.
const MOST_OWED_NS: f64 = BUDGET_NS as f64 * LEAST_REST_SHARE;

/// Who owes more than this takes it where it makes no send late.
const WORTHWHILE_NS: f64 = MOST_OWED_NS / 4.0;

/// How a thread rests.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// An ordinary thread need not: the kernel shares the core out as it goes.
    NotAtAll,
    /// It gives its priority up for a while and goes on.
    AsOrdinary(RealTime),
    /// It may not take its priority back, so it sleeps.
    Asleep,
}

/// What a thread owes of rest, and how it takes it.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    way: Way,
    /// How much of what is due has not been taken yet; being busy adds to it.
    owed_ns: f64,
    is_ordinary: bool,
    as_ordinary_ns: u64,
}

impl Rest {
    /// As threads have to that inherit the calling thread's priority.
    pub fn for_heirs() -> Self {
        Self::by(match RealTime::of_this_thread() {
            None => Way::NotAtAll,
            Some(real_time) if real_time.can_be_taken_back() => Way::AsOrdinary(real_time),
            Some(_) => Way::Asleep,
        })
    }

    /// For an ordinary thread.
    pub fn not_at_all() -> Self {
        Self::by(Way::NotAtAll)
    }

    /// For a real-time thread that may not take its priority back.
    #[cfg(test)]
    pub fn asleep() -> Self {
        Self::by(Way::Asleep)
    }

    fn by(way: Way) -> Self {
        Self { way, owed_ns: 0.0, is_ordinary: false, as_ordinary_ns: 0 }
    }

    /// Gives the calling thread's priority up where that is worth while, and takes it back when it has rested. Who is about
    /// to sleep until a send rests by that, and wakes up sooner as a real-time thread.
    pub fn change_priority(&mut self, is_about_to_sleep: bool) {
        let Way::AsOrdinary(real_time) = self.way else { return };
        // Who is refused what was permitted before the start stays what it is, and tries again.
        self.is_ordinary = if self.is_ordinary {
            (self.owed_ns > 0.0 && !is_about_to_sleep) || real_time.take_back().is_err()
        } else {
            self.owed_ns > WORTHWHILE_NS && !is_about_to_sleep && real_time.give_up().is_ok()
        };
    }

    /// Whether it should sleep if no send is late by it.
    pub fn should_sleep(&self) -> bool {
        matches!(self.way, Way::Asleep) && self.owed_ns > WORTHWHILE_NS
    }

    /// Whether it has to sleep, whoever waits.
    pub fn must_sleep(&self) -> bool {
        matches!(self.way, Way::Asleep) && self.owed_ns > MOST_OWED_NS
    }

    /// Notes how a stretch of time was spent.
    pub fn passed(&mut self, busy_ns: u64, slept_ns: u64) {
        if matches!(self.way, Way::NotAtAll) {
            return;
        }
        self.as_ordinary_ns += if self.is_ordinary { busy_ns } else { 0 };
        let added_ns = if self.is_ordinary {
            -(busy_ns as f64)
        } else {
            busy_ns as f64 * LEAST_REST_SHARE / (1.0 - LEAST_REST_SHARE)
        };
        // A long sleep is no credit for later: the kernel does not count it as one.
        self.owed_ns = (self.owed_ns + added_ns - slept_ns as f64).max(0.0);
    }

    /// Whether the CPU time of the next sleep has to be counted. Going to sleep and waking up take some, on some virtual
    /// machines 20 µs, and what the kernel takes for sleep is what is left.
    pub fn counts_sleep(&self) -> bool {
        self.owed_ns > WORTHWHILE_NS / 2.0
    }

    /// For how long it was busy as an ordinary thread; `None` for one that always is, or never.
    pub fn as_ordinary_ns(&self) -> Option<u64> {
        matches!(self.way, Way::AsOrdinary(_)).then_some(self.as_ordinary_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };

    use super::*;

    #[test]
    fn an_ordinary_thread_owes_no_rest() {
        let mut rest = Rest::for_heirs();
        rest.passed(100 * BUDGET_NS, 0);
        rest.change_priority(false);
        assert!(!rest.should_sleep() && !rest.must_sleep() && !rest.counts_sleep());
        assert_eq!(rest.as_ordinary_ns(), None);
    }

    #[test]
    fn who_may_not_take_its_priority_back_owes_sleep() {
        let mut rest = Rest::asleep();
        rest.passed(BUDGET_NS / 8, 0);
        assert!(!rest.should_sleep());
        rest.passed(BUDGET_NS / 4, 0);
        assert!(rest.should_sleep() && !rest.must_sleep());
        rest.passed(BUDGET_NS, 0);
        assert!(rest.must_sleep());
        rest.passed(0, 2 * BUDGET_NS);
        rest.passed(BUDGET_NS / 8, 0);
        assert!(!rest.should_sleep(), "a long sleep");
        assert_eq!(rest.as_ordinary_ns(), None);
    }

    /// Policy and niceness of the calling thread, by the kernel.
    fn scheduled() -> (u32, i32) {
        let text = fs::read_to_string("/proc/thread-self/stat").expect("proc");
        let fields: Vec<&str> = text.rsplit_once(')').expect("a name").1.split_ascii_whitespace().collect();
        (fields[38].parse().expect("policy"), fields[16].parse().expect("niceness"))
    }

    #[test]
    fn a_real_time_thread_is_an_ordinary_one_for_its_share_and_then_what_it_was() {
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        let priority = ThreadPriority::Crossplatform(3.try_into().expect("a priority"));
        if set_thread_priority_and_policy(thread_native_id(), priority, policy).is_err() {
            return; // Nobody here can have real-time priority.
        }
        let mut rest = Rest::for_heirs();
        let (mut ordinary_ns, step_ns, steps) = (0, 10_000, 20_000);
        for _ in 0..steps {
            rest.change_priority(false);
            assert!(!rest.must_sleep());
            match scheduled() {
                (0, -10) => ordinary_ns += step_ns,
                (policy, _) => assert_eq!(policy, 2, "round robin"),
            }
            rest.passed(step_ns, 0);
        }
        assert_eq!(rest.as_ordinary_ns(), Some(ordinary_ns));
        let share = ordinary_ns as f64 / (steps * step_ns) as f64;
        assert!((share - LEAST_REST_SHARE).abs() < 0.005, "{share}");

        rest.passed(BUDGET_NS, 0);
        for (is_about_to_sleep, policy) in [(true, 2), (false, 0), (true, 2), (false, 0)] {
            rest.change_priority(is_about_to_sleep);
            assert_eq!(scheduled().0, policy);
        }
        rest.passed(0, BUDGET_NS);
        rest.change_priority(false);
        assert_eq!(scheduled().0, 2, "it has slept");
    }
}
