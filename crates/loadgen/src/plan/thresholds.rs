//! The thresholds of all checks of a load, with their defaults.
//!
//! A plan can override single thresholds by check and key: `{"send-lag": {"warn": 0.02}}`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two limits for one value.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Beyond this: a warning.
    pub warn: f64,
    /// Beyond this: the load is invalid.
    pub invalid: f64,
}

const fn limits(warn: f64, invalid: f64) -> Limits {
    Limits { warn, invalid }
}

/// `arrival-count`: scheduled arrivals, compared with the expected number.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledLimits {
    /// Deviation in standard errors of a Poisson count.
    pub warn_standard_errors: f64,
}

/// `send-lag`: how much the generator's lateness lengthened a quantile. A level is reached only
/// above both its share and its time, because a large share of a short time does not matter.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagImpactLimits {
    /// Share beyond which it is a diagnostic.
    pub note: f64,
    /// Share beyond which it is a warning.
    pub warn: f64,
    /// Time beyond which it is a warning.
    pub warn_ns: f64,
    /// Share beyond which the quantile is only an upper bound.
    pub bound: f64,
    /// Time beyond which the quantile is only an upper bound.
    pub bound_ns: f64,
    /// Share beyond which the load is invalid: its bounds are too far apart to be of use.
    pub invalid: f64,
    /// Time beyond which the load is invalid.
    pub invalid_ns: f64,
}

/// `send-lag-absolute`: the send lag itself.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagLimits {
    /// p99 beyond which it is a diagnostic.
    pub note_p99_ns: f64,
    /// p99.9 beyond which it is a diagnostic.
    pub note_p999_ns: f64,
}

/// A figure that is only a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Beyond this it is a diagnostic.
    pub note: f64,
}

/// `steal`: CPU time that the hypervisor took, as a share.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StealLimits {
    /// Beyond this it is a diagnostic.
    pub note: f64,
    /// Beyond this: a warning.
    pub warn: f64,
}

/// `noise-floor`: how many times the noise floor a quantile is.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloorLimits {
    /// Below this it is a diagnostic.
    pub note: f64,
    /// Below this it is only an upper bound: a warning.
    pub unresolved: f64,
}

/// `poisson-gaps`: send times, compared with a Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendGapLimits {
    /// Anderson-Darling statistic beyond which they are a diagnostic.
    pub note_anderson_darling: f64,
    /// Standard errors of the index of dispersion beyond which they are a diagnostic.
    pub note_dispersion: f64,
}

/// `stationarity`: response times over the measurement.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationarityLimits {
    /// Change of the median between the first and the last third; needs `warn_kpss` as well.
    pub warn_p50_drift: f64,
    /// Change of p99, likewise.
    pub warn_p99_drift: f64,
    /// The KPSS statistic.
    pub warn_kpss: f64,
    /// Relative difference between the highest and the lowest level of the median.
    pub non_stationary: f64,
    /// Minimum change in nanoseconds for all of these; smaller changes are ignored.
    pub warn_ns: f64,
}

/// `backlog-growth`: the backlog.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BacklogLimits {
    /// Growth in units of the mean: a warning.
    pub warn: f64,
    /// Growth in units of the mean: the server cannot sustain the offered rate.
    pub unstable: f64,
    /// Share of arrivals that found the queue full: the server cannot sustain the offered rate.
    pub unstable_turned_away: f64,
}

/// `thread-agreement`: threads whose p99 differs significantly from the overall p99, and by more
/// than 10 % and 100 µs.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadLimits {
    /// From this number on: a warning.
    pub warn: f64,
    /// From this number on the load is invalid.
    pub invalid: f64,
}

/// The thresholds, by check.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// `arrival-count`.
    #[serde(rename = "arrival-count")]
    pub scheduled: ScheduledLimits,
    /// `missed-sends`: share of requests that were sent in time.
    #[serde(rename = "missed-sends")]
    pub sent: Limits,
    /// `send-lag`.
    #[serde(rename = "send-lag")]
    pub lag_impact: LagImpactLimits,
    /// `send-lag-absolute`.
    #[serde(rename = "send-lag-absolute")]
    pub lag: LagLimits,
    /// `noise-floor`.
    #[serde(rename = "noise-floor")]
    pub floor: FloorLimits,
    /// `client-cpu`: busy share of the busiest thread.
    #[serde(rename = "client-cpu")]
    pub busy: Limits,
    /// `run-queue-wait`: share of the time in which a thread waited for a core.
    #[serde(rename = "run-queue-wait")]
    pub run_queue: Note,
    /// `steal`: share of the host's CPU time that the hypervisor took.
    #[serde(rename = "steal")]
    pub steal: StealLimits,
    /// `client-stalls`: requests affected by a stall of the generator, relative to those beyond
    /// p99.
    #[serde(rename = "client-stalls")]
    pub stalls: Limits,
    /// `poisson-gaps`.
    #[serde(rename = "poisson-gaps")]
    pub send_gaps: SendGapLimits,
    /// `stationarity`.
    #[serde(rename = "stationarity")]
    pub stationarity: StationarityLimits,
    /// `backlog-growth`.
    #[serde(rename = "backlog-growth")]
    pub backlog: BacklogLimits,
    /// `in-system-count`: difference between two counts of requests in the system, as a share.
    #[serde(rename = "in-system-count")]
    pub bookkeeping: Bookkeeping,
    /// `thread-agreement`.
    #[serde(rename = "thread-agreement")]
    pub threads: ThreadLimits,
}

/// `in-system-count`: a difference that only a bug can cause.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bookkeeping {
    /// Beyond this: the load is invalid.
    pub invalid: f64,
}

impl Default for Table {
    /// The defaults that `docs/checks.md` lists.
    fn default() -> Self {
        Self {
            scheduled: ScheduledLimits {
                warn_standard_errors: 4.0,
            },
            sent: limits(0.999, 0.99),
            lag_impact: LagImpactLimits {
                note: 0.01,
                warn: 0.05,
                warn_ns: 50_000.0,
                bound: 0.1,
                bound_ns: 100_000.0,
                invalid: 1.0,
                invalid_ns: 100_000.0,
            },
            lag: LagLimits {
                note_p99_ns: 200_000.0,
                note_p999_ns: 1_000_000.0,
            },
            floor: FloorLimits {
                note: 10.0,
                unresolved: 3.0,
            },
            busy: limits(0.6, 0.85),
            run_queue: Note { note: 0.001 },
            steal: StealLimits {
                note: 0.001,
                warn: 0.01,
            },
            stalls: limits(0.1, 0.1),
            send_gaps: SendGapLimits {
                note_anderson_darling: 1.959,
                note_dispersion: 4.0,
            },
            stationarity: StationarityLimits {
                warn_p50_drift: 0.05,
                warn_p99_drift: 0.15,
                warn_kpss: 0.739,
                non_stationary: 0.25,
                warn_ns: 50_000.0,
            },
            backlog: BacklogLimits {
                warn: 0.5,
                unstable: 1.0,
                unstable_turned_away: 0.01,
            },
            bookkeeping: Bookkeeping { invalid: 0.001 },
            threads: ThreadLimits {
                warn: 1.0,
                invalid: 2.0,
            },
        }
    }
}

/// Overrides, by check and key.
type Overrides = BTreeMap<String, BTreeMap<String, f64>>;

/// The thresholds of a plan: the defaults with the plan's overrides.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "Overrides", into = "Table")]
pub struct Thresholds(Table);

impl std::ops::Deref for Thresholds {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl From<Thresholds> for Table {
    fn from(thresholds: Thresholds) -> Self {
        thresholds.0
    }
}

impl TryFrom<Overrides> for Thresholds {
    type Error = String;

    fn try_from(overrides: Overrides) -> Result<Self, String> {
        let all = overrides.iter().flat_map(|(check, limits)| {
            limits.iter().map(move |(key, limit)| (check, key, *limit))
        });
        all.into_iter()
            .try_fold(Self::default(), |thresholds, (check, key, limit)| {
                thresholds.with(check, key, limit)
            })
    }
}

impl Thresholds {
    /// A copy with one threshold changed.
    ///
    /// # Errors
    /// A sentence if the check or the key does not exist, or the limit is not a finite number of at
    /// least 0.
    pub fn with(&self, check: &str, key: &str, limit: f64) -> Result<Self, String> {
        if !limit.is_finite() || limit < 0.0 {
            return Err(format!(
                "the threshold {check}.{key} must be a non-negative number"
            ));
        }
        let mut table = serde_json::to_value(self.0).map_err(|error| error.to_string())?;
        let limits = table
            .get_mut(check)
            .and_then(|limits| limits.as_object_mut());
        let known = limits
            .ok_or_else(|| format!("the check {check} has no thresholds; {}", Self::names()))?;
        let keys = known.keys().cloned().collect::<Vec<_>>().join(", ");
        let slot = known
            .get_mut(key)
            .ok_or_else(|| format!("{check} has no threshold {key}; it has {keys}"))?;
        *slot = limit.into();
        serde_json::from_value(table)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// A copy with one threshold changed, given as on the command line: `send-lag.warn=0.02`.
    ///
    /// # Errors
    /// Like [`Self::with`], or if the text has a different format.
    pub fn with_text(&self, text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('=')
            .and_then(|(name, limit)| Some((name.split_once('.')?, limit)));
        let ((check, key), limit) = parts.ok_or_else(|| {
            format!("{text:?} is not a threshold of a check; write it like send-lag.warn=0.02")
        })?;
        let limit = limit
            .parse()
            .map_err(|_| format!("{limit:?} is not a number; write it like send-lag.warn=0.02"))?;
        self.with(check, key, limit)
    }

    /// The thresholds of one check by key; empty if it has none.
    #[must_use]
    pub fn of_check(&self, check: &str) -> BTreeMap<String, f64> {
        let table = serde_json::to_value(self.0).unwrap_or_default();
        table
            .get(check)
            .and_then(|keys| serde_json::from_value(keys.clone()).ok())
            .unwrap_or_default()
    }

    fn names() -> String {
        let table = serde_json::to_value(Table::default()).unwrap_or_default();
        let names: Vec<String> = table
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        format!("checks with thresholds: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Thresholds, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_overrides_single_thresholds_and_keeps_the_others() {
        let thresholds = read(r#"{"send-lag": {"warn": 0.02}}"#).expect("known");
        let defaults = Table::default();
        let expected = LagImpactLimits {
            warn: 0.02,
            ..defaults.lag_impact
        };
        assert_eq!(thresholds.lag_impact, expected);
        assert_eq!(thresholds.busy, Table::default().busy);
        let written = serde_json::to_string(&thresholds).expect("plain data");
        assert_eq!(
            read(&written),
            Ok(thresholds),
            "what is written can be read"
        );
        assert_eq!(read("{}"), Ok(Thresholds::default()));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_keys() {
        assert!(
            read(r#"{"C99": {"warn": 1}}"#)
                .expect_err("check")
                .contains("C99 has no thresholds; checks with thresholds: arrival-count,")
        );
        assert!(
            read(r#"{"send-lag": {"wran": 1}}"#)
                .expect_err("key")
                .contains("no threshold wran; it has bound, bound_ns, invalid, invalid_ns, note, warn, warn_ns")
        );
        assert!(
            read(r#"{"send-lag": {"warn": -1}}"#)
                .expect_err("limit")
                .contains("send-lag.warn must be a non-negative number")
        );
    }

    #[test]
    fn thresholds_on_the_command_line_contain_a_dot() {
        let thresholds = Thresholds::default()
            .with_text("poisson-gaps.note_dispersion=0.1")
            .expect("known");
        assert_eq!(thresholds.send_gaps.note_dispersion, 0.1);
        for text in [
            "C4=1",
            "send-lag.warn",
            "send-lag.warn=much",
            "send-lag.warn=nan",
        ] {
            assert!(Thresholds::default().with_text(text).is_err(), "{text}");
        }
    }
}
