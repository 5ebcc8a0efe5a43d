//! Did the generator send what it should have, when it should have, alike in all its threads?

use super::evidence::Evidence;
use super::words::{percent, plural, thousands};
use super::{Blame, Finding, Level, lateness};
use crate::plan::thresholds::Thresholds;

/// `missed-sends`: of the requests that could go out inside the measurement, how many did. What was
/// dropped,
/// waited for a connection or failed to connect is not our lateness, unless that is what made it
/// miss its deadline. Other generators are content with 0.99.
pub(super) fn all_went_out_in_time(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let Some(share) = evidence.sent_in_time_share else {
        return Finding::NotChecked("a closed loop has no schedule");
    };
    let limits = thresholds.sent;
    let message = format!(
        "{} of requests were sent after the end of the measurement or missed their deadline \
        because the generator was late",
        percent(1.0 - share)
    );
    let blame = lateness::blame(evidence, thresholds);
    if share < limits.invalid {
        Finding::doubt(Level::Invalid, blame, (share, limits.invalid), message)
    } else if share < limits.warn {
        Finding::doubt(Level::Warn, blame, (share, limits.warn), message)
    } else {
        Finding::Sound
    }
}

/// `noise-floor`: a figure near to what the generator measures of a server that responds at once
/// tells of the
/// generator. Below three times that it is printed as a bound; the load stands.
pub(super) fn figures_are_above_the_floor(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let (quantile, ratio) = match evidence.floor_ratio {
        Ok(lowest) => lowest,
        Err(reason) => return Finding::NotChecked(reason),
    };
    let name = quantile * 100.0;
    let limits = &thresholds.floor;
    if ratio < limits.unresolved {
        let message = format!(
            "p{name} is only {ratio:.1} times this machine's noise floor, so it is an upper bound"
        );
        return Finding::doubt(
            Level::Warn,
            Blame::Method,
            (ratio, limits.unresolved),
            message,
        );
    }
    if ratio < limits.note {
        let message = format!("p{name} is only {ratio:.1} times this machine's noise floor");
        return Finding::noted(Blame::Method, (ratio, limits.note), message);
    }
    Finding::Sound
}

/// `poisson-gaps`: consecutive sends, all threads together, against a Poisson process. A diagnostic
/// only: the distance is about the rate times the duration of a send, for any sender that sends one
/// request after the other, and shifts p99 by a microsecond.
pub(super) fn gaps_are_exponential(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let gaps = match evidence.send_gaps {
        Ok(gaps) => gaps,
        Err(reason) => return Finding::NotChecked(reason),
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
        return Finding::noted(blame, (statistic, limits.note_anderson_darling), message);
    }
    let deviation = gaps.dispersion_deviation.unwrap_or(0.0);
    let message = format!(
        "the variance of the sends per 10 ms, 100 ms or 1 s deviates from a Poisson process by \
        {deviation:.1} standard errors"
    );
    Finding::noted_above(blame, deviation, limits.note_dispersion, message)
}

/// `thread-agreement`: threads that share one schedule measure one server, so their quantiles
/// differ by chance
/// alone.
pub(super) fn threads_agree(evidence: &Evidence, thresholds: &Thresholds) -> Finding {
    let count = match evidence.differing_threads {
        Ok(count) => count as u64,
        Err(reason) => return Finding::NotChecked(reason),
    };
    let (differing, limits) = (count as f64, thresholds.threads);
    let message = format!(
        "p99 of {} differs significantly from the overall p99",
        plural(count, "generator thread")
    );
    if differing >= limits.invalid {
        Finding::doubt(
            Level::Invalid,
            Blame::Client,
            (differing, limits.invalid),
            message,
        )
    } else if differing >= limits.warn {
        Finding::doubt(
            Level::Warn,
            Blame::Client,
            (differing, limits.warn),
            message,
        )
    } else {
        Finding::Sound
    }
}
