//! A server that ignores the requests and responds with given bytes, in given pieces.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// After an early response, the server keeps the connection open for this long: longer than any
/// client here waits.
const EARLY_HOLD: Duration = Duration::from_millis(400);

/// The response to one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Each piece is sent as a separate segment.
    pub pieces: Vec<Vec<u8>>,
    /// Repeated forever, unless empty.
    pub endless: Vec<u8>,
    /// Whether the server then ends the connection.
    pub closes: bool,
    /// Whether the server responds without waiting for the end of the request's head.
    pub is_early: bool,
}

impl Answer {
    /// These bytes in one piece.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            pieces: vec![bytes.as_ref().to_vec()],
            ..Self::default()
        }
    }

    /// These bytes, then others until the client closes the connection.
    pub fn endless(bytes: &str, unit: &str) -> Self {
        // Large writes, so that the server can outrun its client.
        let endless = unit.repeat(10_000_usize.div_ceil(unit.len())).into_bytes();
        Self {
            endless,
            ..Self::of(bytes)
        }
    }

    /// These bytes, and the end of the connection.
    pub fn closing(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            closes: true,
            ..Self::of(bytes)
        }
    }
}

/// The first request gets the first response, and so on; all further requests get the last one.
pub struct ScriptedServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    pub fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let script = Arc::new((answers, AtomicUsize::new(0)));
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
        // Wakes the acceptor, which waits for a connection. The connection threads end because the
        // client has closed its connections.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
    }
}

/// Serves until either side ends the connection.
fn serve(mut stream: &TcpStream, answers: &[Answer], next: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let is_early = answers.first().is_some_and(|answer| answer.is_early);
    while is_early || reads_head(stream) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(answer) = answers.get(number).or(answers.last()) else {
            return;
        };
        for (index, piece) in answer.pieces.iter().enumerate() {
            if index > 0 {
                // Long enough for the client to read the previous piece separately.
                std::thread::sleep(Duration::from_micros(300));
            }
            if stream.write_all(piece).is_err() {
                return;
            }
        }
        while !answer.endless.is_empty() {
            if stream.write_all(&answer.endless).is_err() {
                return;
            }
        }
        if answer.closes {
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

/// Whether a complete head arrived; the server ignores the body.
fn reads_head(mut stream: &TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return false,
        }
    }
    true
}
