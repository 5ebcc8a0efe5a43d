//! FunkLoad's `fl-run-bench`: cycles with increasing numbers of users, each a separate closed loop.

use std::num::NonZeroU64;
use std::path::Path;

use clap::{ArgMatches, Parser};
use loadgen::parse_duration_ns;

use super::Dialect;
use super::command::{LoadgenCommand, duration_text};
use super::options::LoadgenOptions;
use super::refusal::Refused;

const AGENT: &str = "FunkLoad/1.17.1";

/// Run the cycles of a FunkLoad command line against one URL, and print the equivalent loadgen
/// commands.
#[derive(Debug, Parser)]
#[command(name = "loadgen --as funkload", no_binary_name = true)]
pub struct FunkLoad {
    /// URL to request: http://host[:port]/path, or https://
    #[arg(
        value_name = "URL",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    target: Option<String>,
    /// URL to request, instead of the argument
    #[arg(short, long)]
    url: Option<String>,
    /// Number of users in each cycle, such as 50,100,150 or 50:100:150
    #[arg(
        short = 'c',
        long = "users",
        visible_alias = "cycles",
        required = true,
        value_delimiter = ','
    )]
    users: Vec<String>,
    /// Duration of each cycle, in seconds or with a unit
    #[arg(short = 'D', long, default_value = "10", value_parser = parse_duration_ns)]
    duration: u64,
    /// Minimum think time of a user, in seconds
    #[arg(short = 'm', long, default_value_t = 0.0)]
    sleep_time_min: f64,
    /// Maximum think time of a user, in seconds
    #[arg(short = 'M', long, default_value_t = 0.0)]
    sleep_time_max: f64,
    /// Pause between tests, in seconds
    #[arg(short = 't', long, default_value_t = 0.0)]
    test_sleep_time: f64,
    /// Omit all pauses
    #[arg(short = 'f', long)]
    as_fast_as_possible: bool,
    /// Ignored: linked resources are never fetched
    #[arg(long)]
    simple_fetch: bool,
    /// Ignored: the output has no colors
    #[arg(long)]
    no_color: bool,
    #[command(flatten)]
    options: LoadgenOptions,
}

impl Dialect for FunkLoad {
    const NAME: &'static str = "funkload";
    const REFUSED: &'static [Refused] = &[
        ("-s", DELAY),
        ("--startup-delay", DELAY),
        ("-l", "use --json FILE to name the report"),
        ("--label", "use --json FILE to name the report"),
        ("--config", "use options on the command line instead"),
        ("--distribute", "only one machine generates the load"),
        ("-r", "only one machine generates the load"),
        ("--runner-class", "only one machine generates the load"),
    ];

    fn translate(&self, _: &ArgMatches) -> Result<Vec<LoadgenCommand>, String> {
        let url = self.url.as_ref().or(self.target.as_ref());
        let url = url.map_or("", String::as_str);
        if !url.contains("://") {
            return Err(format!(
                "{url:?} is not a URL, and Python test cases cannot run; use the URL that the test \
                case requests, or a file of its requests (loadgen URL -R RATE --sessions FILE)"
            ));
        }
        let cycles = self.cycles()?;
        let is_single = cycles.len() == 1;
        let command = |users: &NonZeroU64| self.cycle(url, *users, is_single);
        Ok(cycles.iter().map(command).collect())
    }
}

const DELAY: &str = "users start immediately, or within one think time (-m, -M)";

impl FunkLoad {
    fn cycles(&self) -> Result<Vec<NonZeroU64>, String> {
        let words = self.users.iter().flat_map(|part| part.split(':'));
        words
            .map(|word| {
                word.trim().parse().map_err(|_| {
                    format!("{word:?} is not a number of users; write --users 50,100,150")
                })
            })
            .collect()
    }

    fn cycle(&self, url: &str, users: NonZeroU64, is_single: bool) -> LoadgenCommand {
        let mut options = self.options.clone();
        if !is_single {
            options.json = options.json.map(|path| with_users(&path, users));
        }
        let think_s = (self.sleep_time_min + self.sleep_time_max.max(self.sleep_time_min)) / 2.0
            + self.test_sleep_time;
        let think_s = Some(think_s).filter(|think_s| *think_s > 0.0 && !self.as_fast_as_possible);
        let command = LoadgenCommand::load(url)
            .flag("--http1.0")
            .option("--keepalive", "off")
            .option("-c", users)
            .option("-d", duration_text(self.duration))
            .option_if("--think-time", think_s.map(|think_s| format!("{think_s}s")))
            .header("User-Agent", AGENT);
        options.add_to(command)
    }
}

/// `report.json` of 50 users is `report-50.json`; standard output gets one report after the other.
fn with_users(path: &str, users: NonZeroU64) -> String {
    if path == "-" {
        return path.to_owned();
    }
    let stem = Path::new(path)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let extension = Path::new(path).extension();
    let extension = extension.map_or(String::new(), |text| format!(".{}", text.to_string_lossy()));
    let name = format!("{stem}-{users}{extension}");
    Path::new(path)
        .with_file_name(name)
        .to_string_lossy()
        .into_owned()
}
