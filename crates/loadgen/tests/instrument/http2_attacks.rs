//! What a hostile HTTP/2 server sends.

use loadgen::Outcome::{self, BadBody, Reset, Timeout};
use loadgen::plan::Keepalive;

const CHUNK_BYTES: usize = 16 * 1024;

const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// Of the only request on each connection.
pub const STREAM: u32 = 1;
/// `:status: 200` from the static table.
pub const STATUS_200: &[u8] = &[0x88];
/// `:status: 103`, not indexed.
const STATUS_103: &[u8] = b"\x08\x03103";

/// More than the window of a stream at first.
const LARGE_REQUEST_BYTES: usize = 256 * 1024;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn head(block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, STREAM, block)
}

pub fn data(flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(DATA, flags, STREAM, payload)
}

/// Settings with one parameter.
fn setting(name: u8, value: u32) -> Vec<u8> {
    frame(
        SETTINGS,
        0,
        0,
        &[&[0, name][..], &value.to_be_bytes()].concat(),
    )
}

fn go_away(last_stream: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last_stream.to_be_bytes(), [0; 4]].concat())
}

fn window(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn whole_response() -> Vec<u8> {
    [head(STATUS_200), data(END_STREAM, b"hello")].concat()
}

/// A literal field that is not indexed.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0, u8::try_from(name.len()).unwrap()];
    block.extend(name.as_bytes());
    block.push(u8::try_from(value.len()).unwrap());
    block.extend(value.as_bytes());
    block
}

/// What a server sends after the head of a request, and what comes of it.
#[derive(Clone)]
pub struct Attack {
    pub name: &'static str,
    pub start: Vec<u8>,
    /// Follows until the client closes, unless it is empty.
    pub endless: Vec<u8>,
    pub closes: bool,
    /// Otherwise the client's replies stay in the sockets.
    pub reads_on: bool,
    /// Of the client.
    pub keepalive: Keepalive,
    pub request_bytes: usize,
    /// One of these; which of them depends on how fast the client is.
    pub expected: Vec<Outcome>,
}

/// A server that sends this once and then nothing.
pub fn sends(name: &'static str, start: Vec<u8>, expected: Outcome) -> Attack {
    Attack {
        name,
        start,
        endless: Vec::new(),
        closes: false,
        reads_on: true,
        keepalive: Keepalive::On,
        request_bytes: 0,
        expected: vec![expected],
    }
}

/// A server that sends this again and again.
fn floods(name: &'static str, unit: &[u8]) -> Attack {
    Attack {
        // Large writes, so that the server can outrun its client.
        endless: unit.repeat(CHUNK_BYTES.div_ceil(unit.len())),
        ..sends(name, Vec::new(), BadBody)
    }
}

fn closes(name: &'static str, start: Vec<u8>) -> Attack {
    Attack {
        closes: true,
        ..sends(name, start, Reset)
    }
}

impl Attack {
    fn after(mut self, start: &[u8]) -> Self {
        self.start = start.to_vec();
        self
    }

    fn ends_as(mut self, expected: &[Outcome]) -> Self {
        self.expected = expected.to_vec();
        self
    }

    fn unread(mut self) -> Self {
        self.reads_on = false;
        self
    }

    pub fn once_per_connection(mut self) -> Self {
        self.keepalive = Keepalive::Off;
        self
    }

    fn of_a_large_request(mut self) -> Self {
        self.request_bytes = LARGE_REQUEST_BYTES;
        self
    }
}

pub fn floods_of_frames() -> Vec<Attack> {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let ping = frame(PING, 0, 0, &[0; 8]);
    let fields = field("a", "b").repeat(1_000);
    let many_fields = head(&[STATUS_103, &fields[..]].concat());
    let begun = frame(HEADERS, 0, STREAM, STATUS_200);
    let continued = |fields| frame(CONTINUATION, 0, STREAM, fields);
    let priority = frame(PRIORITY, 0, STREAM, &[0, 0, 0, 3, 1]);
    let body = data(0, &[b'a'; CHUNK_BYTES]);
    vec![
        floods("1xx", &head(STATUS_103)),
        floods("1xx with many fields", &many_fields).ends_as(&[BadBody, Timeout]),
        floods("SETTINGS", &settings),
        floods("SETTINGS with a value", &setting(1, 4_096)),
        floods("SETTINGS unread", &settings).unread(),
        floods("SETTINGS acknowledged", &frame(SETTINGS, ACK, 0, &[])),
        floods("PING", &ping),
        floods("PING unread", &ping).unread(),
        floods("PING replies", &frame(PING, ACK, 0, &[0; 8])),
        floods("RST_STREAM", &reset(STREAM)).ends_as(&[Reset]),
        floods("RST_STREAM of another stream", &reset(99)),
        floods("CONTINUATION", &continued(&fields)).after(&begun),
        floods("empty CONTINUATION", &continued(&[])).after(&begun),
        floods("GOAWAY", &go_away(STREAM)),
        floods("GOAWAY of the request", &go_away(0)).ends_as(&[Reset]),
        floods("PRIORITY", &priority),
        floods("unknown frames", &frame(0xee, 0, 0, &[0; 8])),
        floods("WINDOW_UPDATE", &window(0, 1)).ends_as(&[Timeout]),
        floods("WINDOW_UPDATE of the request", &window(STREAM, 1)).ends_as(&[Timeout]),
        floods("empty DATA", &data(0, &[])).after(&head(STATUS_200)),
        floods("padding alone", &data(PADDED, &[0]))
            .after(&head(STATUS_200))
            .ends_as(&[BadBody, Timeout]),
        floods("single bytes", &data(0, b"a"))
            .after(&head(STATUS_200))
            .ends_as(&[Timeout]),
        // It soon exceeds its window.
        floods("endless body", &body)
            .after(&head(STATUS_200))
            .ends_as(&[BadBody, Timeout]),
    ]
}

/// The flood hits a connection that is idle, or already carries the next request.
pub fn floods_after_the_response() -> Vec<Attack> {
    let floods = [
        floods("PING after the response", &frame(PING, 0, 0, &[0; 8])),
        floods("SETTINGS after the response", &frame(SETTINGS, 0, 0, &[])),
        floods("DATA after the response", &data(0, b"a")),
    ];
    floods
        .map(|flood| {
            flood
                .after(&whole_response())
                .ends_as(&[Outcome::Ok, BadBody])
        })
        .to_vec()
}

/// The server lets the request pass slowly or not at all.
pub fn stalls() -> Vec<Attack> {
    let stalls = |name, start| sends(name, start, Timeout).of_a_large_request();
    let grants = |name, unit: Vec<u8>| Attack {
        endless: unit,
        ..stalls(name, Vec::new())
    };
    let both = [window(0, 1), window(STREAM, 1)].concat();
    vec![
        stalls("no window", Vec::new()),
        stalls("no window, unread", Vec::new()).unread(),
        stalls("a window for the connection alone", window(0, 1 << 20)),
        stalls("a window for the stream alone", window(STREAM, 1 << 20)),
        stalls("a window that shrinks", setting(4, 0)),
        grants("a window of single bytes", both.repeat(1_000)).ends_as(&[Timeout, BadBody]),
        sends("an early response", whole_response(), Outcome::Ok)
            .of_a_large_request()
            .once_per_connection(),
    ]
}

pub fn violations() -> Vec<Attack> {
    let long = head(&[STATUS_200, &field("content-length", "9")[..]].concat());
    let upper_case = head(&[STATUS_200, &field("A", "b")[..]].concat());
    let promise = frame(PUSH_PROMISE, END_HEADERS, STREAM, &[0, 0, 0, 2, 0x82]);
    let foreign = frame(HEADERS, END_HEADERS, 7, STATUS_200);
    let http1 = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec();
    let with_data = |head: &[u8], body| [head, &data(END_STREAM, body)].concat();
    let violates = |name, start| sends(name, start, BadBody);
    vec![
        sends("silence", Vec::new(), Timeout),
        sends("a head alone", head(STATUS_200), Timeout),
        sends("no more streams", setting(3, 0), Timeout),
        closes("nothing", Vec::new()),
        closes("half a frame", head(STATUS_200)[..7].to_vec()),
        closes("half a response", head(STATUS_200)),
        violates("HTTP/1.1", http1),
        violates("a frame of 16 MiB", vec![0xff; 9]),
        violates("frames of one byte", setting(5, 1)),
        violates("no status", head(&field("a", "b"))),
        violates("an upper-case name", upper_case),
        violates("bad compression", head(&[0xff; 20])),
        violates("data before the head", data(END_STREAM, b"hello")),
        violates("data of no stream", frame(DATA, 0, 0, b"hello")),
        violates("a stream that nobody opened", foreign),
        violates("a promise", promise),
        violates("a short ping", frame(PING, 0, 0, &[0; 7])),
        violates("a window that overflows", window(0, 0x7fff_ffff)),
        violates("less than the length", with_data(&long, b"hello")),
        violates("more than the length", with_data(&long, b"hello hello")),
        sends("a response", whole_response(), Outcome::Ok).once_per_connection(),
    ]
}
