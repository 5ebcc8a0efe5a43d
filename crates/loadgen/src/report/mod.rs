//! The report of one load: derived figures, computed once from the merged record. Its JSON is a
//! public contract.

pub(crate) mod client;
pub(crate) mod distribution;
pub(crate) mod progress;
pub(crate) mod sessions;
pub(crate) mod wrong_responses;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::base::clock::{NS_PER_S, monotonic_ns, realtime_ns};
use crate::base::error::LoadError;
use crate::facts::run::RunFacts;
use crate::judge::budget::{ErrorBudget, error_budget};
use crate::judge::derived::SelfChecks;
use crate::judge::offered::{Bounds, offered_quantiles};
use crate::judge::precision::PrecisionReport;
use crate::judge::stationarity::{InSystem, Stationarity};
use crate::judge::uncertainty::Uncertainty;
use crate::judge::verdict::evidence::Evidence;
use crate::judge::verdict::{Diagnostic, NotChecked, Verdict};
use crate::net::conntrack::TrackedConnections;
use crate::net::ports::SourcePorts;
use crate::plan::{LoadModel, LoadPlan};
use crate::record::exchange::Outcome;
use crate::record::flights::{FlightReport, Flights};
use crate::record::interval::IntervalRecord;
use crate::record::measures::Measures;
use crate::record::recorder::{Phase, PhaseCounts, Recorder};
use crate::record::request_record::RequestReport;
use crate::record::send_sample::SendGaps;
use crate::report::client::Client;
use crate::report::distribution::Distribution;
use crate::report::sessions::SessionReport;
use crate::report::wrong_responses::WrongResponseReport;

/// Name of the JSON Schema.
const SCHEMA_ID: &str = "urn:wsgiload:schema:load-2";

/// Version of the JSON's shape.
pub const SCHEMA_VERSION: u32 = 2;

/// The report of one load.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LoadReport {
    /// Version of this shape.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// What was asked for.
    pub plan: LoadPlan,
    /// Whether it can be trusted.
    pub verdict: Verdict,
    /// What was noticed and casts no doubt on the figures: it helps to find a cause.
    pub diagnostics: Vec<Diagnostic>,
    /// Checks that could not look, or had nothing to look at.
    pub not_checked: Vec<NotChecked>,
    /// How much of the measure phase took place: all of it, unless the run was stopped.
    pub measured_ns: u64,
    /// Rates over the measure window.
    pub rate: Rate,
    /// Ends of the arrivals of the measure phase.
    pub outcomes: Outcomes,
    /// Status codes of the measure phase.
    pub status_codes: BTreeMap<String, u64>,
    /// The first wrong response of each kind, in any phase; none over HTTP/2 or hyper.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong_responses: Vec<WrongResponseReport>,
    /// Intended send to last byte, correct responses.
    pub response_time_ns: Option<Distribution>,
    /// Actual send to last byte, correct responses.
    pub service_time_ns: Option<Distribution>,
    /// The generator's own delay.
    pub send_lag_ns: Option<Distribution>,
    /// Wait for a connection.
    pub pool_wait_ns: Option<Distribution>,
    /// Connecting.
    pub connect_time_ns: Option<Distribution>,
    /// Actual send to first byte.
    pub first_byte_ns: Option<Distribution>,
    /// First to last byte, 0 for a response that arrived in one piece.
    pub transfer_ns: Option<Distribution>,
    /// How much later than the kernel the generator had the last byte, where the kernel was asked.
    pub receive_delay_ns: Option<Distribution>,
    /// Quantiles over all offered requests, failures counted as never answered.
    pub offered_quantiles_ns: BTreeMap<String, Bounds>,
    /// How well each quantile is known, and whether it may be shown.
    pub uncertainty: Uncertainty,
    /// The error budget of each quantile of the response time.
    pub error_budget_ns: BTreeMap<String, ErrorBudget>,
    /// Whether a quantile is known as well as was asked for; `None` where nothing was.
    pub precision: Option<PrecisionReport>,
    /// What became of the response times over the measurement.
    pub stationarity: Stationarity,
    /// Requests in the system.
    pub in_system: InSystem,
    /// Consecutive sends against a Poisson process; `None` where they should be none, or are too
    /// few.
    pub send_gaps: Option<SendGaps>,
    /// Connections.
    pub connections: Connections,
    /// What the generator cost.
    pub client: Client,
    /// Each of the plan's targets, or of its sessions' requests; none where the plan has one
    /// request.
    pub targets: Vec<RequestReport>,
    /// What became of the sessions; `None` where the plan has none.
    pub sessions: Option<SessionReport>,
    /// Slices of the measure phase.
    pub intervals: Vec<Interval>,
    /// When single requests were in the system; `None` where the plan keeps none.
    pub flights: Option<FlightReport>,
    /// The clock at the start of the load, on both scales.
    pub clock: Clock,
    #[serde(skip)]
    measures: Measures,
}

/// What made a report.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How it was built.
    pub build: BuildInfo,
}

/// How the generator was built.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct BuildInfo {
    /// `release` or `debug`.
    pub profile: &'static str,
    /// The instruction set that it was compiled for.
    pub target_cpu: &'static str,
    /// The commit, where the build knew it.
    pub git_sha: Option<&'static str>,
}

impl Default for BuildInfo {
    fn default() -> Self {
        Self {
            profile: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            target_cpu: std::env::consts::ARCH,
            git_sha: option_env!("WSGILOAD_GIT_SHA"),
        }
    }
}

/// Requests by how they ended. Each has exactly one outcome: `scheduled` is the sum of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Outcomes {
    /// Requests whose intended send lies in the measurement.
    pub scheduled: u64,
    /// Correct responses.
    pub ok: u64,
    /// Responses with another status.
    pub http_status: u64,
    /// Responses with a wrong body or wrong framing.
    pub bad_body: u64,
    /// Connections broken after a part of the response, or new ones broken before it.
    pub reset: u64,
    /// Kept connections that turned out to be closed before any byte of the response.
    pub stale: u64,
    /// Connections refused.
    pub refused: u64,
    /// Connections not made within the timeout.
    pub connect_timeout: u64,
    /// Sent, but no complete response within the timeout.
    pub timeout: u64,
    /// Never sent: shed, the queue was full, or the deadline passed while it waited.
    pub dropped: u64,
    /// Still in the system when the load ended.
    pub unfinished: u64,
    /// Failed inside the generator.
    pub client_error: u64,
}

impl Outcomes {
    fn of(counts: &PhaseCounts) -> Self {
        Self {
            scheduled: counts.scheduled,
            ok: counts.of(Outcome::Ok),
            http_status: counts.of(Outcome::HttpStatus),
            bad_body: counts.of(Outcome::BadBody),
            reset: counts.of(Outcome::Reset),
            stale: counts.of(Outcome::Stale),
            refused: counts.of(Outcome::Refused),
            connect_timeout: counts.of(Outcome::ConnectTimeout),
            timeout: counts.of(Outcome::Timeout),
            dropped: counts.of(Outcome::Dropped),
            unfinished: counts.of(Outcome::Unfinished),
            client_error: counts.of(Outcome::ClientError),
        }
    }

    /// How many requests ended in this way.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Ok => self.ok,
            Outcome::HttpStatus => self.http_status,
            Outcome::BadBody => self.bad_body,
            Outcome::Reset => self.reset,
            Outcome::Stale => self.stale,
            Outcome::Refused => self.refused,
            Outcome::ConnectTimeout => self.connect_timeout,
            Outcome::Timeout => self.timeout,
            Outcome::Dropped => self.dropped,
            Outcome::Unfinished => self.unfinished,
            Outcome::ClientError => self.client_error,
        }
    }
}

/// Requests per second over the part of the measure window that took place; `None` when none of it
/// did.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Rate {
    /// Arrivals that the schedule asked for, the mean where its rate varies; `None` in a closed
    /// loop, which offers no rate.
    pub offered_per_s: Option<f64>,
    /// First writes.
    pub sent_per_s: Option<f64>,
    /// Complete answers, right or wrong.
    pub achieved_per_s: Option<f64>,
    /// Correct responses.
    pub goodput_per_s: Option<f64>,
}

/// Life of the connections.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Connections {
    /// Made.
    pub opened: u64,
    /// Requests on a kept one.
    pub reused: u64,
    /// Ended by the server.
    pub closed_by_server: u64,
    /// Most at once.
    pub peak: u64,
    /// Most that were allowed at once.
    pub max_connections: usize,
    /// Fewest concurrent streams that the server allowed on a connection; `None` if no fewer than
    /// planned.
    pub allowed_streams: Option<usize>,
    /// Why connections were not made, and how often, over all phases.
    pub failures: BTreeMap<String, u64>,
    /// Local ports and addresses; `None` over a Unix socket, or where the kernel does not tell.
    pub local_ports: Option<SourcePorts>,
    /// Connections that the kernel tracked; `None` over a Unix socket, or where it tracks none or
    /// does not tell.
    pub tracked: Option<TrackedConnections>,
    /// How many requests a connection carried; `None` when none has ended.
    pub requests_per_connection: Option<RequestsPerConnection>,
}

impl Connections {
    /// What to say where the server allows fewer streams than the plan's.
    #[must_use]
    pub fn streams_sentence(&self, planned: usize) -> Option<String> {
        let allowed = self.allowed_streams?;
        Some(format!(
            "the server allows {allowed} concurrent streams per connection, fewer than --streams \
            {planned}; more requests at a time need more connections"
        ))
    }
}

/// How many requests a connection carried.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct RequestsPerConnection {
    /// Fewest.
    pub min: u64,
    /// Mean over all connections.
    pub mean: f64,
    /// Most.
    pub max: u64,
}

/// One slice of the measure phase.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Interval {
    /// When it begins.
    pub start_ns: u64,
    /// How long it is.
    pub length_ns: u64,
    /// Arrivals intended in it.
    pub scheduled: u64,
    /// Of these, sent.
    pub sent: u64,
    /// Of these, answered rightly.
    pub ok: u64,
    /// Of these, all others.
    pub failed: u64,
    /// Median response time.
    pub p50_ns: Option<u64>,
    /// Response time of the 99th of a hundred.
    pub p99_ns: Option<u64>,
    /// Largest response time.
    pub max_ns: Option<u64>,
    /// Histogram of the response times: HDR V2, DEFLATE, base64; `None` when empty.
    pub hdr_v2: Option<String>,
}

/// One instant on two clocks.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` at the start of the load.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` at the same instant.
    pub realtime_ns: u64,
    /// How far the two clocks had drifted apart by the end.
    pub drift_ns: i64,
}

impl LoadReport {
    /// Derives every figure from a merged record.
    pub(crate) fn new(
        plan: &LoadPlan,
        recorder: &Recorder,
        facts: &RunFacts,
    ) -> Result<Self, LoadError> {
        let measures = recorder.measures();
        let counts = recorder.phase(Phase::Measure);
        let checks = SelfChecks::of(plan, recorder, &measures, facts);
        let evidence = Evidence::of(plan, recorder, &measures, facts, &checks);
        let judgement = Verdict::judge(&evidence, &plan.thresholds);
        let offered = offered_quantiles(&measures.response, recorder.censored(), counts.scheduled);
        let precision = plan.precision.map(|asked| {
            let quantile = asked.quantile.to_string();
            let known = checks.uncertainty.offered_quantiles_ns.get(&quantile);
            PrecisionReport::of(&asked, known, offered.get(&quantile))
        });
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "wsgiload",
                version: env!("CARGO_PKG_VERSION"),
                build: BuildInfo::default(),
            },
            plan: plan.clone(),
            verdict: judgement.verdict,
            diagnostics: judgement.diagnostics,
            not_checked: judgement.not_checked,
            measured_ns: facts.measured_ns,
            rate: rate(plan, recorder, facts.measured_ns),
            outcomes: Outcomes::of(counts),
            status_codes: recorder
                .status_codes()
                .iter()
                .map(|(code, n)| (code.to_string(), *n))
                .collect(),
            wrong_responses: recorder
                .wrong_responses
                .all()
                .iter()
                .map(WrongResponseReport::of)
                .collect(),
            response_time_ns: Distribution::of(&measures.response)?.map(|response| Distribution {
                intervals_95: checks.uncertainty.of_response_times(),
                ..response
            }),
            service_time_ns: Distribution::of(&measures.service)?,
            send_lag_ns: Distribution::of(&measures.send_lag)?,
            pool_wait_ns: Distribution::of(&measures.pool_wait)?,
            connect_time_ns: Distribution::of(&measures.connect)?,
            first_byte_ns: Distribution::of(&measures.first_byte)?,
            transfer_ns: Distribution::of(&measures.transfer)?,
            receive_delay_ns: Distribution::of(&measures.receive_delay)?,
            offered_quantiles_ns: offered,
            error_budget_ns: error_budget(plan, &measures, &checks.uncertainty),
            uncertainty: checks.uncertainty,
            precision,
            stationarity: checks.stationarity,
            in_system: checks.in_system,
            send_gaps: checks.send_gaps.ok(),
            connections: connections(recorder, facts),
            client: Client::of(plan, recorder, facts),
            targets: targets(plan, recorder),
            sessions: recorder
                .sessions
                .as_ref()
                .map(SessionReport::of)
                .transpose()?,
            intervals: intervals(recorder, facts.measured_ns)?,
            flights: recorder.flights().map(Flights::report),
            clock: clock(recorder, facts),
            measures,
        })
    }

    /// The histograms behind the figures.
    #[must_use]
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// How many arrivals of the measure phase ended in this way.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes.count(outcome)
    }

    /// How many arrivals the measure phase had.
    #[must_use]
    pub fn scheduled(&self) -> u64 {
        self.outcomes.scheduled
    }

    /// The report as JSON.
    ///
    /// # Panics
    /// Never: every part of a report can be written as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report is plain data")
    }
}

/// The JSON Schema of a report, derived from its types.
///
/// # Panics
/// Never: a schema is plain data.
#[must_use]
pub fn report_schema_json() -> String {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<LoadReport>();
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    serde_json::to_string_pretty(&schema).expect("a schema is plain data")
}

fn rate(plan: &LoadPlan, recorder: &Recorder, measured_ns: u64) -> Rate {
    let window = recorder.window();
    let per_s =
        |count: u64| (measured_ns > 0).then(|| count as f64 * NS_PER_S as f64 / measured_ns as f64);
    let is_open = matches!(plan.load, LoadModel::Open(_));
    Rate {
        offered_per_s: if is_open {
            per_s(recorder.phase(Phase::Measure).scheduled)
        } else {
            None
        },
        sent_per_s: per_s(window.sent),
        achieved_per_s: per_s(window.answered),
        goodput_per_s: per_s(window.ok),
    }
}

fn connections(recorder: &Recorder, facts: &RunFacts) -> Connections {
    let counts = &recorder.connections;
    let requests_per_connection =
        counts
            .fewest_requests
            .zip(counts.most_requests)
            .map(|(min, max)| RequestsPerConnection {
                min,
                mean: (counts.reused + counts.opened) as f64 / counts.opened.max(1) as f64,
                max,
            });
    Connections {
        opened: counts.opened,
        reused: counts.reused,
        closed_by_server: counts.closed_by_server,
        peak: counts.peak,
        max_connections: facts.max_connections,
        allowed_streams: counts.fewest_streams,
        failures: recorder.connect_failures.causes().clone(),
        local_ports: facts.source_ports.clone(),
        tracked: facts.tracked,
        requests_per_connection,
    }
}

fn targets(plan: &LoadPlan, recorder: &Recorder) -> Vec<RequestReport> {
    let records = recorder.requests().iter().zip(plan.request_labels());
    records
        .map(|(record, label)| record.report(label))
        .collect()
}

fn intervals(recorder: &Recorder, measured_ns: u64) -> Result<Vec<Interval>, LoadError> {
    let one = |(start_ns, length_ns, record): (u64, u64, &IntervalRecord)| {
        let response = &record.response();
        Ok(Interval {
            start_ns,
            length_ns,
            scheduled: record.scheduled,
            sent: record.sent,
            ok: record.ok,
            failed: record.failed,
            p50_ns: response.quantile_ns(0.5),
            p99_ns: response.quantile_ns(0.99),
            max_ns: response.max_ns(),
            hdr_v2: if response.count() > 0 {
                Some(response.to_hdr_v2_base64()?)
            } else {
                None
            },
        })
    };
    recorder.intervals(measured_ns).map(one).collect()
}

fn clock(recorder: &Recorder, facts: &RunFacts) -> Clock {
    let (start_ns, start_realtime_ns) = (recorder.start_ns(), facts.start_realtime_ns);
    let passed = |now_ns: u64, then_ns: u64| i128::from(now_ns) - i128::from(then_ns);
    let drift_ns = passed(realtime_ns(), start_realtime_ns) - passed(monotonic_ns(), start_ns);
    Clock {
        monotonic_ns: start_ns,
        realtime_ns: start_realtime_ns,
        drift_ns: i64::try_from(drift_ns).unwrap_or(i64::MAX),
    }
}
