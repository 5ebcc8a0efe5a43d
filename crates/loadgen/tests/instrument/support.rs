//! Runs loads one at a time, checks what must hold for every load, and tests timing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use loadgen::plan::{Arrivals, LoadModel, OnBusy, OpenLoop};
use loadgen::{Blame, LatencyHistogram, LoadPlan, LoadReport, Outcome, StopToken, run};
use refsrv::{Config, LogEntry, Outcome as Served, ReferenceServer, Service, Stats};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000 * US;
pub const SECOND: u64 = 1_000 * MS;

/// More CPU time than this used by other processes, in cores, disturbs a load whose two threads
/// have two cores.
const OTHERS_LIMIT_CORES: f64 = 0.1;

/// `/proc` counts in hundredths of a second on every Linux.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// A server whose typical response is later than this did not get its core in time.
const SERVER_LATE_LIMIT_NS: u64 = 200 * US;

const ATTEMPTS: usize = 3;

/// Serializes the tests: two cores are enough for only one generator and one server.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn server_with(config: Config) -> ReferenceServer {
    ReferenceServer::start(config).expect("a server on a free port")
}

pub fn holding(hold_ns: u64) -> Config {
    Config {
        service: Service::Constant { hold_ns },
        ..Config::default()
    }
}

pub fn url_of(server: &ReferenceServer) -> String {
    format!("http://{}/", server.addr())
}

/// Constant arrivals, so that their number is known in advance.
pub fn constant(url: &str, rate_per_s: f64, measure_ns: u64) -> LoadPlan {
    let mut plan = LoadPlan::open(url, rate_per_s, measure_ns);
    open_loop(&mut plan).arrivals = Arrivals::Constant;
    plan
}

/// [`constant`] with this maximum number of connections; other requests queue.
pub fn capped(url: &str, rate_per_s: f64, measure_ns: u64, max_connections: usize) -> LoadPlan {
    let mut plan = constant(url, rate_per_s, measure_ns);
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

/// Both ends' records of one load.
pub struct Trial {
    pub report: LoadReport,
    pub log: Vec<LogEntry>,
    pub stats: Stats,
}

impl Trial {
    /// Runs a load against a new server, to its end.
    pub fn of(config: Config, plan: impl FnOnce(&str) -> LoadPlan) -> Self {
        let server = server_with(config);
        Self::on(&server, &plan(&url_of(&server)))
    }

    /// Runs a load against a server.
    pub fn on(server: &ReferenceServer, plan: &LoadPlan) -> Self {
        let report = run(plan, &StopToken::new()).expect("a plan that can be carried out");
        assert_sound(&report);
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

    /// Time of each correct response within the server, from its arrival to its write, ascending.
    pub fn times_in_server(&self) -> Vec<u64> {
        let right =
            |entry: &&LogEntry| matches!(entry.outcome, Served::Answered | Served::StaleClose);
        let mut times: Vec<u64> = self
            .log
            .iter()
            .filter(right)
            .filter_map(|entry| Some(entry.write_ns? - entry.arrive_ns))
            .collect();
        times.sort_unstable();
        times
    }

    /// Arrival times at the server, ascending.
    pub fn arrivals(&self) -> Vec<u64> {
        let mut instants: Vec<u64> = self.log.iter().map(|entry| entry.arrive_ns).collect();
        instants.sort_unstable();
        instants
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

/// Checks what must hold for every report, whatever the load and the machine.
pub fn assert_sound(report: &LoadReport) {
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
        assert_eq!(
            histogram.count(),
            ok,
            "exactly the correct responses have a {name}"
        );
    }
    let parts = total(&measures.pool_wait)
        + total(&measures.send_lag)
        + total(&measures.connect)
        + total(&measures.service);
    assert_eq!(
        total(&measures.response),
        parts,
        "response times are the sum of their parts"
    );

    let (mut arrived, mut right, mut failed) = (0, 0, 0);
    for interval in &report.intervals {
        arrived += interval.scheduled;
        right += interval.ok;
        failed += interval.failed;
    }
    assert_eq!(
        (arrived, right, failed),
        (scheduled, ok, scheduled - ok),
        "intervals share out the arrivals"
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
        "instants or counts contradict each other: {defects:?}"
    );
}

/// The exact sum of a histogram's values.
pub fn total(histogram: &LatencyHistogram) -> u64 {
    // The mean is an exact sum divided once; below 2^53 the product rounds back to that sum.
    histogram
        .mean_ns()
        .map_or(0, |mean| (mean * histogram.count() as f64).round() as u64)
}

/// Every value measured by the client includes the server's, so rank by rank the client's is not
/// smaller. Holds on any machine, however busy.
pub fn assert_encloses(client: &LatencyHistogram, server: &[u64]) {
    assert_eq!(
        client.count(),
        server.len() as u64,
        "both ends counted the same answers"
    );
    assert!(
        total(client) >= server.iter().sum::<u64>(),
        "the sums enclose each other"
    );
    for (rank, &inner_ns) in (1..).zip(server) {
        let outer_ns = client.at_rank_ns(rank).expect("as many values");
        assert!(
            outer_ns >= inner_ns,
            "rank {rank}: {outer_ns} ns around {inner_ns} ns"
        );
    }
}

/// Median over the ranks of the client's excess over the server's own measurement, allowing for
/// histogram slots.
pub fn median_excess_ns(client: &LatencyHistogram, server: &[u64]) -> u64 {
    let mut excess: Vec<u64> = (1..)
        .zip(server)
        .map(|(rank, &inner_ns)| {
            client
                .at_rank_ns(rank)
                .expect("as many values")
                .saturating_sub(slot_top(inner_ns))
        })
        .collect();
    excess.sort_unstable();
    excess[excess.len() / 2]
}

/// The largest value that a histogram with three digits can report for this value.
pub fn slot_top(value_ns: u64) -> u64 {
    value_ns + value_ns.div_ceil(1_024)
}

/// Maximum contribution of client, kernel and server on a shared machine: the method's limits for a
/// dedicated host (60 µs, 250 µs, 1 ms) times 10/3, its factor for the median on shared machines.
pub fn floor_ns(quantile: f64) -> u64 {
    match quantile {
        q if q <= 0.5 => 200 * US,
        q if q <= 0.99 => 830 * US,
        _ => 3_300 * US,
    }
}

/// Collects the timing deviations and the host's disturbances of one attempt.
#[derive(Default)]
pub struct Timing {
    deviations: Vec<String>,
    disturbances: Vec<String>,
}

impl Timing {
    /// Runs a load and notes disturbances by the host.
    pub fn trial(&mut self, config: Config, plan: impl FnOnce(&str) -> LoadPlan) -> Trial {
        self.observe(|| Trial::of(config, plan))
    }

    /// Like [`Self::trial`], for a load that runs in another way.
    pub fn observe(&mut self, run_load: impl FnOnce() -> Trial) -> Trial {
        let others = Others::now();
        let trial = run_load();
        self.note_host(&others, &trial.report);
        if let Some(late) =
            refsrv::Lateness::of(&trial.log).filter(|late| late.median_ns > SERVER_LATE_LIMIT_NS)
        {
            self.disturbances
                .push(format!("the server itself was late: {late}"));
        }
        trial
    }

    /// Like [`Self::trial`], for a load against another server than the reference server.
    pub fn watch(&mut self, run_load: impl FnOnce() -> LoadReport) -> LoadReport {
        let others = Others::now();
        let report = run_load();
        self.note_host(&others, &report);
        report
    }

    fn note_host(&mut self, others: &Others, report: &LoadReport) {
        self.disturbed_by(others.disturbance());
        // The generator's own lateness is not a disturbance: it could be the bug that the test is
        // meant to find.
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

    /// Expects `measured_ns` in `from_ns..=to_ns`, the upper end raised to the top of its histogram
    /// slot.
    pub fn about(&mut self, what: &str, measured_ns: Option<u64>, from_ns: u64, to_ns: u64) {
        let holds = measured_ns
            .is_some_and(|measured_ns| (from_ns..=slot_top(to_ns)).contains(&measured_ns));
        self.expect(
            holds,
            &format!("{what}: {measured_ns:?} ns, not in [{from_ns}, {to_ns}]"),
        );
    }

    /// Like [`Self::about`], for times that a busy host can lengthen but never shorten: a time that
    /// is too short is always the generator's fault.
    #[track_caller]
    pub fn within(&mut self, what: &str, measured_ns: Option<u64>, from_ns: u64, to_ns: u64) {
        assert!(
            measured_ns >= Some(from_ns),
            "{what}: {measured_ns:?} ns, and nothing makes it shorter than {from_ns}"
        );
        self.about(what, measured_ns, from_ns, to_ns);
    }

    pub fn expect(&mut self, holds: bool, deviation: &str) {
        if !holds {
            self.deviations.push(deviation.to_owned());
        }
    }

    /// Notes disturbances of a load by the host.
    pub fn disturbed_by(&mut self, disturbance: impl IntoIterator<Item = String>) {
        self.disturbances.extend(disturbance);
    }
}

/// [`judge`] with up to three attempts, for loads of about a second.
#[track_caller]
pub fn judge_timing(attempt: impl FnMut(&mut Timing)) {
    judge(ATTEMPTS, attempt);
}

/// Makes up to this many attempts to observe the expected timing. Exact assertions in `attempt`
/// panic as usual; timing deviations prove nothing if the host disturbed the attempt. A disturbance
/// can remain undetected, and a defect shows in each attempt, so the test fails after two deviating
/// attempts without a detected disturbance, or one if there is only one attempt.
#[track_caller]
pub fn judge(attempts: usize, attempt: impl FnMut(&mut Timing)) {
    judge_after(attempts.min(2), attempts, attempt);
}

/// Like [`judge`], for times so short that disturbances often remain undetected: with this many
/// attempts.
#[track_caller]
pub fn judge_after(undisturbed: usize, attempts: usize, mut attempt: impl FnMut(&mut Timing)) {
    let caller = Location::caller();
    let _alone = alone();
    let (mut history, mut left) = (String::new(), undisturbed);
    for _ in 0..attempts {
        let mut timing = Timing::default();
        attempt(&mut timing);
        if timing.deviations.is_empty() {
            return;
        }
        let deviations = timing.deviations.join("; ");
        left -= usize::from(timing.disturbances.is_empty());
        assert!(left > 0, "on an undisturbed host:{history} [{deviations}]");
        let disturbances = if timing.disturbances.is_empty() {
            "nothing was seen".to_owned()
        } else {
            timing.disturbances.join("; ")
        };
        write!(history, " [{deviations}, but {disturbances}]").unwrap();
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // Not with a printing macro, whose output the test harness captures. Errors are ignored,
    // because they could not be reported.
    let _ = writeln!(
        std::io::stderr(),
        "INCONCLUSIVE(host): {test} at {caller}:{history}"
    );
}

/// CPU time of other processes: neither of this process, nor of ended children, nor idle.
pub struct Others {
    since: Instant,
    busy_ticks: Option<u64>,
}

impl Others {
    pub fn now() -> Self {
        Self {
            since: Instant::now(),
            busy_ticks: Self::busy_ticks(),
        }
    }

    /// Description of the other processes' use, if it was enough to disturb.
    pub fn disturbance(&self) -> Option<String> {
        let cores = self
            .cores_since()
            .filter(|cores| *cores > OTHERS_LIMIT_CORES)?;
        Some(format!("others on the host used {cores:.2} cores"))
    }

    /// In cores.
    fn cores_since(&self) -> Option<f64> {
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
        // user nice system idle iowait irq softirq steal; steal time counts as that of others.
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
