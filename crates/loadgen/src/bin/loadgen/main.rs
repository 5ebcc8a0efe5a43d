//! `loadgen`: the load generator alone, for people without Python. Prints the report's JSON.

mod arguments;
mod explain;

use std::io::Write as _;
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
    let given = Arguments::command().get_matches();
    if let Some(answered) = reference(&given) {
        return answered;
    }
    let arguments = Arguments::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    let stop = StopToken::new();
    match carry_out(&arguments, &given, &stop) {
        Ok(report) => ExitCode::from(exit_code(&report, &stop)),
        Err(failure) => {
            complain(&failure.message);
            ExitCode::from(failure.exit_code)
        }
    }
}

/// `--schema` and `--explain`, which need no load; `None` where neither was given.
fn reference(given: &ArgMatches) -> Option<ExitCode> {
    let text = if given.get_flag("schema") {
        Ok(loadgen::report_schema_json())
    } else {
        explain::explanation(given.get_one::<String>("explain")?)
    };
    Some(match text {
        Ok(text) => {
            // Whoever read our output may have seen enough.
            let _ = writeln!(std::io::stdout().lock(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            complain(&message);
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

fn carry_out(
    arguments: &Arguments,
    given: &ArgMatches,
    stop: &StopToken,
) -> Result<LoadReport, Failure> {
    let (plan, notes) = arguments.plan()?;
    loadgen::check(&plan)?;
    if !arguments.quiet {
        let warnings = Arguments::warnings(given, &plan);
        let said = notes.iter().chain(&warnings);
        said.for_each(|line| complain(line));
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
    let load = loadgen::prepare(&plan)?;
    stop_on_signals(stop.clone())?;
    let foreseen = load.warning().filter(|_| !arguments.quiet);
    foreseen.into_iter().for_each(complain);
    let report = load.run(stop)?;
    write_result(arguments, &report.to_json())?;
    if !arguments.quiet {
        report
            .verdict
            .reasons
            .iter()
            .for_each(|reason| complain(&reason.sentence()));
        for wrong in &report.wrong_responses {
            complain(&wrong.sentence());
        }
        if let Some(limit) = report.connections.streams_sentence(plan.streams) {
            complain(&limit);
        }
        for (cause, count) in &report.connections.failures {
            complain(&format!("failed connections: {count} ({cause})"));
        }
        if let Some((came, asked)) = report.precision.as_ref().zip(plan.precision.as_ref()) {
            complain(&came.sentence(asked));
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

/// Refuses, before anything is sent, a place where the report could not be written.
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
    match arguments.json.as_deref() {
        None | Some("-") => {
            let mut output = std::io::stdout().lock();
            match writeln!(output, "{text}").and_then(|()| output.flush()) {
                // Whoever read our output has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                result => result.map_err(|error| format!("cannot write the result: {error}")),
            }
        }
        Some(path) => {
            std::fs::write(path, text).map_err(|error| format!("cannot write {path}: {error}"))
        }
    }
}

/// A warning for whoever reads standard error; it is no reason to end where nobody does.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "loadgen: {message}");
}

/// The first Ctrl-C or `SIGTERM` ends the load, with its partial report; their default action is
/// gone, so the load must end soon.
fn stop_on_signals(stop: StopToken) -> Result<(), String> {
    let unwatched = |error: std::io::Error| format!("cannot watch for signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(unwatched)?;
    let inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unwatched)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(unwatched)?;
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
