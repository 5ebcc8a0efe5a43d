//! The head of a request in HTTP/2 form, encoded once: with `:authority` instead of `Host`, and
//! without the header fields of an HTTP/1 connection.

use crate::http::http2::hpack::{
    NEWEST, TABLE_BYTES, encode_field, encode_index, encode_size_update,
};

/// Maximum length of path and query together.
const MAX_TARGET_BYTES: usize = 65_534;

/// More entries than this have no index of one byte.
const MAX_INSERTED: usize = 64;

/// An encoded head.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestHead {
    /// Whether it has a scheme, which depends on the connection.
    has_scheme: bool,
    /// Method and path.
    start: Vec<u8>,
    /// The fields that requests have in common, which become the newest entries of the server's
    /// dynamic table.
    shared: Vec<u8>,
    /// The number of these entries, and their size.
    inserted: usize,
    inserted_bytes: usize,
    /// The length of the body.
    end: Vec<u8>,
}

/// What the server's dynamic table contains.
#[derive(Debug)]
pub(crate) struct Encoder {
    is_tls: bool,
    max_bytes: usize,
    /// Whether the server does not know yet that the table has become smaller.
    has_shrunk: bool,
    /// The latest shared fields, if the table contains them as its newest entries.
    inserted: Vec<u8>,
}

impl Encoder {
    pub fn new(is_tls: bool) -> Self {
        Self {
            is_tls,
            max_bytes: TABLE_BYTES,
            has_shrunk: false,
            inserted: Vec::new(),
        }
    }

    /// Notes how large a table the server permits. More than usual is not used.
    pub fn limit_table(&mut self, bytes: usize) {
        let bytes = bytes.min(TABLE_BYTES);
        if bytes != self.max_bytes {
            (self.max_bytes, self.has_shrunk) = (bytes, true);
            self.inserted.clear();
        }
    }

    /// Appends a head.
    pub fn write(&mut self, head: &RequestHead, out: &mut Vec<u8>) {
        const HTTP: usize = 6;
        if std::mem::take(&mut self.has_shrunk) {
            encode_size_update(self.max_bytes, out);
        }
        if head.has_scheme {
            encode_index(HTTP + usize::from(self.is_tls), out);
        }

        out.extend_from_slice(&head.start);
        if head.inserted > 0 && head.shared == self.inserted {
            (0..head.inserted)
                .rev()
                .for_each(|age| encode_index(NEWEST + age, out));
        } else {
            out.extend_from_slice(&head.shared);
            self.inserted.clear();
            if head.inserted <= MAX_INSERTED && head.inserted_bytes <= self.max_bytes {
                self.inserted.extend_from_slice(&head.shared);
            }
        }
        out.extend_from_slice(&head.end);
    }
}

impl RequestHead {
    /// Encodes the head of an HTTP/1 request; `None` if path and query are too long.
    pub fn of(request: &[u8]) -> Option<Self> {
        let mut lines = request.split(|byte| *byte == b'\n');
        let mut words = lines.next()?.split(|byte| *byte == b' ');
        let (method, target) = (words.next()?, words.next()?);
        if target.len() > MAX_TARGET_BYTES {
            return None;
        }

        let mut head = Self {
            has_scheme: method != b"CONNECT",
            ..Self::default()
        };
        encode_field(b":method", method, false, &mut head.start);
        if head.has_scheme {
            encode_field(b":path", target, false, &mut head.start);
        }

        let fields: Vec<_> = lines.map_while(name_and_value).collect();
        let host = fields.iter().find(|(name, _)| *name == b"host");
        if let Some((_, host)) = host.filter(|(_, host)| !host.is_empty()) {
            head.share(b":authority", host);
        }
        for (name, value) in fields {
            match name {
                b"content-length" => drop(encode_field(name, value, false, &mut head.end)),
                _ if is_of_connection(name, value) => {}
                _ => head.share(name, value),
            }
        }
        Some(head)
    }

    /// Adds a field. If the static table contains it, it has an index but is not inserted, so it
    /// goes where it does not disturb the order of the others.
    fn share(&mut self, name: &[u8], value: &[u8]) {
        let before = self.shared.len();
        let bytes = encode_field(name, value, true, &mut self.shared);
        if bytes == 0 {
            let indexed = self.shared.split_off(before);
            self.end.extend_from_slice(&indexed);
        }
        self.inserted += usize::from(bytes > 0);
        self.inserted_bytes += bytes;
    }
}

/// A header field of a request as it is serialised; `None` at the end of the head.
fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
}

/// Whether the field has no meaning in HTTP/2: RFC 9113, section 8.2.2.
fn is_of_connection(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"host" | b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive"
        | b"proxy-connection" => true,
        b"te" => value != b"trailers",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http2::hpack::Decoder;

    const REQUEST: &str = "POST /a?b HTTP/1.1\r\nconnection: close\r\nkeep-alive: 5\r\n\
        te: gzip\r\nx-a: b: c\r\naccept-encoding: gzip, deflate\r\ncontent-length: 7\r\n\
        host: h:8000\r\ncookie: a=1\r\n\r\nx-b: c\n";

    fn head(request: &str) -> RequestHead {
        RequestHead::of(request.as_bytes()).expect("a head")
    }

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let note = |name: &[u8], value: &[u8]| fields.push(text(name) + "=" + &text(value));
        decoder.decode(block, note).expect("valid");
        fields
    }

    fn written(encoder: &mut Encoder, request: &str) -> Vec<u8> {
        let mut block = Vec::new();
        encoder.write(&head(request), &mut block);
        block
    }

    #[test]
    fn a_head_has_an_authority_and_no_connection_fields() {
        for (is_tls, scheme) in [(false, ":scheme=http"), (true, ":scheme=https")] {
            let block = written(&mut Encoder::new(is_tls), REQUEST);
            let expected = [
                scheme,
                ":method=POST",
                ":path=/a?b",
                ":authority=h:8000",
                "x-a=b: c",
                "cookie=a=1",
                "accept-encoding=gzip, deflate",
                "content-length=7",
            ];
            assert_eq!(decoded(&mut Decoder::default(), &block), expected);
        }
        let block = written(
            &mut Encoder::new(false),
            "CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\n\r\n",
        );
        let expected = [":method=CONNECT", ":authority=h:1"];
        assert_eq!(decoded(&mut Decoder::default(), &block), expected);
    }

    #[test]
    fn shared_fields_are_sent_once() {
        let (mut encoder, mut decoder) = (Encoder::new(false), Decoder::default());
        let other = REQUEST
            .replace("a?b", "other")
            .replace("length: 7", "length: 8");
        let mut lengths = Vec::new();
        for request in [REQUEST, &other, &REQUEST.replace("x-a", "x-c"), REQUEST] {
            let block = written(&mut encoder, request);
            lengths.push(block.len());
            let expected = written(&mut Encoder::new(false), request);
            assert_eq!(
                decoded(&mut decoder, &block),
                decoded(&mut Decoder::default(), &expected)
            );
        }
        assert!(lengths[1] + 15 < lengths[0], "{lengths:?}");
        assert_eq!((lengths[2], lengths[3]), (lengths[0], lengths[0]));
    }

    #[test]
    fn the_servers_limit_on_the_table_is_kept() {
        for limit in [0, 100, 130] {
            let mut encoder = Encoder::new(false);
            let mut decoder = Decoder::default();
            let first = written(&mut encoder, REQUEST);
            let expected = decoded(&mut decoder, &first);
            encoder.limit_table(limit);
            for _ in 0..3 {
                let block = written(&mut encoder, REQUEST);
                assert_eq!(decoded(&mut decoder, &block), expected, "{limit}");
            }
        }
    }

    #[test]
    fn fields_that_do_not_fit_into_the_table_are_sent_each_time() {
        let many: String = (0..100)
            .map(|number| format!("x-{number}: a\r\n"))
            .collect();
        let long = format!("x-long: {}\r\n", "a".repeat(5_000));
        for fields in [many, long] {
            let request = format!("GET / HTTP/1.1\r\nhost: h\r\n{fields}\r\n");
            let (mut encoder, mut decoder) = (Encoder::new(false), Decoder::default());
            let first = written(&mut encoder, &request);
            let expected = decoded(&mut Decoder::default(), &first);
            for _ in 0..3 {
                let block = written(&mut encoder, &request);
                assert_eq!(decoded(&mut decoder, &block), expected);
            }
        }
    }

    #[test]
    fn a_target_that_is_too_long_has_no_head() {
        let request = |bytes| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(bytes));
        assert!(RequestHead::of(request(65_533).as_bytes()).is_some());
        assert!(RequestHead::of(request(65_534).as_bytes()).is_none());
    }
}
