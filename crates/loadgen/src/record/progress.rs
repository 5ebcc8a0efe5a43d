//! Live progress: each thread writes its counts to its own part of a small file a few times per
//! second, for any process to read.
//!
//! Neither side waits for the other, and a load without this file writes nothing. The file is best
//! kept in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process;

use crate::base::clock::NS_PER_MS;
use crate::record::batches::{BUCKETS, bounds_of, bucket_of};
use crate::record::exchange::{Completion, Outcome};
use crate::record::recorder::{Phase, PhaseCounts, Recorder};

/// Time between two writes of a thread.
const SPACING_NS: u64 = 250 * NS_PER_MS;
/// Numbers at the start of a part: its sequence number, four timestamps, and the counts of each
/// phase. The sequence number is repeated at the end.
const NUMBERS: usize = 5 + Phase::ALL.len() * (1 + Outcome::ALL.len());
const WORD_BYTES: usize = size_of::<u64>();
const BUCKET_BYTES: usize = size_of::<u32>();
const PART_BYTES: usize = (NUMBERS + 1) * WORD_BYTES + BUCKETS * BUCKET_BYTES;

/// The progress file, by its path. The threads of a load share no file descriptors, so each opens
/// it.
#[derive(Clone, Debug)]
pub struct ProgressFile(PathBuf);

impl ProgressFile {
    /// An existing file.
    ///
    /// # Errors
    /// It cannot be opened to read and to write.
    pub fn at(path: PathBuf) -> io::Result<Self> {
        let file = Self(path);
        file.open()?;
        Ok(file)
    }

    /// The path by which other processes open it.
    pub(crate) fn path_for_others(&self) -> PathBuf {
        let own = Path::new("/proc").join(process::id().to_string());
        self.0
            .strip_prefix("/proc/self")
            .map_or_else(|_| self.0.clone(), |rest| own.join(rest))
    }

    fn open(&self) -> io::Result<File> {
        File::options().read(true).write(true).open(&self.0)
    }

    /// The latest progress of each thread; `None` while a thread has written nothing or is writing.
    #[must_use]
    pub fn parts(&self, threads: usize) -> Option<Vec<Part>> {
        let file = self.open().ok()?;
        let mut bytes = vec![0; PART_BYTES];
        let mut part = |thread| {
            file.read_exact_at(&mut bytes, offset_of(thread)).ok()?;
            Part::decode(&bytes)
        };
        (0..threads).map(&mut part).collect()
    }
}

fn offset_of(thread: usize) -> u64 {
    (thread * PART_BYTES) as u64
}

/// The progress of one thread.
#[derive(Clone, Debug)]
pub struct Part {
    /// When it was written.
    pub written_ns: u64,
    /// Start of the load.
    pub start_ns: u64,
    /// The measurement, which may still be extended.
    pub measure_ns: (u64, u64),
    /// Counts of warm-up, measurement and cool-down.
    pub phases: [PhaseCounts; Phase::ALL.len()],
    /// Response times of the correct responses of the measurement.
    buckets: Vec<u32>,
}

impl Part {
    /// The whole load, from the progress of all threads; `None` without a thread.
    #[must_use]
    pub fn of_all(parts: Vec<Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut all, part| {
            all.written_ns = all.written_ns.max(part.written_ns);
            all.measure_ns.1 = all.measure_ns.1.max(part.measure_ns.1);
            all.phases
                .iter_mut()
                .zip(&part.phases)
                .for_each(|(mine, theirs)| mine.add(theirs));
            all.buckets
                .iter_mut()
                .zip(&part.buckets)
                .for_each(|(mine, theirs)| *mine += theirs);
            all
        })
    }

    /// A quantile over all requests of the measurement that have ended, to a thirtieth of its
    /// value; `None` if there are none or if it is among the failures, which rank above every
    /// response.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let ended = self.phases[Phase::Measure as usize].accounted() as f64;
        let mut below = 0.0;

        for (bucket, count) in self
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let count = f64::from(*count);
            if below + count >= quantile * ended {
                let (from_ns, width_ns) = bounds_of(bucket);
                let share = (quantile * ended - below) / count;
                return Some(from_ns + (width_ns as f64 * share) as u64);
            }
            below += count;
        }
        None
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_at_checked(NUMBERS * WORD_BYTES)?;
        let (buckets, last) = rest.split_at_checked(BUCKETS * BUCKET_BYTES)?;
        let mut numbers = numbers.chunks_exact(WORD_BYTES).map(number);
        let sequence = numbers.next().filter(|number| *number > 0)?;
        if sequence != number(last) {
            return None;
        }

        let mut next = || numbers.next().unwrap_or(0);
        Some(Self {
            written_ns: next(),
            start_ns: next(),
            measure_ns: (next(), next()),
            phases: std::array::from_fn(|_| PhaseCounts {
                scheduled: next(),
                outcomes: std::array::from_fn(|_| next()),
            }),
            buckets: buckets
                .chunks_exact(BUCKET_BYTES)
                .map(|four| four.try_into().map_or(0, u32::from_le_bytes))
                .collect(),
        })
    }
}

fn number(eight: &[u8]) -> u64 {
    eight.try_into().map_or(0, u64::from_le_bytes)
}

/// Writes the progress of one thread.
pub(crate) struct Progress {
    file: File,
    thread: usize,
    sequence: u64,
    due_ns: u64,
    buckets: Vec<u32>,
    /// Reused for every write.
    bytes: Vec<u8>,
}

impl Progress {
    /// For the calling thread, by its index; `None` if it cannot open the file, because the load is
    /// more important than its progress.
    pub fn open(file: &ProgressFile, thread: usize) -> Option<Self> {
        Some(Self {
            file: file.open().ok()?,
            thread,
            sequence: 0,
            due_ns: 0,
            buckets: vec![0; BUCKETS],
            bytes: Vec::with_capacity(PART_BYTES),
        })
    }

    /// Counts the response time of a correct response of the measurement.
    pub fn ended(&mut self, completion: &Completion, recorder: &Recorder) {
        let intended_ns = completion.arrival.intended_ns;
        if completion.outcome == Outcome::Ok && recorder.is_measured(intended_ns) {
            let last_ns = completion.stamps.last_byte_ns;
            self.buckets[bucket_of(last_ns.saturating_sub(intended_ns))] += 1;
        }
    }

    /// Whether the next write is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Writes what was recorded so far.
    pub fn show(&mut self, now_ns: u64, recorder: &Recorder) {
        self.due_ns = now_ns + SPACING_NS;
        self.sequence += 1;
        let (from_ns, to_ns) = recorder.measure_window_ns();
        let times = [self.sequence, now_ns, recorder.start_ns(), from_ns, to_ns];
        let counts = Phase::ALL
            .map(|phase| recorder.phase(phase))
            .into_iter()
            .flat_map(|counts| [counts.scheduled].into_iter().chain(counts.outcomes));

        self.bytes.clear();
        times
            .into_iter()
            .chain(counts)
            .for_each(|number| self.bytes.extend(number.to_le_bytes()));
        self.buckets
            .iter()
            .for_each(|count| self.bytes.extend(count.to_le_bytes()));
        self.bytes.extend(self.sequence.to_le_bytes());

        // A failed write is ignored, for the same reason as in `open`.
        let _ = self.file.write_all_at(&self.bytes, offset_of(self.thread));
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::LoadPlan;
    use crate::record::exchange::{Arrival, Stamps};

    /// A file in memory, which exists as long as the file descriptor.
    fn file() -> (OwnedFd, ProgressFile) {
        let descriptor = memfd_create("progress", MemfdFlags::CLOEXEC).expect("a file in memory");
        let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        (descriptor, ProgressFile::at(path.into()).expect("it opens"))
    }

    fn ended(intended_ns: u64, response_ns: u64, outcome: Outcome) -> Completion {
        let last_byte_ns = intended_ns + response_ns;
        let stamps = Stamps {
            write_start_ns: intended_ns,
            first_byte_ns: last_byte_ns,
            last_byte_ns,
            ..Stamps::default()
        };
        Completion {
            arrival: Arrival::unqueued(intended_ns, 0),
            stamps,
            outcome,
            status: Some(200),
            ended_ns: last_byte_ns,
        }
    }

    /// One request a millisecond from the start of the load, the n-th of which takes n µs; of those
    /// in the measurement, the last `failures` fail.
    fn show(file: &ProgressFile, thread: usize, failures: u64) -> Recorder {
        let mut plan = LoadPlan::open("http://h/", 1_000.0, NS_PER_S);
        plan.phases.warmup_ns = NS_PER_S;
        let mut recorder = Recorder::new(&plan, 0);
        let mut progress = Progress::open(file, thread).expect("it opens");

        for request in 0..2_000 {
            let outcome = if request >= 2_000 - failures {
                Outcome::Timeout
            } else {
                Outcome::Ok
            };
            let completion = ended(request * NS_PER_MS, (request + 1) * 1_000, outcome);
            recorder.scheduled(request * NS_PER_MS);
            recorder.ended(&completion);
            progress.ended(&completion, &recorder);
        }
        progress.show(2 * NS_PER_S, &recorder);
        recorder
    }

    #[test]
    fn the_progress_of_a_load_is_the_sum_of_its_threads() {
        let (_open, file) = file();
        let recorder = show(&file, 0, 0);
        assert!(file.parts(2).is_none(), "the second thread showed nothing");

        show(&file, 1, 0);
        let all = Part::of_all(file.parts(2).expect("both have")).expect("a thread");

        assert_eq!(all.measure_ns, (NS_PER_S, 2 * NS_PER_S));
        assert_eq!((all.start_ns, all.written_ns), (0, 2 * NS_PER_S));
        for phase in Phase::ALL {
            let (shown, recorded) = (&all.phases[phase as usize], recorder.phase(phase));
            assert_eq!(shown.scheduled, 2 * recorded.scheduled);
            assert_eq!(shown.of(Outcome::Ok), 2 * recorded.of(Outcome::Ok));
        }

        // The measurement's requests take 1,001 to 2,000 µs.
        for (quantile, expected_ns) in [(0.5, 1_500_000), (0.99, 1_990_000)] {
            let shown_ns = all.quantile_ns(quantile).expect("responses");
            assert!(
                shown_ns.abs_diff(expected_ns) < expected_ns / 30,
                "{shown_ns}"
            );
        }
    }

    #[test]
    fn failures_rank_above_every_response() {
        let (_open, file) = file();
        show(&file, 0, 200);
        let part = Part::of_all(file.parts(1).expect("shown")).expect("a thread");

        assert_eq!(part.phases[1].of(Outcome::Timeout), 200);
        assert!(part.quantile_ns(0.5).is_some_and(|ns| ns < 1_560_000));
        assert_eq!(part.quantile_ns(0.99), None);
    }

    #[test]
    fn a_part_that_is_being_written_is_not_read() {
        let (_open, file) = file();
        show(&file, 0, 0);
        let other = file.open().expect("it opens");
        other
            .write_all_at(&7_u64.to_le_bytes(), 0)
            .expect("writable");

        assert!(file.parts(1).is_none());
    }
}
