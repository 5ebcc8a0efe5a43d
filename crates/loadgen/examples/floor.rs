//! The least that a client of these system calls costs: one thread, one `epoll_pwait2` for whatever
//! is ready, and per answer one `recv`, two readings of the clock and one `send`. It decodes
//! nothing, checks nothing and records nothing, so it is no load generator: `bench` runs it beside
//! them, and what they cost beyond it is their own doing.
//!
//! `floor URL CONNECTIONS SECONDS` prints `{"requests": …, "elapsed_s": …}`. Every answer has to be
//! as long as the first.

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

/// How long the server has to be silent before its first answer counts as whole.
const SILENCE: Duration = Duration::from_millis(50);
const BATCH: usize = 256;
const WAIT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// One connection and what it still awaits.
struct Exchange {
    socket: OwnedFd,
    missing_bytes: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds] = words.as_slice() else {
        writeln!(
            std::io::stdout(),
            "floor {}: floor URL CONNECTIONS SECONDS",
            env!("CARGO_PKG_VERSION")
        )?;
        return Ok(());
    };
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes();
    let answer_bytes = length_of_answer(address, &request)?;
    let mut exchanges = Vec::new();
    for _ in 0..connections.parse()? {
        let socket = connected(address)?.into();
        exchanges.push(Exchange {
            socket,
            missing_bytes: answer_bytes,
        });
    }
    let begin = Instant::now();
    let requests = drive(
        &mut exchanges,
        &request,
        answer_bytes,
        begin + Duration::from_secs(seconds.parse()?),
    )?;
    let elapsed_s = begin.elapsed().as_secs_f64();
    writeln!(
        std::io::stdout(),
        r#"{{"requests": {requests}, "elapsed_s": {elapsed_s}}}"#
    )?;
    Ok(())
}

fn connected(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn length_of_answer(address: &str, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut stream = connected(address)?;
    stream.write_all(request)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut length = stream.read(&mut buffer)?;
    stream.set_read_timeout(Some(SILENCE))?;
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        length += count;
    }
    if length == 0 {
        Err("the server closed the connection without an answer".into())
    } else {
        Ok(length)
    }
}

/// Every connection asks, and asks again as soon as it is answered; how many responses came until
/// `end`.
fn drive(
    exchanges: &mut [Exchange],
    request: &[u8],
    answer_bytes: usize,
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
    let (mut events, mut buffer, mut requests) = (Vec::with_capacity(BATCH), vec![0; 64 * 1024], 0);
    while Instant::now() < end {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&WAIT)) {
            // A process that was stopped and goes on has waited no longer than this.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let exchange = &mut exchanges[event.data.u64() as usize];
            let (count, _) = recv(&exchange.socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            // A generator has to know when the response was there, and when it asked again.
            std::hint::black_box(Instant::now());
            if count == 0 || count > exchange.missing_bytes {
                return Err(
                    "the server ended a connection, or sent an answer of another length".into(),
                );
            }
            exchange.missing_bytes -= count;
            if exchange.missing_bytes == 0 {
                requests += 1;
                exchange.missing_bytes = answer_bytes;
                std::hint::black_box(Instant::now());
                send(&exchange.socket, request, SendFlags::NOSIGNAL)?;
            }
        }
    }
    Ok(requests)
}
