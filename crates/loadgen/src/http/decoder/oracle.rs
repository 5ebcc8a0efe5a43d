//! Compares the decoder with hyper: generated and damaged streams, split everywhere, on which both
//! must agree.
//!
//! Intentional differences have a name, a reason and an example in [`differences`]; any other is a
//! failure, printed with its seed and the shortest stream that still shows it. By default, the test
//! checks [`QUICK_STREAMS`]. `ORACLE_SECONDS=600` runs for that long, and `ORACLE_SEED=n` starts
//! with that stream.

mod differences;
mod reference;
mod streams;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Decoder, KnownHead, Malformed, Progress};

/// Number of streams checked by default.
const QUICK_STREAMS: u64 = 20_000;
/// One in this many is also split at every byte for hyper, which is a hundred times slower than
/// this decoder.
const EVERY_CUT_FOR_HYPER: u64 = 16;

/// The result of a stream.
#[derive(Clone, PartialEq, Eq)]
struct Verdict {
    end: End,
    status: Option<u16>,
    body: Vec<u8>,
}

impl fmt::Debug for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} with status {:?} and body \"{}\"",
            self.end,
            self.status,
            self.body.escape_ascii()
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The response is complete; `is_reusable` if another request may follow on the connection.
    Complete {
        is_reusable: bool,
    },
    /// The response is incomplete, and more may arrive.
    Waiting,
    /// The response is incomplete, and the stream has ended.
    CutShort,
    Malformed,
}

/// The input of both decoders.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    stream: Vec<u8>,
    request_is_head: bool,
    /// The server closes the connection after the stream.
    ends: bool,
}

impl Case {
    fn of(stream: &[u8]) -> Self {
        Self {
            stream: stream.to_vec(),
            request_is_head: false,
            ends: false,
        }
    }

    fn with(&self, stream: Vec<u8>) -> Self {
        Self { stream, ..*self }
    }

    fn pieces(&self, cuts: &[usize]) -> Vec<&[u8]> {
        let ends = cuts.iter().copied().chain([self.stream.len()]);
        let mut from = 0;
        ends.map(|to| &self.stream[std::mem::replace(&mut from, to)..to])
            .collect()
    }

    fn ours(&self, cuts: &[usize]) -> Verdict {
        // The next head may be cached from any earlier stream.
        thread_local!(static KNOWN: RefCell<KnownHead> = RefCell::default());
        KNOWN.with_borrow_mut(|known| self.ours_knowing(known, cuts))
    }

    fn ours_knowing(&self, known: &mut KnownHead, cuts: &[usize]) -> Verdict {
        let mut decoder = Decoder::new(self.request_is_head);
        let mut body = Vec::new();
        let mut end = None;
        let mut beyond = 0;

        for piece in self.pieces(cuts) {
            match end {
                None => {
                    match decoder.feed(piece, known, &mut |part| body.extend_from_slice(part)) {
                        Ok(Progress::NeedMore) => {}
                        Ok(Progress::Complete { surplus }) => {
                            (end, beyond) = (Some(Ok(())), surplus)
                        }
                        Err(Malformed) => end = Some(Err(Malformed)),
                    }
                }
                Some(_) => beyond += piece.len(),
            }
        }

        let keeps_alive = decoder.head().is_some_and(|head| head.keeps_alive);
        let end = match end {
            Some(Ok(())) => End::Complete {
                is_reusable: keeps_alive && beyond == 0 && !self.ends,
            },
            Some(Err(Malformed)) => End::Malformed,
            None if !self.ends => End::Waiting,
            None if decoder.is_complete_at_end() => End::Complete { is_reusable: false },
            None => End::CutShort,
        };

        Verdict {
            end,
            status: decoder.head().map(|head| head.status),
            body,
        }
    }

    fn hypers(&self, cuts: &[usize]) -> Verdict {
        reference::verdict(&self.pieces(cuts), self.request_is_head, self.ends)
    }

    /// The named difference that this split of the stream shows, if any; an error if it is a
    /// failure.
    fn judge(&self, cuts: &[usize], compares_hyper: bool) -> Result<Option<&'static str>, String> {
        let whole = self.ours(&[]);
        let ours = self.ours(cuts);
        if ours != whole {
            return Err(format!("whole {whole:?}, cut at {cuts:?} {ours:?}"));
        }
        if !compares_hyper {
            return Ok(None);
        }

        let hypers = self.hypers(cuts);
        if ours == hypers {
            return Ok(None);
        }

        match differences::name(self, &ours, &hypers) {
            Some(name) => Ok(Some(name)),
            None => Err(format!("cut at {cuts:?}: ours {ours:?}, hyper {hypers:?}")),
        }
    }

    /// Like [`Self::judge`], for the splits that a seed generates.
    fn judge_all(&self, seed: u64) -> Result<Vec<&'static str>, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let length = self.stream.len();
        let mut seen: Vec<&'static str> = Vec::new();
        let mut random: Vec<usize> = (0..rng.random_range(0..8))
            .map(|_| rng.random_range(0..=length))
            .collect();
        random.sort_unstable();

        for cuts in [vec![], (0..length).collect(), random] {
            seen.extend(self.judge(&cuts, true)?);
        }
        for cut in 0..length {
            seen.extend(self.judge(&[cut], seed.is_multiple_of(EVERY_CUT_FOR_HYPER))?);
        }

        Ok(seen)
    }

    /// The shortest stream found that is still a failure, and its reason.
    fn shrunk(mut self, seed: u64, mut reason: String) -> (Self, String) {
        let mut width = self.stream.len() / 2;
        while width > 0 {
            let mut from = 0;
            while from < self.stream.len() {
                let to = (from + width).min(self.stream.len());
                let shorter = self.with([&self.stream[..from], &self.stream[to..]].concat());
                match shorter.judge_all(seed) {
                    Err(why) => (self, reason) = (shorter, why),
                    Ok(_) => from += width,
                }
            }
            width /= 2;
        }

        (self, reason)
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
    })
}

#[test]
fn our_decoder_and_hyper_agree_except_for_named_differences() {
    let first = variable("ORACLE_SEED").unwrap_or(0);
    let duration = variable("ORACLE_SECONDS").map(Duration::from_secs);
    let start = Instant::now();
    let mut differences = BTreeMap::<&str, u64>::new();
    let mut ends = BTreeMap::<String, u64>::new();
    let mut seed = first;

    while duration.map_or(seed - first < QUICK_STREAMS, |duration| {
        start.elapsed() < duration
    }) {
        let case = streams::case(seed);
        *ends.entry(format!("{:?}", case.ours(&[]).end)).or_default() += 1;
        match case.judge_all(seed) {
            Ok(names) => names
                .into_iter()
                .for_each(|name| *differences.entry(name).or_default() += 1),
            Err(reason) => {
                let (shortest, reason) = case.shrunk(seed, reason);
                let (stream, head, closed) = (
                    shortest.stream.escape_ascii(),
                    shortest.request_is_head,
                    shortest.ends,
                );
                panic!(
                    "ORACLE_SEED={seed}, response to HEAD: {head}, ends: {closed}\n{stream}\n{reason}"
                );
            }
        }
        seed += 1;
    }

    report(seed - first, &ends, &differences);
    // Streams that all end in the same way would test little.
    assert_eq!(ends.len(), 5, "{ends:?}");
    assert!(
        ends.values().all(|count| *count > (seed - first) / 100),
        "{ends:?}"
    );
}

#[expect(clippy::print_stdout, reason = "a long run reports its counts")]
fn report(streams: u64, ends: &BTreeMap<String, u64>, differences: &BTreeMap<&str, u64>) {
    println!("{streams} streams: {ends:?}; named differences: {differences:?}");
}
