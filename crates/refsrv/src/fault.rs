//! Fault plans: which arrivals get a faulty response, and how. No I/O.

use crate::error::ConfigError;

/// What goes wrong with one request.
///
/// Except for [`Fault::Status`], the request takes its turn in the queue like any other and the
/// fault shows at its planned finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Respond with this status at once, without occupying a server.
    Status(u16),
    /// Abort the connection (RST) without a response byte.
    Reset,
    /// Send the head and half of the body, then abort the connection (RST).
    ResetMidBody,
    /// Announce the whole body, send half of it, close in order (FIN).
    Truncate,
    /// Never respond; the connection stays open until the client gives up.
    NeverAnswer,
    /// Hold the request for this many nanoseconds instead of the time in the service plan.
    HoldFor(u64),
    /// The correct length, but wrong bytes.
    WrongBody,
    /// Respond normally and keep the connection; close it, without a response, when the next
    /// request on it arrives. That request takes no arrival number, so the plan's counts stay
    /// exact.
    StaleClose,
}

/// The arrival numbers a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Every arrival whose number is `offset` modulo `n`.
    Every {
        /// The distance between two faults.
        n: u64,
        /// The first arrival hit, less than `n`.
        offset: u64,
    },
    /// Exactly these arrival numbers. Build it with [`When::at`], which sorts them.
    At(Vec<u64>),
}

impl When {
    /// The last of every `n` arrivals: `n - 1`, `2n - 1`, …
    #[must_use]
    pub fn every(n: u64) -> Self {
        Self::Every {
            n,
            offset: n.saturating_sub(1),
        }
    }

    /// Exactly these arrival numbers.
    #[must_use]
    pub fn at(mut arrivals: Vec<u64>) -> Self {
        arrivals.sort_unstable();
        Self::At(arrivals)
    }

    /// Whether arrival number `index` is hit.
    #[must_use]
    pub fn hits(&self, index: u64) -> bool {
        match self {
            Self::Every { n, offset } => index.checked_rem(*n) == Some(*offset),
            Self::At(arrivals) => arrivals.binary_search(&index).is_ok(),
        }
    }
}

/// One kind of fault and the arrivals it affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// The affected arrivals.
    pub when: When,
    /// What happens to them.
    pub fault: Fault,
}

/// All faults of a run. The first rule that hits an arrival decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The rules, in order of precedence.
    pub rules: Vec<FaultRule>,
}

impl FaultPlan {
    /// A plan without faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a rule after the existing ones.
    #[must_use]
    pub fn with(mut self, fault: Fault, when: When) -> Self {
        self.rules.push(FaultRule { when, fault });
        self
    }

    /// What goes wrong with arrival number `index`, if anything.
    #[must_use]
    pub fn fault_for(&self, index: u64) -> Option<Fault> {
        self.rules
            .iter()
            .find(|rule| rule.when.hits(index))
            .map(|rule| rule.fault)
    }

    /// Whether any rule aborts a connection.
    pub(crate) fn resets(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| matches!(rule.fault, Fault::Reset | Fault::ResetMidBody))
    }

    /// Rejects rules that cannot hit or that HTTP forbids.
    ///
    /// # Errors
    /// Names the offending field and what it must be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for rule in &self.rules {
            if let When::Every { n, offset } = rule.when
                && offset >= n
            {
                return Err(ConfigError {
                    field: "every",
                    must_be: "n > offset",
                });
            }
            if let When::At(arrivals) = &rule.when
                && !arrivals.is_sorted()
            {
                return Err(ConfigError {
                    field: "at",
                    must_be: "sorted: build it with When::at",
                });
            }
            if let Fault::Status(code) = rule.fault
                && !(200..=599).contains(&code) | matches!(code, 204 | 304)
            {
                // 1xx, 204 and 304 have no body, so the framing would not be as configured.
                return Err(ConfigError {
                    field: "status",
                    must_be: "200-599, not 204 or 304",
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_hits_exactly_its_share() {
        let when = When::every(100);
        assert_eq!((0..10_000).filter(|&i| when.hits(i)).count(), 100);
        assert!(when.hits(99) && !when.hits(0) && !when.hits(100));
    }

    #[test]
    fn a_list_hits_exactly_its_members_in_any_order() {
        let when = When::at(vec![9, 3, 27]);
        let hit: Vec<u64> = (0..100).filter(|&i| when.hits(i)).collect();
        assert_eq!(hit, [3, 9, 27]);
    }

    #[test]
    fn the_first_rule_that_hits_decides() {
        let plan = FaultPlan::none()
            .with(Fault::Reset, When::at(vec![3]))
            .with(Fault::Truncate, When::Every { n: 3, offset: 0 });
        assert_eq!(plan.fault_for(3), Some(Fault::Reset));
        assert_eq!(plan.fault_for(6), Some(Fault::Truncate));
        assert_eq!(plan.fault_for(7), None);
    }

    #[test]
    fn invalid_rules_are_rejected() {
        let unsound = [
            (Fault::Reset, When::Every { n: 0, offset: 0 }, "every"),
            (Fault::Reset, When::At(vec![2, 1]), "at"),
            (Fault::Status(204), When::every(1), "status"),
            (Fault::Status(99), When::every(1), "status"),
        ];
        for (fault, when, field) in unsound {
            let refusal = FaultPlan::none().with(fault, when).validate();
            assert_eq!(refusal.expect_err("must be refused").field, field);
        }
    }
}
