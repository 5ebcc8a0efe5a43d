//! httperf: connections at a constant rate, whatever the server does, each with some calls.

use clap::{ArgMatches, Parser};
use loadgen::clock::NS_PER_S;

use super::Dialect;
use super::command::{Calls, OwnCommand, duration_text};
use super::options::OwnOptions;
use super::refusal::Refused;

const AGENT: &str = "httperf/0.9.0";

/// A load as httperf 0.9 describes it. Prints the equivalent command of loadgen and runs it.
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
    /// New connections per second
    #[arg(long, conflicts_with = "period")]
    rate: Option<f64>,
    /// Seconds between new connections: 0.001, or e0.001 for exponentially distributed ones
    #[arg(long)]
    period: Option<String>,
    /// Number of connections
    #[arg(long, default_value_t = 1)]
    num_conns: u64,
    /// Requests on each connection, one after the other
    #[arg(long, default_value_t = 1)]
    num_calls: usize,
    /// Seconds to wait for each response [default: 10; httperf waits for ever]
    #[arg(long)]
    timeout: Option<f64>,
    /// Request method
    #[arg(long, default_value = "GET")]
    method: String,
    /// Header fields 'Name: value\n', where \n ends each
    #[arg(long)]
    add_header: Option<String>,
    /// 1.1 or 1.0
    #[arg(long, default_value = "1.1", value_parser = ["1.1", "1.0"])]
    http_version: String,
    /// Host to name in the requests
    #[arg(long)]
    server_name: Option<String>,
    /// Source address of the connections
    #[arg(long)]
    myaddr: Option<String>,
    /// Use TLS
    #[arg(long)]
    ssl: bool,
    /// Ignored: all local ports are always used
    #[arg(long)]
    hog: bool,
    /// Ignored: the size of socket buffers is the kernel's choice
    #[arg(long)]
    send_buffer: Option<u64>,
    /// Ignored: the size of socket buffers is the kernel's choice
    #[arg(long)]
    recv_buffer: Option<u64>,
    /// Ignored, because only one client runs
    #[arg(long, value_parser = ["0/1"])]
    client: Option<String>,
    /// Ignored: only what httperf prints depends on it
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    own: OwnOptions,
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
            "the calls of a connection follow one another",
        ),
        ("--max-piped-calls", "requests are not pipelined"),
        (
            "--max-connections",
            "use loadgen URL -R RATE --max-connections N --on-busy shed",
        ),
        ("--think-timeout", "use --timeout"),
        ("--runtime", "set --num-conns to the rate times the seconds"),
        ("--failure-status", "use --expect-status"),
        (
            "--print-reply",
            "the report quotes the first wrong response of each kind",
        ),
        (
            "--print-request",
            "loadgen URL --dry-run prints what would be sent",
        ),
        ("--no-host-hdr", "every request has a Host"),
        ("--close-with-reset", "connections are closed as usual"),
        (
            "--retry-on-failure",
            "a request that fails is reported, not repeated",
        ),
        ("--ssl-ciphers", "the cipher is agreed with the server"),
        ("--ssl-no-reuse", "TLS sessions are never resumed"),
    ];

    fn translate(&self, _: &ArgMatches) -> Result<Vec<OwnCommand>, String> {
        let (rate, arrivals) = self.rate()?;
        let duration_ns = (self.num_conns as f64 * NS_PER_S as f64 / rate) as u64;
        let timeout_ns = self
            .timeout
            .map(|seconds| (seconds * NS_PER_S as f64) as u64);
        let command = OwnCommand::load(&self.url())
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
        Ok(vec![self.own.onto(command)])
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
            "without a --rate, httperf opens each connection when the one before has ended; give a \
            --rate, or use the closed loop: loadgen URL -n N -c 1 --keepalive off"
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

    fn with_headers(&self, command: OwnCommand) -> OwnCommand {
        let added = self.add_header.as_deref().unwrap_or_default();
        let added = added.replace("\\r", "").replace("\\n", "\n");
        let lines = added.lines().filter(|line| !line.trim().is_empty());
        // It names the host without its port.
        let host = self.server_name.as_ref().unwrap_or(&self.server);
        let kept = (self.http_version == "1.0").then_some("Connection: keep-alive");
        command
            .header("User-Agent", AGENT)
            .header("Host", host)
            .header_lines(kept)
            .header_lines(lines)
    }

    fn with_notes(&self, command: OwnCommand, arrivals: &str) -> OwnCommand {
        let mut command = command;
        if arrivals == "poisson" {
            command = command.note(format!(
                "the number of connections is random, {} on average",
                self.num_conns
            ));
        }
        if self.num_calls > 1 {
            command = command.note(
                "unlike httperf, a connection makes no more calls after a response that is not \
                200, sends back cookies, and ends with the load",
            );
        }
        command
    }
}
