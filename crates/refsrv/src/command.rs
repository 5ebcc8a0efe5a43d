//! Commands from the owner of a running server.

use std::sync::mpsc as reply;

use crate::shared::{Report, Stats};

/// A command to the server's thread.
#[derive(Debug)]
pub(crate) enum Command {
    Report(reply::Sender<Report>),
    Stats(reply::Sender<Stats>),
    Stop,
}

/// Whether a loop continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Continue,
    Stop,
}

/// Executes a command.
pub(crate) fn execute(command: Command, stats: Stats, report: impl FnOnce() -> Report) -> Ending {
    // This fails only if the sender no longer waits for the reply.
    match command {
        Command::Report(sender) => drop(sender.send(report())),
        Command::Stats(sender) => drop(sender.send(stats)),
        Command::Stop => return Ending::Stop,
    }
    Ending::Continue
}
