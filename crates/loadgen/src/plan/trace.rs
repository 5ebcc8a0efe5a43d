//! Traces: recorded arrival times. Reads text, not files.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::clock::NS_PER_S;
use crate::base::duration::parse_duration_ns;
use crate::base::thousands::thousands;

/// A plan contains its trace, and a report its plan: about 11 bytes of JSON per arrival.
const MAX_ARRIVALS: usize = 10_000_000;

/// The longest quote of a line.
const MAX_SHOWN_CHARS: usize = 100;

/// A larger number is a timestamp, not an offset.
const MAX_OFFSET_NS: u64 = 366 * 24 * 3600 * NS_PER_S;

/// Arrival times in ascending order, as offsets from the start of the load in nanoseconds. Cheap to
/// clone.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Trace(Arc<[u64]>);

impl Trace {
    /// Creates a trace with these offsets.
    ///
    /// # Errors
    /// Names the first offset that is smaller than the previous one, or says that there are no or
    /// too many offsets.
    pub fn new(offsets_ns: Vec<u64>) -> Result<Self, String> {
        if let Some(place) = offsets_ns.windows(2).position(|pair| pair[1] < pair[0]) {
            let (before, after) = (offsets_ns[place], offsets_ns[place + 1]);
            return Err(format!(
                "the trace is not sorted: {after} ns follows {before} ns"
            ));
        }
        if offsets_ns
            .last()
            .is_some_and(|last_ns| *last_ns > MAX_OFFSET_NS)
        {
            return Err(
                "the trace lasts longer than a year; offsets count from the start of the load, \
                so subtract the first timestamp from every timestamp"
                    .to_owned(),
            );
        }
        let Some(others) = offsets_ns.len().checked_sub(1) else {
            return Err("the trace is empty".to_owned());
        };
        require_room(others)?;
        Ok(Self(offsets_ns.into()))
    }

    /// Reads one offset per line: seconds as a decimal number, or a number with a unit (`250ms`).
    /// `#` begins a comment; empty lines are skipped.
    ///
    /// # Errors
    /// A sentence with the line number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut offsets = Offsets::default();
        for (number, line) in (1..).zip(text.lines()) {
            offsets.take(line, number)?;
        }
        offsets.into_trace()
    }

    /// The offsets, ascending.
    #[must_use]
    pub fn offsets_ns(&self) -> &[u64] {
        &self.0
    }

    /// Time from the start to one mean inter-arrival time after the last arrival, so that the
    /// number of arrivals divided by it is the trace's rate; `None` if all arrivals are at the same
    /// time.
    pub(crate) fn length_ns(&self) -> Option<u64> {
        let (first_ns, last_ns) = (self.0.first()?, self.0.last()?);
        (last_ns > first_ns).then(|| last_ns + (last_ns - first_ns) / (self.0.len() as u64 - 1))
    }

    /// The maximum number of arrivals within any interval of this length.
    pub(crate) fn max_within(&self, span_ns: u64) -> usize {
        let mut first = 0;
        let mut max = 0;
        for (place, &offset_ns) in self.0.iter().enumerate() {
            while self.0[first] + span_ns <= offset_ns {
                first += 1;
            }
            max = max.max(place - first + 1);
        }
        max
    }
}

/// The lines of a trace read so far.
#[derive(Default)]
pub(crate) struct Offsets(Vec<u64>);

impl Offsets {
    /// Takes the next line.
    pub fn take(&mut self, line: &str, number: u64) -> Result<(), String> {
        let offset = line.split('#').next().unwrap_or("").trim();
        if offset.is_empty() {
            return Ok(());
        }
        let offset_ns = parse_duration_ns(offset).map_err(|_| {
            let shown: String = offset.chars().take(MAX_SHOWN_CHARS).collect();
            format!(
                "line {number}: {shown:?} is not an offset; write seconds like 0.25, or a unit like \
                250ms"
            )
        })?;
        if self.0.last().is_some_and(|last_ns| offset_ns < *last_ns) {
            return Err(format!(
                "line {number}: {offset:?} is earlier than the offset above it; sort the lines by \
                time"
            ));
        }
        require_room(self.0.len())?;
        self.0.push(offset_ns);
        Ok(())
    }

    /// The whole trace.
    pub fn into_trace(self) -> Result<Trace, String> {
        Trace::new(self.0)
    }
}

/// Whether a trace of `count` arrivals can have another one.
pub(crate) fn require_room(count: usize) -> Result<(), String> {
    if count < MAX_ARRIVALS {
        return Ok(());
    }
    Err(format!(
        "the trace has more than {} arrivals",
        thousands(MAX_ARRIVALS as u64)
    ))
}

impl TryFrom<Vec<u64>> for Trace {
    type Error = String;

    fn try_from(offsets_ns: Vec<u64>) -> Result<Self, String> {
        Self::new(offsets_ns)
    }
}

impl From<Trace> for Vec<u64> {
    fn from(trace: Trace) -> Self {
        trace.0.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_offsets_is_parsed() {
        let text = "# recorded in May\n0\n0.25\r\n\n250ms  # the same again\n1e-0\n1.5s\n";
        let trace = Trace::parse(text).expect("a good trace");
        assert_eq!(
            trace.offsets_ns(),
            [0, 250_000_000, 250_000_000, 1_000_000_000, 1_500_000_000]
        );
    }

    #[test]
    fn an_error_names_its_line() {
        let cases = [
            (
                "0\n# x\n0,5\n",
                "line 3: \"0,5\" is not an offset; write seconds like 0.25, or a unit like 250ms",
            ),
            ("0\n-1\n", "line 2: \"-1\" is not an offset"),
            (
                "0\n2\n\n1s\n",
                "line 4: \"1s\" is earlier than the offset above it; sort the lines by time",
            ),
            ("# nothing\n", "the trace is empty"),
            (
                "1732221936.1\n",
                "the trace lasts longer than a year; offsets count from the start",
            ),
        ];
        for (text, expected) in cases {
            let message = Trace::parse(text).expect_err(text);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn offsets_in_a_plan_are_checked_too() {
        assert_eq!(
            serde_json::from_str::<Trace>("[1,2,2]")
                .expect("sorted")
                .offsets_ns(),
            [1, 2, 2]
        );
        let error = serde_json::from_str::<Trace>("[5,2]").expect_err("not sorted");
        assert!(
            error
                .to_string()
                .contains("the trace is not sorted: 2 ns follows 5 ns"),
            "{error}"
        );
        assert!(serde_json::from_str::<Trace>("[]").is_err());
    }

    #[test]
    fn the_length_of_an_evenly_spaced_trace_includes_a_gap_after_the_last_arrival() {
        let even = Trace::new((0..10).map(|k| k * 100).collect()).expect("sorted");
        assert_eq!(even.length_ns(), Some(1_000));
        assert_eq!(Trace::new(vec![7, 7]).expect("sorted").length_ns(), None);
        assert_eq!(Trace::new(vec![7]).expect("sorted").length_ns(), None);
    }

    #[test]
    fn the_busiest_span_is_found_wherever_it_lies() {
        let trace = Trace::new(vec![0, 50, 120, 130, 140, 199, 400]).expect("sorted");
        assert_eq!(
            [1, 21, 80, 100, 1_000].map(|span_ns| trace.max_within(span_ns)),
            [1, 3, 4, 4, 7]
        );
    }
}
