//! How threads wait for the next send: how long they sleep, and how long they spin.

pub(crate) mod decision;
pub(crate) mod idle_cores;
pub(crate) mod pacer;
pub(crate) mod priority;
pub(crate) mod rt_budget;
pub(crate) mod run_queue;
pub(crate) mod stalls;
