//! Was it me? Judges whether the figures of a run can be trusted, and whose fault it is when they
//! cannot.
//!
//! Each check (`docs/checks.md`) is one function of the [`evidence`] and the thresholds; [`CHECKS`]
//! lists them in the order in which equally grave reasons are told, so that a cause comes before
//! what follows from it. Where its evidence is missing, a check says why it could not look.

mod bookkeeping;
mod disturbance;
pub(crate) mod evidence;
mod lateness;
mod sending;
mod server;
mod words;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::catalogue::{self, CheckInfo};
use crate::plan::thresholds::{Limits, Thresholds};
use evidence::Evidence;

/// How much a run's figures can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to report.
    Valid,
    /// The figures stand, with a warning.
    Warn,
    /// The figures do not stand.
    Invalid,
}

/// Who caused a finding.
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

/// One doubt.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Reason {
    /// Name of the check, such as `send-lag`.
    pub check: String,
    /// Its old code, such as `C4`, for old readers.
    pub code: Option<String>,
    /// How grave it is.
    pub level: Level,
    /// What was found, in one sentence.
    pub message: String,
    /// What to do about it; `None` where nothing helps.
    pub fix: Option<String>,
    /// The figure that was found.
    pub value: f64,
    /// The limit that it crossed.
    pub limit: f64,
    /// Whose doing it is; the verdict names the gravest one's.
    #[serde(skip)]
    pub blame: Blame,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Verdict {
    /// The gravest level of all reasons.
    pub status: Level,
    /// Whose doing the gravest reason is; `None` when valid.
    pub blame: Option<Blame>,
    /// Every doubt, gravest first.
    pub reasons: Vec<Reason>,
}

/// A check that could not look, or had nothing to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NotChecked {
    /// Name of the check.
    pub check: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// A check: what there is to say about it, and the function that judges.
type Check = (&'static CheckInfo, fn(&Evidence, &Thresholds) -> Finding);

/// All checks of one load, a cause before its effects.
const CHECKS: [Check; 24] = [
    (
        &catalogue::TIMESTAMP_ORDER,
        bookkeeping::timestamps_are_in_order,
    ),
    (&catalogue::IN_SYSTEM_COUNT, bookkeeping::two_counts_agree),
    (&catalogue::INTERRUPTED, bookkeeping::ran_to_its_end),
    (
        &catalogue::ARRIVAL_COUNT,
        bookkeeping::arrivals_are_as_planned,
    ),
    (&catalogue::NO_ARRIVAL, bookkeeping::something_arrived),
    (&catalogue::NO_RESPONSE, bookkeeping::something_was_answered),
    (
        &catalogue::CLIENT_THROTTLING,
        disturbance::was_not_throttled,
    ),
    (&catalogue::SEND_LAG, lateness::lengthened_no_quantile),
    (&catalogue::SEND_LAG_ABSOLUTE, lateness::was_short_in_itself),
    (
        &catalogue::CLIENT_STALLS,
        lateness::stalled_for_few_requests,
    ),
    (&catalogue::MISSED_SENDS, sending::all_went_out_in_time),
    (&catalogue::CLIENT_CPU, disturbance::threads_had_time_left),
    (
        &catalogue::RUN_QUEUE_WAIT,
        disturbance::threads_had_their_cores,
    ),
    (&catalogue::STEAL, disturbance::hypervisor_took_nothing),
    (
        &catalogue::CLIENT_RESOURCES,
        disturbance::resources_sufficed,
    ),
    (&catalogue::POISSON_GAPS, sending::gaps_are_exponential),
    (&catalogue::THREAD_AGREEMENT, sending::threads_agree),
    (
        &catalogue::NOISE_FLOOR,
        sending::figures_are_above_the_floor,
    ),
    (&catalogue::BACKLOG_GROWTH, server::backlog_did_not_grow),
    (&catalogue::CAPPED, server::nobody_waited_for_a_connection),
    (&catalogue::SHED, server::nothing_was_dropped),
    (&catalogue::FAILED, server::everything_was_answered),
    (
        &catalogue::STATIONARITY,
        server::response_times_were_stationary,
    ),
    (&catalogue::MIXED_RATES, server::one_rate_was_offered),
];

/// A reason as a check gives it, before it is filed under the check's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doubt {
    level: Level,
    blame: Blame,
    value: f64,
    limit: f64,
    message: String,
    /// What to do about this finding, where that is not what the catalogue says of its check.
    fix: Option<String>,
}

/// Something that was noticed and is no doubt: it helps to find a cause.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Diagnostic {
    /// Name of the check.
    pub check: &'static str,
    /// What was found, in one sentence.
    pub message: String,
    /// The figure that was found.
    pub value: f64,
    /// The limit that it crossed.
    pub limit: f64,
    /// Who caused it.
    #[serde(skip)]
    pub blame: Blame,
}

/// Everything that the checks say about a load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub verdict: Verdict,
    pub diagnostics: Vec<Diagnostic>,
    pub not_checked: Vec<NotChecked>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// No doubt.
    Sound,
    /// No doubt either, but worth knowing when something else is.
    Noted(Doubt),
    /// The figures are in doubt.
    Doubtful(Doubt),
    /// The evidence is missing, and why.
    NotChecked(&'static str),
}

impl Verdict {
    /// Applies every check to the evidence.
    pub(crate) fn judge(evidence: &Evidence, thresholds: &Thresholds) -> Judgement {
        let mut reasons = Vec::new();
        let mut diagnostics = Vec::new();
        let mut not_checked = Vec::new();

        for (check, look) in CHECKS {
            match look(evidence, thresholds) {
                Finding::Sound => {}
                Finding::NotChecked(reason) => {
                    not_checked.push(NotChecked {
                        check: check.name,
                        reason,
                    });
                }
                Finding::Noted(doubt) => diagnostics.push(Diagnostic::of(check, doubt)),
                Finding::Doubtful(doubt) => reasons.push(Reason::of(check, doubt)),
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
    fn of(check: &CheckInfo, doubt: Doubt) -> Self {
        Self {
            check: check.name,
            message: doubt.message,
            value: doubt.value,
            limit: doubt.limit,
            blame: doubt.blame,
        }
    }
}

impl Reason {
    /// The cause, the fix, and the name of the check.
    #[must_use]
    pub fn sentence(&self) -> String {
        let fix = self
            .fix
            .as_ref()
            .map_or(String::new(), |fix| format!("; {fix}"));
        format!("{}{fix} ({})", self.message, self.check)
    }

    fn of(check: &CheckInfo, doubt: Doubt) -> Self {
        Self {
            check: check.name.to_owned(),
            code: check.code.map(str::to_owned),
            level: doubt.level,
            message: doubt.message,
            fix: doubt.fix.or_else(|| check.fix.map(str::to_owned)),
            value: doubt.value,
            limit: doubt.limit,
            blame: doubt.blame,
        }
    }
}

impl Finding {
    fn doubt(level: Level, blame: Blame, (value, limit): (f64, f64), message: String) -> Self {
        Self::Doubtful(Doubt {
            level,
            blame,
            value,
            limit,
            message,
            fix: None,
        })
    }

    /// A diagnostic beyond `limit`.
    fn noted_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::noted(blame, (value, limit), message)
        } else {
            Self::Sound
        }
    }

    fn noted(blame: Blame, (value, limit): (f64, f64), message: String) -> Self {
        // The level belongs to doubts; a diagnostic has none.
        Self::Noted(Doubt {
            level: Level::Valid,
            blame,
            value,
            limit,
            message,
            fix: None,
        })
    }

    /// The same with a fix of its own.
    fn fixed_by(self, fix: String) -> Self {
        match self {
            Self::Doubtful(doubt) => Self::Doubtful(Doubt {
                fix: Some(fix),
                ..doubt
            }),
            other => other,
        }
    }

    /// The graver of two levels that `value` exceeds, if any.
    fn graded(blame: Blame, value: f64, limits: Limits, message: String) -> Self {
        if value > limits.invalid {
            Self::doubt(Level::Invalid, blame, (value, limits.invalid), message)
        } else {
            Self::warn_above(blame, value, limits.warn, message)
        }
    }

    fn warn_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::doubt(Level::Warn, blame, (value, limit), message)
        } else {
            Self::Sound
        }
    }

    fn invalid_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::doubt(Level::Invalid, blame, (value, limit), message)
        } else {
            Self::Sound
        }
    }
}

#[cfg(test)]
mod tests;
