//! Input of `--replay`: a trace with arrival times, or an access log with arrival times and
//! requests.
//!
//! For command lines; a load itself does not read files. `docs/schedules.md` describes both
//! formats.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::path::Path;

use serde::Serialize;

use crate::base::clock::NS_PER_S;
use crate::base::error::LoadError;
use crate::base::files::{MAX_BYTES, read_line};
use crate::base::thousands::thousands;
use crate::plan::access_line::{self, LogEntry, LoggedRequest};
use crate::plan::mix::{MAX_RECORDED_REQUESTS, default_weight};
use crate::plan::order::Order;
use crate::plan::placeholders;
use crate::plan::requests_text::{open, shown, without_mark};
use crate::plan::trace::{Offsets, require_room};
use crate::plan::{RequestPlan, ResponseCheck, Trace, WeightedRequest};

/// Methods that usually have a body; logs do not contain bodies.
const WITH_BODY: [&str; 3] = ["POST", "PUT", "PATCH"];

/// Recorded arrivals and, if known, their requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// Arrival times since the first arrival.
    pub offsets_ns: Trace,
    /// The distinct requests; empty for a trace.
    pub targets: Vec<WeightedRequest>,
    /// For each arrival, the index of its request; `None` for a trace.
    pub requests: Option<Order>,
    /// Notes for the user about the replay of this log.
    pub notes: Vec<String>,
}

/// Reads a trace or an access log, depending on the first line; `-` is standard input.
///
/// # Errors
/// [`LoadError::RequestsFile`] with the file, the line and the error.
pub fn read_recording(path: &Path) -> Result<Recording, LoadError> {
    let mut input = open(path).map_err(LoadError::RequestsFile)?;
    let name = shown(path);
    let refused = |message: String| LoadError::RequestsFile(format!("{name}: {message}"));

    let (head, is_log) = head(&mut input).map_err(|error| refused(error.to_string()))?;
    let whole = head.as_slice().chain(input);
    let recording = if is_log {
        recording_of_log(whole)
    } else {
        recording_of_trace(whole)
    };
    recording.map_err(refused)
}

/// The text up to the first line that is not a comment, and whether this line is from an access
/// log.
fn head(input: &mut dyn BufRead) -> io::Result<(Vec<u8>, bool)> {
    let (mut head, mut bytes) = (Vec::new(), Vec::new());
    loop {
        if !read_line(input, &mut bytes)? {
            return Ok((head, false));
        }
        if head.len() > MAX_BYTES {
            return Err(io::Error::other("more than 64 MiB of comments"));
        }

        head.extend_from_slice(&bytes);
        let line = String::from_utf8_lossy(&bytes);
        let line = without_mark(&line).trim();
        if !line.is_empty() && !line.starts_with('#') {
            let is_log = access_line::is_access_log(line);
            return Ok((head, is_log));
        }
    }
}

fn recording_of_trace(mut input: impl BufRead) -> Result<Recording, String> {
    let mut offsets = Offsets::default();
    let mut bytes = Vec::new();
    for number in 1.. {
        if !read_line(&mut input, &mut bytes).map_err(|error| error.to_string())? {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        offsets.take(without_mark(&line), number)?;
    }

    Ok(Recording {
        offsets_ns: offsets.into_trace()?,
        targets: Vec::new(),
        requests: None,
        notes: Vec::new(),
    })
}

fn recording_of_log(mut input: impl BufRead) -> Result<Recording, String> {
    let mut log = Log::default();
    let mut bytes = Vec::new();
    for number in 1.. {
        if !read_line(&mut input, &mut bytes).map_err(|error| error.to_string())? {
            break;
        }

        let text = String::from_utf8_lossy(&bytes);
        let line = without_mark(&text).trim();
        if !line.is_empty() && !line.starts_with('#') {
            let taken = access_line::parse(line).and_then(|entry| log.take(entry));
            taken.map_err(|message| format!("line {number}: {message}"))?;
        }
    }
    log.into_recording()
}

/// The lines read so far. Each distinct request is stored once.
#[derive(Default)]
struct Log {
    indices: HashMap<LoggedRequest, u32>,
    /// By index of the request: the recorded statuses that a replay can get again.
    statuses: Vec<Vec<u16>>,
    /// Timestamp and request of each line.
    arrivals: Vec<(u64, u32)>,
    lines: usize,
    has_fractions: bool,
    without_body: usize,
}

impl Log {
    fn take(&mut self, entry: LogEntry) -> Result<(), String> {
        self.lines += 1;
        let Some(request) = entry.request else {
            return Ok(());
        };

        self.has_fractions |= entry.time.has_fraction;
        self.without_body += usize::from(WITH_BODY.contains(&request.method.as_str()));
        let index = self.index_of(request)?;
        require_room(self.arrivals.len())?;
        self.arrivals.push((entry.time.unix_ns, index));
        let statuses = &mut self.statuses[index as usize];
        if let Some(status) = entry.status.and_then(repeatable)
            && !statuses.contains(&status)
        {
            statuses.push(status);
        }
        Ok(())
    }

    fn index_of(&mut self, request: LoggedRequest) -> Result<u32, String> {
        let next = self.indices.len();
        if next == MAX_RECORDED_REQUESTS && !self.indices.contains_key(&request) {
            return Err(format!(
                "more than {} different requests; replay only part of the log",
                thousands(MAX_RECORDED_REQUESTS as u64)
            ));
        }

        let index = *self.indices.entry(request).or_insert(next as u32);
        if index as usize == next {
            self.statuses.push(Vec::new());
        }
        Ok(index)
    }

    fn into_recording(mut self) -> Result<Recording, String> {
        // Servers log a request at its end, so neighboring lines may be out of order.
        self.arrivals.sort_by_key(|(time_ns, _)| *time_ns);
        let notes = self.notes();
        let Some(&(first_ns, _)) = self.arrivals.first() else {
            return Err("no line contains a request that can be sent".to_owned());
        };
        if !self.has_fractions {
            spread_seconds(&mut self.arrivals);
        }

        let offsets_ns = self.arrivals.iter().map(|(time_ns, _)| time_ns - first_ns);
        Ok(Recording {
            offsets_ns: Trace::new(offsets_ns.collect())?,
            requests: Some(Order::new(
                self.arrivals.iter().map(|(_, index)| *index).collect(),
            )),
            targets: targets(self.indices, self.statuses),
            notes,
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let skipped = self.lines - self.arrivals.len();
        if skipped > 0 {
            let lines = self.lines;
            notes.push(format!(
                "skipped {} of {} lines: no request that can be sent",
                thousands(skipped as u64),
                thousands(lines as u64)
            ));
        }
        if !self.has_fractions {
            notes.push(
                "the log has a resolution of 1 s; requests within the same second are spread evenly"
                    .to_owned(),
            );
        }
        if self.without_body > 0 {
            notes.push(format!(
                "{} of {} requests (POST, PUT or PATCH) are sent without a body, because logs do not \
                contain bodies",
                thousands(self.without_body as u64),
                thousands(self.arrivals.len() as u64)
            ));
        }
        notes
    }
}

/// The expected status of a request with this status in the log. A replay has no conditional and
/// range requests, and a server error is never correct.
fn repeatable(status: u16) -> Option<u16> {
    match status {
        206 | 304 => Some(200),
        // Timeouts, rate limits and removed resources depend on the time of the request.
        408 | 429 | 499 => None,
        200..=498 => Some(status),
        _ => None,
    }
}

/// Spreads the arrivals of each second evenly over it. Sent at once, they would form bursts that
/// did not occur.
fn spread_seconds(arrivals: &mut [(u64, u32)]) {
    for second in arrivals.chunk_by_mut(|one, next| one.0 == next.0) {
        let count = second.len() as u64;
        for (arrival, place) in second.iter_mut().zip(0..) {
            arrival.0 += place * NS_PER_S / count;
        }
    }
}

fn targets(indices: HashMap<LoggedRequest, u32>, statuses: Vec<Vec<u16>>) -> Vec<WeightedRequest> {
    let mut requests: Vec<(LoggedRequest, u32)> = indices.into_iter().collect();
    requests.sort_unstable_by_key(|(_, index)| *index);
    requests
        .into_iter()
        .zip(statuses)
        .map(|((requested, _), statuses)| target(requested, statuses))
        .collect()
}

fn target(requested: LoggedRequest, mut statuses: Vec<u16>) -> WeightedRequest {
    statuses.sort_unstable();
    let is_usual = statuses.is_empty() || statuses == [200];
    let check = (!is_usual).then(|| ResponseCheck {
        statuses,
        ..ResponseCheck::default()
    });

    WeightedRequest {
        request: RequestPlan {
            name: None,
            method: requested.method,
            // Attempts at template injection leave such braces in logs.
            url: placeholders::escaped(&requested.path),
            headers: Vec::new(),
            body_base64: None,
            check,
        },
        weight: default_weight(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[(&str, &str, u16)]) -> String {
        let line = |(time, request, status): &(&str, &str, u16)| {
            format!("h - - [25/Nov/2026:{time} +0000] \"{request} HTTP/1.1\" {status} 5\n")
        };
        lines.iter().map(line).collect()
    }

    fn read(text: &str) -> Result<Recording, String> {
        let mut input = text.as_bytes();
        let (head, is_log) = head(&mut input).expect("text in memory");
        let whole = head.as_slice().chain(input);
        if is_log {
            recording_of_log(whole)
        } else {
            recording_of_trace(whole)
        }
    }

    fn order(recording: &Recording) -> Vec<u32> {
        recording.requests.clone().expect("a log").into()
    }

    #[test]
    fn a_log_keeps_arrivals_and_order_and_each_request_once() {
        let text = log(&[
            ("10:00:00.5", "GET /a", 200),
            ("10:00:00.7", "GET /b", 404),
            ("10:00:00.7", "GET /a", 304),
            ("10:00:02.0", "POST /a", 303),
            ("10:00:01.0", "GET /b", 200),
        ]);
        let recording = read(&text).expect("a log");

        let tenths = |recording: &Recording| -> Vec<u64> {
            let offsets_ns = recording.offsets_ns.offsets_ns().iter();
            offsets_ns.map(|ns| ns / (NS_PER_S / 10)).collect()
        };
        assert_eq!(tenths(&recording), [0, 2, 2, 5, 15]);
        assert_eq!(order(&recording), [0, 1, 0, 1, 2]);

        let request = |target: &WeightedRequest| {
            let statuses = target.request.check.as_ref().map(|c| c.statuses.clone());
            let method = target.request.method.clone();
            (method, target.request.url.clone(), statuses)
        };
        let requests: Vec<_> = recording.targets.iter().map(request).collect();
        let of = |method: &str, path: &str, statuses: Option<Vec<u16>>| {
            (method.to_owned(), path.to_owned(), statuses)
        };
        assert_eq!(
            requests,
            [
                of("GET", "/a", None),
                of("GET", "/b", Some(vec![200, 404])),
                of("POST", "/a", Some(vec![303])),
            ]
        );
        assert_eq!(recording.notes.len(), 1, "{:?}", recording.notes);
        assert!(recording.notes[0].contains("without a body"));
    }

    #[test]
    fn whole_seconds_are_spread_evenly() {
        let text = log(&[
            ("10:00:00", "GET /a", 200),
            ("10:00:00", "GET /b", 200),
            ("10:00:01", "GET /c", 200),
            ("10:00:03", "GET /a", 200),
            ("10:00:03", "GET /a", 200),
            ("10:00:03", "GET /b", 200),
            ("10:00:03", "GET /c", 200),
        ]);
        let recording = read(&text).expect("a log");

        let quarters: Vec<u64> = recording
            .offsets_ns
            .offsets_ns()
            .iter()
            .map(|ns| ns / (NS_PER_S / 4))
            .collect();
        assert_eq!(quarters, [0, 2, 4, 12, 13, 14, 15]);
        assert_eq!(order(&recording), [0, 1, 2, 0, 0, 1, 2]);
        assert!(recording.notes[0].contains("resolution of 1 s"));
    }

    #[test]
    fn lines_without_a_request_are_skipped_and_counted() {
        let text = log(&[
            ("10:00:00.1", "GET /a", 200),
            ("10:00:00.2", "OPTIONS *", 400),
            ("10:00:00.3", "GET /a", 500),
        ]);
        let recording = read(&text).expect("a log");
        assert_eq!(order(&recording), [0, 0]);
        assert_eq!(
            recording.notes,
            ["skipped 1 of 3 lines: no request that can be sent"]
        );
    }

    #[test]
    fn a_trace_has_arrivals_but_no_requests() {
        let recording = read("\u{feff}# seconds\n0\n0.5\n").expect("a trace");
        assert_eq!(recording.offsets_ns.offsets_ns(), [0, NS_PER_S / 2]);
        assert!(recording.targets.is_empty() && recording.requests.is_none());
    }

    #[test]
    fn errors_give_the_line() {
        let good = log(&[("10:00:00", "GET /a", 200)]);
        for (text, expected) in [
            (format!("# x\n{good}\nnonsense\n"), "line 4: not a line of"),
            ("0\nnonsense\n".to_owned(), "line 2: \"nonsense\" is not an"),
            (
                log(&[("10:00:00", "OPTIONS *", 200)]),
                "no line contains a request that can be sent",
            ),
        ] {
            let message = read(&text).expect_err(&text);
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
