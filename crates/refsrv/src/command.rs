//! What the owner of a running server may ask of it.

use std::sync::mpsc as reply;

use crate::shared::{Report, Stats};

/// What the server's thread is asked.
#[derive(Debug)]
pub(crate) enum Command {
    Report(reply::Sender<Report>),
    Stats(reply::Sender<Stats>),
    Stop,
}

/// Whether a loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Continue,
    Stop,
}

/// Carries out a command.
pub(crate) fn answer_command(
    command: Command,
    stats: Stats,
    report: impl FnOnce() -> Report,
) -> Ending {
    // Who does not wait for the reply needs none.
    match command {
        Command::Report(sender) => drop(sender.send(report())),
        Command::Stats(sender) => drop(sender.send(stats)),
        Command::Stop => return Ending::Stop,
    }
    Ending::Continue
}
