//! Proves the generator right against a server whose every answer time is known.
//!
//! What is exact is asserted exactly, always: counts, bounds that no machine can break, identities.
//! What depends on how fast this machine is goes through [`support::judge_timing`], which tells a
//! wrong instrument from a busy host. The letters F1 to F13 are those of the acceptance tests in
//! `docs/method.md`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod byte_servers;
mod closed_loop;
mod connections;
mod failures;
mod hostile;
mod http2;
mod overload;
mod placeholders;
mod precision;
mod receive_stamps;
mod resident_memory;
mod runs;
mod scripted;
mod service_times;
mod sessions;
mod stalls;
mod stream_server;
mod streams;
mod support;
mod targets;
mod tls;
mod tls_server;
mod ways;
mod wires;
mod witness;
