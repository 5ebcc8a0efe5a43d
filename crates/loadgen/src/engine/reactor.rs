//! Waits for sockets, at most until a timestamp: epoll with nanosecond timeouts.
//!
//! The loop is custom-made because it controls the order of work: a due send goes out before the
//! next response is read.

use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{Errno, read};
use rustix::thread::set_current_timer_slack;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::base::clock::{NS_PER_MS, NS_PER_S};

/// Events taken in one call.
const BATCH: usize = 256;

/// Time between two beats: less than what counts as a stall.
const HEARTBEAT_NS: u64 = 2 * NS_PER_MS;
/// No connection has this token.
const HEARTBEAT_TOKEN: u64 = u64::MAX;

/// What happened to a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The token that the socket was registered with.
    pub token: u64,
    /// The peer has closed its side, or the connection has failed: bytes that arrived before may
    /// still be unread.
    pub is_hangup: bool,
    /// Bytes have arrived, or the peer has closed its side.
    pub is_readable: bool,
}

/// The sockets of one thread.
pub(crate) struct Reactor {
    epoll: OwnedFd,
    events: Vec<Event>,
    /// Whether the last wait reported every socket that had an event when it ended.
    has_reported_all: bool,
    heartbeat: Option<OwnedFd>,
    /// Whether waits end after `HEARTBEAT_NS` at most.
    is_heartbeat_enabled: bool,
}

impl Reactor {
    /// An empty reactor for the calling thread.
    pub fn new() -> std::io::Result<Self> {
        // By default the kernel may wake a SCHED_OTHER thread 50 µs late, to save wake-ups.
        set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(BATCH),
            has_reported_all: true,
            heartbeat: None,
            is_heartbeat_enabled: false,
        })
    }

    /// Ends every further wait after `HEARTBEAT_NS` at most, without an event.
    pub fn enable_heartbeat(&mut self) {
        self.is_heartbeat_enabled = true;
    }

    /// Uses a separate periodic timer: such a short wait timeout would program the processor's
    /// timer each time, which costs as much as a third of a request.
    fn begin_heartbeat(&mut self) -> std::io::Result<()> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let each = Timespec {
            tv_sec: 0,
            tv_nsec: HEARTBEAT_NS as _,
        };
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: each,
                it_value: each,
            },
        )?;
        epoll::add(
            &self.epoll,
            &timer,
            EventData::new_u64(HEARTBEAT_TOKEN),
            EventFlags::IN,
        )?;
        self.heartbeat = Some(timer);

        Ok(())
    }

    /// Maximum duration of a wait with this timeout.
    pub fn longest_wait_ns(&self, timeout_ns: u64) -> u64 {
        if self.heartbeat.is_some() {
            timeout_ns.min(HEARTBEAT_NS)
        } else {
            timeout_ns
        }
    }

    /// Watches a socket until it is closed. Edge-triggered: the caller has to read until nothing is
    /// left.
    pub fn register(&self, socket: BorrowedFd<'_>, token: u64) -> std::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            flags,
        )?)
    }

    /// Waits no longer than `timeout_ns`; 0 polls. Returns how many sockets have events.
    pub fn wait(&mut self, timeout_ns: u64) -> std::io::Result<usize> {
        if self.is_heartbeat_enabled && self.heartbeat.is_none() {
            self.begin_heartbeat()?;
        }

        self.events.clear();
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ns / NS_PER_S).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ns % NS_PER_S) as _,
        };
        let waited = epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        );
        self.has_reported_all = waited.is_ok_and(|count| count < BATCH);

        match waited {
            Ok(_) => self.without_heartbeat(),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the heartbeat from the events of the last wait and returns the number of the others.
    /// Reads the timer, which would otherwise stay readable.
    fn without_heartbeat(&mut self) -> std::io::Result<usize> {
        if let Some(timer) = &self.heartbeat {
            let total = self.events.len();
            self.events
                .retain(|event| event.data.u64() != HEARTBEAT_TOKEN);
            if self.events.len() < total {
                read(timer, &mut [0; size_of::<u64>()])?;
            }
        }
        Ok(self.events.len())
    }

    /// Whether the last wait reported every socket that had an event when it ended. A wait
    /// interrupted by a signal reports none.
    pub fn has_reported_all(&self) -> bool {
        self.has_reported_all
    }

    /// One of the events of the last wait.
    pub fn event(&self, index: usize) -> Readiness {
        let event = self.events[index];
        let data = event.data;
        let flags = event.flags;
        let over = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;

        Readiness {
            token: data.u64(),
            is_hangup: flags.intersects(over),
            is_readable: flags.contains(EventFlags::IN),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::base::clock::monotonic_ns;

    #[test]
    fn a_wait_does_not_end_before_its_timeout() {
        let mut reactor = Reactor::new().expect("epoll");
        for timeout_ns in [0, 1, 30_000, 700_000, 3 * NS_PER_MS] {
            let before_ns = monotonic_ns();
            assert_eq!(reactor.wait(timeout_ns).expect("wait"), 0);
            assert!(monotonic_ns() - before_ns >= timeout_ns);
        }
    }

    #[test]
    fn the_heartbeat_ends_every_wait_and_is_not_reported() {
        let before_ns = monotonic_ns();
        let mut reactor = Reactor::new().expect("epoll");
        reactor.enable_heartbeat();

        for _ in 0..5 {
            assert_eq!(reactor.wait(10 * NS_PER_S).expect("wait"), 0);
        }

        let five_ns = monotonic_ns() - before_ns;
        assert!(
            (4 * HEARTBEAT_NS..10 * NS_PER_S).contains(&five_ns),
            "{five_ns}"
        );

        let (mut near, far) = UnixStream::pair().expect("pair");
        reactor.register(far.as_fd(), 7).expect("register");
        near.write_all(b"x").expect("write");

        assert_eq!(
            (
                reactor.wait(NS_PER_S).expect("wait"),
                reactor.event(0).token
            ),
            (1, 7)
        );
    }

    #[test]
    fn a_hangup_is_distinguished_from_data() {
        let mut reactor = Reactor::new().expect("epoll");
        let (mut near, far) = UnixStream::pair().expect("pair");
        reactor.register(far.as_fd(), 7).expect("register");
        reactor.wait(0).expect("writable at first");
        near.write_all(b"x").expect("write");

        assert_eq!(reactor.wait(NS_PER_S).expect("wait"), 1);
        assert_eq!(
            (reactor.event(0).token, reactor.event(0).is_hangup),
            (7, false)
        );

        drop(near);
        assert_eq!(reactor.wait(NS_PER_S).expect("wait"), 1);
        assert!(reactor.event(0).is_hangup);
    }
}
