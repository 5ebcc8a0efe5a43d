//! Runs one load against a hostile server and checks what must hold whatever the server sends.

use std::fmt;
use std::time::{Duration, Instant};

use loadgen::{LoadReport, Outcome, StopToken, run};

use crate::attack::Attack;
use crate::attack_server::AttackServer;
use crate::resident_memory;
use crate::support::{OtherProcesses, assert_consistent};
use crate::way::LoadVariant;

/// Maximum delay after the end of the plan and one timeout. The host also runs the flooding server.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Maximum growth of the whole process, including the server: 64 MB. The process keeps memory that
/// earlier loads have freed.
const MAX_GROWTH_KIB: u64 = 64_000_000 / 1024;

const ATTEMPTS: usize = 3;

/// The results of a load.
pub struct Trial {
    pub report: LoadReport,
    /// Resident memory before the load, and its peak; `None` if the kernel does not report it.
    before_kib: Option<u64>,
    peak_kib: Option<u64>,
    /// How long the load continued after the end of the plan and one timeout.
    delay: Duration,
    /// Violations of the expectations.
    violations: Vec<String>,
    /// A disturbance by the host that may have caused the violations.
    disturbance: Option<String>,
}

/// Runs the load, and repeats it if the host may have caused a violation: on a busy host, responses
/// and the end of a load may be late, and more connections are open at the same time.
pub fn run_until_undisturbed(attack: &Attack, variant: LoadVariant<'_>) -> Trial {
    let mut repeats = 1..ATTEMPTS;
    loop {
        let others = OtherProcesses::now();
        let mut trial = run_load(attack, variant);
        trial.violations = trial.violations(&variant.expected(attack));
        trial.disturbance = others.disturbance();
        if trial.violations.is_empty() || trial.disturbance.is_none() || repeats.next().is_none() {
            return trial;
        }
    }
}

/// Runs the load once.
pub fn run_load(attack: &Attack, variant: LoadVariant<'_>) -> Trial {
    let server = AttackServer::start(attack, variant.protocol.version, variant.certificate);
    let plan = variant.plan(
        attack,
        &format!("{}://{}/", variant.scheme(), server.address),
    );

    let before_kib = resident_memory::reset_peak_kib();
    let start = Instant::now();
    let report = run(&plan, &StopToken::new()).unwrap();
    let elapsed = start.elapsed();

    assert_consistent(&report);
    let planned = Duration::from_nanos(plan.phases.load_ns() + plan.timeout_ns);
    Trial {
        report,
        before_kib,
        peak_kib: resident_memory::peak_kib(),
        delay: elapsed.saturating_sub(planned),
        violations: Vec::new(),
        disturbance: None,
    }
}

impl Trial {
    /// Memory use of the load, including its server; `None` if the kernel does not report it.
    pub fn growth_kib(&self) -> Option<u64> {
        Some(self.peak_kib?.saturating_sub(self.before_kib?))
    }

    fn violations(&self, expected: &[Outcome]) -> Vec<String> {
        let mut violations = Vec::new();
        if self.delay > MAX_DELAY {
            violations.push(format!("ended {:?} after plan and timeout", self.delay));
        }
        if let Some(growth_kib) = self.growth_kib().filter(|kib| *kib > MAX_GROWTH_KIB) {
            violations.push(format!("grew by {growth_kib} KiB"));
        }

        let report = &self.report;
        let attributed: u64 = expected
            .iter()
            .map(|outcome| report.outcome(*outcome))
            .sum();
        // Requests may be unfinished at the end of the plan.
        let has_others = attributed + report.outcome(Outcome::Unfinished) != report.scheduled();
        if attributed == 0 || has_others {
            violations.push(format!("{:?}, expected {expected:?}", report.outcomes));
        }
        violations
    }
}

/// The results of many loads.
#[derive(Default)]
pub struct Tally {
    pub violations: Vec<String>,
    /// Violations on a busy host, which prove nothing.
    pub inconclusive: Vec<String>,
    loads: u64,
    requests: u64,
    peak: (u64, String),
    longest_delay: (Duration, String),
}

impl Tally {
    pub fn note(&mut self, trial: &Trial, attack: &Attack, variant: LoadVariant<'_>) {
        self.loads += 1;
        self.requests += trial.report.scheduled();
        let what = || format!("{} over {variant}", attack.name);
        for violation in &trial.violations {
            let violation = format!("{}: {violation}", what());
            match &trial.disturbance {
                Some(disturbance) => self
                    .inconclusive
                    .push(format!("{violation}, but {disturbance}")),
                None => self.violations.push(violation),
            }
        }

        let peak_kib = trial.peak_kib.unwrap_or(0);
        if peak_kib > self.peak.0 {
            self.peak = (peak_kib, what());
        }
        if trial.delay > self.longest_delay.0 {
            self.longest_delay = (trial.delay, what());
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (loads, requests) = (self.loads, self.requests);
        let ((peak_kib, largest), (delay, slowest)) = (&self.peak, &self.longest_delay);
        write!(
            formatter,
            "{loads} loads, {requests} requests; at most {peak_kib} KiB \
            ({largest}); ended at most {delay:?} after plan and timeout ({slowest})"
        )
    }
}
