//! Finds the end of an HTTP/1.x answer in a stream of bytes, however it is cut. Pure: no socket, no
//! clock.
//!
//! It keeps nothing of a body: each part is handed on as it comes. Rules of framing: RFC 9112,
//! section 6.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status};

use super::chunked::Chunked;
use super::malformed::{MAX_FIELDS, Malformed};

/// More bytes than this in a head are refused; with the fields' limit, all that a decoder ever
/// keeps.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// How far a response has come.
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

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    /// The server lets the connection live after this answer.
    pub keeps_alive: bool,
    /// Only the end of the connection ends the body.
    pub is_until_close: bool,
}

/// The latest head that came in one piece, and what it means.
///
/// A server says the same again and again, and comparing bytes is several times cheaper than
/// reading them as a head. It changes no answer: what a head means depends on its bytes and on the
/// kind of request alone.
#[derive(Debug, Default)]
pub(crate) struct KnownHead {
    bytes: Vec<u8>,
    request_is_head: bool,
    meaning: Option<(State, Head)>,
}

/// Longer heads are not worth keeping.
const MAX_KNOWN_BYTES: usize = 1024;

impl KnownHead {
    /// What `bytes` begin with, if it is this head.
    fn meaning_of(&self, bytes: &[u8], request_is_head: bool) -> Option<(State, Head)> {
        let is_same = self.request_is_head == request_is_head && bytes.starts_with(&self.bytes);
        self.meaning.filter(|_| is_same)
    }

    fn keep(&mut self, bytes: &[u8], request_is_head: bool, meaning: (State, Head)) {
        if bytes.len() <= MAX_KNOWN_BYTES {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            (self.request_is_head, self.meaning) = (request_is_head, Some(meaning));
        }
    }
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
    Chunked(Chunked),
    UntilClose,
    Done,
}

impl Decoder {
    /// A decoder for the response to a request; a response to HEAD has no body whatever its head
    /// says.
    pub fn new(request_is_head: bool) -> Self {
        Self {
            state: State::Head,
            partial_head: Vec::new(),
            head: None,
            request_is_head,
            set_cookies: None,
        }
    }

    /// Forgets the previous answer.
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

    /// Takes the next bytes of the stream; parts of the body go to `body`. `known` may come from
    /// any other answer.
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

    /// The stream has ended: whether the response is complete by that.
    pub fn is_complete_at_end(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Takes bytes of the head; `None` when it goes on beyond them. Says how many of `bytes` belong
    /// to it.
    fn take_head(
        &mut self,
        bytes: &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<usize>, Malformed> {
        let before = self.partial_head.len();
        let may_be_known = before == 0 && self.set_cookies.is_none();
        if may_be_known && let Some((state, head)) = known.meaning_of(bytes, self.request_is_head) {
            (self.state, self.head) = (state, Some(head));
            return Ok(Some(known.bytes.len()));
        }
        // What is beyond the limit is not looked at, so that a head is refused alike in one piece
        // and in many.
        let within = &bytes[..bytes.len().min(MAX_HEAD_BYTES - before)];
        if before == 0 {
            if let Some(length) = self.parse_head(within)? {
                if let Some(head) = self.head {
                    known.keep(&within[..length], self.request_is_head, (self.state, head));
                }
                return Ok(Some(length));
            }
            self.partial_head.extend_from_slice(within);
        } else {
            let mut whole = std::mem::take(&mut self.partial_head);
            whole.extend_from_slice(within);
            let parsed = self.parse_head(&whole)?;
            if parsed.is_some() {
                whole.clear();
            }
            self.partial_head = whole;
            if let Some(length) = parsed {
                return Ok(Some(length - before));
            }
        }
        if self.partial_head.len() == MAX_HEAD_BYTES {
            Err(Malformed)
        } else {
            Ok(None)
        }
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut []);
        let status = ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, bytes, &mut fields)
            .map_err(|_| Malformed)?;
        let Status::Complete(length) = status else {
            return Ok(None);
        };
        let code = response.code.ok_or(Malformed)?;
        match code {
            // Not a status; or another protocol from here on, which nobody asked for.
            0..=99 | 101 => return Err(Malformed),
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
        self.head = Some(Head {
            status: code,
            keeps_alive: keeps_alive && !is_until_close,
            is_until_close,
        });
        Ok(Some(length))
    }

    /// Takes what it can of a chunked body in one step.
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
        self.state = chunked.after(byte)?.map_or(State::Done, State::Chunked);
        Ok(1)
    }
}

/// How the body ends (RFC 9112, section 6.3), and whether the head lets the connection live.
fn framing(
    response: &httparse::Response,
    code: u16,
    request_is_head: bool,
) -> Result<(State, bool), Malformed> {
    let mut length: Result<Option<u64>, Malformed> = Ok(None);
    let mut last_coding: Option<&[u8]> = None;
    let (mut says_close, mut says_keep) = (false, false);
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
                says_close |= token.eq_ignore_ascii_case(b"close");
                says_keep |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let is_1_1 = response.version == Some(1);
    let state = match last_coding {
        _ if request_is_head || code == 204 || code == 304 => State::Done,
        // HTTP/1.0 knows no codings, so nobody can say where such a message ends: section 6.1.
        Some(_) if !is_1_1 => return Err(Malformed),
        Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => State::Chunked(Chunked::FIRST),
        Some(_) => State::UntilClose,
        // Only here does the length decide, and only here can it be wrong.
        None => match length? {
            None => State::UntilClose,
            Some(0) => State::Done,
            Some(left) => State::Length { left },
        },
    };
    Ok((
        state,
        if is_1_1 {
            !says_close
        } else {
            says_keep && !says_close
        },
    ))
}

/// The length that a further Content-Length says; several must say the same.
fn same_length(
    known: Result<Option<u64>, Malformed>,
    value: &[u8],
) -> Result<Option<u64>, Malformed> {
    value
        .split(|byte| *byte == b',')
        .try_fold(known?, |known, part| {
            let length = parse_length(part)?;
            if known.is_some_and(|other| other != length) {
                Err(Malformed)
            } else {
                Ok(Some(length))
            }
        })
}

fn parse_length(text: &[u8]) -> Result<u64, Malformed> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    std::str::from_utf8(text)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(Malformed)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
