//! Closed loops that end after a number of requests; their duration is not known in advance.

use crate::base::clock::NS_PER_MS;
use crate::base::error::LoadError;
use crate::plan::phases::require;
use crate::plan::{LoadModel, LoadPlan};

/// A shorter measurement would leave most batches empty.
const MIN_LENGTH_NS: u64 = 10 * NS_PER_MS;

/// Possible lengths of a measurement of at most `longest_ns`: each is twice the previous one, and
/// the last is `longest_ns` (to within one ten-millionth).
pub(crate) fn lengths_up_to_ns(longest_ns: u64) -> Vec<u64> {
    let halvings = (longest_ns / MIN_LENGTH_NS).max(1).ilog2();
    let first_ns = (longest_ns >> halvings).max(1);
    (0..=halvings).map(|power| first_ns << power).collect()
}

impl LoadPlan {
    pub(crate) fn validate_requests(&self) -> Result<(), LoadError> {
        let Some(requests) = self.requests else {
            return Ok(());
        };
        require(requests > 0, "requests must be at least 1")?;
        require(
            matches!(self.load, LoadModel::Closed(_)),
            "requests: only a closed loop can end after a number of requests; omit --requests and \
            set --duration to that number divided by the rate",
        )?;
        require(
            self.phases.warmup_ns == 0 && self.phases.cooldown_ns == 0,
            "requests: a load that ends after a number of requests has no warm-up and no cool-down; \
            omit --warmup and --cooldown",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::Phases;

    #[test]
    fn lengths_double_up_to_the_longest() {
        assert_eq!(
            lengths_up_to_ns(80 * NS_PER_MS),
            [10, 20, 40, 80].map(|ms| ms * NS_PER_MS)
        );
        for longest_ns in [
            1,
            NS_PER_MS,
            NS_PER_S + 7,
            3_600 * NS_PER_S,
            86_400 * NS_PER_S,
        ] {
            let lengths_ns = lengths_up_to_ns(longest_ns);
            let last_ns = *lengths_ns.last().expect("at least one");
            assert!(lengths_ns[0] < 2 * MIN_LENGTH_NS, "{lengths_ns:?}");
            assert!(last_ns <= longest_ns && longest_ns - last_ns <= longest_ns / 10_000_000);
            assert!(lengths_ns.is_sorted_by(|one, next| 2 * one == *next));
        }
    }

    #[test]
    fn a_request_limit_needs_a_closed_loop_without_other_phases() {
        let closed = LoadPlan {
            requests: Some(100),
            ..LoadPlan::closed("http://h/", 4, NS_PER_S)
        };
        closed.validate().expect("possible");

        let message = |plan: &LoadPlan| plan.validate().expect_err("refused").to_string();
        let none = LoadPlan {
            requests: Some(0),
            ..closed.clone()
        };
        assert!(message(&none).contains("at least 1"));
        let open = LoadPlan {
            requests: Some(100),
            ..LoadPlan::open("http://h/", 10.0, NS_PER_S)
        };
        assert!(message(&open).contains("divided by the rate"));
        let warmed = LoadPlan {
            phases: Phases {
                warmup_ns: 1,
                ..closed.phases.clone()
            },
            ..closed
        };
        assert!(message(&warmed).contains("--warmup"));
    }
}
