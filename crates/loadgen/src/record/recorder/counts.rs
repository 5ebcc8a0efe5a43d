//! What a recorder counts: outcomes by phase, events by window, and send statistics.

use serde::{Deserialize, Serialize};

use crate::record::exchange::Outcome;
use crate::record::histogram::LatencyHistogram;

/// Which part of the load an arrival belongs to, by its scheduled send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the measurement.
    Warmup,
    /// The measurement.
    Measure,
    /// Load after the measurement.
    Cooldown,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Warmup, Self::Measure, Self::Cooldown];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Measure => "measure",
            Self::Cooldown => "cool-down",
        }
    }
}

/// Outcome counts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// Arrivals.
    pub scheduled: u64,
    /// Their outcomes, indexed by [`Outcome`].
    pub outcomes: [u64; Outcome::ALL.len()],
}

impl PhaseCounts {
    /// Count of this outcome.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Complete responses, correct or not.
    #[must_use]
    pub fn answered(&self) -> u64 {
        let answered = Outcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_answered());
        answered.map(|outcome| self.of(outcome)).sum()
    }

    /// All outcomes together.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.outcomes
            .iter_mut()
            .zip(other.outcomes)
            .for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Statistics of the sends of the measure phase, whatever the outcome of the requests: the basis of
/// the verdict on the generator itself.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// Send lag of every request that was sent or dropped in a slot at its deadline.
    pub lag: LatencyHistogram,
    /// Arrivals that had to wait for a connection.
    pub waited: u64,
}

/// Events counted when they happened within the measurement, whatever their scheduled send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// First writes.
    pub sent: u64,
    /// Complete responses, correct or not.
    pub answered: u64,
    /// Correct responses.
    pub ok: u64,
}

impl WindowCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.ok += other.ok;
    }
}
