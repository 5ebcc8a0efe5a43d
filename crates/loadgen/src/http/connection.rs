//! The engine's interface to a connection of any protocol: open it, exchange requests, and find out
//! whether it can be reused. Nothing here blocks; the engine calls when there is something to do.
//!
//! A connection has places for concurrent exchanges, numbered from 0. In HTTP/1.1 there is one.

use std::io;
use std::os::fd::BorrowedFd;

use crate::base::clock::monotonic_ns;
use crate::http::inbox::Inbox;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

/// Timestamps of an exchange at the socket, in nanoseconds; 0 if it has not reached that point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExchangeStamps {
    /// Immediately before the first write.
    pub write_start_ns: u64,
    /// When the first bytes of the response arrived: the kernel timestamp, or else the time after
    /// the read that returned them.
    pub first_byte_ns: u64,
    /// When the latest bytes arrived, likewise.
    pub last_byte_ns: u64,
    /// Since when the request waited because the server had not read the bytes written before it on
    /// the same connection; 0 if it did not wait.
    pub blocked_since_ns: u64,
}

/// A completed exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub last_byte_ns: u64,
    /// When the generator detected the completion.
    pub known_ns: u64,
    /// Delay from the kernel timestamp to our read; `None` if timestamps were not requested, or
    /// there was none.
    pub receive_delay_ns: Option<u64>,
    /// Whether the connection can be reused.
    pub is_reusable: bool,
    /// Whether the server closed the connection, or announced that it would; otherwise the client
    /// closes it, for example after a response that leaves no other option.
    pub is_servers_end: bool,
}

impl Exchanged {
    /// An exchange whose end was detected just now, together with a close by the server.
    pub fn unreusable(outcome: Outcome, status: Option<u16>) -> Self {
        let now_ns = monotonic_ns();
        Self {
            outcome,
            status,
            last_byte_ns: now_ns,
            known_ns: now_ns,
            receive_delay_ns: None,
            is_reusable: false,
            is_servers_end: true,
        }
    }

    /// A request that the HTTP library cannot represent. `is_last`: whether the connection is
    /// closed after it.
    pub fn unsendable(is_last: bool) -> Self {
        Self {
            is_reusable: !is_last,
            is_servers_end: false,
            ..Self::unreusable(Outcome::ClientError, None)
        }
    }
}

/// Progress of a connection's exchanges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// The reactor will report when there is more to do.
    Waiting,
    /// There is more to read, but other connections have waited long enough.
    Yielding,
    /// The exchange in this place has completed; others may have, too.
    Ended(usize, Exchanged),
    /// No byte of the request in this place was sent.
    NothingSent(usize),
}

impl Progress {
    /// The place whose exchange has ended.
    pub fn place(&self) -> Option<usize> {
        match self {
            Self::Ended(place, _) | Self::NothingSent(place) => Some(*place),
            Self::Waiting | Self::Yielding => None,
        }
    }
}

/// The connection was closed before a byte of the request was written: the request may be sent on
/// another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NothingSent;

/// A protocol over one connection. Implementations know nothing of schedules, pools or records.
pub(crate) trait Connection: Sized {
    /// Whether `begin` only queues requests, so that `flush` writes several of them at once.
    const IS_BATCHED: bool = false;

    /// Starts to connect. `stamps`: source of the response timestamps. `places`: maximum number of
    /// concurrent exchanges.
    fn open(route: &Route, stamps: ReceiveStamps, places: usize) -> io::Result<Self>;

    /// The socket, for the reactor.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Continues connecting; returns whether requests can be sent now.
    fn is_connected(&mut self) -> io::Result<bool>;

    /// Concurrent exchanges that the server allows, as far as known.
    #[inline(always)]
    fn max_exchanges(&self) -> usize {
        1
    }

    /// The limit that the server announced, if it did.
    fn announced_limit(&self) -> Option<usize> {
        None
    }

    /// Starts an exchange in a free place with a first write at `now_ns`; returns its completion if
    /// it has already completed. `is_last` asks the server to close the connection after its
    /// response.
    fn begin(
        &mut self,
        place: usize,
        request: &Request,
        is_last: bool,
        now_ns: u64,
    ) -> Result<Option<Exchanged>, NothingSent>;

    /// Writes what is queued. Exchanges that fail by that are reported by `advance`.
    #[inline(always)]
    fn flush(&mut self) {}

    /// Starts another turn of the engine, in which it may read for a limited time.
    #[inline(always)]
    fn start_turn(&mut self) {}

    /// Continues the exchanges after an event on the socket, until one of them ends. `request_at`
    /// gives the request in each place.
    fn advance<'r>(
        &mut self,
        request_at: impl Fn(usize) -> &'r Request,
        is_hangup: bool,
        inbox: &mut Inbox,
    ) -> Progress;

    /// The values of the `Set-Cookie` fields of the latest response in this place, if its request
    /// keeps cookies.
    fn take_set_cookies(&mut self, place: usize) -> Vec<Vec<u8>>;

    /// Cancels the exchange in this place if it has not ended; returns whether the connection is
    /// still usable.
    fn cancel(&mut self, _place: usize) -> bool {
        false
    }

    /// The values captured from the response just received, in the order of the captures; none if
    /// the response was not correct.
    fn take_captured(&mut self, _place: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Handles an event on the socket while no request was in flight: returns whether the
    /// connection is closed.
    fn is_over_while_idle(&mut self, inbox: &mut Inbox) -> bool;

    /// Whether the latest turn left unread data that the reactor will not report again.
    fn has_left_unread(&self) -> bool {
        false
    }

    /// Whether the connection is known to be closed, or to accept no more requests, without
    /// checking the socket.
    fn is_closed(&self) -> bool;

    /// Notes that bytes had arrived before the first request was sent. Not every protocol forbids
    /// that.
    fn note_early_bytes(&mut self) {}

    /// Why the connection ended without a request: the server's reason for closing it before it
    /// sent anything, or an unsolicited response. Returned once.
    fn take_refusal(&mut self) -> Option<io::Error> {
        None
    }

    /// Timestamps of the current or latest exchange in this place.
    fn stamps(&self, place: usize) -> ExchangeStamps;

    /// Requests written to this connection, including the current ones.
    fn requests(&self) -> u64;
}

/// The outcome of a complete response.
pub(crate) fn outcome_of_response(
    request: &Request,
    status: u16,
    is_body_correct: bool,
) -> Outcome {
    match (request.accepts(status), is_body_correct) {
        (true, true) => Outcome::Ok,
        (true, false) => Outcome::BadBody,
        (false, _) => Outcome::HttpStatus,
    }
}

/// The outcome of an exchange whose connection was closed: the keep-alive race is distinguished
/// from other failures.
pub(crate) fn outcome_of_end(requests: u64, stamps: &ExchangeStamps) -> Outcome {
    if requests > 1 && stamps.first_byte_ns == 0 {
        Outcome::Stale
    } else {
        Outcome::Reset
    }
}

/// Classifies a failure to connect.
pub(crate) fn connect_failure(error: &io::Error) -> Outcome {
    use rustix::io::Errno;
    let client_limits = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::PERM,
    ];
    if client_limits
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    {
        return Outcome::ClientError;
    }

    match error.kind() {
        io::ErrorKind::TimedOut => Outcome::ConnectTimeout,
        io::ErrorKind::ConnectionReset => Outcome::Reset,
        _ => Outcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_client_resources_is_a_client_error() {
        let from = |errno: rustix::io::Errno| {
            connect_failure(&io::Error::from_raw_os_error(errno.raw_os_error()))
        };
        assert_eq!(from(rustix::io::Errno::MFILE), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::ADDRNOTAVAIL), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::CONNREFUSED), Outcome::Refused);
        assert_eq!(from(rustix::io::Errno::TIMEDOUT), Outcome::ConnectTimeout);
    }
}
