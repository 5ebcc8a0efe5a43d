//! Checks of the sends: in time, as scheduled, and equal across threads.

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Check, CheckResult, Level, NOTHING_MORE, lateness};
use crate::plan::thresholds::Thresholds;

pub(super) static MISSED_SENDS: Check = Check {
    name: "missed-sends",
    examines: "the share of the measurement's requests that were sent in time",
    premise: "The share is below `warn` or `invalid`: the generator was so late that requests were \
        sent after the end of the measurement or missed their deadline. Delays below 1 ms are \
        ignored, and so are requests that were dropped or waited for a connection, unless they \
        missed their deadline because of the generator.",
    lengthens: true,
    fix: Some("lower the rate, or use more threads (--threads)"),
    rule: missed_sends,
    ..NOTHING_MORE
};

/// Other load generators accept 0.99.
fn missed_sends(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let Some(share) = evidence.sent_in_time_share else {
        return CheckResult::NotChecked("a closed loop has no schedule");
    };
    let limits = thresholds.sent;
    let message = format!(
        "{} of requests were sent after the end of the measurement or missed their deadline \
        because the generator was late",
        percent(1.0 - share)
    );
    let blame = lateness::blame(evidence, thresholds);
    if share < limits.invalid {
        CheckResult::fired(Level::Invalid, blame, (share, limits.invalid), message)
    } else if share < limits.warn {
        CheckResult::fired(Level::Warn, blame, (share, limits.warn), message)
    } else {
        CheckResult::Passed
    }
}

pub(super) static NOISE_FLOOR: Check = Check {
    name: "noise-floor",
    examines: "each quantile, compared with this machine's noise floor (`wsgiload calibrate`)",
    premise: "A quantile is below `unresolved` times the noise floor, so it is only an upper \
        bound. Below `note` times the noise floor, the finding is only a diagnostic.",
    fix: Some("compare servers by CPU time per request instead, or use a machine with less noise"),
    rule: noise_floor,
    ..NOTHING_MORE
};

fn noise_floor(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let (quantile, ratio) = match evidence.floor_ratio {
        Ok(lowest) => lowest,
        Err(reason) => return CheckResult::NotChecked(reason),
    };
    let name = quantile * 100.0;
    let limits = &thresholds.floor;
    if ratio < limits.unresolved {
        let message = format!(
            "p{name} is only {ratio:.1} times this machine's noise floor, so it is an upper bound"
        );
        return CheckResult::fired(
            Level::Warn,
            Blame::Method,
            (ratio, limits.unresolved),
            message,
        );
    }
    if ratio < limits.note {
        let message = format!("p{name} is only {ratio:.1} times this machine's noise floor");
        return CheckResult::diagnostic(Blame::Method, (ratio, limits.note), message);
    }
    CheckResult::Passed
}

pub(super) static POISSON_GAPS: Check = Check {
    name: "poisson-gaps",
    examines: "up to 10,000 consecutive send times, compared with the requested Poisson process",
    premise: "The Anderson-Darling statistic exceeds `note_anderson_darling`, or the index of \
        dispersion differs from 1 by more than `note_dispersion` standard errors. This is only a \
        diagnostic: at high rates, serial sending alone causes such deviations, without any \
        effect on latency.",
    lengthens: true,
    fix: Some("look at the check send-lag, which shows the effect on response times"),
    rule: poisson_gaps,
    ..NOTHING_MORE
};

/// For any sender that sends one request after another, the distance is about the rate times the
/// duration of a send, which shifts p99 by a microsecond.
fn poisson_gaps(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let gaps = match evidence.send_gaps {
        Ok(gaps) => gaps,
        Err(reason) => return CheckResult::NotChecked(reason),
    };
    let limits = &thresholds.send_gaps;
    let (statistic, distance) = (gaps.anderson_darling, gaps.kolmogorov_distance);
    let blame = lateness::blame(evidence, thresholds);
    let message = format!(
        "send times deviate from the requested Poisson process (Anderson-Darling {statistic:.1}, \
        Kolmogorov-Smirnov distance {distance:.3}, {} inter-arrival times)",
        thousands(gaps.count)
    );
    if statistic > limits.note_anderson_darling {
        return CheckResult::diagnostic(blame, (statistic, limits.note_anderson_darling), message);
    }
    let deviation = gaps.dispersion_deviation.unwrap_or(0.0);
    let message = format!(
        "the variance of the sends per 10 ms, 100 ms or 1 s deviates from a Poisson process by \
        {deviation:.1} standard errors"
    );
    CheckResult::diagnostic_above(blame, deviation, limits.note_dispersion, message)
}

pub(super) static THREAD_AGREEMENT: Check = Check {
    name: "thread-agreement",
    examines: "p99 of each generator thread, compared with the overall p99",
    premise: "The p99 of at least `warn` threads (`invalid` threads: invalid) differs \
        significantly, and by more than 10 % and 100 µs, although all threads share one schedule.",
    fix: Some("pin the generator to idle cores (--client-cpus), or use one thread"),
    rule: thread_agreement,
    ..NOTHING_MORE
};

fn thread_agreement(evidence: &Evidence, thresholds: &Thresholds) -> CheckResult {
    let count = match evidence.differing_threads {
        Ok(count) => count as u64,
        Err(reason) => return CheckResult::NotChecked(reason),
    };
    let (differing, limits) = (count as f64, thresholds.threads);
    let message = format!(
        "p99 of {} differs significantly from the overall p99",
        plural(count, "generator thread")
    );
    if differing >= limits.invalid {
        CheckResult::fired(
            Level::Invalid,
            Blame::Client,
            (differing, limits.invalid),
            message,
        )
    } else if differing >= limits.warn {
        CheckResult::fired(
            Level::Warn,
            Blame::Client,
            (differing, limits.warn),
            message,
        )
    } else {
        CheckResult::Passed
    }
}
