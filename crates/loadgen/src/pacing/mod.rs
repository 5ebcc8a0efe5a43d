//! How threads wait for the next send: how much is slept, how much is spun.

pub(crate) mod decision;
pub(crate) mod idle_cores;
pub(crate) mod pacer;
pub(crate) mod priority;
pub(crate) mod rt_budget;
pub(crate) mod stalls;
