//! Load profiles: a constant rate, a ramp, steps, or the arrivals of a trace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::{NS_PER_MS, NS_PER_S};
use crate::base::error::LoadError;
use crate::plan::order::Order;
use crate::plan::phases::{Phases, require};
use crate::plan::rate_curve::RateCurve;
use crate::plan::trace::Trace;

const MAX_RATE_PER_S: f64 = 10_000_000.0;
const MAX_SPEED: f64 = 1_000_000.0;

/// The peak rate of a trace is the highest rate over a tenth of a second.
const PEAK_SPAN_NS: u64 = 100 * NS_PER_MS;
const PEAK_SPANS_PER_S: f64 = 10.0;

/// The offered load over time. Rates are over all threads.
///
/// Ramps and steps start with the measurement: the warm-up has their first rate, the cool-down
/// their last. A trace starts with the load, so the warm-up replays its first part.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadProfile {
    /// A constant rate.
    Flat {
        /// Arrivals per second.
        rate_per_s: f64,
    },
    /// A rate that changes linearly.
    Ramp(Ramp),
    /// Consecutive constant rates; together they last as long as the measurement.
    Steps(Vec<Step>),
    /// Recorded arrivals.
    Replay(Replay),
}

/// A linear change of the rate.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Rate at the start of the measurement.
    pub from_per_s: f64,
    /// Rate at the end of the ramp.
    pub to_per_s: f64,
    /// Duration of the ramp; afterwards, the rate is constant. `None`: the ramp lasts for the whole
    /// measurement.
    #[serde(default)]
    pub over_ns: Option<u64>,
}

/// A constant rate for a given time.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Arrivals per second; 0 is a pause.
    pub rate_per_s: f64,
    /// Duration of the step.
    pub duration_ns: u64,
}

/// Recorded arrivals, replayed at the original or another speed.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Arrival times, relative to the first arrival.
    pub offsets_ns: Trace,
    /// Speed factor; 2 replays twice as fast. Unit: ratio.
    #[serde(default = "original_speed")]
    pub speed: f64,
    /// For each arrival, the index of its request in `targets`. If absent, requests are chosen by
    /// weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Order>,
}

fn original_speed() -> f64 {
    1.0
}

impl Replay {
    /// Scheduled time of the arrival at a recorded offset.
    pub(crate) fn due_ns(&self, offset_ns: u64) -> u64 {
        (offset_ns as f64 / self.speed).round() as u64
    }

    /// Number of arrivals due in `[from_ns, to_ns)`.
    fn due_within(&self, from_ns: u64, to_ns: u64) -> usize {
        let offsets_ns = self.offsets_ns.offsets_ns();
        let before = |limit_ns: u64| {
            offsets_ns.partition_point(|&offset_ns| self.due_ns(offset_ns) < limit_ns)
        };
        before(to_ns) - before(from_ns)
    }
}

impl LoadProfile {
    /// Length of the profile; `None` if the plan determines it. For a trace, it includes the
    /// warm-up.
    #[must_use]
    pub fn own_length_ns(&self) -> Option<u64> {
        match self {
            Self::Flat { .. } => None,
            Self::Ramp(ramp) => ramp.over_ns,
            Self::Steps(steps) => steps
                .iter()
                .try_fold(0_u64, |sum, step| sum.checked_add(step.duration_ns)),
            Self::Replay(replay) => replay
                .offsets_ns
                .length_ns()
                .map(|length_ns| (length_ns as f64 / replay.speed) as u64),
        }
    }

    /// The highest offered rate.
    #[must_use]
    pub fn peak_rate_per_s(&self) -> f64 {
        match self {
            Self::Flat { rate_per_s } => *rate_per_s,
            Self::Ramp(ramp) => ramp.from_per_s.max(ramp.to_per_s),
            Self::Steps(steps) => steps.iter().map(|step| step.rate_per_s).fold(0.0, f64::max),
            Self::Replay(replay) => {
                let span_ns = (PEAK_SPAN_NS as f64 * replay.speed).ceil() as u64;
                replay.offsets_ns.max_within(span_ns) as f64 * PEAK_SPANS_PER_S
            }
        }
    }

    /// The rate over the whole load; `None` for a trace.
    pub(crate) fn curve(&self, phases: &Phases) -> Option<RateCurve> {
        let Phases {
            warmup_ns,
            measure_ns,
            cooldown_ns,
            ..
        } = *phases;
        let whole = RateCurve::default();
        match self {
            Self::Flat { rate_per_s } => {
                Some(whole.then(phases.load_ns(), *rate_per_s, *rate_per_s))
            }
            Self::Ramp(ramp) => {
                let (from, to) = (ramp.from_per_s, ramp.to_per_s);
                let over_ns = ramp.over_ns.unwrap_or(measure_ns);
                let held_ns = measure_ns.saturating_sub(over_ns) + cooldown_ns;
                Some(
                    whole
                        .then(warmup_ns, from, from)
                        .then(over_ns, from, to)
                        .then(held_ns, to, to),
                )
            }
            Self::Steps(steps) => {
                let (first, last) = (steps.first()?.rate_per_s, steps.last()?.rate_per_s);
                let join = |curve: RateCurve, step: &Step| {
                    curve.then(step.duration_ns, step.rate_per_s, step.rate_per_s)
                };
                let stepped = steps.iter().fold(whole.then(warmup_ns, first, first), join);
                Some(stepped.then(cooldown_ns, last, last))
            }
            Self::Replay(_) => None,
        }
    }

    /// Number of arrivals in `[from_ns, to_ns)`: exact for a trace, otherwise the mean.
    pub(crate) fn arrivals_between(&self, phases: &Phases, from_ns: u64, to_ns: u64) -> f64 {
        match (self, self.curve(phases)) {
            (Self::Replay(replay), _) => replay.due_within(from_ns, to_ns) as f64,
            (_, Some(curve)) => curve.arrivals_until(to_ns) - curve.arrivals_until(from_ns),
            (_, None) => 0.0,
        }
    }

    /// Lowest and highest rate between two offsets; `None` for a trace.
    pub(crate) fn rates_between(
        &self,
        phases: &Phases,
        from_ns: u64,
        to_ns: u64,
    ) -> Option<(f64, f64)> {
        self.curve(phases)?.range_within(from_ns, to_ns)
    }

    pub(crate) fn validate(&self, phases: &Phases) -> Result<(), LoadError> {
        match self {
            Self::Flat { rate_per_s } => validate_peak(*rate_per_s),
            Self::Ramp(ramp) => {
                let over_ns = ramp.over_ns.unwrap_or(phases.measure_ns);
                require(over_ns > 0, "the ramp time must be positive")?;
                let (takes, lasts) = (seconds(over_ns), seconds(phases.measure_ns));
                let message = format!(
                    "the ramp ({takes}) is longer than the measurement ({lasts}); increase \
                    --duration"
                );
                require(over_ns <= phases.measure_ns, &message)?;
                validate_rates(&[ramp.from_per_s, ramp.to_per_s])
            }
            Self::Steps(steps) => {
                require(!steps.is_empty(), "there must be at least one step")?;
                require(
                    steps.iter().all(|step| step.duration_ns > 0),
                    "the duration of each step must be positive",
                )?;
                let own_length_ns = self.own_length_ns().unwrap_or(u64::MAX);
                let (take, lasts) = (seconds(own_length_ns), seconds(phases.measure_ns));
                let message = format!(
                    "the steps add up to {take}, but the measurement lasts {lasts}; omit --duration"
                );
                require(own_length_ns == phases.measure_ns, &message)?;
                validate_rates(&steps.iter().map(|step| step.rate_per_s).collect::<Vec<_>>())
            }
            Self::Replay(replay) => replay.validate(phases),
        }
    }
}

impl Replay {
    fn validate(&self, phases: &Phases) -> Result<(), LoadError> {
        let speed = self.speed;
        require(
            speed.is_finite() && speed > 0.0 && speed <= MAX_SPEED,
            &format!("the replay speed must be between 0 and 1,000,000, not {speed}"),
        )?;
        let (from_ns, length_ns) = (phases.warmup_ns, phases.measure_ns);
        let to_ns = from_ns.saturating_add(length_ns);
        let window = format!(
            "{} to {} after the start of the load",
            seconds(from_ns),
            seconds(to_ns)
        );
        let message = format!("no arrival of the trace is within the measurement ({window})");
        require(self.due_within(from_ns, to_ns) > 0, &message)
    }
}

fn seconds(ns: u64) -> String {
    format!("{}s", ns as f64 / NS_PER_S as f64)
}

fn validate_peak(rate: f64) -> Result<(), LoadError> {
    require(
        rate.is_finite() && rate > 0.0 && rate <= MAX_RATE_PER_S,
        &format!("the rate must be between 0 and 10,000,000 per second, not {rate}"),
    )
}

/// Refuses negative and infinite rates, and rates that are all 0.
fn validate_rates(rates: &[f64]) -> Result<(), LoadError> {
    for &rate in rates {
        require(rate >= 0.0, &format!("a rate must not be negative: {rate}"))?;
    }
    validate_peak(rates.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadModel, LoadPlan};

    const S: u64 = NS_PER_S;

    fn phases(warmup_ns: u64, measure_ns: u64, cooldown_ns: u64) -> Phases {
        Phases {
            warmup_ns,
            measure_ns,
            cooldown_ns,
            drain_ns: None,
        }
    }

    fn ramp(from_per_s: f64, to_per_s: f64, over_ns: Option<u64>) -> LoadProfile {
        LoadProfile::Ramp(Ramp {
            from_per_s,
            to_per_s,
            over_ns,
        })
    }

    fn steps(steps: &[(f64, u64)]) -> LoadProfile {
        LoadProfile::Steps(
            steps
                .iter()
                .map(|&(rate_per_s, duration_ns)| Step {
                    rate_per_s,
                    duration_ns,
                })
                .collect(),
        )
    }

    fn replay(offsets_ns: &[u64], speed: f64) -> LoadProfile {
        LoadProfile::Replay(Replay {
            offsets_ns: Trace::new(offsets_ns.to_vec()).expect("sorted"),
            speed,
            requests: None,
        })
    }

    #[test]
    fn the_warm_up_has_the_first_rate_and_the_cool_down_the_last() {
        let phases = phases(2 * S, 10 * S, 3 * S);
        let ends = [2 * S, 12 * S, 15 * S];
        let until =
            |profile: &LoadProfile| ends.map(|to_ns| profile.arrivals_between(&phases, 0, to_ns));
        assert_eq!(until(&ramp(100.0, 300.0, None)), [200.0, 2_200.0, 3_100.0]);
        assert_eq!(
            until(&ramp(100.0, 300.0, Some(4 * S))),
            [200.0, 2_800.0, 3_700.0]
        );
        assert_eq!(
            until(&steps(&[(10.0, 4 * S), (20.0, 6 * S)])),
            [20.0, 180.0, 240.0]
        );
        assert_eq!(
            until(&LoadProfile::Flat { rate_per_s: 7.0 }),
            [14.0, 84.0, 105.0]
        );
    }

    #[test]
    fn a_replay_counts_arrivals_at_its_speed() {
        let trace = [0, S, 2 * S, 2 * S, 4 * S];
        let phases = phases(S, 2 * S, S);
        assert_eq!(replay(&trace, 1.0).arrivals_between(&phases, S, 3 * S), 3.0);
        assert_eq!(replay(&trace, 2.0).arrivals_between(&phases, S, 3 * S), 3.0);
        assert_eq!(replay(&trace, 0.5).arrivals_between(&phases, S, 3 * S), 1.0);
        assert_eq!(replay(&trace, 2.0).own_length_ns(), Some(5 * S / 2));
    }

    #[test]
    fn the_peak_is_the_highest_rate() {
        assert_eq!(ramp(300.0, 100.0, None).peak_rate_per_s(), 300.0);
        assert_eq!(
            steps(&[(10.0, S), (70.0, S), (20.0, S)]).peak_rate_per_s(),
            70.0
        );
        // Three arrivals in the busiest tenth of a second, six at twice the speed.
        let trace: Vec<u64> = [0, 30, 60, 120, 150, 180, 900]
            .map(|ms| ms * NS_PER_MS)
            .to_vec();
        assert_eq!(replay(&trace, 1.0).peak_rate_per_s(), 30.0);
        assert_eq!(replay(&trace, 2.0).peak_rate_per_s(), 60.0);
    }

    #[test]
    fn invalid_profiles_are_refused_with_the_reason() {
        let good = phases(0, 10 * S, 0);
        let cases = [
            (
                "the ramp (11s) is longer than the measurement (10s)",
                ramp(1.0, 2.0, Some(11 * S)),
            ),
            ("the ramp time must be positive", ramp(1.0, 2.0, Some(0))),
            ("must not be negative", ramp(-1.0, 2.0, None)),
            ("must not be negative", ramp(f64::NAN, 2.0, None)),
            (
                "the rate must be between 0 and 10,000,000",
                ramp(0.0, 0.0, None),
            ),
            (
                "must be between 0 and 10,000,000 per second, not 100000000",
                ramp(1.0, 1e8, None),
            ),
            ("at least one step", steps(&[])),
            (
                "each step must be positive",
                steps(&[(1.0, 10 * S), (2.0, 0)]),
            ),
            (
                "the steps add up to 4s, but the measurement lasts 10s; omit --duration",
                steps(&[(1.0, 4 * S)]),
            ),
            (
                "the rate must be between 0 and 10,000,000",
                steps(&[(0.0, 10 * S)]),
            ),
            ("the replay speed must be between 0", replay(&[0], 0.0)),
            ("the replay speed must be between 0", replay(&[0], f64::NAN)),
            (
                "no arrival of the trace is within the measurement (0s to 10s after the start",
                replay(&[10 * S], 1.0),
            ),
        ];
        for (expected, profile) in cases {
            let message = profile.validate(&good).expect_err(expected).to_string();
            assert!(
                message.contains(expected),
                "{message:?} should say {expected:?}"
            );
        }
    }

    #[test]
    fn unusual_but_valid_profiles_are_accepted() {
        let good = phases(S, 10 * S, S);
        let profiles = [
            ramp(0.0, 5.0, None),
            ramp(5.0, 0.0, Some(S)),
            steps(&[(0.0, S), (3.0, 9 * S)]),
            replay(&[0, 0, 5 * S], 3.0),
        ];
        for profile in profiles {
            profile.validate(&good).expect("possible");
        }
    }

    #[test]
    fn a_plan_has_exactly_one_key_for_its_profile() {
        let as_json = |profile: LoadProfile| {
            let mut plan = LoadPlan::open("http://h/", 5.0, 10 * S);
            let LoadModel::Open(open) = &mut plan.load else {
                panic!("closed")
            };
            open.profile = profile;
            let json = serde_json::to_value(&plan).expect("to json");
            assert_eq!(
                serde_json::from_value::<LoadPlan>(json.clone()).expect("and back"),
                plan
            );
            let open = json["load"]["open"].as_object().expect("an object").clone();
            open.keys()
                .filter(|key| !key.starts_with("max_"))
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            as_json(LoadProfile::Flat { rate_per_s: 5.0 }),
            "arrivals on_busy rate_per_s"
        );
        assert_eq!(as_json(ramp(1.0, 2.0, None)), "arrivals on_busy ramp");
        assert_eq!(as_json(steps(&[(1.0, S)])), "arrivals on_busy steps");
        assert_eq!(
            as_json(replay(&[1, 2], 1.0)),
            "on_busy replay",
            "a replay has no inter-arrival distribution"
        );
    }

    #[test]
    fn a_plan_without_a_profile_or_with_two_is_refused() {
        let cases = [
            (
                r"{}",
                "give exactly one of rate_per_s, ramp, steps and replay",
            ),
            (
                r#"{"rate_per_s": 1, "ramp": {"from_per_s": 1, "to_per_s": 2}}"#,
                "give exactly one of rate_per_s",
            ),
            (
                r#"{"replay": {"offsets_ns": [1]}, "arrivals": "constant"}"#,
                "a trace needs no arrival distribution",
            ),
            (
                r#"{"ramp": {"from_per_s": 1, "to": 2}}"#,
                "unknown field `to`",
            ),
            (
                r#"{"replay": {"offsets_ns": [2, 1]}}"#,
                "the trace is not sorted: 1 ns follows 2 ns",
            ),
            (r#"{"rate": 1}"#, "unknown field `rate`"),
        ];
        for (open, expected) in cases {
            let plan = format!(
                r#"{{"url": "http://h/", "load": {{"open": {open}}}, "phases": {{"measure_ns": 1}}}}"#
            );
            let message = serde_json::from_str::<LoadPlan>(&plan)
                .expect_err(expected)
                .to_string();
            assert!(
                message.contains(expected),
                "{message:?} should say {expected:?}"
            );
        }
    }
}
