//! The acceptance tests at full size, and tests that need more than one load.
//!
//! F1 to F22 are the tests in `docs/method.md`. Tests that take a minute are ignored by default;
//! `make test-long` runs them one at a time. `WSGILOAD_TEST_SECONDS` sets the length of their
//! loads, which is [`DEFAULT_SECONDS`] by default.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

#[path = "../instrument/support.rs"]
#[expect(dead_code, reason = "shared with the short tests")]
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
mod processes;
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
