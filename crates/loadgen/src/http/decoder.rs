//! Finds the end of an HTTP/1.x response in a byte stream, however it is split. It uses no socket
//! and no clock.
//!
//! It buffers no body: each part is passed on as it arrives. Framing rules: RFC 9112, section 6.

use std::mem::MaybeUninit;
use std::sync::Arc;

use httparse::{Header, ParserConfig, Response, Status};

use super::chunked::Chunked;
use super::malformed::{MAX_FIELDS, Malformed, Rejection};

/// A head longer than this is rejected; together with the limit on fields, it bounds a decoder's
/// memory.
pub(crate) const MAX_HEAD_BYTES: usize = 1024 * 1024;

/// More bytes of line ends than this before a status line are rejected.
const MAX_LEADING_BYTES: usize = 1024;

/// Most heads have no more fields, and are parsed without allocating.
const USUAL_FIELDS: usize = 100;

/// Up to this length, a head in pieces is parsed again with each piece. Beyond it, the time would
/// grow with the square of the length.
const MAX_OFTEN_PARSED_BYTES: usize = 16 * 1024;

/// Progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The response is not complete.
    NeedMore,
    /// The response is complete within the bytes just fed; this many bytes followed it.
    Complete {
        /// Bytes after the end.
        surplus: usize,
    },
}

/// The parsed head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    /// The server keeps the connection open after this response.
    pub keeps_alive: bool,
    /// The head says so explicitly; otherwise, a client of HTTP/1.0 must not rely on it.
    pub has_keep_alive: bool,
    /// The body ends when the connection is closed.
    pub is_until_close: bool,
}

/// The latest head that arrived in one piece, and its meaning.
///
/// A server usually repeats the same head, and comparing bytes is several times cheaper than
/// parsing them. This changes no result: the meaning of a head depends only on its bytes and on the
/// kind of request.
#[derive(Debug, Default)]
pub(crate) struct KnownHead {
    bytes: Vec<u8>,
    request_is_head: bool,
    meaning: Option<(State, Head)>,
}

/// Longer heads are not worth caching.
const MAX_KNOWN_BYTES: usize = 1024;

impl KnownHead {
    /// The meaning of the head at the start of `bytes`, if it is this head.
    fn meaning_of(&self, bytes: &[u8], request_is_head: bool) -> Option<(State, Head)> {
        let is_same = self.request_is_head == request_is_head && bytes.starts_with(&self.bytes);
        self.meaning.filter(|_| is_same)
    }

    fn keep(&mut self, bytes: &[u8], request_is_head: bool, meaning: (State, Head)) {
        if bytes.len() <= MAX_KNOWN_BYTES {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.request_is_head = request_is_head;
            self.meaning = Some(meaning);
        }
    }
}

/// Decodes one response.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    /// A head that did not arrive in one piece.
    partial_head: Vec<u8>,
    /// How much of it had arrived when it was last parsed.
    parsed_bytes: usize,
    head: Option<Head>,
    request_is_head: bool,
    /// Whether the status 101 ends the response: the rest belongs to the other protocol.
    accepts_switch: bool,
    /// Values of `Set-Cookie` fields, if they are used.
    set_cookies: Option<Vec<Vec<u8>>>,
    /// Other fields that are kept.
    kept_fields: Option<Box<KeptFields>>,
    /// Why the latest response was rejected, if it was.
    rejection: Option<Rejection>,
}

/// The first value of each of some fields; `None` if the head has none of that name.
#[derive(Debug)]
struct KeptFields {
    names: Arc<[String]>,
    values: Vec<Option<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(Chunked),
    UntilClose,
    Done,
}

impl Decoder {
    /// A decoder for the response to a request; a response to HEAD has no body, regardless of its
    /// head.
    pub fn new(request_is_head: bool) -> Self {
        Self {
            state: State::Head,
            partial_head: Vec::new(),
            parsed_bytes: 0,
            head: None,
            request_is_head,
            accepts_switch: false,
            set_cookies: None,
            kept_fields: None,
            rejection: None,
        }
    }

    /// Resets the decoder for the next response.
    pub fn reset(&mut self, request_is_head: bool) {
        self.state = State::Head;
        self.partial_head.clear();
        self.head = None;
        self.request_is_head = request_is_head;
        self.accepts_switch = false;
        self.set_cookies = None;
        self.kept_fields = None;
        self.rejection = None;
    }

    /// Accepts a switch to another protocol as the next response; it has no body.
    pub fn accept_switch(&mut self) {
        self.accepts_switch = true;
    }

    /// Keeps the `Set-Cookie` fields of the next response.
    pub fn keep_set_cookies(&mut self) {
        self.set_cookies = Some(Vec::new());
    }

    /// Takes the values of the `Set-Cookie` fields.
    pub fn take_set_cookies(&mut self) -> Vec<Vec<u8>> {
        self.set_cookies.take().unwrap_or_default()
    }

    /// Keeps the first value of each of these fields of the next response.
    pub fn keep_fields(&mut self, names: &Arc<[String]>) {
        if !names.is_empty() {
            self.kept_fields = Some(Box::new(KeptFields {
                names: Arc::clone(names),
                values: vec![None; names.len()],
            }));
        }
    }

    /// The kept values, in the order of the names.
    pub fn kept_fields(&self) -> &[Option<Vec<u8>>] {
        self.kept_fields.as_ref().map_or(&[], |kept| &kept.values)
    }

    /// The final head, once it is known.
    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// Why the response was rejected, after [`Malformed`].
    pub fn rejection(&self) -> Option<Rejection> {
        self.rejection
    }

    /// Records why a response is rejected.
    #[cold]
    pub fn reject(&mut self, rejection: Rejection) -> Malformed {
        self.rejection = Some(rejection);
        Malformed
    }

    /// Takes the next bytes of the stream; parts of the body go to `body`. `known` may come from
    /// any other response.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        known: &mut KnownHead,
        body: &mut impl FnMut(&[u8]),
    ) -> Result<Progress, Malformed> {
        loop {
            let used = match self.state {
                State::Head => match self.take_head(bytes, known)? {
                    Some(used) => used,
                    None => return Ok(Progress::NeedMore),
                },
                State::Length { left } => {
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    body(&bytes[..used]);
                    let left = left - used as u64;
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Length { left }
                    };
                    used
                }
                State::Chunked(chunked) => self.take_chunked(chunked, bytes, body)?,
                State::UntilClose => {
                    body(bytes);
                    bytes.len()
                }
                State::Done => {
                    return Ok(Progress::Complete {
                        surplus: bytes.len(),
                    });
                }
            };
            bytes = &bytes[used..];
            if bytes.is_empty() && self.state != State::Done {
                return Ok(Progress::NeedMore);
            }
        }
    }

    /// Whether the response is complete now that the stream has ended.
    pub fn is_complete_at_end(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Whether the stream has ended in a malformed head, which may not have been parsed yet.
    pub fn is_malformed_at_end(&mut self) -> bool {
        let head = std::mem::take(&mut self.partial_head);
        self.state == State::Head && self.parse_head(&head).is_err()
    }

    /// Takes bytes of the head; `None` if it continues beyond them. Returns how many of `bytes`
    /// belong to it.
    fn take_head(
        &mut self,
        bytes: &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<usize>, Malformed> {
        let before = self.partial_head.len();
        let is_only_framed = self.set_cookies.is_none() && self.kept_fields.is_none();
        let may_be_known = before == 0 && is_only_framed;
        if may_be_known && let Some((state, head)) = known.meaning_of(bytes, self.request_is_head) {
            self.state = state;
            self.head = Some(head);
            return Ok(Some(known.bytes.len()));
        }

        // Bytes beyond the limit are not parsed, so that the result does not depend on how a head
        // is split.
        let within = &bytes[..bytes.len().min(MAX_HEAD_BYTES - before)];
        if before == 0 {
            if let Some(length) = self.parse_head(within)? {
                // Whether 101 is accepted depends on the request.
                if let Some(head) = self.head.filter(|head| head.status != 101) {
                    known.keep(&within[..length], self.request_is_head, (self.state, head));
                }
                return Ok(Some(length));
            }
            self.partial_head.extend_from_slice(within);
            self.parsed_bytes = within.len();
        } else {
            let mut whole = std::mem::take(&mut self.partial_head);
            whole.extend_from_slice(within);
            let parsed = if self.is_worth_parsing(&whole, before) {
                self.parsed_bytes = whole.len();
                self.parse_head(&whole)?
            } else {
                None
            };
            if parsed.is_some() {
                whole.clear();
            }
            self.partial_head = whole;
            if let Some(length) = parsed {
                return Ok(Some(length - before));
            }
        }

        if self.partial_head.len() == MAX_HEAD_BYTES {
            Err(self.reject(Rejection::HeadLength))
        } else {
            Ok(None)
        }
    }

    /// Whether a head that has grown from `before` bytes may now be complete, or has grown enough
    /// to check whether it is still valid.
    fn is_worth_parsing(&self, whole: &[u8], before: usize) -> bool {
        let may_be_complete = || {
            let recent = &whole[before.saturating_sub(2)..];
            let has = |end: &[u8]| recent.windows(end.len()).any(|bytes| bytes == end);
            has(b"\n\r\n") || has(b"\n\n")
        };

        whole.len() <= MAX_OFTEN_PARSED_BYTES
            || whole.len() >= self.parsed_bytes + self.parsed_bytes / 4
            || may_be_complete()
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let is_line_end = |byte: &&u8| matches!(**byte, b'\r' | b'\n');
        if bytes.iter().take_while(is_line_end).count() > MAX_LEADING_BYTES {
            return Err(self.reject(Rejection::NotHttp));
        }

        let mut usual = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
        let mut response = Response::new(&mut []);
        match parse_response(&mut response, bytes, &mut usual) {
            Ok(status) => return self.take_parsed(status, &response),
            Err(httparse::Error::TooManyHeaders) => {}
            Err(error) => return Err(self.reject(error.into())),
        }

        let mut many = Vec::with_capacity(MAX_FIELDS);
        let mut response = Response::new(&mut []);
        let fields = &mut many.spare_capacity_mut()[..MAX_FIELDS];
        let status = parse_response(&mut response, bytes, fields)
            .map_err(|error| self.reject(error.into()))?;
        self.take_parsed(status, &response)
    }

    /// Records the contents of a head, if it is complete; returns its length.
    fn take_parsed(
        &mut self,
        status: Status<usize>,
        response: &Response<'_, '_>,
    ) -> Result<Option<usize>, Malformed> {
        let Status::Complete(length) = status else {
            return Ok(None);
        };

        let Some(code) = response.code else {
            return Err(self.reject(Rejection::Status));
        };
        match code {
            101 if self.accepts_switch => {}
            // Not a status, or a switch to another protocol that was not requested.
            0..=99 | 101 => return Err(self.reject(Rejection::Status)),
            // An interim response; the final one follows.
            100..=199 => return Ok(Some(length)),
            _ => {}
        }

        let (state, persistence) = framing(response, code, self.request_is_head)
            .map_err(|rejection| self.reject(rejection))?;
        self.state = state;
        if let Some(cookies) = &mut self.set_cookies {
            let fields = response.headers.iter();
            let set_cookies = fields.filter(|field| field.name.eq_ignore_ascii_case("set-cookie"));
            cookies.extend(set_cookies.map(|field| unfolded(field.value)));
        }

        if let Some(kept) = &mut self.kept_fields {
            for (name, value) in kept.names.iter().zip(&mut kept.values) {
                let mut fields = response.headers.iter();
                *value = fields
                    .find(|field| field.name.eq_ignore_ascii_case(name))
                    .map(|field| unfolded(field.value));
            }
        }

        let is_until_close = state == State::UntilClose;
        self.head = Some(Head {
            status: code,
            keeps_alive: persistence.keeps_alive && !is_until_close,
            has_keep_alive: persistence.has_keep_alive && !is_until_close,
            is_until_close,
        });

        Ok(Some(length))
    }

    /// Consumes as much of a chunked body as possible in one step.
    fn take_chunked(
        &mut self,
        chunked: Chunked,
        bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        if let Chunked::Data { left } = chunked {
            let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            body(&bytes[..used]);
            let left = left - used as u64;
            self.state = State::Chunked(if left == 0 {
                Chunked::DataReturn
            } else {
                Chunked::Data { left }
            });
            return Ok(used);
        }

        let Some(&byte) = bytes.first() else {
            return Ok(0);
        };

        let next = chunked
            .after(byte)
            .map_err(|Malformed| self.reject(Rejection::Chunk))?;
        self.state = next.map_or(State::Done, State::Chunked);
        Ok(1)
    }
}

/// Parses a head. A field may continue on lines that begin with white space: a client has to accept
/// that (RFC 9112, section 5.2).
fn parse_response<'fields, 'bytes>(
    response: &mut Response<'fields, 'bytes>,
    bytes: &'bytes [u8],
    fields: &'fields mut [MaybeUninit<Header<'bytes>>],
) -> httparse::Result<usize> {
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.parse_response_with_uninit_headers(response, bytes, fields)
}

/// The value on a single line, because a line end in a cookie must not get into a request.
fn unfolded(value: &[u8]) -> Vec<u8> {
    value
        .iter()
        .map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            _ => *byte,
        })
        .collect()
}

/// Whether a connection outlives a response.
struct Persistence {
    keeps_alive: bool,
    has_keep_alive: bool,
}

/// How the body ends (RFC 9112, section 6.3), and whether the head keeps the connection open.
fn framing(
    response: &Response<'_, '_>,
    code: u16,
    request_is_head: bool,
) -> Result<(State, Persistence), Rejection> {
    let mut length: Result<Option<u64>, Rejection> = Ok(None);
    let mut last_coding: Option<&[u8]> = None;
    let (mut has_close, mut has_keep) = (false, false);

    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            length = same_length(length, field.value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            last_coding = field
                .value
                .split(|byte| *byte == b',')
                .next_back()
                .map(<[u8]>::trim_ascii);
        } else if field.name.eq_ignore_ascii_case("connection") {
            for token in field
                .value
                .split(|byte| *byte == b',')
                .map(<[u8]>::trim_ascii)
            {
                has_close |= token.eq_ignore_ascii_case(b"close");
                has_keep |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }

    let is_1_1 = response.version == Some(1);
    let state = match last_coding {
        _ if request_is_head || matches!(code, 101 | 204 | 304) => State::Done,
        // HTTP/1.0 has no transfer codings, so the end of such a message is undefined: section 6.1.
        Some(_) if !is_1_1 => return Err(Rejection::OldTransferEncoding),
        Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => State::Chunked(Chunked::FIRST),
        Some(_) => State::UntilClose,
        // Only here does the length matter, so only here can it be invalid.
        None => match length? {
            None => State::UntilClose,
            Some(0) => State::Done,
            Some(left) => State::Length { left },
        },
    };

    let persistence = Persistence {
        keeps_alive: (is_1_1 || has_keep) && !has_close && code != 101,
        has_keep_alive: has_keep && !has_close,
    };
    Ok((state, persistence))
}

/// The value of a further Content-Length; several must agree.
fn same_length(
    known: Result<Option<u64>, Rejection>,
    value: &[u8],
) -> Result<Option<u64>, Rejection> {
    value
        .split(|byte| *byte == b',')
        .try_fold(known?, |known, part| {
            let length = parse_length(part)?;
            if known.is_some_and(|other| other != length) {
                Err(Rejection::Length)
            } else {
                Ok(Some(length))
            }
        })
}

fn parse_length(text: &[u8]) -> Result<u64, Rejection> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Rejection::Length);
    }

    std::str::from_utf8(text)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(Rejection::Length)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
