//! `loadgen`: the load generator alone, for use without Python. Prints the report's JSON.

mod arguments;
mod explain;
mod foreign_text;

use std::ffi::OsString;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::process::ExitCode;

use arguments::Arguments;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use loadgen::{Level, LoadError, LoadReport, Outcome, StopToken};
use tokio::signal::unix::{SignalKind, signal};

const EXIT_USAGE: u8 = 2;
const EXIT_SERVER: u8 = 97;
const EXIT_INVALID: u8 = 98;
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    if let Some(exit_code) = reference(&matches) {
        return exit_code;
    }
    if matches.get_flag("generator") {
        return run_generator();
    }
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let stop = StopToken::new();
    let ended = run_load(&arguments, &matches, &stop);
    ExitCode::from(code_of(ended, &stop))
}

/// Runs as one of the processes of another `loadgen`, which reports its failures.
fn run_generator() -> ExitCode {
    match loadgen::run_generator(BufReader::new(std::io::stdin()), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(EXIT_INVALID),
    }
}

/// The exit code of a load. Prints why it failed.
fn code_of(ended: Result<LoadReport, Failure>, stop: &StopToken) -> u8 {
    match ended {
        Ok(report) => exit_code(&report, stop),
        Err(failure) => {
            warn(&foreign_text::shortened(&failure.message));
            failure.exit_code
        }
    }
}

/// `--schema` and `--explain`, which need no load; `None` if neither was given.
fn reference(matches: &ArgMatches) -> Option<ExitCode> {
    let text = if matches.get_flag("schema") {
        Ok(loadgen::report_schema_json())
    } else {
        explain::explanation(matches.get_one::<String>("explain")?)
    };
    Some(match text {
        Ok(text) => {
            // The reader may have closed the pipe.
            let _ = writeln!(std::io::stdout().lock(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            warn(&message);
            ExitCode::from(EXIT_USAGE)
        }
    })
}

/// Why nothing was measured.
struct Failure {
    message: String,
    exit_code: u8,
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let exit_code = match error {
            LoadError::Plan(_) | LoadError::Resolve { .. } => EXIT_USAGE,
            _ => EXIT_INVALID,
        };
        Self {
            message: error.to_string(),
            exit_code,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            exit_code: EXIT_USAGE,
        }
    }
}

/// Runs one load.
fn run_load(
    arguments: &Arguments,
    matches: &ArgMatches,
    stop: &StopToken,
) -> Result<LoadReport, Failure> {
    let (plan, notes) = arguments.plan()?;
    loadgen::check(&plan)?;
    if !arguments.quiet {
        let warnings = Arguments::warnings(matches, &plan);
        let messages = notes.iter().chain(&warnings);
        messages.for_each(|line| warn(line));
    }
    if arguments.dry_run {
        let text = serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?;
        write_result(arguments, &text)?;
        return Err(Failure {
            message: "dry run: nothing was sent".to_owned(),
            exit_code: 0,
        });
    }
    check_destination(arguments)?;
    let generator = ["/proc/self/exe", "--generator"].map(OsString::from);
    let load = loadgen::prepare(&plan)?.with_generator(generator.to_vec());
    stop_on_signals(stop.clone())?;
    let foreseen = load.warning().filter(|_| !arguments.quiet);
    foreseen.into_iter().for_each(warn);
    let report = load.run(stop)?;
    write_result(arguments, &report.to_json())?;
    if !arguments.quiet {
        report
            .verdict
            .reasons
            .iter()
            .for_each(|reason| warn(&reason.sentence()));
        for wrong in &report.wrong_responses {
            warn(&wrong.sentence());
        }
        if let Some(limit) = report.connections.streams_sentence(plan.streams) {
            warn(&limit);
        }
        for (cause, count) in &report.connections.failures {
            warn(&format!("failed connections: {count} ({cause})"));
        }
        if let Some((achieved, target)) = report.precision.as_ref().zip(plan.precision.as_ref()) {
            warn(&achieved.sentence(target));
        }
    }
    Ok(report)
}

fn exit_code(report: &LoadReport, stop: &StopToken) -> u8 {
    if stop.is_stopped() {
        EXIT_INTERRUPTED
    } else if report.outcome(Outcome::Ok) == 0 && report.scheduled() > 0 {
        EXIT_SERVER
    } else if report.verdict.status == Level::Invalid {
        EXIT_INVALID
    } else {
        0
    }
}

/// Checks, before anything is sent, that the report can be written.
fn check_destination(arguments: &Arguments) -> Result<(), String> {
    let Some(path) = arguments
        .json
        .as_deref()
        .filter(|path| *path != "-")
        .map(Path::new)
    else {
        return Ok(());
    };
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(format!(
            "cannot write {}: it is a directory; name a file",
            path.display()
        ));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(());
    }
    Err(format!(
        "cannot write {}: directory {} does not exist; create it, or choose another",
        path.display(),
        folder.display()
    ))
}

fn write_result(arguments: &Arguments, text: &str) -> Result<(), String> {
    let text = foreign_text::visible_json(text);
    match arguments.json.as_deref() {
        None | Some("-") => {
            let mut output = std::io::stdout().lock();
            match writeln!(output, "{text}").and_then(|()| output.flush()) {
                // The reader has closed the pipe.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                result => result.map_err(|error| format!("cannot write the result: {error}")),
            }
        }
        Some(path) => std::fs::write(path, text.as_bytes())
            .map_err(|error| format!("cannot write {path}: {error}")),
    }
}

/// Prints a warning to standard error. A closed standard error does not end the load.
fn warn(message: &str) {
    let message = foreign_text::visible(message);
    let _ = writeln!(std::io::stderr().lock(), "loadgen: {message}");
}

/// The first Ctrl-C or `SIGTERM` ends the load, with a partial report. Their default action is
/// replaced, so the load must end soon.
fn stop_on_signals(stop: StopToken) -> Result<(), String> {
    let signal_error = |error: std::io::Error| format!("cannot watch for signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(signal_error)?;
    let inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_error)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(signal_error)?;
    drop(inside);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        stop.stop();
    });
    Ok(())
}
