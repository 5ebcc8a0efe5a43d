//! The part of the scenarios that a run covers.

use std::io::Write as _;

/// Number of parts, each of which takes about a minute on two cores.
const SHARES: u64 = 12;

/// A seed that chooses the part, so that a failure can be repeated; `make` derives it from the
/// commit.
const VARIABLE: &str = "WSGILOAD_TEST_SEED";

/// One of the parts into which the scenarios are divided.
#[derive(Clone, Copy)]
pub struct Share(u64);

impl Share {
    /// The share that the environment variable chooses; without it, the first.
    pub fn chosen() -> Self {
        let seed: u64 = std::env::var(VARIABLE).map_or(0, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{VARIABLE}={text}: not a number"))
        });
        let share = Self(seed % SHARES);
        print_line(&format!(
            "share {} of {SHARES}, chosen by {VARIABLE}={seed}; make test-long runs all",
            share.0 + 1
        ));
        share
    }

    /// Every twelfth scenario. Similar scenarios are neighbors, so they are in different shares.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let (first, spacing) = (self.0 as usize, SHARES as usize);
        all.into_iter().skip(first).step_by(spacing).collect()
    }
}

/// Prints to stderr. The test harness would capture the output of a printing macro.
pub fn print_line(text: &str) {
    // Errors are ignored, because they could not be reported.
    let _ = writeln!(std::io::stderr(), "hostile servers: {text}");
}

#[test]
fn the_shares_together_contain_every_scenario_once() {
    let mut covered: Vec<usize> = (0..SHARES)
        .flat_map(|share| Share(share).of((0..75).collect()))
        .collect();
    covered.sort_unstable();

    assert_eq!(covered, (0..75).collect::<Vec<_>>());
}
