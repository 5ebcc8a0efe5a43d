//! HTTP/2 by hyper: one request at a time on each connection, so that a connection means the same
//! as in HTTP/1.1.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;

use crate::http::connection::{
    Connection, ExchangeStamps, Exchanged, NothingSent, Progress, outcome_of_end,
    outcome_of_response,
};
use crate::http::decoder::MAX_HEAD_BYTES;
use crate::http::hyper_io::{Future, Observed, StampedTransport, WakeFlag};
use crate::http::inbox::Inbox;
use crate::http::request::Request;
use crate::net::route::Route;
use crate::plan::ReceiveStamps;
use crate::record::exchange::Outcome;

type Sender = SendRequest<Full<Bytes>>;
type Protocol = http2::Connection<StampedTransport, Full<Bytes>, Spawner>;

/// An HTTP/2 connection by hyper.
pub(crate) struct Http2Connection {
    observed: Rc<Observed>,
    stage: Stage,
    tasks: Tasks,
    requests: u64,
    wake: Arc<WakeFlag>,
}

enum Stage {
    Connecting,
    Handshake(Future<hyper::Result<(Sender, Protocol)>>),
    Idle(Sender),
    Exchange(Future<(Sender, Result<Exchanged, NothingSent>)>),
    Over,
}

impl Connection for Http2Connection {
    fn open(route: &Route, _: ReceiveStamps) -> io::Result<Self> {
        Ok(Self {
            observed: Observed::connect_http2(route)?,
            stage: Stage::Connecting,
            tasks: Tasks::default(),
            requests: 0,
            wake: Arc::default(),
        })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.observed.transport.as_fd()
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        if matches!(self.stage, Stage::Connecting) {
            if !self.observed.transport.is_connected()? {
                return Ok(false);
            }
            let transport = StampedTransport(Rc::clone(&self.observed));
            let mut client = http2::Builder::new(self.tasks.spawner());
            client.max_header_list_size(MAX_HEAD_BYTES as u32);
            self.stage =
                Stage::Handshake(Box::pin(async move { client.handshake(transport).await }));
        }

        let Stage::Handshake(handshake) = &mut self.stage else {
            return Ok(true);
        };

        let tasks = &self.tasks;
        let polled = self.wake.run(|context| {
            tasks.poll(context);
            handshake.as_mut().poll(context)
        });
        let Poll::Ready(done) = polled else {
            return Ok(false);
        };

        let (sender, protocol) = done.map_err(io::Error::other)?;
        let observed = Rc::clone(&self.observed);
        self.tasks.add(Box::pin(async move {
            // Its failure, with its cause, is reported by the exchange that it ends.
            drop(protocol.await);
            observed.end.set(true);
        }));
        self.stage = Stage::Idle(sender);

        Ok(true)
    }

    fn begin(
        &mut self,
        request: &Request,
        is_last: bool,
        _: u64,
    ) -> Result<Option<Exchanged>, NothingSent> {
        let Stage::Idle(sender) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(NothingSent);
        };

        self.observed.start_request();
        self.requests += 1;
        let exchange = Exchange {
            request: request.clone(),
            is_last,
            requests: self.requests,
            observed: Rc::clone(&self.observed),
        };
        self.stage = Stage::Exchange(Box::pin(exchange.run(sender)));

        // The first poll writes the request.
        self.poll().transpose()
    }

    fn advance(&mut self, _: &Request, _: bool, _: &mut Inbox) -> Progress {
        self.observed.allow_reads();
        match self.poll() {
            Some(Ok(exchanged)) => Progress::Ended(exchanged),
            Some(Err(NothingSent)) => Progress::NothingSent,
            None if self.has_left_unread() => Progress::Yielding,
            None => Progress::Waiting,
        }
    }

    fn take_set_cookies(&mut self) -> Vec<Vec<u8>> {
        self.observed.take_set_cookies()
    }

    fn take_captured(&mut self) -> Vec<Vec<u8>> {
        self.observed.take_captured()
    }

    fn is_over_while_idle(&mut self, _: &mut Inbox) -> bool {
        self.observed.allow_reads();
        // Settings, pings and GOAWAY are handled here.
        self.run_tasks();
        // The reactor does not report again what is left unread, and no server has so much to say.
        self.is_closed() || self.has_left_unread()
    }

    fn has_left_unread(&self) -> bool {
        self.observed.has_read_enough()
    }

    fn is_closed(&self) -> bool {
        let is_sender_closed = matches!(&self.stage, Stage::Idle(sender) if sender.is_closed());
        self.observed.end.get() || is_sender_closed || matches!(self.stage, Stage::Over)
    }

    fn stamps(&self) -> ExchangeStamps {
        self.observed.stamps.get()
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

impl Http2Connection {
    fn run_tasks(&mut self) {
        let tasks = &self.tasks;
        let _: Poll<()> = self.wake.run(|context| {
            tasks.poll(context);
            Poll::Pending
        });
    }

    /// Polls protocol and exchange until neither makes progress.
    fn poll(&mut self) -> Option<Result<Exchanged, NothingSent>> {
        let Stage::Exchange(exchange) = &mut self.stage else {
            return None;
        };

        let tasks = &self.tasks;
        let polled = self.wake.run(|context| {
            tasks.poll(context);
            exchange.as_mut().poll(context)
        });
        let Poll::Ready((sender, result)) = polled else {
            return None;
        };

        self.stage = Stage::Idle(sender);
        if result.is_err() {
            self.requests -= 1;
        }

        // What the protocol has to send after the end of the response.
        self.run_tasks();
        Some(result)
    }
}

/// Futures that hyper spawns: the protocol itself, and parts of it. They end with the connection,
/// which alone owns them.
#[derive(Default)]
struct Tasks(Rc<RefCell<Vec<Future<()>>>>);

/// hyper's way to add tasks. The protocol holds one and is itself a task: if this owned the tasks,
/// they would keep each other, and with them the socket, for ever.
#[derive(Clone)]
struct Spawner(Weak<RefCell<Vec<Future<()>>>>);

impl<F: std::future::Future<Output = ()> + 'static> Executor<F> for Spawner {
    fn execute(&self, future: F) {
        // Without the connection, nobody would poll it.
        if let Some(tasks) = self.0.upgrade() {
            tasks.borrow_mut().push(Box::pin(future));
        }
    }
}

impl Tasks {
    fn spawner(&self) -> Spawner {
        Spawner(Rc::downgrade(&self.0))
    }

    fn add(&self, future: Future<()>) {
        self.0.borrow_mut().push(future);
    }

    fn poll(&self, context: &mut Context<'_>) {
        // Taken out while they run: they may add to the list.
        let mut running = std::mem::take(&mut *self.0.borrow_mut());
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        let mut list = self.0.borrow_mut();
        if !list.is_empty() {
            // A new one has not been polled yet.
            context.waker().wake_by_ref();
        }

        running.append(&mut list);
        *list = running;
    }
}

/// What one exchange needs to know.
struct Exchange {
    request: Request,
    is_last: bool,
    requests: u64,
    observed: Rc<Observed>,
}

impl Exchange {
    async fn run(self, mut sender: Sender) -> (Sender, Result<Exchanged, NothingSent>) {
        if sender.ready().await.is_err() {
            return (sender, Err(NothingSent));
        }

        let result = sender.send_request(self.message()).await;
        if self.observed.stamps.get().write_start_ns == 0 {
            return (sender, Err(NothingSent));
        }

        let exchanged = match result {
            Ok(response) => self.read(response).await,
            Err(error) => {
                // Bytes have arrived, but none of the response.
                self.set_first_byte(0);
                self.failed(&error, None)
            }
        };
        (sender, Ok(exchanged))
    }

    /// The request in HTTP/2 form: `:authority` instead of `Host`, and no connection header fields.
    fn message(&self) -> http::Request<Full<Bytes>> {
        let mut message = self.request.message(false);
        let host = message.headers_mut().remove(HOST);
        let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let scheme = if self.observed.transport.is_tls() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        let path = message.uri().path_and_query().cloned();
        let mut parts = http::uri::Parts::default();
        parts.scheme = authority.is_some().then_some(scheme);
        parts.authority = authority;
        parts.path_and_query = path.or(Some(PathAndQuery::from_static("/")));
        if let Ok(uri) = Uri::from_parts(parts) {
            *message.uri_mut() = uri;
        }

        for name in [CONNECTION, TRANSFER_ENCODING] {
            message.headers_mut().remove(name);
        }

        message
    }

    async fn read(&self, response: Response<Incoming>) -> Exchanged {
        // Frames about the connection may have arrived before; the latest read returned the head of
        // the response.
        self.set_first_byte(self.observed.stamps.get().last_byte_ns);
        let status = response.status().as_u16();
        self.observed
            .note_set_cookies(&self.request, response.headers());
        let is_correct = match self.observed.is_body_correct(&self.request, response).await {
            Ok(is_correct) => is_correct,
            Err(error) => return self.failed(&error, Some(status)),
        };

        let last_byte_ns = self.observed.stamps.get().last_byte_ns;
        Exchanged {
            outcome: outcome_of_response(&self.request, status, is_correct),
            status: Some(status),
            last_byte_ns,
            known_ns: last_byte_ns,
            receive_delay_ns: None,
            is_reusable: !self.is_last,
            is_servers_end: false,
        }
    }

    fn set_first_byte(&self, first_byte_ns: u64) {
        self.observed.stamps.set(ExchangeStamps {
            first_byte_ns,
            ..self.observed.stamps.get()
        });
    }

    fn failed(&self, error: &hyper::Error, status: Option<u16>) -> Exchanged {
        let is_malformed = is_malformed(error);
        // The server may reject a single request and keep the connection: not the keep-alive race.
        let is_servers_end = self.observed.end.get() && !is_malformed;
        let outcome = if is_malformed {
            Outcome::BadBody
        } else if is_servers_end {
            outcome_of_end(self.requests, &self.observed.stamps.get())
        } else {
            Outcome::Reset
        };

        Exchanged {
            is_servers_end,
            ..Exchanged::unreusable(outcome, status)
        }
    }
}

/// Whether the server has violated the protocol or flooded the connection, which we ended for it;
/// not what the server announced by a frame, nor the end of the connection.
fn is_malformed(error: &hyper::Error) -> bool {
    use std::error::Error as _;
    let Some(source) = error.source() else {
        return false;
    };

    let protocol = source.downcast_ref::<h2::Error>();
    let io = protocol.map_or_else(|| source.downcast_ref(), h2::Error::get_io);
    let is_flood = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    protocol.is_some_and(h2::Error::is_library) || io.is_some_and(is_flood)
}
