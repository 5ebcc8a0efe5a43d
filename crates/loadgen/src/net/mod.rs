//! Connections to the server: sockets, TLS, addresses and ports.

pub(crate) mod connection_cap;
pub(crate) mod conntrack;
pub(crate) mod pinned;
pub(crate) mod ports;
pub(crate) mod route;
pub(crate) mod socket;
pub(crate) mod source_addresses;
pub(crate) mod tls;
pub(crate) mod transport;
pub(crate) mod unverified;
