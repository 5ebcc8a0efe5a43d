//! When requests are due, and which: schedules, closed loops and sessions.

pub(crate) mod closed_loop;
pub(crate) mod cookies;
pub(crate) mod draw;
pub(crate) mod filled_requests;
pub(crate) mod open_loop;
pub(crate) mod schedule;
pub(crate) mod sessions;
pub(crate) mod source;
pub(crate) mod think_time;
