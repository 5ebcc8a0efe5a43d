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
const SCHEMA_ID: &str = "urn:wsgiload:schema:load-1";

/// Version of the JSON format.
pub const SCHEMA_VERSION: u32 = 1;

/// The report of one load.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LoadReport {
    /// Version of this document, 2.
    pub schema_version: u32,
    /// The tool that made the measurement.
    pub tool: Tool,
    /// The plan of the load, including default values and seeds. Values that the generator chooses
    /// are `null`.
    pub plan: LoadPlan,
    /// Whether the figures can be trusted and, if not, why.
    pub verdict: Verdict,
    /// Observations that do not affect the verdict.
    pub diagnostics: Vec<Diagnostic>,
    /// Checks that could not run, with the reasons. checks.md lists all checks and thresholds.
    pub not_checked: Vec<NotChecked>,
    /// Actual duration of the measurement: longer than `plan.phases.measure_ns` if it was extended
    /// (`plan.precision`), shorter if the load was interrupted, the server died, or a closed loop
    /// reached `plan.requests`.
    pub measured_ns: u64,
    /// Rates over the measurement.
    pub rate: Rate,
    /// Number of scheduled requests with each outcome.
    pub outcomes: Outcomes,
    /// Number of responses with each HTTP status, including responses that ended prematurely after
    /// the response head.
    pub status_codes: BTreeMap<String, u64>,
    /// The first incorrect response for each combination of outcome and status, in any phase; at
    /// most eight. Always empty with HTTP/2 or hyper.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong_responses: Vec<WrongResponseReport>,
    /// Response time of correct responses: scheduled send time to last byte. `None`: no correct
    /// response.
    pub response_time_ns: Option<Distribution>,
    /// Service time of correct responses: actual send to last byte. `None`: no correct response.
    pub service_time_ns: Option<Distribution>,
    /// Send lag (the generator's own delay) of correct responses. `None`: no correct response.
    pub send_lag_ns: Option<Distribution>,
    /// Pool wait (wait for a free connection) of correct responses. `None`: no correct response.
    pub pool_wait_ns: Option<Distribution>,
    /// Connect time of correct responses over new connections. `None`: no correct response over a
    /// new connection.
    pub connect_time_ns: Option<Distribution>,
    /// Time to first byte of correct responses: actual send to first byte. `None`: no correct
    /// response.
    pub first_byte_ns: Option<Distribution>,
    /// Transfer time of correct responses: first to last byte; 0 if the response arrived in one
    /// piece. `None`: no correct response, or a report of version 1.
    pub transfer_ns: Option<Distribution>,
    /// Delay between the arrival of the last byte in the kernel and the read by the generator.
    /// Response times without a kernel timestamp include this delay (`client.user_timestamps`).
    /// `None`: no kernel timestamps: Unix sockets, TLS, HTTP/2, hyper, close-delimited responses,
    /// or `--receive-stamps user`.
    pub receive_delay_ns: Option<Distribution>,
    /// Quantiles over all scheduled requests. Empty if nothing was scheduled.
    pub offered_quantiles_ns: BTreeMap<String, Bounds>,
    /// Uncertainty of each quantile, and whether the quantile is resolved.
    pub uncertainty: Uncertainty,
    /// The error budget of each response-time quantile.
    pub error_budget_ns: BTreeMap<String, ErrorBudget>,
    /// Whether the target precision was reached. `None`: the plan has no `precision` (`--precision`
    /// with `--max-duration`).
    pub precision: Option<PrecisionReport>,
    /// Whether response times were stationary.
    pub stationarity: Stationarity,
    /// The number of requests in the system.
    pub in_system: InSystem,
    /// Comparison of the send times with the requested Poisson process. `None`: the arrivals are
    /// not Poisson at a constant rate, there were fewer than 1,000 sends, requests waited for a
    /// connection or were dropped, or the load has sessions.
    pub send_gaps: Option<SendGaps>,
    /// How connections were used. `None`: not recorded.
    pub connections: Connections,
    /// Resource use of the generator. `None`: not recorded.
    pub client: Client,
    /// Results for each target, or for each request of each session; empty for a single request.
    pub targets: Vec<RequestReport>,
    /// Outcomes of the sessions that began in the measurement. `None`: the load has no sessions.
    pub sessions: Option<SessionReport>,
    /// Results for each report interval.
    pub intervals: Vec<Interval>,
    /// When selected requests were in the system, for finding events that coincided with slow
    /// requests. `None`: not recorded (always with `wsgiload load`).
    pub flights: Option<FlightReport>,
    /// Simultaneous readings of two clocks at the start of the load.
    pub clock: Clock,
    #[serde(skip)]
    measures: Measures,
}

/// The tool that made the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Tool {
    /// `wsgiload`; the binary `loadgen` reports the same name.
    pub name: &'static str,
    /// Version of the tool.
    pub version: &'static str,
    /// How the generator was built.
    pub build: BuildInfo,
}

/// How the generator was built.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct BuildInfo {
    /// `release` or `debug`; debug builds are unsuitable for measurements.
    pub profile: &'static str,
    /// Instruction set for which the generator was built. `None`: the compiler's default was used.
    pub target_cpu: &'static str,
    /// Commit from which the generator was built. `None`: the source was not a git checkout.
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

/// The number of requests with each outcome. Every request has exactly one outcome, so `scheduled`
/// is the sum of all other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Outcomes {
    /// Requests whose scheduled send time is in the measurement.
    pub scheduled: u64,
    /// Requests with a correct response: expected status and body.
    pub ok: u64,
    /// Requests whose response has an unexpected status.
    pub http_status: u64,
    /// Requests whose response is not valid HTTP, or has the expected status but a body of wrong
    /// length, content or framing.
    pub bad_body: u64,
    /// Requests whose connection was lost in the middle of the response or, on a new connection,
    /// before the response.
    pub reset: u64,
    /// Requests on a reused connection that was lost before the first byte of the response.
    pub stale: u64,
    /// Requests whose connection attempt failed: refused, host unreachable, or TLS certificate or
    /// handshake rejected.
    pub refused: u64,
    /// Requests whose connection was not established within the timeout.
    pub connect_timeout: u64,
    /// Requests that were sent, or that waited for an HTTP/2 stream, but got no complete response
    /// within the timeout.
    pub timeout: u64,
    /// Requests that were never sent because the queue was full (`--max-pending`), all connections
    /// were busy (`--on-busy shed`) or the deadline passed (`--deadline`).
    pub dropped: u64,
    /// Requests that were still in the system when the drain ended or the load was interrupted.
    pub unfinished: u64,
    /// Requests that failed because the generator ran out of file descriptors, ports or memory, or
    /// because a captured value made the URL too long. The measurement is invalid if more than
    /// 0.1 % of the requests failed for these reasons.
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

    /// Number of requests with this outcome.
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

/// Rates of a load (key `rate`) or of a cell (key `rate_result`).
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Rate {
    /// Scheduled requests per second; the mean rate if the rate varies. `None`: closed loop.
    pub offered_per_s: Option<f64>,
    /// Requests sent per second. `None`: nothing was measured.
    pub sent_per_s: Option<f64>,
    /// Complete responses per second, correct or not. `None`: nothing was measured.
    pub achieved_per_s: Option<f64>,
    /// Correct responses per second. `None`: nothing was measured.
    pub goodput_per_s: Option<f64>,
}

/// How connections were used, including warm-up and cool-down.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Connections {
    /// Connections that the generator opened.
    pub opened: u64,
    /// Requests sent on a connection that had already been used. `None`: not recorded.
    pub reused: u64,
    /// Connections that the server closed. `None`: not recorded.
    pub closed_by_server: u64,
    /// Highest number of connections open at the same time; with several threads, the sum of the
    /// threads' peaks, which may exceed the true peak. `None`: not recorded.
    pub peak: u64,
    /// Maximum number of connections allowed at the same time.
    pub max_connections: usize,
    /// Lowest limit that the server set for the concurrent streams of a connection. `None`: every
    /// limit is at least `plan.streams`.
    pub allowed_streams: Option<usize>,
    /// Number of failed connections by cause. After the first eight causes, all others count as
    /// `further causes`.
    pub failures: BTreeMap<String, u64>,
    /// Local ports before the first connection. `None`: Unix socket, or no `/proc`.
    pub local_ports: Option<SourcePorts>,
    /// The kernel's connection tracking (conntrack) table, which all programs share. `None`: Unix
    /// socket, `nf_conntrack` is not loaded, or the table is hidden from a container.
    pub tracked: Option<TrackedConnections>,
    /// Number of requests per connection. `None`: no connection was recorded.
    pub requests_per_connection: Option<RequestsPerConnection>,
}

impl Connections {
    /// A sentence for the user if the server allows fewer streams than planned.
    #[must_use]
    pub fn streams_sentence(&self, planned: usize) -> Option<String> {
        let allowed = self.allowed_streams?;
        Some(format!(
            "the server allows {allowed} concurrent streams per connection, fewer than --streams \
            {planned}; use more connections for more concurrent requests"
        ))
    }
}

/// The number of requests per connection.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct RequestsPerConnection {
    /// Lowest number of requests on one connection. `None`: no connection was opened.
    pub min: u64,
    /// Mean number of requests on one connection. `None`: no connection was opened.
    pub mean: f64,
    /// Highest number of requests on one connection. `None`: no connection was opened.
    pub max: u64,
}

/// One report interval of the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Interval {
    /// Start of the interval.
    pub start_ns: u64,
    /// Length of the interval.
    pub length_ns: u64,
    /// Requests that were due in this interval.
    pub scheduled: u64,
    /// Requests due in this interval that were sent.
    pub sent: u64,
    /// Requests due in this interval that got a correct response.
    pub ok: u64,
    /// Requests due in this interval that failed.
    pub failed: u64,
    /// Median response time of the correct responses. `None`: no correct response.
    pub p50_ns: Option<u64>,
    /// p99 response time of the correct responses. `None`: no correct response.
    pub p99_ns: Option<u64>,
    /// Longest response time of the correct responses. `None`: no correct response.
    pub max_ns: Option<u64>,
    /// Histogram of the correct responses' response times (`HdrHistogram` V2, compressed, base64).
    /// `None`: no correct response.
    pub hdr_v2: Option<String>,
}

/// Simultaneous readings of two clocks at the start of the load.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Clock {
    /// Reading of `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// Reading of `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// Time that `CLOCK_REALTIME` gained relative to `CLOCK_MONOTONIC` during the load; negative if
    /// `CLOCK_REALTIME` lost time.
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
        let precision = plan.precision.map(|target| {
            let quantile = target.quantile.to_string();
            let known = checks.uncertainty.offered_quantiles_ns.get(&quantile);
            PrecisionReport::of(&target, known, offered.get(&quantile))
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

    /// The histograms from which the figures are derived.
    #[must_use]
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// Number of requests in the measurement with this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes.count(outcome)
    }

    /// Number of requests scheduled in the measurement.
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
