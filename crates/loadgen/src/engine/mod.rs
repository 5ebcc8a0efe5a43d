//! Runs a plan: the processes, their threads, the event loop of each, and the lifecycle of each
//! arrival in it.

pub(crate) mod event_loop;
pub(crate) mod file_descriptors;
pub(crate) mod generators;
pub(crate) mod idle_slots;
pub(crate) mod in_flight;
pub(crate) mod ledger;
pub(crate) mod lines;
pub(crate) mod part;
pub(crate) mod reactor;
pub(crate) mod run;
pub(crate) mod slot;
pub(crate) mod thread;
