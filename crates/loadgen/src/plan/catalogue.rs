//! All checks of a load: name, what it examines, when it fires, and the fix.
//!
//! The single source of the checks' names and descriptions: `loadgen --explain`, `wsgiload explain`
//! and the reasons of a verdict use it. Default thresholds come from [`Thresholds`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::thresholds::Thresholds;

/// Description of one check.
#[derive(Debug, PartialEq, JsonSchema, Serialize)]
pub struct CheckInfo {
    /// Name in verdicts, options and documentation.
    pub name: &'static str,
    /// What the check examines.
    pub looks_at: &'static str,
    /// When the check fires, and why that matters.
    pub fires_when: &'static str,
    /// How to fix the cause; `None` if no fix is known.
    pub fix: Option<&'static str>,
}

/// All checks of a load. The orchestrator has the checks that need the server or the host
/// (`app-calls`, `kernel-drops`, `shared-cores`).
pub const ALL: [&CheckInfo; 26] = [
    &TIMESTAMP_ORDER,
    &IN_SYSTEM_COUNT,
    &INTERRUPTED,
    &ARRIVAL_COUNT,
    &NO_ARRIVAL,
    &NO_RESPONSE,
    &UNSOLICITED,
    &CLIENT_THROTTLING,
    &SEND_LAG,
    &SEND_LAG_ABSOLUTE,
    &CLIENT_STALLS,
    &MISSED_SENDS,
    &CLIENT_CPU,
    &RUN_QUEUE_WAIT,
    &STEAL,
    &CLIENT_RESOURCES,
    &POISSON_GAPS,
    &THREAD_AGREEMENT,
    &NOISE_FLOOR,
    &SERVER_STALL,
    &BACKLOG_GROWTH,
    &CAPPED,
    &SHED,
    &FAILED,
    &STATIONARITY,
    &MIXED_RATES,
];

pub(crate) static TIMESTAMP_ORDER: CheckInfo = CheckInfo {
    name: "timestamp-order",
    looks_at: "the timestamps of each response",
    fires_when: "Any response has timestamps out of order. This is a bug in the generator.",
    fix: Some("file a bug and attach the JSON report of this load"),
};

pub(crate) static IN_SYSTEM_COUNT: CheckInfo = CheckInfo {
    name: "in-system-count",
    looks_at: "the mean number of requests in the system, computed in two ways: from arrivals and \
        departures, and from the time of each request in the system (Little's law)",
    fires_when: "The two results differ. This is a bug in the generator.",
    fix: Some("file a bug and attach the JSON report of this load"),
};

pub(crate) static INTERRUPTED: CheckInfo = CheckInfo {
    name: "interrupted",
    looks_at: "whether the load completed",
    fires_when: "The load was stopped early. The results so far are kept.",
    fix: Some("run the load again without interruption"),
};

pub(crate) static ARRIVAL_COUNT: CheckInfo = CheckInfo {
    name: "arrival-count",
    looks_at: "the number of scheduled arrivals, compared with the rate and the duration",
    fires_when: "The number differs by more than four standard errors (Poisson arrivals), by more \
        than one arrival (constant arrivals), or at all (trace).",
    fix: Some("try another --seed; if it recurs, file a bug"),
};

pub(crate) static NO_ARRIVAL: CheckInfo = CheckInfo {
    name: "no-arrival",
    looks_at: "the number of requests scheduled in the measurement",
    fires_when: "No request was scheduled, so nothing was measured.",
    fix: Some("measure longer (--duration) or at a higher rate"),
};

pub(crate) static NO_RESPONSE: CheckInfo = CheckInfo {
    name: "no-response",
    looks_at: "the number of correct responses",
    fires_when: "No correct response arrived, so there is no latency to report.",
    fix: Some(
        "check that the server responds to this URL and that --expect-... accepts the response",
    ),
};

pub(crate) static UNSOLICITED: CheckInfo = CheckInfo {
    name: "unsolicited-responses",
    looks_at: "responses that arrive on an idle connection, before a request, or with another one",
    fires_when: "The server sent a response without a request. A closed loop is then invalid: a \
        server that is always one response ahead seems faster than it is.",
    fix: Some("check that the server sends exactly one response per request"),
};

pub(crate) static CLIENT_THROTTLING: CheckInfo = CheckInfo {
    name: "client-throttling",
    looks_at: "CPU throttling of the generator's own cgroup",
    fires_when: "The generator was throttled, so it sent requests and read responses late. The \
        load is invalid if the throttling distorted p99 or a lower quantile.",
    fix: Some("raise the CPU limit of the generator's cgroup"),
};

pub(crate) static SEND_LAG: CheckInfo = CheckInfo {
    name: "send-lag",
    looks_at: "each quantile of the response time, compared with the same quantile after \
        subtracting each request's send lag",
    fires_when: "Send lag increased a quantile by more than both the relative and the absolute \
        limit. Above the limits `bound` and `bound_ns`, the quantile is only an upper bound. If \
        send lag more than doubled p99 or a lower quantile, the load is invalid. Smaller effects \
        are diagnostics and part of each figure's error budget.",
    fix: Some("give the generator a dedicated core (--client-cpus), or lower the rate"),
};

pub(crate) static SEND_LAG_ABSOLUTE: CheckInfo = CheckInfo {
    name: "send-lag-absolute",
    looks_at: "p99 and p99.9 of the send lag",
    fires_when: "One of them exceeds its threshold. This is only a diagnostic; the check send-lag \
        shows the effect on response times.",
    fix: Some("give the generator a dedicated core (--client-cpus), or lower the rate"),
};

pub(crate) static CLIENT_STALLS: CheckInfo = CheckInfo {
    name: "client-stalls",
    looks_at: "stalls of more than 5 ms in the generator's event loop, and the number of requests \
        they affected, compared with the number beyond p99",
    fires_when: "The stalls were long enough, and affected enough requests, to change p99. The \
        load is invalid if too many responses were read late without a kernel timestamp, or too \
        many connections were delayed. The check send-lag covers the requests due during a stall.",
    fix: Some("stop other programs on the machine, or give the generator a dedicated core"),
};

pub(crate) static MISSED_SENDS: CheckInfo = CheckInfo {
    name: "missed-sends",
    looks_at: "the share of the measurement's requests that were sent in time",
    fires_when: "The generator was so late that requests were sent after the end of the \
        measurement or missed their deadline.",
    fix: Some("lower the rate, or use more threads (--threads)"),
};

pub(crate) static CLIENT_CPU: CheckInfo = CheckInfo {
    name: "client-cpu",
    looks_at: "the CPU use of the busiest generator thread, excluding busy-waiting",
    fires_when: "The thread is so busy that requests queue in the generator.",
    fix: Some("use more threads (--threads), or lower the rate"),
};

pub(crate) static RUN_QUEUE_WAIT: CheckInfo = CheckInfo {
    name: "run-queue-wait",
    looks_at: "the share of the time for which a generator thread waited for a core",
    fires_when: "Generator threads were runnable, but other processes used their cores. This is \
        only a diagnostic; the check send-lag shows the effect on response times.",
    fix: Some("stop other programs on the machine, or give the generator a dedicated core"),
};

pub(crate) static STEAL: CheckInfo = CheckInfo {
    name: "steal",
    looks_at: "steal time: the share of the host's CPU time taken by the hypervisor",
    fires_when: "The hypervisor took CPU time from this virtual machine. Steal time can only \
        increase response times, so the figures are upper bounds.",
    fix: Some("repeat on a dedicated machine, or when the host is less busy"),
};

pub(crate) static CLIENT_RESOURCES: CheckInfo = CheckInfo {
    name: "client-resources",
    looks_at: "requests that failed or waited because the generator lacked file descriptors, local \
        ports, memory or connections",
    fires_when: "At least one request failed or waited. The load is invalid if more than 0.1 % of \
        the requests failed, or more than 1 % waited.",
    fix: Some("raise `ulimit -n`, add --source-addresses, or lower --max-connections"),
};

pub(crate) static POISSON_GAPS: CheckInfo = CheckInfo {
    name: "poisson-gaps",
    looks_at: "up to 10,000 consecutive send times, compared with the requested Poisson process",
    fires_when: "Inter-arrival times deviate from the exponential distribution. This is only a \
        diagnostic: at high rates, serial sending alone causes such deviations, without any effect \
        on latency.",
    fix: Some("look at the check send-lag, which shows the effect on response times"),
};

pub(crate) static THREAD_AGREEMENT: CheckInfo = CheckInfo {
    name: "thread-agreement",
    looks_at: "p99 of each generator thread, compared with the overall p99",
    fires_when: "The p99 of a thread differs significantly, and by more than 10 % and 100 µs, \
        although all threads share one schedule.",
    fix: Some("pin the generator to idle cores (--client-cpus), or use one thread"),
};

pub(crate) static NOISE_FLOOR: CheckInfo = CheckInfo {
    name: "noise-floor",
    looks_at: "each quantile, compared with this machine's noise floor (`wsgiload calibrate`)",
    fires_when: "A quantile is below three times the noise floor, so it is only an upper bound. \
        Between three and ten times the noise floor, the finding is only a diagnostic.",
    fix: Some("compare servers by CPU time per request instead, or use a machine with less noise"),
};

pub(crate) static SERVER_STALL: CheckInfo = CheckInfo {
    name: "server-stall",
    looks_at: "the longest time in which requests waited and no response came, to a 120th of the \
        measurement",
    fires_when: "At least five requests waited for at least 1 s and twice the p99 of the other \
        requests, and the generator itself did not stall. The checks backlog-growth and \
        stationarity then do not fire, because the stall explains what they find.",
    fix: Some("look for what stopped or blocked the whole server, for example in its log"),
};

pub(crate) static BACKLOG_GROWTH: CheckInfo = CheckInfo {
    name: "backlog-growth",
    looks_at: "the growth of the number of requests in the system, and drops because of a full \
        queue",
    fires_when: "The backlog grew: the server cannot sustain the offered rate, and all quantiles \
        grow with the duration.",
    fix: Some("lower the rate; `wsgiload capacity` finds the highest sustainable rate"),
};

pub(crate) static CAPPED: CheckInfo = CheckInfo {
    name: "capped",
    looks_at: "requests that waited because the maximum number of connections was reached",
    fires_when: "At least one request waited. While all connections are busy, the load behaves \
        like a closed loop.",
    fix: Some("raise --max-connections"),
};

pub(crate) static SHED: CheckInfo = CheckInfo {
    name: "shed",
    looks_at: "requests that were dropped instead of sent",
    fires_when: "At least one request was dropped. Dropped requests count as failed.",
    fix: Some("lower the rate, or raise --max-pending"),
};

pub(crate) static FAILED: CheckInfo = CheckInfo {
    name: "failed",
    looks_at: "requests without a correct response",
    fires_when: "At least one request failed. Quantiles over all scheduled requests count \
        failures as infinitely slow.",
    fix: Some("look at the failure counts and the server's log"),
};

pub(crate) static STATIONARITY: CheckInfo = CheckInfo {
    name: "stationarity",
    looks_at: "changes in response times during the measurement",
    fires_when: "Response times drifted or jumped, so one quantile does not describe the whole \
        measurement.",
    fix: Some("use a longer --warmup; if this does not help, use a longer --duration"),
};

pub(crate) static MIXED_RATES: CheckInfo = CheckInfo {
    name: "mixed-rates",
    looks_at: "whether the offered rate was constant",
    fires_when: "The rate varied, so the quantiles describe a mixture of rates.",
    fix: Some("measure each rate separately, for example with `wsgiload sweep`"),
};

/// A check with its default thresholds.
#[derive(Debug, JsonSchema, Serialize)]
struct Explained {
    #[serde(flatten)]
    info: &'static CheckInfo,
    thresholds: BTreeMap<String, f64>,
}

/// The catalogue as JSON: a list of `{name, code, looks_at, fires_when, fix, thresholds}`, where
/// `thresholds` maps keys to defaults.
///
/// # Panics
/// Never: the catalogue is plain data.
#[must_use]
pub fn check_catalogue_json() -> String {
    let thresholds = Thresholds::default();
    let explained: Vec<Explained> = ALL
        .into_iter()
        .map(|info| Explained {
            info,
            thresholds: thresholds.of_check(info.name),
        })
        .collect();
    serde_json::to_string(&explained).expect("the catalogue is plain data")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_threshold_belongs_to_a_check() {
        let names: BTreeSet<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), ALL.len());

        let table = serde_json::to_value(Thresholds::default()).expect("plain data");
        for check in table.as_object().expect("a table").keys() {
            assert!(names.contains(check.as_str()), "{check}");
        }
    }
}
