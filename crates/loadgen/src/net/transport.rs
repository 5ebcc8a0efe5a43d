//! The socket of a connection, plain or with TLS. Without TLS, it adds one comparison per call.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;

use crate::base::clock::monotonic_ns;
use crate::net::route::Route;
use crate::net::socket::{Socket, Transfer};
use crate::net::tls::TlsSession;

/// A plain socket, or TLS over it.
pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<RefCell<TlsSession>>>,
}

impl Transport {
    /// Starts to connect.
    pub fn connect(route: &Route) -> io::Result<Self> {
        let tls = route
            .tls
            .as_ref()
            .map(|client| client.session())
            .transpose()?;
        Ok(Self {
            socket: route.connect()?,
            tls: tls.map(|session| Box::new(RefCell::new(session))),
        })
    }

    /// Continues connecting, including the TLS handshake.
    pub fn is_connected(&self) -> io::Result<bool> {
        match &self.tls {
            None => self.socket.is_connected(),
            Some(tls) => tls.borrow_mut().is_connected(&self.socket),
        }
    }

    /// As [`Socket::send`].
    #[inline(always)]
    pub fn send(&self, bytes: &[u8]) -> Transfer {
        match &self.tls {
            None => self.socket.send(bytes),
            Some(tls) => tls.borrow_mut().send(&self.socket, bytes),
        }
    }

    /// As [`Socket::receive`].
    #[inline(always)]
    pub fn receive(&self, buffer: &mut [u8]) -> Transfer {
        match &self.tls {
            None => self.socket.receive(buffer),
            Some(tls) => tls.borrow_mut().receive(&self.socket, buffer),
        }
    }

    /// Sends buffered bytes; ready once all of them are sent.
    pub fn poll_flush(&self) -> Poll<io::Result<()>> {
        match &self.tls {
            Some(tls) if tls.borrow_mut().flush(&self.socket) == Transfer::WouldBlock => {
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// For hyper: the result of a read that found this end of the connection.
    pub fn end_of_read(&self, end: Transfer) -> io::Result<()> {
        match end {
            Transfer::Broken => Err(io::ErrorKind::ConnectionReset.into()),
            _ if self.is_truncated() => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// As [`Socket::stamp_arrivals`]. Not with TLS, where the timestamp of one record would be
    /// mistaken for that of another.
    pub fn stamp_arrivals(&self) -> bool {
        self.tls.is_none() && self.socket.stamp_arrivals()
    }

    /// When the socket delivered the bytes that `receive` has just returned; with TLS, before
    /// decryption.
    #[inline(always)]
    pub fn received_ns(&self) -> u64 {
        match &self.tls {
            None => monotonic_ns(),
            Some(tls) => tls.borrow().received_ns(),
        }
    }

    /// Whether the short read that has just ended means that the socket is empty.
    pub fn is_emptied_by_short_read(&self) -> bool {
        match &self.tls {
            None => true,
            Some(tls) => tls.borrow().is_emptied(),
        }
    }

    /// Whether the end of the connection may have truncated data. Plain TCP cannot detect this.
    pub fn is_truncated(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.borrow().is_truncated())
    }

    /// As [`TlsSession::take_refusal`].
    pub fn take_refusal(&self) -> Option<io::Error> {
        self.tls.as_ref()?.borrow_mut().take_refusal()
    }

    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().close(&self.socket);
        }
    }
}
