//! An open loop as a plan's JSON writes it: what is offered stands in one key of several.

use serde::{Deserialize, Serialize};

use crate::load_profile::{LoadProfile, Ramp, Replay, Step};
use crate::plan::{Arrivals, OnBusy, OpenLoop};

/// The keys of an open loop. Serde cannot flatten an enumeration and refuse unknown keys at once, so it reads this.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenKeys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ramp: Option<Ramp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Arrivals>,
    #[serde(default)]
    on_busy: OnBusy,
    #[serde(default)]
    max_connections: Option<usize>,
    #[serde(default)]
    max_pending: Option<usize>,
}

impl TryFrom<OpenKeys> for OpenLoop {
    type Error = String;

    fn try_from(keys: OpenKeys) -> Result<Self, String> {
        let profile = match (keys.rate_per_s, keys.ramp, keys.steps, keys.replay) {
            (Some(rate_per_s), None, None, None) => LoadProfile::Flat { rate_per_s },
            (None, Some(ramp), None, None) => LoadProfile::Ramp(ramp),
            (None, None, Some(steps), None) => LoadProfile::Steps(steps),
            (None, None, None, Some(replay)) => LoadProfile::Replay(replay),
            _ => return Err("give one of rate_per_s, ramp, steps and replay".to_owned()),
        };
        if matches!(profile, LoadProfile::Replay(_)) && keys.arrivals.is_some() {
            return Err("a trace has no law of the gaps; leave arrivals out".to_owned());
        }
        Ok(Self {
            profile,
            arrivals: keys.arrivals.unwrap_or_default(),
            on_busy: keys.on_busy,
            max_connections: keys.max_connections,
            max_pending: keys.max_pending,
        })
    }
}

impl From<OpenLoop> for OpenKeys {
    fn from(open: OpenLoop) -> Self {
        let mut keys = Self {
            rate_per_s: None,
            ramp: None,
            steps: None,
            replay: None,
            arrivals: Some(open.arrivals),
            on_busy: open.on_busy,
            max_connections: open.max_connections,
            max_pending: open.max_pending,
        };
        match open.profile {
            LoadProfile::Flat { rate_per_s } => keys.rate_per_s = Some(rate_per_s),
            LoadProfile::Ramp(ramp) => keys.ramp = Some(ramp),
            LoadProfile::Steps(steps) => keys.steps = Some(steps),
            LoadProfile::Replay(replay) => (keys.replay, keys.arrivals) = (Some(replay), None),
        }
        keys
    }
}
