//! The open loop of a plan. Its JSON has exactly one of several keys for the load profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::profile::{LoadProfile, Ramp, Replay, Step};

/// An open loop: arrivals follow a schedule, regardless of how fast the server responds. Exactly
/// one of `rate_per_s`, `ramp`, `steps` and `replay` is present.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "OpenKeys", into = "OpenKeys")]
pub struct OpenLoop {
    /// Load profile; in JSON, one of the keys `rate_per_s`, `ramp`, `steps` and `replay`.
    pub profile: LoadProfile,
    /// Inter-arrival distribution. A replay has none, so its JSON does not contain this key.
    pub arrivals: Arrivals,
    /// What happens to a request when the maximum number of connections is open and all are busy.
    pub on_busy: OnBusy,
    /// Maximum number of open connections of all generators; each thread has a fixed part of them.
    /// `None`: not set; 4,096, or fewer if there are not enough file descriptors or ports.
    pub max_connections: Option<usize>,
    /// Maximum number of requests waiting for a connection; further requests are dropped. `None`:
    /// not set; the number of requests in 10 s at the highest rate of the load profile, but at
    /// least 10 per connection.
    pub max_pending: Option<usize>,
}

/// Inter-arrival distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Poisson arrivals: exponential inter-arrival times, as with many independent users.
    #[default]
    Poisson,
    /// Evenly spaced arrivals, which cause less queueing than Poisson arrivals (`docs/method.md`).
    Constant,
}

/// What happens to a request when all connections are busy. Below the maximum number of
/// connections, every policy opens another connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// At the maximum, requests wait in FIFO order; the wait is recorded as pool wait.
    #[default]
    Grow,
    /// Synonym of `Grow`, for plans whose maximum is meant to make requests queue.
    Queue,
    /// At the maximum, requests are dropped and counted.
    Shed,
}

/// The JSON keys of an open loop. Serde cannot combine a flattened enum with the rejection of
/// unknown keys, so it reads this struct.
#[derive(JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenKeys {
    /// Constant rate: arrivals per second over all threads. `None`: absent with another load
    /// profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_per_s: Option<f64>,
    /// Linear change of the rate. `None`: absent with another load profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ramp: Option<Ramp>,
    /// Constant rates, one after the other. `None`: absent with another load profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step>>,
    /// Recorded arrivals. `None`: absent with another load profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
    /// Inter-arrival distribution: `poisson` or `constant`. `None`: absent in a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Arrivals>,
    /// What happens to a request when the maximum number of connections is open and all are busy:
    /// `grow` and its synonym `queue` queue the request, `shed` drops the request.
    #[serde(default)]
    on_busy: OnBusy,
    /// Maximum number of open connections. Unit: connections. `None`: not set; 4,096, or fewer if
    /// there are not enough file descriptors or ports.
    #[serde(default)]
    max_connections: Option<usize>,
    /// Maximum number of requests waiting for a connection; further requests are dropped. Unit:
    /// requests. `None`: not set; the number of requests in 10 s at the highest rate of the load
    /// profile, but at least 10 per connection.
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
            _ => return Err("give exactly one of rate_per_s, ramp, steps and replay".to_owned()),
        };
        if matches!(profile, LoadProfile::Replay(_)) && keys.arrivals.is_some() {
            return Err("a trace needs no arrival distribution; omit arrivals".to_owned());
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
