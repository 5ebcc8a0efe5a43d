//! A small server that sends responses given by a test and records its requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use loadgen::clock::monotonic_ns;

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub connection: usize,
    pub arrive_ns: u64,
    /// Method and path.
    pub line: String,
    pub head: String,
    pub body: String,
}

impl Seen {
    /// The values of the header fields with this name.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }
}

/// Listens until it is dropped; one thread for each connection.
pub struct WitnessServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl WitnessServer {
    /// `answer` returns the bytes of the response; if there are none, the connection is closed.
    pub fn start(answer: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, is_over) = (
            Arc::<Mutex<Vec<Seen>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (log, ends, answer) = (Arc::clone(&seen), Arc::clone(&is_over), Arc::new(answer));
        let accepting = std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                let Ok(stream) = stream else { continue };
                // It ends with its connection, which the client closes at the end of its load.
                std::thread::spawn(move || serve(&stream, connection, &log, &*answer));
            }
        });
        Self {
            address,
            seen,
            is_over,
            accepting: Some(accepting),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All requests so far, in the order of their arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for WitnessServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

/// A response with this status, these header fields (each with its line ending) and this body.
pub fn answer(status: u16, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn serve(
    stream: &TcpStream,
    connection: usize,
    log: &Mutex<Vec<Seen>>,
    answer: &dyn Fn(&Seen) -> String,
) {
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read_request(&mut reader, connection) {
        let bytes = answer(&seen);
        log.lock().unwrap().push(seen);
        let mut writer = stream;
        if bytes.is_empty() || writer.write_all(bytes.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>, connection: usize) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let arrive_ns = monotonic_ns();
    let line = head.lines().next()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut seen = Seen {
        connection,
        arrive_ns,
        line,
        head,
        body: String::new(),
    };
    let length = seen
        .fields("content-length")
        .first()
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).unwrap();
    Some(seen)
}
