//! A server that ignores the content of requests and responds with given bytes, in given pieces.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the server keeps the connection open after an early response: longer than any client in
/// these tests waits.
const EARLY_HOLD: Duration = Duration::from_millis(400);

/// The response to one request.
#[derive(Clone, Debug, Default)]
pub struct ScriptedResponse {
    /// Each piece is sent as a separate segment.
    pub pieces: Vec<Vec<u8>>,
    /// Repeated forever, unless empty.
    pub endless: Vec<u8>,
    /// Whether the server then closes the connection.
    pub closes: bool,
    /// Whether the server responds without waiting for the end of the request's head.
    pub is_early: bool,
}

impl ScriptedResponse {
    /// A response of these bytes in one piece.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            pieces: vec![bytes.as_ref().to_vec()],
            ..Self::default()
        }
    }

    /// A response of these bytes, followed by `unit` until the client closes the connection.
    pub fn endless(bytes: &str, unit: &str) -> Self {
        // Large writes, so that the server can outrun its client.
        let endless = unit.repeat(10_000_usize.div_ceil(unit.len())).into_bytes();
        Self {
            endless,
            ..Self::of(bytes)
        }
    }

    /// A response of these bytes, after which the server closes the connection.
    pub fn closing(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            closes: true,
            ..Self::of(bytes)
        }
    }
}

/// Sends each response once, in order, and repeats the last one for all further requests.
pub struct ScriptedServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    pub fn start(responses: Vec<ScriptedResponse>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let script = Arc::new((responses, AtomicUsize::new(0)));
        let acceptor = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                let script = Arc::clone(&script);
                connections.push(std::thread::spawn(move || {
                    serve(&stream, &script.0, &script.1)
                }));
            }

            connections
                .into_iter()
                .for_each(|connection| connection.join().unwrap());
        });

        Self {
            address,
            stop,
            acceptor: Some(acceptor),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes up the acceptor. The threads of the connections end because the client has closed
        // its connections.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
    }
}

/// Serves one connection until either side closes it.
fn serve(mut stream: &TcpStream, responses: &[ScriptedResponse], next: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let is_early = responses.first().is_some_and(|response| response.is_early);
    while is_early || read_head(stream) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(response) = responses.get(number).or(responses.last()) else {
            return;
        };
        for (index, piece) in response.pieces.iter().enumerate() {
            if index > 0 {
                // Long enough for the client to read the previous piece separately.
                std::thread::sleep(Duration::from_micros(300));
            }
            if stream.write_all(piece).is_err() {
                return;
            }
        }

        while !response.endless.is_empty() {
            if stream.write_all(&response.endless).is_err() {
                return;
            }
        }

        if response.closes {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }

        if is_early {
            // The rest of the request is not read.
            std::thread::sleep(EARLY_HOLD);
            return;
        }
    }
}

/// Reads the head of a request; returns whether it is complete. The body is ignored.
fn read_head(mut stream: &TcpStream) -> bool {
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => received.push(byte[0]),
            _ => return false,
        }
    }

    true
}
