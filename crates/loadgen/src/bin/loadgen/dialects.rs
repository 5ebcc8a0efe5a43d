//! Translates command lines of other load generators, such as `loadgen --as wrk …`.
//!
//! A translation is a command line of loadgen. It is printed, so that users learn it, and then
//! parsed like any other, so the printed command is the one that runs.

mod ab;
mod command;
mod funkload;
mod httperf;
mod options;
mod refusal;
mod wrk;

use std::ffi::OsString;

use clap::{ArgMatches, Parser};

pub use command::LoadgenCommand;
pub use refusal::Refusal;
use refusal::Refused;

/// The flag that chooses a dialect.
const FLAG: &str = "--as";

type Translated = Result<Vec<LoadgenCommand>, Refusal>;

/// The command line of another load generator.
trait Dialect: Parser {
    /// Its name for `--as`.
    const NAME: &'static str;
    /// Flags of the tool that have no counterpart here, with the reason or an alternative.
    const REFUSED: &'static [Refused];

    /// The loadgen commands for the same load: one, or several that run one after the other.
    /// `matches` contains the order of the flags.
    fn translate(&self, matches: &ArgMatches) -> Result<Vec<LoadgenCommand>, String>;
}

/// The name and the words of the other tool, if the command line (with the program in front)
/// selects one.
pub fn requested(words: &[OsString]) -> Option<(String, &[OsString])> {
    let first = words.get(1)?.to_str()?;
    if first == FLAG {
        let name = words.get(2).and_then(|name| name.to_str()).unwrap_or("");
        return Some((name.to_owned(), words.get(3..).unwrap_or(&[])));
    }
    let name = first.strip_prefix(FLAG)?.strip_prefix('=')?;
    Some((name.to_owned(), &words[2..]))
}

/// The loadgen commands for the load that the other tool would generate with these words.
pub fn translate(name: &str, words: &[OsString]) -> Translated {
    match name {
        wrk::Wrk::NAME => translate_as::<wrk::Wrk>(words),
        ab::Ab::NAME => translate_as::<ab::Ab>(words),
        httperf::Httperf::NAME => translate_as::<httperf::Httperf>(words),
        funkload::FunkLoad::NAME => translate_as::<funkload::FunkLoad>(words),
        _ => Err(Refusal::because(format!(
            "unknown tool {name:?}; use --as wrk, --as ab, --as httperf or --as funkload"
        ))),
    }
}

fn translate_as<D: Dialect>(words: &[OsString]) -> Translated {
    let refused = |error| Refusal::of(D::NAME, D::REFUSED, error);
    let matches = D::command().try_get_matches_from(words).map_err(refused)?;
    let options = D::from_arg_matches(&matches).map_err(refused)?;
    let commands = options.translate(&matches);
    commands.map_err(|message| Refusal::because(format!("--as {}: {message}", D::NAME)))
}

#[cfg(test)]
mod tests;
