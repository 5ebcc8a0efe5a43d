//! Carries a plan out: the threads, their event loop, and what becomes of each arrival in it.

pub(crate) mod descriptors;
pub(crate) mod event_loop;
pub(crate) mod idle_slots;
pub(crate) mod in_flight;
pub(crate) mod ledger;
pub(crate) mod reactor;
pub(crate) mod run;
pub(crate) mod slot;
pub(crate) mod thread;
