//! Waiting for sockets and for an instant at once: epoll, with timeouts in nanoseconds.
//!
//! A loop of our own, because it decides what comes first: a due send goes out before the next
//! answer is read.

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

/// Between two beats: less than what counts as standing still.
const HEARTBEAT_NS: u64 = 2 * NS_PER_MS;
/// No slot has this number.
const HEARTBEAT_TOKEN: u64 = u64::MAX;

/// What happened to a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The token that the socket was registered with.
    pub token: u64,
    /// The peer has ended its side, or the connection has failed: bytes that came before may still
    /// be unread.
    pub is_hangup: bool,
}

/// The sockets of one thread.
pub(crate) struct Reactor {
    epoll: OwnedFd,
    events: Vec<Event>,
    /// Whether the last wait told of every socket that had something to tell at its end.
    has_told_all: bool,
    heartbeat: Option<OwnedFd>,
    /// Whether waits are to end after `HEARTBEAT_NS` at most.
    wants_heartbeat: bool,
}

impl Reactor {
    /// An empty reactor for the calling thread.
    pub fn new() -> std::io::Result<Self> {
        // Otherwise the kernel may wake an ordinary thread 50 µs late, to save wake-ups.
        set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(BATCH),
            has_told_all: true,
            heartbeat: None,
            wants_heartbeat: false,
        })
    }

    /// Ends every wait from the next on after `HEARTBEAT_NS` at most, with nothing to tell.
    pub fn want_heartbeat(&mut self) {
        self.wants_heartbeat = true;
    }

    /// By a timer of its own that goes on: a wait that short would set the processor's timer each
    /// time, which costs as much as a third of a request.
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

    /// How long a wait of this length lasts at most.
    pub fn longest_wait_ns(&self, timeout_ns: u64) -> u64 {
        if self.heartbeat.is_some() {
            timeout_ns.min(HEARTBEAT_NS)
        } else {
            timeout_ns
        }
    }

    /// Watches a socket until it is closed. Edges, not levels: whoever is told has to read to the
    /// end.
    pub fn register(&self, socket: BorrowedFd<'_>, token: u64) -> std::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            flags,
        )?)
    }

    /// Waits no longer than `timeout_ns`; 0 only looks. Says how many sockets have something to
    /// tell.
    pub fn wait(&mut self, timeout_ns: u64) -> std::io::Result<usize> {
        if self.wants_heartbeat && self.heartbeat.is_none() {
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
        self.has_told_all = waited.is_ok_and(|count| count < BATCH);
        match waited {
            Ok(_) => self.without_heartbeat(),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the beat out of what the last wait found, which is how many others. The timer goes on
    /// once it was read.
    fn without_heartbeat(&mut self) -> std::io::Result<usize> {
        if let Some(timer) = &self.heartbeat {
            let found = self.events.len();
            self.events
                .retain(|event| event.data.u64() != HEARTBEAT_TOKEN);
            if self.events.len() < found {
                read(timer, &mut [0; size_of::<u64>()])?;
            }
        }
        Ok(self.events.len())
    }

    /// Whether the last wait told of every socket that had something to tell at its end. One that a
    /// signal ended tells of none.
    pub fn has_told_all(&self) -> bool {
        self.has_told_all
    }

    /// What happened to one of the sockets that the last wait found.
    pub fn event(&self, index: usize) -> Readiness {
        let event = self.events[index];
        let (data, flags) = (event.data, event.flags);
        let over = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        Readiness {
            token: data.u64(),
            is_hangup: flags.intersects(over),
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
    fn a_wait_ends_at_its_instant_and_not_before() {
        let mut reactor = Reactor::new().expect("epoll");
        for timeout_ns in [0, 1, 30_000, 700_000, 3 * NS_PER_MS] {
            let before_ns = monotonic_ns();
            assert_eq!(reactor.wait(timeout_ns).expect("wait"), 0);
            assert!(monotonic_ns() - before_ns >= timeout_ns);
        }
    }

    #[test]
    fn a_heart_beats_through_every_wait_and_tells_nothing() {
        let before_ns = monotonic_ns();
        let mut reactor = Reactor::new().expect("epoll");
        reactor.want_heartbeat();
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
    fn bytes_and_the_end_of_the_peer_are_told_apart() {
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
