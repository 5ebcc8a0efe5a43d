//! hyper's client over an in-memory stream, polled by hand until it makes no more progress.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{End, Verdict};
use crate::http::hyper_http1::client;

/// Enough for heads that our decoder rejects for their length.
const MAX_HEAD_BYTES: usize = 4 * 1024 * 1024;

/// hyper's verdict on a response that arrives in these pieces.
pub(super) fn verdict(pieces: &[&[u8]], request_is_head: bool, ends: bool) -> Verdict {
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let io = TokioIo::new(Script::new(pieces, ends));
    let mut client = client();
    client.max_buf_size(MAX_HEAD_BYTES);
    let Poll::Ready(Ok((mut sender, connection))) = pin!(client.handshake(io)).poll(&mut context)
    else {
        panic!("hyper's handshake sends nothing and waits for nothing");
    };

    let mut connection = pin!(connection);
    let seen = RefCell::new(Verdict {
        end: End::Waiting,
        status: None,
        body: Vec::new(),
    });
    let is_complete = {
        let mut exchange = pin!(exchange(&mut sender, request_is_head, &seen));
        let mut poll = Poll::Pending;
        let mut is_open = true;
        loop {
            woken.0.store(false, Ordering::Relaxed);
            is_open = is_open && connection.as_mut().poll(&mut context).is_pending();
            if poll.is_pending() {
                poll = exchange.as_mut().poll(&mut context);
            }
            if !woken.0.load(Ordering::Relaxed) {
                break poll.is_ready();
            }
        }
    };
    let mut verdict = seen.into_inner();
    if is_complete && verdict.end == End::Waiting {
        let is_reusable = matches!(sender.poll_ready(&mut context), Poll::Ready(Ok(())));
        verdict.end = End::Complete { is_reusable };
    }

    verdict
}

async fn exchange(
    sender: &mut SendRequest<Empty<Bytes>>,
    request_is_head: bool,
    seen: &RefCell<Verdict>,
) {
    let method = if request_is_head { "HEAD" } else { "GET" };
    let request = Request::builder()
        .method(method)
        .uri("/")
        .body(Empty::new())
        .expect("a request");
    let response = match sender.send_request(request).await {
        Ok(response) => response,
        Err(error) => return seen.borrow_mut().end = end_of(&error),
    };
    seen.borrow_mut().status = Some(response.status().as_u16());
    let mut body = response.into_body();

    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => seen
                .borrow_mut()
                .body
                .extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Err(error) => return seen.borrow_mut().end = end_of(&error),
        }
    }
}

/// Whether the stream was invalid or too short.
fn end_of(error: &hyper::Error) -> End {
    if error.is_parse() {
        return End::Malformed;
    }
    if error.is_incomplete_message() {
        return End::CutShort;
    }

    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => End::CutShort,
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => End::Malformed,
        _ => panic!("hyper failed in a new way: {error:?}"),
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the next piece for each read, once a request has been written.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    ends: bool,
    has_request: bool,
    reader: Option<Waker>,
}

impl Script {
    fn new(pieces: &[&[u8]], ends: bool) -> Self {
        // A read of no bytes is the end of the stream.
        let pieces = pieces
            .iter()
            .filter(|piece| !piece.is_empty())
            .map(|piece| piece.to_vec())
            .collect();
        Self {
            pieces,
            ends,
            has_request: false,
            reader: None,
        }
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_request {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }

        let Some(mut piece) = self.pieces.pop_front() else {
            return if self.ends {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        };

        let taken = piece.len().min(buffer.remaining());
        buffer.put_slice(&piece[..taken]);
        if taken < piece.len() {
            self.pieces.push_front(piece.split_off(taken));
        }

        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_request = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
