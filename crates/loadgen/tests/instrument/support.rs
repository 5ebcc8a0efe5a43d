//! Runs loads one at a time, asserts the invariants of every report, and judges timing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use loadgen::plan::{Arrivals, LoadModel, OnBusy, OpenLoop};
use loadgen::{Blame, LatencyHistogram, LoadPlan, LoadReport, Outcome, StopToken, run};
use refsrv::{Config, LogEntry, Outcome as ServerOutcome, ReferenceServer, Service, Stats};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000 * US;
pub const SECOND: u64 = 1_000 * MS;

/// Maximum CPU use of other processes, in cores, that does not disturb a load with two threads on
/// two cores.
const MAX_OTHER_CORES: f64 = 0.1;

/// Resolution of CPU times in `/proc` on every Linux.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// If the server's median response is later than this, the server did not get its core in time.
const MAX_SERVER_LATENESS_NS: u64 = 200 * US;

const ATTEMPTS: usize = 3;

/// Serializes the tests: two cores suffice for only one generator and one server.
pub fn lock_host() -> MutexGuard<'static, ()> {
    static HOST: Mutex<()> = Mutex::new(());
    HOST.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn server_with(config: Config) -> ReferenceServer {
    ReferenceServer::start(config).expect("a server on a free port")
}

pub fn constant_hold(hold_ns: u64) -> Config {
    Config {
        service: Service::Constant { hold_ns },
        ..Config::default()
    }
}

pub fn url_of(server: &ReferenceServer) -> String {
    format!("http://{}/", server.addr())
}

/// Constant arrivals, so that their number is known in advance.
pub fn constant_rate(url: &str, rate_per_s: f64, measure_ns: u64) -> LoadPlan {
    let mut plan = LoadPlan::open(url, rate_per_s, measure_ns);
    open_loop(&mut plan).arrivals = Arrivals::Constant;
    plan
}

/// [`constant_rate`] with this maximum number of connections; other requests queue.
pub fn capped(url: &str, rate_per_s: f64, measure_ns: u64, max_connections: usize) -> LoadPlan {
    let mut plan = constant_rate(url, rate_per_s, measure_ns);
    let open = open_loop(&mut plan);
    (open.on_busy, open.max_connections) = (OnBusy::Queue, Some(max_connections));
    plan
}

pub fn open_loop(plan: &mut LoadPlan) -> &mut OpenLoop {
    match &mut plan.load {
        LoadModel::Open(open) => open,
        LoadModel::Closed(_) => panic!("the plan is a closed loop"),
    }
}

/// The records of client and server of one load.
pub struct Trial {
    pub report: LoadReport,
    pub log: Vec<LogEntry>,
    pub stats: Stats,
}

impl Trial {
    /// Runs a load against a new server.
    pub fn of(config: Config, plan: impl FnOnce(&str) -> LoadPlan) -> Self {
        let server = server_with(config);
        Self::on(&server, &plan(&url_of(&server)))
    }

    /// Runs a load against a server.
    pub fn on(server: &ReferenceServer, plan: &LoadPlan) -> Self {
        let report = run(plan, &StopToken::new()).expect("a plan that can be carried out");
        assert_consistent(&report);
        Self {
            report,
            log: server.log(),
            stats: server.stats(),
        }
    }

    pub fn count(&self, outcome: Outcome) -> u64 {
        self.report.outcome(outcome)
    }

    pub fn scheduled(&self) -> u64 {
        self.report.scheduled()
    }

    /// Time within the server, from arrival to write, of each correctly answered request,
    /// ascending.
    pub fn times_in_server(&self) -> Vec<u64> {
        let is_correct = |entry: &&LogEntry| {
            matches!(
                entry.outcome,
                ServerOutcome::Answered | ServerOutcome::StaleClose
            )
        };
        let mut times: Vec<u64> = self
            .log
            .iter()
            .filter(is_correct)
            .filter_map(|entry| Some(entry.write_ns? - entry.arrive_ns))
            .collect();
        times.sort_unstable();

        times
    }

    /// Arrival times at the server, ascending.
    pub fn arrivals(&self) -> Vec<u64> {
        let mut arrivals_ns: Vec<u64> = self.log.iter().map(|entry| entry.arrive_ns).collect();
        arrivals_ns.sort_unstable();
        arrivals_ns
    }

    /// Whether the verdict has a reason from this check.
    pub fn has_reason(&self, check: &str) -> bool {
        self.report
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.check == check)
    }
}

/// Asserts the invariants of every report, whatever the load and the machine.
pub fn assert_consistent(report: &LoadReport) {
    let scheduled = report.scheduled();
    let accounted: u64 = Outcome::ALL
        .into_iter()
        .map(|outcome| report.outcome(outcome))
        .sum();
    assert_eq!(
        accounted, scheduled,
        "each arrival has one outcome: {:?}",
        report.outcomes
    );

    let ok = report.outcome(Outcome::Ok);
    let measures = report.measures();
    for (name, histogram) in [
        ("response time", &measures.response),
        ("service time", &measures.service),
        ("send lag", &measures.send_lag),
        ("pool wait", &measures.pool_wait),
        ("first byte", &measures.first_byte),
        ("transfer", &measures.transfer),
    ] {
        assert_eq!(histogram.count(), ok, "each correct response has a {name}");
    }
    let parts = total(&measures.pool_wait)
        + total(&measures.send_lag)
        + total(&measures.connect)
        + total(&measures.service);
    assert_eq!(
        total(&measures.response),
        parts,
        "the parts of the response times add up"
    );

    let (mut interval_scheduled, mut interval_ok, mut interval_failed) = (0, 0, 0);
    for interval in &report.intervals {
        interval_scheduled += interval.scheduled;
        interval_ok += interval.ok;
        interval_failed += interval.failed;
    }
    assert_eq!(
        (interval_scheduled, interval_ok, interval_failed),
        (scheduled, ok, scheduled - ok),
        "the intervals add up to the totals"
    );

    let is_defect = |check: &str| ["timestamp-order", "in-system-count"].contains(&check);
    let defects: Vec<_> = report
        .verdict
        .reasons
        .iter()
        .filter(|reason| is_defect(&reason.check))
        .collect();
    assert!(
        defects.is_empty(),
        "inconsistent timestamps or counts: {defects:?}"
    );
}

/// The exact sum of a histogram's values.
pub fn total(histogram: &LatencyHistogram) -> u64 {
    // The mean is the exact sum divided by the count; below 2^53, the product rounds to the sum.
    histogram
        .mean_ns()
        .map_or(0, |mean| (mean * histogram.count() as f64).round() as u64)
}

/// Asserts that the client's values are not smaller than the server's, rank by rank. This holds
/// even on a busy host, because every time at the client includes the time at the server.
pub fn assert_encloses(client: &LatencyHistogram, server: &[u64]) {
    assert_eq!(
        client.count(),
        server.len() as u64,
        "client and server count the same responses"
    );
    assert!(
        total(client) >= server.iter().sum::<u64>(),
        "the client's sum is not smaller"
    );

    for (rank, &inner_ns) in (1..).zip(server) {
        let outer_ns = client
            .at_rank_ns(rank)
            .expect("as many values as the server");
        assert!(
            outer_ns >= inner_ns,
            "rank {rank}: client {outer_ns} ns, server {inner_ns} ns"
        );
    }
}

/// Median over the ranks of the client's excess over the server's own measurement, reduced by the
/// width of the histogram buckets.
pub fn median_excess_ns(client: &LatencyHistogram, server: &[u64]) -> u64 {
    let mut excess: Vec<u64> = (1..)
        .zip(server)
        .map(|(rank, &inner_ns)| {
            client
                .at_rank_ns(rank)
                .expect("as many values as the server")
                .saturating_sub(bucket_top(inner_ns))
        })
        .collect();
    excess.sort_unstable();

    excess[excess.len() / 2]
}

/// The largest value that a histogram with three digits can report for this value, the upper edge
/// of its bucket.
pub fn bucket_top(value_ns: u64) -> u64 {
    value_ns + value_ns.div_ceil(1_024)
}

/// Noise floor: the maximum contribution of client, kernel and server on a shared machine. These
/// are the limits for a dedicated host (60 µs, 250 µs, 1 ms) times 10/3, the factor for the median
/// on shared machines.
pub fn noise_floor_ns(quantile: f64) -> u64 {
    match quantile {
        q if q <= 0.5 => 200 * US,
        q if q <= 0.99 => 830 * US,
        _ => 3_300 * US,
    }
}

/// Timing deviations of one attempt, and its disturbances by the host.
#[derive(Default)]
pub struct Timing {
    deviations: Vec<String>,
    disturbances: Vec<String>,
}

impl Timing {
    /// Runs a load and notes disturbances by the host.
    pub fn run_trial(&mut self, config: Config, plan: impl FnOnce(&str) -> LoadPlan) -> Trial {
        self.observe_trial(|| Trial::of(config, plan))
    }

    /// Like [`Self::run_trial`], for a load that `run_load` runs.
    pub fn observe_trial(&mut self, run_load: impl FnOnce() -> Trial) -> Trial {
        let others = OtherProcesses::now();
        let trial = run_load();
        self.note_host(&others, &trial.report);

        if let Some(late) =
            refsrv::Lateness::of(&trial.log).filter(|late| late.median_ns > MAX_SERVER_LATENESS_NS)
        {
            self.disturbances
                .push(format!("the server was late: {late}"));
        }

        trial
    }

    /// Like [`Self::observe_trial`], for a load against another server than the reference server.
    pub fn observe_load(&mut self, run_load: impl FnOnce() -> LoadReport) -> LoadReport {
        let others = OtherProcesses::now();
        let report = run_load();
        self.note_host(&others, &report);
        report
    }

    fn note_host(&mut self, others: &OtherProcesses, report: &LoadReport) {
        self.note_disturbances(others.disturbance());
        // Lateness of the generator is not a disturbance: it may be the bug that the test looks
        // for.
        let reasons = report.verdict.reasons.iter();
        let reasons = reasons.map(|reason| (reason.blame, reason.check.as_str(), &reason.message));
        let diagnostics = report.diagnostics.iter();
        let diagnostics = diagnostics.map(|other| (other.blame, other.check, &other.message));
        let by_host = reasons
            .chain(diagnostics)
            .filter(|(blame, ..)| *blame == Blame::Host);
        self.disturbances
            .extend(by_host.map(|(_, check, message)| format!("{check}: {message}")));
    }

    /// Expects `measured_ns` in `from_ns..=to_ns`, rounding the upper end up to the edge of its
    /// histogram bucket.
    pub fn expect_range(&mut self, what: &str, measured_ns: Option<u64>, from_ns: u64, to_ns: u64) {
        let holds = measured_ns
            .is_some_and(|measured_ns| (from_ns..=bucket_top(to_ns)).contains(&measured_ns));
        self.expect(
            holds,
            &format!("{what}: {measured_ns:?} ns, not in [{from_ns}, {to_ns}]"),
        );
    }

    /// Like [`Self::expect_range`], but panics below `from_ns`: a busy host can lengthen these
    /// times but never shorten them.
    #[track_caller]
    pub fn assert_min_expect_max(
        &mut self,
        what: &str,
        measured_ns: Option<u64>,
        from_ns: u64,
        to_ns: u64,
    ) {
        assert!(
            measured_ns >= Some(from_ns),
            "{what}: {measured_ns:?} ns, impossibly short (minimum {from_ns} ns)"
        );
        self.expect_range(what, measured_ns, from_ns, to_ns);
    }

    pub fn expect(&mut self, holds: bool, deviation: &str) {
        if !holds {
            self.deviations.push(deviation.to_owned());
        }
    }

    /// Notes disturbances of a load by the host.
    pub fn note_disturbances(&mut self, disturbance: impl IntoIterator<Item = String>) {
        self.disturbances.extend(disturbance);
    }
}

/// [`judge`] with up to [`ATTEMPTS`] attempts, for loads of about a second.
#[track_caller]
pub fn judge_timing(attempt: impl FnMut(&mut Timing)) {
    judge(ATTEMPTS, attempt);
}

/// Makes up to `attempts` attempts to observe the expected timing.
///
/// Assertions in `attempt` panic as usual. Timing deviations do not count if a disturbance by the
/// host was detected. A disturbance may remain undetected (two or three wake-ups that are 4 ms late
/// decide the p99.9 of a second), but a defect shows in each attempt: the test fails after three
/// deviating attempts without a detected disturbance, or after `attempts` if these are fewer.
#[track_caller]
pub fn judge(attempts: usize, attempt: impl FnMut(&mut Timing)) {
    judge_after(attempts.min(3), attempts, attempt);
}

/// Like [`judge`], but fails after `max_unexplained` deviating attempts without a detected
/// disturbance: for times so short that disturbances often remain undetected.
#[track_caller]
pub fn judge_after(max_unexplained: usize, attempts: usize, mut attempt: impl FnMut(&mut Timing)) {
    let caller = Location::caller();
    let _host = lock_host();
    let (mut history, mut remaining) = (String::new(), max_unexplained);
    for _ in 0..attempts {
        let mut timing = Timing::default();
        attempt(&mut timing);
        if timing.deviations.is_empty() {
            return;
        }
        let deviations = timing.deviations.join("; ");
        remaining -= usize::from(timing.disturbances.is_empty());

        assert!(
            remaining > 0,
            "on an undisturbed host:{history} [{deviations}]"
        );

        let disturbances = if timing.disturbances.is_empty() {
            "no disturbance was detected".to_owned()
        } else {
            timing.disturbances.join("; ")
        };
        write!(history, " [{deviations}, but {disturbances}]").unwrap();
    }

    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // The test harness would capture the output of a printing macro. Errors are ignored, because
    // they could not be reported.
    let _ = writeln!(
        std::io::stderr(),
        "INCONCLUSIVE(host): {test} at {caller}:{history}"
    );
}

/// CPU time of other processes, excluding this process and its ended children.
pub struct OtherProcesses {
    since: Instant,
    busy_ticks: Option<u64>,
}

impl OtherProcesses {
    pub fn now() -> Self {
        Self {
            since: Instant::now(),
            busy_ticks: Self::busy_ticks(),
        }
    }

    /// Description of the CPU use of other processes, if it was enough to disturb a load.
    pub fn disturbance(&self) -> Option<String> {
        let cores = self.cores_used().filter(|cores| *cores > MAX_OTHER_CORES)?;
        Some(format!("other processes used {cores:.2} cores"))
    }

    /// CPU use since [`Self::now`], in cores.
    fn cores_used(&self) -> Option<f64> {
        let ticks = Self::busy_ticks()?.saturating_sub(self.busy_ticks?);
        Some(ticks as f64 / TICKS_PER_SECOND / self.since.elapsed().as_secs_f64())
    }

    fn busy_ticks() -> Option<u64> {
        let host = std::fs::read_to_string("/proc/stat").ok()?;
        let fields: Vec<u64> = host
            .lines()
            .next()?
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; steal time counts as CPU time of others.
        let busy: u64 = [0, 1, 2, 5, 6, 7]
            .iter()
            .filter_map(|&field| fields.get(field))
            .sum();
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name in parentheses may contain spaces; utime, stime and those of ended children are
        // the 12th to 15th fields after it.
        let process_ticks: u64 = stat
            .rsplit_once(')')?
            .1
            .split_ascii_whitespace()
            .skip(11)
            .take(4)
            .map_while(|field| field.parse::<u64>().ok())
            .sum();

        Some(busy.saturating_sub(process_ticks))
    }
}
