//! One load against a hostile server, and what must hold whatever the server does.

use std::fmt;
use std::time::{Duration, Instant};

use loadgen::{LoadReport, Outcome, StopToken, run};

use crate::attack::Attack;
use crate::attack_server::AttackServer;
use crate::resident_memory;
use crate::support::{Others, assert_sound};
use crate::way::Way;

/// Maximum delay after the plan and a timeout; the host also runs the flooding server.
const LATE: Duration = Duration::from_secs(1);

/// Maximum growth of the whole process, including the server: 64 MB. Memory that earlier loads have
/// freed stays with the process.
const GROWTH_LIMIT_KIB: u64 = 64_000_000 / 1024;

const ATTEMPTS: usize = 3;

/// The results of a load.
pub struct Trial {
    pub report: LoadReport,
    /// Memory before the load and at its peak; `None` if the kernel does not report it.
    before_kib: Option<u64>,
    peak_kib: Option<u64>,
    /// How long the load continued after the plan and a timeout.
    late: Duration,
    /// Violations of the expectations.
    faults: Vec<String>,
    /// Other possible causes of the violations.
    disturbance: Option<String>,
}

/// Runs the load, and repeats it if the host may have caused a violation: on a busy host, a
/// response or the end of a load can be late, and more connections are open at the same time.
pub fn drive_undisturbed(attack: &Attack, way: Way<'_>) -> Trial {
    let mut repeats = 1..ATTEMPTS;
    loop {
        let others = Others::now();
        let mut trial = drive(attack, way);
        trial.faults = trial.faults(&way.expected(attack));
        trial.disturbance = others.disturbance();
        if trial.faults.is_empty() || trial.disturbance.is_none() || repeats.next().is_none() {
            return trial;
        }
    }
}

/// Runs the load once.
pub fn drive(attack: &Attack, way: Way<'_>) -> Trial {
    let server = AttackServer::start(attack, way.protocol.version, way.certificate);
    let plan = way.plan(attack, &format!("{}://{}/", way.scheme(), server.address));

    let before_kib = resident_memory::peak_from_now_kib();
    let start = Instant::now();
    let report = run(&plan, &StopToken::new()).unwrap();
    let took = start.elapsed();

    assert_sound(&report);
    let planned = Duration::from_nanos(plan.phases.load_ns() + plan.timeout_ns);
    Trial {
        report,
        before_kib,
        peak_kib: resident_memory::peak_kib(),
        late: took.saturating_sub(planned),
        faults: Vec::new(),
        disturbance: None,
    }
}

impl Trial {
    /// Memory use of the load, including its server; `None` if the kernel does not report it.
    pub fn growth_kib(&self) -> Option<u64> {
        Some(self.peak_kib?.saturating_sub(self.before_kib?))
    }

    fn faults(&self, expected: &[Outcome]) -> Vec<String> {
        let mut faults = Vec::new();
        if self.late > LATE {
            faults.push(format!("ended {:?} after plan and timeout", self.late));
        }
        if let Some(growth_kib) = self.growth_kib().filter(|kib| *kib > GROWTH_LIMIT_KIB) {
            faults.push(format!("grew by {growth_kib} KiB"));
        }

        let report = &self.report;
        let attributed: u64 = expected
            .iter()
            .map(|outcome| report.outcome(*outcome))
            .sum();
        // Some requests are cut off by the end of the plan.
        let has_others = attributed + report.outcome(Outcome::Unfinished) != report.scheduled();
        if attributed == 0 || has_others {
            faults.push(format!("{:?}, not {expected:?}", report.outcomes));
        }
        faults
    }
}

/// The results of many loads.
#[derive(Default)]
pub struct Tally {
    pub faults: Vec<String>,
    /// Violations on a busy host, which prove nothing.
    pub inconclusive: Vec<String>,
    loads: u64,
    requests: u64,
    peak: (u64, String),
    latest: (Duration, String),
}

impl Tally {
    pub fn note(&mut self, trial: &Trial, attack: &Attack, way: Way<'_>) {
        self.loads += 1;
        self.requests += trial.report.scheduled();
        let what = || format!("{} over {way}", attack.name);
        for fault in &trial.faults {
            let fault = format!("{}: {fault}", what());
            match &trial.disturbance {
                Some(disturbance) => self
                    .inconclusive
                    .push(format!("{fault}, but {disturbance}")),
                None => self.faults.push(fault),
            }
        }

        let peak_kib = trial.peak_kib.unwrap_or(0);
        if peak_kib > self.peak.0 {
            self.peak = (peak_kib, what());
        }
        if trial.late > self.latest.0 {
            self.latest = (trial.late, what());
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (loads, requests) = (self.loads, self.requests);
        let ((peak_kib, largest), (late, latest)) = (&self.peak, &self.latest);
        write!(
            formatter,
            "{loads} loads, {requests} requests; at most {peak_kib} KiB \
            ({largest}); ended at most {late:?} after plan and timeout ({latest})"
        )
    }
}
