//! Facts of a run that its record does not hold: what it cost, what the host did, what each thread
//! saw.

use crate::facts::cost::ThreadCost;
use crate::http::inbox::RejectedTimestamps;
use crate::net::conntrack::TrackedConnections;
use crate::net::ports::SourcePorts;
use crate::pacing::pacer::Spin;
use crate::pacing::stalls::Stalls;
use crate::record::histogram::LatencyHistogram;

/// Facts of a run that the record does not hold.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// CPU time of all generator threads over the whole run, and of the one that watches the cores,
    /// in nanoseconds.
    pub cpu_ns: u64,
    /// Cost of each generator thread from its start to the end of the load's time.
    pub costs: Vec<ThreadCost>,
    /// Share of the host's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// How its threads waited for the instant of a send.
    pub spin: Spin,
    /// Periods in which the generator's own control group was throttled; `None` where it has no CPU
    /// controller.
    pub throttled_periods: Option<u64>,
    /// `CLOCK_REALTIME` at the instant at which the load began.
    pub start_realtime_ns: u64,
    /// How much of the measure phase took place.
    pub measured_ns: u64,
    /// Whether the run was stopped early.
    pub is_interrupted: bool,
    /// Most connections that the run was allowed.
    pub max_connections: usize,
    /// Local ports and addresses; `None` over a Unix socket.
    pub source_ports: Option<SourcePorts>,
    /// Connections that the kernel tracked; `None` over a Unix socket, or where it tracks none.
    pub tracked: Option<TrackedConnections>,
    /// What each generator thread measured.
    pub thread_tails: Vec<ThreadTail>,
}

impl RunFacts {
    /// Busy share of the busiest thread, its spin not counted.
    pub(crate) fn busiest_share(&self) -> f64 {
        self.costs
            .iter()
            .map(ThreadCost::busy_share)
            .fold(0.0, f64::max)
    }

    /// Share of the threads' time in which they did not spin, because the cores had hardly any idle
    /// time; `None` where that was not looked at.
    pub(crate) fn spin_off_share(&self) -> Option<f64> {
        self.share_of_time(|cost| cost.spin_off_ns)
    }

    /// Share of the threads' time in which they were busy with their real-time priority given up;
    /// `None` where they did not have to, or could not.
    pub(crate) fn real_time_off_share(&self) -> Option<f64> {
        self.share_of_time(|cost| cost.real_time_off_ns)
    }

    fn share_of_time(&self, part_ns: impl Fn(&ThreadCost) -> Option<u64>) -> Option<f64> {
        let part_ns: u64 = self.costs.iter().map(part_ns).sum::<Option<u64>>()?;
        let wall_ns: u64 = self.costs.iter().map(|cost| cost.wall_ns).sum();
        Some((part_ns as f64 / wall_ns.max(1) as f64).min(1.0))
    }

    /// What cast doubt on the kernel timestamps, all threads together.
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

/// What one thread measured.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTail {
    /// Correct responses.
    pub answers: u64,
    /// Response time of the 99th of a hundred.
    pub p99_ns: Option<u64>,
}

impl ThreadTail {
    pub(crate) fn of(response: &LatencyHistogram) -> Self {
        Self {
            answers: response.count(),
            p99_ns: response.quantile_ns(0.99),
        }
    }
}
