//! Fast mode: the same response to every blank line, and nothing else.
//!
//! It measures the maximum rate of a load generator, so each request must cost as little as
//! possible: one `read` and one `write` on a bare `epoll`, no runtime, no allocation, no clock.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use socket2::Socket;
use tokio::sync::mpsc;

use crate::command::{Command, Ending, execute};
use crate::response::{Framing, Layout, Response};
use crate::shared::{Report, Stats};

/// Also the maximum number of events per wait.
const EXPECTED_CONNECTIONS: usize = 1024;
const RECEIVE_BYTES: usize = 64 * 1024;
/// Number of responses laid out side by side for one write.
const BATCH: usize = 64;
/// Pause after a failed accept; otherwise, running out of file descriptors would cause a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Tokens of events that do not concern a connection.
const LISTENER: u64 = u64::MAX;
const COMMANDS: u64 = u64::MAX - 1;

/// Wakes the loop for a command. Cloned into the handle that sends commands.
pub(crate) type Waker = Arc<OwnedFd>;

/// The server of fast mode, opened but not yet running.
#[derive(Debug)]
pub(crate) struct FastServer {
    epoll: OwnedFd,
    listener: Socket,
    waker: Waker,
    responses: Responses,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    received: Vec<u8>,
    pieces: Pieces,
    stats: Stats,
}

impl FastServer {
    pub(crate) fn open(listener: Socket, body: &[u8]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        epoll::add(&epoll, &waker, EventData::new_u64(COMMANDS), EventFlags::IN)?;

        Ok(Self {
            epoll,
            listener,
            waker,
            responses: Responses::new(body),
            connections: Vec::with_capacity(EXPECTED_CONNECTIONS),
            free: Vec::new(),
            received: vec![0; RECEIVE_BYTES],
            pieces: Pieces::default(),
            stats: Stats::default(),
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        Arc::clone(&self.waker)
    }

    /// Serves until it is stopped, or until no handle is left.
    pub(crate) fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) -> Report {
        let mut events = Vec::with_capacity(EXPECTED_CONNECTIONS);
        loop {
            events.clear();
            // A signal is not a reason to stop; nothing else can fail here.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for Event { flags, data } in events.drain(..) {
                match data.u64() {
                    LISTENER => self.accept(),
                    COMMANDS if self.handle_commands(&mut inbox) == Ending::Stop => {
                        return self.report();
                    }
                    COMMANDS => {}
                    // A number that was the length of a Vec fits.
                    connection => self.serve(connection as usize, flags),
                }
            }
        }
    }

    fn handle_commands(&self, inbox: &mut mpsc::UnboundedReceiver<Command>) -> Ending {
        // This only clears the readiness; the command channel has the count.
        let _ = read(&self.waker, &mut [0; 8]);
        loop {
            match inbox.try_recv() {
                Ok(command) => {
                    if execute(command, self.stats, || self.report()) == Ending::Stop {
                        return Ending::Stop;
                    }
                }
                Err(mpsc::error::TryRecvError::Empty) => return Ending::Continue,
                Err(mpsc::error::TryRecvError::Disconnected) => return Ending::Stop,
            }
        }
    }

    fn report(&self) -> Report {
        Report {
            log: Vec::new(),
            stats: self.stats,
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.add(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return std::thread::sleep(ACCEPT_PAUSE),
            }
        }
    }

    fn add(&mut self, socket: Socket) {
        self.stats.connections += 1;
        // A Unix socket has no such option, and if TCP rejects it the client is already gone.
        let _ = socket.set_tcp_nodelay(true);
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        // Edge-triggered: the kernel need not check for more after each response.
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let is_watched = socket.set_nonblocking(true).is_ok()
            && epoll::add(
                &self.epoll,
                &socket,
                EventData::new_u64(index as u64),
                interest,
            )
            .is_ok();

        if is_watched {
            self.connections[index] = Some(Connection {
                socket: socket.into(),
                pending_bytes: 0,
                matched: 0,
            });
        } else {
            self.free.push(index);
        }
    }

    fn serve(&mut self, index: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };

        let mut exchange = Exchange {
            received: &mut self.received,
            pieces: &mut self.pieces,
            responses: &self.responses,
            stats: &mut self.stats,
        };
        let may_have_ended =
            flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);

        if connection.exchange(&mut exchange, may_have_ended) == Ending::Stop {
            // Dropping it closes it and removes it from the epoll.
            self.connections[index] = None;
            self.free.push(index);
        }
    }
}

/// Buffers that all connections of a server share.
struct Exchange<'a> {
    received: &'a mut [u8],
    pieces: &'a mut Pieces,
    responses: &'a Responses,
    stats: &'a mut Stats,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// Bytes of responses that the kernel has not accepted yet.
    pending_bytes: usize,
    /// See [`count_blank_lines`].
    matched: u8,
}

impl Connection {
    /// Reads and responds until there is nothing to read or the client does not read.
    fn exchange(&mut self, shared: &mut Exchange<'_>, may_have_ended: bool) -> Ending {
        loop {
            if self.pending_bytes > 0 && self.write_pending(shared.responses) == Ending::Stop {
                return Ending::Stop;
            }
            if self.pending_bytes > 0 {
                return Ending::Continue;
            }
            let count = match read(&self.socket, &mut *shared.received) {
                Ok(0) => return Ending::Stop,
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ending::Continue,
                Err(_) => return Ending::Stop,
            };
            let requests = shared
                .pieces
                .count(&mut self.matched, &shared.received[..count]);
            shared.stats.arrivals += requests as u64;
            self.pending_bytes = requests * shared.responses.response_bytes;
            let is_drained = count < shared.received.len() && !may_have_ended;
            if is_drained {
                return self.write_pending(shared.responses);
            }
        }
    }

    /// Writes pending bytes as far as the kernel accepts them; an edge reports when it accepts
    /// more.
    fn write_pending(&mut self, responses: &Responses) -> Ending {
        while self.pending_bytes > 0 {
            match write(&self.socket, responses.next(self.pending_bytes)) {
                Ok(count) => self.pending_bytes -= count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ending::Continue,
                Err(_) => return Ending::Stop,
            }
        }
        Ending::Continue
    }
}

/// The bytes of one response, and of a whole batch.
#[derive(Debug)]
struct Responses {
    batch: Vec<u8>,
    response_bytes: usize,
}

impl Responses {
    fn new(body: &[u8]) -> Self {
        let response = Response::lay_out(&Layout {
            status: 200,
            body,
            framing: Framing::ContentLength,
            stamps: None,
            connection: None,
            head_only: false,
        });
        Self {
            batch: response.bytes().repeat(BATCH),
            response_bytes: response.bytes().len(),
        }
    }

    /// The bytes to write next, with `pending_bytes` remaining until the end of the last response.
    fn next(&self, pending_bytes: usize) -> &[u8] {
        let written =
            (self.response_bytes - pending_bytes % self.response_bytes) % self.response_bytes;
        &self.batch[written..self.batch.len().min(written + pending_bytes)]
    }
}

/// Counts requests in received bytes. A client usually repeats the same request, so a piece that
/// equals the previous one is not scanned again.
#[derive(Debug, Default)]
struct Pieces {
    last: Vec<u8>,
    requests_in_last: usize,
}

impl Pieces {
    fn count(&mut self, matched: &mut u8, piece: &[u8]) -> usize {
        if *matched == 0 && piece == self.last {
            return self.requests_in_last;
        }

        let was_between_requests = *matched == 0;
        let requests = count_blank_lines(matched, piece);
        if was_between_requests && *matched == 0 {
            self.last.clear();
            self.last.extend_from_slice(piece);
            self.requests_in_last = requests;
        }

        requests
    }
}

/// Counts blank lines in a stream split anywhere; `matched` is how many bytes of CR LF CR LF were
/// seen last.
fn count_blank_lines(matched: &mut u8, piece: &[u8]) -> usize {
    let mut count = 0;
    for &byte in piece {
        *matched = match (*matched, byte) {
            (0 | 2, b'\r') | (1, b'\n') => *matched + 1,
            (3, b'\n') => {
                count += 1;
                0
            }
            (_, b'\r') => 1,
            _ => 0,
        };
    }

    count
}

/// Wakes the loop for a command.
pub(crate) fn wake(waker: &Waker) {
    // It fails only if 2^64 commands are waiting.
    let _ = write(waker.as_fd(), &1_u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_counted_wherever_the_stream_is_cut() {
        let stream = b"GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\r\n\r\n\r\n\r\n";
        for cut in 0..=stream.len() {
            let (first, second) = stream.split_at(cut);
            let mut pieces = Pieces::default();
            let mut matched = 0;
            let count = pieces.count(&mut matched, first) + pieces.count(&mut matched, second);
            assert_eq!(count, 3, "cut at {cut}");
        }
    }

    #[test]
    fn a_repeated_piece_is_counted_again() {
        let mut pieces = Pieces::default();
        let mut matched = 0;
        let counts =
            [b"a\r\n\r\nb\r\n\r\n".as_slice(); 3].map(|piece| pieces.count(&mut matched, piece));

        assert_eq!(counts, [2, 2, 2]);

        // Equal pieces are counted differently if they start within a blank line.
        let halves = [b"\r\n".as_slice(), b"\r\n", b"\r\n", b"\r\n"];
        assert_eq!(
            halves.map(|piece| pieces.count(&mut matched, piece)),
            [0, 1, 0, 1]
        );
    }

    #[test]
    fn a_partial_write_is_continued() {
        let responses = Responses::new(b"hello");
        let mut pending_bytes = 100 * responses.response_bytes;
        let mut sent = Vec::new();

        while pending_bytes > 0 {
            let next = responses.next(pending_bytes);
            let taken = &next[..next.len().min(7)];
            sent.extend_from_slice(taken);
            pending_bytes -= taken.len();
        }

        assert_eq!(
            sent,
            responses.batch[..responses.response_bytes].repeat(100)
        );
    }
}
