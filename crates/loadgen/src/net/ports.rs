//! Estimates, before the first connection, how many local ports are free and how many a plan may
//! need.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use crate::base::clock::{NS_PER_MS, NS_PER_S};
use crate::base::thousands::thousands;
use crate::plan::{Keepalive, LoadModel, LoadPlan, SessionPlan};
use schemars::JsonSchema;
use serde::Serialize;

/// The local ports that the connections can use.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SourcePorts {
    /// Source addresses of the connections, used round-robin. `None`: the kernel chose the address.
    pub source_addresses: Option<Vec<String>>,
    /// Ports that were free for connections to this server before the load.
    pub free: u64,
    /// Upper bound on the number of ports that the load needs at the same time.
    pub needed_at_most: u64,
    /// Warning that ports may run out, with a fix. `None`: there are enough ports.
    pub warning: Option<String>,
}

/// How long the kernel keeps the port of a connection that the client closed.
const TIME_WAIT_NS: u64 = 60 * NS_PER_S;

/// Assumed rate of new connections of a closed loop that opens one per request; the actual rate is
/// not known in advance.
const CLOSED_LOOP_RATE_PER_S: f64 = 50_000.0;

/// The kernel's port settings and usage that affect connections to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalPorts {
    first: u16,
    last: u16,
    /// Ports held by other connections to this server, or not yet released by them.
    in_use: u64,
    /// How long a port stays held after its connection has ended.
    held_ns: u64,
}

impl LocalPorts {
    /// Reads the kernel's settings and usage; `None` if they are not available.
    pub fn read(server: &SocketAddr) -> Option<Self> {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let mut ends = range
            .split_ascii_whitespace()
            .map_while(|end| end.parse::<u16>().ok());
        let (first, last) = (ends.next()?, ends.next()?);
        let reuse = reuse_after_ns(server.ip());
        let table = if server.is_ipv4() {
            "/proc/net/tcp"
        } else {
            "/proc/net/tcp6"
        };
        let sockets = fs::read_to_string(table).unwrap_or_default();
        let in_use = count_in_use(
            &sockets,
            &table_address(server),
            (first, last),
            reuse.is_some(),
        );

        Some(Self {
            first,
            last,
            in_use,
            held_ns: reuse.unwrap_or(TIME_WAIT_NS),
        })
    }

    /// Ports of one source address.
    pub fn per_address(&self) -> u64 {
        u64::from(self.last.saturating_sub(self.first)) + 1
    }

    /// Free ports of this many source addresses.
    pub fn free(&self, addresses: u64) -> u64 {
        self.per_address()
            .saturating_mul(addresses)
            .saturating_sub(self.in_use)
    }

    /// Upper bound on the ports that the plan may hold at once: those of open connections, and
    /// those of closed connections that the kernel has not released yet. The actual number is lower
    /// if the server closes connections, because these hold no client port.
    pub fn needed(&self, plan: &LoadPlan, connections: u64) -> u64 {
        let Some(opened) = connections_per_arrival(plan) else {
            return connections;
        };

        let rate_per_s = match &plan.load {
            LoadModel::Open(open) => open.profile.peak_rate_per_s(),
            LoadModel::Closed(_) => CLOSED_LOOP_RATE_PER_S,
        };
        let held_s = self.held_ns.min(plan.longest_phases().load_ns()) as f64 / NS_PER_S as f64;

        let arrivals =
            (rate_per_s * held_s).min(plan.requests.map_or(f64::MAX, |most| most as f64));

        connections.saturating_add((arrivals * opened).ceil() as u64)
    }

    /// Description for errors and warnings.
    pub fn describe(&self) -> String {
        format!(
            "net.ipv4.ip_local_port_range {}-{}, {} in use",
            self.first,
            self.last,
            thousands(self.in_use)
        )
    }
}

/// Mean number of connections per arrival that the client opens and closes; `None` if connections
/// are reused. A session has a dedicated connection, plus one for each request that closes its
/// connection.
fn connections_per_arrival(plan: &LoadPlan) -> Option<f64> {
    let per_connection = match plan.keepalive {
        Keepalive::On => None,
        Keepalive::Off => Some(1),
        Keepalive::Requests(limit) => Some(limit.max(1)),
    };
    if plan.sessions.is_empty() {
        return per_connection.map(|requests| 1.0 / f64::from(requests));
    }

    let opened = |session: &SessionPlan| {
        per_connection.map_or(1, |requests| {
            session.steps.len().div_ceil(requests as usize)
        }) as f64
    };
    let weight: f64 = plan.sessions.iter().map(|session| session.weight).sum();
    let weighted: f64 = plan
        .sessions
        .iter()
        .map(|session| session.weight * opened(session))
        .sum();

    Some(weighted / weight)
}

/// How long after a close the kernel lets a new connection reuse the port; `None` if only after its
/// release.
fn reuse_after_ns(server: IpAddr) -> Option<u64> {
    let setting = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let is_reused = match setting("tcp_tw_reuse")? {
        0 => false,
        2 => server.is_loopback(),
        _ => true,
    };
    // Reuse relies on TCP timestamps: without them the peer could not distinguish old segments from
    // new ones.
    if !is_reused || setting("tcp_timestamps") == Some(0) {
        return None;
    }

    Some(
        setting("tcp_tw_reuse_delay")
            .unwrap_or(1_000)
            .saturating_mul(NS_PER_MS),
    )
}

/// An address in the format of `/proc/net/tcp`: words in native byte order.
fn table_address(server: &SocketAddr) -> String {
    let octets = match server.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = octets
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let address: String = words.map(|word| format!("{word:08X}")).collect();

    format!("{address}:{:04X}", server.port())
}

/// Counts the local ports of the range that connections to this server hold. Ports in TIME_WAIT
/// count only if they cannot be reused early.
fn count_in_use(sockets: &str, server: &str, (first, last): (u16, u16), is_reused: bool) -> u64 {
    const TIME_WAIT: &str = "06";
    let holds_port = |line: &&str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(remote), Some(state)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        let port = local
            .rsplit_once(':')
            .and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        remote == server
            && port.is_some_and(|port| (first..=last).contains(&port))
            && !(is_reused && state == TIME_WAIT)
    };
    sockets.lines().skip(1).filter(holds_port).count() as u64
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const LOOPBACK: LocalPorts = LocalPorts {
        first: 32_768,
        last: 60_999,
        in_use: 32,
        held_ns: NS_PER_S,
    };

    #[test]
    fn more_addresses_provide_more_ports() {
        assert_eq!(LOOPBACK.per_address(), 28_232);
        assert_eq!((LOOPBACK.free(1), LOOPBACK.free(2)), (28_200, 56_432));
        assert_eq!(
            LocalPorts {
                in_use: 90_000,
                ..LOOPBACK
            }
            .free(1),
            0
        );
    }

    #[test]
    fn closed_connections_count_until_their_ports_are_released() {
        let kept = LoadPlan::open("http://127.0.0.1/", 1_000.0, 10 * NS_PER_S);
        assert_eq!(LOOPBACK.needed(&kept, 64), 64);

        let each = LoadPlan {
            keepalive: Keepalive::Off,
            ..kept.clone()
        };
        assert_eq!(LOOPBACK.needed(&each, 64), 1_064);

        let network = LocalPorts {
            held_ns: TIME_WAIT_NS,
            ..LOOPBACK
        };
        assert_eq!(
            network.needed(&each, 64),
            10_064,
            "the load ends before the first port comes back"
        );

        let tenth = LoadPlan {
            keepalive: Keepalive::Requests(10),
            ..kept
        };
        assert_eq!(network.needed(&tenth, 0), 1_000);

        let counted = LoadPlan {
            keepalive: Keepalive::Off,
            requests: Some(100),
            ..LoadPlan::closed("http://127.0.0.1/", 5, 10 * NS_PER_S)
        };
        assert_eq!(network.needed(&counted, 5), 105);
    }

    #[test]
    fn each_session_needs_a_port_plus_one_for_each_closing_request() {
        let session = |weight, steps| SessionPlan {
            name: String::new(),
            weight,
            steps: serde_json::from_value(serde_json::Value::from(vec![
                serde_json::json!({"request": {"url": "/"}});
                steps
            ]))
            .expect("steps"),
        };
        let sessions = vec![session(3.0, 2), session(1.0, 6)];
        let kept = LoadPlan {
            sessions,
            ..LoadPlan::open("http://127.0.0.1/", 1_000.0, 10 * NS_PER_S)
        };

        for (keepalive, needed) in [
            (Keepalive::On, 1_064),
            (Keepalive::Off, 3_064),
            (Keepalive::Requests(2), 1_564),
            (Keepalive::Requests(4), 1_314),
            (Keepalive::Requests(10), 1_064),
        ] {
            assert_eq!(
                LOOPBACK.needed(
                    &LoadPlan {
                        keepalive,
                        ..kept.clone()
                    },
                    64
                ),
                needed,
                "{keepalive:?}"
            );
        }
    }

    #[test]
    fn ports_in_use_are_read_from_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let server = listener.local_addr().expect("address");
        let before = LocalPorts::read(&server).expect("Linux").in_use;
        let held: Vec<TcpStream> = (0..3)
            .map(|_| TcpStream::connect(server).expect("connect"))
            .collect();

        assert_eq!(LocalPorts::read(&server).expect("Linux").in_use, before + 3);

        drop(held);
    }

    #[test]
    fn ports_in_time_wait_count_unless_they_are_reused() {
        let table = concat!(
            "sl local rem st\n",
            " 0: 0100007F:9000 0100007F:1F90 06\n",
            " 1: 0100007F:9001 0100007F:1F90 01\n",
            " 2: 0100007F:1F90 0100007F:9000 01\n",
            " 3: 0100007F:0400 0100007F:1F90 01\n",
        );
        let count = |is_reused| count_in_use(table, "0100007F:1F90", (32_768, 60_999), is_reused);

        assert_eq!((count(true), count(false)), (1, 2));
    }
}
