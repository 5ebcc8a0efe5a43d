//! How the decoder decodes or rejects single streams.

use super::*;
use crate::http::chunked::MAX_LINE_BYTES;

/// The result of a stream: its head, its body, whether it was complete, and the surplus.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decoded {
    head: Option<Head>,
    body: Vec<u8>,
    end: Ended,
}

fn decode(pieces: &[&[u8]]) -> Decoded {
    decode_knowing(&mut KnownHead::default(), pieces)
}

fn decode_knowing(known: &mut KnownHead, pieces: &[&[u8]]) -> Decoded {
    let mut decoder = Decoder::new(false);
    let mut body = Vec::new();
    let mut end = Ok(None);
    let mut beyond = 0;

    for piece in pieces {
        if let Ok(Some(_)) = end {
            beyond += piece.len();
            continue;
        }
        match decoder.feed(piece, known, &mut |part| body.extend_from_slice(part)) {
            Ok(Progress::NeedMore) => {}
            Ok(Progress::Complete { surplus }) => end = Ok(Some(surplus)),
            Err(Malformed) => {
                end = Err(Malformed);
                break;
            }
        }
    }

    if let Ok(Some(surplus)) = &mut end {
        *surplus += beyond;
    }

    Decoded {
        head: decoder.head(),
        body,
        end,
    }
}

/// The surplus of a complete response; `None` while it is not complete.
type Ended = Result<Option<usize>, Malformed>;

const CASES: &[(&str, &str, Ended)] = &[
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "hello",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello!!",
        "hello",
        Ok(Some(2)),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
        "",
        Ok(Some(0)),
    ),
    ("HTTP/1.1 304 Not Modified\r\n\r\n", "", Ok(Some(0))),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ok",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "hello",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nA;x=y\r\n0123456789\r\n1 \
        \r\n!\r\n000\r\nT: v\r\nU: w\r\n\r\n+",
        "0123456789!",
        Ok(Some(1)),
    ),
    (
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "until the end",
        Ok(None),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        "hello",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\n\tthree\r\nContent-Length:\r\n 5\r\n\r\nhello",
        "hello",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "x",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\n folded: without a field\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n",
        "hello",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "",
        Err(Malformed),
    ),
    ("SSH-2.0-OpenSSH_9.2\r\n", "", Err(Malformed)),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        "hel",
        Ok(None),
    ),
];

#[test]
fn responses_are_delimited_by_their_framing() {
    for (stream, body, end) in CASES {
        let decoded = decode(&[stream.as_bytes()]);
        assert_eq!(
            (std::str::from_utf8(&decoded.body), decoded.end),
            (Ok(*body), *end),
            "{stream:?}"
        );
    }
}

#[test]
fn the_result_does_not_depend_on_how_a_stream_is_split() {
    for (stream, ..) in CASES {
        let bytes = stream.as_bytes();
        let whole = decode(&[bytes]);
        for cut in 0..bytes.len() {
            assert_eq!(
                decode(&[&bytes[..cut], &bytes[cut..]]),
                whole,
                "{stream:?} cut at {cut}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single), whole, "{stream:?} byte by byte");
    }
}

#[test]
fn reuse_does_not_require_a_keep_alive_field() {
    let says = |stream: &str| {
        let head = decode(&[stream.as_bytes()]).head.expect("a head");
        (head.keeps_alive, head.has_keep_alive)
    };
    let cases = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            (true, false),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n",
            (true, true),
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
            (true, true),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, close\r\n\r\n",
            (false, false),
        ),
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n",
            (false, false),
        ),
    ];
    for (stream, expected) in cases {
        assert_eq!(says(stream), expected, "{stream:?}");
    }
}

#[test]
fn the_head_determines_whether_the_connection_is_reused() {
    let keeps = |stream: &str| {
        decode(&[stream.as_bytes()])
            .head
            .map(|head| head.keeps_alive)
    };
    assert_eq!(
        keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Some(true)
    );
    assert_eq!(
        keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n"),
        Some(false)
    );
    assert_eq!(
        keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Some(false)
    );
    assert_eq!(
        keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"),
        Some(true)
    );
    assert_eq!(keeps("HTTP/1.1 200 OK\r\n\r\n"), Some(false));
}

#[test]
fn a_requested_switch_of_protocols_ends_the_response_and_the_connection() {
    let head = &b"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\n"[..];
    let mut known = KnownHead::default();
    let mut decoder = Decoder::new(false);
    decoder.accept_switch();
    let surplus = b"frame".len();
    let progress = decoder.feed(&[head, &b"frame"[..]].concat(), &mut known, &mut |_| {
        panic!("no body")
    });
    assert_eq!(progress, Ok(Progress::Complete { surplus }));
    let decoded = decoder.head().expect("complete");
    assert_eq!((decoded.status, decoded.keeps_alive), (101, false));

    decoder.reset(false);
    assert_eq!(decoder.feed(head, &mut known, &mut |_| {}), Err(Malformed));
}

#[test]
fn a_response_to_head_has_no_body() {
    let mut decoder = Decoder::new(true);
    let progress = decoder.feed(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        &mut KnownHead::default(),
        &mut |_| {},
    );
    assert_eq!(progress, Ok(Progress::Complete { surplus: 0 }));
}

#[test]
fn a_decoder_can_be_reused() {
    let mut decoder = Decoder::new(false);
    for body in ["one", "three"] {
        decoder.reset(false);
        let stream = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut seen = Vec::new();
        let progress = decoder.feed(stream.as_bytes(), &mut KnownHead::default(), &mut |part| {
            seen.extend_from_slice(part)
        });
        assert_eq!(
            (progress, seen.as_slice()),
            (Ok(Progress::Complete { surplus: 0 }), body.as_bytes())
        );
    }
}

/// Each was once decoded incorrectly.
const REGRESSIONS: &[(&str, &str, Ended)] = &[
    // Not statuses.
    (
        "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
        "",
        Err(Malformed),
    ),
    ("HTTP/1.1 000 \r\n\r\n", "", Err(Malformed)),
    // A transfer coding in HTTP/1.0 is invalid framing.
    (
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "",
        Err(Malformed),
    ),
    // A length that does not matter cannot be invalid.
    (
        "HTTP/1.1 204 No Content\r\nContent-Length: none\r\n\r\n",
        "",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\nTransfer-Encoding: \
        chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "x",
        Ok(Some(0)),
    ),
    // A chunk's size: any number of leading zeros, and nothing but an extension after it.
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: \
        chunked\r\n\r\n00000000000000000001\r\nx\r\n0\r\n\r\n",
        "x",
        Ok(Some(0)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 0\r\nx\r\n0\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
        "",
        Err(Malformed),
    ),
    // Trailers must be valid fields.
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n folded: v\r\n\r\n",
        "",
        Err(Malformed),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: \x01\r\n\r\n",
        "",
        Err(Malformed),
    ),
];

#[test]
fn past_decoding_errors_do_not_recur() {
    for (stream, body, end) in REGRESSIONS {
        let decoded = decode(&[stream.as_bytes()]);
        assert_eq!(
            (std::str::from_utf8(&decoded.body), decoded.end),
            (Ok(*body), *end),
            "{stream:?}"
        );
    }
}

#[test]
fn a_head_of_one_piece_is_not_copied() {
    let mut decoder = Decoder::new(false);
    let stream = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(
        decoder.feed(stream, &mut KnownHead::default(), &mut |_| {}),
        Ok(Progress::Complete { surplus: 0 })
    );
    assert_eq!(decoder.partial_head.capacity(), 0);
}

/// Feeds `start`, then `unit` in pieces of about this many bytes, until the decoder rejects;
/// returns how many bytes of units were fed.
fn rejected_after(start: &str, unit: &[u8], piece_bytes: usize) -> Option<usize> {
    const ENDLESS_BYTES: usize = 2 * MAX_HEAD_BYTES;
    let mut decoder = Decoder::new(false);

    assert_eq!(
        decoder.feed(start.as_bytes(), &mut KnownHead::default(), &mut |_| {}),
        Ok(Progress::NeedMore),
        "{start:?}"
    );

    let piece = unit.repeat(piece_bytes.div_ceil(unit.len()));
    let mut fed = 0;

    while fed < ENDLESS_BYTES {
        fed += piece.len();
        let result = decoder.feed(&piece, &mut KnownHead::default(), &mut |_| {});
        // A vector doubles, so it may reserve twice its contents.
        assert!(
            decoder.partial_head.capacity() <= 2 * MAX_HEAD_BYTES,
            "{} bytes",
            decoder.partial_head.capacity()
        );
        if result == Err(Malformed) {
            return Some(fed);
        }
        assert_eq!(result, Ok(Progress::NeedMore));
    }

    None
}

#[test]
fn endless_parts_are_rejected_and_use_little_memory() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = |line: &str| format!("{CHUNKED}{line}");
    let cases: [(&str, String, &[u8], usize); 10] = [
        (
            "field",
            "HTTP/1.1 200 OK\r\nX: ".to_owned(),
            b"a",
            MAX_HEAD_BYTES,
        ),
        (
            "field name",
            "HTTP/1.1 200 OK\r\n".to_owned(),
            b"a",
            MAX_HEAD_BYTES,
        ),
        ("reason", "HTTP/1.1 200 ".to_owned(), b"a", MAX_HEAD_BYTES),
        (
            "leading line ends",
            String::new(),
            b"\r\n",
            MAX_LEADING_BYTES,
        ),
        (
            "number of fields",
            "HTTP/1.1 200 OK\r\n".to_owned(),
            b"a: b\r\n",
            6 * (MAX_FIELDS + 1),
        ),
        ("size", chunk(""), b"0", MAX_LINE_BYTES),
        ("space", chunk("1"), b" ", MAX_LINE_BYTES),
        ("extension", chunk("1;"), b"a", MAX_LINE_BYTES),
        ("trailer", chunk("0\r\nT: "), b"a", MAX_LINE_BYTES),
        (
            "number of trailers",
            chunk("0\r\n"),
            b"a: b\r\n",
            6 * (MAX_FIELDS + 1),
        ),
    ];

    for (what, start, unit, limit) in cases {
        for piece_bytes in [unit.len(), 1_000, 200_000] {
            // Bytes of the line that are in `start` count, too.
            let soonest = limit.saturating_sub(start.len() + unit.len());
            let latest = limit + piece_bytes + unit.len();
            let fed = rejected_after(&start, unit, piece_bytes);
            assert!(
                fed.is_some_and(|fed| (soonest..=latest).contains(&fed)),
                "{what} in pieces of {piece_bytes}: {fed:?}, not in {soonest}..={latest}"
            );
        }
    }
}

#[test]
fn endless_interim_responses_and_bodies_use_no_memory() {
    // They end with the timeout of the request.
    for (start, unit) in [
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\n\r\n", "body"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1;a=b\r\nx\r\n",
        ),
    ] {
        for piece_bytes in [1, 10_000] {
            assert_eq!(
                rejected_after(start, unit.as_bytes(), piece_bytes),
                None,
                "{start:?} {unit:?}"
            );
        }
    }
}

#[test]
fn cookies_are_kept_if_enabled() {
    let stream = b"HTTP/1.1 100 Continue\r\nSet-Cookie: no=1\r\n\r\n\
          HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2; Path=/\r\nContent-Length: 0\r\n\r\n";
    let mut decoder = Decoder::new(false);

    for (is_enabled, expected) in [(true, vec![&b"a=1"[..], b"b=2; Path=/"]), (false, vec![])] {
        decoder.reset(false);
        if is_enabled {
            decoder.keep_set_cookies();
        }
        let (first, rest) = stream.split_at(90);
        decoder
            .feed(first, &mut KnownHead::default(), &mut |_| {})
            .expect("a head");
        assert_eq!(
            decoder.feed(rest, &mut KnownHead::default(), &mut |_| {}),
            Ok(Progress::Complete { surplus: 0 })
        );
        assert_eq!(decoder.take_set_cookies(), expected);
    }
}

#[test]
fn a_folded_cookie_is_on_one_line() {
    let stream = b"HTTP/1.1 204 No Content\r\nSet-Cookie: a=1;\r\n Path=/\r\n\r\n";
    let mut decoder = Decoder::new(false);
    decoder.keep_set_cookies();
    decoder
        .feed(stream, &mut KnownHead::default(), &mut |_| {})
        .expect("a response");

    assert_eq!(decoder.take_set_cookies(), [b"a=1;   Path=/"]);
}

/// A head with this many fields, one of which has a value of this many bytes.
fn head_of(fields: usize, value_bytes: usize) -> String {
    let value = "x".repeat(value_bytes);
    let others = "a: b\r\n".repeat(fields - 2);
    format!("HTTP/1.1 200 OK\r\nX: {value}\r\n{others}Content-Length: 5\r\n\r\n")
}

#[test]
fn a_large_head_is_read_up_to_the_limits_however_it_is_split() {
    let rest_bytes = head_of(2, 0).len();
    let most_bytes = MAX_HEAD_BYTES - rest_bytes;

    for (fields, value_bytes, is_accepted) in [
        (150, 1, true),
        (MAX_FIELDS, 1, true),
        (MAX_FIELDS + 1, 1, false),
        (2, 70_000, true),
        (2, most_bytes, true),
        (2, most_bytes + 1, false),
    ] {
        let stream = format!("{}hello", head_of(fields, value_bytes));
        for piece_bytes in [stream.len(), 64 * 1024, 1_000] {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(piece_bytes).collect();
            let decoded = decode(&pieces);
            let expected = if is_accepted {
                (&b"hello"[..], Ok(Some(0)))
            } else {
                (&b""[..], Err(Malformed))
            };
            assert_eq!(
                (decoded.body.as_slice(), decoded.end),
                expected,
                "{fields} fields, {value_bytes} bytes, in pieces of {piece_bytes}"
            );
        }
    }
}

#[test]
fn a_large_head_in_small_pieces_is_rarely_parsed() {
    let stream = head_of(2, MAX_HEAD_BYTES / 2);
    let mut decoder = Decoder::new(false);
    let mut known = KnownHead::default();
    let mut parsed = Vec::new();

    for piece in stream.as_bytes().chunks(100) {
        decoder
            .feed(piece, &mut known, &mut |_| {})
            .expect("a valid head");
        parsed.push(decoder.parsed_bytes);
    }
    parsed.dedup();

    let often = MAX_OFTEN_PARSED_BYTES / 100 + 1;
    assert!(parsed.len() < often + 25, "parsed {} times", parsed.len());
    assert!(decoder.head().is_some());
}

#[test]
fn malformed_heads_are_detected_at_the_end_of_the_stream() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "x".repeat(70_000));
    for (last, is_malformed) in [("no colon\r\n", true), ("A: b\r\n", false), ("", false)] {
        let mut decoder = Decoder::new(false);
        for piece in [long.as_str(), last] {
            let fed = decoder.feed(piece.as_bytes(), &mut KnownHead::default(), &mut |_| {});
            assert_eq!(fed, Ok(Progress::NeedMore));
        }
        assert_eq!(decoder.is_malformed_at_end(), is_malformed, "{last:?}");
    }
}

#[test]
fn a_known_head_changes_no_response() {
    let mut known = KnownHead::default();
    for (stream, ..) in CASES {
        let fresh = decode(&[stream.as_bytes()]);
        for _ in 0..2 {
            assert_eq!(
                decode_knowing(&mut known, &[stream.as_bytes()]),
                fresh,
                "{stream:?}"
            );
        }
    }
}

#[test]
fn a_known_head_does_not_apply_to_another_kind_of_request() {
    let mut known = KnownHead::default();
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

    for (request_is_head, expected) in [
        (false, Progress::NeedMore),
        (true, Progress::Complete { surplus: 0 }),
        (false, Progress::NeedMore),
    ] {
        let mut decoder = Decoder::new(request_is_head);
        assert_eq!(
            decoder.feed(stream, &mut known, &mut |_| {}),
            Ok(expected),
            "HEAD: {request_is_head}"
        );
    }
}

#[test]
fn cookies_are_kept_from_a_known_head() {
    let mut known = KnownHead::default();
    let stream = b"HTTP/1.1 204 No Content\r\nSet-Cookie: a=1\r\n\r\n";
    let mut decoder = Decoder::new(false);
    decoder
        .feed(stream, &mut known, &mut |_| {})
        .expect("a response");
    decoder.reset(false);
    decoder.keep_set_cookies();
    decoder
        .feed(stream, &mut known, &mut |_| {})
        .expect("a response");

    assert_eq!(decoder.take_set_cookies(), [b"a=1"]);
}
