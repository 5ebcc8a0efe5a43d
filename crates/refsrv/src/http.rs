//! Parses request heads. No sockets, no clock.

/// A longer head is rejected with 431.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

/// What the server needs to know about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes from the request line up to and including the blank line.
    pub head_bytes: usize,
    /// Bytes of body that follow.
    pub body_bytes: u64,
    /// Whether the client is willing to send another request on this connection.
    pub keep_alive: bool,
    /// HTTP/1.0 keeps a connection only if the response says so.
    pub is_http_1_0: bool,
    /// HEAD: the response has a body length but no body.
    pub wants_no_body: bool,
}

/// Why a request is rejected. Each gets a response with its status, then the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Not HTTP/1.x, or contradictory about the length of its body.
    #[error("not a well-formed HTTP/1 request head")]
    Malformed,
    /// Transfer-Encoding is not supported; send Content-Length.
    #[error("the request body has no Content-Length")]
    LengthRequired,
    /// More than 100 header fields or 64 KiB.
    #[error("the request head is too large")]
    TooLarge,
}

impl HeadError {
    /// The status of the response.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::LengthRequired => 411,
            Self::TooLarge => 431,
        }
    }
}

/// Parses a request head; `Ok(None)` while it is incomplete.
///
/// # Errors
/// If no further byte could make it a valid request.
pub fn parse_head(bytes: &[u8]) -> Result<Option<RequestHead>, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut fields);
    let head_bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(HeadError::TooLarge);
        }
        Err(_) => return Err(HeadError::Malformed),
    };

    Ok(Some(RequestHead {
        head_bytes,
        body_bytes: body_bytes(request.headers)?,
        keep_alive: keep_alive(request.version, request.headers),
        is_http_1_0: request.version == Some(0),
        wants_no_body: request.method == Some("HEAD"),
    }))
}

fn body_bytes(fields: &[httparse::Header<'_>]) -> Result<u64, HeadError> {
    let mut length = None;
    for field in fields {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(HeadError::LengthRequired);
        }
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = decimal(field.value).ok_or(HeadError::Malformed)?;
            // Two different lengths enable request smuggling (RFC 9112, 6.3).
            if length.is_some_and(|earlier| earlier != value) {
                return Err(HeadError::Malformed);
            }
            length = Some(value);
        }
    }

    Ok(length.unwrap_or(0))
}

/// Digits only: `str::parse` would accept `+5`.
fn decimal(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn keep_alive(version: Option<u8>, fields: &[httparse::Header<'_>]) -> bool {
    let says = |option: &str| {
        fields
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case("connection"))
            .flat_map(|field| field.value.split(|&byte| byte == b','))
            .any(|token| token.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
    };
    !says("close") && (version == Some(1) || says("keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RequestHead {
        parse_head(text.as_bytes())
            .expect("well formed")
            .expect("complete")
    }

    #[test]
    fn a_plain_get_keeps_the_connection() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let expected = RequestHead {
            head_bytes: text.len(),
            body_bytes: 0,
            keep_alive: true,
            is_http_1_0: false,
            wants_no_body: false,
        };

        assert_eq!(parsed(text), expected);
    }

    #[test]
    fn only_the_first_of_two_pipelined_heads_is_taken() {
        let text = "GET / HTTP/1.1\r\n\r\n";
        assert_eq!(parsed(&text.repeat(2)).head_bytes, text.len());
    }

    #[test]
    fn persistence_follows_version_and_connection_field() {
        let cases = [
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nConnection: foo, CLOSE\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", true),
        ];
        for (text, expected) in cases {
            assert_eq!(parsed(text).keep_alive, expected, "{text:?}");
        }
    }

    #[test]
    fn every_prefix_of_a_head_is_incomplete_and_not_invalid() {
        let text = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse_head(&text[..end]), Ok(None), "{end} bytes");
        }

        assert_eq!(
            parse_head(text)
                .expect("good")
                .expect("complete")
                .body_bytes,
            12
        );
    }

    #[test]
    fn unsupported_requests_have_a_specific_error() {
        let cases = [
            ("\x16\x03\x01\x02\x00", HeadError::Malformed),
            ("hello\r\n\r\n", HeadError::Malformed),
            (
                "GET / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
                HeadError::Malformed,
            ),
            (
                "GET / HTTP/1.1\r\nContent-Length: \r\n\r\n",
                HeadError::Malformed,
            ),
            (
                "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                HeadError::Malformed,
            ),
            (
                "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                HeadError::Malformed,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                HeadError::LengthRequired,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_head(text.as_bytes()), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn overlong_heads_are_rejected() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
        let long = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(MAX_HEAD_BYTES));
        assert_eq!(parse_head(many.as_bytes()), Err(HeadError::TooLarge));
        assert_eq!(parse_head(long.as_bytes()), Err(HeadError::TooLarge));
    }

    #[test]
    fn garbage_never_causes_a_panic() {
        for seed in 0..2_000 {
            let length = (crate::random::uniform(seed, 0) * 200.0) as u64;
            let garbage: Vec<u8> = (1..length)
                .map(|i| (crate::random::uniform(seed, i) * 256.0) as u8)
                .collect();
            let _ = parse_head(&garbage);
        }
    }
}
