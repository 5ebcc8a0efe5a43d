//! The phases of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;

/// The durations of the phases of a load.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Duration of the warm-up: load before the measurement.
    #[serde(default)]
    pub warmup_ns: u64,
    /// Duration of the measurement.
    pub measure_ns: u64,
    /// Duration of the cool-down: load after the measurement, so that the server is still under
    /// load while it handles the last measured requests.
    #[serde(default)]
    pub cooldown_ns: u64,
    /// Maximum wait for responses after the last send. `None`: not set; the request timeout plus
    /// 500 ms.
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
