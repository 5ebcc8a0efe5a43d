//! Open-loop and closed-loop HTTP load generation whose latency starts at the *intended* send.
//!
//! A [`LoadPlan`] says what to send, when, and what counts as a right answer; [`run`] carries it out and returns a
//! [`LoadReport`]. Every arrival of the plan ends in exactly one [`Outcome`], and only right answers have a latency:
//!
//! ```no_run
//! use loadgen::{LoadPlan, StopToken, run};
//!
//! let plan = LoadPlan::open("http://127.0.0.1:8000/", 1_000.0, 10_000_000_000);
//! let report = run(&plan, &StopToken::new())?;
//! println!("p99: {:?} ns", report.measures().response.quantile_ns(0.99));
//! # Ok::<(), loadgen::LoadError>(())
//! ```
//!
//! The crate knows no Python, writes no files and prints nothing. All times are integer nanoseconds of
//! `CLOCK_MONOTONIC`.
//!
//! # Limitations
//! One server per load, HTTP/1.1 or HTTP/2 without multiplexing, Linux 5.11 or newer (`epoll_pwait2`).

mod arrivals;
mod batches;
mod body_check;
mod books;
mod chunked;
mod client_report;
pub mod clock;
mod closed_loop;
mod connect_failures;
mod connection;
mod connection_cap;
mod connection_counts;
mod cookies;
mod decoder;
mod descriptors;
mod distribution;
mod draw;
mod duration;
mod engine;
mod error;
mod exchange;
mod flights;
mod floor;
mod hiccups;
mod histogram;
mod http2_connection;
mod hyper_connection;
mod hyper_io;
mod idle;
mod idle_time;
mod in_flight;
mod inbox;
mod interval;
mod load_profile;
mod looks;
mod malformed;
mod measures;
mod mix;
mod observations;
mod offered;
mod open_loop;
mod open_plan;
mod pacer;
mod pacing;
mod phases;
pub mod plan;
mod plan_text;
mod ports;
mod precision;
mod protocol;
mod rate_curve;
mod reactor;
mod real_time;
mod recorder;
mod report;
mod request;
mod request_record;
mod requests_file;
mod rest;
mod route;
mod run;
mod run_facts;
pub mod sampler;
mod self_checks;
mod self_measure;
mod send_sample;
mod session_tally;
mod sessions;
mod slot;
mod socket;
mod source;
mod sources;
mod stationarity;
pub mod statistics;
mod stop;
mod target;
mod thinking;
mod thread_run;
mod thresholds;
mod throttling;
mod tls;
mod trace;
mod tracking;
mod transport;
mod uncertainty;
mod unverified;
mod verdict;
mod wire;

pub use arrivals::{Schedule, Share};
pub use batches::Batches;
pub use distribution::Distribution;
pub use duration::parse_duration_ns;
pub use error::LoadError;
pub use exchange::Outcome;
pub use floor::Floor;
pub use histogram::{LatencyHistogram, REPORTED_QUANTILES, rank_of};
pub use measures::Measures;
pub use offered::Bounds;
pub use plan::LoadPlan;
pub use precision::PrecisionReport;
pub use recorder::Phase;
pub use report::{BuildInfo, LoadReport, SCHEMA_VERSION, outcome_name};
pub use request_record::RequestReport;
pub use requests_file::{read_sessions, read_targets};
pub use run::{PreparedLoad, prepare, run};
pub use send_sample::SendGaps;
pub use session_tally::SessionReport;
pub use stationarity::{Change, InSystem, State, Stationarity};
pub use stop::StopToken;
pub use target::check;
pub use thresholds::Thresholds;
pub use uncertainty::{NotResolved, QuantileUncertainty, Standing, Uncertainty};
pub use verdict::{Blame, Level, NotChecked, Reason, Verdict};
