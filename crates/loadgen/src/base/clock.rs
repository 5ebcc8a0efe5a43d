//! The clock of all timestamps: `CLOCK_MONOTONIC`, in integer nanoseconds.
//!
//! The clock is read directly, not through `std::time::Instant`, because timestamps must be
//! comparable with those of other processes on this host (resource samples, a server's own log).

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds per second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds per millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * NS_PER_S + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// `CLOCK_MONOTONIC` now, in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// `CLOCK_REALTIME` now, in nanoseconds since the Unix epoch. For the anchor in a report's header,
/// and to convert kernel timestamps.
#[must_use]
pub fn realtime_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}
