//! httperf: connections at a constant rate, regardless of the server, each with one or more calls.

use clap::{ArgMatches, Parser};
use loadgen::clock::NS_PER_S;

use super::Dialect;
use super::command::{Calls, LoadgenCommand, duration_text};
use super::options::LoadgenOptions;
use super::refusal::Refused;

const AGENT: &str = "httperf/0.9.0";

/// Translate a command line of httperf 0.9 into a loadgen command, print it and run it.
#[derive(Debug, Parser)]
#[command(
    name = "loadgen --as httperf",
    no_binary_name = true,
    infer_long_args = true
)]
pub struct Httperf {
    /// Host of the server
    #[arg(long, default_value = "localhost")]
    server: String,
    /// Port of the server [default: 80, or 443 with --ssl]
    #[arg(long)]
    port: Option<u16>,
    /// Path and query
    #[arg(long, default_value = "/")]
    uri: String,
    /// Rate of new connections, per second
    #[arg(long, conflicts_with = "period")]
    rate: Option<f64>,
    /// Time between new connections, in seconds: 0.001, or e0.001 for an exponential distribution
    #[arg(long)]
    period: Option<String>,
    /// Number of connections
    #[arg(long, default_value_t = 1)]
    num_conns: u64,
    /// Number of consecutive requests on each connection
    #[arg(long, default_value_t = 1)]
    num_calls: usize,
    /// Request timeout, in seconds [default: 10; httperf has no timeout by default]
    #[arg(long)]
    timeout: Option<f64>,
    /// Request method
    #[arg(long, default_value = "GET")]
    method: String,
    /// Header fields, each in the form 'Name: value\n'
    #[arg(long)]
    add_header: Option<String>,
    /// HTTP version
    #[arg(long, default_value = "1.1", value_parser = ["1.1", "1.0"])]
    http_version: String,
    /// Value of the Host header
    #[arg(long)]
    server_name: Option<String>,
    /// Source address of the connections
    #[arg(long)]
    myaddr: Option<String>,
    /// Use TLS
    #[arg(long)]
    ssl: bool,
    /// Ignored: all local ports are always available
    #[arg(long)]
    hog: bool,
    /// Ignored: the kernel chooses the size of socket buffers
    #[arg(long)]
    send_buffer: Option<u64>,
    /// Ignored: the kernel chooses the size of socket buffers
    #[arg(long)]
    recv_buffer: Option<u64>,
    /// Ignored: only one client runs
    #[arg(long, value_parser = ["0/1"])]
    client: Option<String>,
    /// Ignored: affects only the output of httperf
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    options: LoadgenOptions,
}

impl Dialect for Httperf {
    const NAME: &'static str = "httperf";
    const REFUSED: &'static [Refused] = &[
        ("--wsess", "use loadgen URL -R RATE --sessions FILE"),
        ("--wsesslog", "use loadgen URL -R RATE --sessions FILE"),
        ("--wsesspage", "use loadgen URL -R RATE --sessions FILE"),
        (
            "--session-cookies",
            "use loadgen URL -R RATE --sessions FILE, which keeps cookies",
        ),
        ("--wlog", "use loadgen URL -R RATE --targets FILE"),
        ("--wset", "use loadgen URL -R RATE --targets FILE"),
        (
            "--burst-length",
            "requests of one connection are sent one at a time",
        ),
        ("--max-piped-calls", "requests are not pipelined"),
        (
            "--max-connections",
            "use loadgen URL -R RATE --max-connections N --on-busy shed",
        ),
        ("--think-timeout", "use --timeout"),
        (
            "--runtime",
            "set --num-conns to the rate multiplied by the duration",
        ),
        ("--failure-status", "use --expect-status"),
        (
            "--print-reply",
            "the report contains the first incorrect response of each kind",
        ),
        (
            "--print-request",
            "loadgen URL --dry-run prints the plan with its requests",
        ),
        ("--no-host-hdr", "every request has a Host header"),
        ("--close-with-reset", "connections are closed with FIN"),
        (
            "--retry-on-failure",
            "failed requests are reported, not repeated",
        ),
        ("--ssl-ciphers", "the cipher is negotiated with the server"),
        ("--ssl-no-reuse", "TLS sessions are never resumed"),
    ];

    fn translate(&self, _: &ArgMatches) -> Result<Vec<LoadgenCommand>, String> {
        let (rate, arrivals) = self.rate()?;
        let duration_ns = (self.num_conns as f64 * NS_PER_S as f64 / rate) as u64;
        let timeout_ns = self
            .timeout
            .map(|seconds| (seconds * NS_PER_S as f64) as u64);
        let command = LoadgenCommand::load(&self.url())
            .option("-R", rate)
            .option("-d", duration_text(duration_ns))
            .option("--arrivals", arrivals)
            .flag_if(self.http_version == "1.0", "--http1.0")
            .option_if("--timeout", timeout_ns.map(duration_text))
            .option_if("--source-addresses", self.myaddr.as_ref())
            .flag_if(self.ssl, "--insecure");
        let command = self.with_notes(self.with_headers(command), arrivals);
        let command = command.sessions(Calls {
            method: self.method.clone(),
            path: self.uri.clone(),
            count: self.num_calls.max(1),
        });
        Ok(vec![self.options.add_to(command)])
    }
}

impl Httperf {
    /// Connections per second, and the distribution of the times between them.
    fn rate(&self) -> Result<(f64, &'static str), String> {
        let (rate, arrivals) = match (&self.period, self.rate) {
            (Some(period), _) => {
                let (seconds, arrivals) = match period.strip_prefix('e') {
                    Some(seconds) => (seconds, "poisson"),
                    None => (period.trim_start_matches('d'), "constant"),
                };
                let seconds: f64 = seconds.parse().map_err(|_| {
                    format!("--period {period} is not supported; write it like 0.001 or e0.001")
                })?;
                (1.0 / seconds, arrivals)
            }
            (None, rate) => (rate.unwrap_or(0.0), "constant"),
        };
        if rate.is_finite() && rate > 0.0 {
            return Ok((rate, arrivals));
        }
        Err(
            "without --rate, httperf opens each connection when the previous one has ended; add \
            --rate, or use a closed loop: loadgen URL -n N -c 1 --keepalive off"
                .to_owned(),
        )
    }

    fn url(&self) -> String {
        let (scheme, usual_port) = if self.ssl {
            ("https", 443)
        } else {
            ("http", 80)
        };
        let port = self.port.unwrap_or(usual_port);
        if port == usual_port {
            format!("{scheme}://{}/", self.server)
        } else {
            format!("{scheme}://{}:{port}/", self.server)
        }
    }

    fn with_headers(&self, command: LoadgenCommand) -> LoadgenCommand {
        let added = self.add_header.as_deref().unwrap_or_default();
        let added = added.replace("\\r", "").replace("\\n", "\n");
        let lines = added.lines().filter(|line| !line.trim().is_empty());
        // httperf's Host header omits the port.
        let host = self.server_name.as_ref().unwrap_or(&self.server);
        let kept = (self.http_version == "1.0").then_some("Connection: keep-alive");
        command
            .header("User-Agent", AGENT)
            .header("Host", host)
            .header_lines(kept)
            .header_lines(lines)
    }

    fn with_notes(&self, command: LoadgenCommand, arrivals: &str) -> LoadgenCommand {
        let mut command = command;
        if arrivals == "poisson" {
            command = command.note(format!(
                "the number of connections is random, {} on average",
                self.num_conns
            ));
        }
        if self.num_calls > 1 {
            command = command.note(
                "unlike in httperf, a connection sends no request after a status other than 200, \
                cookies are sent back, and all connections are closed at the end of the load",
            );
        }
        command
    }
}
