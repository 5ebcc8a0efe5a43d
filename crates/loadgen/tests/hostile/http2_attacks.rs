//! Attacks by a hostile HTTP/2 server.

use std::time::Duration;

use loadgen::Outcome::{self, BadBody, Reset, Timeout};

use crate::attack::{Attack, closes, floods, sends};

const CHUNK_BYTES: usize = 16 * 1024;

/// Pause of slow servers, short enough that the connection is never idle for long.
const SLOW: Duration = Duration::from_millis(20);

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

/// Stream of the first request on each connection.
pub const STREAM: u32 = 1;
/// `:status: 200` from the static table.
pub const STATUS_200: &[u8] = &[0x88];
/// `:status: 103`, not indexed.
const STATUS_103: &[u8] = b"\x08\x03103";

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

/// A SETTINGS frame with one parameter.
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

fn complete_response() -> Vec<u8> {
    [head(STATUS_200), data(END_STREAM, b"hello")].concat()
}

/// A literal field without indexing.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0, u8::try_from(name.len()).unwrap()];
    block.extend(name.as_bytes());
    block.push(u8::try_from(value.len()).unwrap());
    block.extend(value.as_bytes());
    block
}

pub fn all() -> Vec<Attack> {
    [
        floods_of_frames(),
        floods_after_the_response(),
        delays(),
        stalls(),
        violations_of_frames(),
        violations_of_messages(),
        ends(),
    ]
    .concat()
}

/// An HPACK bomb: 12 kB that expand to 32 MB, with one field of 4 kB and 8,000 references to it.
fn bomb() -> Vec<u8> {
    // A literal with indexing. The length 4,000 exceeds the 7-bit prefix, so it is 127 + 3,873.
    let mut block = vec![0x40, 1, b'a', 127, 0xa1, 0x1e];
    block.extend([b'v'; 4_000]);
    // References to the newest entry of the dynamic table.
    block.extend([0xbe; 8_000]);
    block
}

fn floods_of_frames() -> Vec<Attack> {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let ping = frame(PING, 0, 0, &[0; 8]);
    let fields = field("a", "b").repeat(1_000);
    let many_fields = head(&[STATUS_103, &fields[..]].concat());
    let unfinished_head = frame(HEADERS, 0, STREAM, STATUS_200);
    let continuation = |fields| frame(CONTINUATION, 0, STREAM, fields);
    let priority = frame(PRIORITY, 0, STREAM, &[0, 0, 0, 3, 1]);
    let body = data(0, &[b'a'; CHUNK_BYTES]);

    vec![
        floods("1xx", head(STATUS_103)),
        floods("1xx with many fields", &many_fields).ends_as(&[BadBody, Timeout]),
        floods("SETTINGS", &settings),
        floods("SETTINGS with a value", setting(1, 4_096)),
        floods("SETTINGS unread", &settings).unread(),
        floods("SETTINGS acknowledged", frame(SETTINGS, ACK, 0, &[])),
        floods("PING", &ping),
        floods("PING unread", &ping).unread(),
        floods("PING replies", frame(PING, ACK, 0, &[0; 8])),
        floods("RST_STREAM", reset(STREAM))
            .ends_as(&[Reset])
            .others_end_as(BadBody),
        floods("RST_STREAM of another stream", reset(99)),
        floods("CONTINUATION", continuation(&fields)).after(&unfinished_head),
        floods("empty CONTINUATION", continuation(&[])).after(&unfinished_head),
        floods(
            "compression bombs",
            head(&[STATUS_103, &bomb()[..]].concat()),
        )
        .ends_as(&[BadBody, Reset, Timeout]),
        floods("GOAWAY", go_away(STREAM)).others_end_as(Reset),
        floods("GOAWAY of the request", go_away(0)).ends_as(&[Reset]),
        floods("PRIORITY", &priority),
        floods("unknown frames", frame(0xee, 0, 0, &[0; 8])),
        floods("WINDOW_UPDATE", window(0, 1)).ends_as(&[Timeout]),
        floods("WINDOW_UPDATE of the request", window(STREAM, 1)).ends_as(&[Timeout]),
        floods("empty DATA", data(0, &[])).after(head(STATUS_200)),
        floods("padding alone", data(PADDED, &[0]))
            .after(head(STATUS_200))
            .ends_as(&[BadBody, Timeout]),
        floods("single bytes", data(0, b"a"))
            .after(head(STATUS_200))
            .ends_as(&[Timeout])
            // After a timeout of this stream, its frames are a flood for the other streams.
            .others_end_as(BadBody),
        floods("endless body", &body)
            .after(head(STATUS_200))
            .ends_as(&[BadBody, Timeout]),
    ]
}

/// Floods a connection that is idle or already carries the next request.
fn floods_after_the_response() -> Vec<Attack> {
    let floods = [
        floods("PING after the response", frame(PING, 0, 0, &[0; 8])),
        floods("SETTINGS after the response", frame(SETTINGS, 0, 0, &[])),
        floods("DATA after the response", data(0, b"a")),
    ];
    floods
        .map(|flood| {
            flood
                .after(complete_response())
                .ends_as(&[Outcome::Ok, BadBody])
        })
        .to_vec()
}

/// Sends too little, or too slowly.
fn delays() -> Vec<Attack> {
    let silent = |name, start| sends(name, start, Timeout);
    let slow = |name, start: Vec<u8>, piece: Vec<u8>| silent(name, start).trickles(piece, SLOW);
    let half = |frame: Vec<u8>| frame[..frame.len() / 2].to_vec();
    let unfinished_head = frame(HEADERS, 0, STREAM, STATUS_200);
    vec![
        silent("silence", Vec::new()),
        silent("half a head", half(head(STATUS_200))),
        silent("a head without its end", unfinished_head.clone()),
        silent("a head alone", head(STATUS_200)),
        endless_head_with_many_fields(),
        silent(
            "half a body",
            [head(STATUS_200), half(data(END_STREAM, b"hello"))].concat(),
        ),
        silent("103 alone", head(STATUS_103)),
        silent("no more streams", setting(3, 0)),
        slow(
            "a slow head",
            unfinished_head,
            frame(CONTINUATION, 0, STREAM, &field("a", "b")),
        )
        // The head may be rejected after 20 frames, before the timeout.
        .ends_as(&[Timeout, BadBody]),
        slow("a slow body", head(STATUS_200), data(0, b"a")),
        slow("slow 103", Vec::new(), head(STATUS_103)),
        slow("slow PING", Vec::new(), frame(PING, 0, 0, &[0; 8])),
        slow("slow SETTINGS", Vec::new(), frame(SETTINGS, 0, 0, &[])),
    ]
}

/// A head that never ends, with as many fields as possible. A field of 5 bytes counts as 34, and h2
/// tolerates four times the permitted length before it closes the connection.
pub fn endless_head_with_many_fields() -> Attack {
    const FIELDS_PER_FRAME: usize = 3_000;
    let fields = field("a", "b").repeat(FIELDS_PER_FRAME);
    let continuation = frame(CONTINUATION, 0, STREAM, &fields);
    let unfinished_head = frame(HEADERS, 0, STREAM, STATUS_200);
    let start = [unfinished_head, continuation.repeat(10)].concat();
    sends("many fields of an endless head", start, Timeout)
}

/// Accepts the body of the request slowly or not at all.
fn stalls() -> Vec<Attack> {
    let stalls = |name, start| sends(name, start, Timeout).with_large_request();
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
        sends("an early response", complete_response(), Outcome::Ok)
            .with_large_request()
            .once_per_connection(),
    ]
}

/// Frames that HTTP/2 forbids.
fn violations_of_frames() -> Vec<Attack> {
    let on_no_stream = frame(HEADERS, END_HEADERS, 0, STATUS_200);
    // Stream 99 does not exist: the eighth stream of a connection has number 15.
    let unopened = frame(HEADERS, END_HEADERS, 99, STATUS_200);
    let promise = frame(PUSH_PROMISE, END_HEADERS, STREAM, &[0, 0, 0, 2, 0x82]);
    let ping = frame(PING, 0, 0, &[0; 8]);
    let interrupted = [frame(HEADERS, 0, STREAM, STATUS_200), ping].concat();
    let padded = [head(STATUS_200), data(PADDED, &[200, 1, 2])].concat();
    let violates = |name, start| sends(name, start, BadBody);

    vec![
        violates(
            "HTTP/1.1",
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec(),
        ),
        violates("a frame of 16 MiB", vec![0xff; 9]),
        violates("frames of one byte", setting(5, 1)),
        violates("a window of 2 GiB", setting(4, 0x8000_0000)),
        violates("half a setting", frame(SETTINGS, 0, 0, &[0; 5])),
        violates("settings of a stream", frame(SETTINGS, 0, STREAM, &[])),
        violates(
            "an acknowledgement with settings",
            frame(SETTINGS, ACK, 0, &[0; 6]),
        ),
        violates("data before the head", data(END_STREAM, b"hello")),
        violates("data of no stream", frame(DATA, 0, 0, b"hello")),
        violates("padding beyond the frame", padded),
        violates("a head of no stream", on_no_stream),
        violates("a stream that was not opened", unopened),
        violates("another frame within a head", interrupted),
        violates(
            "CONTINUATION of nothing",
            frame(CONTINUATION, END_HEADERS, STREAM, STATUS_200),
        ),
        violates("a promise", promise),
        violates("a short ping", frame(PING, 0, 0, &[0; 7])),
        violates("a short GOAWAY", frame(GOAWAY, 0, 0, &[0; 4])),
        violates("a window that overflows", window(0, 0x7fff_ffff)),
        violates("a window that grows by nothing", window(0, 0)),
    ]
}

/// Responses that HTTP/2 forbids.
fn violations_of_messages() -> Vec<Attack> {
    let status_and = |field: &[u8]| head(&[STATUS_200, field].concat());
    let long = status_and(&field("content-length", "9"));
    let late_status = head(&[&field("a", "b")[..], STATUS_200].concat());
    let with_data = |head: &[u8], body| [head, &data(END_STREAM, body)].concat();
    // Most violations end only their stream; requests on the other streams time out.
    let violates = |name, start| sends(name, start, BadBody).others_end_as(Timeout);

    vec![
        violates("no status", head(&field("a", "b"))),
        violates("two statuses", status_and(STATUS_200)),
        violates("a status after a field", late_status),
        sends("an upper-case name", status_and(&field("A", "b")), BadBody),
        violates(
            "a field about the connection",
            status_and(&field("connection", "close")),
        ),
        sends("bad compression", head(&[0xff; 20]), BadBody),
        violates("less than the length", with_data(&long, b"hello")),
        violates("more than the length", with_data(&long, b"hello hello")),
        sends("a compression bomb", status_and(&bomb()), BadBody).ends_as(&[BadBody, Reset]),
    ]
}

/// Ends the connection or the stream, or neither.
fn ends() -> Vec<Attack> {
    let half = [head(STATUS_200), data(0, b"hel")].concat();
    let half_and = |frame: Vec<u8>| [half.clone(), frame].concat();
    vec![
        closes("the end", Vec::new()),
        closes("the end of half a frame", &head(STATUS_200)[..7]),
        closes("the end of half a response", half.clone()),
        closes("the end after GOAWAY", half_and(go_away(STREAM))),
        sends("a reset within the body", half_and(reset(STREAM)), Reset).others_end_as(Timeout),
        // GOAWAY refuses the later streams (RFC 9113, section 6.8).
        sends("GOAWAY within the body", half_and(go_away(STREAM)), Timeout).others_end_as(Reset),
        sends("a response", complete_response(), Outcome::Ok).once_per_connection(),
    ]
}
