//! A reference HTTP/1.1 server whose response times are all known exactly.
//!
//! A load generator can only be proved correct against a server whose behaviour is known exactly.
//! `refsrv` keeps a queue in *virtual time*: a request that arrives at `a` starts at `max(a,
//! earliest free server)`, finishes `hold` later, and its response is written at that absolute
//! time. One late timer therefore never delays the next request, and the queue follows its formula
//! (M/M/1, M/D/1, a periodic stall…) however busy the machine is. The machine's own delay is
//! recorded per request: planned finish and actual write time are both in the log and in the
//! response headers.
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
//! # Deliberate limits
//! - Loopback addresses and Unix sockets only: any other address is rejected.
//! - One thread. A request pipelined behind another on the same connection is processed, and its
//!   arrival timestamped, once the previous response has been sent.
//! - All times are integer nanoseconds of `CLOCK_MONOTONIC`.

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
mod response;
mod server;
pub mod service;
mod shared;
pub mod spec;
pub mod theory;
mod timer;

pub use config::Config;
pub use endpoint::{Endpoint, EndpointError};
pub use error::ConfigError;
pub use fault::{Fault, FaultPlan, FaultRule, When};
pub use log::{Lateness, LogEntry, Outcome};
pub use queue::{Slot, VirtualQueue};
pub use response::Framing;
pub use server::{ReferenceServer, StartError};
pub use service::Service;
pub use shared::Stats;
pub use theory::KnownQueue;
