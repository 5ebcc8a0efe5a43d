//! `loadgen`: the load generator alone, for people without Python. Prints the report's JSON.

mod arguments;
mod dialects;
mod explain;
mod foreign_text;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use arguments::Arguments;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use dialects::{OwnCommand, Refusal};
use loadgen::plan::SessionPlan;
use loadgen::{Level, LoadError, LoadReport, Outcome, StopToken};
use tokio::signal::unix::{SignalKind, signal};

const EXIT_USAGE: u8 = 2;
const EXIT_SERVER: u8 = 97;
const EXIT_INVALID: u8 = 98;
const EXIT_INTERRUPTED: u8 = 130;

/// Of several loads, the first of these that one of them ended with.
const MOST_IMPORTANT_FIRST: [u8; 4] = [EXIT_USAGE, EXIT_INTERRUPTED, EXIT_SERVER, EXIT_INVALID];

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some((tool, its_words)) = dialects::requested(&words) {
        return match dialects::translate(&tool, its_words) {
            Ok(commands) => carry_out_all(&commands),
            Err(Refusal::Printed(error)) => error.exit(),
            Err(Refusal::Message(message)) => {
                complain(&message);
                ExitCode::from(EXIT_USAGE)
            }
        };
    }

    let given = Arguments::command().get_matches();
    if let Some(answered) = reference(&given) {
        return answered;
    }
    let arguments = Arguments::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    let stop = StopToken::new();
    let ended = carry_out(&arguments, &given, Vec::new(), &stop);
    ExitCode::from(code_of(ended, &stop))
}

/// Shows and runs the loads of another tool's command line, one after the other.
fn carry_out_all(commands: &[OwnCommand]) -> ExitCode {
    let stop = StopToken::new();
    let mut codes = Vec::new();
    for command in commands {
        let parsed = Arguments::command().try_get_matches_from(command.words());
        let given = parsed.unwrap_or_else(|error| error.exit());
        let arguments = Arguments::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
        if !arguments.quiet {
            complain(&format!("equivalent: {}", command.line()));
            command.notes.iter().for_each(|note| complain(note));
        }
        let ended = carry_out(&arguments, &given, command.session_plans(), &stop);
        codes.push(code_of(ended, &stop));
        if stop.is_stopped() {
            break;
        }
    }
    let worst = MOST_IMPORTANT_FIRST
        .into_iter()
        .find(|code| codes.contains(code));
    ExitCode::from(worst.unwrap_or(0))
}

/// The exit code of a load; says why it failed.
fn code_of(ended: Result<LoadReport, Failure>, stop: &StopToken) -> u8 {
    match ended {
        Ok(report) => exit_code(&report, stop),
        Err(failure) => {
            complain(&foreign_text::shortened(&failure.message));
            failure.exit_code
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

/// Runs one load, of these sessions if there are any.
fn carry_out(
    arguments: &Arguments,
    given: &ArgMatches,
    sessions: Vec<SessionPlan>,
    stop: &StopToken,
) -> Result<LoadReport, Failure> {
    let (mut plan, notes) = arguments.plan()?;
    if !sessions.is_empty() {
        plan.sessions = sessions;
    }
    loadgen::check(&plan)?;
    if !arguments.quiet {
        let warnings = Arguments::warnings(given, &plan);
        let messages = notes.iter().chain(&warnings);
        messages.for_each(|line| complain(line));
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
        if let Some((achieved, target)) = report.precision.as_ref().zip(plan.precision.as_ref()) {
            complain(&achieved.sentence(target));
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
    let text = foreign_text::visible_json(text);
    match arguments.json.as_deref() {
        None | Some("-") => {
            let mut output = std::io::stdout().lock();
            match writeln!(output, "{text}").and_then(|()| output.flush()) {
                // Whoever read our output has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                result => result.map_err(|error| format!("cannot write the result: {error}")),
            }
        }
        Some(path) => std::fs::write(path, text.as_bytes())
            .map_err(|error| format!("cannot write {path}: {error}")),
    }
}

/// A warning for whoever reads standard error; it is no reason to end where nobody does.
fn complain(message: &str) {
    let message = foreign_text::visible(message);
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
