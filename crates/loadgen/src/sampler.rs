//! Reads files and asks the kernel about sockets at fixed moments, in a thread of its own.
//!
//! It understands nothing of what it reads: that is left to whoever takes the looks when the load is over. Here because
//! an interpreter that wakes up for it takes several times the CPU time, on the core that the generator needs.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use crate::clock::monotonic_ns;

const READ_BYTES: usize = 16_384;
const ANSWER_BYTES: usize = 65_536;
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// `NLMSG_ERROR` and `NLMSG_DONE` end an answer; either comes in a datagram of its own.
const ENDS: [u16; 2] = [2, 3];

/// What is to be read, and how often.
#[derive(Clone, Debug)]
pub struct SamplerPlan {
    /// Files, each with the shortest time between two of its readings; one that cannot be opened is left out.
    pub files: Vec<(PathBuf, u64)>,
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
    /// Contents, each with the file's place in the plan; none of a file that was not due or could not be read.
    pub texts: Vec<(usize, Vec<u8>)>,
    /// The kernel's answers, datagram by datagram; none where it did not answer.
    pub answers: Vec<Vec<u8>>,
}

/// A thread that looks until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    is_stopping: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Look>>,
}

impl Sampler {
    /// Begins; the first look is taken at once.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(plan: SamplerPlan) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_stopping);
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(move || run(plan, &asked))?;
        Ok(Self { is_stopping, thread })
    }

    /// Takes a last look, and gives back all; none if the thread panicked, which it never should.
    #[must_use]
    pub fn stop(self) -> Vec<Look> {
        self.is_stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

struct Reader {
    plan: SamplerPlan,
    files: Vec<(usize, File)>,
    due_ns: Vec<u64>,
    netlink: Option<OwnedFd>,
    buffer: Vec<u8>,
}

fn run(plan: SamplerPlan, is_stopping: &AtomicBool) -> Vec<Look> {
    let interval_ns = plan.interval_ns.max(1);
    let mut reader = Reader::new(plan);
    let mut looks = Vec::new();
    let mut due_ns = monotonic_ns();
    while !is_stopping.load(Ordering::Acquire) {
        let now_ns = monotonic_ns();
        if now_ns < due_ns {
            park_timeout(Duration::from_nanos(due_ns - now_ns));
            continue;
        }
        looks.push(reader.look(due_ns));
        // Moments that have already passed are left out, not caught up on.
        due_ns += (monotonic_ns().saturating_sub(due_ns) / interval_ns + 1) * interval_ns;
    }
    looks.push(reader.look(monotonic_ns()));
    looks
}

impl Reader {
    fn new(plan: SamplerPlan) -> Self {
        let opened = plan.files.iter().enumerate().map(|(place, (path, _))| Some((place, File::open(path).ok()?)));
        let files = opened.flatten().collect();
        let due_ns = vec![0; plan.files.len()];
        Self { plan, files, due_ns, netlink: None, buffer: vec![0; ANSWER_BYTES] }
    }

    fn look(&mut self, due_ns: u64) -> Look {
        let begun_ns = monotonic_ns();
        let texts = self.read_files(begun_ns);
        // Whatever is left of an answer must not be read as that to the next question.
        let answers = self.ask().unwrap_or_else(|_| {
            self.netlink = None;
            Vec::new()
        });
        Look { due_ns, begun_ns, ended_ns: monotonic_ns(), texts, answers }
    }

    fn read_files(&mut self, now_ns: u64) -> Vec<(usize, Vec<u8>)> {
        let mut texts = Vec::with_capacity(self.files.len());
        for (place, file) in &self.files {
            let spacing_ns = self.plan.files[*place].1;
            // A look somewhat too early counts: spacings are multiples of the usual interval.
            if now_ns + spacing_ns / 10 < self.due_ns[*place] {
                continue;
            }
            self.due_ns[*place] = now_ns + spacing_ns;
            if let Ok(length) = file.read_at(&mut self.buffer[..READ_BYTES], 0) {
                texts.push((*place, self.buffer[..length].to_vec()));
            }
        }
        texts
    }

    fn ask(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut answers = Vec::new();
        if self.plan.queries.is_empty() {
            return Ok(answers);
        }
        let netlink = match self.netlink.take() {
            Some(netlink) => netlink,
            None => open_diagnostics()?,
        };
        for query in &self.plan.queries {
            send(&netlink, query, SendFlags::empty())?;
            loop {
                let (length, _) = recv(&netlink, &mut self.buffer[..], RecvFlags::empty())?;
                let datagram = &self.buffer[..length];
                let is_end =
                    datagram.get(4..6).is_none_or(|kind| ENDS.contains(&u16::from_ne_bytes([kind[0], kind[1]])));
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

fn open_diagnostics() -> io::Result<OwnedFd> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_at_their_moments_and_files_as_rarely_as_asked() {
        let missing = PathBuf::from("/does/not/exist");
        let plan = SamplerPlan {
            files: vec![("/proc/self/stat".into(), 0), (missing, 0), ("/proc/stat".into(), 40_000_000)],
            queries: Vec::new(),
            interval_ns: 2_000_000,
        };
        let sampler = Sampler::start(plan).expect("a thread");
        std::thread::sleep(Duration::from_millis(100));
        let looks = sampler.stop();
        assert!(looks.len() >= 3, "{}", looks.len());
        assert!(looks.is_sorted_by_key(|look| look.begun_ns));
        assert!(looks.iter().all(|look| look.due_ns <= look.begun_ns && look.begun_ns <= look.ended_ns));
        assert!(looks.iter().all(|look| look.texts[0].0 == 0 && !look.texts[0].1.is_empty()));
        let rare = looks.iter().filter(|look| look.texts.iter().any(|(place, _)| *place == 2)).count();
        let span_ns = looks[looks.len() - 1].begun_ns - looks[0].begun_ns;
        assert!(rare >= 1 && rare as u64 <= span_ns / 36_000_000 + 1, "{rare} in {span_ns} ns");
    }
}
