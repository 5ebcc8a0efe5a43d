//! The method's acceptance tests in full size, and tests that need more than one load.
//!
//! The letters F1 to F22 and the tiers P (per request), V (same requests, both ends) and T
//! (queueing theory) are those of `docs/method.md`. Tests that take a minute are ignored in the
//! usual run and are run by `make test-long`, one at a time; `WSGILOAD_TEST_SECONDS` makes each of
//! their loads shorter or longer than [`DEFAULT_SECONDS`].

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

#[path = "../instrument/support.rs"]
#[expect(dead_code, reason = "shared with the short tests, which use the rest")]
mod support;

mod arrivals;
mod blame;
mod child;
mod conservation;
mod endurance;
mod full_size;
mod histograms;
mod intervals;
mod late_reader;
mod own_core;
mod pathwise;
mod queues;
mod real_time;
mod sleepers;
mod stationarity;
mod statistics;
mod stop_rule;

use support::SECOND;

const DEFAULT_SECONDS: u64 = 60;

/// Length of the load of a long test.
fn long_ns() -> u64 {
    seconds_from("WSGILOAD_TEST_SECONDS", DEFAULT_SECONDS) * SECOND
}

/// A number of seconds from the environment.
fn seconds_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().expect(variable))
        .max(1)
}
