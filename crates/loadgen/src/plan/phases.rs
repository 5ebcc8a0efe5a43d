//! The phases of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;

/// Phases by intended time. Only the measure phase enters the report's figures.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Load before the measurement.
    #[serde(default)]
    pub warmup_ns: u64,
    /// The measurement.
    pub measure_ns: u64,
    /// Load that goes on after the measurement, so that its last requests do not meet an emptying
    /// server.
    #[serde(default)]
    pub cooldown_ns: u64,
    /// Longest wait for answers once the sends have ended; `None`: until the last has had its
    /// timeout.
    #[serde(default)]
    pub drain_ns: Option<u64>,
}

impl Phases {
    /// Time from the first scheduled send to the end of the last phase with sends.
    #[must_use]
    pub fn load_ns(&self) -> u64 {
        self.warmup_ns
            .saturating_add(self.measure_ns)
            .saturating_add(self.cooldown_ns)
    }
}

/// Returns an error with this message unless the condition holds.
pub(crate) fn require(holds: bool, otherwise: &str) -> Result<(), LoadError> {
    if holds {
        Ok(())
    } else {
        Err(LoadError::Plan(otherwise.to_owned()))
    }
}
