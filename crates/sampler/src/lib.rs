//! Reads files and queries the kernel about sockets at fixed times, in a separate thread.
//!
//! It does not interpret what it reads; the caller does so after the load. It is written in Rust
//! because waking up an interpreter takes several times the CPU time, on the core that the
//! generator needs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;
const READ_BYTES: usize = 16_384;
const RESPONSE_BYTES: usize = 65_536;
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(200);
/// `NLMSG_ERROR` and `NLMSG_DONE` end a response; either is in its own datagram.
const ENDS: [u16; 2] = [2, 3];
/// Position of the flags of a request, and those that request such an end: `NLM_F_ACK` and
/// `NLM_F_DUMP`.
const FLAGS: Range<usize> = 6..8;
const ASKS_FOR_END: u16 = 0x004 | 0x300;

/// A file, and the time between two readings of it; 0 for every sample.
pub type Spaced = (PathBuf, u64);

/// What to read, and how often.
#[derive(Clone, Debug)]
pub struct SamplerPlan {
    /// Files; one that cannot be opened is left out, and one that can no longer be read is dropped.
    pub files: Vec<Spaced>,
    /// Requests to the kernel's socket diagnostics, in wire format.
    pub queries: Vec<Vec<u8>>,
    /// Time between two samples.
    pub interval_ns: u64,
}

/// One sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its scheduled time.
    pub due_ns: u64,
    /// When it started.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Contents, each with the file's index in the plan; none for a file that was not due or could
    /// not be read.
    pub contents: Vec<(usize, Vec<u8>)>,
    /// The kernel's responses, datagram by datagram; none if it did not respond.
    pub responses: Vec<Vec<u8>>,
}

/// A thread that samples until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    is_stopping: Arc<AtomicBool>,
    added: Arc<Mutex<Vec<Spaced>>>,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: JoinHandle<()>,
}

impl Sampler {
    /// Starts; the first sample is taken at once and includes everything.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(plan: SamplerPlan) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let added = Arc::new(Mutex::new(Vec::new()));
        let samples = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::clone(&is_stopping);
        let files = Arc::clone(&added);
        let taken = Arc::clone(&samples);
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(plan, &stop, &files, &taken))?;

        Ok(Self {
            is_stopping,
            added,
            samples,
            thread,
        })
    }

    /// Also reads these files, at the same times as other files with the same spacing; they get the
    /// next indices in the plan.
    pub fn add(&self, files: Vec<Spaced>) {
        locked(&self.added).extend(files);
    }

    /// The latest sample; `None` before the first.
    #[must_use]
    pub fn latest(&self) -> Option<Sample> {
        locked(&self.samples).last().cloned()
    }

    /// Takes a last sample of everything, and returns all samples: those before a panic if the
    /// thread panicked, which it never should.
    #[must_use]
    pub fn stop(self) -> Vec<Sample> {
        self.is_stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
        std::mem::take(&mut locked(&self.samples))
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can panic while a lock is held, so a poisoned lock still holds valid data.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `CLOCK_MONOTONIC` now, in nanoseconds: the clock of the generator, so that its timestamps can be
/// compared.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * NS_PER_S + u64::try_from(now.tv_nsec).unwrap_or(0)
}

struct Watched {
    place: usize,
    file: File,
    spacing_ns: u64,
    due_ns: u64,
}

struct Reader {
    begun_ns: u64,
    files: Vec<Watched>,
    places: usize,
    queries: Vec<Vec<u8>>,
    netlink: Option<OwnedFd>,
    buffer: Vec<u8>,
}

fn run(
    plan: SamplerPlan,
    is_stopping: &AtomicBool,
    added: &Mutex<Vec<Spaced>>,
    samples: &Mutex<Vec<Sample>>,
) {
    let interval_ns = plan.interval_ns.max(1);
    let mut due_ns = monotonic_ns();
    let mut reader = Reader::new(plan, due_ns);

    while !is_stopping.load(Ordering::Acquire) {
        let now_ns = monotonic_ns();
        if now_ns < due_ns {
            park_timeout(Duration::from_nanos(due_ns - now_ns));
            continue;
        }
        let more = std::mem::take(&mut *locked(added));
        reader.open(more, due_ns);
        let sample = reader.sample(due_ns);
        locked(samples).push(sample);
        // Times that have already passed are skipped, not caught up on.
        due_ns += (monotonic_ns().saturating_sub(due_ns) / interval_ns + 1) * interval_ns;
    }

    reader
        .files
        .iter_mut()
        .for_each(|watched| watched.due_ns = 0);
    let sample = reader.sample(monotonic_ns());
    locked(samples).push(sample);
}

impl Reader {
    fn new(plan: SamplerPlan, begun_ns: u64) -> Self {
        let buffer = vec![0; RESPONSE_BYTES];
        let mut reader = Self {
            begun_ns,
            files: Vec::new(),
            places: 0,
            queries: plan.queries,
            netlink: None,
            buffer,
        };
        reader.open(plan.files, begun_ns);

        reader
    }

    fn open(&mut self, files: Vec<Spaced>, now_ns: u64) {
        for (path, spacing_ns) in files {
            if let Ok(file) = File::open(path) {
                let due_ns = self.next_due_ns(now_ns, spacing_ns);
                self.files.push(Watched {
                    place: self.places,
                    file,
                    spacing_ns,
                    due_ns,
                });
            }
            self.places += 1;
        }
    }

    /// When to read a file next. All files with the same spacing are read at the same times,
    /// whenever they were added.
    fn next_due_ns(&self, now_ns: u64, spacing_ns: u64) -> u64 {
        self.begun_ns + (now_ns - self.begun_ns).next_multiple_of(spacing_ns.max(1))
    }

    fn sample(&mut self, due_ns: u64) -> Sample {
        let begun_ns = monotonic_ns();
        let contents = self.read_files(due_ns);
        // A leftover of one response must not be read as the response to the next query.
        let responses = self.query().unwrap_or_else(|_| {
            self.netlink = None;
            Vec::new()
        });

        Sample {
            due_ns,
            begun_ns,
            ended_ns: monotonic_ns(),
            contents,
            responses,
        }
    }

    fn read_files(&mut self, due_ns: u64) -> Vec<(usize, Vec<u8>)> {
        let mut files = std::mem::take(&mut self.files);
        let mut contents = Vec::with_capacity(
            files
                .iter()
                .filter(|watched| watched.due_ns <= due_ns)
                .count(),
        );
        files.retain_mut(|watched| {
            if due_ns < watched.due_ns {
                return true;
            }
            watched.due_ns = self.next_due_ns(due_ns + 1, watched.spacing_ns);
            match watched.file.read_at(&mut self.buffer[..READ_BYTES], 0) {
                Ok(length) => {
                    contents.push((watched.place, self.buffer[..length].to_vec()));
                    true
                }
                // A thread that ended, a cgroup that was removed: neither comes back.
                Err(error) => error.kind() == io::ErrorKind::Interrupted,
            }
        });
        self.files = files;

        contents
    }

    fn query(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut responses = Vec::new();
        if self.queries.is_empty() {
            return Ok(responses);
        }

        let netlink = match self.netlink.take() {
            Some(netlink) => netlink,
            None => open_diagnostics()?,
        };
        for query in &self.queries {
            send(&netlink, query, SendFlags::empty())?;
            loop {
                let (length, _) = recv(&netlink, &mut self.buffer[..], RecvFlags::empty())?;
                let datagram = &self.buffer[..length];
                let is_end = !requests_end(query)
                    || number_at(datagram, 4..6).is_none_or(|kind| ENDS.contains(&kind));
                responses.push(datagram.to_vec());
                if is_end {
                    break;
                }
            }
        }

        self.netlink = Some(netlink);
        Ok(responses)
    }
}

/// Whether the query requests a separate end of its response. Without one, the response is a single
/// datagram, which saves sending and reading another.
fn requests_end(query: &[u8]) -> bool {
    number_at(query, FLAGS).is_some_and(|flags| flags & ASKS_FOR_END != 0)
}

fn number_at(bytes: &[u8], range: Range<usize>) -> Option<u16> {
    bytes
        .get(range)
        .and_then(|pair| Some(u16::from_ne_bytes(pair.try_into().ok()?)))
}

fn open_diagnostics() -> io::Result<OwnedFd> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(
        AddressFamily::NETLINK,
        kind,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(RESPONSE_TIMEOUT))?;

    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn times_of(samples: &[Sample], place: usize) -> Vec<usize> {
        let includes_file =
            |sample: &Sample| sample.contents.iter().any(|(other, _)| *other == place);
        samples
            .iter()
            .enumerate()
            .filter(|(_, sample)| includes_file(sample))
            .map(|(number, _)| number)
            .collect()
    }

    #[test]
    fn samples_and_files_are_read_at_their_intervals() {
        let missing = PathBuf::from("/does/not/exist");
        let plan = SamplerPlan {
            files: vec![
                ("/proc/self/stat".into(), 0),
                (missing, 0),
                ("/proc/stat".into(), 40 * MS),
            ],
            queries: Vec::new(),
            interval_ns: 2 * MS,
        };
        let sampler = Sampler::start(plan).expect("a thread");
        std::thread::sleep(Duration::from_millis(15));
        sampler.add(vec![("/proc/uptime".into(), 40 * MS)]);
        std::thread::sleep(Duration::from_millis(85));
        let latest = sampler.latest().expect("a sample");
        let samples = sampler.stop();

        assert!(samples.len() >= 3, "{}", samples.len());
        assert!(samples.iter().any(|sample| sample.due_ns == latest.due_ns));
        assert!(samples.is_sorted_by_key(|sample| sample.begun_ns));
        assert!(
            samples.iter().all(
                |sample| sample.due_ns <= sample.begun_ns && sample.begun_ns <= sample.ended_ns
            )
        );
        assert_eq!(
            times_of(&samples, 0),
            (0..samples.len()).collect::<Vec<_>>()
        );

        let rare = times_of(&samples, 2);
        assert_eq!(
            (rare.first(), rare.last()),
            (Some(&0), Some(&(samples.len() - 1))),
            "all at either end"
        );

        let slots: Vec<_> = rare
            .iter()
            .map(|sample| (samples[*sample].due_ns - samples[0].due_ns) / (40 * MS))
            .collect();
        assert!(
            slots[..slots.len() - 1].is_sorted_by(|early, late| early < late),
            "{slots:?}"
        );

        // After it was added, a file is read at the same times as others with its spacing.
        let added = times_of(&samples, 3);
        assert!(
            !added.is_empty() && rare.ends_with(&added),
            "{added:?} of {rare:?}"
        );
    }

    #[test]
    fn a_file_that_can_no_longer_be_read_is_dropped() {
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let (sender, receiver) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let stat = PathBuf::from("/proc/thread-self/schedstat");
            sender
                .send(std::fs::canonicalize(stat).expect("the path of this thread"))
                .expect("a listener");
            let _ = end.recv();
        });
        let mut reader = Reader::new(
            SamplerPlan {
                files: vec![(receiver.recv().expect("a path"), 0)],
                queries: Vec::new(),
                interval_ns: MS,
            },
            0,
        );

        assert_eq!(reader.sample(0).contents.len(), 1);

        drop(ended);
        other.join().expect("its end");
        // The kernel may take a moment to release the thread.
        let is_dropped = (1..1_000_000).any(|due_ns| reader.sample(due_ns).contents.is_empty());

        assert!(is_dropped && reader.files.is_empty());
    }

    #[test]
    fn a_response_has_an_end_only_if_the_query_requests_it() {
        let flagged = |flags: u16| [&[0; 6][..], &flags.to_ne_bytes(), &[0; 8]].concat();
        let has_end = [0x001, 0x005, 0x301].map(|flags| requests_end(&flagged(flags)));
        assert_eq!(has_end, [false, true, true]);
        assert!(!requests_end(&[]));
    }
}
