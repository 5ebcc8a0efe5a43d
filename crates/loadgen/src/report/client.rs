//! The generator's resource use in a report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::base::clock::NS_PER_S;
use crate::facts::cost::Scheduling;
use crate::facts::run::RunFacts;
use crate::http::inbox::RejectedTimestamps;
use crate::pacing::pacer::Spin;
use crate::pacing::stalls::Stalls;
use crate::plan::{LoadPlan, ReceiveStamps};
use crate::record::exchange::Outcome;
use crate::record::recorder::{Phase, Recorder};

/// The generator's resource use, including warm-up and cool-down, and disturbances of the
/// generator.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Client {
    /// CPU time of the generator. `None`: not readable.
    pub cpu_seconds: f64,
    /// CPU time of the generator per complete response, correct or not, over the whole load.
    /// `None`: no response.
    pub cpu_per_request_ns: Option<f64>,
    /// Time in which generator threads were runnable but had no CPU. `None`: not readable.
    pub run_queue_wait_ns: Option<u64>,
    /// Largest send lag of all requests of the measurement, including failed requests. For a
    /// request dropped at its deadline, the send lag is the delay until the drop. `None`: no
    /// request was sent, and none was dropped at its deadline.
    pub max_send_lag_ns: Option<u64>,
    /// CPU time of the busiest generator thread, without busy-waiting before sends, divided by the
    /// elapsed time.
    pub busy_share: f64,
    /// Steal: share of the host's CPU time that the hypervisor took. `None`: no `/proc/stat`.
    pub steal_share: Option<f64>,
    /// Scheduling policy of the generator's threads: `sched_other` (`SCHED_OTHER`) or `realtime`
    /// (`SCHED_RR` or `SCHED_FIFO`, which preempt all `SCHED_OTHER` threads). The generator uses
    /// `SCHED_RR` with priority 1 if permitted. Exceptions: the server shares the generator's
    /// cores, the generator has as many threads as cores, the CPU time of real-time threads is
    /// limited (`RLIMIT_RTTIME`), or the generator was started with another policy or niceness
    /// (`nice`, `chrt`). `None`: not readable.
    pub scheduling: Option<Scheduling>,
    /// Share of the load's duration in which busy generator threads gave up real-time priority.
    /// This avoids RT throttling: the kernel stops real-time threads that use more than 95 % of a
    /// second. Threads that hardly sleep give up this priority for 7 % of the time. In that time,
    /// CPU quotas apply to them, and their niceness is 0, or -10 if the generator was started at
    /// real-time priority and a negative niceness is permitted. `None`: `scheduling` is not
    /// `realtime`, or the threads could not regain real-time priority and slept instead
    /// (`curtailed_spins`).
    pub real_time_off_share: Option<f64>,
    /// Busy-waiting before sends. To compensate for wake-up delays, each sleep is shortened by the
    /// shortest of the last 16 delays, but by at most 20 µs.
    pub spin: Spin,
    /// Share of the load's duration in which busy-waiting was off because fewer than 0.1 cores per
    /// generator thread were idle. Busy-waiting resumes above 0.3 idle cores per thread. Idle time
    /// is checked every 0.5 s. `None`: `spin.window_ns` was set by the user or is 0, or the load
    /// ended before the first check.
    pub spin_off_share: Option<f64>,
    /// CPU time that busy-waiting used.
    pub spin_cpu_seconds: f64,
    /// Number of times that a thread slept instead of busy-waiting. Real-time threads that cannot
    /// change their priority sleep for 7 % of the time to avoid RT throttling. These sleeps rarely
    /// delay a send.
    pub curtailed_spins: u64,
    /// How responses were timestamped: `kernel` (when the data arrived), `user` (when the generator
    /// read the data), or `sampled` (like `user`, but one connection in 16 also has kernel
    /// timestamps, for `receive_delay_ns`).
    pub receive_stamps: ReceiveStamps,
    /// Correct responses of the measurement that the generator timestamped, such as close-delimited
    /// responses and responses without a usable kernel timestamp. Their response times may include
    /// the generator's delays. If `receive_stamps` is `sampled`, all correct responses are counted.
    pub user_timestamps: u64,
    /// Kernel timestamps that were not used. The affected responses have the generator's timestamps
    /// instead.
    pub rejected_timestamps: RejectedTimestamps,
    /// Stalls of more than 5 ms in the generator's event loop.
    pub stalls: Stalls,
    /// CPU periods in which the generator's own cgroup was throttled. `None`: no CPU controller.
    pub throttled_periods: Option<u64>,
}

impl Client {
    /// Collects the values from the record and the facts of a run.
    pub(crate) fn of(plan: &LoadPlan, recorder: &Recorder, facts: &RunFacts) -> Self {
        let cpu_ns = facts.cpu_ns;
        let responses: u64 = [Phase::Warmup, Phase::Measure, Phase::Cooldown]
            .into_iter()
            .flat_map(|phase| {
                Outcome::ALL.map(|outcome| (outcome, recorder.phase(phase).of(outcome)))
            })
            .filter(|(outcome, _)| outcome.is_answered())
            .map(|(_, count)| count)
            .sum();
        Self {
            cpu_seconds: cpu_ns as f64 / NS_PER_S as f64,
            cpu_per_request_ns: (responses > 0).then(|| cpu_ns as f64 / responses as f64),
            run_queue_wait_ns: facts.costs.iter().map(|cost| cost.run_queue_wait_ns).sum(),
            max_send_lag_ns: recorder.sending().lag.max_ns(),
            busy_share: facts.busiest_share(),
            steal_share: facts.steal_share,
            scheduling: facts.costs.first().and_then(|cost| cost.scheduling),
            real_time_off_share: facts.real_time_off_share(),
            spin: facts.spin,
            spin_off_share: facts.spin_off_share(),
            spin_cpu_seconds: facts.costs.iter().map(|cost| cost.spin_cpu_ns).sum::<u64>() as f64
                / NS_PER_S as f64,
            curtailed_spins: facts.costs.iter().map(|cost| cost.curtailed_spins).sum(),
            receive_stamps: stamps_in_use(plan, recorder),
            user_timestamps: user_timestamps(plan, recorder),
            rejected_timestamps: facts.rejected_timestamps(),
            stalls: facts.stalls(),
            throttled_periods: facts.throttled_periods,
        }
    }
}

/// The requested kind of timestamps, if there are any of that kind.
fn stamps_in_use(plan: &LoadPlan, recorder: &Recorder) -> ReceiveStamps {
    let with_kernel_timestamp = recorder.receive_delays();
    match plan.receive_stamps() {
        ReceiveStamps::Kernel if with_kernel_timestamp <= user_timestamps(plan, recorder) => {
            ReceiveStamps::User
        }
        _ if with_kernel_timestamp == 0 => ReceiveStamps::User,
        stamps => stamps,
    }
}

fn user_timestamps(plan: &LoadPlan, recorder: &Recorder) -> u64 {
    let correct = recorder.phase(Phase::Measure).of(Outcome::Ok);
    let has_kernels = plan.receive_stamps() == ReceiveStamps::Kernel;
    if has_kernels {
        correct.saturating_sub(recorder.receive_delays())
    } else {
        correct
    }
}
