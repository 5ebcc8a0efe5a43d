//! Small servers with one thread per connection, for protocols that the reference server does not
//! support.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Connections and requests that a server received.
#[derive(Default)]
pub struct Counters {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    /// Number of connections from each address.
    pub peers: Mutex<BTreeMap<IpAddr, u64>>,
}

/// A server with one thread per connection; listens until it is dropped.
pub struct ThreadedServer {
    pub address: SocketAddr,
    pub counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
}

impl ThreadedServer {
    /// Calls `serve` in a new thread for each connection.
    pub fn start(serve: impl Fn(TcpStream, &Counters) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (counters, stop) = (
            Arc::new(Counters::default()),
            Arc::new(AtomicBool::new(false)),
        );
        let (shared, is_stopped, serve) =
            (Arc::clone(&counters), Arc::clone(&stop), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                shared.connections.fetch_add(1, Ordering::Relaxed);
                *shared
                    .peers
                    .lock()
                    .unwrap()
                    .entry(stream.peer_addr().unwrap().ip())
                    .or_default() += 1;
                let (serve, counters) = (Arc::clone(&serve), Arc::clone(&shared));
                thread::spawn(move || serve(stream, &counters));
            }
        });

        Self {
            address,
            counters,
            stop,
        }
    }

    pub fn connections(&self) -> u64 {
        self.counters.connections.load(Ordering::Relaxed)
    }
}

impl Drop for ThreadedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

/// A server on a Unix socket that responds to every request until it is dropped.
pub struct UnixServer {
    pub path: PathBuf,
    pub counters: Arc<Counters>,
}

impl UnixServer {
    pub fn start(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}.sock", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let counters = Arc::clone(&shared);
                thread::spawn(move || respond_to_all(&mut stream, &counters, b"hello"));
            }
        });

        Self { path, counters }
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Responds to requests until the client closes the connection.
pub fn respond_to_all(stream: &mut (impl Read + Write), counters: &Counters, body: &[u8]) {
    while let Some(head) = read_request(stream) {
        counters.requests.fetch_add(1, Ordering::Relaxed);
        let is_last = head.contains("connection: close");
        let close = if is_last { "connection: close\r\n" } else { "" };
        let mut response = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{close}\r\n",
            body.len()
        )
        .into_bytes();
        response.extend_from_slice(body);

        if stream
            .write_all(&response)
            .and_then(|()| stream.flush())
            .is_err()
            || is_last
        {
            return;
        }
    }
}

/// Reads one request including its body; returns its head in lower case.
pub fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let head_bytes = loop {
        if let Some(position) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break position + 4;
        }
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut missing =
        length.map_or(0, |length| length.parse().unwrap()) - (bytes.len() - head_bytes);
    while missing > 0 {
        missing -= stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
    }

    Some(head)
}
