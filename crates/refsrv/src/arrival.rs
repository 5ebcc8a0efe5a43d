//! When bytes arrived: when the server read them, and when the kernel queued them.
//!
//! A read has to wait until the thread has a core; a halted virtual core takes tens of microseconds
//! to wake up. The kernel timestamp does not, so it shows how evenly a client sends even if the
//! server is delayed.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use crate::clock::{NS_PER_S, now_ns, realtime_ahead_ns};

const RECEIVE_BYTES: usize = 4096;

/// How far a timestamp may lie outside the time between two reads before it is rejected: the
/// accuracy of reading two clocks together.
const TOLERANCE_NS: u64 = 5_000;

/// When bytes arrived. Nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Right after the recv that delivered the last of them.
    pub read_ns: u64,
    /// When the kernel had queued the last bytes of that recv; `None` if not requested, or if
    /// rejected.
    pub queued_ns: Option<u64>,
}

impl Arrival {
    /// For bytes that were received earlier and have no timestamp.
    pub(crate) fn now() -> Self {
        Self {
            read_ns: now_ns(),
            queued_ns: None,
        }
    }
}

/// Requests kernel timestamps for the connections of this listener. The first request on a machine
/// takes effect some milliseconds later: too late to request them per connection.
pub(crate) fn request_timestamps(listener: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(listener, ReceiveTimestampns, &true)?)
}

/// Receives on a connection whose listener requested kernel timestamps.
#[derive(Debug)]
pub(crate) struct StampedReceiver {
    control: Vec<u8>,
    /// Bytes not yet received were queued no earlier, so this is the lower bound of their
    /// timestamp.
    last_read_ns: u64,
}

impl StampedReceiver {
    pub(crate) fn new() -> Self {
        Self {
            control: nix::cmsg_space!(TimeSpec),
            last_read_ns: 0,
        }
    }

    /// Appends what has arrived to `received`; `None` at the end of the connection.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        received: &mut Vec<u8>,
    ) -> io::Result<Option<Arrival>> {
        let mut buffer = [0; RECEIVE_BYTES];
        let mut pieces = [IoSliceMut::new(&mut buffer)];
        let message = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut pieces,
            Some(&mut self.control),
            MsgFlags::empty(),
        )?;
        let read_ns = now_ns();
        let count = message.bytes;
        let stamp_ns = message.cmsgs()?.find_map(timestamp_of);
        received.extend_from_slice(&buffer[..count]);
        let queued_ns = stamp_ns.and_then(|stamp_ns| self.to_monotonic(stamp_ns, read_ns));
        self.last_read_ns = read_ns;

        Ok((count > 0).then_some(Arrival { read_ns, queued_ns }))
    }

    /// Converts a `CLOCK_REALTIME` timestamp to `CLOCK_MONOTONIC`; `None` if the two clocks could
    /// not be read together, or if a step of the former puts it before the last read or after this
    /// one.
    fn to_monotonic(&self, stamp_ns: u64, read_ns: u64) -> Option<u64> {
        let queued_ns = stamp_ns.checked_sub(realtime_ahead_ns()?)?;
        let plausible = self.last_read_ns.saturating_sub(TOLERANCE_NS)..=read_ns + TOLERANCE_NS;
        plausible
            .contains(&queued_ns)
            .then(|| queued_ns.min(read_ns))
    }
}

fn timestamp_of(message: ControlMessageOwned) -> Option<u64> {
    let ControlMessageOwned::ScmTimestampns(stamp) = message else {
        return None;
    };

    let (seconds, nanoseconds) = (
        u64::try_from(stamp.tv_sec()).ok()?,
        u64::try_from(stamp.tv_nsec()).ok()?,
    );
    Some(seconds * NS_PER_S + nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_kernel_timestamp_does_not_depend_on_when_bytes_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        request_timestamps(&listener).expect("option");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        let mut receiver = StampedReceiver::new();
        let mut received = Vec::new();

        let arrival = (0..100).find_map(|_| {
            received.clear();
            let from_ns = now_ns();
            client.write_all(b"ping").expect("write");
            let sent_ns = now_ns();
            sleep(Duration::from_millis(10));
            let arrival = receiver
                .receive(server.as_fd(), &mut received)
                .expect("read")
                .expect("bytes");
            arrival
                .queued_ns
                .map(|queued_ns| (from_ns, queued_ns, sent_ns, arrival.read_ns))
        });

        let (from_ns, queued_ns, sent_ns, read_ns) = arrival.expect("loopback has timestamps");
        assert_eq!(received, b"ping");
        // During the send, up to the accuracy of reading the clocks.
        assert!(
            from_ns <= queued_ns + 5_000 && queued_ns <= sent_ns + 5_000,
            "{from_ns} {queued_ns} {sent_ns}"
        );
        assert!(read_ns >= sent_ns + 10_000_000 - 5_000);

        drop(client);
        assert_eq!(
            receiver
                .receive(server.as_fd(), &mut received)
                .expect("read"),
            None
        );
    }

    #[test]
    fn an_implausible_timestamp_is_rejected() {
        let receiver = StampedReceiver {
            control: Vec::new(),
            last_read_ns: now_ns(),
        };
        let read_ns = receiver.last_read_ns + 1_000_000_000;
        let ahead_ns = realtime_ahead_ns().expect("both clocks");
        let stamped = |queued_ns: u64| receiver.to_monotonic(queued_ns + ahead_ns, read_ns);
        let inside_ns = receiver.last_read_ns + 500_000_000;

        assert!(stamped(inside_ns).expect("plausible").abs_diff(inside_ns) < 100_000);
        assert_eq!(stamped(receiver.last_read_ns - 100_000_000), None);
        assert_eq!(stamped(read_ns + 100_000_000), None);
        assert_eq!(receiver.to_monotonic(0, read_ns), None);
    }
}
