//! Command line of the binary: flags in, [`LoadPlan`] out.

mod header_fields;
mod values;

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, ValueEnum};
use loadgen::plan::{
    Arrivals, ClosedLoop, HttpVersion, Keepalive, LoadModel, LoadProfile, OnBusy, OpenLoop, Phases,
    Precision, Ramp, ReceiveStamps, Recording, Replay, ResponseCheck, Step, Thresholds, TlsOptions,
    WeightedRequest, Wire,
};
use loadgen::{
    LoadError, LoadPlan, parse_duration_ns, read_file, read_recording, read_sessions, read_targets,
};

use header_fields::{HeaderFields, header_fields};

/// The default duration, unless the schedule has a length.
const DEFAULT_MEASURE_NS: u64 = 10_000_000_000;

/// Larger bodies are refused, because they are kept in memory.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Generate load against a URL and print a JSON report. Latency is measured from the scheduled
/// send time.
///
/// With --rate, --ramp, --steps or --replay, the load is an open loop: requests follow a schedule,
/// regardless of how fast the server responds. Otherwise, the load is a closed loop: each of the
/// --connections users waits for a response before the next request.
///
/// Exit codes: 0 valid result, 2 usage error, 97 no correct response, 98 invalid measurement,
/// 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "loadgen", version, max_term_width = 100)]
pub struct Arguments {
    /// URL to request: http://host[:port]/path, or https://
    url: String,
    /// Connect to this Unix socket instead of the URL's host
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// Connect to HOST:PORT instead of the URL's host. The Host header and TLS still use the host
    /// name of the URL
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix_socket")]
    connect_to: Option<String>,
    /// Source addresses of the connections, used round-robin, such as 127.0.0.2-127.0.0.50 or
    /// 127.0.0.0/24
    #[arg(long, value_delimiter = ',', value_name = "LIST", alias = "source")]
    source_addresses: Vec<String>,
    /// Use HTTP/2
    #[arg(long)]
    http2: bool,
    /// Maximum number of concurrent requests per connection, at most 250. Requires --http2
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// Use HTTP/1.0. Connections are reused if the server supports keep-alive, unless
    /// --keepalive is off
    #[arg(long = "http1.0", conflicts_with = "http2")]
    http1_0: bool,
    /// Do not verify TLS certificates
    #[arg(short = 'k', long)]
    insecure: bool,
    /// PEM file of trusted certificate authorities, used instead of the system's
    #[arg(long, value_name = "FILE", alias = "cacert")]
    ca_file: Option<String>,
    /// PEM file of a client certificate, for servers that require one
    #[arg(long, value_name = "FILE", alias = "cert")]
    client_cert: Option<String>,
    /// PEM file of the client certificate's key [default: the file of --client-cert]
    #[arg(long, value_name = "FILE", alias = "key", requires = "client_cert")]
    client_key: Option<String>,
    /// Rate of the open loop, in requests per second
    #[arg(
        short = 'R',
        long,
        value_parser = values::rate_per_s,
        visible_alias = "qps",
        short_alias = 'q'
    )]
    rate: Option<f64>,
    /// Linear ramp of the open loop's rate over TIME (default: the whole measurement); the rate
    /// then stays at TO
    #[arg(
        long,
        value_name = "FROM:TO[@TIME]",
        value_parser = values::ramp,
        conflicts_with = "rate"
    )]
    ramp: Option<Ramp>,
    /// Consecutive rates of the open loop. The sum of the times is the duration
    #[arg(
        long,
        value_name = "RATE@TIME,...",
        value_delimiter = ',',
        value_parser = values::step,
        conflicts_with_all = ["rate", "ramp"]
    )]
    steps: Vec<Step>,
    /// Trace (one arrival per line, in seconds from the start) or access log to replay as an open
    /// loop (-: standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "ramp", "steps", "arrivals"])]
    replay: Option<std::path::PathBuf>,
    /// Replay speed factor, such as 2 for twice the recorded speed. Requires --replay
    // Conflicts are listed because clap drops a requirement that conflicts with a given option.
    #[arg(
        long,
        default_value_t = 1.0,
        requires = "replay",
        conflicts_with_all = ["rate", "ramp", "steps"]
    )]
    replay_speed: f64,
    /// Number of users of a closed loop (default: 1). In an open loop: the same as
    /// --max-connections
    #[arg(short, long)]
    connections: Option<usize>,
    /// Duration of the measurement [default: 10s, or the length of the schedule]
    #[arg(short, long, value_parser = parse_duration_ns, short_alias = 'z')]
    duration: Option<u64>,
    /// Stop after this many requests, or earlier if the duration ends. Requires a closed loop
    #[arg(short = 'n', long, value_name = "COUNT", conflicts_with_all = ["rate", "ramp", "steps", "replay"])]
    requests: Option<u64>,
    /// Target precision (half-width of the 95 % CI), such as 5% (for p99) or p99.9:2%. Requires
    /// --max-duration
    #[arg(long, value_parser = values::precision, requires = "max_duration")]
    precision: Option<(f64, f64)>,
    /// Extend the measurement up to this duration until the target precision is reached. Requires
    /// --precision
    #[arg(long, value_parser = parse_duration_ns, requires = "precision")]
    max_duration: Option<u64>,
    /// Duration of the warm-up before the measurement
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    warmup: u64,
    /// Duration of the cool-down after the measurement
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    cooldown: u64,
    /// Mean pause of each user between a response and the next request. Ignored in an open loop
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    think_time: u64,
    /// Header field 'Name: value', or @FILE with one header field per line (repeatable)
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = header_fields)]
    headers: Vec<HeaderFields>,
    /// Request method
    #[arg(short = 'X', long, default_value = "GET")]
    method: String,
    /// Request body
    #[arg(short, long, conflicts_with = "body_file")]
    body: Option<String>,
    /// File that contains the request body
    #[arg(long)]
    body_file: Option<std::path::PathBuf>,
    /// File of weighted requests in vegeta's HTTP format, as JSON lines, or as a list of URLs
    /// (-: standard input)
    #[arg(
        long,
        value_name = "FILE",
        visible_alias = "urls-from-file",
        conflicts_with_all = ["body", "body_file", "method"]
    )]
    targets: Option<std::path::PathBuf>,
    /// File of sessions (sequences of requests with think times and cookies). Rates are then in
    /// sessions per second
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["targets", "body", "body_file", "method"]
    )]
    sessions: Option<std::path::PathBuf>,
    /// Request timeout, including connection setup
    #[arg(long, default_value = "10s", value_parser = parse_duration_ns)]
    timeout: u64,
    /// Drop requests that are not sent within this time after their scheduled send time
    /// [default: none]
    #[arg(long, value_parser = parse_duration_ns)]
    deadline: Option<u64>,
    /// Inter-arrival distribution
    #[arg(long, value_enum, default_value_t = ArrivalsFlag::Poisson)]
    arrivals: ArrivalsFlag,
    /// Connection reuse: on, off, or the maximum number of requests per connection
    #[arg(long, value_name = "on|off|K", default_value = "on", value_parser = values::keepalive)]
    keepalive: Keepalive,
    /// Action if the maximum number of connections is in use: queue the request (grow, or its
    /// synonym queue) or drop it (shed)
    #[arg(long, value_enum, default_value_t = OnBusyFlag::Grow)]
    on_busy: OnBusyFlag,
    /// Maximum number of connections of an open loop [default: 4,096, or fewer if there are not
    /// enough file descriptors or ports]
    #[arg(long)]
    max_connections: Option<usize>,
    /// Maximum number of requests that wait for a connection; further requests are dropped
    /// [default: 10 s worth of requests, at least 10 per connection]
    #[arg(long)]
    max_pending: Option<usize>,
    /// Number of generator threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Number of generator processes, which share one schedule. Each may open as many connections
    /// as the limit on file descriptors allows
    #[arg(long, default_value_t = 1)]
    processes: usize,
    /// Random seed [default: a new one for each load, stored in its report]
    #[arg(long)]
    seed: Option<u64>,
    /// Length of the report intervals [default: 1s, longer for long measurements]
    #[arg(long, value_parser = parse_duration_ns)]
    interval: Option<u64>,
    /// Busy-wait time before each send [default: depends on the rate and the idle cores]
    #[arg(long, value_parser = parse_duration_ns)]
    spin: Option<u64>,
    /// Source of response timestamps: kernel (when data arrives), user (when the generator reads the
    /// data; includes its delays, but uses less CPU time), or sampled (user, plus kernel timestamps
    /// on one connection in 16) [default: kernel in an open loop, user in a closed loop]
    #[arg(long, value_enum)]
    receive_stamps: Option<ReceiveStampsFlag>,
    /// Accepted status codes
    #[arg(long, value_delimiter = ',', default_value = "200")]
    expect_status: Vec<u16>,
    /// File that contains the expected body
    #[arg(long)]
    expect_body_file: Option<std::path::PathBuf>,
    /// Expected length of the body, in bytes
    #[arg(long, value_name = "BYTES")]
    expect_length: Option<u64>,
    /// Expected SHA-256 hash of the body
    #[arg(long, value_name = "HEX")]
    expect_sha256: Option<String>,
    /// Regular expression that must match within the first 1 MiB of the body
    #[arg(long, value_name = "PATTERN")]
    expect_regex: Option<String>,
    /// HTTP implementation: native, or hyper for cross-checks
    #[arg(long, value_enum, default_value_t = WireFlag::Native)]
    wire: WireFlag,
    /// Override the threshold of a check, such as send-lag.warn=0.02 (repeatable)
    #[arg(long = "check-threshold", value_name = "CHECK.KEY=LIMIT")]
    check_thresholds: Vec<String>,
    /// Write the report to FILE (default: standard output)
    #[arg(long, num_args = 0..=1, default_missing_value = "-", value_name = "FILE")]
    pub json: Option<String>,
    /// Print the JSON Schema of the report
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Print what a check tests, when it fires, and the fix
    #[arg(long, exclusive = true, value_name = "CHECK")]
    pub explain: Option<String>,
    /// Run as one of the processes of --processes
    #[arg(long, exclusive = true, hide = true)]
    pub generator: bool,
    /// Suppress warnings on standard error
    #[arg(long)]
    pub quiet: bool,
    /// Print the complete plan without sending a request
    #[arg(long)]
    pub dry_run: bool,
    /// Refused: -t means threads in wrk, timeout in oha and duration in locust
    #[arg(short = 't', hide = true, num_args = 0..=1, value_parser = values::refuse_t)]
    ambiguous: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ArrivalsFlag {
    Poisson,
    Constant,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReceiveStampsFlag {
    Kernel,
    Sampled,
    User,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WireFlag {
    Native,
    Hyper,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnBusyFlag {
    Grow,
    Queue,
    Shed,
}

impl Arguments {
    /// The plan that these flags describe, not yet validated, and notes on what it replays.
    pub fn plan(&self) -> Result<(LoadPlan, Vec<String>), String> {
        let recording = self.recording()?;
        let targets = self.targets(recording.as_ref())?;
        let profile = self.profile(recording.as_ref());
        let measure_ns = self.measure_ns(profile.as_ref())?;
        let plan = LoadPlan {
            url: self.url.clone(),
            unix_socket: self.unix_socket.clone(),
            connect_to: self.connect_to.clone(),
            method: self.method.clone(),
            headers: self.header_fields(),
            body_base64: self.body()?.map(|bytes| STANDARD.encode(bytes)),
            targets,
            sessions: from_file(self.sessions.as_deref(), read_sessions)?,
            load: self.load(profile),
            phases: Phases {
                warmup_ns: self.warmup,
                measure_ns,
                cooldown_ns: self.cooldown,
                drain_ns: None,
            },
            interval_ns: self.interval,
            keep_flights: 0,
            keepalive: self.keepalive,
            timeout_ns: self.timeout,
            deadline_ns: self.deadline,
            threads: self.threads,
            processes: self.processes,
            seed: self.seed.unwrap_or_else(new_seed),
            spin_window_ns: self.spin,
            shares_cores: false,
            receive_stamps: self.receive_stamps.map(|flag| match flag {
                ReceiveStampsFlag::Kernel => ReceiveStamps::Kernel,
                ReceiveStampsFlag::Sampled => ReceiveStamps::Sampled,
                ReceiveStampsFlag::User => ReceiveStamps::User,
            }),
            check: ResponseCheck {
                statuses: self.expect_status.clone(),
                body_base64: read(self.expect_body_file.as_deref())?
                    .map(|bytes| STANDARD.encode(bytes)),
                length: self.expect_length,
                sha256: self.expect_sha256.clone(),
                regex: self.expect_regex.clone(),
            },
            wire: match self.wire {
                WireFlag::Native => Wire::Native,
                WireFlag::Hyper => Wire::Hyper,
            },
            http_version: match (self.http2, self.http1_0) {
                (true, _) => HttpVersion::Http2,
                (_, true) => HttpVersion::Http1_0,
                _ => HttpVersion::Http1,
            },
            streams: self.streams,
            tls: TlsOptions {
                insecure: self.insecure,
                ca_file: self.ca_file.clone(),
                client_cert: self.client_cert.clone(),
                client_key: self.client_key.clone(),
            },
            source_addresses: self.source_addresses.clone(),
            noise_floor: None,
            requests: self.requests,
            precision: self.precision(),
            thresholds: self
                .check_thresholds
                .iter()
                .try_fold(Thresholds::default(), |thresholds, text| {
                    thresholds.with_text(text)
                })?,
        };
        Ok((
            plan,
            recording.map_or_else(Vec::new, |recording| recording.notes),
        ))
    }

    /// Warnings about the given flags that have no effect on this plan.
    pub fn warnings(matches: &ArgMatches, plan: &LoadPlan) -> Vec<String> {
        let names: Vec<&str> = matches
            .ids()
            .map(clap::Id::as_str)
            .filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine))
            .collect();
        loadgen::plan::without_effect(plan, &names, "--rate")
    }

    fn precision(&self) -> Option<Precision> {
        let ((quantile, half_width), max_duration_ns) = self.precision.zip(self.max_duration)?;
        Some(Precision {
            quantile,
            half_width,
            max_duration_ns,
        })
    }

    fn header_fields(&self) -> Vec<(String, String)> {
        self.headers
            .iter()
            .flat_map(|HeaderFields(fields)| fields.clone())
            .collect()
    }

    fn body(&self) -> Result<Option<Vec<u8>>, String> {
        match &self.body {
            Some(text) => Ok(Some(text.clone().into_bytes())),
            None => read(self.body_file.as_deref()),
        }
    }

    fn recording(&self) -> Result<Option<Recording>, String> {
        let read = |path| read_recording(path).map_err(|error| error.to_string());
        self.replay.as_deref().map(read).transpose()
    }

    /// The recorded requests, or those of a file.
    fn targets(&self, recording: Option<&Recording>) -> Result<Vec<WeightedRequest>, String> {
        match recording {
            Some(recording) if !recording.targets.is_empty() => {
                if self.targets.is_some() || self.sessions.is_some() {
                    return Err(
                        "an access log has its own requests; omit --targets and --sessions"
                            .to_owned(),
                    );
                }
                Ok(recording.targets.clone())
            }
            _ => from_file(self.targets.as_deref(), read_targets),
        }
    }

    /// The load profile of an open loop; `None` in a closed loop.
    fn profile(&self, recording: Option<&Recording>) -> Option<LoadProfile> {
        if let Some(recording) = recording {
            return Some(LoadProfile::Replay(Replay {
                offsets_ns: recording.offsets_ns.clone(),
                speed: self.replay_speed,
                requests: recording.requests.clone(),
            }));
        }
        if !self.steps.is_empty() {
            return Some(LoadProfile::Steps(self.steps.clone()));
        }
        self.ramp
            .map(LoadProfile::Ramp)
            .or(self.rate.map(|rate_per_s| LoadProfile::Flat { rate_per_s }))
    }

    fn measure_ns(&self, profile: Option<&LoadProfile>) -> Result<u64, String> {
        match (
            self.duration,
            profile,
            profile.and_then(LoadProfile::own_length_ns),
        ) {
            (Some(given_ns), _, _) => Ok(given_ns),
            (None, Some(LoadProfile::Replay(_)), Some(own_ns)) => own_ns
                .checked_sub(self.warmup.saturating_add(self.cooldown))
                .filter(|left_ns| *left_ns > 0)
                .ok_or_else(|| {
                    "warm-up and cool-down cover the whole trace; shorten them".to_owned()
                }),
            (None, _, own_ns) => Ok(own_ns.unwrap_or(DEFAULT_MEASURE_NS)),
        }
    }

    fn load(&self, profile: Option<LoadProfile>) -> LoadModel {
        let Some(profile) = profile else {
            let connections = self.connections.unwrap_or(1);
            return LoadModel::Closed(ClosedLoop {
                connections,
                think_time_ns: self.think_time,
            });
        };
        LoadModel::Open(OpenLoop {
            profile,
            arrivals: match self.arrivals {
                ArrivalsFlag::Poisson => Arrivals::Poisson,
                ArrivalsFlag::Constant => Arrivals::Constant,
            },
            on_busy: match self.on_busy {
                OnBusyFlag::Grow => OnBusy::Grow,
                OnBusyFlag::Queue => OnBusy::Queue,
                OnBusyFlag::Shed => OnBusy::Shed,
            },
            max_connections: self.max_connections.or(self.connections),
            max_pending: self.max_pending,
        })
    }
}

/// A random seed, so that loads that run at the same time do not send at the same time. Every JSON
/// reader can represent it.
fn new_seed() -> u64 {
    const SEED_BITS: u32 = 53;
    // The only random numbers of the standard library.
    RandomState::new().hash_one(std::process::id()) >> (u64::BITS - SEED_BITS)
}

type Parsed<T> = Result<Vec<T>, LoadError>;

fn from_file<T>(path: Option<&Path>, parse: impl Fn(&Path) -> Parsed<T>) -> Result<Vec<T>, String> {
    path.map_or_else(
        || Ok(Vec::new()),
        |path| parse(path).map_err(|error| error.to_string()),
    )
}

fn read(path: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    path.map(|path| read_file(path, MAX_BODY_BYTES)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> Result<LoadPlan, String> {
        let arguments = Arguments::try_parse_from(words.split_ascii_whitespace())
            .map_err(|error| error.to_string())?;
        arguments.plan().map(|(plan, _)| plan)
    }

    #[test]
    fn a_rate_selects_an_open_loop_and_its_absence_a_closed_one() {
        let open = plan("loadgen http://h/ -R 1000 -d 3s --seed 7").expect("open");
        assert_eq!(
            profile_of(&open),
            &LoadProfile::Flat {
                rate_per_s: 1_000.0
            }
        );
        assert_eq!((open.phases.measure_ns, open.seed), (3_000_000_000, 7));

        let seeds = [(); 100].map(|()| plan("loadgen http://h/").expect("closed").seed);
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        let distinct = std::collections::BTreeSet::from(seeds);
        assert_eq!(distinct.len(), 100, "every load has its own seed");
        let closed = plan("loadgen http://h/ -c 8").expect("closed");
        assert_eq!(
            closed.load,
            LoadModel::Closed(ClosedLoop {
                connections: 8,
                think_time_ns: 0
            })
        );
    }

    fn profile_of(plan: &LoadPlan) -> &LoadProfile {
        match &plan.load {
            LoadModel::Open(open) => &open.profile,
            LoadModel::Closed(_) => panic!("the plan is a closed loop"),
        }
    }

    /// The plan that replays a file with these lines.
    fn replaying(lines: &str, words: &str) -> Result<LoadPlan, String> {
        static FILES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("loadgen-trace-{}-{number}.txt", std::process::id()));
        std::fs::write(&path, lines).map_err(|error| error.to_string())?;
        let result = plan(&format!(
            "loadgen http://h/ --replay {} {words}",
            path.display()
        ));
        std::fs::remove_file(&path).map_err(|error| error.to_string())?;
        result.map_err(|message| message.replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn a_ramp_lasts_for_the_measurement_or_a_given_time() {
        let whole = plan("loadgen http://h/ --ramp 1000:3000 -d 30s").expect("a ramp");
        assert_eq!(
            profile_of(&whole),
            &LoadProfile::Ramp(Ramp {
                from_per_s: 1e3,
                to_per_s: 3e3,
                over_ns: None
            })
        );
        assert_eq!(whole.phases.measure_ns, 30_000_000_000);
        let timed =
            plan("loadgen http://h/ --ramp 0:2.5@20s -c 7 --max-pending 3").expect("a ramp");
        let over_ns = Some(20_000_000_000);
        assert_eq!(
            profile_of(&timed),
            &LoadProfile::Ramp(Ramp {
                from_per_s: 0.0,
                to_per_s: 2.5,
                over_ns
            })
        );
        assert_eq!(
            timed.phases.measure_ns, 20_000_000_000,
            "no longer than the ramp, unless asked for"
        );
        let LoadModel::Open(open) = &timed.load else {
            panic!("closed")
        };
        assert_eq!((open.max_connections, open.max_pending), (Some(7), Some(3)));
    }

    #[test]
    fn the_measurement_is_as_long_as_all_steps() {
        let stepped =
            plan("loadgen http://h/ --steps 1000@10s,0@500ms,2000@1m --arrivals constant")
                .expect("steps");
        let step = |rate_per_s: f64, duration_ns: u64| Step {
            rate_per_s,
            duration_ns,
        };
        let expected = vec![
            step(1e3, 10_000_000_000),
            step(0.0, 500_000_000),
            step(2e3, 60_000_000_000),
        ];
        assert_eq!(profile_of(&stepped), &LoadProfile::Steps(expected));
        assert_eq!(stepped.phases.measure_ns, 70_500_000_000);
        stepped.validate().expect("possible");
    }

    #[test]
    fn the_measurement_is_as_long_as_the_trace() {
        let trace = "0\n1\n2\n3\n";
        let whole = replaying(trace, "").expect("a trace");
        assert_eq!(whole.phases.measure_ns, 4_000_000_000);
        let part = replaying(trace, "--replay-speed 2 --warmup 500ms").expect("a trace");
        assert_eq!(
            (part.phases.warmup_ns, part.phases.measure_ns),
            (500_000_000, 1_500_000_000)
        );
        let cut = replaying(trace, "-d 2s").expect("a trace");
        assert_eq!(cut.phases.measure_ns, 2_000_000_000);
        let message = replaying(trace, "--warmup 4s").expect_err("nothing left");
        assert!(
            message.contains("cover the whole trace; shorten them"),
            "{message}"
        );
        assert_eq!(
            replaying("5\n", "").expect("one arrival").phases.measure_ns,
            DEFAULT_MEASURE_NS
        );
    }

    #[test]
    fn errors_in_a_trace_name_the_file_and_the_line() {
        let message = replaying("0\n1 2\n", "").expect_err("not a number");
        assert!(
            message.starts_with("FILE: line 2: \"1 2\" is not an offset"),
            "{message}"
        );
        let message = plan("loadgen http://h/ --replay /nowhere/trace").expect_err("no file");
        assert!(
            message.starts_with("cannot read /nowhere/trace"),
            "{message}"
        );
    }

    #[test]
    fn conflicting_and_invalid_options_are_refused() {
        let cases = [
            ("-R 5 --ramp 1:2", "cannot be used with"),
            ("-R 5 --steps 1@1s", "cannot be used with"),
            ("--ramp 1:2 --steps 1@1s", "cannot be used with"),
            ("--replay x --ramp 1:2", "cannot be used with"),
            ("--replay x --arrivals constant", "cannot be used with"),
            ("-R 5 --replay-speed 2", "cannot be used with"),
            ("--replay-speed 2", "--replay <FILE>"),
            ("--ramp 1000", "write it like 1000:3000"),
            ("--ramp 1:2@never", "is not one of ns, us"),
            ("--ramp 1:nan", "write it like 1000:3000"),
            ("--steps 10s:100", "write steps like 1000@10s"),
            ("--steps 5@1s,", "write steps like 1000@10s"),
            ("-R 5 --precision 5%", "--max-duration <MAX_DURATION>"),
            ("-R 5 --max-duration 60s", "--precision <PRECISION>"),
        ];
        for (words, expected) in cases {
            let message = plan(&format!("loadgen http://h/ {words}")).expect_err(words);
            assert!(message.contains(expected), "{words}: {message}");
        }
    }

    #[test]
    fn the_target_precision_is_parsed() {
        let plan = plan("loadgen http://h/ -R 1000 --precision p99.9:2% --max-duration 60s")
            .expect("a precision");
        let expected = Precision {
            quantile: 0.999,
            half_width: 0.02,
            max_duration_ns: 60_000_000_000,
        };
        assert_eq!(plan.precision, Some(expected));
        plan.validate().expect("possible");
    }

    #[test]
    fn thresholds_of_checks_are_changed_one_by_one() {
        let changed = plan(
            "loadgen http://h/ --check-threshold send-lag.warn=0.02 --check-threshold client-cpu.invalid=0.9",
        );
        let changed = changed.expect("known").thresholds;
        assert_eq!((changed.lag_impact.warn, changed.busy.invalid), (0.02, 0.9));
        let message =
            plan("loadgen http://h/ --check-threshold send-lag.worn=1").expect_err("unknown");
        assert!(
            message.contains(
                "send-lag has no threshold worn; it has bound, bound_ns, invalid, invalid_ns, note"
            ),
            "{message}"
        );
    }

    #[test]
    fn the_ambiguous_flag_is_refused_with_a_hint() {
        let message = plan("loadgen http://h/ -t 5").expect_err("refused");
        assert!(
            message.contains("--threads, --timeout or --duration"),
            "{message}"
        );
    }

    #[test]
    fn request_files_and_options_of_a_single_request_conflict() {
        for words in [
            "--targets t -b x",
            "--sessions s -X POST",
            "--sessions s --targets t",
        ] {
            let message = plan(&format!("loadgen http://h/ -R 1 {words}")).expect_err(words);
            assert!(message.contains("cannot be used with"), "{message}");
        }
        let message = plan("loadgen http://h/ --targets /nowhere/targets").expect_err("missing");
        assert!(message.contains("/nowhere/targets"), "{message}");
    }
}
