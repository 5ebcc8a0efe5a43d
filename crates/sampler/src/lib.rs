//! Reads files and asks the kernel about sockets at fixed moments, in a thread of its own.
//!
//! It understands nothing of what it reads: that is left to whoever takes the looks when the load
//! is over. In Rust because an interpreter that wakes up for it takes several times the CPU time,
//! on the core that the generator needs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;
const READ_BYTES: usize = 16_384;
const ANSWER_BYTES: usize = 65_536;
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// `NLMSG_ERROR` and `NLMSG_DONE` end a response; either comes in a datagram of its own.
const ENDS: [u16; 2] = [2, 3];
/// Where the flags of a request are, and those that ask for such an end: `NLM_F_ACK` and
/// `NLM_F_DUMP`.
const FLAGS: Range<usize> = 6..8;
const ASKS_FOR_END: u16 = 0x004 | 0x300;

/// A file, and the time between two of its readings; 0 for every look.
pub type Spaced = (PathBuf, u64);

/// What is to be read, and how often.
#[derive(Clone, Debug)]
pub struct SamplerPlan {
    /// Files; one that cannot be opened is left out, and one that can no longer be read is given
    /// up.
    pub files: Vec<Spaced>,
    /// Requests to the kernel's socket diagnostics, as it takes them.
    pub queries: Vec<Vec<u8>>,
    /// Time between two looks.
    pub interval_ns: u64,
}

/// What was there at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// When it was planned.
    pub due_ns: u64,
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Contents, each with the file's place in the plan; none of a file that was not due or could
    /// not be read.
    pub texts: Vec<(usize, Vec<u8>)>,
    /// The kernel's answers, datagram by datagram; none where it did not answer.
    pub answers: Vec<Vec<u8>>,
}

/// A thread that looks until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    is_stopping: Arc<AtomicBool>,
    added: Arc<Mutex<Vec<Spaced>>>,
    thread: JoinHandle<Vec<Look>>,
}

impl Sampler {
    /// Begins; the first look is taken at once, at everything.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(plan: SamplerPlan) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let added = Arc::new(Mutex::new(Vec::new()));
        let (asked, wanted) = (Arc::clone(&is_stopping), Arc::clone(&added));
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(plan, &asked, &wanted))?;
        Ok(Self {
            is_stopping,
            added,
            thread,
        })
    }

    /// Reads these, too, together with the others of their spacing; they take the next places in
    /// the plan.
    pub fn add(&self, files: Vec<Spaced>) {
        self.added
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(files);
    }

    /// Takes a last look at everything, and gives back all; none if the thread panicked, which it
    /// never should.
    #[must_use]
    pub fn stop(self) -> Vec<Look> {
        self.is_stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
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

fn run(plan: SamplerPlan, is_stopping: &AtomicBool, added: &Mutex<Vec<Spaced>>) -> Vec<Look> {
    let interval_ns = plan.interval_ns.max(1);
    let mut due_ns = monotonic_ns();
    let mut reader = Reader::new(plan, due_ns);
    let mut looks = Vec::new();
    while !is_stopping.load(Ordering::Acquire) {
        let now_ns = monotonic_ns();
        if now_ns < due_ns {
            park_timeout(Duration::from_nanos(due_ns - now_ns));
            continue;
        }
        let more = std::mem::take(&mut *added.lock().unwrap_or_else(PoisonError::into_inner));
        reader.open(more, due_ns);
        looks.push(reader.look(due_ns));
        // Moments that have already passed are left out, not caught up on.
        due_ns += (monotonic_ns().saturating_sub(due_ns) / interval_ns + 1) * interval_ns;
    }
    reader
        .files
        .iter_mut()
        .for_each(|watched| watched.due_ns = 0);
    looks.push(reader.look(monotonic_ns()));
    looks
}

impl Reader {
    fn new(plan: SamplerPlan, begun_ns: u64) -> Self {
        let buffer = vec![0; ANSWER_BYTES];
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

    fn open(&mut self, wanted: Vec<Spaced>, now_ns: u64) {
        for (path, spacing_ns) in wanted {
            if let Ok(file) = File::open(path) {
                let due_ns = self.moment_from(now_ns, spacing_ns);
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

    /// All files of one spacing are read at the same moments, whenever they were added.
    fn moment_from(&self, now_ns: u64, spacing_ns: u64) -> u64 {
        self.begun_ns + (now_ns - self.begun_ns).next_multiple_of(spacing_ns.max(1))
    }

    fn look(&mut self, due_ns: u64) -> Look {
        let begun_ns = monotonic_ns();
        let texts = self.read_files(due_ns);
        // Whatever is left of a response must not be read as that to the next question.
        let answers = self.ask().unwrap_or_else(|_| {
            self.netlink = None;
            Vec::new()
        });
        Look {
            due_ns,
            begun_ns,
            ended_ns: monotonic_ns(),
            texts,
            answers,
        }
    }

    fn read_files(&mut self, due_ns: u64) -> Vec<(usize, Vec<u8>)> {
        let mut files = std::mem::take(&mut self.files);
        let mut texts = Vec::with_capacity(
            files
                .iter()
                .filter(|watched| watched.due_ns <= due_ns)
                .count(),
        );
        files.retain_mut(|watched| {
            if due_ns < watched.due_ns {
                return true;
            }
            watched.due_ns = self.moment_from(due_ns + 1, watched.spacing_ns);
            match watched.file.read_at(&mut self.buffer[..READ_BYTES], 0) {
                Ok(length) => {
                    texts.push((watched.place, self.buffer[..length].to_vec()));
                    true
                }
                // A thread that ended, a group that was removed: neither comes back.
                Err(error) => error.kind() == io::ErrorKind::Interrupted,
            }
        });
        self.files = files;
        texts
    }

    fn ask(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut answers = Vec::new();
        if self.queries.is_empty() {
            return Ok(answers);
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
                let is_end = !asks_for_end(query)
                    || number_at(datagram, 4..6).is_none_or(|kind| ENDS.contains(&kind));
                answers.push(datagram.to_vec());
                if is_end {
                    break;
                }
            }
        }
        self.netlink = Some(netlink);
        Ok(answers)
    }
}

/// Otherwise the response is a single datagram: an end of its own would be one more to make and to
/// read.
fn asks_for_end(query: &[u8]) -> bool {
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
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn moments_of(looks: &[Look], place: usize) -> Vec<usize> {
        let has_it = |look: &Look| look.texts.iter().any(|(there, _)| *there == place);
        looks
            .iter()
            .enumerate()
            .filter(|(_, look)| has_it(look))
            .map(|(number, _)| number)
            .collect()
    }

    #[test]
    fn looks_come_at_their_moments_and_files_as_rarely_as_asked() {
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
        let looks = sampler.stop();
        assert!(looks.len() >= 3, "{}", looks.len());
        assert!(looks.is_sorted_by_key(|look| look.begun_ns));
        assert!(
            looks
                .iter()
                .all(|look| look.due_ns <= look.begun_ns && look.begun_ns <= look.ended_ns)
        );
        assert_eq!(moments_of(&looks, 0), (0..looks.len()).collect::<Vec<_>>());
        let rare = moments_of(&looks, 2);
        assert_eq!(
            (rare.first(), rare.last()),
            (Some(&0), Some(&(looks.len() - 1))),
            "all at either end"
        );
        let slots: Vec<_> = rare
            .iter()
            .map(|look| (looks[*look].due_ns - looks[0].due_ns) / (40 * MS))
            .collect();
        assert!(
            slots[..slots.len() - 1].is_sorted_by(|early, late| early < late),
            "{slots:?}"
        );
        // What was added is read together with its like from then on.
        let added = moments_of(&looks, 3);
        assert!(
            !added.is_empty() && rare.ends_with(&added),
            "{added:?} of {rare:?}"
        );
    }

    #[test]
    fn a_file_that_can_no_longer_be_read_is_given_up() {
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let (told, tell) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let stat = PathBuf::from("/proc/thread-self/schedstat");
            told.send(std::fs::canonicalize(stat).expect("the path of this thread"))
                .expect("a listener");
            let _ = end.recv();
        });
        let mut reader = Reader::new(
            SamplerPlan {
                files: vec![(tell.recv().expect("a path"), 0)],
                queries: Vec::new(),
                interval_ns: MS,
            },
            0,
        );
        assert_eq!(reader.look(0).texts.len(), 1);
        drop(ended);
        other.join().expect("its end");
        // The kernel may take a moment to forget the thread.
        let is_given_up = (1..1_000_000).any(|due_ns| reader.look(due_ns).texts.is_empty());
        assert!(is_given_up && reader.files.is_empty());
    }

    #[test]
    fn only_a_question_that_asks_for_it_has_an_end_to_its_answer() {
        let flagged = |flags: u16| [&[0; 6][..], &flags.to_ne_bytes(), &[0; 8]].concat();
        let asks = [0x001, 0x005, 0x301].map(|flags| asks_for_end(&flagged(flags)));
        assert_eq!(asks, [false, true, true]);
        assert!(!asks_for_end(&[]));
    }
}
