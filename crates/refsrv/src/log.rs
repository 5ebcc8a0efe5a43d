//! The log: one entry per request, and its CSV form.

use std::fmt;
use std::io::{self, Write};

/// The outcome of a request, as the server saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Normal response: the kernel took all of it.
    Answered,
    /// Response with this status, by plan.
    Status(u16),
    /// Connection aborted before a response byte, by plan.
    Reset,
    /// Connection aborted within the body, by plan.
    ResetMidBody,
    /// Half a response, then an orderly close, by plan.
    Truncated,
    /// No response, by plan.
    NeverAnswered,
    /// Response with a wrong body, by plan.
    WrongBody,
    /// Normal response; the next request on its connection will find it closed, by plan.
    StaleClose,
    /// The client was gone before the response could be written; not planned.
    ClientGone,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Answered => "answered",
            Self::Status(code) => return write!(formatter, "status-{code}"),
            Self::Reset => "reset",
            Self::ResetMidBody => "reset-mid-body",
            Self::Truncated => "truncated",
            Self::NeverAnswered => "never-answered",
            Self::WrongBody => "wrong-body",
            Self::StaleClose => "stale-close",
            Self::ClientGone => "client-gone",
        };
        formatter.write_str(name)
    }
}

/// What happened to one request. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// Arrival number, from 0; also X-Id.
    pub id: u64,
    /// Right after the recv that completed the request head; also X-Arrive.
    pub arrive_ns: u64,
    /// When the kernel had queued the last bytes of the read that completed the head, however late
    /// that read was; `None` if not requested ([`crate::Config::log_queued`]), for a pipelined
    /// request, or if the timestamp was rejected.
    pub queued_ns: Option<u64>,
    /// How long it occupied a server; also X-Hold.
    pub hold_ns: u64,
    /// When the response was due.
    pub finish_ns: u64,
    /// Immediately before the response was written, never before `finish_ns`; also X-Write. `None`
    /// if nothing was attempted. A reset counts: it is the time of the abort.
    pub write_ns: Option<u64>,
    /// Its outcome.
    pub outcome: Outcome,
}

impl LogEntry {
    /// How much later than planned the write began: the server's own error.
    #[must_use]
    pub fn late_ns(&self) -> Option<u64> {
        self.write_ns
            .map(|write_ns| write_ns.saturating_sub(self.finish_ns))
    }
}

/// How late a server wrote its responses, over a whole log: whether it is accurate enough as a
/// reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// Responses counted: those with a write time.
    pub count: usize,
    /// Quantile 0.5, nearest rank.
    pub median_ns: u64,
    /// Quantile 0.99, nearest rank.
    pub p99_ns: u64,
    /// The largest delay.
    pub max_ns: u64,
}

impl Lateness {
    /// For the entries that were written; `None` if there are none.
    #[must_use]
    pub fn of(entries: &[LogEntry]) -> Option<Self> {
        let mut late_ns: Vec<u64> = entries.iter().filter_map(LogEntry::late_ns).collect();
        late_ns.sort_unstable();
        let count = late_ns.len();
        let at_rank = |rank: usize| late_ns.get(rank.saturating_sub(1)).copied();

        Some(Self {
            count,
            median_ns: at_rank(count.div_ceil(2))?,
            p99_ns: at_rank((count * 99).div_ceil(100))?,
            max_ns: *late_ns.last()?,
        })
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            median_ns,
            p99_ns,
            max_ns,
        } = self;
        write!(
            formatter,
            "{count} written, late by {median_ns} ns (median), {p99_ns} ns (p99), {max_ns} ns (max)"
        )
    }
}

/// Writes a log as CSV with a header line; an absent time is an empty cell.
///
/// # Errors
/// Any error of the target.
pub fn write_csv(mut target: impl Write, entries: &[LogEntry]) -> io::Result<()> {
    writeln!(
        target,
        "id,arrive_ns,hold_ns,finish_ns,write_ns,outcome,queued_ns"
    )?;
    for entry in entries {
        let LogEntry {
            id,
            arrive_ns,
            queued_ns,
            hold_ns,
            finish_ns,
            write_ns,
            outcome,
        } = entry;
        let (write_ns, queued_ns) = (cell(*write_ns), cell(*queued_ns));
        writeln!(
            target,
            "{id},{arrive_ns},{hold_ns},{finish_ns},{write_ns},{outcome},{queued_ns}"
        )?;
    }

    target.flush()
}

fn cell(time_ns: Option<u64>) -> String {
    time_ns.map_or_else(String::new, |time_ns| time_ns.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_time_is_an_empty_cell() {
        let entry = LogEntry {
            id: 0,
            arrive_ns: 5,
            queued_ns: None,
            hold_ns: 2,
            finish_ns: 7,
            write_ns: None,
            outcome: Outcome::NeverAnswered,
        };
        let late = LogEntry {
            write_ns: Some(9),
            queued_ns: Some(4),
            outcome: Outcome::Status(503),
            ..entry
        };
        let mut csv = Vec::new();
        write_csv(&mut csv, &[entry, late]).expect("a Vec takes everything");
        let expected = "id,arrive_ns,hold_ns,finish_ns,write_ns,outcome,queued_ns\n\
                        0,5,2,7,,never-answered,\n0,5,2,7,9,status-503,4\n";

        assert_eq!(String::from_utf8(csv).expect("ASCII"), expected);
        assert_eq!((entry.late_ns(), late.late_ns()), (None, Some(2)));
    }

    #[test]
    fn lateness_covers_only_written_responses() {
        let entry = |id: u64| LogEntry {
            id,
            arrive_ns: 0,
            queued_ns: None,
            hold_ns: 1_000,
            finish_ns: 1_000,
            write_ns: (id > 0).then_some(1_000 + id),
            outcome: Outcome::Answered,
        };
        let log: Vec<LogEntry> = (0..=200).map(entry).collect();
        let expected = Lateness {
            count: 200,
            median_ns: 100,
            p99_ns: 198,
            max_ns: 200,
        };

        assert_eq!(Lateness::of(&log), Some(expected));
        assert_eq!(Lateness::of(&log[..1]), None);
    }
}
