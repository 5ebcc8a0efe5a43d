//! Intentional differences between this decoder and hyper: each with the rule that allows this
//! reading, and a stream that shows it.

use super::{Case, End, Verdict};

struct Difference {
    name: &'static str,
    /// The rule, and why this reading suits a load generator.
    because: &'static str,
    /// Whether two verdicts on a stream differ only by this.
    explains: fn(&Case, &Verdict, &Verdict) -> bool,
    example: fn() -> Vec<u8>,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "switching protocols",
        because: "RFC 9110, 7.8: a server MUST NOT switch to a protocol that the request did not \
            name, and ours names none. hyper passes the connection on; we reject the response.",
        explains: |_, ours, hypers| ours.end == End::Malformed && hypers.status == Some(101),
        example: || b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n".to_vec(),
    },
    Difference {
        name: "early refusal",
        because: "RFC 9112, 2.2: the response to an invalid message may be to close the \
            connection at once. hyper checks only complete lines and sections, so it waits for \
            more of a response that is already malformed.",
        explains: rejected_when_the_section_ends,
        example: || {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n".to_vec()
        },
    },
    Difference {
        name: "bare line feed in trailers",
        because: "RFC 9112, 2.2: a recipient MAY take a single LF for the end of a line. In \
            chunked bodies neither of us does, but hyper accepts one when it reads the trailers a \
            second time.",
        explains: agree_once_line_feeds_are_fixed,
        example: || {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: v\n\r\n\r\n".to_vec()
        },
    },
    Difference {
        name: "bytes beyond ASCII in framing fields",
        because: "RFC 9112, 6.3 and 9.3: a final `chunked` and the option `close` apply, whatever \
            else the field contains. hyper ignores any value that contains such a byte.",
        explains: agree_once_latin_is_replaced,
        example: || {
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: \xe9, close\r\n\r\n".to_vec()
        },
    },
    Difference {
        name: "lengths of 2^64 - 1 and 2^64 - 2",
        because: "RFC 9112, 6.2: any length is valid. hyper uses these two values internally.",
        explains: |case, ours, hypers| {
            hypers.end == End::Malformed
                && ours.end != End::Malformed
                && ["18446744073709551615", "18446744073709551614"]
                    .iter()
                    .any(|top| case.contains(top))
        },
        example: || b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
    },
    Difference {
        name: "chunk extensions together",
        because: "RFC 9112, 7.1.1: extensions ought to be limited to a reasonable total. hyper \
            allows 16 KiB in a whole response, which a large one with a signature on each chunk \
            exceeds; we limit each line, and keep none.",
        explains: |case, ours, hypers| {
            hypers.end == End::Malformed
                && ours.end != End::Malformed
                && case.stream.len() > 16 * 1024
        },
        example: || {
            let mut stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            stream.extend_from_slice(
                format!("1;{}\r\nx\r\n", "a".repeat(1_000))
                    .repeat(20)
                    .as_bytes(),
            );
            stream.extend_from_slice(b"0\r\n\r\n");
            stream
        },
    },
    Difference {
        name: "length of a head",
        because: "RFC 9112, 3 and RFC 9110, 5.4: limits are the recipient's. Ours is 1 MiB; \
            in this comparison, hyper's is larger.",
        explains: |case, ours, hypers| {
            (ours.end, ours.status) == (End::Malformed, None)
                && hypers.status.is_some()
                && case.stream.len() > 1024 * 1024
        },
        example: || {
            let long = "a".repeat(1_100_000);
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {long}\r\n\r\n").into_bytes()
        },
    },
    Difference {
        name: "length of a chunk's size line",
        because: "RFC 9112, 7.1: sizes may have leading zeros. hyper does not count these or trailing \
            white space, and so reads an endless line; we reject a line of 16 KiB.",
        explains: |case, ours, hypers| {
            ours.end == End::Malformed
                && ours.status.is_some()
                && hypers.end != End::Malformed
                && case.stream.len() > 16 * 1024
        },
        example: || {
            let mut stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            stream.extend_from_slice("0".repeat(20_000).as_bytes());
            stream.extend_from_slice(b"\r\n\r\n");
            stream
        },
    },
];

impl Case {
    fn contains(&self, text: &str) -> bool {
        self.stream
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    }
}

/// The difference that explains two verdicts, if there is one.
pub(super) fn name(case: &Case, ours: &Verdict, hypers: &Verdict) -> Option<&'static str> {
    DIFFERENCES
        .iter()
        .find(|difference| (difference.explains)(case, ours, hypers))
        .map(|difference| difference.name)
}

/// hyper has not rejected it yet, but does as soon as the section ends in any way.
fn rejected_when_the_section_ends(case: &Case, ours: &Verdict, hypers: &Verdict) -> bool {
    let ended = case.with([case.stream.as_slice(), b"\r\n\r\n"].concat());
    ours.end == End::Malformed
        && matches!(hypers.end, End::Waiting | End::CutShort)
        && (ours.status, &ours.body) == (hypers.status, &hypers.body)
        && ended.hypers(&[]).end == End::Malformed
}

fn agree_once_line_feeds_are_fixed(case: &Case, ours: &Verdict, hypers: &Verdict) -> bool {
    let mut fixed = case.clone();
    // Only those that this decoder rejects: others are data.
    while let Some(at) = rejected_at(&fixed)
        && fixed.stream[at] == b'\n'
    {
        fixed.stream.insert(at, b'\r');
    }

    ours.end == End::Malformed
        && (ours.status, &ours.body) == (hypers.status, &hypers.body)
        && fixed != *case
        && fixed.ours(&[]).end != End::Malformed
        && fixed.judge(&[], true).is_ok()
}

/// Position of the byte for which this decoder rejects the stream.
fn rejected_at(case: &Case) -> Option<usize> {
    let is_refused =
        |length: usize| case.with(case.stream[..length].to_vec()).ours(&[]).end == End::Malformed;
    if !is_refused(case.stream.len()) {
        return None;
    }

    // Bytes after a rejected byte change nothing, so bisection finds the first.
    let (mut accepted, mut refused) = (0, case.stream.len());
    while refused - accepted > 1 {
        let length = accepted.midpoint(refused);
        if is_refused(length) {
            refused = length;
        } else {
            accepted = length;
        }
    }
    Some(accepted)
}

/// hyper misreads such a byte; this decoder gives the same result with a letter in its place.
fn agree_once_latin_is_replaced(case: &Case, ours: &Verdict, hypers: &Verdict) -> bool {
    let fixed = case.with(
        case.stream
            .iter()
            .map(|byte| if byte.is_ascii() { *byte } else { b'x' })
            .collect(),
    );
    let same = |one: &Verdict, other: &Verdict| {
        (one.end, one.status, one.body.len()) == (other.end, other.status, other.body.len())
    };
    fixed != *case
        && same(&fixed.ours(&[]), ours)
        && !same(&fixed.hypers(&[]), hypers)
        && fixed.judge(&[], true).is_ok()
}

#[test]
fn each_difference_exists_is_named_and_has_its_rule() {
    for difference in DIFFERENCES {
        let case = Case::of(&(difference.example)());
        let (ours, hypers) = (case.ours(&[]), case.hypers(&[]));
        assert_ne!(ours, hypers, "{}: both agree", difference.name);
        assert_eq!(
            name(&case, &ours, &hypers),
            Some(difference.name),
            "{ours:?} {hypers:?}"
        );
        assert!(
            difference.because.starts_with("RFC 9"),
            "{}",
            difference.name
        );
    }
}
