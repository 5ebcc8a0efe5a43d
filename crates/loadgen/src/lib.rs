//! Open-loop and closed-loop HTTP load generation whose latency starts at the *scheduled* send.
//!
//! A [`LoadPlan`] says what to send, when, and what counts as a correct response; [`run`] runs it
//! and returns a [`LoadReport`]. Every arrival of the plan has exactly one [`Outcome`], and only
//! correct responses have a latency:
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
//! The crate does not depend on Python, writes no files and prints nothing. All times are integer
//! nanoseconds of `CLOCK_MONOTONIC`.
//!
//! # Limitations
//! One server per load; HTTP/1.0, HTTP/1.1 or HTTP/2; Linux 5.11 or newer (`epoll_pwait2`).

mod arrivals;
mod base;
mod engine;
mod facts;
mod http;
mod judge;
mod net;
mod pacing;
pub mod plan;
mod record;
mod report;
pub mod statistics;

pub use crate::http::target::check;
pub use crate::http::template::Place;
pub use crate::http::texts::first_text;
pub use arrivals::schedule::{Schedule, Share};
pub use base::clock;
pub use base::duration::parse_duration_ns;
pub use base::error::LoadError;
pub use base::files::read_file;
pub use base::stop::StopToken;
pub use engine::generators::run_generator;
pub use engine::run::{PreparedLoad, prepare, run};
pub use judge::offered::Bounds;
pub use judge::precision::PrecisionReport;
pub use judge::stationarity::{Change, InSystem, State, Stationarity};
pub use judge::uncertainty::{NotResolved, QuantileUncertainty, ResolutionStatus, Uncertainty};
pub use judge::verdict::{
    Blame, CHECKS, Check, Level, NotChecked, Reason, Verdict, check_catalogue_json,
};
pub use plan::LoadPlan;
pub use plan::floor::NoiseFloor;
pub use plan::precision::REPORTED_QUANTILES;
pub use plan::recording::read_recording;
pub use plan::requests_file::{read_sessions, read_targets};
pub use plan::thresholds::Thresholds;
pub use record::batches::Batches;
pub use record::exchange::Outcome;
pub use record::histogram::{LatencyHistogram, rank_of};
pub use record::measures::Measures;
pub use record::progress::ProgressFile;
pub use record::recorder::Phase;
pub use record::request_record::RequestReport;
pub use record::send_sample::SendGaps;
pub use report::distribution::Distribution;
pub use report::progress::LoadProgress;
pub use report::sessions::SessionReport;
pub use report::wrong_responses::WrongResponseReport;
pub use report::{BuildInfo, LoadReport, Outcomes, SCHEMA_VERSION, report_schema_json};
