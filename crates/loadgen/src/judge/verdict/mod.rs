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

use serde::Serialize;

use crate::plan::thresholds::{Limits, Thresholds};
use evidence::Evidence;

/// How much a run's figures can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to remark.
    Valid,
    /// The figures stand, with a remark.
    Warn,
    /// The figures do not stand.
    Invalid,
}

/// Whose doing a doubt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The generator.
    Client,
    /// Other work on the host, or the hypervisor.
    Host,
    /// The plan: too short, too small, contradictory.
    Method,
    /// The server under test: the figures are true, and tell that it could not keep up.
    Server,
}

/// One doubt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// Identifier of the check, as in `docs/checks.md`.
    pub check: String,
    /// How grave it is.
    pub level: Level,
    /// In words, with the figure.
    pub message: String,
    /// The figure that was found.
    pub value: f64,
    /// The limit that it crossed.
    pub limit: f64,
    /// Whose doing it is; the verdict names the gravest one's.
    #[serde(skip)]
    pub blame: Blame,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The gravest level of all reasons.
    pub status: Level,
    /// Whose doing the gravest reason is; `None` when valid.
    pub blame: Option<Blame>,
    /// Every doubt, gravest first.
    pub reasons: Vec<Reason>,
}

/// A check that could not look, or had nothing to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// Identifier of the check.
    pub check: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// No doubt.
    Sound,
    /// This much is wrong: level, whose doing, figure and limit, and the sentence.
    Doubt(Level, Blame, (f64, f64), String),
    /// The evidence is missing, and why.
    NotChecked(&'static str),
}

/// One check: its identifier, and the function that judges.
type Check = (&'static str, fn(&Evidence, &Thresholds) -> Finding);

/// All checks of one load. C17 to C19 are the orchestrator's, which sees the server and the host.
const CHECKS: [Check; 24] = [
    ("C1", bookkeeping::instants_agree),
    ("C16", bookkeeping::two_counts_agree),
    ("interrupted", bookkeeping::ran_to_its_end),
    ("C2", bookkeeping::arrivals_are_as_planned),
    ("no-arrival", bookkeeping::something_arrived),
    ("no-answer", bookkeeping::something_was_answered),
    ("C9", disturbance::was_not_throttled),
    ("C4", lateness::lengthened_no_quantile),
    ("C5", lateness::was_short_in_itself),
    ("C11", lateness::stood_still_for_few),
    ("C3", sending::all_went_out_in_time),
    ("C7", disturbance::threads_had_time_left),
    ("C8", disturbance::threads_had_their_cores),
    ("C10", disturbance::hypervisor_took_nothing),
    ("C12", disturbance::resources_sufficed),
    ("C13", sending::gaps_are_exponential),
    ("C20", sending::threads_agree),
    ("C6", sending::figures_are_above_the_floor),
    ("C15", server::backlog_did_not_grow),
    ("capped", server::nobody_waited_for_a_connection),
    ("shed", server::nothing_was_dropped),
    ("failed", server::everything_was_answered),
    ("C14", server::stayed_as_it_was),
    ("mixed-rates", server::one_rate_was_offered),
];

impl Verdict {
    /// Looks at the evidence with every check.
    pub(crate) fn judge(evidence: &Evidence, thresholds: &Thresholds) -> (Self, Vec<NotChecked>) {
        let (mut reasons, mut not_checked) = (Vec::new(), Vec::new());
        for (check, look) in CHECKS {
            match look(evidence, thresholds) {
                Finding::Sound => {}
                Finding::NotChecked(reason) => not_checked.push(NotChecked { check, reason }),
                Finding::Doubt(level, blame, (value, limit), message) => {
                    reasons.push(Reason {
                        check: check.to_owned(),
                        level,
                        message,
                        value,
                        limit,
                        blame,
                    });
                }
            }
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let status = reasons.first().map_or(Level::Valid, |reason| reason.level);
        let blame = reasons.first().map(|reason| reason.blame);
        (
            Self {
                status,
                blame,
                reasons,
            },
            not_checked,
        )
    }
}

impl Finding {
    /// The graver of two levels that `value` exceeds, if any.
    fn graded(blame: Blame, value: f64, limits: Limits, message: String) -> Self {
        if value > limits.invalid {
            Self::Doubt(Level::Invalid, blame, (value, limits.invalid), message)
        } else {
            Self::warn_above(blame, value, limits.warn, message)
        }
    }

    fn warn_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::Doubt(Level::Warn, blame, (value, limit), message)
        } else {
            Self::Sound
        }
    }

    fn invalid_above(blame: Blame, value: f64, limit: f64, message: String) -> Self {
        if value > limit {
            Self::Doubt(Level::Invalid, blame, (value, limit), message)
        } else {
            Self::Sound
        }
    }
}

/// Two or three digits: more would claim what no check can tell.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size >= 10.0 => format!("{percent:.0} %"),
        size if size >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests;
