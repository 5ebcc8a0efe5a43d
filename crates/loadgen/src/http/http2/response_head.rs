//! The head of a response: what the client needs of it, read without building a list of fields.

use crate::http::captures::Captures;
use crate::http::http2::flood::MAX_HEADER_LIST_BYTES;
use crate::http::http2::frames::ErrorCode;
use crate::http::http2::hpack::{Decoder, FIELD_OVERHEAD_BYTES};
use crate::http::request::Request;

/// A head of more than this times the limit ends its connection: the server attacks it.
const MAX_EXCESS: usize = 4;

/// A longer block is not remembered.
const MAX_REMEMBERED_BYTES: usize = 1_024;

/// The head of a response, or its trailers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub status: Option<u16>,
    pub content_length: Option<u64>,
    /// Whether it violates HTTP/2, so that its stream must be reset.
    pub is_malformed: bool,
}

/// Fields that the client keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptFields {
    pub set_cookies: Vec<Vec<u8>>,
    /// The values of the fields that the request captures.
    pub captured: Vec<Option<Vec<u8>>>,
}

/// Reads the heads of a connection.
#[derive(Debug, Default)]
pub(crate) struct HeadReader {
    decoder: Decoder,
    /// The latest block that left the dynamic table alone, and its head: most responses of a load
    /// have the same.
    remembered: Vec<u8>,
    head: ResponseHead,
}

impl HeadReader {
    /// Reads the head of a response to this request, if it is still of interest.
    #[inline]
    pub fn read(
        &mut self,
        block: &[u8],
        request: Option<&Request>,
        kept: &mut KeptFields,
    ) -> Result<ResponseHead, ErrorCode> {
        let keeps = request.is_some_and(|one| one.keeps_cookies || one.captures.is_some());
        if !keeps && !block.is_empty() && block == self.remembered {
            return Ok(self.head);
        }
        self.read_new(block, request, kept)
    }

    fn read_new(
        &mut self,
        block: &[u8],
        request: Option<&Request>,
        kept: &mut KeptFields,
    ) -> Result<ResponseHead, ErrorCode> {
        let captures = request.and_then(|request| request.captures.as_deref());
        let keeps_cookies = request.is_some_and(|request| request.keeps_cookies);
        kept.captured.clear();
        kept.captured
            .resize(captures.map_or(0, |captures| captures.fields().len()), None);

        let mut check = HeadCheck::default();
        let decoded = self.decoder.decode(block, |name, value| {
            check.take(name, value);
            if check.head.is_malformed {
                return;
            }
            if keeps_cookies && name == b"set-cookie" {
                kept.set_cookies.push(value.to_vec());
            }
            if let Some(captures) = captures {
                capture(captures, name, value, &mut kept.captured);
            }
        });
        self.remembered.clear();
        decoded.map_err(|_| ErrorCode::Compression)?;
        if check.has_bad_syntax {
            return Err(ErrorCode::Protocol);
        }

        if check.list_bytes > MAX_EXCESS * MAX_HEADER_LIST_BYTES as usize {
            return Err(ErrorCode::Calm);
        }
        if !self.decoder.has_changed() && block.len() <= MAX_REMEMBERED_BYTES {
            self.remembered.extend_from_slice(block);
            self.head = check.head;
        }
        Ok(check.head)
    }
}

fn capture(captures: &Captures, name: &[u8], value: &[u8], kept: &mut [Option<Vec<u8>>]) {
    let fields = captures.fields().iter().zip(kept);
    for (_, kept) in fields.filter(|(field, kept)| kept.is_none() && field.as_bytes() == name) {
        *kept = Some(value.to_vec());
    }
}

/// The state of reading a head.
#[derive(Debug, Default)]
struct HeadCheck {
    head: ResponseHead,
    has_fields: bool,
    has_bad_syntax: bool,
    list_bytes: usize,
}

impl HeadCheck {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let head = &mut self.head;
        self.list_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        if self.list_bytes > MAX_HEADER_LIST_BYTES as usize {
            // A few bytes may stand for many megabytes, which must not cost time.
            head.is_malformed = true;
            return;
        }
        if let Some(pseudo) = name.strip_prefix(b":") {
            let status = status_of(value).filter(|_| pseudo == b"status");
            head.is_malformed |= status.is_none() || head.status.is_some() || self.has_fields;
            head.status = status;
            return;
        }

        self.has_fields = true;
        self.has_bad_syntax |= !(is_name(name) && value.iter().copied().all(is_in_values));
        match name {
            b"content-length" => {
                let length = length_of(value);
                let is_other = head.content_length.is_some() && head.content_length != length;
                head.is_malformed |= length.is_none() || is_other;
                head.content_length = length;
            }
            b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive"
            | b"proxy-connection" => head.is_malformed = true,
            b"te" => head.is_malformed |= value != b"trailers",
            _ => {}
        }
    }
}

fn status_of(value: &[u8]) -> Option<u16> {
    let [
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
    ] = value
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

fn length_of(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// A token (RFC 9110, section 5.6.2) without upper-case letters.
fn is_name(name: &[u8]) -> bool {
    let is_in_names = |byte: &u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' => true,
        other => b"!#$%&'*+-.^_`|~".contains(other),
    };
    !name.is_empty() && name.iter().all(is_in_names)
}

fn is_in_values(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http2::hpack::{encode_field, encode_index};

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn block(fields: Fields<'_>, inserts: bool) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            encode_field(name.as_bytes(), value.as_bytes(), inserts, &mut block);
        }
        block
    }

    fn read(fields: Fields<'_>) -> Result<ResponseHead, ErrorCode> {
        let mut reader = HeadReader::default();
        reader.read(&block(fields, false), None, &mut KeptFields::default())
    }

    #[test]
    fn status_and_length_are_read() {
        let head = read(&[(":status", "404"), ("a", ""), ("content-length", "12")]);
        let expected = ResponseHead {
            status: Some(404),
            content_length: Some(12),
            is_malformed: false,
        };
        assert_eq!(head, Ok(expected));
        assert_eq!(read(&[("grpc-status", "0")]), Ok(ResponseHead::default()));
    }

    #[test]
    fn malformed_heads_are_found() {
        let long = "v".repeat(MAX_HEADER_LIST_BYTES as usize);
        let cases: [Fields<'_>; 10] = [
            &[(":status", "200"), (":status", "200")],
            &[("a", "b"), (":status", "200")],
            &[(":status", "20")],
            &[(":status", "099")],
            &[(":path", "/")],
            &[("connection", "close")],
            &[("content-length", "1"), ("content-length", "2")],
            &[("content-length", "+1")],
            &[("te", "gzip")],
            &[("long", &long)],
        ];
        for fields in cases {
            assert!(
                read(fields).is_ok_and(|head| head.is_malformed),
                "{:?}",
                fields[0]
            );
        }
        for fields in [
            ("A", "b"),
            ("", "b"),
            ("a b", "c"),
            ("a", "\n"),
            ("a", "\u{7f}"),
        ] {
            assert_eq!(read(&[fields]), Err(ErrorCode::Protocol), "{fields:?}");
        }
    }

    #[test]
    fn a_compression_bomb_ends_the_connection() {
        for (references, expected) in [(200, Ok(true)), (8_000, Err(ErrorCode::Calm))] {
            let mut block = block(&[("a", &"v".repeat(4_000))], true);
            (0..references).for_each(|_| encode_index(62, &mut block));
            let mut reader = HeadReader::default();
            let head = reader.read(&block, None, &mut KeptFields::default());
            // 200 references are above the limit, but below what is tolerated once.
            assert_eq!(head.map(|head| head.is_malformed), expected, "{references}");
        }
    }

    #[test]
    fn a_remembered_block_is_forgotten_when_the_table_changes() {
        let mut reader = HeadReader::default();
        let mut length_of = |block: &[u8]| {
            let head = reader.read(block, None, &mut KeptFields::default());
            head.expect("valid").content_length
        };
        let mut newest = Vec::new();
        encode_index(62, &mut newest);

        for length in ["1", "2"] {
            length_of(&block(&[("content-length", length)], true));
            for _ in 0..3 {
                assert_eq!(length_of(&newest), length.parse().ok());
            }
            assert_eq!(length_of(&block(&[("a", "b")], false)), None);
        }
    }
}
