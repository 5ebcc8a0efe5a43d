//! Why a run cannot start or continue. A failed request is an outcome, not a `LoadError`.

use thiserror::Error;

/// A run that failed.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A field of the plan is out of range or contradicts another; the text names the field and the
    /// allowed values.
    #[error("plan: {0}")]
    Plan(String),
    /// A file of targets or sessions cannot be read; the text names the file, the line and the
    /// problem.
    #[error("{0}")]
    RequestsFile(String),
    /// The host name of the target has no address. Check the spelling, or give an address.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The host as given in the URL.
        host: String,
        /// The resolver's error.
        source: std::io::Error,
    },
    /// The operating system refused something the generator itself needs (a timer, a thread).
    #[error("the generator cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The numbers of scheduled requests and recorded outcomes differ: a defect, so there is no
    /// report.
    #[error(
        "accounting error in the {phase} phase: {scheduled} requests were scheduled, but {accounted} \
        have an outcome; please report this"
    )]
    Conservation {
        /// The phase in which the counts differ.
        phase: &'static str,
        /// Arrivals that were scheduled.
        scheduled: u64,
        /// Outcomes that were recorded.
        accounted: u64,
    },
    /// A generator process failed, or differs from the process that runs the load; the text names
    /// it.
    #[error("{0}")]
    Generator(String),
    /// A generator thread panicked: a defect.
    #[error("a generator thread panicked; please report this")]
    ThreadPanicked,
    /// Bytes that are not a V2 HDR histogram.
    #[error("not a V2 HDR histogram: {0}")]
    Histogram(String),
}
