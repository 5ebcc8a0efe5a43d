//! Response messages, laid out completely before they are due.
//!
//! Only the write timestamp is left open, in a fixed-width field: filling it in takes no allocation
//! and moves no body byte, so a large body does not make the timestamp stale.

use std::ops::Range;

use crate::queue::Slot;

/// Digits of the largest u64. The timestamp is padded on the left with blanks, which HTTP discards.
const STAMP_WIDTH: usize = 20;

/// How the end of a response body is marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    #[default]
    ContentLength,
    /// `Transfer-Encoding: chunked`, the body in one chunk.
    Chunked,
    /// By closing the connection, as in HTTP/1.0. A truncation cannot be distinguished from the
    /// end.
    UntilClose,
}

/// What to lay out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub status: u16,
    pub body: &'a [u8],
    pub framing: Framing,
    /// The request to stamp into the headers, if requested.
    pub stamps: Option<&'a Slot>,
    /// The value of the Connection field, if there is one.
    pub connection: Option<&'static str>,
    /// Omit the body, as in a response to HEAD.
    pub head_only: bool,
}

/// A response ready to be sent.
#[derive(Debug)]
pub(crate) struct Response {
    bytes: Vec<u8>,
    stamp: Option<Range<usize>>,
    head_bytes: usize,
}

impl Response {
    pub(crate) fn lay_out(layout: &Layout<'_>) -> Self {
        let mut bytes = Vec::with_capacity(256 + layout.body.len());
        let stamp = put_head(&mut bytes, layout);
        let head_bytes = bytes.len();
        if !layout.head_only {
            put_body(&mut bytes, layout);
        }

        Self {
            bytes,
            stamp,
            head_bytes,
        }
    }

    /// Fills in the start of the write.
    pub(crate) fn stamp_write(&mut self, write_ns: u64) {
        if let Some(field) = self.stamp.clone() {
            let mut target = &mut self.bytes[field];
            put(&mut target, format_args!("{write_ns:>STAMP_WIDTH$}"));
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The head and half of the body, or half of the head if there is no body to cut.
    pub(crate) fn first_half(&self) -> &[u8] {
        let body_bytes = self.bytes.len() - self.head_bytes;
        let cut = if body_bytes == 0 {
            self.head_bytes / 2
        } else {
            self.head_bytes + body_bytes / 2
        };
        &self.bytes[..cut]
    }
}

/// The reason phrase of a status. Clients ignore it, so uncommon statuses share one.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        411 => "Length Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// Returns the position of the write timestamp.
fn put_head(bytes: &mut Vec<u8>, layout: &Layout<'_>) -> Option<Range<usize>> {
    put(
        bytes,
        format_args!("HTTP/1.1 {} {}\r\n", layout.status, reason(layout.status)),
    );
    put(bytes, format_args!("Content-Type: text/plain\r\n"));

    match layout.framing {
        Framing::ContentLength => put(
            bytes,
            format_args!("Content-Length: {}\r\n", layout.body.len()),
        ),
        Framing::Chunked => put(bytes, format_args!("Transfer-Encoding: chunked\r\n")),
        Framing::UntilClose => {}
    }

    if let Some(option) = layout.connection {
        put(bytes, format_args!("Connection: {option}\r\n"));
    }

    let stamp = layout.stamps.map(|slot| put_stamps(bytes, slot));
    put(bytes, format_args!("\r\n"));

    stamp
}

fn put_stamps(bytes: &mut Vec<u8>, slot: &Slot) -> Range<usize> {
    put(
        bytes,
        format_args!("X-Id: {}\r\nX-Arrive: {}\r\n", slot.id, slot.arrive_ns),
    );
    put(bytes, format_args!("X-Hold: {}\r\nX-Write: ", slot.hold_ns));
    let begin = bytes.len();
    put(bytes, format_args!("{:>STAMP_WIDTH$}\r\n", 0));

    begin..begin + STAMP_WIDTH
}

fn put_body(bytes: &mut Vec<u8>, layout: &Layout<'_>) {
    if layout.framing != Framing::Chunked {
        bytes.extend_from_slice(layout.body);
        return;
    }

    // A chunk of length 0 would be the end of the body.
    if !layout.body.is_empty() {
        put(bytes, format_args!("{:x}\r\n", layout.body.len()));
        bytes.extend_from_slice(layout.body);
        put(bytes, format_args!("\r\n"));
    }

    put(bytes, format_args!("0\r\n\r\n"));
}

fn put(target: &mut impl std::io::Write, text: std::fmt::Arguments<'_>) {
    // A Vec takes everything, and the timestamp field fits the largest timestamp.
    let _ = target.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Layout<'_> = Layout {
        status: 200,
        body: b"hello",
        framing: Framing::ContentLength,
        stamps: None,
        connection: None,
        head_only: false,
    };

    fn text(layout: &Layout<'_>) -> String {
        String::from_utf8(Response::lay_out(layout).bytes).expect("ASCII")
    }

    #[test]
    fn a_plain_response_follows_rfc_9112() {
        let expected =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(text(&PLAIN), expected);
    }

    #[test]
    fn stamping_fills_the_field_and_moves_nothing() {
        let slot = Slot {
            id: 7,
            arrive_ns: 10,
            start_ns: 10,
            hold_ns: 20,
            finish_ns: 30,
        };
        let mut response = Response::lay_out(&Layout {
            stamps: Some(&slot),
            ..PLAIN
        });
        let length = response.bytes().len();

        for write_ns in [31, u64::MAX] {
            response.stamp_write(write_ns);
            let text = String::from_utf8(response.bytes().to_vec()).expect("ASCII");
            let value = text
                .split("X-Write:")
                .nth(1)
                .and_then(|rest| rest.lines().next());
            assert_eq!(value.map(str::trim), Some(write_ns.to_string().as_str()));
            assert!(text.contains("X-Id: 7\r\nX-Arrive: 10\r\nX-Hold: 20\r\n"));
            assert!(text.ends_with("\r\n\r\nhello"));
            assert_eq!(response.bytes().len(), length);
        }
    }

    #[test]
    fn chunked_bodies_end_with_the_zero_chunk() {
        let chunked = Layout {
            framing: Framing::Chunked,
            ..PLAIN
        };
        assert!(text(&chunked).ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
        assert!(
            text(&Layout {
                body: b"",
                ..chunked
            })
            .ends_with("chunked\r\n\r\n0\r\n\r\n")
        );
    }

    #[test]
    fn a_head_response_announces_the_length_and_sends_no_body() {
        let text = text(&Layout {
            head_only: true,
            ..PLAIN
        });
        assert!(text.contains("Content-Length: 5") && text.ends_with("\r\n\r\n"));
    }

    #[test]
    fn half_a_response_is_never_the_whole() {
        for body in [b"".as_slice(), b"h", b"hello"] {
            let response = Response::lay_out(&Layout { body, ..PLAIN });
            assert!(response.first_half().len() < response.bytes().len());
        }
    }
}
