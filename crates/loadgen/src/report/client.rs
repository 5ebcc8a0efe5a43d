//! What a report tells of the generator itself.

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

/// What the generator cost and how late it was.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Client {
    /// CPU time of all generator threads, in seconds.
    pub cpu_seconds: f64,
    /// CPU time per answered request of the whole load; `None` when none was answered.
    pub cpu_per_request_ns: Option<f64>,
    /// Time that generator threads waited for a core.
    pub run_queue_wait_ns: Option<u64>,
    /// Latest send.
    pub max_send_lag_ns: Option<u64>,
    /// Busy share of the busiest thread, its spin not counted.
    pub busy_share: f64,
    /// Share of the host's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// How the generator's threads were scheduled.
    pub scheduling: Option<Scheduling>,
    /// Share of the load in which its threads were busy with their real-time priority given up, so
    /// as not to be stopped by force. `None` at ordinary priority, and where they may not take it
    /// back.
    pub real_time_off_share: Option<f64>,
    /// How it waited for the instant of a send: it looks at its sockets again and again for the
    /// last part.
    pub spin: Spin,
    /// Share of the load in which it did not spin, because its cores had hardly any idle time.
    /// `None` where that was not looked at: without a window that it chose itself, or in a load of
    /// about half a second or less.
    pub spin_off_share: Option<f64>,
    /// CPU time that the spin cost, in seconds.
    pub spin_cpu_seconds: f64,
    /// How often the spin was cut short, because a real-time thread that may not give its priority
    /// up for a while had slept for less than 7 % of the time.
    pub curtailed_spins: u64,
    /// Whose instants the correct responses have, most of them. Over Unix sockets, TLS and hyper
    /// they
    /// are our own.
    pub receive_stamps: ReceiveStamps,
    /// How many of them have our own instant, so that a delay of ours may be in their response
    /// time: where the kernel's were asked for, those that the server ended by closing, and those
    /// whose stamp is missing or in doubt.
    pub user_timestamps: u64,
    /// What cast doubt on the kernel's; such responses have our own.
    pub rejected_timestamps: RejectedTimestamps,
    /// Stalls of the generator's own loop of more than 5 ms.
    pub stalls: Stalls,
    /// Periods in which the generator's own control group was throttled; `None` where it has no CPU
    /// controller.
    pub throttled_periods: Option<u64>,
}

impl Client {
    /// Gathers it from the record and the facts of a run.
    pub(crate) fn of(plan: &LoadPlan, recorder: &Recorder, facts: &RunFacts) -> Self {
        let cpu_ns = facts.cpu_ns;
        let answered: u64 = [Phase::Warmup, Phase::Measure, Phase::Cooldown]
            .into_iter()
            .flat_map(|phase| {
                Outcome::ALL.map(|outcome| (outcome, recorder.phase(phase).of(outcome)))
            })
            .filter(|(outcome, _)| outcome.is_answered())
            .map(|(_, count)| count)
            .sum();
        Self {
            cpu_seconds: cpu_ns as f64 / NS_PER_S as f64,
            cpu_per_request_ns: (answered > 0).then(|| cpu_ns as f64 / answered as f64),
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

/// What was asked for, where it was to be had.
fn stamps_in_use(plan: &LoadPlan, recorder: &Recorder) -> ReceiveStamps {
    let told = recorder.receive_delays();
    match plan.receive_stamps() {
        ReceiveStamps::Kernel if told <= user_timestamps(plan, recorder) => ReceiveStamps::User,
        _ if told == 0 => ReceiveStamps::User,
        stamps => stamps,
    }
}

fn user_timestamps(plan: &LoadPlan, recorder: &Recorder) -> u64 {
    let right = recorder.phase(Phase::Measure).of(Outcome::Ok);
    let has_kernels = plan.receive_stamps() == ReceiveStamps::Kernel;
    if has_kernels {
        right.saturating_sub(recorder.receive_delays())
    } else {
        right
    }
}
