//! Facts of a run besides its record: the generator's cost, and how much it was disturbed.

pub(crate) mod cost;
pub(crate) mod run;
pub(crate) mod throttling;
