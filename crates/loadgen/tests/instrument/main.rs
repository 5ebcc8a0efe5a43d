//! Tests the generator against servers with known response times.
//!
//! Counts, sums and bounds that hold on every machine are asserted exactly. Everything that depends
//! on the machine's speed goes through [`support::judge_timing`], which distinguishes an incorrect
//! generator from a busy host. F1 to F13 are the acceptance tests in `docs/method.md`.

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
mod unsolicited;
mod ways;
mod wires;
mod witness;
