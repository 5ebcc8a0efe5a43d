//! Was it me? Judges whether the figures of a run can be trusted, and whose fault it is when they cannot.
//!
//! The checks and their limits are those of the documented method; each reason names its check.

use serde::Serialize;

use crate::hiccups::Hiccups;

/// How much a run's figures can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to remark.
    Valid,
    /// The figures stand, with a remark.
    Warn,
    /// The figures do not stand.
    Invalid,
}

/// Whose doing a doubt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The generator.
    Client,
    /// Other work on the host, or the hypervisor.
    Host,
    /// The plan: too short, too small, contradictory.
    Method,
    /// The server under test: the figures are true, and tell that it could not keep up.
    Server,
}

/// One doubt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// Identifier of the check, as in the documented method.
    pub check: String,
    /// How grave it is.
    pub level: Level,
    /// In words, with the figure.
    pub message: String,
    /// The figure that was found.
    pub value: f64,
    /// The limit that it crossed.
    pub limit: f64,
    /// Whose doing it is; the verdict names the gravest one's.
    #[serde(skip)]
    pub blame: Blame,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The gravest level of all reasons.
    pub status: Level,
    /// Whose doing the gravest reason is; `None` when valid.
    pub blame: Option<Blame>,
    /// Every doubt, gravest first.
    pub reasons: Vec<Reason>,
}

/// Figures of a run that the checks look at. Shares lie in `[0, 1]`; `None` where the figure is not known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub scheduled: u64,
    /// What the schedule brought: requests, or sessions where the plan has some.
    pub arrivals: u64,
    pub expected_arrivals: Option<Expected>,
    /// Lowest and highest rate of the measure phase.
    pub offered_rates_per_s: Option<(f64, f64)>,
    /// For each reported quantile: how much longer our own lateness made the response time, as a share.
    pub lag_impact: Vec<(f64, f64)>,
    pub send_lag_p99_ns: Option<u64>,
    pub send_lag_p999_ns: Option<u64>,
    pub response_p50_ns: Option<u64>,
    pub busiest_thread_share: f64,
    pub run_queue_share: Option<f64>,
    pub steal_share: Option<f64>,
    pub hiccups: Hiccups,
    pub hiccup_share: f64,
    pub throttled_periods: u64,
    pub client_errors: u64,
    pub inconsistent: u64,
    pub ok: u64,
    pub waited_for_connection_share: f64,
    pub max_connections: usize,
    pub dropped: u64,
    pub unanswered_share: f64,
    pub is_interrupted: bool,
}

/// How many arrivals the schedule should have had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub mean: f64,
    pub tolerance: f64,
}

/// Collects reasons.
#[derive(Default)]
struct Findings(Vec<Reason>);

impl Findings {
    fn add(&mut self, check: &str, level: Level, blame: Blame, (value, limit): (f64, f64), message: String) {
        self.0.push(Reason { check: check.to_owned(), level, message, value, limit, blame });
    }

    /// Adds the graver of two levels that `value` exceeds, if any.
    fn graded(&mut self, check: &str, blame: Blame, value: f64, limits: Limits, message: String) {
        if value > limits.invalid {
            self.add(check, Level::Invalid, blame, (value, limits.invalid), message);
        } else if value > limits.warn {
            self.add(check, Level::Warn, blame, (value, limits.warn), message);
        }
    }
}

#[derive(Clone, Copy)]
struct Limits {
    warn: f64,
    invalid: f64,
}

const RUN_QUEUE_LIMITS: Limits = Limits { warn: 0.001, invalid: 0.01 };
const STEAL_LIMITS: Limits = Limits { warn: 0.001, invalid: 0.01 };

impl Verdict {
    pub(crate) fn judge(evidence: &Evidence) -> Self {
        let mut findings = Findings::default();
        judge_bookkeeping(evidence, &mut findings);
        judge_throttling(evidence, &mut findings);
        judge_lateness(evidence, &mut findings);
        judge_hiccups(evidence, &mut findings);
        judge_resources(evidence, &mut findings);
        judge_overload(evidence, &mut findings);
        judge_mixture(evidence, &mut findings);
        let mut reasons = findings.0;
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let status = reasons.first().map_or(Level::Valid, |reason| reason.level);
        let blame = reasons.first().map(|reason| reason.blame);
        Self { status, blame, reasons }
    }
}

/// Two or three digits: more would claim what no check can tell.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn judge_bookkeeping(evidence: &Evidence, findings: &mut Findings) {
    if evidence.inconsistent > 0 {
        let message = format!("{} answers have instants that contradict each other", evidence.inconsistent);
        findings.add("C1", Level::Invalid, Blame::Client, (evidence.inconsistent as f64, 0.0), message);
    }
    if evidence.is_interrupted {
        let message = "the run was stopped before its end".to_owned();
        findings.add("interrupted", Level::Invalid, Blame::Method, (1.0, 0.0), message);
    } else if let Some(expected) = evidence.expected_arrivals {
        let off = (evidence.arrivals as f64 - expected.mean).abs();
        if off > expected.tolerance {
            let message = format!("{} arrivals were scheduled instead of {:.0}", evidence.arrivals, expected.mean);
            findings.add("C2", Level::Warn, Blame::Method, (off, expected.tolerance), message);
        }
    }
    if evidence.scheduled == 0 {
        let message = "not one arrival fell into the measurement; measure longer or at a higher rate".to_owned();
        findings.add("no-arrival", Level::Invalid, Blame::Method, (0.0, 1.0), message);
    } else if evidence.ok == 0 {
        let message = "no right answer came, so there is no latency to report".to_owned();
        findings.add("no-answer", Level::Warn, Blame::Server, (0.0, 1.0), message);
    }
}

/// A wait for a core that is less than this share of the loop's own standstill does not explain it.
const LEAST_EXPLANATION: f64 = 0.5;

/// Lateness is our own doing, unless the thread stood in line for a core meanwhile, and long enough.
fn lateness_blame(evidence: &Evidence) -> Blame {
    let is_disturbed = |share: Option<f64>, limits: Limits| share.is_some_and(|share| share > limits.warn);
    let is_seen = is_disturbed(evidence.run_queue_share, RUN_QUEUE_LIMITS)
        || is_disturbed(evidence.steal_share, STEAL_LIMITS);
    let others_share = evidence.run_queue_share.unwrap_or(0.0) + evidence.steal_share.unwrap_or(0.0);
    let is_explained = others_share >= evidence.hiccup_share * LEAST_EXPLANATION;
    if is_seen && is_explained { Blame::Host } else { Blame::Client }
}

fn judge_lateness(evidence: &Evidence, findings: &mut Findings) {
    let blame = lateness_blame(evidence);
    let impact = evidence.lag_impact.iter().copied().max_by(|left, right| left.1.total_cmp(&right.1));
    if let Some((quantile, share)) = impact {
        let message =
            format!("the generator's own lateness lengthened p{} by {}", quantile * 100.0, percent(share));
        findings.graded("C4", blame, share, Limits { warn: 0.01, invalid: 0.05 }, message);
    }
    let (Some(p99_ns), Some(p999_ns)) = (evidence.send_lag_p99_ns, evidence.send_lag_p999_ns) else { return };
    let p50_ns = evidence.response_p50_ns.unwrap_or(0);
    let message = format!("send lag: p99 {}, p99.9 {}", milliseconds(p99_ns), milliseconds(p999_ns));
    if p99_ns > 1_000_000 && p99_ns > p50_ns / 10 {
        findings.add("C5", Level::Invalid, blame, (p99_ns as f64, 1e6), message);
    } else if p99_ns > 200_000 || p999_ns > 1_000_000 {
        findings.add("C5", Level::Warn, blame, (p99_ns as f64, 2e5), message);
    }
}

/// Comes before what follows from it: waiting for a core, and lateness.
fn judge_throttling(evidence: &Evidence, findings: &mut Findings) {
    if evidence.throttled_periods > 0 {
        let message = format!(
            "the generator's own CPU limit stopped it in {} periods; give its control group more CPU",
            evidence.throttled_periods
        );
        findings.add("C9", Level::Invalid, Blame::Client, (evidence.throttled_periods as f64, 0.0), message);
    }
}

/// Stalls of the generator's own loop: what they did to the highest quantile that is usually read, p99.
fn judge_hiccups(evidence: &Evidence, findings: &mut Findings) {
    let hiccups = &evidence.hiccups;
    let tail = (evidence.scheduled as f64 * 0.01).max(1.0);
    let message = format!(
        "the generator's loop stood still {} times, for {} at most; {} arrivals were intended meanwhile",
        hiccups.count,
        milliseconds(hiccups.longest_ns),
        hiccups.arrivals
    );
    let limits = Limits { warn: 0.02, invalid: 0.1 };
    findings.graded("C11", lateness_blame(evidence), hiccups.arrivals as f64 / tail, limits, message);
}

fn judge_resources(evidence: &Evidence, findings: &mut Findings) {
    let busy = evidence.busiest_thread_share;
    let message = format!("a generator thread was busy for {} of the time; use more threads", percent(busy));
    findings.graded("C7", Blame::Client, busy, Limits { warn: 0.6, invalid: 0.85 }, message);
    if let Some(share) = evidence.run_queue_share {
        let message = format!("a generator thread waited for a core for {} of the time", percent(share));
        findings.graded("C8", Blame::Host, share, RUN_QUEUE_LIMITS, message);
    }
    if let Some(share) = evidence.steal_share {
        let message = format!("the hypervisor took {} of the host's CPU time", percent(share));
        findings.graded("C10", Blame::Host, share, STEAL_LIMITS, message);
    }
    if evidence.client_errors > 0 {
        let message = format!(
            "{} requests failed because the generator ran out of descriptors, ports or memory",
            evidence.client_errors
        );
        findings.add("C12", Level::Invalid, Blame::Client, (evidence.client_errors as f64, 0.0), message);
    }
}

fn judge_overload(evidence: &Evidence, findings: &mut Findings) {
    let waited = evidence.waited_for_connection_share;
    if waited > 0.0 {
        let message = format!(
            "connection-capped at {}: closed above that, share {}",
            evidence.max_connections,
            percent(waited)
        );
        findings.add("capped", Level::Warn, Blame::Server, (waited, 0.0), message);
    }
    if evidence.dropped > 0 {
        let message = format!("overload: {} arrivals were shed and count as not answered", evidence.dropped);
        findings.add("shed", Level::Warn, Blame::Server, (evidence.dropped as f64, 0.0), message);
    }
    let failed = evidence.unanswered_share;
    if failed > 0.0 {
        let message = format!("{} of the offered requests were not answered correctly", percent(failed));
        findings.add("failed", Level::Warn, Blame::Server, (failed, 0.0), message);
    }
}

/// A ramp is not a sweep: its quantiles belong to no rate.
fn judge_mixture(evidence: &Evidence, findings: &mut Findings) {
    let Some((lowest, highest)) = evidence.offered_rates_per_s else { return };
    if highest > lowest {
        let [from, to] = [lowest, highest].map(|rate| (rate * 100.0).round() / 100.0);
        let message = format!(
            "the offered rate varied between {from} and {to} per second, so the quantiles mix loads and hold \
             for no one rate; measure each rate by itself, or sweep"
        );
        findings.add("mixed-rates", Level::Warn, Blame::Method, (highest, lowest), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Evidence {
        Evidence { scheduled: 1_000, arrivals: 1_000, ok: 1_000, ..Evidence::default() }
    }

    /// Hiccups that swallowed so many arrivals.
    fn hiccups(arrivals: u64) -> Hiccups {
        let mut hiccups = Hiccups::default();
        hiccups.note(0, 10_000_000);
        (0..arrivals).for_each(|instant_ns| hiccups.arrival(instant_ns));
        hiccups
    }

    fn checks(evidence: &Evidence) -> (Level, Vec<String>) {
        let verdict = Verdict::judge(evidence);
        (verdict.status, verdict.reasons.into_iter().map(|reason| reason.check).collect())
    }

    #[test]
    fn a_sound_run_is_valid() {
        let verdict = Verdict::judge(&sound());
        assert_eq!((verdict.status, verdict.blame, verdict.reasons.len()), (Level::Valid, None, 0));
    }

    #[test]
    fn each_check_bites_at_its_limit() {
        let cases: Vec<(&str, Level, Evidence)> = vec![
            ("C1", Level::Invalid, Evidence { inconsistent: 1, ..sound() }),
            (
                "C2",
                Level::Warn,
                Evidence { expected_arrivals: Some(Expected { mean: 1_200.0, tolerance: 139.0 }), ..sound() },
            ),
            ("C4", Level::Warn, Evidence { lag_impact: vec![(0.5, 0.0), (0.99, 0.02)], ..sound() }),
            ("C4", Level::Invalid, Evidence { lag_impact: vec![(0.99, 0.06)], ..sound() }),
            (
                "C5",
                Level::Warn,
                Evidence { send_lag_p99_ns: Some(300_000), send_lag_p999_ns: Some(400_000), ..sound() },
            ),
            ("C7", Level::Warn, Evidence { busiest_thread_share: 0.7, ..sound() }),
            ("C8", Level::Invalid, Evidence { run_queue_share: Some(0.02), ..sound() }),
            ("C9", Level::Invalid, Evidence { throttled_periods: 1, ..sound() }),
            ("C10", Level::Warn, Evidence { steal_share: Some(0.005), ..sound() }),
            ("C11", Level::Warn, Evidence { hiccups: hiccups(1), ..sound() }),
            ("C11", Level::Invalid, Evidence { hiccups: hiccups(2), ..sound() }),
            ("C12", Level::Invalid, Evidence { client_errors: 1, ..sound() }),
            ("capped", Level::Warn, Evidence { waited_for_connection_share: 0.1, ..sound() }),
            ("shed", Level::Warn, Evidence { dropped: 1, ..sound() }),
            ("failed", Level::Warn, Evidence { unanswered_share: 0.1, ..sound() }),
            ("mixed-rates", Level::Warn, Evidence { offered_rates_per_s: Some((10.0, 20.0)), ..sound() }),
            ("interrupted", Level::Invalid, Evidence { is_interrupted: true, ..sound() }),
        ];
        for (check, level, evidence) in cases {
            assert_eq!(checks(&evidence), (level, vec![check.to_owned()]), "{check}");
        }
    }

    #[test]
    fn the_gravest_reason_decides_and_comes_first() {
        let evidence = Evidence { dropped: 5, client_errors: 1, ..sound() };
        let verdict = Verdict::judge(&evidence);
        assert_eq!((verdict.status, verdict.blame), (Level::Invalid, Some(Blame::Client)));
        assert_eq!(verdict.reasons[0].check, "C12");
    }

    #[test]
    fn one_rate_is_no_mixture_and_a_mixture_is_said_last() {
        let flat = Evidence { offered_rates_per_s: Some((10.0, 10.0)), ..sound() };
        assert_eq!(checks(&flat), (Level::Valid, vec![]));
        let shed = Evidence { offered_rates_per_s: Some((10.0, 20.0)), dropped: 1, ..sound() };
        assert_eq!(checks(&shed).1, ["shed", "mixed-rates"]);
        assert_eq!(Verdict::judge(&shed).blame, Some(Blame::Server));
    }

    #[test]
    fn lateness_is_the_hosts_doing_where_the_thread_had_to_wait() {
        let late = Evidence { lag_impact: vec![(0.99, 0.06)], ..sound() };
        assert_eq!(Verdict::judge(&late).blame, Some(Blame::Client));
        let disturbed = Evidence { run_queue_share: Some(0.02), ..late.clone() };
        assert_eq!(Verdict::judge(&disturbed).blame, Some(Blame::Host));
        let stopped = Evidence { run_queue_share: Some(0.004), hiccup_share: 0.1, ..late };
        assert_eq!(
            Verdict::judge(&stopped).blame,
            Some(Blame::Client),
            "the wait explains little of the standstill"
        );
    }

    #[test]
    fn an_overloaded_server_does_not_invalidate() {
        let evidence = Evidence { dropped: 5, unanswered_share: 0.5, waited_for_connection_share: 0.9, ..sound() };
        let verdict = Verdict::judge(&evidence);
        assert_eq!((verdict.status, verdict.blame), (Level::Warn, Some(Blame::Server)));
    }
}
