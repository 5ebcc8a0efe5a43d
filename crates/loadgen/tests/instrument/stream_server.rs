//! An HTTP/2 server that handles single frames, counts streams and responds as a test requests.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server waits for frames before it acts again.
const TICK: Duration = Duration::from_millis(2);

const PREFACE_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const MAX_CONCURRENT_STREAMS: u8 = 3;
const INITIAL_WINDOW_SIZE: u8 = 4;
/// Window of every stream and of the connection, so that only the socket limits what a client
/// sends.
const WINDOW_BYTES: u32 = 0x7fff_ffff;
const DEFAULT_WINDOW_BYTES: u32 = 0xffff;
const CANCEL: u32 = 8;

/// `:status: 200` from the static table.
const STATUS_200: &[u8] = &[0x88];

/// A stream that the server has not ended.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub id: u32,
    pub since: Instant,
    /// Whether its request is complete.
    pub is_whole: bool,
}

/// What a server does next on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Answer(u32),
    Reset(u32),
    /// Sends this many PING frames.
    Ping(usize),
    /// Announces that later streams than this one are not served.
    GoAway(u32),
    Close,
}

/// What a server has received and sent, over all connections.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub connections: u64,
    pub requests: u64,
    pub answered: u64,
    pub reset_by_server: u64,
    pub reset_by_client: u64,
    /// Streams that a GOAWAY or a close of the server has ended.
    pub cut_off: u64,
    /// Highest number of concurrent streams on one connection.
    pub max_streams: usize,
    /// Highest number of concurrent streams on all connections.
    pub max_streams_in_all: usize,
    streams: usize,
}

/// Chooses the next actions, given the open streams and whether no frame has arrived for a while.
pub trait Behavior: Fn(&[Open], bool) -> Vec<Act> + Send + Sync + 'static {}
impl<F: Fn(&[Open], bool) -> Vec<Act> + Send + Sync + 'static> Behavior for F {}

/// Runs until it is dropped.
pub struct StreamServer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    is_over: Arc<AtomicBool>,
}

impl StreamServer {
    /// `allowed`: the limit on streams per connection that the server announces, if any.
    pub fn start(allowed: Option<u32>, behavior: impl Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let is_over: Arc<AtomicBool> = Arc::default();
        let (shared, end, behavior) = (Arc::clone(&seen), Arc::clone(&is_over), Arc::new(behavior));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let (seen, end, behavior) =
                    (Arc::clone(&shared), Arc::clone(&end), Arc::clone(&behavior));
                thread::spawn(move || {
                    let mut peer = Peer::new(stream, seen);
                    // An error is expected: the client or the test ends the connection.
                    let _ = peer.serve(allowed, &*behavior, &end);
                    peer.forget_streams();
                });
            }
        });
        Self {
            address,
            seen,
            is_over,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection.
struct Peer {
    stream: TcpStream,
    received: Vec<u8>,
    has_preface: bool,
    open: Vec<Open>,
    seen: Arc<Mutex<Seen>>,
}

impl Peer {
    fn new(stream: TcpStream, seen: Arc<Mutex<Seen>>) -> Self {
        lock(&seen).connections += 1;
        Self {
            stream,
            received: Vec::new(),
            has_preface: false,
            open: Vec::new(),
            seen,
        }
    }

    fn serve(
        &mut self,
        allowed: Option<u32>,
        behavior: &impl Behavior,
        end: &AtomicBool,
    ) -> io::Result<()> {
        self.stream.set_read_timeout(Some(TICK))?;
        self.stream.set_nodelay(true)?;
        let mut settings = setting(INITIAL_WINDOW_SIZE, WINDOW_BYTES);
        if let Some(streams) = allowed {
            settings.extend(setting(MAX_CONCURRENT_STREAMS, streams));
        }
        self.send(SETTINGS, 0, 0, &settings)?;
        let more_bytes = WINDOW_BYTES - DEFAULT_WINDOW_BYTES;
        self.send(WINDOW_UPDATE, 0, 0, &more_bytes.to_be_bytes())?;

        while !end.load(Ordering::Relaxed) {
            let is_quiet = !self.receive()?;
            for act in behavior(&self.open, is_quiet) {
                self.perform(act)?;
            }
        }
        Ok(())
    }

    /// Receives the data that arrives within a tick; returns whether there was any.
    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.received.extend(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }

        if !self.has_preface && self.received.len() >= PREFACE_BYTES {
            self.has_preface = true;
            self.received.drain(..PREFACE_BYTES);
        }
        while let Some((kind, flags, id)) = self.next_frame() {
            self.note(kind, flags, id)?;
        }
        Ok(true)
    }

    /// Type, flags and stream of the next whole frame.
    fn next_frame(&mut self) -> Option<(u8, u8, u32)> {
        let header = self.received.first_chunk::<FRAME_HEADER_BYTES>();
        let [high, middle, low, kind, flags, id @ ..] = *header.filter(|_| self.has_preface)?;
        let payload_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
        let frame_bytes = FRAME_HEADER_BYTES + payload_bytes;
        if self.received.len() < frame_bytes {
            return None;
        }
        self.received.drain(..frame_bytes);
        Some((kind, flags, u32::from_be_bytes(id)))
    }

    fn note(&mut self, kind: u8, flags: u8, id: u32) -> io::Result<()> {
        match kind {
            HEADERS => {
                self.open.push(Open {
                    id,
                    since: Instant::now(),
                    is_whole: flags & END_STREAM != 0,
                });
                let mut seen = lock(&self.seen);
                seen.requests += 1;
                seen.streams += 1;
                seen.max_streams = seen.max_streams.max(self.open.len());
                seen.max_streams_in_all = seen.max_streams_in_all.max(seen.streams);
            }
            DATA if flags & END_STREAM != 0 => {
                let sent = self.open.iter_mut().find(|open| open.id == id);
                sent.into_iter().for_each(|open| open.is_whole = true);
            }
            RST_STREAM if self.end(id) => lock(&self.seen).reset_by_client += 1,
            SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[])?,
            _ => {}
        }
        Ok(())
    }

    fn perform(&mut self, act: Act) -> io::Result<()> {
        match act {
            Act::Answer(id) if self.end(id) => {
                // Counted before the client can receive the response.
                lock(&self.seen).answered += 1;
                let mut response = frame(HEADERS, END_HEADERS, id, STATUS_200);
                response.extend(frame(DATA, END_STREAM, id, b"hello"));
                self.stream.write_all(&response)
            }
            Act::Reset(id) if self.end(id) => {
                lock(&self.seen).reset_by_server += 1;
                self.send(RST_STREAM, 0, id, &CANCEL.to_be_bytes())
            }
            Act::Ping(count) => {
                let pings = frame(PING, 0, 0, &[0; 8]).repeat(count);
                self.stream.write_all(&pings)
            }
            Act::GoAway(last) => {
                let later: Vec<u32> = self.open.iter().map(|open| open.id).collect();
                for id in later.into_iter().filter(|id| *id > last) {
                    self.end(id);
                    lock(&self.seen).cut_off += 1;
                }
                let payload = [last.to_be_bytes(), [0; 4]].concat();
                self.send(GOAWAY, 0, 0, &payload)
            }
            Act::Close => {
                lock(&self.seen).cut_off += self.open.len() as u64;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Act::Answer(_) | Act::Reset(_) => Ok(()),
        }
    }

    /// Ends a stream; returns whether it was open.
    fn end(&mut self, id: u32) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.id != id);
        let is_ended = self.open.len() < before;
        lock(&self.seen).streams -= usize::from(is_ended);
        is_ended
    }

    fn forget_streams(&mut self) {
        lock(&self.seen).streams -= self.open.len();
    }

    fn send(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(kind, flags, id, payload))
    }
}

fn setting(name: u8, value: u32) -> Vec<u8> {
    [&[0, name][..], &value.to_be_bytes()].concat()
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    frame
}
