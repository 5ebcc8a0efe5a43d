//! The generator's cost, and how much it was disturbed: evidence for the verdict on the generator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::{monotonic_ns, thread_cpu_ns};
use crate::http::inbox::RejectedTimestamps;
use crate::pacing::pacer::Pacer;
use crate::pacing::run_queue::run_queue_wait_ns;
use crate::pacing::stalls::Stalls;

/// Cost and disturbance of one generator thread, or of all together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ThreadCost {
    /// CPU time used.
    pub cpu_ns: u64,
    /// CPU time of busy-waiting, part of `cpu_ns`.
    pub spin_cpu_ns: u64,
    /// Number of busy-waits that were shortened to let the thread sleep.
    pub curtailed_spins: u64,
    /// Time in which busy-waiting was off because the cores had too little idle time; `None` if
    /// idle time was not monitored.
    pub spin_off_ns: Option<u64>,
    /// CPU time after giving up its real-time priority; `None` if it never has to, or is not
    /// permitted to.
    pub real_time_off_ns: Option<u64>,
    /// Wall time from the start to the end of the thread's work.
    pub wall_ns: u64,
    /// Run-queue wait; `None` if the kernel does not report it.
    pub run_queue_wait_ns: Option<u64>,
    /// Scheduling policy at the start; `None` if the kernel does not report it.
    pub scheduling: Option<Scheduling>,
    /// Stalls of the event loop.
    pub stalls: Stalls,
    /// Rejected kernel timestamps.
    pub rejected_timestamps: RejectedTimestamps,
}

impl ThreadCost {
    /// CPU use, excluding busy-waiting.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        self.cpu_ns.saturating_sub(self.spin_cpu_ns) as f64 / self.wall_ns.max(1) as f64
    }

    /// Share of the wall time that the thread was stalled.
    #[must_use]
    pub fn stalled_share(&self) -> f64 {
        self.stalls.total_ns as f64 / self.wall_ns.max(1) as f64
    }

    /// Share of the wall time in which the thread waited for a core.
    #[must_use]
    pub fn run_queue_share(&self) -> Option<f64> {
        self.run_queue_wait_ns
            .map(|wait_ns| wait_ns as f64 / self.wall_ns.max(1) as f64)
    }
}

/// Scheduling policy of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// SCHED_OTHER.
    SchedOther,
    /// SCHED_FIFO or SCHED_RR, which preempt all SCHED_OTHER threads.
    Realtime,
}

/// Scheduling policy of the calling thread; `None` if the kernel does not report it.
pub(crate) fn scheduling() -> Option<Scheduling> {
    let text = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name in parentheses may contain blanks; the policy is the 39th field after it.
    let policy: u32 = text
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(38)?
        .parse()
        .ok()?;
    const FIFO_AND_ROUND_ROBIN: [u32; 2] = [1, 2];
    Some(if FIFO_AND_ROUND_ROBIN.contains(&policy) {
        Scheduling::Realtime
    } else {
        Scheduling::SchedOther
    })
}

/// Measures the calling thread from its creation to [`CostMeter::stop`].
pub(crate) struct CostMeter {
    cpu_ns: u64,
    wall_ns: u64,
    run_queue_wait_ns: Option<u64>,
    scheduling: Option<Scheduling>,
}

impl CostMeter {
    pub fn start() -> Self {
        Self {
            cpu_ns: thread_cpu_ns(),
            wall_ns: monotonic_ns(),
            run_queue_wait_ns: run_queue_wait_ns(),
            scheduling: scheduling(),
        }
    }

    pub fn stop(&self, pacer: &Pacer) -> ThreadCost {
        let waited = run_queue_wait_ns()
            .zip(self.run_queue_wait_ns)
            .map(|(now, then)| now.saturating_sub(then));
        ThreadCost {
            cpu_ns: thread_cpu_ns().saturating_sub(self.cpu_ns),
            spin_cpu_ns: pacer.spin_ns(),
            curtailed_spins: pacer.curtailed(),
            spin_off_ns: pacer.off_ns(),
            real_time_off_ns: pacer.sched_other_ns(),
            wall_ns: monotonic_ns() - self.wall_ns,
            run_queue_wait_ns: waited,
            scheduling: self.scheduling,
            stalls: Stalls::default(),
            rejected_timestamps: RejectedTimestamps::default(),
        }
    }
}

/// Steal time and total CPU time of the host, in clock ticks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct HostTicks {
    steal: u64,
    all: u64,
}

impl HostTicks {
    /// Reads `/proc/stat`; `None` without this file.
    pub fn read() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let fields: Vec<u64> = text
            .lines()
            .next()?
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guest times are part of user and nice.
        (fields.len() >= 8).then(|| Self {
            steal: fields[7],
            all: fields[..8].iter().sum(),
        })
    }

    /// Steal share of the host's CPU time since `then`.
    pub fn steal_share_since(&self, then: &Self) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        self.steal.saturating_sub(then.steal) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_and_wall_time_of_work_are_measured() {
        let meter = CostMeter::start();
        let until_ns = thread_cpu_ns() + 5_000_000;
        while thread_cpu_ns() < until_ns {
            std::hint::spin_loop();
        }
        let cost = meter.stop(&Pacer::new(0));
        assert!(
            cost.cpu_ns >= 5_000_000 && cost.wall_ns >= 5_000_000,
            "{cost:?}"
        );
        assert!(cost.busy_share() <= 1.01, "{cost:?}");
    }

    #[test]
    fn a_thread_is_sched_other_by_default() {
        assert_eq!(scheduling(), Some(Scheduling::SchedOther));
    }

    #[test]
    fn the_steal_share_is_relative_to_all_ticks() {
        let then = HostTicks {
            steal: 10,
            all: 1_000,
        };
        let now = HostTicks {
            steal: 15,
            all: 1_100,
        };
        assert!((now.steal_share_since(&then) - 0.05).abs() < 1e-12);
    }
}
