//! Waits until an absolute time, to the microsecond.
//!
//! The timer wheel of `tokio::time` has a resolution of 1 ms and would be half of that late on
//! average. Here one timerfd wakes the thread slightly early, and it spins for the rest;
//! each iteration of the spin yields to the other tasks and the sockets, so arrivals are
//! timestamped on time meanwhile.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};

use crate::clock::{now_ns, to_timespec};

/// A kernel timer known to the runtime.
pub(crate) type TimerFd = AsyncFd<OwnedFd>;

/// Opens the kernel timer. Must be called within the runtime.
#[expect(
    deprecated,
    reason = "since tokio 1.54 the successor is an unsafe fn, because a type could swap the \
              descriptor it lends; OwnedFd cannot, and this workspace forbids unsafe"
)]
pub(crate) fn open_timer_fd() -> io::Result<TimerFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// All waits of the server, woken by one task that runs [`Timer::drive`].
#[derive(Debug)]
pub(crate) struct Timer {
    fd: TimerFd,
    spin_ns: u64,
    waits: RefCell<BinaryHeap<Reverse<Wait>>>,
    next_number: Cell<u64>,
    /// The earliest wait has changed.
    changed: Notify,
}

impl Timer {
    pub(crate) fn new(fd: TimerFd, spin_ns: u64) -> Self {
        Self {
            fd,
            spin_ns,
            waits: RefCell::default(),
            next_number: Cell::new(0),
            changed: Notify::new(),
        }
    }

    /// Returns at `deadline_ns` or later, never before.
    pub(crate) async fn sleep_until(&self, deadline_ns: u64) {
        if now_ns() >= deadline_ns {
            return;
        }
        let (wake, woken) = oneshot::channel();
        self.add(deadline_ns, wake);
        // An error would mean that the timer is gone, and with it the server.
        let _ = woken.await;
    }

    /// Wakes each wait at its deadline. Never returns.
    pub(crate) async fn drive(&self) {
        loop {
            self.wake_due();
            let Some(deadline_ns) = self.earliest_ns() else {
                self.changed.notified().await;
                continue;
            };
            let wake_ns = deadline_ns.saturating_sub(self.spin_ns);
            // If the timer cannot be set, spin instead: costly, but still on time.
            if now_ns() >= wake_ns || self.set(wake_ns).is_err() {
                tokio::task::yield_now().await;
            } else {
                self.wait_for_timer().await;
            }
        }
    }

    fn add(&self, deadline_ns: u64, wake: oneshot::Sender<()>) {
        let number = self.next_number.replace(self.next_number.get() + 1);
        let is_earliest = self
            .earliest_ns()
            .is_none_or(|earliest_ns| deadline_ns < earliest_ns);
        self.waits.borrow_mut().push(Reverse(Wait {
            deadline_ns,
            number,
            wake,
        }));

        if is_earliest {
            self.changed.notify_one();
        }
    }

    fn earliest_ns(&self) -> Option<u64> {
        self.waits.borrow().peek().map(|wait| wait.0.deadline_ns)
    }

    fn wake_due(&self) {
        let mut waits = self.waits.borrow_mut();
        while waits
            .peek()
            .is_some_and(|wait| now_ns() >= wait.0.deadline_ns)
        {
            if let Some(Reverse(wait)) = waits.pop() {
                // The sleeper may have been dropped; then there is nothing to wake.
                let _ = wait.wake.send(());
            }
        }
    }

    fn set(&self, wake_ns: u64) -> io::Result<()> {
        // An it_value of zero would disarm the timer.
        let it_value = to_timespec(wake_ns.max(1));
        let once = Itimerspec {
            it_interval: to_timespec(0),
            it_value,
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;

        Ok(())
    }

    async fn wait_for_timer(&self) {
        tokio::select! {
            ready = self.fd.readable() => {
                if let Ok(mut ready) = ready {
                    // Reading clears the readiness. "Would block" is a stale wake-up: the timer was
                    // set anew after it had expired, and the loop checks again.
                    let _ = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0; 8])?));
                }
            }
            () = self.changed.notified() => {}
        }
    }
}

/// Ordered by deadline, and first come first served among equals.
#[derive(Debug)]
struct Wait {
    deadline_ns: u64,
    number: u64,
    wake: oneshot::Sender<()>,
}

impl Wait {
    fn order(&self) -> (u64, u64) {
        (self.deadline_ns, self.number)
    }
}

impl PartialEq for Wait {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Wait {}

impl PartialOrd for Wait {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wait {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Sleeps for each of `delays_ns` concurrently; returns the delays in the order of waking.
    fn order_of_waking(spin_ns: u64, delays_ns: &[u64]) -> Vec<u64> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), async {
            let timer = Rc::new(Timer::new(open_timer_fd().expect("a timerfd"), spin_ns));
            let driver = Rc::clone(&timer);
            tokio::task::spawn_local(async move { driver.drive().await });
            let order = Rc::new(RefCell::new(Vec::new()));
            let base_ns = now_ns();
            let sleepers: Vec<_> = delays_ns
                .iter()
                .map(|&delay_ns| {
                    let (timer, order) = (Rc::clone(&timer), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        timer.sleep_until(base_ns + delay_ns).await;
                        assert!(now_ns() >= base_ns + delay_ns, "woken early");
                        order.borrow_mut().push(delay_ns);
                    })
                })
                .collect();

            for sleeper in sleepers {
                sleeper.await.expect("no sleeper panics");
            }
            order.take()
        })
    }

    #[test]
    fn sleepers_wake_in_order_of_their_deadlines_and_never_early() {
        let delays_ns = [30_000_000, 10_000_000, 20_000_000, 10_010_000, 0];
        for spin_ns in [0, 60_000] {
            let order = order_of_waking(spin_ns, &delays_ns);
            assert_eq!(order, [0, 10_000_000, 10_010_000, 20_000_000, 30_000_000]);
        }
    }
}
