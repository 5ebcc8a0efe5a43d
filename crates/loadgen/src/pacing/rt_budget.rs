//! How a real-time thread keeps within its time: the kernel keeps a twentieth of each second for
//! ordinary threads, and stops by force, for tens of milliseconds, who leaves them less.

use crate::base::clock::{NS_PER_MS, monotonic_ns, thread_cpu_ns};
use crate::pacing::priority::RealTime;

/// Share of the time in which a real-time thread has to rest: to sleep, or to be an ordinary
/// thread. A little more than the kernel asks for.
pub(crate) const LEAST_REST_SHARE: f64 = 0.07;

/// The share is kept over this long, so that a short burst need not rest at all.
pub(crate) const BUDGET_NS: u64 = 20 * NS_PER_MS;

/// Who owes more rest than this has to take it.
const MOST_OWED_NS: f64 = BUDGET_NS as f64 * LEAST_REST_SHARE;

/// Who owes more than this takes it where it makes no send late.
const WORTHWHILE_NS: f64 = MOST_OWED_NS / 4.0;

/// Who may give its priority up looks at its CPU time this often.
const LOOK_NS: u64 = 200_000;

/// Of a sleep no more than this brings the next look nearer: who sleeps long has rested anyway.
const MOST_SLEPT_NS: u64 = 20_000;

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

/// Wall and CPU time of the calling thread at an instant.
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

/// What a thread owes of rest, and how it takes it.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    way: Way,
    /// How much of what is due has not been taken yet; being busy adds to it.
    owed_ns: f64,
    is_ordinary: bool,
    as_ordinary_ns: u64,
    read_clocks: fn() -> Clocks,
    looked: Option<Clocks>,
    /// How much has happened since.
    unlooked_ns: u64,
}

impl Rest {
    /// As threads have to that inherit the calling thread's priority.
    pub fn for_heirs() -> Self {
        Self::by(match RealTime::of_this_thread() {
            None => Way::NotAtAll,
            Some(real_time) => real_time
                .that_can_be_taken_back()
                .map_or(Way::Asleep, Way::AsOrdinary),
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
        let read_clocks = Clocks::read;
        Self {
            way,
            owed_ns: 0.0,
            is_ordinary: false,
            as_ordinary_ns: 0,
            read_clocks,
            looked: None,
            unlooked_ns: 0,
        }
    }

    /// Gives the calling thread's priority up where that is worth while, and takes it back when it
    /// has rested. Who is about to sleep until a send rests by that, and wakes up sooner as a
    /// real-time thread.
    pub fn change_priority(&mut self, is_about_to_sleep: bool) {
        let Way::AsOrdinary(real_time) = self.way else {
            return;
        };
        if self.is_ordinary && (self.owed_ns <= 0.0 || is_about_to_sleep) {
            self.look();
            // Who is refused what was permitted before the start stays an ordinary thread, and
            // tries again.
            self.is_ordinary = real_time.take_back().is_err();
        } else if !self.is_ordinary && self.owed_ns > WORTHWHILE_NS && !is_about_to_sleep {
            self.look();
            // Everyone may become an ordinary thread; an error would be one of the niceness.
            let _ = real_time.give_up();
            self.is_ordinary = true;
        }
    }

    /// Whether it should sleep if no send is late by it.
    pub fn should_sleep(&self) -> bool {
        matches!(self.way, Way::Asleep) && self.owed_ns > WORTHWHILE_NS
    }

    /// Whether it has to sleep, whoever waits.
    pub fn must_sleep(&self) -> bool {
        matches!(self.way, Way::Asleep) && self.owed_ns > MOST_OWED_NS
    }

    /// Notes how a stretch of time was spent, as far as is known without looking at CPU time.
    pub fn passed(&mut self, busy_ns: u64, slept_ns: u64) {
        match self.way {
            Way::NotAtAll => {}
            Way::Asleep => self.spent(busy_ns, slept_ns),
            Way::AsOrdinary(_) => {
                self.unlooked_ns += busy_ns + slept_ns.min(MOST_SLEPT_NS);
                if self.unlooked_ns >= LOOK_NS {
                    self.look();
                }
            }
        }
    }

    /// Looks at the kernel's account of the time since the last look. What looks like sleep may be
    /// none: a wait that found something at once, or what going to sleep and waking up took.
    fn look(&mut self) {
        let now = (self.read_clocks)();
        if let Some(before) = self.looked.replace(now) {
            let busy_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            self.spent(
                busy_ns,
                now.wall_ns
                    .saturating_sub(before.wall_ns)
                    .saturating_sub(busy_ns),
            );
        }
        self.unlooked_ns = 0;
    }

    fn spent(&mut self, busy_ns: u64, slept_ns: u64) {
        let worked_ns = if self.is_ordinary {
            self.as_ordinary_ns += busy_ns;
            -(busy_ns as f64)
        } else {
            busy_ns as f64 * LEAST_REST_SHARE / (1.0 - LEAST_REST_SHARE)
        };
        // More of it than was due is credit, for a rest lasts a turn of the loop at least.
        let owed_ns = (self.owed_ns + worked_ns).max(-(BUDGET_NS as f64));
        // A long sleep is none: the kernel does not count it as one.
        self.owed_ns = (owed_ns - slept_ns as f64).max(owed_ns.min(0.0));
    }

    /// Whether the CPU time of the next sleep has to be counted. Going to sleep and waking up take
    /// some, on some virtual machines 20 µs, and what the kernel takes for sleep is what is left.
    pub fn counts_sleep(&self) -> bool {
        matches!(self.way, Way::Asleep) && self.owed_ns > WORTHWHILE_NS / 2.0
    }

    /// For how long it was busy as an ordinary thread; `None` for one that always is, or never.
    pub fn as_ordinary_ns(&self) -> Option<u64> {
        matches!(self.way, Way::AsOrdinary(_)).then_some(self.as_ordinary_ns)
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

    /// Makes the calling thread a real-time one, whose clocks stand still; `None` where nobody can
    /// be one.
    fn real_time_rest() -> Option<Rest> {
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        let priority = ThreadPriority::Crossplatform(3.try_into().expect("a priority"));
        set_thread_priority_and_policy(thread_native_id(), priority, policy).ok()?;
        let rest = Rest {
            read_clocks: || CLOCKS.get(),
            ..Rest::for_heirs()
        };
        matches!(rest.way, Way::AsOrdinary(_)).then_some(rest)
    }

    /// A stretch of time, of which the thread believes to have slept `slept_ns`.
    fn pass(rest: &mut Rest, [wall_ns, cpu_ns, slept_ns]: [u64; 3]) {
        let before = CLOCKS.get();
        CLOCKS.set(Clocks {
            wall_ns: before.wall_ns + wall_ns,
            cpu_ns: before.cpu_ns + cpu_ns,
        });
        rest.passed(wall_ns - slept_ns, slept_ns);
    }

    /// The share of the time in which it is an ordinary thread, of so many stretches that are like
    /// this.
    fn ordinary_share(stretch: [u64; 3], stretches: u64) -> Option<f64> {
        let mut rest = real_time_rest()?;
        let mut ordinary = 0;
        for _ in 0..stretches {
            rest.change_priority(false);
            assert!(!rest.should_sleep() && !rest.must_sleep() && !rest.counts_sleep());
            let (policy, niceness) = scheduled();
            assert!(
                (policy, niceness) == (0, -10) || policy == 2,
                "round robin: {policy}"
            );
            ordinary += u64::from(policy == 0);
            pass(&mut rest, stretch);
        }
        rest.look();
        let told_ns = rest.as_ordinary_ns().expect("it was one");
        assert!(
            told_ns.abs_diff(ordinary * stretch[1]) <= LOOK_NS + stretch[1],
            "{told_ns} {ordinary}"
        );
        Some(ordinary as f64 / stretches as f64)
    }

    #[test]
    fn a_busy_real_time_thread_is_an_ordinary_one_for_its_share_however_long_its_turns() {
        let looks_like_sleep = [10_000, 10_000, 7_000];
        for stretch in [
            [10_000, 10_000, 0],
            looks_like_sleep,
            [1_000_000, 1_000_000, 0],
            [2_500_000, 2_500_000, 0],
        ] {
            let Some(share) = ordinary_share(stretch, 20_000) else {
                return;
            };
            assert!(
                (share - LEAST_REST_SHARE).abs() < 0.005,
                "{stretch:?}: {share}"
            );
        }
    }

    #[test]
    fn a_real_time_thread_that_sleeps_for_its_share_stays_one() {
        for stretch in [[100_000, 92_000, 8_000], [5_000_000, 40_000, 4_960_000]] {
            let Some(share) = ordinary_share(stretch, 2_000) else {
                return;
            };
            assert_eq!(share, 0.0, "{stretch:?}");
        }
    }

    #[test]
    fn who_gave_its_priority_up_takes_it_back_before_it_sleeps_and_after() {
        let Some(mut rest) = real_time_rest() else {
            return;
        };
        rest.look();
        pass(&mut rest, [BUDGET_NS, BUDGET_NS, 0]);
        for (is_about_to_sleep, policy) in [(true, 2), (false, 0), (true, 2), (false, 0)] {
            rest.change_priority(is_about_to_sleep);
            assert_eq!(scheduled().0, policy);
        }
        pass(&mut rest, [BUDGET_NS, 0, BUDGET_NS]);
        rest.look();
        rest.change_priority(false);
        assert_eq!(scheduled().0, 2, "it has slept");
    }
}
