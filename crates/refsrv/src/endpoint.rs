//! Where a server listens: a loopback address, or a Unix socket.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use socket2::{Domain, SockAddr, Socket, Type};

/// The kernel limits it to `net.core.somaxconn`. A burst of connections must not wait for a SYN
/// retransmission, which would be measured as a second of connect time.
const BACKLOG: i32 = 65_535;

/// Prefix of the path of a Unix socket.
const UNIX_PREFIX: &str = "unix:";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A loopback address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket, which must not exist yet; it is removed when the server stops.
    Unix(PathBuf),
}

impl Endpoint {
    /// The address that must not be listened on, because others could reach it.
    pub(crate) fn outside_loopback(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(addr) if !addr.ip().is_loopback() => Some(*addr),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// Listens without blocking; returns the socket and its actual endpoint.
    pub(crate) fn listen(&self) -> io::Result<(Socket, Self)> {
        let (socket, address) = match self {
            Self::Tcp(addr) => {
                let socket = Socket::new(Domain::for_address(*addr), Type::STREAM, None)?;
                socket.set_reuse_address(true)?;
                (socket, SockAddr::from(*addr))
            }
            Self::Unix(path) => (
                Socket::new(Domain::UNIX, Type::STREAM, None)?,
                SockAddr::unix(path)?,
            ),
        };
        socket.bind(&address)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let bound = socket
            .local_addr()?
            .as_socket()
            .map_or_else(|| self.clone(), Self::Tcp);

        Ok((socket, bound))
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(addr: SocketAddr) -> Self {
        Self::Tcp(addr)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(formatter),
            Self::Unix(path) => write!(formatter, "{UNIX_PREFIX}{}", path.display()),
        }
    }
}

/// A text that is not a valid endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address such as 127.0.0.1:8000 nor unix:/path")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some("") => Err(EndpointError(text.to_owned())),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| EndpointError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_written_as_it_is_read() {
        for text in [
            "127.0.0.1:8000",
            "[::1]:80",
            "unix:/tmp/a b.sock",
            "unix:relative",
        ] {
            assert_eq!(text.parse::<Endpoint>().expect(text).to_string(), text);
        }
        for text in ["", "unix:", "127.0.0.1", "localhost:80", "/tmp/a.sock"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_addresses_can_be_outside_loopback() {
        let beyond = |text: &str| text.parse::<Endpoint>().expect(text).outside_loopback();
        assert_eq!(
            beyond("192.0.2.1:80")
                .map(|addr| addr.to_string())
                .as_deref(),
            Some("192.0.2.1:80")
        );
        assert_eq!(
            (beyond("127.1.2.3:80"), beyond("unix:/tmp/s")),
            (None, None)
        );
    }
}
