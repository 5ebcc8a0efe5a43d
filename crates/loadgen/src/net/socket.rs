//! A non-blocking socket: connect, send, receive.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{IpBindAddressNoPort, ReceiveTimestampns};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    getpeername, recv, send, socket_with,
};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The result of a call on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// This many bytes were transferred, at least one.
    Bytes(usize),
    /// The call would block; the reactor reports when to retry.
    WouldBlock,
    /// The connection is closed: no more bytes are accepted, or the peer has closed its side.
    Closed,
    /// The connection broke during a read, for example by a reset; the latest bytes may be
    /// truncated.
    Broken,
}

/// One connection's socket.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Starts to connect.
    pub fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        Self::connect_from(endpoint, None)
    }

    /// Starts to connect from a local address.
    pub fn connect_from(endpoint: &Endpoint, source: Option<IpAddr>) -> io::Result<Self> {
        let family = match endpoint {
            Endpoint::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Endpoint::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        if let Some(source) = source {
            // Lets `connect` choose the port, which connections to different servers can then
            // share.
            setsockopt(&fd, IpBindAddressNoPort, &true)?;
            bind(&fd, &SocketAddr::new(source, 0))?;
        }

        let begun = match endpoint {
            Endpoint::Tcp(address) => {
                set_tcp_nodelay(&fd, true)?;
                connect(&fd, address)
            }
            Endpoint::Unix(path) => match connect(&fd, &SocketAddrUnix::new(path)?) {
                // The backlog is full; unlike TCP, a Unix socket then refuses at once.
                Err(Errno::AGAIN) => Err(Errno::CONNREFUSED),
                other => other,
            },
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self { fd }),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the connection is established. Over loopback, it usually is when `connect` returns.
    pub fn is_connected(&self) -> io::Result<bool> {
        match getpeername(&self.fd) {
            Ok(_) => Ok(true),
            Err(Errno::NOTCONN) => {
                socket_error(&self.fd)??;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the kernel to timestamp arriving bytes; returns whether it does.
    pub fn stamp_arrivals(&self) -> bool {
        setsockopt(&self.fd, ReceiveTimestampns, &true).is_ok()
    }

    /// Sends as many bytes as the kernel accepts.
    #[inline(always)]
    pub fn send(&self, bytes: &[u8]) -> Transfer {
        loop {
            match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(0) | Err(Errno::AGAIN) => return Transfer::WouldBlock,
                Ok(count) => return Transfer::Bytes(count),
                Err(Errno::INTR) => {}
                Err(_) => return Transfer::Closed,
            }
        }
    }

    /// Receives the bytes that have arrived, as many as `buffer` holds.
    #[inline(always)]
    pub fn receive(&self, buffer: &mut [u8]) -> Transfer {
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Transfer::Closed,
                Ok((count, _)) => return Transfer::Bytes(count),
                Err(Errno::AGAIN) => return Transfer::WouldBlock,
                Err(Errno::INTR) => {}
                Err(_) => return Transfer::Broken,
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn loopback_connections_are_established_when_connect_returns() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let socket = Socket::connect(&Endpoint::Tcp(listener.local_addr().expect("address")))
            .expect("connect");

        assert!(socket.is_connected().expect("no failure"));
        assert_eq!(socket.send(b"ping"), Transfer::Bytes(4));

        let (mut peer, _) = listener.accept().expect("accept");
        let mut buffer = [0; 8];

        assert_eq!(socket.receive(&mut buffer), Transfer::WouldBlock);

        peer.read_exact(&mut buffer[..4]).expect("read");
        peer.write_all(b"pong!").expect("write");

        assert_eq!(
            (socket.receive(&mut buffer), &buffer[..5]),
            (Transfer::Bytes(5), b"pong!".as_slice())
        );

        drop(peer);
        assert_eq!(socket.receive(&mut buffer), Transfer::Closed);
    }

    #[test]
    fn connections_use_the_chosen_source_address() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let endpoint = Endpoint::Tcp(listener.local_addr().expect("address"));
        for source in ["127.0.0.7", "127.9.9.9"] {
            let source: IpAddr = source.parse().expect("address");
            let _socket = Socket::connect_from(&endpoint, Some(source)).expect("connect");
            assert_eq!(listener.accept().expect("accept").1.ip(), source);
        }
    }

    #[test]
    fn connecting_to_a_closed_port_fails() {
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("address");
        let refused =
            Socket::connect(&Endpoint::Tcp(address)).and_then(|socket| socket.is_connected());

        assert_eq!(
            refused.expect_err("refused").kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
