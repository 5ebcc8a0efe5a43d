//! Command line of the binary: flags in, [`LoadPlan`] out.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Parser, ValueEnum};
use loadgen::plan::{Arrivals, ClosedLoop, Keepalive, LoadModel, OnBusy, OpenLoop, Phases, ResponseCheck, Wire};
use loadgen::{LoadError, LoadPlan, parse_duration_ns, read_sessions, read_targets};

/// Drives a URL and prints a JSON report whose latency starts at the intended send.
///
/// With --rate the load is open: arrivals follow a schedule, whatever the server does. Without it the load is closed:
/// each of --connections users waits for its answer before it asks again.
///
/// Exit codes: 0 done and valid, 2 usage, 97 nothing was answered correctly, 98 measurement invalid, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "loadgen", version, max_term_width = 100)]
pub struct Arguments {
    /// http://host[:port]/path
    url: String,
    /// Connects to this Unix socket instead of the URL's host
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// Offered rate in requests per second: open loop
    #[arg(short = 'R', long, visible_alias = "qps", short_alias = 'q')]
    rate: Option<f64>,
    /// Users of a closed loop; with --rate, most connections at once
    #[arg(short, long)]
    connections: Option<usize>,
    /// Length of the measurement
    #[arg(short, long, default_value = "10s", value_parser = parse_duration_ns, short_alias = 'z')]
    duration: u64,
    /// Load before the measurement
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    warmup: u64,
    /// Load after the measurement, not measured
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    cooldown: u64,
    /// Mean think time of a closed loop's users
    #[arg(long, default_value = "0s", value_parser = parse_duration_ns)]
    think_time: u64,
    /// Header field 'Name: value'; may be repeated
    #[arg(short = 'H', long = "header", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Request method
    #[arg(short = 'X', long, default_value = "GET")]
    method: String,
    /// Request body
    #[arg(short, long, conflicts_with = "body_file")]
    body: Option<String>,
    /// File that holds the request body
    #[arg(long)]
    body_file: Option<std::path::PathBuf>,
    /// File of weighted requests, instead of the URL's path: vegeta's format with options, see docs/requests.md
    #[arg(long, value_name = "FILE", visible_alias = "urls-from-file", conflicts_with_all = ["body", "body_file", "method"])]
    targets: Option<std::path::PathBuf>,
    /// File of sessions: requests with think times, cookies kept; --rate is then that of sessions
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "body", "body_file", "method"])]
    sessions: Option<std::path::PathBuf>,
    /// Longest time on the wire, connecting included
    #[arg(long, default_value = "10s", value_parser = parse_duration_ns)]
    timeout: u64,
    /// Longest time from the intended send; later work is dropped before it is sent
    #[arg(long, value_parser = parse_duration_ns)]
    deadline: Option<u64>,
    /// Law of the gaps between arrivals
    #[arg(long, value_enum, default_value_t = ArrivalsFlag::Poisson)]
    arrivals: ArrivalsFlag,
    /// on, off, or the number of requests per connection
    #[arg(long, default_value = "on", value_parser = keepalive)]
    keepalive: Keepalive,
    /// What an arrival does when every connection is busy
    #[arg(long, value_enum, default_value_t = OnBusyFlag::Grow)]
    on_busy: OnBusyFlag,
    /// Most connections at once of an open loop
    #[arg(long)]
    max_connections: Option<usize>,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Reproduces every random choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Length of a recording interval; by default 1s, longer for a long load
    #[arg(long, value_parser = parse_duration_ns)]
    interval: Option<u64>,
    /// How long before a send the pacer spins; by default it depends on the rate
    #[arg(long, value_parser = parse_duration_ns)]
    spin: Option<u64>,
    /// Accepted status codes
    #[arg(long, value_delimiter = ',', default_value = "200")]
    expect_status: Vec<u16>,
    /// File that holds the exact body of a right answer
    #[arg(long)]
    expect_body_file: Option<std::path::PathBuf>,
    /// Length of the body of a right answer, in bytes
    #[arg(long, value_name = "BYTES")]
    expect_length: Option<u64>,
    /// SHA-256 hash of the body of a right answer
    #[arg(long, value_name = "HEX")]
    expect_sha256: Option<String>,
    /// Regular expression that a right answer has in the first MiB of its body
    #[arg(long, value_name = "PATTERN")]
    expect_regex: Option<String>,
    /// Who frames the messages: our own code, or hyper as a second opinion
    #[arg(long, value_enum, default_value_t = WireFlag::Native)]
    wire: WireFlag,
    /// Where the report goes; - is standard output
    #[arg(long, num_args = 0..=1, default_missing_value = "-", value_name = "FILE")]
    pub json: Option<String>,
    /// No remarks on standard error
    #[arg(long)]
    pub quiet: bool,
    /// Prints the resolved plan and sends nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Refused: -t means threads in wrk, timeout in oha and duration in locust
    #[arg(short = 't', hide = true, num_args = 0..=1, value_parser = refuse_t)]
    ambiguous: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ArrivalsFlag {
    Poisson,
    Constant,
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
    /// The plan that these flags describe, not yet validated.
    pub fn plan(&self) -> Result<LoadPlan, String> {
        Ok(LoadPlan {
            url: self.url.clone(),
            unix_socket: self.unix_socket.clone(),
            method: self.method.clone(),
            headers: self.headers.clone(),
            body_base64: self.body()?.map(|bytes| STANDARD.encode(bytes)),
            targets: from_file(self.targets.as_deref(), read_targets)?,
            sessions: from_file(self.sessions.as_deref(), read_sessions)?,
            load: self.load(),
            phases: Phases {
                warmup_ns: self.warmup,
                measure_ns: self.duration,
                cooldown_ns: self.cooldown,
                drain_ns: None,
            },
            interval_ns: self.interval,
            keepalive: self.keepalive,
            timeout_ns: self.timeout,
            deadline_ns: self.deadline,
            threads: self.threads,
            seed: self.seed,
            spin_window_ns: self.spin,
            check: ResponseCheck {
                statuses: self.expect_status.clone(),
                body_base64: read(self.expect_body_file.as_deref())?.map(|bytes| STANDARD.encode(bytes)),
                length: self.expect_length,
                sha256: self.expect_sha256.clone(),
                regex: self.expect_regex.clone(),
            },
            wire: match self.wire {
                WireFlag::Native => Wire::Native,
                WireFlag::Hyper => Wire::Hyper,
            },
        })
    }

    fn body(&self) -> Result<Option<Vec<u8>>, String> {
        match &self.body {
            Some(text) => Ok(Some(text.clone().into_bytes())),
            None => read(self.body_file.as_deref()),
        }
    }

    fn load(&self) -> LoadModel {
        let Some(rate_per_s) = self.rate else {
            let connections = self.connections.unwrap_or(1);
            return LoadModel::Closed(ClosedLoop { connections, think_time_ns: self.think_time });
        };
        LoadModel::Open(OpenLoop {
            rate_per_s,
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
            max_pending: None,
        })
    }
}

type Parsed<T> = Result<Vec<T>, LoadError>;

fn from_file<T>(path: Option<&Path>, parse: impl Fn(&Path) -> Parsed<T>) -> Result<Vec<T>, String> {
    path.map_or_else(|| Ok(Vec::new()), |path| parse(path).map_err(|error| error.to_string()))
}

fn read(path: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    path.map(|path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display())))
        .transpose()
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| format!("{text:?} is not 'Name: value'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn keepalive(text: &str) -> Result<Keepalive, String> {
    match text {
        "on" => Ok(Keepalive::On),
        "off" => Ok(Keepalive::Off),
        number => number
            .parse()
            .map(Keepalive::Requests)
            .map_err(|_| format!("{text:?} is not on, off or a number of requests")),
    }
}

fn refuse_t(_: &str) -> Result<String, String> {
    Err("-t means threads in wrk, timeout in oha and hey, duration in locust; use --threads, --timeout or \
         --duration"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> Result<LoadPlan, String> {
        let arguments =
            Arguments::try_parse_from(words.split_ascii_whitespace()).map_err(|error| error.to_string())?;
        arguments.plan()
    }

    #[test]
    fn a_rate_makes_an_open_loop_and_its_absence_a_closed_one() {
        let open = plan("loadgen http://h/ -R 1000 -d 3s --seed 7").expect("open");
        assert_eq!((open.rate_per_s(), open.phases.measure_ns, open.seed), (Some(1_000.0), 3_000_000_000, 7));
        let closed = plan("loadgen http://h/ -c 8").expect("closed");
        assert_eq!(closed.load, LoadModel::Closed(ClosedLoop { connections: 8, think_time_ns: 0 }));
    }

    #[test]
    fn the_ambiguous_flag_is_refused_with_a_hint() {
        let message = plan("loadgen http://h/ -t 5").expect_err("refused");
        assert!(message.contains("--threads, --timeout or --duration"), "{message}");
    }

    #[test]
    fn a_file_of_requests_and_one_request_exclude_each_other() {
        for words in ["--targets t -b x", "--sessions s -X POST", "--sessions s --targets t"] {
            let message = plan(&format!("loadgen http://h/ -R 1 {words}")).expect_err(words);
            assert!(message.contains("cannot be used with"), "{message}");
        }
        let message = plan("loadgen http://h/ --targets /nowhere/targets").expect_err("missing");
        assert!(message.contains("/nowhere/targets"), "{message}");
    }

    #[test]
    fn keepalive_takes_three_forms() {
        assert_eq!(keepalive("on"), Ok(Keepalive::On));
        assert_eq!(keepalive("off"), Ok(Keepalive::Off));
        assert_eq!(keepalive("10"), Ok(Keepalive::Requests(10)));
        assert!(keepalive("maybe").is_err());
    }
}
