//! Options of loadgen that every dialect accepts, because the other tools have none like them:
//! where the report goes, and what a correct response is.

use clap::Args;

use super::command::LoadgenCommand;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of loadgen")]
pub struct LoadgenOptions {
    /// Write the report to FILE (default: standard output)
    #[arg(long, num_args = 0..=1, default_missing_value = "-", value_name = "FILE")]
    pub json: Option<String>,
    /// Suppress the equivalent command and warnings
    #[arg(long)]
    pub quiet: bool,
    /// Print the complete plan without sending a request
    #[arg(long)]
    dry_run: bool,
    /// Accepted status codes [default: 200]
    #[arg(long, value_name = "LIST")]
    expect_status: Option<String>,
    /// File that contains the expected body
    #[arg(long, value_name = "FILE")]
    expect_body_file: Option<String>,
    /// Expected length of the body, in bytes
    #[arg(long, value_name = "BYTES")]
    expect_length: Option<String>,
    /// Expected SHA-256 hash of the body
    #[arg(long, value_name = "HEX")]
    expect_sha256: Option<String>,
    /// Regular expression that must match within the first 1 MiB of the body
    #[arg(long, value_name = "PATTERN")]
    expect_regex: Option<String>,
}

impl LoadgenOptions {
    /// The command with these options.
    pub fn add_to(&self, command: LoadgenCommand) -> LoadgenCommand {
        command
            .option_if("--expect-status", self.expect_status.as_ref())
            .option_if("--expect-body-file", self.expect_body_file.as_ref())
            .option_if("--expect-length", self.expect_length.as_ref())
            .option_if("--expect-sha256", self.expect_sha256.as_ref())
            .option_if("--expect-regex", self.expect_regex.as_ref())
            .option_if("--json", self.json.as_ref())
            .flag_if(self.quiet, "--quiet")
            .flag_if(self.dry_run, "--dry-run")
    }
}
