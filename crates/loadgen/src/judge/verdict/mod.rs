//! Judges whether the figures of a load can be trusted and, if not, who is to blame.
//!
//! Each check is a record with its rule, a function of the [`evidence`] and the thresholds.
//! [`CHECKS`] lists them in the order in which reasons of the same level are reported: causes
//! before their effects. A check whose evidence is missing returns [`CheckResult::NotChecked`] with
//! the reason.

mod bookkeeping;
mod disturbance;
pub(crate) mod evidence;
mod lateness;
mod sending;
mod server;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::thresholds::{Limits, Thresholds};
use evidence::Evidence;

/// How far the figures of a load can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No check fired.
    Valid,
    /// The figures are usable, with a warning.
    Warn,
    /// The figures must not be used.
    Invalid,
}

/// Who caused a check to fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The generator.
    Client,
    /// Other work on the host, or the hypervisor.
    Host,
    /// The plan: too short, too small, contradictory.
    Method,
    /// The server under test: the figures are correct and show that it could not keep up.
    Server,
}

/// A check that fired.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Reason {
    /// Name of the check that fired, such as `send-lag`.
    pub check: String,
    /// `warn` (the figures are usable) or `invalid` (they must not be used).
    pub level: Level,
    /// What the check found, in one sentence.
    pub message: String,
    /// How to fix the cause. `None`: no fix is known, or `message` contains it.
    pub fix: Option<String>,
    /// Measured value. `None`: the check compares no value.
    pub value: f64,
    /// Limit for the measured value. `None`: the check compares no value.
    pub limit: f64,
    /// Who caused it; the verdict takes the blame of its most severe reason.
    #[serde(skip)]
    pub blame: Blame,
}

/// The verdict on a load.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Verdict {
    /// `valid`, `warn` or `invalid`.
    pub status: Level,
    /// Cause of the most severe finding: `client` (the generator), `host` (the machine), `method`
    /// (the plan) or `server`. `None`: no check fired.
    pub blame: Option<Blame>,
    /// One entry per check that fired.
    pub reasons: Vec<Reason>,
}

/// A check that could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NotChecked {
    /// Name of the check.
    pub check: &'static str,
    /// Why the check could not run.
    pub reason: &'static str,
}

/// A check: what `--explain`, `wsgiload explain`, the first screen and `docs/checks.md` say about
/// it, and its rule. Backticked words in `premise` are keys of its thresholds.
#[derive(Serialize)]
pub struct Check {
    /// Name in verdicts, options and documentation.
    pub name: &'static str,
    /// What the check examines.
    pub examines: &'static str,
    /// When the check fires.
    pub premise: &'static str,
    /// What follows for the result, as a clause. `None`: each reason's message says it.
    pub consequence: Option<&'static str>,
    /// What happened, as a clause that the affected trials complete. `None`: it concerns a server.
    pub sighting: Option<&'static str>,
    /// Whether the cause can only lengthen response times, so that figures remain upper bounds.
    pub lengthens: bool,
    /// How to fix the cause; `None` if no fix is known.
    pub fix: Option<&'static str>,
    #[serde(skip)]
    rule: fn(&Evidence, &Thresholds) -> CheckResult,
}

/// The optional parts of a check.
const NOTHING_MORE: Check = Check {
    name: "",
    examines: "",
    premise: "",
    consequence: None,
    sighting: None,
    lengthens: false,
    fix: None,
    rule: |_, _| CheckResult::Passed,
};

/// The checks as JSON: a list of records with their default `thresholds` by key.
///
/// # Panics
/// Never: the records are plain data.
#[must_use]
pub fn check_catalogue_json() -> String {
    #[derive(Serialize)]
    struct Listed {
        #[serde(flatten)]
        check: &'static Check,
        thresholds: BTreeMap<String, f64>,
    }
    let defaults = Thresholds::default();
    let listed = CHECKS.map(|check| Listed {
        check,
        thresholds: defaults.of_check(check.name),
    });
    serde_json::to_string(&listed).expect("the records are plain data")
}

/// All checks of a load, causes before effects.
pub static CHECKS: [&Check; 27] = [
    &bookkeeping::TIMESTAMP_ORDER,
    &bookkeeping::IN_SYSTEM_COUNT,
    &bookkeeping::GENERATOR_LOST,
    &bookkeeping::INTERRUPTED,
    &bookkeeping::ARRIVAL_COUNT,
    &bookkeeping::NO_ARRIVAL,
    &bookkeeping::NO_RESPONSE,
    &server::UNSOLICITED_RESPONSES,
    &disturbance::CLIENT_THROTTLING,
    &lateness::SEND_LAG,
    &lateness::SEND_LAG_ABSOLUTE,
    &lateness::CLIENT_STALLS,
    &sending::MISSED_SENDS,
    &disturbance::CLIENT_CPU,
    &disturbance::RUN_QUEUE_WAIT,
    &disturbance::STEAL,
    &disturbance::CLIENT_RESOURCES,
    &sending::POISSON_GAPS,
    &sending::THREAD_AGREEMENT,
    &sending::NOISE_FLOOR,
    &server::SERVER_STALL,
    &server::BACKLOG_GROWTH,
    &server::CAPPED,
    &server::SHED,
    &server::FAILED,
    &server::STATIONARITY,
    &server::MIXED_RATES,
];

/// What a check reports when it fires, before the check's name is added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detail {
    level: Level,
    blame: Blame,
    value: f64,
    limit: f64,
    message: String,
    /// Fix for this case; `None` uses the check's own fix.
    fix: Option<String>,
}

/// A measured value that does not affect the verdict but can help to find a cause.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Diagnostic {
    /// Name of the check.
    pub check: &'static str,
    /// The observation, in one sentence.
    pub message: String,
    /// Measured value.
    pub value: f64,
    /// Limit at which the observation is reported.
    pub limit: f64,
    /// Who caused it.
    #[serde(skip)]
    pub blame: Blame,
}

/// The results of all checks of a load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub verdict: Verdict,
    pub diagnostics: Vec<Diagnostic>,
    pub not_checked: Vec<NotChecked>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CheckResult {
    /// The check did not fire.
    Passed,
    /// Does not affect the verdict; reported as a diagnostic.
    Diagnostic(Detail),
    /// The check fired.
    Fired(Detail),
    /// The evidence is missing; gives the reason.
    NotChecked(&'static str),
}

impl Verdict {
    /// Applies every check to the evidence.
    pub(crate) fn judge(evidence: &Evidence, thresholds: &Thresholds) -> Judgement {
        let mut reasons = Vec::new();
        let mut diagnostics = Vec::new();
        let mut not_checked = Vec::new();

        for check in CHECKS {
            match (check.rule)(evidence, thresholds) {
                CheckResult::Passed => {}
                CheckResult::NotChecked(reason) => {
                    not_checked.push(NotChecked {
                        check: check.name,
                        reason,
                    });
                }
                CheckResult::Diagnostic(detail) => diagnostics.push(Diagnostic::of(check, detail)),
                CheckResult::Fired(detail) => reasons.push(Reason::of(check, detail)),
            }
        }

        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let status = reasons.first().map_or(Level::Valid, |reason| reason.level);
        let blame = reasons.first().map(|reason| reason.blame);
        Judgement {
            verdict: Self {
                status,
                blame,
                reasons,
            },
            diagnostics,
            not_checked,
        }
    }
}

impl Diagnostic {
    fn of(check: &Check, detail: Detail) -> Self {
        Self {
            check: check.name,
            message: detail.message,
            value: detail.value,
            limit: detail.limit,
            blame: detail.blame,
        }
    }
}

impl Reason {
    /// The cause with the name of the check, followed by the fix as a separate sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let cause = format!("{} ({})", self.message, self.check);
        match &self.fix {
            Some(fix) => format!("{cause}. {}", capitalized(fix)),
            None => cause,
        }
    }

    fn of(check: &Check, detail: Detail) -> Self {
        Self {
            check: check.name.to_owned(),
            level: detail.level,
            message: detail.message,
            fix: detail.fix.or_else(|| check.fix.map(str::to_owned)),
            value: detail.value,
            limit: detail.limit,
            blame: detail.blame,
        }
    }
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

impl CheckResult {
    fn fired(level: Level, blame: Blame, (value, limit): (f64, f64), message: String) -> Self {
        Self::Fired(Detail {
            level,
            blame,
            value,
            limit,
            message,
            fix: None,
        })
    }

    /// A diagnostic if `value` exceeds `limit`.
    fn diagnostic_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::diagnostic(blame, (value, limit), message)
        } else {
            Self::Passed
        }
    }

    fn diagnostic(blame: Blame, (value, limit): (f64, f64), message: String) -> Self {
        // Only checks that fired have a level.
        Self::Diagnostic(Detail {
            level: Level::Valid,
            blame,
            value,
            limit,
            message,
            fix: None,
        })
    }

    /// Replaces the fix of a check that fired.
    fn fixed_by(self, fix: String) -> Self {
        match self {
            Self::Fired(detail) => Self::Fired(Detail {
                fix: Some(fix),
                ..detail
            }),
            other => other,
        }
    }

    /// Fires at the highest level whose limit `value` exceeds.
    fn graded(blame: Blame, value: f64, limits: Limits, message: String) -> Self {
        if value > limits.invalid {
            Self::fired(Level::Invalid, blame, (value, limits.invalid), message)
        } else {
            Self::warn_above(blame, value, limits.warn, message)
        }
    }

    fn warn_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::fired(Level::Warn, blame, (value, limit), message)
        } else {
            Self::Passed
        }
    }

    fn invalid_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::fired(Level::Invalid, blame, (value, limit), message)
        } else {
            Self::Passed
        }
    }
}

#[cfg(test)]
mod tests;
