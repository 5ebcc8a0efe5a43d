//! One slice of the measure phase: counts, and the response times of its correct responses.
//!
//! A load may last for hours, so a finished slice is packed: a few kilobytes instead of a whole
//! histogram.

use serde::{Deserialize, Serialize};

use crate::record::histogram::{LatencyHistogram, PackedHistogram};

/// Arrivals whose scheduled send is in one slice of the measure phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// Arrivals.
    pub scheduled: u64,
    /// Of these, how many reached the socket.
    pub sent: u64,
    /// Correct responses.
    pub ok: u64,
    /// All other completions.
    pub failed: u64,
    times: Times,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Times {
    Open(Box<LatencyHistogram>),
    Packed(PackedHistogram),
}

impl Default for Times {
    fn default() -> Self {
        Self::Packed(PackedHistogram::default())
    }
}

impl IntervalRecord {
    /// Response times of the correct responses.
    #[must_use]
    pub fn response(&self) -> LatencyHistogram {
        match &self.times {
            Times::Open(times) => (**times).clone(),
            Times::Packed(packed) => packed.unpack(),
        }
    }

    /// Counts the response time of a correct response; returns whether the slice had to be unpacked
    /// for it.
    pub(crate) fn record(&mut self, response_ns: u64) -> bool {
        let was_packed = match &self.times {
            Times::Open(_) => false,
            Times::Packed(packed) => {
                self.times = Times::Open(Box::new(packed.unpack()));
                true
            }
        };
        if let Times::Open(times) = &mut self.times {
            times.record(response_ns);
        }

        was_packed
    }

    /// Packs a finished slice; a late response unpacks it again.
    pub(crate) fn pack(&mut self) {
        if let Times::Open(times) = &self.times {
            self.times = Times::Packed(times.pack());
        }
    }

    /// Adds another thread's record of the same slice.
    pub(crate) fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        let mut times = self.response();
        times.add(&other.response());
        self.times = Times::Packed(times.pack());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_late_responses_change_no_figure() {
        let (mut packed, mut open) = (IntervalRecord::default(), IntervalRecord::default());
        let mut openings = 0;

        for value in (1..2_000_u64).map(|step| step * step * 37 % 90_000_000) {
            openings += u32::from(packed.record(value));
            open.record(value);
            if value % 3 == 0 {
                packed.pack();
            }
        }

        assert!(openings > 100, "{openings}");
        assert_eq!(packed.response(), open.response());

        packed.add(&open.clone());
        assert_eq!(packed.response().count(), 2 * open.response().count());
    }
}
