//! Finds the end of an HTTP/1.x answer in a stream of bytes, however it is cut. Pure: no socket, no clock.
//!
//! It keeps nothing of a body: each part is handed on as it comes. Rules of framing: RFC 9112, section 6.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status};

/// More bytes or fields than this in a head are refused.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// More than this in the trailer section, or in one chunk's size line, is refused.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The bytes are not an HTTP/1.x answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The end has not come.
    NeedMore,
    /// The end lay within the bytes just fed; this many of them came after it.
    Complete {
        /// Bytes beyond the end.
        surplus: usize,
    },
}

/// What the head of an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    /// The server lets the connection live after this answer.
    pub keeps_alive: bool,
    /// Only the end of the connection ends the body.
    pub is_until_close: bool,
}

/// Decodes one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    /// A head that did not come in one piece.
    partial_head: Vec<u8>,
    head: Option<Head>,
    request_is_head: bool,
    /// Values of `Set-Cookie` fields, where somebody wants them.
    set_cookies: Option<Vec<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length { left: u64 },
    Chunk(ChunkState),
    UntilClose,
    Done,
}

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    Size {
        value: u64,
        digits: u8,
    },
    /// After the size: a chunk extension, ignored.
    Extension {
        value: u64,
        length: usize,
    },
    SizeLineFeed {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataLineFeed,
    /// A line of the trailer section, of this length so far.
    Trailer {
        line: usize,
        total: usize,
    },
    TrailerLineFeed {
        line: usize,
        total: usize,
    },
}

impl Decoder {
    /// A decoder for the answer to a request that is not HEAD.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            partial_head: Vec::new(),
            head: None,
            request_is_head: false,
            set_cookies: None,
        }
    }

    /// Forgets the previous answer. An answer to HEAD has no body, whatever its head says.
    pub fn reset(&mut self, request_is_head: bool) {
        self.state = State::Head;
        self.partial_head.clear();
        self.head = None;
        self.request_is_head = request_is_head;
        self.set_cookies = None;
    }

    /// Notes the `Set-Cookie` fields of the next answer.
    pub fn keep_set_cookies(&mut self) {
        self.set_cookies = Some(Vec::new());
    }

    /// The values of these fields.
    pub fn take_set_cookies(&mut self) -> Vec<Vec<u8>> {
        self.set_cookies.take().unwrap_or_default()
    }

    /// The final head, once it is known.
    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// Takes the next bytes of the stream; parts of the body go to `body`.
    pub fn feed(&mut self, mut bytes: &[u8], body: &mut impl FnMut(&[u8])) -> Result<Progress, Malformed> {
        loop {
            let used = match self.state {
                State::Head => match self.take_head(bytes)? {
                    Some(used) => used,
                    None => return Ok(Progress::NeedMore),
                },
                State::Length { left } => {
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    body(&bytes[..used]);
                    let left = left - used as u64;
                    self.state = if left == 0 { State::Done } else { State::Length { left } };
                    used
                }
                State::Chunk(chunk) => self.take_chunked(chunk, bytes, body)?,
                State::UntilClose => {
                    body(bytes);
                    bytes.len()
                }
                State::Done => return Ok(Progress::Complete { surplus: bytes.len() }),
            };
            bytes = &bytes[used..];
            if bytes.is_empty() && self.state != State::Done {
                return Ok(Progress::NeedMore);
            }
        }
    }

    /// The stream has ended: whether the answer is complete by that.
    pub fn is_complete_at_end(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Takes bytes of the head; `None` when it goes on beyond them. Says how many of `bytes` belong to it.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        if self.partial_head.is_empty() {
            if let Some(length) = self.parse_head(bytes)? {
                return Ok(Some(length));
            }
            self.partial_head.extend_from_slice(bytes);
        } else {
            let before = self.partial_head.len();
            self.partial_head.extend_from_slice(bytes);
            let whole = std::mem::take(&mut self.partial_head);
            let parsed = self.parse_head(&whole)?;
            if let Some(length) = parsed {
                return Ok(Some(length - before));
            }
            self.partial_head = whole;
        }
        if self.partial_head.len() > MAX_HEAD_BYTES { Err(Malformed) } else { Ok(None) }
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        // Left as it is: clearing room for so many fields would cost more than reading the few that come.
        let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let status = ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, bytes, &mut fields)
            .map_err(|_| Malformed)?;
        let Status::Complete(length) = status else { return Ok(None) };
        let code = response.code.ok_or(Malformed)?;
        match code {
            // Another protocol from here on, which nobody asked for.
            101 => return Err(Malformed),
            // An interim answer; the final one follows.
            100..=199 => return Ok(Some(length)),
            _ => {}
        }
        let (state, keeps_alive) = framing(&response, code, self.request_is_head)?;
        self.state = state;
        if let Some(cookies) = &mut self.set_cookies {
            let fields = response.headers.iter();
            let set_cookies = fields.filter(|field| field.name.eq_ignore_ascii_case("set-cookie"));
            cookies.extend(set_cookies.map(|field| field.value.to_vec()));
        }
        let is_until_close = state == State::UntilClose;
        self.head = Some(Head { status: code, keeps_alive: keeps_alive && !is_until_close, is_until_close });
        Ok(Some(length))
    }

    /// Takes what it can of a chunked body in one step.
    fn take_chunked(
        &mut self,
        chunk: ChunkState,
        bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        if let ChunkState::Data { left } = chunk {
            let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            body(&bytes[..used]);
            let left = left - used as u64;
            self.state = State::Chunk(if left == 0 { ChunkState::DataReturn } else { ChunkState::Data { left } });
            return Ok(used);
        }
        let Some(&byte) = bytes.first() else { return Ok(0) };
        self.state = chunk.after(byte)?;
        Ok(1)
    }
}

impl ChunkState {
    const FIRST: Self = Self::Size { value: 0, digits: 0 };

    /// The state after one byte that is not data.
    fn after(self, byte: u8) -> Result<State, Malformed> {
        let next = match (self, byte) {
            (Self::Size { value, digits }, _) => Self::after_size(value, digits, byte)?,
            (Self::Extension { value, .. }, b'\r') => Self::SizeLineFeed { value },
            (Self::Extension { .. }, b'\n') => return Err(Malformed),
            (Self::Extension { value, length }, _) if length < MAX_LINE_BYTES => {
                Self::Extension { value, length: length + 1 }
            }
            (Self::SizeLineFeed { value: 0 }, b'\n') => Self::Trailer { line: 0, total: 0 },
            (Self::SizeLineFeed { value }, b'\n') => Self::Data { left: value },
            (Self::DataReturn, b'\r') => Self::DataLineFeed,
            (Self::DataLineFeed, b'\n') => Self::FIRST,
            (Self::Trailer { line, total }, b'\r') => Self::TrailerLineFeed { line, total },
            (Self::Trailer { line, total }, _) if total < MAX_LINE_BYTES && byte != b'\n' => {
                Self::Trailer { line: line + 1, total: total + 1 }
            }
            (Self::TrailerLineFeed { line: 0, .. }, b'\n') => return Ok(State::Done),
            (Self::TrailerLineFeed { total, .. }, b'\n') => Self::Trailer { line: 0, total },
            _ => return Err(Malformed),
        };
        Ok(State::Chunk(next))
    }

    fn after_size(value: u64, digits: u8, byte: u8) -> Result<Self, Malformed> {
        match (byte as char).to_digit(16) {
            // Sixteen digits fill 64 bits.
            Some(digit) if digits < 16 => {
                Ok(Self::Size { value: value * 16 + u64::from(digit), digits: digits + 1 })
            }
            Some(_) => Err(Malformed),
            None if digits == 0 => Err(Malformed),
            None => match byte {
                b'\r' => Ok(Self::SizeLineFeed { value }),
                b';' | b' ' | b'\t' => Ok(Self::Extension { value, length: 0 }),
                _ => Err(Malformed),
            },
        }
    }
}

/// How the body ends, and whether the head lets the connection live.
fn framing(response: &httparse::Response, code: u16, request_is_head: bool) -> Result<(State, bool), Malformed> {
    let mut length: Option<u64> = None;
    let mut last_coding: Option<&[u8]> = None;
    let (mut says_close, mut says_keep) = (false, false);
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            for part in field.value.split(|byte| *byte == b',') {
                let value = parse_length(part)?;
                if length.is_some_and(|other| other != value) {
                    return Err(Malformed);
                }
                length = Some(value);
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            last_coding = field.value.split(|byte| *byte == b',').next_back().map(<[u8]>::trim_ascii);
        } else if field.name.eq_ignore_ascii_case("connection") {
            for token in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                says_close |= token.eq_ignore_ascii_case(b"close");
                says_keep |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let keeps_alive = if response.version == Some(1) { !says_close } else { says_keep && !says_close };
    let state = match (last_coding, length) {
        _ if request_is_head || code == 204 || code == 304 => State::Done,
        (Some(coding), _) if coding.eq_ignore_ascii_case(b"chunked") => State::Chunk(ChunkState::FIRST),
        (Some(_), _) | (None, None) => State::UntilClose,
        (None, Some(0)) => State::Done,
        (None, Some(left)) => State::Length { left },
    };
    Ok((state, keeps_alive))
}

fn parse_length(text: &[u8]) -> Result<u64, Malformed> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What became of a stream: its head, its body, whether it was complete, and the surplus.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Decoded {
        head: Option<Head>,
        body: Vec<u8>,
        end: Ended,
    }

    fn decode(pieces: &[&[u8]]) -> Decoded {
        let mut decoder = Decoder::new();
        let mut body = Vec::new();
        let mut end = Ok(None);
        let mut beyond = 0;
        for piece in pieces {
            if let Ok(Some(_)) = end {
                beyond += piece.len();
                continue;
            }
            match decoder.feed(piece, &mut |part| body.extend_from_slice(part)) {
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
        Decoded { head: decoder.head(), body, end }
    }

    /// The surplus of a complete answer; `None` while it is not complete.
    type Ended = Result<Option<usize>, Malformed>;

    const CASES: &[(&str, &str, Ended)] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", Ok(Some(0))),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello!!", "hello", Ok(Some(2))),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", Ok(Some(0))),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", "", Ok(Some(0))),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", "", Ok(Some(0))),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", Ok(Some(0))),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", Ok(Some(0))),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nA;x=y\r\n0123456789\r\n1 \r\n!\r\n000\r\nT: v\r\nU: w\r\n\r\n+",
            "0123456789!",
            Ok(Some(1)),
        ),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end", Ok(None)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", "hello", Ok(Some(0))),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "", Err(Malformed)),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "", Err(Malformed)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "", Err(Malformed)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n", "hello", Err(Malformed)),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "", Err(Malformed)),
        ("SSH-2.0-OpenSSH_9.2\r\n", "", Err(Malformed)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "hel", Ok(None)),
    ];

    #[test]
    fn answers_are_told_apart_by_their_framing() {
        for (stream, body, end) in CASES {
            let decoded = decode(&[stream.as_bytes()]);
            assert_eq!((std::str::from_utf8(&decoded.body), decoded.end), (Ok(*body), *end), "{stream:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_a_stream_is_cut() {
        for (stream, ..) in CASES {
            let bytes = stream.as_bytes();
            let whole = decode(&[bytes]);
            for cut in 0..bytes.len() {
                assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), whole, "{stream:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), whole, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn the_connection_lives_as_the_head_says() {
        let keeps = |stream: &str| decode(&[stream.as_bytes()]).head.map(|head| head.keeps_alive);
        assert_eq!(keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Some(true));
        assert_eq!(keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n"), Some(false));
        assert_eq!(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), Some(false));
        assert_eq!(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"), Some(true));
        assert_eq!(keeps("HTTP/1.1 200 OK\r\n\r\n"), Some(false));
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let mut decoder = Decoder::new();
        decoder.reset(true);
        let progress = decoder.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &mut |_| {});
        assert_eq!(progress, Ok(Progress::Complete { surplus: 0 }));
    }

    #[test]
    fn a_decoder_can_be_used_again() {
        let mut decoder = Decoder::new();
        for body in ["one", "three"] {
            decoder.reset(false);
            let stream = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut seen = Vec::new();
            let progress = decoder.feed(stream.as_bytes(), &mut |part| seen.extend_from_slice(part));
            assert_eq!((progress, seen.as_slice()), (Ok(Progress::Complete { surplus: 0 }), body.as_bytes()));
        }
    }

    #[test]
    fn cookies_are_noted_where_they_are_wanted() {
        let stream = b"HTTP/1.1 100 Continue\r\nSet-Cookie: no=1\r\n\r\n\
              HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2; Path=/\r\nContent-Length: 0\r\n\r\n";
        let mut decoder = Decoder::new();
        for (is_wanted, expected) in [(true, vec![&b"a=1"[..], b"b=2; Path=/"]), (false, vec![])] {
            decoder.reset(false);
            if is_wanted {
                decoder.keep_set_cookies();
            }
            let (first, rest) = stream.split_at(90);
            decoder.feed(first, &mut |_| {}).expect("a head");
            assert_eq!(decoder.feed(rest, &mut |_| {}), Ok(Progress::Complete { surplus: 0 }));
            assert_eq!(decoder.take_set_cookies(), expected);
        }
    }

    #[test]
    fn an_endless_head_is_refused() {
        let mut decoder = Decoder::new();
        let mut result = decoder.feed(b"HTTP/1.1 200 OK\r\nX: ", &mut |_| {});
        for _ in 0..MAX_HEAD_BYTES / 1_000 + 1 {
            if result == Ok(Progress::NeedMore) {
                result = decoder.feed(&[b'a'; 1_000], &mut |_| {});
            }
        }
        assert_eq!(result, Err(Malformed));
    }
}
