//! Real-time priority: taking it, giving it up for a while, and taking it back.

use std::thread;

use rustix::process::{Resource, getpriority_process, getrlimit};
use thread_priority::{
    Error, NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    thread_schedule_policy_param,
};

/// The default policy.
const OTHER: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

/// Niceness -10, on the library's scale from 0 to 99, for a thread that has given up an inherited
/// real-time priority. It still gets most of its core, but other threads get some CPU time; at -20
/// one of them waited for seconds (decision 6).
const URGENT: u8 = 73;

/// Niceness 0, for threads that took real-time priority themselves or may not have a negative
/// niceness: other threads preempt them for a whole time slice.
const PLAIN: u8 = 47;

fn other_priority(priority: u8) -> Option<ThreadPriority> {
    priority.try_into().ok().map(ThreadPriority::Crossplatform)
}

/// The real-time priority of a thread, and its niceness without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealTime {
    policy: ThreadSchedulePolicy,
    priority: ThreadPriority,
    /// Its priority after giving that up.
    fallback: ThreadPriority,
}

impl RealTime {
    /// The priority of the calling thread, which its child threads inherit; `None` at SCHED_OTHER.
    pub fn of_this_thread() -> Option<Self> {
        let (policy, parameters) = thread_schedule_policy_param(thread_native_id()).ok()?;
        let real_time = Self {
            policy,
            priority: ThreadPriority::from_posix(parameters),
            fallback: other_priority(URGENT)?,
        };
        matches!(policy, ThreadSchedulePolicy::Realtime(_)).then_some(real_time)
    }

    /// The lowest real-time priority, for threads that the calling thread starts; it preempts every
    /// SCHED_OTHER thread. `None` if the user chose the scheduling (`nice`, `chrt`), or if the
    /// kernel would kill a thread that runs for long without sleeping.
    pub fn of_threads_to_start() -> Option<Self> {
        let (policy, _) = thread_schedule_policy_param(thread_native_id()).ok()?;
        let niceness = getpriority_process(None).ok()?;
        let may_spin = getrlimit(Resource::Rttime).current.is_none();
        let lowest = Self {
            policy: ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin),
            priority: ThreadPriority::Min,
            // The user did not request the priority, so the thread must not keep others waiting.
            fallback: other_priority(PLAIN)?,
        };
        (policy == OTHER && niceness == 0 && may_spin).then_some(lowest)
    }

    /// The same with a niceness that permits it to be given up and taken back; `None` if neither
    /// niceness does.
    pub fn with_permitted_fallback(self) -> Option<Self> {
        let choices = [self.fallback, other_priority(PLAIN)?];
        choices
            .map(|fallback| Self { fallback, ..self })
            .into_iter()
            .find(|real_time| real_time.is_permitted())
    }

    /// Whether it may be given up and taken back: tried on a short-lived thread, because without
    /// permission the priority is lost.
    fn is_permitted(self) -> bool {
        let attempt = move || self.give_up().and_then(|()| self.take_back());
        let thread = thread::Builder::new()
            .name("loadgen-priority".to_owned())
            .spawn(attempt);
        thread.is_ok_and(|thread| thread.join().is_ok_and(|tried| tried.is_ok()))
    }

    /// Makes the calling thread SCHED_OTHER. If only the niceness is refused, it is SCHED_OTHER
    /// nevertheless.
    pub fn give_up(self) -> Result<(), Error> {
        set_thread_priority_and_policy(thread_native_id(), self.fallback, OTHER)
    }

    /// Gives the calling thread real-time priority, at first or again.
    pub fn take_back(self) -> Result<(), Error> {
        set_thread_priority_and_policy(thread_native_id(), self.priority, self.policy)
    }
}
