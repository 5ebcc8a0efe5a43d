//! An HTTP/2 server that works on single frames, counts streams and acts as a test decides.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the server waits for frames before its next actions.
const READ_TIMEOUT: Duration = Duration::from_millis(2);

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

/// A stream that is open at the server.
#[derive(Clone, Copy, Debug)]
pub struct OpenStream {
    pub id: u32,
    pub since: Instant,
    pub is_request_complete: bool,
}

/// An action of the server on a connection. The numbers are stream IDs, except for [`Self::Ping`].
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Respond(u32),
    Reset(u32),
    /// Sends this many PING frames.
    Ping(usize),
    /// Sends GOAWAY with this last stream.
    GoAway(u32),
    Close,
}

/// Counters over all connections.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub connections: u64,
    pub requests: u64,
    pub responses: u64,
    pub reset_by_server: u64,
    pub reset_by_client: u64,
    /// Streams that the server ended with GOAWAY or by closing the connection.
    pub cut_off: u64,
    /// Highest number of concurrent streams on one connection.
    pub max_streams: usize,
    /// Highest total number of concurrent streams.
    pub max_total_streams: usize,
    streams: usize,
}

/// Chooses the next actions, given the open streams and whether no data has arrived for
/// [`READ_TIMEOUT`].
pub trait Behavior: Fn(&[OpenStream], bool) -> Vec<Action> + Send + Sync + 'static {}
impl<F: Fn(&[OpenStream], bool) -> Vec<Action> + Send + Sync + 'static> Behavior for F {}

/// The server; runs until it is dropped.
pub struct StreamServer {
    pub address: SocketAddr,
    counters: Arc<Mutex<Counters>>,
    stop: Arc<AtomicBool>,
}

impl StreamServer {
    /// `stream_limit`: the limit on streams per connection that the server announces, if any.
    pub fn start(stream_limit: Option<u32>, behavior: impl Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counters: Arc<Mutex<Counters>> = Arc::default();
        let stop: Arc<AtomicBool> = Arc::default();
        let (shared, is_stopped, behavior) =
            (Arc::clone(&counters), Arc::clone(&stop), Arc::new(behavior));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (counters, is_stopped, behavior) = (
                    Arc::clone(&shared),
                    Arc::clone(&is_stopped),
                    Arc::clone(&behavior),
                );
                thread::spawn(move || {
                    let mut peer = Peer::new(stream, counters);
                    // An error is expected: the client or an action ends the connection.
                    let _ = peer.serve(stream_limit, &*behavior, &is_stopped);
                    peer.discard_streams();
                });
            }
        });

        Self {
            address,
            counters,
            stop,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn counters(&self) -> Counters {
        lock(&self.counters).clone()
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes up the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(counters: &Mutex<Counters>) -> MutexGuard<'_, Counters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's side of one connection.
struct Peer {
    stream: TcpStream,
    received: Vec<u8>,
    has_preface: bool,
    open: Vec<OpenStream>,
    counters: Arc<Mutex<Counters>>,
}

impl Peer {
    fn new(stream: TcpStream, counters: Arc<Mutex<Counters>>) -> Self {
        lock(&counters).connections += 1;
        Self {
            stream,
            received: Vec::new(),
            has_preface: false,
            open: Vec::new(),
            counters,
        }
    }

    fn serve(
        &mut self,
        stream_limit: Option<u32>,
        behavior: &impl Behavior,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        self.stream.set_read_timeout(Some(READ_TIMEOUT))?;
        self.stream.set_nodelay(true)?;
        let mut settings = setting(INITIAL_WINDOW_SIZE, WINDOW_BYTES);
        if let Some(streams) = stream_limit {
            settings.extend(setting(MAX_CONCURRENT_STREAMS, streams));
        }
        self.send(SETTINGS, 0, 0, &settings)?;
        let more_bytes = WINDOW_BYTES - DEFAULT_WINDOW_BYTES;
        self.send(WINDOW_UPDATE, 0, 0, &more_bytes.to_be_bytes())?;

        while !stop.load(Ordering::Relaxed) {
            let is_quiet = !self.receive()?;
            for action in behavior(&self.open, is_quiet) {
                self.perform(action)?;
            }
        }
        Ok(())
    }

    /// Handles the data that arrives within [`READ_TIMEOUT`]; returns whether there was any.
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
            self.handle_frame(kind, flags, id)?;
        }
        Ok(true)
    }

    /// Removes the next complete frame; returns its type, flags and stream.
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

    fn handle_frame(&mut self, kind: u8, flags: u8, id: u32) -> io::Result<()> {
        match kind {
            HEADERS => {
                self.open.push(OpenStream {
                    id,
                    since: Instant::now(),
                    is_request_complete: flags & END_STREAM != 0,
                });
                let mut counters = lock(&self.counters);
                counters.requests += 1;
                counters.streams += 1;
                counters.max_streams = counters.max_streams.max(self.open.len());
                counters.max_total_streams = counters.max_total_streams.max(counters.streams);
            }
            DATA if flags & END_STREAM != 0 => {
                let sent = self.open.iter_mut().find(|open| open.id == id);
                sent.into_iter()
                    .for_each(|open| open.is_request_complete = true);
            }
            RST_STREAM if self.end_stream(id) => lock(&self.counters).reset_by_client += 1,
            SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[])?,
            _ => {}
        }
        Ok(())
    }

    fn perform(&mut self, action: Action) -> io::Result<()> {
        match action {
            Action::Respond(id) if self.end_stream(id) => {
                // Count the response before the client can receive it.
                lock(&self.counters).responses += 1;
                let mut response = frame(HEADERS, END_HEADERS, id, STATUS_200);
                response.extend(frame(DATA, END_STREAM, id, b"hello"));
                self.stream.write_all(&response)
            }
            Action::Reset(id) if self.end_stream(id) => {
                lock(&self.counters).reset_by_server += 1;
                self.send(RST_STREAM, 0, id, &CANCEL.to_be_bytes())
            }
            Action::Ping(count) => {
                let pings = frame(PING, 0, 0, &[0; 8]).repeat(count);
                self.stream.write_all(&pings)
            }
            Action::GoAway(last) => {
                let open_ids: Vec<u32> = self.open.iter().map(|open| open.id).collect();
                for id in open_ids.into_iter().filter(|id| *id > last) {
                    self.end_stream(id);
                    lock(&self.counters).cut_off += 1;
                }
                let payload = [last.to_be_bytes(), [0; 4]].concat();
                self.send(GOAWAY, 0, 0, &payload)
            }
            Action::Close => {
                lock(&self.counters).cut_off += self.open.len() as u64;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Action::Respond(_) | Action::Reset(_) => Ok(()),
        }
    }

    /// Ends a stream; returns whether it was open.
    fn end_stream(&mut self, id: u32) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.id != id);
        let was_open = self.open.len() < before;
        lock(&self.counters).streams -= usize::from(was_open);
        was_open
    }

    fn discard_streams(&mut self) {
        lock(&self.counters).streams -= self.open.len();
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
