//! Facts of a load that its record does not contain: cost, host, and results per thread.

use crate::facts::cost::ThreadCost;
use crate::http::inbox::RejectedTimestamps;
use crate::net::conntrack::TrackedConnections;
use crate::net::ports::SourcePorts;
use crate::pacing::pacer::Spin;
use crate::pacing::stalls::Stalls;
use crate::record::histogram::LatencyHistogram;

/// Facts of a load that the record does not contain.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// CPU time of all generator threads and of the idle-core monitor over the whole load, in
    /// nanoseconds.
    pub cpu_ns: u64,
    /// Cost of each generator thread, from its start to the end of the load.
    pub costs: Vec<ThreadCost>,
    /// Share of the host's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// How the generator's threads wait before a send.
    pub spin: Spin,
    /// CPU periods in which the generator's own cgroup was throttled; `None` without a CPU
    /// controller.
    pub throttled_periods: Option<u64>,
    /// `CLOCK_REALTIME` at the start of the load.
    pub start_realtime_ns: u64,
    /// Length of the measurement that took place.
    pub measured_ns: u64,
    /// Whether the load was stopped early.
    pub is_interrupted: bool,
    /// The first generator process that was lost, and how.
    pub lost: Option<String>,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Local ports and addresses; `None` over a Unix socket.
    pub source_ports: Option<SourcePorts>,
    /// Connections in the kernel's connection tracking; `None` over a Unix socket, or without
    /// tracking.
    pub tracked: Option<TrackedConnections>,
    /// Results of each generator thread.
    pub thread_tails: Vec<ThreadTail>,
}

impl RunFacts {
    /// CPU use of the busiest thread, excluding busy-waiting.
    pub(crate) fn busiest_share(&self) -> f64 {
        self.costs
            .iter()
            .map(ThreadCost::busy_share)
            .fold(0.0, f64::max)
    }

    /// Share of the threads' time in which busy-waiting was off because the cores had too little
    /// idle time; `None` if idle time was not monitored.
    pub(crate) fn spin_off_share(&self) -> Option<f64> {
        self.share_of_time(|cost| cost.spin_off_ns)
    }

    /// Share of the threads' time that they ran without their real-time priority; `None` if that
    /// was not necessary, or not possible.
    pub(crate) fn real_time_off_share(&self) -> Option<f64> {
        self.share_of_time(|cost| cost.real_time_off_ns)
    }

    fn share_of_time(&self, part_ns: impl Fn(&ThreadCost) -> Option<u64>) -> Option<f64> {
        let part_ns: u64 = self.costs.iter().map(part_ns).sum::<Option<u64>>()?;
        let wall_ns: u64 = self.costs.iter().map(|cost| cost.wall_ns).sum();
        Some((part_ns as f64 / wall_ns.max(1) as f64).min(1.0))
    }

    /// Rejected kernel timestamps of all threads.
    pub(crate) fn rejected_timestamps(&self) -> RejectedTimestamps {
        let mut all = RejectedTimestamps::default();
        self.costs
            .iter()
            .for_each(|cost| all.add(&cost.rejected_timestamps));
        all
    }

    /// Stalls of all threads.
    pub(crate) fn stalls(&self) -> Stalls {
        let mut all = Stalls::default();
        self.costs.iter().for_each(|cost| all.add(&cost.stalls));
        all
    }
}

/// Results of one thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTail {
    /// Correct responses.
    pub responses: u64,
    /// p99 of the response time.
    pub p99_ns: Option<u64>,
}

impl ThreadTail {
    pub(crate) fn of(response: &LatencyHistogram) -> Self {
        Self {
            responses: response.count(),
            p99_ns: response.quantile_ns(0.99),
        }
    }
}
