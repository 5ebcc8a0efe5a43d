//! What a run knows besides its record: what the generator cost, and how much it was disturbed.

pub(crate) mod cost;
pub(crate) mod run;
pub(crate) mod throttling;
