//! Did the generator have what it needs: time, a core, file descriptors?

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Finding, Level, lateness};
use crate::plan::thresholds::Thresholds;

/// `client-cpu`: a busy thread is late more often; its spin is not counted.
pub(super) fn threads_had_time_left(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let busy = evidence.busiest_thread_share;
    let message = format!("a generator thread was busy {} of the time", percent(busy));
    Finding::graded(Blame::Client, busy, thresholds.busy, message)
}

/// `run-queue-wait`: time on a run queue, from the thread's `schedstat`. A diagnostic: every wake-up
/// waits for some microseconds, and what a wait did to the figures is `send-lag`'s.
pub(super) fn threads_had_their_cores(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(share) = evidence.run_queue_share else {
        return Finding::NotChecked("the kernel does not report how long threads wait for a core");
    };
    let message = format!(
        "a generator thread waited for a core {} of the time",
        percent(share)
    );
    Finding::noted_above(Blame::Host, share, thresholds.run_queue.note, message)
}

/// `client-throttling`: the generator's own CPU limit. Comes before what follows from it: waiting
/// for a core, and lateness. Invalid where that lateness mattered.
pub(super) fn was_not_throttled(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(periods) = evidence.throttled_periods else {
        return Finding::NotChecked("the generator's cgroup has no CPU controller");
    };
    let message = format!(
        "the generator was CPU-throttled in {}",
        plural(periods, "CPU period")
    );
    if periods > 0 && lateness::is_grave(evidence, &thresholds.lag_impact) {
        return Finding::doubt(
            Level::Invalid,
            Blame::Client,
            (periods as f64, 0.0),
            message,
        );
    }
    Finding::warn_above(Blame::Client, periods as f64, 0.0, message)
}

/// `steal`: time that the hypervisor gave to others. It can only lengthen response times, so the
/// figures remain upper bounds.
pub(super) fn hypervisor_took_nothing(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(share) = evidence.steal_share else {
        return Finding::NotChecked("the kernel does not report steal time");
    };
    let message = format!(
        "the hypervisor took {} of the host's CPU time",
        percent(share)
    );
    let limits = thresholds.steal;
    if share > limits.warn {
        return Finding::doubt(Level::Warn, Blame::Host, (share, limits.warn), message);
    }
    Finding::noted_above(Blame::Host, share, limits.note, message)
}

/// A load of which more than this share failed inside the generator offered another rate than it
/// should have.
const MOST_CLIENT_ERRORS: f64 = 0.001;

/// p99 is that of another load if more requests than this waited for the generator's lack of
/// connections.
const MOST_WAITS: f64 = 0.01;

/// `client-resources`: requests that never reached the server, because the generator lacked
/// something.
pub(super) fn resources_sufficed(evidence: &Evidence, _: &Thresholds) -> Finding {
    let waited_share = evidence.waited_for_connection_share;
    if evidence.lacks_connections && waited_share > 0.0 {
        let level = if waited_share > MOST_WAITS {
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
        return Finding::doubt(level, Blame::Client, (waited_share, MOST_WAITS), message);
    }
    let message = format!(
        "{} failed because the generator ran out of file descriptors, ports or memory, or captured \
        values made a URL too long",
        plural(evidence.client_errors, "request")
    );
    let share = evidence.client_errors as f64 / evidence.scheduled.max(1) as f64;
    if share > MOST_CLIENT_ERRORS {
        let figures = (share, MOST_CLIENT_ERRORS);
        return Finding::doubt(Level::Invalid, Blame::Client, figures, message);
    }
    Finding::warn_above(Blame::Client, evidence.client_errors as f64, 0.0, message)
}
