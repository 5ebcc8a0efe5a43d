//! Causes of connect failures, with counts: the outcome alone does not show what to fix.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;
use std::io;

/// Maximum number of distinct causes; a load with more has several problems.
const MAX_CAUSES: usize = 8;

const FURTHER: &str = "further causes";

/// Causes with their counts, over all phases of a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnectFailures(BTreeMap<String, u64>);

impl ConnectFailures {
    /// Notes a failure.
    pub(crate) fn note(&mut self, error: &io::Error) {
        self.add_cause(cause_text(error), 1);
    }

    /// Adds another thread's causes.
    pub(crate) fn add(&mut self, other: &Self) {
        for (cause, count) in &other.0 {
            self.add_cause(cause.clone(), *count);
        }
    }

    /// Causes with their counts.
    pub(crate) fn causes(&self) -> &BTreeMap<String, u64> {
        &self.0
    }

    fn add_cause(&mut self, cause: String, count: u64) {
        let is_kept = self.0.len() < MAX_CAUSES || self.0.contains_key(&cause);
        *self
            .0
            .entry(if is_kept { cause } else { FURTHER.to_owned() })
            .or_default() += count;
    }
}

fn cause_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            format!("{error}: no free local port; add addresses with --source-addresses")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_counted_and_their_number_is_bounded() {
        let mut failures = ConnectFailures::default();
        for number in 0..20 {
            failures.note(&io::Error::other(format!("cause {number}")));
            failures.note(&io::Error::other("cause 0"));
        }

        let mut whole = failures.clone();
        whole.add(&failures);

        assert_eq!(whole.causes()["cause 0"], 42);
        assert_eq!(whole.causes().len(), MAX_CAUSES + 1);
        assert_eq!(whole.causes().values().sum::<u64>(), 80);
    }

    #[test]
    fn the_cause_of_exhausted_ports_includes_a_hint() {
        let mut failures = ConnectFailures::default();
        failures.note(&io::Error::from_raw_os_error(
            rustix::io::Errno::ADDRNOTAVAIL.raw_os_error(),
        ));

        assert!(
            failures
                .causes()
                .keys()
                .all(|cause| cause.contains("--source-addresses"))
        );
    }
}
