//! The server's handle: start, query and stop. Its thread and its listener.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc as reply;
use std::thread::JoinHandle;

use socket2::Socket;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use crate::arrival::request_timestamps;
use crate::clock::now_ns;
use crate::command::{Command, Ending, execute};
use crate::config::Config;
use crate::connection;
use crate::endpoint::Endpoint;
use crate::error::ConfigError;
use crate::fast::{FastServer, Waker, wake};
use crate::log::LogEntry;
use crate::shared::{Report, Shared, Stats};
use crate::timer::{Timer, TimerFd, open_timer_fd};

/// Pause after a failed accept; otherwise, running out of file descriptors would cause a busy loop.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The server misbehaves on purpose and must not be reachable from other machines; listen on
    /// 127.0.0.1 or `[::1]`.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The configuration cannot be carried out as written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused a socket, a timer or a thread; usually the port is taken, or the path of
    /// the Unix socket exists.
    #[error("cannot listen on {endpoint}: {source}")]
    Io {
        /// The configured endpoint.
        endpoint: Endpoint,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A running server in its own thread. Dropping it stops it.
#[derive(Debug)]
pub struct ReferenceServer {
    endpoint: Endpoint,
    epoch_ns: u64,
    commands: mpsc::UnboundedSender<Command>,
    /// Wakes the thread for a command, if the channel itself does not.
    waker: Option<Waker>,
    thread: Option<JoinHandle<Report>>,
    /// The state when the thread ended.
    last_report: Report,
}

impl ReferenceServer {
    /// Starts a server; when this returns, it accepts connections.
    ///
    /// # Errors
    /// If the address is not loopback, the configuration is invalid, or the system refuses.
    pub fn start(config: Config) -> Result<Self, StartError> {
        if let Some(addr) = config.listen.outside_loopback() {
            return Err(StartError::NotLoopback(addr));
        }
        config.validate()?;

        let endpoint = config.listen.clone();
        Self::open(config).map_err(|source| StartError::Io { endpoint, source })
    }

    fn open(config: Config) -> io::Result<Self> {
        let (listener, endpoint) = config.listen.listen()?;
        if config.log_queued {
            request_timestamps(&listener)?;
        }

        let epoch_ns = now_ns();
        let (commands, inbox) = mpsc::unbounded_channel();
        let builder = std::thread::Builder::new().name("refsrv".to_owned());
        let (thread, waker) = if config.fast {
            let server = FastServer::open(listener, &config.body)?;
            let waker = server.waker();
            (builder.spawn(move || server.run(inbox))?, Some(waker))
        } else {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            let parts = Parts::open(&runtime, listener)?;
            (
                builder.spawn(move || run(&runtime, parts, config, epoch_ns, inbox))?,
                None,
            )
        };
        let last_report = Report::default();

        Ok(Self {
            endpoint,
            epoch_ns,
            commands,
            waker,
            thread: Some(thread),
            last_report,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address on which it listens.
    ///
    /// # Panics
    /// If it listens on a Unix socket; use [`Self::endpoint`] instead.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match &self.endpoint {
            Endpoint::Tcp(addr) => *addr,
            Endpoint::Unix(path) => {
                panic!("{} is a Unix socket: it has no address", path.display())
            }
        }
    }

    /// The time from which stall windows count.
    #[must_use]
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// The requests that have left the system, in order of arrival. Also after [`Self::stop`].
    ///
    /// Copying a long log blocks the server's thread: call it when there is no load.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        let report = self.query(Command::Report);
        let mut log = report.map_or_else(|| self.last_report.log.clone(), |report| report.log);
        log.sort_unstable_by_key(|entry| entry.id);
        log
    }

    /// The counts so far. Also after [`Self::stop`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.query(Command::Stats).unwrap_or(self.last_report.stats)
    }

    /// Closes every connection and ends the thread. Requests still held are not logged.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };

        // It fails only if the thread has already ended, which is the goal.
        let _ = self.send(Command::Stop);
        if let Ok(report) = thread.join() {
            self.last_report = report;
        }

        if let Endpoint::Unix(path) = &self.endpoint {
            // It may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }

    fn query<T>(&self, command: impl FnOnce(reply::Sender<T>) -> Command) -> Option<T> {
        let (sender, receiver) = reply::channel();
        self.send(command(sender))?;
        receiver.recv().ok()
    }

    fn send(&self, command: Command) -> Option<()> {
        self.commands.send(command).ok()?;
        self.waker.iter().for_each(wake);
        Some(())
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Everything that is opened before the thread starts, so that failures reach the caller.
struct Parts {
    listener: Listener,
    timer_fd: TimerFd,
}

impl Parts {
    fn open(runtime: &Runtime, socket: Socket) -> io::Result<Self> {
        let _in_runtime = runtime.enter();
        let listener = if socket.local_addr()?.is_unix() {
            Listener::Unix(UnixListener::from_std(socket.into())?)
        } else {
            Listener::Tcp(TcpListener::from_std(socket.into())?)
        };
        Ok(Self {
            listener,
            timer_fd: open_timer_fd()?,
        })
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Accepts one connection and starts to serve it.
    async fn accept(&self, shared: &Rc<Shared>) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // It fails only if the client is already gone.
                let _ = stream.set_nodelay(true);
                spawn_local(connection::serve(stream, Rc::clone(shared)));
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                spawn_local(connection::serve(stream, Rc::clone(shared)));
            }
        }
        Ok(())
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
    tasks.block_on(runtime, handle_commands(inbox, &shared));
    // Dropping the tasks closes the listener and every connection.
    drop(tasks);

    shared.report()
}

/// Handles commands until it is stopped, or until no handle is left.
async fn handle_commands(mut inbox: mpsc::UnboundedReceiver<Command>, shared: &Shared) {
    while let Some(command) = inbox.recv().await {
        if execute(command, shared.stats(), || shared.report()) == Ending::Stop {
            return;
        }
    }
}

async fn accept(listener: Listener, shared: Rc<Shared>) {
    loop {
        match listener.accept(&shared).await {
            Ok(()) => shared.count(|stats| stats.connections += 1),
            Err(_) => shared.timer.sleep_until(now_ns() + ACCEPT_PAUSE_NS).await,
        }
    }
}
