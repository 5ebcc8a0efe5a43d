//! The configuration of a server, checked before anything is opened.

use std::net::{Ipv4Addr, SocketAddr};

use crate::endpoint::Endpoint;
use crate::error::ConfigError;
use crate::fault::FaultPlan;
use crate::response::Framing;
use crate::service::Service;

/// Everything that determines the server's behaviour.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; loopback only.
    pub listen: Endpoint,
    /// How long each request is held.
    pub service: Service,
    /// Number of servers behind the queue; `None` for infinitely many.
    pub servers: Option<usize>,
    /// The faults, and which arrivals they affect.
    pub faults: FaultPlan,
    /// The body of every normal response.
    pub body: Vec<u8>,
    /// How the end of the body is marked.
    pub framing: Framing,
    /// Whether responses carry X-Id, X-Arrive, X-Hold and X-Write.
    pub stamp_headers: bool,
    /// Close a connection after this many responses; `Some(1)` closes after each.
    pub requests_per_connection: Option<u64>,
    /// Whether the last response on a connection says `Connection: close`. Without it, the client
    /// notices the close as with any server that drops idle connections.
    pub announce_close: bool,
    /// CPU time to use before each response. It blocks the only thread, so responses are later than
    /// the queue planned. Intended for tests of CPU quotas, not of queues.
    pub cpu_ns: u64,
    /// How long before a response is due the server stops sleeping and spins; 0 never spins.
    pub spin_ns: u64,
    /// Whether to keep the log.
    pub log: bool,
    /// Whether the log also has kernel timestamps of arrivals, over TCP
    /// ([`crate::LogEntry::queued_ns`]).
    pub log_queued: bool,
    /// Send a fixed response to every blank line and do nothing else: no plan, no faults, no log,
    /// no request bodies. `body` still applies.
    pub fast: bool,
}

impl Default for Config {
    /// `hello` at once, infinitely many servers, keep-alive, logged, on a free port.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
            service: Service::Constant { hold_ns: 0 },
            servers: None,
            faults: FaultPlan::none(),
            body: b"hello".to_vec(),
            framing: Framing::ContentLength,
            stamp_headers: true,
            requests_per_connection: None,
            announce_close: true,
            cpu_ns: 0,
            // Covers the 20 us to 40 us that a timerfd wakes late on an idle virtual CPU.
            spin_ns: 60_000,
            log: true,
            log_queued: false,
            fast: false,
        }
    }
}

impl Config {
    /// Rejects configurations that cannot be carried out as written.
    ///
    /// # Errors
    /// Names the offending field and what it must be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.servers == Some(0) {
            return Err(ConfigError {
                field: "servers",
                must_be: "at least 1, or None for infinite",
            });
        }

        if self.requests_per_connection == Some(0) {
            return Err(ConfigError {
                field: "requests_per_connection",
                must_be: "at least 1",
            });
        }

        if matches!(self.listen, Endpoint::Unix(_)) && self.faults.resets() {
            return Err(ConfigError {
                field: "faults",
                must_be: "without reset: only TCP aborts a connection",
            });
        }

        if matches!(self.listen, Endpoint::Unix(_)) && self.log_queued {
            return Err(ConfigError {
                field: "log_queued",
                must_be: "off: the kernel stamps only TCP",
            });
        }

        self.service.validate()?;
        self.faults.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, When};

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn a_unix_socket_cannot_abort_a_connection() {
        let faults = FaultPlan::none().with(Fault::ResetMidBody, When::every(2));
        let config = Config {
            listen: Endpoint::Unix("s".into()),
            faults,
            ..Config::default()
        };

        assert_eq!(
            config.validate().expect_err("must be refused").field,
            "faults"
        );
    }

    #[test]
    fn a_unix_socket_has_no_kernel_timestamps() {
        let config = Config {
            listen: Endpoint::Unix("s".into()),
            log_queued: true,
            ..Config::default()
        };
        assert_eq!(
            config.validate().expect_err("must be refused").field,
            "log_queued"
        );
    }

    #[test]
    fn zero_servers_are_rejected_with_the_valid_values() {
        let config = Config {
            servers: Some(0),
            ..Config::default()
        };
        let refusal = config.validate().expect_err("must be refused");

        assert_eq!(
            refusal.to_string(),
            "servers must be at least 1, or None for infinite"
        );
    }
}
