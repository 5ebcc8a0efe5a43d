//! What is recorded for each request while a load runs; nothing derived is computed here.

pub(crate) mod batches;
pub(crate) mod connect_failures;
pub(crate) mod connection_counts;
pub(crate) mod exchange;
pub(crate) mod flights;
pub(crate) mod histogram;
pub(crate) mod interval;
pub(crate) mod measures;
pub(crate) mod observations;
pub(crate) mod possible_ends;
pub(crate) mod progress;
pub(crate) mod recorder;
pub(crate) mod request_record;
pub(crate) mod send_sample;
pub(crate) mod session_tally;
pub(crate) mod wrong_responses;
