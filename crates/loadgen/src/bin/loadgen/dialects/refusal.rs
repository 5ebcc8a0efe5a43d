//! Why a command line of another tool cannot be translated.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory as _};

use crate::arguments::Arguments;

/// A flag of another tool and why it is refused, or what to use instead.
pub type Refused = (&'static str, &'static str);

/// A command line that cannot be translated, or a request for help.
#[derive(Debug)]
pub enum Refusal {
    /// A sentence for the user.
    Message(String),
    /// What clap prints, with its own exit code.
    Printed(clap::Error),
}

impl Refusal {
    pub fn because(message: String) -> Self {
        Self::Message(message)
    }

    /// The refusal of a flag that the dialect does not know or support.
    pub fn of(dialect: &str, refused: &[Refused], error: clap::Error) -> Self {
        match unknown_flag(&error) {
            Some(flag) => Self::Message(explained(dialect, refused, flag)),
            None => Self::Printed(error),
        }
    }
}

fn unknown_flag(error: &clap::Error) -> Option<&str> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => Some(flag),
        _ => None,
    }
}

fn explained(dialect: &str, refused: &[Refused], flag: &str) -> String {
    // The other tools accept abbreviated long flags.
    let is_match = |name: &str| name == flag || (flag.len() > 3 && name.starts_with(flag));
    if let Some((name, reason)) = refused.iter().find(|(name, _)| is_match(name)) {
        return format!("--as {dialect}: {name} is not supported: {reason}");
    }

    let closest = match closest_option(flag) {
        Some(option) => format!(" (closest loadgen option: {option})"),
        None => String::new(),
    };
    format!(
        "--as {dialect}: unknown option {flag}{closest}; omit it, and add loadgen options to the \
        printed command"
    )
}

/// The loadgen option with this name, or a similar one.
fn closest_option(flag: &str) -> Option<String> {
    let command = Arguments::command();
    let is_visible = |argument: &&Arg| !argument.is_hide_set();
    let same = command
        .get_arguments()
        .filter(is_visible)
        .find(|argument| names(argument).any(|name| name == flag));
    if let Some(long) = same.and_then(Arg::get_long) {
        return Some(format!("--{long}"));
    }

    let error = command.try_get_matches_from(["loadgen", flag]).err()?;
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(suggested)) => Some(suggested.clone()),
        _ => None,
    }
}

fn names(argument: &Arg) -> impl Iterator<Item = String> {
    let long = argument.get_long_and_visible_aliases().unwrap_or_default();
    let short = argument.get_short_and_visible_aliases().unwrap_or_default();
    let long = long.into_iter().map(|name| format!("--{name}"));
    long.chain(short.into_iter().map(|name| format!("-{name}")))
}
