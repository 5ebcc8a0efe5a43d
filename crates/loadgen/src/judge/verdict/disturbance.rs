//! Checks of the generator's resources: CPU time, cores, file descriptors.

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Check, CheckResult, Level, NOTHING_MORE, lateness};
use crate::plan::thresholds::Thresholds;

pub(super) static CLIENT_CPU: Check = Check {
    name: "client-cpu",
    examines: "the CPU use of the busiest generator thread, excluding busy-waiting",
    premise: "The share exceeds `warn` or `invalid`: requests queue in the generator.",
    lengthens: true,
    fix: Some("use more threads (--threads), or lower the rate"),
    rule: client_cpu,
    ..NOTHING_MORE
};

fn client_cpu(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let busy = evidence.busiest_thread_share;
    let message = format!("a generator thread was busy {} of the time", percent(busy));
    CheckResult::graded(Blame::Client, busy, thresholds.busy, message)
}

pub(super) static RUN_QUEUE_WAIT: Check = Check {
    name: "run-queue-wait",
    examines: "the share of the time for which a generator thread waited for a core",
    premise: "The share exceeds `note`: threads were runnable, but other processes used their \
        cores. This is only a diagnostic; the check send-lag shows the effect on response times.",
    lengthens: true,
    fix: Some("stop other programs on the machine, or give the generator a dedicated core"),
    rule: run_queue_wait,
    ..NOTHING_MORE
};

/// Only a diagnostic, because every wake-up waits a few microseconds.
fn run_queue_wait(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let Some(share) = evidence.run_queue_share else {
        return CheckResult::NotChecked(
            "the kernel does not report how long threads wait for a core",
        );
    };
    let message = format!(
        "a generator thread waited for a core {} of the time",
        percent(share)
    );
    CheckResult::diagnostic_above(Blame::Host, share, thresholds.run_queue.note, message)
}

pub(super) static CLIENT_THROTTLING: Check = Check {
    name: "client-throttling",
    examines: "CPU throttling of the generator's own cgroup",
    premise: "The generator was throttled in at least one CPU period, so it sent requests and read \
        responses late. The load is invalid if `send-lag` would invalidate it, too.",
    lengthens: true,
    fix: Some("raise the CPU limit of the generator's cgroup"),
    rule: client_throttling,
    ..NOTHING_MORE
};

/// Listed before its effects (waits for a core, late sends).
fn client_throttling(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let Some(periods) = evidence.throttled_periods else {
        return CheckResult::NotChecked("the generator's cgroup has no CPU controller");
    };
    let message = format!(
        "the generator was CPU-throttled in {}",
        plural(periods, "CPU period")
    );
    if periods > 0 && lateness::is_severe(evidence, &thresholds.lag_impact) {
        return CheckResult::fired(
            Level::Invalid,
            Blame::Client,
            (periods as f64, 0.0),
            message,
        );
    }
    CheckResult::warn_above(Blame::Client, periods as f64, 0.0, message)
}

pub(super) static STEAL: Check = Check {
    name: "steal",
    examines: "steal time: the share of the host's CPU time taken by the hypervisor",
    premise: "The share exceeds `warn` (or `note`: a diagnostic).",
    sighting: Some("the hypervisor took CPU time during"),
    lengthens: true,
    fix: Some("repeat on a dedicated machine, or when the host is less busy"),
    rule: steal,
    ..NOTHING_MORE
};

fn steal(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let Some(share) = evidence.steal_share else {
        return CheckResult::NotChecked("the kernel does not report steal time");
    };
    let message = format!(
        "the hypervisor took {} of the host's CPU time",
        percent(share)
    );
    let limits = thresholds.steal;
    if share > limits.warn {
        return CheckResult::fired(Level::Warn, Blame::Host, (share, limits.warn), message);
    }
    CheckResult::diagnostic_above(Blame::Host, share, limits.note, message)
}

/// If more requests than this share failed inside the generator, the offered rate was not the
/// scheduled one.
const MAX_CLIENT_ERROR_SHARE: f64 = 0.001;

/// If more requests than this share waited because the generator lacked connections, p99 is not
/// that of the requested load.
const MAX_WAIT_SHARE: f64 = 0.01;

pub(super) static CLIENT_RESOURCES: Check = Check {
    name: "client-resources",
    examines: "requests that failed or waited because the generator lacked file descriptors, local \
        ports, memory or connections",
    premise: "At least one request failed or waited. The load is invalid if more than 0.1 % of the \
        requests failed, or more than 1 % waited. Requests whose captured values made the URL too \
        long count as failed, too.",
    fix: Some("raise `ulimit -n`, add --source-addresses, or lower --max-connections"),
    rule: client_resources,
    ..NOTHING_MORE
};

fn client_resources(evidence: &Evidence, _: &Thresholds) -> CheckResult {
    let waited_share = evidence.waited_for_connection_share;
    if evidence.lacks_connections && waited_share > 0.0 {
        let level = if waited_share > MAX_WAIT_SHARE {
            Level::Invalid
        } else {
            Level::Warn
        };
        let message = format!(
            "{} of requests waited because the generator's file descriptor limit allows only {} \
            connections",
            percent(waited_share),
            thousands(evidence.max_connections as u64)
        );
        return CheckResult::fired(
            level,
            Blame::Client,
            (waited_share, MAX_WAIT_SHARE),
            message,
        );
    }
    let message = format!(
        "{} failed because the generator ran out of file descriptors, ports or memory, or captured \
        values made a URL too long",
        plural(evidence.client_errors, "request")
    );
    let share = evidence.client_errors as f64 / evidence.scheduled.max(1) as f64;
    if share > MAX_CLIENT_ERROR_SHARE {
        let figures = (share, MAX_CLIENT_ERROR_SHARE);
        return CheckResult::fired(Level::Invalid, Blame::Client, figures, message);
    }
    CheckResult::warn_above(Blame::Client, evidence.client_errors as f64, 0.0, message)
}
