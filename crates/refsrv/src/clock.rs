//! The server's only clock: `CLOCK_MONOTONIC` in nanoseconds, as the load generator reads it.
//!
//! `std::time::Instant` reads the same clock but hides the number, which log entries and a client's
//! timestamps must share.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds per second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// Two readings of one clock at most this far apart are accepted at once: only the reading of the
/// other clock fits between them.
const CLOSE_READING_NS: u64 = 1_000;

/// Readings further apart are rejected: something interrupted them, such as another program.
const MAX_READING_NS: u64 = 5_000;

/// Attempts to read both clocks closely together.
const MAX_READINGS: usize = 10;

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn now_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// How far `CLOCK_REALTIME` is ahead, in nanoseconds, usually accurate to a tenth of a microsecond;
/// `None` on a core too busy to read both clocks together, or if the wall clock is behind the time
/// since boot.
pub(crate) fn realtime_ahead_ns() -> Option<u64> {
    let mut closest: Option<(u64, u64, u64)> = None;
    for _ in 0..MAX_READINGS {
        let before_ns = now_ns();
        let realtime_ns = to_ns(clock_gettime(ClockId::Realtime));
        let between_ns = now_ns() - before_ns;
        if closest.is_none_or(|(min_ns, ..)| between_ns < min_ns) {
            closest = Some((between_ns, before_ns, realtime_ns));
        }
        if between_ns <= CLOSE_READING_NS {
            break;
        }
    }

    let (between_ns, before_ns, realtime_ns) =
        closest.filter(|(between_ns, ..)| *between_ns <= MAX_READING_NS)?;
    realtime_ns.checked_sub(before_ns + between_ns / 2)
}

/// Uses `cpu_ns` of this thread's CPU time, however long that takes in wall time.
///
/// Measured in CPU time so that a CPU quota stretches it, as it stretches real work.
pub fn burn_cpu(cpu_ns: u64) {
    if cpu_ns == 0 {
        return;
    }
    let end = thread_cpu_ns().saturating_add(cpu_ns);
    while thread_cpu_ns() < end {
        std::hint::spin_loop();
    }
}

/// Splits nanoseconds into the kernel's seconds and nanoseconds.
pub(crate) fn to_timespec(ns: u64) -> Timespec {
    // Both parts fit: u64::MAX ns is 585 years, and the remainder is below 1e9.
    Timespec {
        tv_sec: i64::try_from(ns / NS_PER_S).unwrap_or(i64::MAX),
        tv_nsec: (ns % NS_PER_S) as _,
    }
}

fn thread_cpu_ns() -> u64 {
    to_ns(clock_gettime(ClockId::ThreadCPUTime))
}

fn to_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * NS_PER_S + nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards() {
        let mut last = now_ns();
        for _ in 0..10_000 {
            let now = now_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn burning_cpu_takes_at_least_the_requested_time() {
        let begin = now_ns();
        burn_cpu(3_000_000);
        assert!(now_ns() - begin >= 3_000_000);
    }

    #[test]
    fn a_timespec_keeps_every_nanosecond() {
        let ns = 12_345_678_901_234;
        assert_eq!(to_ns(to_timespec(ns)), ns);
    }
}
