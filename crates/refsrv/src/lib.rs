//! A reference HTTP/1.1 server whose every answer time is known exactly.
//!
//! A load generator can only be proved right against a server about which nothing is
//! guessed. `refsrv` keeps a queue in *virtual time*: a request that arrives at `a` starts at
//! `max(a, earliest free server)`, finishes `hold` later, and its response is written at that
//! ABSOLUTE instant. Lateness of one timer therefore never delays the next request, and the
//! queue follows its formula (M/M/1, M/D/1, a periodic stall…) however busy the machine is.
//! What the machine did add is stated, per request: planned finish and actual write time are
//! both in the log and in the response headers.
//!
//! ```no_run
//! use refsrv::{Config, ReferenceServer, Service};
//!
//! let server = ReferenceServer::start(Config {
//!     service: Service::Exponential { mean_ns: 2_000_000, seed: 1 },
//!     servers: Some(1),
//!     ..Config::default()
//! })?;
//! println!("drive load at http://{}/", server.addr());
//! for entry in server.log() {
//!     println!("{} took {} ns", entry.id, entry.finish_ns - entry.arrive_ns);
//! }
//! # Ok::<(), refsrv::StartError>(())
//! ```
//!
//! # Limits, on purpose
//! - Loopback addresses and Unix sockets only: any other address is refused.
//! - One thread. A request pipelined behind another on the same connection is taken up, and
//!   its arrival stamped, when the response before it has gone out.
//! - All times are integer nanoseconds of `CLOCK_MONOTONIC`.

mod answer;
mod arrival;
pub mod clock;
mod command;
mod config;
mod connection;
mod endpoint;
mod error;
mod fast;
pub mod fault;
pub mod http;
pub mod log;
pub mod occupancy;
pub mod queue;
pub mod random;
mod server;
pub mod service;
mod shared;
pub mod spec;
pub mod theory;
mod timer;

pub use answer::Framing;
pub use config::Config;
pub use endpoint::{Endpoint, EndpointError};
pub use error::ConfigError;
pub use fault::{Fault, FaultPlan, FaultRule, When};
pub use log::{Lateness, LogEntry, Outcome};
pub use queue::{Slot, VirtualQueue};
pub use server::{ReferenceServer, StartError};
pub use service::Service;
pub use shared::Stats;
pub use theory::KnownQueue;
