//! Small servers over any byte stream, for protocols that the reference server does not support.
//! One thread per connection.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a server received.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub peers: Mutex<BTreeMap<IpAddr, u64>>,
}

/// A listener whose connections are each served by a thread, until it is dropped.
pub struct Scripted {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    is_over: Arc<AtomicBool>,
}

impl Scripted {
    /// Calls `serve` for each connection.
    pub fn start(serve: impl Fn(TcpStream, &Seen) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, is_over) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
        let (theirs, over, serve) = (Arc::clone(&seen), Arc::clone(&is_over), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                theirs.connections.fetch_add(1, Ordering::Relaxed);
                *theirs
                    .peers
                    .lock()
                    .unwrap()
                    .entry(stream.peer_addr().unwrap().ip())
                    .or_default() += 1;
                let (serve, seen) = (Arc::clone(&serve), Arc::clone(&theirs));
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Self {
            address,
            seen,
            is_over,
        }
    }

    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

/// A Unix socket whose connections get responses, until it is dropped.
pub struct UnixServer {
    pub path: PathBuf,
    pub seen: Arc<Seen>,
}

impl UnixServer {
    pub fn start(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}.sock", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let seen = Arc::new(Seen::default());
        let theirs = Arc::clone(&seen);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                theirs.connections.fetch_add(1, Ordering::Relaxed);
                let seen = Arc::clone(&theirs);
                thread::spawn(move || answer_all(&mut stream, &seen, b"hello"));
            }
        });
        Self { path, seen }
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Responds to requests until the client closes the connection.
pub fn answer_all(stream: &mut (impl Read + Write), seen: &Seen, body: &[u8]) {
    while let Some(head) = read_request(stream) {
        seen.requests.fetch_add(1, Ordering::Relaxed);
        let is_last = head.contains("connection: close");
        let close = if is_last { "connection: close\r\n" } else { "" };
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{close}\r\n",
            body.len()
        )
        .into_bytes();
        answer.extend_from_slice(body);
        if stream
            .write_all(&answer)
            .and_then(|()| stream.flush())
            .is_err()
            || is_last
        {
            return;
        }
    }
}

/// Reads one request with its body; its head in lower case.
pub fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let head_ends = loop {
        if let Some(place) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break place + 4;
        }
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_ends]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut missing =
        length.map_or(0, |length| length.parse().unwrap()) - (bytes.len() - head_ends);
    while missing > 0 {
        missing -= stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
    }
    Some(head)
}
