//! wrk: a closed loop over reused connections, limited by time.

use clap::{ArgMatches, Parser};
use loadgen::parse_duration_ns;

use super::Dialect;
use super::command::{LoadgenCommand, duration_text};
use super::options::LoadgenOptions;
use super::refusal::Refused;

/// Translate a command line of wrk 4 into a loadgen command, print it and run it.
#[derive(Debug, Parser)]
#[command(
    name = "loadgen --as wrk",
    no_binary_name = true,
    infer_long_args = true
)]
pub struct Wrk {
    /// URL to request: http://host[:port]/path, or https://
    url: String,
    /// Number of connections, rounded down to a multiple of --threads
    #[arg(short, long, default_value = "10", value_parser = metric)]
    connections: u64,
    /// Duration of the load, such as 30s, 2m or 1h
    #[arg(short, long, default_value = "10s", value_parser = parse_duration_ns)]
    duration: u64,
    /// Number of threads
    #[arg(short, long, default_value = "2", value_parser = metric)]
    threads: u64,
    /// Header field 'Name: value' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    headers: Vec<String>,
    /// Ignored: the report always contains the quantiles
    #[arg(short = 'L', long)]
    latency: bool,
    /// Request timeout
    #[arg(short = 'T', long, default_value = "2s", value_parser = parse_duration_ns)]
    timeout: u64,
    #[command(flatten)]
    options: LoadgenOptions,
}

impl Dialect for Wrk {
    const NAME: &'static str = "wrk";
    const REFUSED: &'static [Refused] = &[
        ("-s", SCRIPT),
        ("--script", SCRIPT),
        ("-v", "use loadgen --version"),
    ];

    fn translate(&self, _: &ArgMatches) -> Result<Vec<LoadgenCommand>, String> {
        // wrk omits the connections that do not divide evenly among its threads.
        let connections = self.connections / self.threads.max(1) * self.threads;
        if connections == 0 {
            return Err("-c must be at least -t: each thread needs a connection".to_owned());
        }
        let command = LoadgenCommand::load(&self.url)
            .option("--threads", self.threads)
            .option("-c", connections)
            .option("-d", duration_text(self.duration))
            .option("--timeout", duration_text(self.timeout))
            .header_lines(self.headers.iter().map(String::as_str))
            .flag_if(self.url.starts_with("https:"), "--insecure");
        Ok(vec![self.options.add_to(command)])
    }
}

const SCRIPT: &str = "Lua scripts cannot run; write the requests to a file and use \
    loadgen URL --targets FILE, or --sessions FILE with a rate";

/// A whole number, optionally with a suffix: `1k`, `2M`.
fn metric(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale))
        .ok_or_else(|| format!("{text:?} is not a number; write it like 100 or 1k"))
}
