//! The part of the scenarios that a run covers.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of parts, each of which takes about three minutes on two cores.
const SHARES: usize = 4;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Selects the share, from 1. If unset, the share of the day is run.
const VARIABLE: &str = "WSGILOAD_HOSTILE_SHARE";

/// One of the parts into which the scenarios are divided.
#[derive(Clone, Copy)]
pub struct Share(usize);

impl Share {
    /// The share that the environment variable selects, or the share of the day.
    pub fn chosen() -> Self {
        let share = match std::env::var(VARIABLE) {
            Ok(text) => Self::numbered(&text)
                .unwrap_or_else(|| panic!("{VARIABLE}={text}: set 1 to {SHARES}, or unset it")),
            Err(_) => Self::of_today(),
        };
        let number = share.0 + 1;
        print_line(&format!(
            "share {number} of {SHARES}, selected by {VARIABLE} or the day; make test-long runs all"
        ));

        share
    }

    fn numbered(text: &str) -> Option<Self> {
        let number: usize = text.parse().ok()?;
        (1..=SHARES).contains(&number).then(|| Self(number - 1))
    }

    fn of_today() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let days = since.as_secs() / SECONDS_PER_DAY;
        Self(usize::try_from(days).unwrap() % SHARES)
    }

    /// Every fourth scenario. Similar scenarios are neighbors, so they run on different days.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.0).step_by(SHARES).collect()
    }
}

/// Prints to stderr. The test harness would capture the output of a printing macro.
pub fn print_line(text: &str) {
    // Errors are ignored, because they could not be reported.
    let _ = writeln!(std::io::stderr(), "hostile servers: {text}");
}

#[test]
fn the_shares_together_contain_every_scenario_once() {
    let shares = (1..=SHARES).map(|number| Share::numbered(&number.to_string()).unwrap());
    let mut covered: Vec<usize> = shares
        .flat_map(|share| share.of((0..75).collect()))
        .collect();
    covered.sort_unstable();

    assert_eq!(covered, (0..75).collect::<Vec<_>>());

    for text in ["0", "5", "-1", "", "all"] {
        assert!(Share::numbered(text).is_none(), "{text}");
    }
}
