//! Why a response is malformed.

use std::fmt::{self, Display, Formatter};
use std::io;

/// A head or trailer section with more fields than this is rejected.
pub(crate) const MAX_FIELDS: usize = 1_000;

/// The bytes are not an HTTP/1.x response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Why the response was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    NotHttp,
    Status,
    FieldName,
    FieldValue,
    LineEnd,
    HeadLength,
    FieldCount,
    Length,
    OldTransferEncoding,
    Chunk,
    Unsolicited,
}

impl Display for Rejection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotHttp => "not an HTTP/1.x response",
            Self::Status => "invalid status",
            Self::FieldName => "invalid header name",
            Self::FieldValue => "invalid header value",
            Self::LineEnd => "invalid line end in the head",
            Self::HeadLength => "head longer than 1 MiB",
            Self::FieldCount => "more than 1,000 header fields",
            Self::Length => "invalid or conflicting Content-Length",
            Self::OldTransferEncoding => "Transfer-Encoding in an HTTP/1.0 response",
            Self::Chunk => "invalid chunked body",
            Self::Unsolicited => {
                "unsolicited response: the server responds before a request is sent"
            }
        })
    }
}

/// Whether bytes that follow no request are a response. Servers announce with status 408 that they
/// close an idle connection.
pub(crate) fn is_unsolicited_response(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/") && bytes.get(8..12) != Some(b" 408")
}

impl Rejection {
    /// As the cause of a failed connection.
    pub fn unsolicited() -> io::Error {
        io::Error::other(Self::Unsolicited.to_string())
    }
}

impl From<httparse::Error> for Rejection {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::HeaderName | httparse::Error::Token => Self::FieldName,
            httparse::Error::HeaderValue => Self::FieldValue,
            httparse::Error::NewLine => Self::LineEnd,
            httparse::Error::Status => Self::Status,
            httparse::Error::TooManyHeaders => Self::FieldCount,
            httparse::Error::Version => Self::NotHttp,
        }
    }
}
