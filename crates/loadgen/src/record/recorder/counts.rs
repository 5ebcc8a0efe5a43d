//! What a recorder counts: ends by phase, events by window, and how the sends went.

use crate::record::exchange::Outcome;
use crate::record::histogram::LatencyHistogram;

/// Which part of the load an arrival belongs to, by its intended instant.
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
    pub(super) const ALL: [Self; 3] = [Self::Warmup, Self::Measure, Self::Cooldown];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Measure => "measure",
            Self::Cooldown => "cool-down",
        }
    }
}

/// Outcome counts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Arrivals.
    pub scheduled: u64,
    /// Their ends, indexed by [`Outcome`].
    pub outcomes: [u64; Outcome::ALL.len()],
}

impl PhaseCounts {
    /// How many ended in this way.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// All ends together.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.outcomes
            .iter_mut()
            .zip(other.outcomes)
            .for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// How the sends of the measure phase went, whatever became of the requests: the basis of the
/// verdict on ourselves.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// Lateness of our own, of every request that was sent or that its deadline caught in a slot's
    /// hands.
    pub lag: LatencyHistogram,
    /// Arrivals that had to wait for a connection.
    pub waited: u64,
}

/// Events counted at the instant they happened inside the measure window, whenever they were
/// intended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// First writes.
    pub sent: u64,
    /// Complete answers, right or wrong.
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
