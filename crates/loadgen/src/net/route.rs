//! How connections reach the server: its address, their source addresses, and TLS.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::base::error::LoadError;
use crate::base::thousands::{plural, thousands};
use crate::net::conntrack::TrackingTable;
use crate::net::ports::LocalPorts;
use crate::net::ports::SourcePorts;
use crate::net::socket::{Endpoint, Socket};
use crate::net::source_addresses::SourceAddresses;
use crate::net::tls::TlsClient;
use crate::plan::LoadPlan;

/// More loopback addresses than this are only used on request.
const AUTOMATIC_ADDRESSES: u64 = 254;

/// The route to the server, the same for each connection of a load.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub endpoint: Endpoint,
    pub sources: Option<SourceAddresses>,
    pub tls: Option<TlsClient>,
}

impl Route {
    /// Checks that the route exists, as far as possible without connecting.
    pub fn prepare(
        plan: &LoadPlan,
        endpoint: Endpoint,
        tls: Option<TlsClient>,
    ) -> Result<Self, LoadError> {
        let sources = SourceAddresses::parse(&plan.source_addresses)?;
        match (&endpoint, &sources) {
            (Endpoint::Tcp(server), Some(sources)) => sources.check(server)?,
            (Endpoint::Unix(_), Some(_)) => {
                return Err(LoadError::Plan(
                    "--source-addresses does not apply to a Unix socket".to_owned(),
                ));
            }
            (Endpoint::Unix(path), None) => require_socket(path)?,
            (Endpoint::Tcp(_), None) => {}
        }

        Ok(Self {
            endpoint,
            sources,
            tls,
        })
    }

    /// Starts to connect.
    pub fn connect(&self) -> io::Result<Socket> {
        match &self.sources {
            None => Socket::connect(&self.endpoint),
            Some(sources) => Socket::connect_from(&self.endpoint, Some(sources.next())),
        }
    }

    /// The kernel's connection tracking table; `None` for a Unix socket, which it does not contain.
    pub fn tracking_table(&self) -> Option<TrackingTable> {
        match self.endpoint {
            Endpoint::Tcp(_) => TrackingTable::read(),
            Endpoint::Unix(_) => None,
        }
    }

    /// Decides the source addresses and the number of connections before the load starts.
    /// `requested` connections are required; otherwise up to `possible` are used.
    pub fn fit_ports(
        &mut self,
        plan: &LoadPlan,
        requested: Option<usize>,
        possible: usize,
    ) -> Result<(usize, Option<SourcePorts>), LoadError> {
        let connections = requested.unwrap_or(possible);
        let Endpoint::Tcp(server) = self.endpoint else {
            return Ok((connections, None));
        };
        let Some(ports) = LocalPorts::read(&server) else {
            return Ok((connections, None));
        };

        let needed = ports.needed(plan, connections as u64);
        if self.sources.is_none() {
            self.sources = spread(&server, &ports, needed);
        }

        let addresses = self.sources.as_ref().map_or(1, SourceAddresses::count);
        let free = ports.free(addresses);
        let required = requested.unwrap_or(plan.all_threads()) as u64;
        if required > free {
            let description = ports.describe();
            return Err(LoadError::Plan(format!(
                "{} connections need more local ports than are free ({} on {}; {description}); \
                {}",
                thousands(required),
                thousands(free),
                plural(addresses, "source address"),
                hint(&server)
            )));
        }

        let warning = (needed > free).then(|| warning(needed, free, &ports, &server));
        let source_addresses = self.sources.as_ref().map(SourceAddresses::texts);
        let facts = SourcePorts {
            source_addresses,
            free,
            needed_at_most: needed,
            warning,
        };

        Ok((
            connections.min(usize::try_from(free).unwrap_or(usize::MAX)),
            Some(facts),
        ))
    }
}

/// Loopback addresses for a load that may need more than half of one address's ports.
fn spread(server: &SocketAddr, ports: &LocalPorts, needed: u64) -> Option<SourceAddresses> {
    let is_loopback = server.is_ipv4() && server.ip().is_loopback();
    let comfortable = (ports.free(1) / 2).max(1);
    if !is_loopback || needed <= comfortable {
        return None;
    }

    Some(SourceAddresses::loopback(
        needed
            .div_ceil(ports.per_address() / 2)
            .clamp(2, AUTOMATIC_ADDRESSES),
    ))
}

fn warning(needed: u64, free: u64, ports: &LocalPorts, server: &SocketAddr) -> String {
    let description = ports.describe();
    format!(
        "the load may need {} local ports, but only {} are free ({description}); {}",
        thousands(needed),
        thousands(free),
        hint(server)
    )
}

fn hint(server: &SocketAddr) -> &'static str {
    if server.is_ipv4() && server.ip().is_loopback() {
        "add --source-addresses 127.0.0.0/8"
    } else {
        "add addresses of this machine with --source-addresses, or widen \
        net.ipv4.ip_local_port_range"
    }
}

fn require_socket(path: &Path) -> Result<(), LoadError> {
    let bad = |what: &str| {
        LoadError::Plan(format!(
            "unix socket {}: {what}; start the server first, or correct the path",
            path.display()
        ))
    };
    let metadata = std::fs::metadata(path).map_err(|error| bad(&error.to_string()))?;
    if metadata.file_type().is_socket() {
        Ok(())
    } else {
        Err(bad("not a socket"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::Keepalive;

    fn route(address: &str, sources: &[&str]) -> (LoadPlan, Route) {
        let mut plan = LoadPlan::open("http://h/", 20_000.0, 10 * NS_PER_S);
        plan.source_addresses = sources.iter().map(|text| (*text).to_owned()).collect();
        let endpoint = Endpoint::Tcp(address.parse().expect("address"));
        let route = Route::prepare(&plan, endpoint, None).expect("route");
        (plan, route)
    }

    #[test]
    fn one_address_serves_an_ordinary_load() {
        let (plan, mut route) = route("127.0.0.1:9", &[]);
        let (connections, facts) = route.fit_ports(&plan, None, 4_096).expect("fits");

        assert_eq!(connections, 4_096);

        let facts = facts.expect("Linux");
        assert_eq!(
            (facts.source_addresses, facts.needed_at_most, facts.warning),
            (None, 4_096, None)
        );
    }

    #[test]
    fn loopback_loads_use_more_addresses_before_ports_run_out() {
        let (mut plan, mut each) = route("127.0.0.1:9", &[]);
        plan.keepalive = Keepalive::Off;
        let (_, facts) = each.fit_ports(&plan, None, 4_096).expect("fits");
        let facts = facts.expect("Linux");
        assert!(facts.free >= facts.needed_at_most, "{facts:?}");
        assert!(
            facts
                .source_addresses
                .is_some_and(|texts| texts[0].starts_with("127.0.0.1-127.0.0."))
        );

        let (plan, mut many) = route("127.0.0.1:9", &[]);
        let (connections, _) = many.fit_ports(&plan, Some(200_000), 4_096).expect("fits");
        assert_eq!(connections, 200_000);
    }

    #[test]
    fn more_connections_than_ports_are_refused_before_the_load() {
        let (plan, mut route) = route("127.0.0.1:9", &["127.0.0.2"]);
        let error = route
            .fit_ports(&plan, Some(100_000), 4_096)
            .expect_err("too many")
            .to_string();

        assert!(
            error.contains("100,000 connections") && error.contains("--source-addresses"),
            "{error}"
        );
    }

    #[test]
    fn other_addresses_get_a_warning_if_ports_may_run_out() {
        let (mut plan, mut route) = route("192.0.2.1:9", &[]);
        (plan.keepalive, plan.phases.measure_ns) = (Keepalive::Off, 60 * NS_PER_S);
        let (_, facts) = route.fit_ports(&plan, None, 4_096).expect("not certain");
        let warning = facts.and_then(|facts| facts.warning).expect("warning");
        assert!(warning.contains("ip_local_port_range"), "{warning}");
    }

    #[test]
    fn a_path_without_a_socket_is_refused_with_its_cause() {
        let plan = LoadPlan::open("http://h/", 1.0, NS_PER_S);
        for (path, cause) in [
            ("/nowhere/server.sock", "No such file"),
            ("/", "not a socket"),
        ] {
            let error = Route::prepare(&plan, Endpoint::Unix(path.into()), None)
                .expect_err(path)
                .to_string();
            assert!(error.contains(path) && error.contains(cause), "{error}");
        }
    }
}
