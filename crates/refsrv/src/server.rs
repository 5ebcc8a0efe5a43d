//! The server as a thing to start, ask and stop. Its thread, its listener, its end.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc as reply;
use std::thread::JoinHandle;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::now_ns;
use crate::config::Config;
use crate::connection;
use crate::error::ConfigError;
use crate::fast::{self, FastAnswers};
use crate::log::LogEntry;
use crate::shared::{Report, Shared, Stats};
use crate::timer::{Timer, TimerFd, open_timer_fd};

/// The kernel cuts it to `net.core.somaxconn`. A burst of connections must not wait for SYN
/// retransmission, which would be measured as a second of connect time.
const BACKLOG: i32 = 65_535;
/// Pause after a failed accept; without it, a lack of file descriptors would be a busy loop.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It misbehaves on purpose and must not be reachable; listen on 127.0.0.1 or `[::1]`.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The configuration cannot be carried out as written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused a socket, a timer or a thread; most often the port is taken.
    #[error("cannot listen on {addr}: {source}")]
    Io {
        /// Where it was to listen.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A running server on a thread of its own. Dropping it stops it.
#[derive(Debug)]
pub struct ReferenceServer {
    addr: SocketAddr,
    epoch_ns: u64,
    commands: mpsc::UnboundedSender<Command>,
    thread: Option<JoinHandle<Report>>,
    /// What was left when the thread ended.
    last_report: Report,
}

#[derive(Debug)]
enum Command {
    Report(reply::Sender<Report>),
    Stats(reply::Sender<Stats>),
    Stop,
}

impl ReferenceServer {
    /// Starts a server; when this returns, it accepts connections.
    ///
    /// # Errors
    /// If the address is not loopback, the configuration is unsound, or the system refuses.
    pub fn start(config: Config) -> Result<Self, StartError> {
        if !config.listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(config.listen));
        }
        config.validate()?;
        let addr = config.listen;
        Self::open(config).map_err(|source| StartError::Io { addr, source })
    }

    fn open(config: Config) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let parts = Parts::open(&runtime, &config)?;
        let addr = parts.listener.local_addr()?;
        let epoch_ns = now_ns();
        let (commands, inbox) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("refsrv".to_owned())
            .spawn(move || run(&runtime, parts, config, epoch_ns, inbox))?;
        let last_report = Report::default();
        Ok(Self { addr, epoch_ns, commands, thread: Some(thread), last_report })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The instant from which stall windows count.
    #[must_use]
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// The requests that have left the system, in order of arrival. Also after [`Self::stop`].
    ///
    /// Copying a long log holds up the server's thread: ask when no load is on.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        let report = self.ask(Command::Report);
        let mut log = report.map_or_else(|| self.last_report.log.clone(), |report| report.log);
        log.sort_unstable_by_key(|entry| entry.id);
        log
    }

    /// The counts so far. Also after [`Self::stop`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.ask(Command::Stats).unwrap_or(self.last_report.stats)
    }

    /// Closes every connection and ends the thread. Requests still held are not logged.
    pub fn stop(&mut self) {
        // It fails only if the thread has ended, which is what is wanted.
        let _ = self.commands.send(Command::Stop);
        if let Some(report) = self.thread.take().and_then(|thread| thread.join().ok()) {
            self.last_report = report;
        }
    }

    fn ask<T>(&self, question: impl FnOnce(reply::Sender<T>) -> Command) -> Option<T> {
        let (sender, receiver) = reply::channel();
        self.commands.send(question(sender)).ok()?;
        receiver.recv().ok()
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What has to be opened before the thread starts, so that a failure is the caller's to see.
struct Parts {
    listener: TcpListener,
    timer_fd: TimerFd,
}

impl Parts {
    fn open(runtime: &Runtime, config: &Config) -> io::Result<Self> {
        let _in_runtime = runtime.enter();
        let socket = Socket::new(Domain::for_address(config.listen), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&config.listen.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from_std(socket.into())?;
        Ok(Self { listener, timer_fd: open_timer_fd()? })
    }
}

fn run(
    runtime: &Runtime,
    parts: Parts,
    config: Config,
    epoch_ns: u64,
    inbox: mpsc::UnboundedReceiver<Command>,
) -> Report {
    let timer = Timer::new(parts.timer_fd, config.spin_ns);
    let shared = Rc::new(Shared::new(config, timer, epoch_ns));
    let tasks = LocalSet::new();
    let (driver, acceptor) = (Rc::clone(&shared), Rc::clone(&shared));
    tasks.spawn_local(async move { driver.timer.drive().await });
    tasks.spawn_local(accept(parts.listener, acceptor));
    tasks.block_on(runtime, obey(inbox, &shared));
    // Dropping the tasks closes the listener and every connection.
    drop(tasks);
    shared.report()
}

/// Answers questions until told to stop, or until nobody is left to tell.
async fn obey(mut inbox: mpsc::UnboundedReceiver<Command>, shared: &Shared) {
    while let Some(command) = inbox.recv().await {
        // Who does not wait for the reply needs none.
        match command {
            Command::Report(sender) => drop(sender.send(shared.report())),
            Command::Stats(sender) => drop(sender.send(shared.stats())),
            Command::Stop => return,
        }
    }
}

async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    let fast_answers = Rc::new(FastAnswers::new(&shared.config.body));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            shared.timer.sleep_until(now_ns() + ACCEPT_PAUSE_NS).await;
            continue;
        };
        shared.count(|stats| stats.connections += 1);
        // It fails only if the client is gone already.
        let _ = stream.set_nodelay(true);
        if shared.config.fast {
            spawn_local(fast::serve(stream, Rc::clone(&shared), Rc::clone(&fast_answers)));
        } else {
            spawn_local(connection::serve(stream, Rc::clone(&shared)));
        }
    }
}
