//! Why a run cannot start or go on. A failed request is an outcome, never one of these.

use thiserror::Error;

/// A run that could not be carried out.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A field of the plan is out of range or contradicts another; the text says which and what is
    /// allowed.
    #[error("plan: {0}")]
    Plan(String),
    /// A file of targets or sessions cannot be read; the text names the file, the line and what is
    /// wrong with it.
    #[error("{0}")]
    RequestsFile(String),
    /// The host name of the target has no address. Check the spelling, or give an address.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The host as given in the URL.
        host: String,
        /// What the resolver said.
        source: std::io::Error,
    },
    /// The operating system refused something the generator itself needs (a timer, a thread).
    #[error("the generator cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// More requests were scheduled than outcomes were recorded, or the reverse: a defect, so no
    /// report is made.
    #[error(
        "bookkeeping defect in the {phase} phase: {scheduled} requests scheduled, {accounted} \
        accounted for; please report this"
    )]
    Conservation {
        /// The phase in which the counts differ.
        phase: &'static str,
        /// Arrivals that were scheduled.
        scheduled: u64,
        /// Outcomes that were recorded.
        accounted: u64,
    },
    /// A generator thread panicked: a defect.
    #[error("a generator thread panicked; please report this")]
    ThreadPanicked,
    /// Bytes that are not a V2 HDR histogram.
    #[error("not a V2 HDR histogram: {0}")]
    Histogram(String),
}
