//! What a thread reads into, and the instants at which the kernel had what it read.
//!
//! The kernel stamps a segment when it queues it; we read it later, once our thread has its turn.
//! The stamp takes that delay of our own out of a response time. It is on `CLOCK_REALTIME`, so it
//! is carried over to `CLOCK_MONOTONIC` by an offset that is read again and again.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::clock::{NS_PER_MS, NS_PER_S, monotonic_ns, realtime_ns};
use crate::http::decoder::KnownHead;
use crate::net::socket::Transfer;

/// One read takes at most this much; shared by all connections of a thread.
const BUFFER_BYTES: usize = 64 * 1024;

/// The offset between the clocks is older than this: it is read again.
const OFFSET_LIFE_NS: u64 = 10 * NS_PER_MS;

/// Clocks are disciplined by 500 millionths at most. More than this between two readings is a step.
const LARGEST_SLEW_NS: u64 = OFFSET_LIFE_NS / 1_000;

/// Two looks at one clock that are further apart than this had something else in between, such as
/// another program.
const WIDEST_READING_NS: u64 = 5_000;

/// So often is it tried to read both clocks closely. On a core that is really busy, the next answer
/// tries again.
const MOST_READINGS: usize = 5;

/// How far a carried-over stamp may lie outside the exchange before it is not believed.
const TOLERANCE_NS: u64 = 50_000;

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub transfer: Transfer,
    /// When the kernel had queued the last of these bytes, on `CLOCK_REALTIME`.
    pub queued_realtime_ns: Option<u64>,
}

/// What cast doubt on the kernel timestamps; such responses have our own instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct StampDoubts {
    /// Stamps outside the exchange that they belong to, and those that could not be carried over to
    /// our clock.
    pub rejected: u64,
    /// Steps of the wall clock.
    pub clock_steps: u64,
}

impl StampDoubts {
    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rejected += other.rejected;
        self.clock_steps += other.clock_steps;
    }
}

/// A thread's buffer, the head that the server sent last, and the thread's view of the kernel's
/// clock.
pub(crate) struct Inbox {
    pub buffer: Box<[u8]>,
    pub known_head: KnownHead,
    control: Vec<u8>,
    offset: ClockOffset,
}

impl Inbox {
    pub fn new() -> Self {
        let control = nix::cmsg_space!(TimeSpec);
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            known_head: KnownHead::default(),
            control,
            offset: ClockOffset::read(),
        }
    }

    /// Reads what has come, with the kernel's stamp.
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
                Err(Errno::EAGAIN) => Transfer::NotNow,
                Ok(_) => Transfer::Over,
                Err(_) => Transfer::Broken,
            };
            return Received {
                transfer,
                queued_realtime_ns: None,
            };
        }
    }

    /// Carries a stamp of the kernel over to our clock: an instant between `from_ns` and `to_ns`.
    /// `None` when it is not to be believed.
    pub fn queued_ns(&mut self, realtime_ns: u64, from_ns: u64, to_ns: u64) -> Option<u64> {
        let plausible = from_ns.saturating_sub(TOLERANCE_NS)..=to_ns + TOLERANCE_NS;
        let queued_ns = self
            .offset
            .monotonic_of(realtime_ns, to_ns)
            .filter(|queued_ns| plausible.contains(queued_ns));
        self.offset.doubts.rejected += u64::from(queued_ns.is_none());
        Some(queued_ns?.clamp(from_ns, to_ns))
    }

    /// What cast doubt on the kernel timestamps.
    pub fn doubts(&self) -> StampDoubts {
        self.offset.doubts
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

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, read at one instant.
#[derive(Clone, Copy, Debug)]
struct Reading {
    offset_ns: u64,
    read_ns: u64,
}

impl Reading {
    /// Both clocks read at the same instant as nearly as can be; `None` while something keeps
    /// coming in between.
    fn take() -> Option<Self> {
        (0..MOST_READINGS)
            .find_map(|_| Self::between(monotonic_ns(), realtime_ns(), monotonic_ns()))
    }

    /// Wall time read between two instants, as long as they are close: it belongs to either as well
    /// as to the other.
    fn between(before_ns: u64, realtime_ns: u64, after_ns: u64) -> Option<Self> {
        let apart_ns = after_ns - before_ns;
        let offset_ns = realtime_ns.saturating_sub(before_ns + apart_ns / 2);
        (apart_ns <= WIDEST_READING_NS).then_some(Self {
            offset_ns,
            read_ns: after_ns,
        })
    }

    /// Whether a clock was stepped between this reading and a later one.
    fn is_step(&self, later: &Self) -> bool {
        let lives = (later.read_ns - self.read_ns).div_ceil(OFFSET_LIFE_NS);
        later.offset_ns.abs_diff(self.offset_ns) > WIDEST_READING_NS + LARGEST_SLEW_NS * lives
    }
}

/// What carries instants from `CLOCK_REALTIME` to `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
struct ClockOffset {
    /// The latest reading that was close enough.
    reading: Option<Reading>,
    /// Stamps of before a step were made by a clock that nobody can read any more.
    valid_from_ns: u64,
    doubts: StampDoubts,
}

impl ClockOffset {
    fn read() -> Self {
        Self {
            reading: Reading::take(),
            valid_from_ns: 0,
            doubts: StampDoubts::default(),
        }
    }

    /// `None` where the offset is not known closely enough, or where the clock was stepped after
    /// the stamp.
    fn monotonic_of(&mut self, realtime_ns: u64, now_ns: u64) -> Option<u64> {
        let is_old = |reading: &Reading| now_ns.saturating_sub(reading.read_ns) > OFFSET_LIFE_NS;
        if self.reading.as_ref().is_none_or(is_old) {
            self.renew(Reading::take()?);
        }
        let queued_ns = realtime_ns.checked_sub(self.reading?.offset_ns)?;
        (queued_ns >= self.valid_from_ns).then_some(queued_ns)
    }

    fn renew(&mut self, fresh: Reading) {
        if self.reading.is_some_and(|reading| reading.is_step(&fresh)) {
            self.doubts.clock_steps += 1;
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
    fn a_stamp_tells_when_bytes_came_and_not_when_they_were_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let near = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (mut far, _) = listener.accept().expect("accept");
        setsockopt(&near, ReceiveTimestampns, &true).expect("option");
        let mut inbox = Inbox::new();
        // The kernel begins to stamp a moment after the first socket of the machine has asked for
        // it.
        let is_stamping = (0..100).any(|_| {
            far.write_all(b"?").expect("write");
            std::thread::sleep(Duration::from_millis(10));
            inbox
                .receive_stamped(near.as_fd())
                .queued_realtime_ns
                .is_some()
        });
        assert!(is_stamping, "loopback has stamps");
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
        // The offset between two clocks that nobody stopped is right to well under a millisecond.
        assert!(
            (before_ns..written_ns + NS_PER_MS).contains(&queued_ns),
            "{before_ns} {queued_ns} {written_ns}"
        );
        assert!(now_ns - queued_ns > 25 * NS_PER_MS);
    }

    #[test]
    fn a_stamp_outside_its_exchange_is_not_believed() {
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
        assert_eq!(inbox.doubts().rejected, 2);
    }

    #[test]
    fn a_reading_that_was_interrupted_is_none() {
        let (before_ns, realtime_ns) = (1_000_000, 7_000_000);
        let close = Reading::between(before_ns, realtime_ns, before_ns + 100).expect("close");
        assert_eq!(close.offset_ns, 7_000_000 - 1_000_050);
        assert!(
            Reading::between(before_ns, realtime_ns, before_ns + WIDEST_READING_NS + 1).is_none()
        );
    }

    #[test]
    fn a_stepped_clock_is_noticed_once_and_what_it_stamped_before_is_not_believed() {
        let mut offset = ClockOffset::read();
        let mut stepped = offset.reading.expect("a quiet moment");
        stepped.offset_ns += NS_PER_MS;
        stepped.read_ns -= 2 * OFFSET_LIFE_NS;
        offset.reading = Some(stepped);
        let stamp_ns = realtime_ns();
        let now_ns = monotonic_ns();
        assert_eq!(offset.monotonic_of(stamp_ns, now_ns), None);
        // Read later, but made before the step was noticed.
        assert_eq!(offset.monotonic_of(stamp_ns, monotonic_ns()), None);
        assert!(offset.monotonic_of(realtime_ns(), monotonic_ns()).is_some());
        assert_eq!(offset.doubts.clock_steps, 1);
    }

    #[test]
    fn a_slow_drift_is_no_step() {
        let reading = Reading {
            offset_ns: NS_PER_S,
            read_ns: 0,
        };
        let later = |offset_ns, read_ns| Reading { offset_ns, read_ns };
        assert!(!reading.is_step(&later(
            NS_PER_S + LARGEST_SLEW_NS * 100,
            100 * OFFSET_LIFE_NS
        )));
        assert!(reading.is_step(&later(
            NS_PER_S + WIDEST_READING_NS + LARGEST_SLEW_NS + 1,
            OFFSET_LIFE_NS
        )));
        assert!(reading.is_step(&later(
            NS_PER_S - WIDEST_READING_NS - LARGEST_SLEW_NS - 1,
            OFFSET_LIFE_NS
        )));
    }
}
