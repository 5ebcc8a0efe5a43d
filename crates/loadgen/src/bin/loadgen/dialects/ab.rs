//! ab (ApacheBench): a closed loop of HTTP/1.0 requests, each over a new connection unless `-k` is
//! given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{ArgMatches, Parser};

use super::Dialect;
use super::command::LoadgenCommand;
use super::options::LoadgenOptions;
use super::refusal::Refused;

const AGENT: &str = "ApacheBench/2.3";
/// The value that `-t` gives to `-n`.
const MAX_TIMED_REQUESTS: u64 = 50_000;
/// ab has no maximum duration, but loadgen needs one.
const MAX_DURATION: &str = "1h";
/// Why files that ab writes are refused.
const FILES: &str = "the report is JSON: --json FILE";

/// Translate a command line of ab 2.3 into a loadgen command, print it and run it.
#[derive(Debug, Parser)]
#[command(name = "loadgen --as ab", no_binary_name = true)]
pub struct Ab {
    /// URL to request: http://host[:port]/path, or https://
    url: String,
    /// Number of requests [default: 1]
    #[arg(short = 'n', value_name = "REQUESTS")]
    requests: Option<u64>,
    /// Number of concurrent requests
    #[arg(short = 'c', value_name = "CONCURRENCY", default_value_t = 1)]
    concurrency: u64,
    /// Maximum duration, in seconds; also sets -n 50000 unless -n follows
    #[arg(short = 't', value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Request timeout, in seconds
    #[arg(short = 's', value_name = "SECONDS", default_value_t = 30)]
    timeout_s: u64,
    /// Reuse connections
    #[arg(short = 'k')]
    keepalive: bool,
    /// File to send with POST
    #[arg(short = 'p', value_name = "FILE", conflicts_with_all = ["put_file", "head"])]
    post_file: Option<String>,
    /// File to send with PUT
    #[arg(short = 'u', value_name = "FILE", conflicts_with = "head")]
    put_file: Option<String>,
    /// Content type of the file
    #[arg(short = 'T', value_name = "TYPE", default_value = "text/plain")]
    content_type: String,
    /// Send HEAD requests
    #[arg(short = 'i')]
    head: bool,
    /// Request method
    #[arg(short = 'm', value_name = "METHOD")]
    method: Option<String>,
    /// Header field 'Name: value' (repeatable)
    #[arg(short = 'H', value_name = "FIELD")]
    headers: Vec<String>,
    /// Cookie name=value (repeatable)
    #[arg(short = 'C', value_name = "COOKIE")]
    cookies: Vec<String>,
    /// Credentials for Basic authentication
    #[arg(short = 'A', value_name = "USER:PASSWORD")]
    authentication: Option<String>,
    /// Source address of the connections
    #[arg(short = 'B', value_name = "ADDRESS")]
    source_address: Option<String>,
    /// PEM file that contains the client certificate and its key
    #[arg(short = 'E', value_name = "FILE")]
    client_certificate: Option<String>,
    /// Ignored: affects only the output of ab
    #[arg(short = 'q')]
    is_silent: bool,
    /// Ignored: affects only the output of ab
    #[arg(short = 'd')]
    is_without_table: bool,
    /// Ignored: affects only the output of ab
    #[arg(short = 'S')]
    is_without_median: bool,
    /// Ignored: affects only the output of ab
    #[arg(short = 'v', value_name = "LEVEL")]
    verbosity: Option<u8>,
    /// Ignored: response lengths are checked only with --expect-length
    #[arg(short = 'l')]
    accepts_any_length: bool,
    /// Ignored: errors never stop a load
    #[arg(short = 'r')]
    continues_on_errors: bool,
    #[command(flatten)]
    options: LoadgenOptions,
}

impl Dialect for Ab {
    const NAME: &'static str = "ab";
    const REFUSED: &'static [Refused] = &[
        ("-g", FILES),
        ("-e", FILES),
        ("-w", FILES),
        ("-x", FILES),
        ("-y", FILES),
        ("-z", FILES),
        ("-X", "proxies are not supported"),
        ("-P", "proxies are not supported"),
        ("-b", "the kernel chooses the size of socket buffers"),
        (
            "-f",
            "the TLS version (1.2 or 1.3) is negotiated with the server",
        ),
        ("-Z", "the cipher is negotiated with the server"),
        ("-I", "the server name (SNI) is always sent"),
        ("-V", "use loadgen --version"),
    ];

    fn translate(&self, matches: &ArgMatches) -> Result<Vec<LoadgenCommand>, String> {
        let requests = self.request_count(matches);
        if self.concurrency > requests {
            return Err(format!(
                "-c {} exceeds -n {requests}; use a smaller -c",
                self.concurrency
            ));
        }
        let max_duration = self.seconds.map(|seconds| format!("{seconds}s"));
        let command = LoadgenCommand::load(&self.url)
            .flag("--http1.0")
            .option("--keepalive", if self.keepalive { "on" } else { "off" })
            .option("-c", self.concurrency)
            .option("-n", requests)
            .option("-d", max_duration.as_deref().unwrap_or(MAX_DURATION))
            .option("--timeout", format!("{}s", self.timeout_s))
            .option_if("-X", self.method_name())
            .option_if("--body-file", self.body_file())
            .option_if("--source-addresses", self.source_address.as_ref())
            .option_if("--client-cert", self.client_certificate.as_ref())
            .flag_if(self.url.starts_with("https:"), "--insecure");
        let command = self.options.add_to(self.with_headers(command));
        Ok(vec![command])
    }
}

impl Ab {
    /// If both `-n` and `-t` are given, the last one applies.
    fn request_count(&self, matches: &ArgMatches) -> u64 {
        let is_timed_last = matches.index_of("seconds") > matches.index_of("requests");
        match self.requests {
            Some(requests) if !is_timed_last => requests,
            None if self.seconds.is_none() => 1,
            _ => MAX_TIMED_REQUESTS,
        }
    }

    fn body_file(&self) -> Option<&String> {
        self.post_file.as_ref().or(self.put_file.as_ref())
    }

    fn method_name(&self) -> Option<&str> {
        let of_flags = [
            (self.head, "HEAD"),
            (self.post_file.is_some(), "POST"),
            (self.put_file.is_some(), "PUT"),
        ];
        let by_flag = of_flags.into_iter().find(|(applies, _)| *applies);
        self.method.as_deref().or(by_flag.map(|(_, method)| method))
    }

    fn with_headers(&self, command: LoadgenCommand) -> LoadgenCommand {
        let defaults = [("User-Agent", AGENT), ("Accept", "*/*")];
        let body_type = self.body_file().map(|_| self.content_type.clone());
        let cookies = self.cookies.iter().map(|cookie| ("Cookie", cookie.clone()));
        let authentication = self.authentication.as_ref();
        let basic = authentication.map(|pair| format!("Basic {}", STANDARD.encode(pair)));

        let fields = body_type
            .map(|value| ("Content-Type", value))
            .into_iter()
            .chain(cookies)
            .chain(basic.map(|value| ("Authorization", value)));
        let command = command
            .default_headers(&defaults, &self.headers)
            .header_lines(self.headers.iter().map(String::as_str));
        fields.fold(command, |command, (name, value)| {
            command.header(name, &value)
        })
    }
}
