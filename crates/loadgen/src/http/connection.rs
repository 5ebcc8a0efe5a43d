//! What the engine needs of a connection, whatever the protocol: open it, exchange one request at a
//! time, know whether it may be used again. Nothing here ever blocks; the engine says when there is
//! something to do.

use std::io;
use std::os::fd::BorrowedFd;

use crate::base::clock::monotonic_ns;
use crate::http::inbox::Inbox;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

/// Instants of an exchange at the socket, in nanoseconds; 0 where it has not come that far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExchangeStamps {
    /// Immediately before the first write.
    pub write_start_ns: u64,
    /// When the first bytes of the response came: by the kernel's stamp, or else after the read
    /// that
    /// returned them.
    pub first_byte_ns: u64,
    /// When the latest bytes came, likewise.
    pub last_byte_ns: u64,
}

/// The end of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub last_byte_ns: u64,
    /// When we knew of it.
    pub known_ns: u64,
    /// How much later than the kernel we had it; `None` where the kernel was not asked, or did not
    /// say.
    pub receive_delay_ns: Option<u64>,
    /// Whether the connection lives on.
    pub is_reusable: bool,
    /// Whether it was the server that ended the connection, or said that it would; else we do, of
    /// a response that leaves no other way, for example.
    pub is_servers_end: bool,
}

impl Exchanged {
    /// An exchange whose end was found just now, and the server's end of the connection with it.
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
}

/// How far an exchange has come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// The reactor will tell when there is more to do.
    Waiting,
    /// There is more to read, but others have waited long enough.
    Yielding,
    /// It has ended.
    Ended(Exchanged),
    /// Nothing of it went out.
    NothingSent,
}

/// The connection had ended before a byte of the request was written: the request may go out on
/// another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NothingSent;

/// A protocol over one connection. Implementations know nothing of schedules, pools or records.
pub(crate) trait Connection: Sized {
    /// Begins to connect. `stamps`: whose instants of answers count.
    fn open(route: &Route, stamps: ReceiveStamps) -> io::Result<Self>;

    /// The socket, for the reactor.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Goes on connecting; whether requests can be sent now.
    fn is_connected(&mut self) -> io::Result<bool>;

    /// Begins an exchange with a first write at `now_ns`; its end, in case that has come already.
    /// `is_last` asks the server to close the connection after its response.
    fn begin(
        &mut self,
        request: &Request,
        is_last: bool,
        now_ns: u64,
    ) -> Result<Option<Exchanged>, NothingSent>;

    /// Goes on with the exchange after something happened to the socket.
    fn advance(&mut self, request: &Request, is_hangup: bool, inbox: &mut Inbox) -> Progress;

    /// The values of the `Set-Cookie` fields of the response that has come, if its request asks to
    /// keep them.
    fn take_set_cookies(&mut self) -> Vec<Vec<u8>>;

    /// Something happened to the socket while no request was under way: whether the connection is
    /// over.
    fn is_over_while_idle(&mut self, inbox: &mut Inbox) -> bool;

    /// Whether the connection is over, as far as is known without asking the socket.
    fn is_closed(&self) -> bool;

    /// Instants of the exchange under way, or of the latest.
    fn stamps(&self) -> ExchangeStamps;

    /// Requests that were written to this connection, the one under way included.
    fn requests(&self) -> u64;
}

/// How a complete response ended.
pub(crate) fn outcome_of_answer(request: &Request, status: u16, is_body_right: bool) -> Outcome {
    match (request.accepts(status), is_body_right) {
        (true, true) => Outcome::Ok,
        (true, false) => Outcome::BadBody,
        (false, _) => Outcome::HttpStatus,
    }
}

/// How an exchange failed whose connection ended: the keep-alive race is told apart from a failure
/// of its own.
pub(crate) fn outcome_of_end(requests: u64, stamps: &ExchangeStamps) -> Outcome {
    if requests > 1 && stamps.first_byte_ns == 0 {
        Outcome::Stale
    } else {
        Outcome::Reset
    }
}

/// Sorts a failure to connect.
pub(crate) fn connect_failure(error: &io::Error) -> Outcome {
    use rustix::io::Errno;
    let own_limits = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::PERM,
    ];
    if own_limits
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
    fn running_out_of_our_own_resources_is_our_fault() {
        let from = |errno: rustix::io::Errno| {
            connect_failure(&io::Error::from_raw_os_error(errno.raw_os_error()))
        };
        assert_eq!(from(rustix::io::Errno::MFILE), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::ADDRNOTAVAIL), Outcome::ClientError);
        assert_eq!(from(rustix::io::Errno::CONNREFUSED), Outcome::Refused);
        assert_eq!(from(rustix::io::Errno::TIMEDOUT), Outcome::ConnectTimeout);
    }
}
