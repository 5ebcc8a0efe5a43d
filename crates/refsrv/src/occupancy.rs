//! The integral over time of the number of requests in the system, for Little's law.
//!
//! Kept as a running integral, not as the sum of response times, so that the two can be checked
//! against each other.

/// Counts requests in the system and integrates that count over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupancy {
    in_system: u64,
    integral_ns: u128,
    last_ns: u64,
}

impl Occupancy {
    /// A request arrived. Events must be in order of time.
    pub fn arrive(&mut self, at_ns: u64) {
        self.advance(at_ns);
        self.in_system += 1;
    }

    /// One request left.
    pub fn depart(&mut self, at_ns: u64) {
        self.advance(at_ns);
        self.in_system = self.in_system.saturating_sub(1);
    }

    /// Number of requests in the system.
    #[must_use]
    pub fn in_system(&self) -> u64 {
        self.in_system
    }

    /// Request-nanoseconds spent in the system up to the last event.
    #[must_use]
    pub fn integral_ns(&self) -> u128 {
        self.integral_ns
    }

    fn advance(&mut self, to_ns: u64) {
        let elapsed_ns = to_ns.saturating_sub(self.last_ns);
        self.integral_ns += u128::from(elapsed_ns) * u128::from(self.in_system);
        self.last_ns = self.last_ns.max(to_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_equals_the_sum_of_stays() {
        let mut occupancy = Occupancy::default();
        occupancy.arrive(10);
        occupancy.arrive(14);
        occupancy.depart(20);
        occupancy.arrive(25);
        occupancy.depart(31);

        assert_eq!(occupancy.in_system(), 1);

        occupancy.depart(40);
        // First in first out: 10..20, 14..31, 25..40.
        assert_eq!(occupancy.integral_ns(), 10 + 17 + 15);
    }
}
