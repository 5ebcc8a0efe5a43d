//! A thread's read buffer, and the times at which the kernel received the bytes that were read.
//!
//! The kernel timestamps a segment when it queues it; the thread reads it later, when it runs.
//! Kernel timestamps exclude that delay from response times. They use `CLOCK_REALTIME`, so they are
//! converted to `CLOCK_MONOTONIC` by an offset that is measured regularly.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::{NS_PER_MS, NS_PER_S, monotonic_ns, realtime_ns};
use crate::http::decoder::KnownHead;
use crate::net::socket::Transfer;
use crate::record::wrong_responses::WrongResponses;

/// Maximum size of one read. All connections of a thread share the buffer.
const BUFFER_BYTES: usize = 64 * 1024;

/// An offset between the clocks that is older than this is measured again.
const MAX_OFFSET_AGE_NS: u64 = 10 * NS_PER_MS;

/// Clocks are slewed by at most 500 ppm. More than this between two readings is a step.
const MAX_SLEW_NS: u64 = MAX_OFFSET_AGE_NS / 1_000;

/// Two readings of one clock that are further apart than this were interrupted, for example by
/// another program.
const MAX_READING_NS: u64 = 5_000;

/// Attempts to read both clocks closely together. On a busy core, the next response tries again.
const MAX_READING_ATTEMPTS: usize = 5;

/// How far a converted timestamp may lie outside the exchange before it is rejected.
const TOLERANCE_NS: u64 = 50_000;

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub transfer: Transfer,
    /// When the kernel had queued the last of these bytes, on `CLOCK_REALTIME`.
    pub queued_realtime_ns: Option<u64>,
}

/// Kernel timestamps that were not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RejectedTimestamps {
    /// Number of kernel timestamps that were before the start or after the end of the request, or
    /// that could not be converted to `CLOCK_MONOTONIC`.
    pub count: u64,
    /// Number of times that the wall clock was stepped during the load.
    pub clock_steps: u64,
}

impl RejectedTimestamps {
    /// Adds another thread's counts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.clock_steps += other.clock_steps;
    }
}

/// A thread's buffer, the latest head of the server, its incorrect responses, and the offset
/// between the clocks.
pub(crate) struct Inbox {
    pub buffer: Box<[u8]>,
    pub known_head: KnownHead,
    pub wrong_responses: WrongResponses,
    control: Vec<u8>,
    offset: ClockOffset,
}

impl Inbox {
    pub fn new() -> Self {
        let control = nix::cmsg_space!(TimeSpec);
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            known_head: KnownHead::default(),
            wrong_responses: WrongResponses::default(),
            control,
            offset: ClockOffset::read(),
        }
    }

    /// Reads what has arrived, with the kernel timestamp.
    pub fn receive_stamped(&mut self, socket: BorrowedFd<'_>) -> Received {
        loop {
            let mut pieces = [IoSliceMut::new(&mut self.buffer)];
            let result = recvmsg::<()>(
                socket.as_raw_fd(),
                &mut pieces,
                Some(&mut self.control),
                MsgFlags::empty(),
            );
            let transfer = match result {
                Ok(message) if message.bytes > 0 => {
                    let queued_realtime_ns = message
                        .cmsgs()
                        .ok()
                        .and_then(|mut all| all.find_map(stamp_of));
                    return Received {
                        transfer: Transfer::Bytes(message.bytes),
                        queued_realtime_ns,
                    };
                }
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => Transfer::WouldBlock,
                Ok(_) => Transfer::Closed,
                Err(_) => Transfer::Broken,
            };
            return Received {
                transfer,
                queued_realtime_ns: None,
            };
        }
    }

    /// Converts a kernel timestamp to `CLOCK_MONOTONIC`, between `from_ns` and `to_ns`. `None` if
    /// it is rejected.
    pub fn queued_ns(&mut self, realtime_ns: u64, from_ns: u64, to_ns: u64) -> Option<u64> {
        let plausible = from_ns.saturating_sub(TOLERANCE_NS)..=to_ns + TOLERANCE_NS;
        let queued_ns = self
            .offset
            .monotonic_of(realtime_ns, to_ns)
            .filter(|queued_ns| plausible.contains(queued_ns));
        self.offset.rejected_timestamps.count += u64::from(queued_ns.is_none());
        Some(queued_ns?.clamp(from_ns, to_ns))
    }

    /// Counts of rejected kernel timestamps.
    pub fn rejected_timestamps(&self) -> RejectedTimestamps {
        self.offset.rejected_timestamps
    }
}

fn stamp_of(message: ControlMessageOwned) -> Option<u64> {
    let ControlMessageOwned::ScmTimestampns(stamp) = message else {
        return None;
    };

    let (seconds, nanoseconds) = (
        u64::try_from(stamp.tv_sec()).ok()?,
        u64::try_from(stamp.tv_nsec()).ok()?,
    );
    Some(seconds * NS_PER_S + nanoseconds)
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, at one point in time.
#[derive(Clone, Copy, Debug)]
struct Reading {
    offset_ns: u64,
    read_ns: u64,
}

impl Reading {
    /// Reads both clocks as close together as possible; `None` if every attempt was interrupted.
    fn take() -> Option<Self> {
        (0..MAX_READING_ATTEMPTS)
            .find_map(|_| Self::between(monotonic_ns(), realtime_ns(), monotonic_ns()))
    }

    /// A reading of `CLOCK_REALTIME` between two of `CLOCK_MONOTONIC`; `None` if these are too far
    /// apart.
    fn between(before_ns: u64, realtime_ns: u64, after_ns: u64) -> Option<Self> {
        let apart_ns = after_ns - before_ns;
        let offset_ns = realtime_ns.saturating_sub(before_ns + apart_ns / 2);
        (apart_ns <= MAX_READING_NS).then_some(Self {
            offset_ns,
            read_ns: after_ns,
        })
    }

    /// Whether a clock was stepped between this reading and a later one.
    fn is_step(&self, later: &Self) -> bool {
        let periods = (later.read_ns - self.read_ns).div_ceil(MAX_OFFSET_AGE_NS);
        later.offset_ns.abs_diff(self.offset_ns) > MAX_READING_NS + MAX_SLEW_NS * periods
    }
}

/// Converts timestamps from `CLOCK_REALTIME` to `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
struct ClockOffset {
    /// The latest reading that was not interrupted.
    reading: Option<Reading>,
    /// Timestamps from before a step of the clock cannot be converted.
    valid_from_ns: u64,
    rejected_timestamps: RejectedTimestamps,
}

impl ClockOffset {
    fn read() -> Self {
        Self {
            reading: Reading::take(),
            valid_from_ns: 0,
            rejected_timestamps: RejectedTimestamps::default(),
        }
    }

    /// `None` if the offset is not known precisely enough, or if the clock was stepped after the
    /// timestamp.
    fn monotonic_of(&mut self, realtime_ns: u64, now_ns: u64) -> Option<u64> {
        let is_old = |reading: &Reading| now_ns.saturating_sub(reading.read_ns) > MAX_OFFSET_AGE_NS;
        if self.reading.as_ref().is_none_or(is_old) {
            self.renew(Reading::take()?);
        }
        let queued_ns = realtime_ns.checked_sub(self.reading?.offset_ns)?;
        (queued_ns >= self.valid_from_ns).then_some(queued_ns)
    }

    fn renew(&mut self, fresh: Reading) {
        if self.reading.is_some_and(|reading| reading.is_step(&fresh)) {
            self.rejected_timestamps.clock_steps += 1;
            self.valid_from_ns = fresh.read_ns;
        }
        self.reading = Some(fresh);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};

    use super::*;

    #[test]
    fn a_kernel_timestamp_is_the_arrival_time_not_the_read_time() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let near = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (mut far, _) = listener.accept().expect("accept");
        setsockopt(&near, ReceiveTimestampns, &true).expect("option");
        let mut inbox = Inbox::new();
        // The kernel starts to timestamp a moment after the first socket on the machine has
        // requested it.
        let is_stamping = (0..100).any(|_| {
            far.write_all(b"?").expect("write");
            std::thread::sleep(Duration::from_millis(10));
            inbox
                .receive_stamped(near.as_fd())
                .queued_realtime_ns
                .is_some()
        });

        assert!(is_stamping, "loopback has kernel timestamps");

        let before_ns = monotonic_ns();
        far.write_all(b"hello").expect("write");
        let written_ns = monotonic_ns();
        std::thread::sleep(Duration::from_millis(30));
        let received = inbox.receive_stamped(near.as_fd());
        let now_ns = monotonic_ns();

        assert_eq!(
            (received.transfer, &inbox.buffer[..5]),
            (Transfer::Bytes(5), b"hello".as_slice())
        );

        let stamp_ns = received.queued_realtime_ns.expect("a stamp");
        let queued_ns = inbox
            .queued_ns(stamp_ns, before_ns, now_ns)
            .expect("believed");

        // Without interruption, the offset between two clocks is accurate to well under a
        // millisecond.
        assert!(
            (before_ns..written_ns + NS_PER_MS).contains(&queued_ns),
            "{before_ns} {queued_ns} {written_ns}"
        );
        assert!(now_ns - queued_ns > 25 * NS_PER_MS);
    }

    #[test]
    fn a_kernel_timestamp_outside_its_exchange_is_rejected() {
        let mut inbox = Inbox::new();
        let now_ns = monotonic_ns();

        assert_eq!(
            inbox.queued_ns(realtime_ns() + NS_PER_S, now_ns - 1_000, now_ns),
            None
        );
        assert_eq!(
            inbox.queued_ns(realtime_ns() - NS_PER_S, now_ns - 1_000, now_ns),
            None
        );
        assert_eq!(inbox.rejected_timestamps().count, 2);
    }

    #[test]
    fn interrupted_readings_are_discarded() {
        let (before_ns, realtime_ns) = (1_000_000, 7_000_000);
        let close = Reading::between(before_ns, realtime_ns, before_ns + 100).expect("close");
        assert_eq!(close.offset_ns, 7_000_000 - 1_000_050);
        assert!(Reading::between(before_ns, realtime_ns, before_ns + MAX_READING_NS + 1).is_none());
    }

    #[test]
    fn a_clock_step_is_counted_once_and_earlier_timestamps_are_rejected() {
        let mut offset = ClockOffset::read();
        let mut stepped = offset.reading.expect("an uninterrupted reading");
        stepped.offset_ns += NS_PER_MS;
        stepped.read_ns -= 2 * MAX_OFFSET_AGE_NS;
        offset.reading = Some(stepped);
        let stamp_ns = realtime_ns();
        let now_ns = monotonic_ns();

        assert_eq!(offset.monotonic_of(stamp_ns, now_ns), None);
        // Read later, but taken before the step was noticed.
        assert_eq!(offset.monotonic_of(stamp_ns, monotonic_ns()), None);
        assert!(offset.monotonic_of(realtime_ns(), monotonic_ns()).is_some());
        assert_eq!(offset.rejected_timestamps.clock_steps, 1);
    }

    #[test]
    fn slow_drift_is_not_a_step() {
        let reading = Reading {
            offset_ns: NS_PER_S,
            read_ns: 0,
        };
        let later = |offset_ns, read_ns| Reading { offset_ns, read_ns };

        assert!(!reading.is_step(&later(
            NS_PER_S + MAX_SLEW_NS * 100,
            100 * MAX_OFFSET_AGE_NS
        )));
        assert!(reading.is_step(&later(
            NS_PER_S + MAX_READING_NS + MAX_SLEW_NS + 1,
            MAX_OFFSET_AGE_NS
        )));
        assert!(reading.is_step(&later(
            NS_PER_S - MAX_READING_NS - MAX_SLEW_NS - 1,
            MAX_OFFSET_AGE_NS
        )));
    }
}
