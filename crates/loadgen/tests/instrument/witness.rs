//! A small server that records its requests and sends the responses of a test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use loadgen::clock::monotonic_ns;

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub connection: usize,
    pub arrive_ns: u64,
    /// Method and path.
    pub line: String,
    pub head: String,
    pub body: String,
}

impl ReceivedRequest {
    /// The values of the header fields with this name.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }
}

/// A server with one thread per connection; listens until it is dropped.
pub struct WitnessServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl WitnessServer {
    /// `respond` returns the response; if it is empty, the server closes the connection.
    pub fn start(respond: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stop) = (
            Arc::<Mutex<Vec<ReceivedRequest>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (shared, is_stopped, respond) =
            (Arc::clone(&requests), Arc::clone(&stop), Arc::new(respond));
        let acceptor = std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, respond) = (Arc::clone(&shared), Arc::clone(&respond));
                let Ok(stream) = stream else { continue };
                // The thread ends when the client closes the connection.
                std::thread::spawn(move || serve(&stream, connection, &shared, &*respond));
            }
        });

        Self {
            address,
            requests,
            stop,
            acceptor: Some(acceptor),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for WitnessServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes up the accepting thread.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            drop(acceptor.join());
        }
    }
}

/// A response with this status, body and header fields, each with its line ending.
pub fn response(status: u16, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn serve(
    stream: &TcpStream,
    connection: usize,
    requests: &Mutex<Vec<ReceivedRequest>>,
    respond: &dyn Fn(&ReceivedRequest) -> String,
) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader, connection) {
        let bytes = respond(&request);
        requests.lock().unwrap().push(request);
        let mut writer = stream;
        if bytes.is_empty() || writer.write_all(bytes.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>, connection: usize) -> Option<ReceivedRequest> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }

    let arrive_ns = monotonic_ns();
    let line = head.lines().next()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut request = ReceivedRequest {
        connection,
        arrive_ns,
        line,
        head,
        body: String::new(),
    };
    let length = request
        .fields("content-length")
        .first()
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).unwrap();

    Some(request)
}
