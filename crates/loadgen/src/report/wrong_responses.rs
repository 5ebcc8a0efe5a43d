//! Incorrect responses in a report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::decoder::{Decoder, KnownHead};
use crate::http::malformed::MAX_FIELDS;
use crate::record::exchange::Outcome;
use crate::record::wrong_responses::WrongResponse;

/// Maximum number of bytes quoted from a line or a body.
const QUOTED_BYTES: usize = 300;

/// An interim response with more header fields is not skipped.
const INTERIM_FIELDS: usize = 32;

/// The first incorrect response with a given outcome and status.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct WrongResponseReport {
    /// `http_status` or `bad_body`.
    pub outcome: Outcome,
    /// Status of the response. `None`: the response head could not be read.
    pub status: Option<u16>,
    /// Why the response head or body was rejected. `None`: the response was rejected because of its
    /// status.
    pub reason: Option<String>,
    /// The first 300 bytes of the response's first line.
    pub first_line: String,
    /// `Location` header of the response. `None`: no such header.
    pub location: Option<String>,
    /// `Content-Encoding` header of the response. `None`: no such header, or `identity`.
    pub content_encoding: Option<String>,
    /// The first 300 bytes of the response body, as text. `None`: the body has a content encoding,
    /// or the response head could not be read.
    pub body: Option<String>,
}

impl WrongResponseReport {
    /// Quotes a response.
    pub(crate) fn of(response: &WrongResponse) -> Self {
        let mut fields = vec![httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let bytes = final_response(&response.bytes);
        // If the head is truncated or invalid, the header fields before the error are used.
        let _ = parse(&mut head, bytes);

        let content_encoding = value_of(head.headers, "content-encoding")
            .filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
        let is_text = response.status.is_some() && content_encoding.is_none();
        Self {
            outcome: response.outcome,
            status: response.status,
            reason: response.reason.clone(),
            first_line: first_line(bytes),
            location: value_of(head.headers, "location"),
            content_encoding,
            body: is_text.then(|| body(bytes)),
        }
    }

    /// One line for a terminal.
    #[must_use]
    pub fn sentence(&self) -> String {
        let kind = match self.outcome {
            Outcome::HttpStatus => "first response with a wrong status",
            _ => "first rejected response",
        };
        let mut text = format!("{kind}: {:?}", self.first_line);

        for (name, value) in [
            ("", &self.reason),
            ("Location: ", &self.location),
            ("Content-Encoding: ", &self.content_encoding),
        ] {
            if let Some(value) = value {
                text += &format!(", {name}{}", value.escape_debug());
            }
        }
        if let Some(body) = self.body.as_deref().filter(|body| !body.is_empty()) {
            text += &format!(", body {body:?}");
        }
        text
    }
}

fn parse<'bytes>(
    head: &mut httparse::Response<'_, 'bytes>,
    bytes: &'bytes [u8],
) -> httparse::Result<usize> {
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.parse_response(head, bytes)
}

/// Skips leading line ends and interim responses.
fn final_response(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.trim_ascii_start();
    let mut fields = [httparse::EMPTY_HEADER; INTERIM_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    match (parse(&mut head, bytes), head.code) {
        (Ok(httparse::Status::Complete(length)), Some(100 | 102..=199)) => {
            final_response(&bytes[length..])
        }
        _ => bytes,
    }
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(bytes);
    text(line).trim_end().to_owned()
}

fn value_of(fields: &[httparse::Header<'_>], name: &str) -> Option<String> {
    let field = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(text(field.value))
}

/// The beginning of the body, without its framing.
fn body(bytes: &[u8]) -> String {
    let mut parts = Vec::new();
    // The body is quoted up to a framing error, which `reason` describes.
    let _ = Decoder::new(false).feed(bytes, &mut KnownHead::default(), &mut |part: &[u8]| {
        parts.extend_from_slice(part);
    });
    text(&parts)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(status: Option<u16>, bytes: &[u8]) -> WrongResponseReport {
        WrongResponseReport::of(&WrongResponse {
            outcome: Outcome::BadBody,
            status,
            reason: Some("why".to_owned()),
            bytes: bytes.into(),
        })
    }

    #[test]
    fn a_body_is_quoted_without_its_framing() {
        let quoted = quoted(
            Some(500),
            b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nno pool\r\n0\r\n\r\n",
        );

        assert_eq!(quoted.first_line, "HTTP/1.1 500 Oops");
        assert_eq!(quoted.body.as_deref(), Some("no pool"));
        assert_eq!(quoted.location, None);
        assert_eq!(
            quoted.sentence(),
            "first rejected response: \"HTTP/1.1 500 Oops\", why, body \"no pool\""
        );
    }

    #[test]
    fn a_long_body_is_truncated() {
        let head = b"HTTP/1.1 500 Oops\r\nContent-Length: 100000\r\n\r\n";
        let quoted = quoted(Some(500), &[&head[..], &[b'x'; 2_000]].concat());

        assert_eq!(quoted.body.map(|text| text.len()), Some(QUOTED_BYTES));
    }

    #[test]
    fn an_encoded_body_is_named_and_not_quoted() {
        let quoted = quoted(
            Some(200),
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
        );

        assert_eq!(quoted.content_encoding.as_deref(), Some("gzip"));
        assert_eq!(quoted.body, None);
        assert!(quoted.sentence().ends_with("Content-Encoding: gzip"));
    }

    #[test]
    fn a_redirect_has_its_location() {
        let quoted = quoted(
            Some(302),
            b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n",
        );

        assert_eq!(quoted.location.as_deref(), Some("/login"));
        assert_eq!(quoted.body.as_deref(), Some(""));
    }

    #[test]
    fn interim_responses_are_skipped() {
        let quoted = quoted(
            Some(500),
            b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 500 Oops\r\nContent-Length: \
            4\r\n\r\nbusy",
        );

        assert_eq!(quoted.first_line, "HTTP/1.1 500 Oops");
        assert_eq!(quoted.body.as_deref(), Some("busy"));
    }

    #[test]
    fn a_response_that_is_not_http_is_quoted_in_one_line() {
        let quoted = quoted(None, b"hello\xff\x1b[2J");

        assert_eq!(quoted.first_line, "hello\u{fffd}\u{1b}[2J");
        assert_eq!(quoted.body, None);
        assert_eq!(
            quoted.sentence(),
            "first rejected response: \"hello\u{fffd}\\u{1b}[2J\", why"
        );
    }
}
