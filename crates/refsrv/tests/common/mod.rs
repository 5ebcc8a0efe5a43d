//! A client with one connection, simple enough to be trusted: std sockets, no HTTP library.

#![allow(
    dead_code,
    reason = "compiled into every test binary, and none uses all of it"
)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use refsrv::{Config, LogEntry, ReferenceServer};

/// Long enough for a busy shared machine, short enough to fail a test that hangs.
pub const TIMEOUT: Duration = Duration::from_secs(20);
pub const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

pub fn start(config: Config) -> ReferenceServer {
    ReferenceServer::start(config).expect("the server starts")
}

/// The log, once it has `count` entries.
pub fn log_of(server: &ReferenceServer, count: usize) -> Vec<LogEntry> {
    let begin = Instant::now();
    loop {
        let log = server.log();
        if log.len() >= count || begin.elapsed() > TIMEOUT {
            assert_eq!(log.len(), count, "entries in the log");
            return log;
        }
        std::thread::yield_now();
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub fn number(&self, name: &str) -> u64 {
        let value = self
            .field(name)
            .unwrap_or_else(|| panic!("no {name} in {}", self.head));
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {value:?}"))
    }
}

pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("the server accepts");
        stream
            .set_read_timeout(Some(TIMEOUT))
            .expect("a timeout can be set");
        stream.set_nodelay(true).expect("nodelay can be set");

        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// A second handle to the same connection.
    pub fn try_clone(&self) -> Self {
        Self {
            stream: self.stream.try_clone().expect("a file descriptor"),
            received: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream
            .write_all(bytes)
            .expect("the request can be sent");
    }

    pub fn get(&mut self) -> io::Result<Response> {
        self.stream.write_all(GET)?;
        self.response()
    }

    /// Reads one response framed by Content-Length.
    pub fn response(&mut self) -> io::Result<Response> {
        let head_bytes = loop {
            if let Some(at) = self.received.windows(4).position(|end| end == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        let head = String::from_utf8_lossy(&self.received[..head_bytes]).into_owned();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .expect("a status");
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
        };
        let end = head_bytes + response.number("Content-Length") as usize;

        while self.received.len() < end {
            self.receive()?;
        }

        response.body = self.received[head_bytes..end].to_vec();
        self.received.drain(..end);

        Ok(response)
    }

    /// All bytes up to the end of the connection, and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        let end = loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (std::mem::take(&mut self.received), end)
    }

    pub fn set_read_timeout(&self, timeout: Duration) {
        self.stream
            .set_read_timeout(Some(timeout))
            .expect("a timeout can be set");
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        let count = self.stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.received.extend_from_slice(&piece[..count]);
        Ok(())
    }
}
