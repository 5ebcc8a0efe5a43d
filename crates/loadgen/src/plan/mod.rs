//! The plan of a load: one immutable, validated [`LoadPlan`]. All times are in nanoseconds, all
//! rates per second.

pub(crate) mod access_line;
pub(crate) mod captures;
pub(crate) mod floor;
pub(crate) mod json_target;
pub(crate) mod mix;
pub(crate) mod open;
pub(crate) mod order;
pub(crate) mod phases;
pub(crate) mod placeholders;
pub(crate) mod portion;
pub(crate) mod precision;
pub(crate) mod profile;
pub(crate) mod protocol;
pub(crate) mod rate_curve;
pub(crate) mod recording;
pub(crate) mod request_limit;
pub(crate) mod requests_file;
pub(crate) mod requests_text;
pub(crate) mod text;
pub(crate) mod thresholds;
pub(crate) mod timestamp;
pub(crate) mod trace;
pub(crate) mod warnings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::{NS_PER_MS, NS_PER_S};
use crate::base::error::LoadError;
pub use crate::plan::captures::{CapturePlan, CaptureSource};
pub use crate::plan::floor::NoiseFloor;
pub use crate::plan::mix::{RequestPlan, SessionPlan, StepPlan, WeightedRequest};
pub use crate::plan::open::{Arrivals, OnBusy, OpenLoop};
pub use crate::plan::order::Order;
pub use crate::plan::phases::Phases;
use crate::plan::phases::require;
pub use crate::plan::precision::Precision;
pub use crate::plan::profile::{LoadProfile, Ramp, Replay, Step};
pub use crate::plan::protocol::{HttpVersion, Keepalive, ReceiveStamps, TlsOptions, Wire};
pub use crate::plan::recording::Recording;
pub use crate::plan::thresholds::Thresholds;
pub use crate::plan::trace::Trace;
pub use warnings::without_effect;

/// The complete definition of one load.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// URL of the request: `http://host[:port]/path?query`, or `https://` for TLS.
    pub url: String,
    /// Path of the Unix socket to connect to, instead of the URL's host, which is then used only in
    /// the header `Host`. `None`: not set; TCP is used.
    #[serde(default)]
    pub unix_socket: Option<String>,
    /// `HOST:PORT` to connect to, instead of those in the URL. The name in the URL is still used in
    /// requests and for TLS. `None`: not set; those in the URL are used.
    #[serde(default)]
    pub connect_to: Option<String>,
    /// Method of the request; `targets` and `sessions` have their own methods.
    #[serde(default = "default_method")]
    pub method: String,
    /// Additional header fields, in order. `Host` is set from the URL unless it is given here.
    /// Unless `--store-secrets` is given, reports of `wsgiload` contain hashes instead of
    /// [secrets](secrets.md).
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Request body, base64. Unless `--store-secrets` is given, reports of `wsgiload` contain a
    /// hash instead. `None`: no body.
    #[serde(default)]
    pub body_base64: Option<String>,
    /// Weighted requests, used instead of the single request. The plan's header fields are added to
    /// each of them.
    #[serde(default)]
    pub targets: Vec<WeightedRequest>,
    /// Sessions, used instead of single requests. The rate is then in sessions per second.
    #[serde(default)]
    pub sessions: Vec<SessionPlan>,
    /// Open or closed loop.
    pub load: LoadModel,
    /// Durations of the phases.
    pub phases: Phases,
    /// Length of a report interval. `None`: not set; 1 s, or longer if so many intervals would not
    /// fit into memory.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// Number of slowest requests in the report's `flights`; the random sample has the same size.
    /// Unit: requests.
    #[serde(default)]
    pub keep_flights: usize,
    /// Connection reuse: `on`, `off`, or a maximum number of requests per connection.
    #[serde(default)]
    pub keepalive: Keepalive,
    /// Timeout of a request, including connection setup.
    #[serde(default = "default_timeout_ns")]
    pub timeout_ns: u64,
    /// Maximum delay of a send after its scheduled time. A request that is not sent within this
    /// time is dropped. `None`: not set; there is no deadline.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Number of generator threads, each with its own event loop, connections and histograms. Unit:
    /// threads.
    #[serde(default = "default_threads")]
    #[schemars(range(min = 1))]
    pub threads: usize,
    /// Number of generator processes, each with that many threads, which share one schedule. Unit:
    /// processes.
    #[serde(default = "default_processes")]
    #[schemars(range(min = 1))]
    pub processes: usize,
    /// Seed of all random numbers: arrivals, their distribution over threads, the choice of idle
    /// connections.
    #[serde(default)]
    pub seed: u64,
    /// Duration of the busy-wait before each send. `None`: not set; chosen according to the rate
    /// and the cores.
    #[serde(default)]
    pub spin_window_ns: Option<u64>,
    /// Whether other processes use the generator's cores. On shared cores, the generator does not
    /// use real-time priority, and busy-waits only if `spin_window_ns` is set.
    #[serde(default)]
    pub shares_cores: bool,
    /// How responses are timestamped: by the kernel (`kernel`), by the generator (`user`), or by
    /// the generator with additional kernel timestamps on some connections (`sampled`). `None`: not
    /// set; `kernel` in an open loop, `user` in a closed loop.
    #[serde(default)]
    pub receive_stamps: Option<ReceiveStamps>,
    /// The criteria for a correct response.
    #[serde(default)]
    pub check: ResponseCheck,
    /// HTTP/1.1 implementation of the generator: its own (`native`), or the library hyper
    /// (`hyper`). HTTP/2 always uses its own.
    #[serde(default)]
    pub wire: Wire,
    /// HTTP version: `http1_0`, `http1` (HTTP/1.1) or `http2`.
    #[serde(default)]
    pub http_version: HttpVersion,
    /// Maximum number of concurrent requests on each connection, at most 250; above 1 only with
    /// HTTP/2. Unit: requests.
    #[serde(default = "default_streams")]
    #[schemars(range(min = 1))]
    pub streams: usize,
    /// TLS options.
    #[serde(default)]
    pub tls: TlsOptions,
    /// Source addresses of the connections, used round-robin: `127.0.0.2`, `127.0.0.2-127.0.0.50`,
    /// `127.0.0.0/24`. If empty, the kernel chooses the address; over loopback, enough addresses
    /// are used that ports do not run out ([transports.md](transports.md)).
    #[serde(default)]
    pub source_addresses: Vec<String>,
    /// Noise floor of this machine. `None`: the machine was not calibrated.
    #[serde(default)]
    pub noise_floor: Option<NoiseFloor>,
    /// Number of requests after which a closed loop ends, unless its duration ends first. Unit:
    /// requests. `None`: not set; there is no limit.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Target precision of a quantile. `None`: not set; the duration is fixed.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// Thresholds by name of the check and name of the threshold; missing thresholds have their
    /// defaults.
    #[serde(default)]
    pub thresholds: Thresholds,
}

/// An open or a closed loop. Exactly one of `open` and `closed` is present.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadModel {
    /// The open loop. `None`: absent in a closed loop.
    Open(OpenLoop),
    /// The closed loop. `None`: absent in an open loop.
    Closed(ClosedLoop),
}

/// A closed loop: a fixed number of users. After each response, a user pauses for the think time
/// and then sends the next request.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// Number of connections. Each has one user or, with HTTP/2, `streams` users. Unit:
    /// connections.
    pub connections: usize,
    /// Mean of the exponentially distributed think time; 0 for none.
    #[serde(default)]
    pub think_time_ns: u64,
}

/// The criteria for a correct response. All other responses are failures.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseCheck {
    /// Accepted status codes.
    #[serde(default = "default_statuses")]
    pub statuses: Vec<u16>,
    /// Expected body, base64. `None`: not checked.
    #[serde(default)]
    pub body_base64: Option<String>,
    /// Expected length of the body. Unit: bytes. `None`: not checked.
    #[serde(default)]
    pub length: Option<u64>,
    /// Expected SHA-256 hash of the body, hexadecimal. `None`: not checked.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Regular expression that must have a match in the first MiB of the body. `None`: not checked.
    #[serde(default)]
    pub regex: Option<String>,
}

impl Default for ResponseCheck {
    fn default() -> Self {
        Self {
            statuses: default_statuses(),
            body_base64: None,
            length: None,
            sha256: None,
            regex: None,
        }
    }
}

fn default_statuses() -> Vec<u16> {
    vec![200]
}

pub(crate) fn default_method() -> String {
    "GET".to_owned()
}

fn default_timeout_ns() -> u64 {
    10 * NS_PER_S
}

fn default_threads() -> usize {
    1
}

fn default_processes() -> usize {
    1
}

fn default_streams() -> usize {
    1
}

/// A timeout is detected slightly after it expires. A drain as long as the timeout would therefore
/// report the last requests as unfinished.
const TIMEOUT_NOTICE_NS: u64 = 500 * NS_PER_MS;

/// Maximum number of flights per list; the report contains every flight.
const MAX_FLIGHTS: usize = 100_000;

/// Maximum number of generator processes.
pub(crate) const MAX_PROCESSES: usize = 256;

/// Size of a packed interval with many different values, including its part of the report.
const INTERVAL_BYTES_ESTIMATE: u64 = 16 * 1024;
const RECORDING_BYTES_LIMIT: u64 = 256 << 20;

impl LoadPlan {
    /// A plan with all defaults: Poisson arrivals at `rate_per_s` for `measure_ns`.
    #[must_use]
    pub fn open(url: &str, rate_per_s: f64, measure_ns: u64) -> Self {
        let load = LoadModel::Open(OpenLoop {
            profile: LoadProfile::Flat { rate_per_s },
            arrivals: Arrivals::default(),
            on_busy: OnBusy::default(),
            max_connections: None,
            max_pending: None,
        });
        Self::with_load(url, load, measure_ns)
    }

    /// A plan with all defaults: `connections` users without think time for `measure_ns`.
    #[must_use]
    pub fn closed(url: &str, connections: usize, measure_ns: u64) -> Self {
        Self::with_load(
            url,
            LoadModel::Closed(ClosedLoop {
                connections,
                think_time_ns: 0,
            }),
            measure_ns,
        )
    }

    fn with_load(url: &str, load: LoadModel, measure_ns: u64) -> Self {
        Self {
            url: url.to_owned(),
            unix_socket: None,
            connect_to: None,
            method: default_method(),
            headers: Vec::new(),
            body_base64: None,
            targets: Vec::new(),
            sessions: Vec::new(),
            load,
            phases: Phases {
                warmup_ns: 0,
                measure_ns,
                cooldown_ns: 0,
                drain_ns: None,
            },
            interval_ns: None,
            keep_flights: 0,
            keepalive: Keepalive::default(),
            timeout_ns: default_timeout_ns(),
            deadline_ns: None,
            threads: default_threads(),
            processes: default_processes(),
            seed: 0,
            spin_window_ns: None,
            shares_cores: false,
            receive_stamps: None,
            check: ResponseCheck::default(),
            wire: Wire::default(),
            http_version: HttpVersion::default(),
            streams: default_streams(),
            tls: TlsOptions::default(),
            source_addresses: Vec::new(),
            noise_floor: None,
            requests: None,
            precision: None,
            thresholds: Thresholds::default(),
        }
    }

    /// Number of threads of all generator processes.
    pub(crate) fn all_threads(&self) -> usize {
        self.threads.saturating_mul(self.processes)
    }

    /// Maximum wait for responses after the last send.
    #[must_use]
    pub fn drain_ns(&self) -> u64 {
        self.phases
            .drain_ns
            .unwrap_or(self.timeout_ns + TIMEOUT_NOTICE_NS)
    }

    /// Source of the response timestamps.
    #[must_use]
    pub fn receive_stamps(&self) -> ReceiveStamps {
        self.receive_stamps.unwrap_or(match self.load {
            LoadModel::Open(_) => ReceiveStamps::Kernel,
            LoadModel::Closed(_) => ReceiveStamps::User,
        })
    }

    /// Length of one recording interval.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        let most_intervals =
            RECORDING_BYTES_LIMIT / INTERVAL_BYTES_ESTIMATE / self.all_threads().max(1) as u64;
        let measure_ns = self.longest_phases().measure_ns;
        let shortest_ns = measure_ns
            .div_ceil(most_intervals.max(1))
            .next_multiple_of(NS_PER_S);
        self.interval_ns.unwrap_or(shortest_ns.max(NS_PER_S))
    }

    /// The range of scheduled send times in the measurement, as offsets from the start. It ends at
    /// the first of its possible ends.
    #[must_use]
    pub fn measure_window(&self) -> (u64, u64) {
        let first_ns = self
            .possible_lengths_ns()
            .and_then(|lengths_ns| lengths_ns.first().copied());
        (
            self.phases.warmup_ns,
            self.phases.warmup_ns + first_ns.unwrap_or(self.phases.measure_ns),
        )
    }

    /// Refuses a plan that cannot be run; the URL, headers and bodies are checked when they are
    /// prepared.
    ///
    /// # Errors
    /// [`LoadError::Plan`] with the field, its value and the allowed values.
    pub fn validate(&self) -> Result<(), LoadError> {
        require(
            self.phases.measure_ns > 0,
            "the duration must be longer than 0",
        )?;
        require(
            self.unix_socket.is_none() || self.connect_to.is_none(),
            "connect_to and unix_socket are mutually exclusive",
        )?;
        self.validate_http_version()?;
        self.validate_streams()?;
        self.validate_load()?;
        self.validate_mix()?;
        self.validate_precision()?;
        self.validate_requests()?;
        require(
            self.longest_phases().load_ns() <= 24 * 3600 * NS_PER_S,
            "a load may last at most 24 hours",
        )?;
        require(
            self.interval_ns() >= 10 * NS_PER_MS,
            "the interval must be at least 10ms",
        )?;
        require(
            self.keep_flights <= MAX_FLIGHTS,
            "keep_flights may be at most 100,000",
        )?;
        require(
            self.timeout_ns >= NS_PER_MS,
            "the timeout must be at least 1ms",
        )?;
        require(
            self.timeout_ns <= 3600 * NS_PER_S,
            "the timeout may be at most one hour",
        )?;
        require(
            self.deadline_ns.is_none_or(|ns| ns > 0),
            "the deadline must be longer than 0",
        )?;
        require(
            (1..=256).contains(&self.threads),
            "threads must be between 1 and 256",
        )?;
        require(
            (1..=MAX_PROCESSES).contains(&self.processes),
            "processes must be between 1 and 256",
        )?;
        require(
            self.processes == 1 || self.possible_lengths_ns().is_none(),
            "processes: --precision and --requests need a single process; omit --processes",
        )?;
        require(
            self.keepalive != Keepalive::Requests(0),
            "requests per connection must be at least 1",
        )?;
        self.validate_statuses()?;
        let intervals = self
            .longest_phases()
            .measure_ns
            .div_ceil(self.interval_ns());
        require(
            intervals * INTERVAL_BYTES_ESTIMATE * self.all_threads() as u64
                <= RECORDING_BYTES_LIMIT,
            &format!("{intervals} intervals do not fit into memory; use a longer interval"),
        )
    }

    fn validate_statuses(&self) -> Result<(), LoadError> {
        let request_checks = self.listed_requests().filter_map(|one| one.check.as_ref());
        for check in request_checks.chain([&self.check]) {
            let statuses = &check.statuses;
            require(
                !statuses.is_empty(),
                "at least one status code must be accepted",
            )?;
            if let Some(unknown) = statuses.iter().find(|one| !(100..=599).contains(*one)) {
                let message = format!("{unknown} is not a status code (100 to 599)");
                return Err(LoadError::Plan(message));
            }
        }
        Ok(())
    }

    fn validate_load(&self) -> Result<(), LoadError> {
        match &self.load {
            LoadModel::Open(open) => {
                open.profile.validate(&self.phases)?;
                require(
                    open.max_connections != Some(0),
                    "max_connections must be at least 1",
                )?;
                let cap = open.max_connections.unwrap_or(usize::MAX);
                require(
                    cap >= self.all_threads(),
                    "max_connections must be at least the number of threads of all processes",
                )
            }
            LoadModel::Closed(closed) => {
                let connections = closed.connections;
                require(
                    (1..=1_000_000).contains(&connections),
                    "connections must be between 1 and 1,000,000",
                )?;
                require(
                    connections * self.streams <= 1_000_000,
                    "connections times streams may be at most 1,000,000",
                )?;
                require(
                    connections >= self.all_threads(),
                    "connections must be at least the number of threads of all processes",
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plans_are_valid() {
        LoadPlan::open("http://127.0.0.1/", 100.0, NS_PER_S)
            .validate()
            .expect("open");
        LoadPlan::closed("http://127.0.0.1/", 4, NS_PER_S)
            .validate()
            .expect("closed");
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let good = LoadPlan::open("http://127.0.0.1/", 100.0, NS_PER_S);
        let cases: Vec<(&str, LoadPlan)> = vec![
            ("rate", LoadPlan::open("http://h/", 0.0, NS_PER_S)),
            ("rate", LoadPlan::open("http://h/", f64::NAN, NS_PER_S)),
            ("duration", LoadPlan::open("http://h/", 1.0, 0)),
            (
                "24 hours",
                LoadPlan {
                    phases: Phases {
                        warmup_ns: u64::MAX,
                        ..good.phases.clone()
                    },
                    ..good.clone()
                },
            ),
            ("connections", LoadPlan::closed("http://h/", 0, NS_PER_S)),
            (
                "threads",
                LoadPlan {
                    threads: 0,
                    ..good.clone()
                },
            ),
            (
                "processes",
                LoadPlan {
                    processes: 257,
                    ..good.clone()
                },
            ),
            (
                "omit --processes",
                LoadPlan {
                    processes: 2,
                    requests: Some(5),
                    ..LoadPlan::closed("http://h/", 4, NS_PER_S)
                },
            ),
            (
                "timeout",
                LoadPlan {
                    timeout_ns: 0,
                    ..good.clone()
                },
            ),
            (
                "interval",
                LoadPlan {
                    interval_ns: Some(1),
                    ..good.clone()
                },
            ),
            (
                "keep_flights",
                LoadPlan {
                    keep_flights: usize::MAX,
                    ..good.clone()
                },
            ),
            (
                "per connection",
                LoadPlan {
                    keepalive: Keepalive::Requests(0),
                    ..good.clone()
                },
            ),
            (
                "omit --wire hyper",
                LoadPlan {
                    http_version: HttpVersion::Http1_0,
                    wire: Wire::Hyper,
                    ..good.clone()
                },
            ),
        ];
        for (word, plan) in cases {
            let message = plan.validate().expect_err(word).to_string();
            assert!(message.contains(word), "{message:?} should name {word:?}");
        }
    }

    #[test]
    fn several_streams_need_http2_and_connection_reuse() {
        let good = LoadPlan {
            http_version: HttpVersion::Http2,
            streams: 8,
            ..LoadPlan::closed("http://h/", 4, NS_PER_S)
        };
        good.validate().expect("possible");
        let last = LoadPlan {
            streams: 250,
            ..good.clone()
        };
        last.validate().expect("possible");

        let refused = |plan: LoadPlan| plan.validate().expect_err("refused").to_string();
        let mut many = good.clone();
        many.load = LoadPlan::closed("http://h/", 200_000, NS_PER_S).load;
        for (word, plan) in [
            (
                "between 1 and 250",
                LoadPlan {
                    streams: 0,
                    ..good.clone()
                },
            ),
            (
                "between 1 and 250",
                LoadPlan {
                    streams: 251,
                    ..good.clone()
                },
            ),
            (
                "add --http2",
                LoadPlan {
                    http_version: HttpVersion::Http1,
                    ..good.clone()
                },
            ),
            (
                "omit --keepalive",
                LoadPlan {
                    keepalive: Keepalive::Off,
                    ..good.clone()
                },
            ),
            ("1,000,000", many),
        ] {
            let message = refused(plan);
            assert!(message.contains(word), "{message:?} should say {word:?}");
        }
    }

    #[test]
    fn a_long_load_has_longer_intervals_by_default() {
        let minute = LoadPlan::open("http://h/", 1.0, 60 * NS_PER_S);
        assert_eq!(minute.interval_ns(), NS_PER_S);
        let mut day = LoadPlan::open("http://h/", 1.0, 24 * 3600 * NS_PER_S);
        day.threads = 8;
        day.validate().expect("a day fits");
        assert!(day.interval_ns() > 30 * NS_PER_S, "{}", day.interval_ns());
        day.interval_ns = Some(NS_PER_S);
        assert!(
            day.validate()
                .expect_err("too many")
                .to_string()
                .contains("longer interval")
        );
    }

    #[test]
    fn unknown_keys_are_refused() {
        let mut json =
            serde_json::to_value(LoadPlan::open("http://h/", 1.0, NS_PER_S)).expect("to json");
        json["durration"] = 3.into();
        let error = serde_json::from_value::<LoadPlan>(json).expect_err("unknown key");
        assert!(error.to_string().contains("durration"), "{error}");
    }

    #[test]
    fn the_last_request_of_a_connection_is_recognized() {
        assert!(!Keepalive::On.is_last(1_000_000));
        assert!(Keepalive::Off.is_last(0));
        let three = Keepalive::Requests(3);
        assert_eq!(
            [0, 1, 2, 3].map(|served| three.is_last(served)),
            [false, false, true, true]
        );
    }
}
