//! Did the generator have what it needs: time, a core, file descriptors?

use super::evidence::Evidence;
use super::{Blame, Finding, percent};
use crate::plan::thresholds::Thresholds;

/// `client-cpu`: a busy thread is late more often; its spin is not counted.
pub(super) fn threads_had_time_left(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let busy = evidence.busiest_thread_share;
    let message = format!("a generator thread was busy {} of the time", percent(busy));
    Finding::graded(Blame::Client, busy, thresholds.busy, message)
}

/// `run-queue-wait`: time on a run queue, from the thread's `schedstat`.
pub(super) fn threads_had_their_cores(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(share) = evidence.run_queue_share else {
        return Finding::NotChecked(
            "the kernel does not report how long a thread waits for a core",
        );
    };
    let message = format!(
        "a generator thread waited for a core {} of the time",
        percent(share)
    );
    Finding::graded(Blame::Host, share, thresholds.run_queue, message)
}

/// `client-throttling`: our own CPU limit. Comes before what follows from it: waiting for a core,
/// and lateness.
pub(super) fn was_not_throttled(evidence: &Evidence, _: &Thresholds) -> Finding {
    let Some(periods) = evidence.throttled_periods else {
        return Finding::NotChecked("the generator's cgroup has no CPU controller");
    };
    let message = format!("the generator was CPU-throttled in {periods} periods");
    Finding::invalid_above(Blame::Client, periods as f64, 0.0, message)
}

/// `steal`: time that the hypervisor gave to others.
pub(super) fn hypervisor_took_nothing(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(share) = evidence.steal_share else {
        return Finding::NotChecked("the kernel does not report steal time");
    };
    let message = format!(
        "the hypervisor took {} of the host's CPU time",
        percent(share)
    );
    Finding::graded(Blame::Host, share, thresholds.steal, message)
}

/// `client-resources`: what httperf says of its fd-unavail holds here, too: such results are
/// meaningless.
pub(super) fn resources_sufficed(evidence: &Evidence, _: &Thresholds) -> Finding {
    let message = format!(
        "{} requests failed because the generator ran out of file descriptors, ports or memory",
        evidence.client_errors
    );
    Finding::invalid_above(Blame::Client, evidence.client_errors as f64, 0.0, message)
}
