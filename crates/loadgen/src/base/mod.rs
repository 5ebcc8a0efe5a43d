//! Used by every other module: clocks, errors, durations, numbers in messages, and the stop signal.

pub mod clock;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod random;
pub(crate) mod stop;
pub(crate) mod thousands;
