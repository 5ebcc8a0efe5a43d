//! The request that each arrival of a replay sends.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The index of the target of each arrival of a replay, in order of arrival. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "Vec<u32>", into = "Vec<u32>")]
pub struct Order(Arc<[u32]>);

impl Order {
    /// Creates an order from these indices.
    #[must_use]
    pub fn new(indices: Vec<u32>) -> Self {
        Self(indices.into())
    }

    /// The target of this arrival, by its index in the whole schedule.
    pub(crate) fn at(&self, place: u64) -> u32 {
        self.0[place as usize]
    }

    /// Whether there is one index per arrival, and each is less than the number of targets.
    pub(crate) fn fits(&self, arrivals: usize, targets: usize) -> bool {
        self.0.len() == arrivals && self.0.iter().all(|index| (*index as usize) < targets)
    }
}

impl From<Vec<u32>> for Order {
    fn from(indices: Vec<u32>) -> Self {
        Self::new(indices)
    }
}

impl From<Order> for Vec<u32> {
    fn from(order: Order) -> Self {
        order.0.to_vec()
    }
}
