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

    /// The refusal of a flag that the dialect does not know or cannot carry out.
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
    // The other tools take the beginnings of their long flags.
    let is_it = |name: &str| name == flag || (flag.len() > 3 && name.starts_with(flag));
    if let Some((name, reason)) = refused.iter().find(|(name, _)| is_it(name)) {
        return format!("--as {dialect}: {name} is not supported: {reason}");
    }

    let nearest = match nearest_of_ours(flag) {
        Some(ours) => format!(" (closest loadgen option: {ours})"),
        None => String::new(),
    };
    format!(
        "--as {dialect}: unknown option {flag}{nearest}; omit it, and add loadgen options to the \
        printed command"
    )
}

/// An option of ours with this name, or one that looks like it.
fn nearest_of_ours(flag: &str) -> Option<String> {
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
