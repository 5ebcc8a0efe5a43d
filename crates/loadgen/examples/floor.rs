//! The syscall baseline: a client that issues only the unavoidable system calls.
//!
//! One thread waits with `epoll_pwait2` for all connections. Per response, it calls `recv` and
//! `send` once and reads the clock twice. It decodes, checks and records nothing, so it is not a
//! load generator. `bench` compares load generators with it: the difference is their own cost.
//!
//! `floor URL CONNECTIONS SECONDS` prints `{"requests": …, "elapsed_s": …}`. All responses must have
//! the length of the first.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// How long the server must be silent before its first response counts as complete.
const SILENCE: Duration = Duration::from_millis(50);
const BATCH: usize = 256;
const WAIT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// One connection and the missing bytes of its response.
struct Exchange {
    socket: OwnedFd,
    missing_bytes: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds] = arguments.as_slice() else {
        writeln!(
            std::io::stdout(),
            "floor {}: floor URL CONNECTIONS SECONDS",
            env!("CARGO_PKG_VERSION")
        )?;
        return Ok(());
    };

    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes();
    let response_bytes = response_length(address, &request)?;
    let mut exchanges = Vec::new();
    for _ in 0..connections.parse()? {
        let socket = connect(address)?.into();
        exchanges.push(Exchange {
            socket,
            missing_bytes: response_bytes,
        });
    }

    let start = Instant::now();
    let requests = drive(
        &mut exchanges,
        &request,
        response_bytes,
        start + Duration::from_secs(seconds.parse()?),
    )?;
    let elapsed_s = start.elapsed().as_secs_f64();
    writeln!(
        std::io::stdout(),
        r#"{{"requests": {requests}, "elapsed_s": {elapsed_s}}}"#
    )?;

    Ok(())
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn response_length(address: &str, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut length = stream.read(&mut buffer)?;
    stream.set_read_timeout(Some(SILENCE))?;

    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        length += count;
    }

    if length == 0 {
        Err("the server closed the connection without a response".into())
    } else {
        Ok(length)
    }
}

/// Sends one request on each connection, and the next one after each response. Returns the number
/// of responses until `end`.
fn drive(
    exchanges: &mut [Exchange],
    request: &[u8],
    response_bytes: usize,
    end: Instant,
) -> Result<u64, Box<dyn Error>> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;

    for (index, exchange) in exchanges.iter().enumerate() {
        epoll::add(
            &epoll,
            &exchange.socket,
            EventData::new_u64(index as u64),
            flags,
        )?;
        send(&exchange.socket, request, SendFlags::NOSIGNAL)?;
    }

    let mut events = Vec::with_capacity(BATCH);
    let mut buffer = vec![0; 64 * 1024];
    let mut requests = 0;

    while Instant::now() < end {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&WAIT)) {
            // Stopping and resuming the process interrupts the wait.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let exchange = &mut exchanges[event.data.u64() as usize];
            let (count, _) = recv(&exchange.socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            // A load generator needs the times of the response and of the next send.
            std::hint::black_box(Instant::now());
            if count == 0 || count > exchange.missing_bytes {
                return Err(
                    "the server closed a connection or sent a response of another length".into(),
                );
            }
            exchange.missing_bytes -= count;
            if exchange.missing_bytes == 0 {
                requests += 1;
                exchange.missing_bytes = response_bytes;
                std::hint::black_box(Instant::now());
                send(&exchange.socket, request, SendFlags::NOSIGNAL)?;
            }
        }
    }

    Ok(requests)
}
