//! What every other module may use: clocks, errors, durations, and the stop signal.

pub mod clock;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod random;
pub(crate) mod stop;
