//! Finds the end of a chunked body: a state machine that advances with each byte that is not data.
//! It does no I/O.
//!
//! Nothing is buffered, so nothing can grow; lengths are limited nevertheless, so that an endless
//! line is rejected instead of awaited. Rules: RFC 9112, section 7.1.

use super::malformed::{MAX_FIELDS, Malformed};

/// More bytes than this in a chunk's size line, or in the trailer section, are refused.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024;

/// Position of the next byte in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunked {
    /// In the digits of a chunk's size; `line` bytes of its line have been read.
    Size {
        value: u64,
        line: usize,
    },
    /// In the white space after the size.
    Space {
        value: u64,
        line: usize,
    },
    /// In a chunk extension, which is ignored.
    Extension {
        value: u64,
        line: usize,
    },
    SizeLineFeed {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataLineFeed,
    Trailer(Trailer),
}

/// Position of the next byte in the trailer section. Its fields are checked like those of a head,
/// and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    place: Place,
    bytes: usize,
    fields: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
    Name,
    Value,
    LineFeed,
    LastLineFeed,
}

impl Chunked {
    /// Before the first chunk, and before each further one.
    pub const FIRST: Self = Self::Size { value: 0, line: 0 };

    /// The state after one byte that is not data; `None` when the body ends with it.
    pub fn after(self, byte: u8) -> Result<Option<Self>, Malformed> {
        let next = match (self, byte) {
            (Self::Size { value, line }, _) => after_size(value, line, byte)?,
            (Self::Space { value, .. } | Self::Extension { value, .. }, b'\r') => {
                Self::SizeLineFeed { value }
            }
            (Self::Space { value, line }, b' ' | b'\t') => Self::Space {
                value,
                line: longer(line)?,
            },
            (Self::Space { value, line }, b';') => Self::Extension {
                value,
                line: longer(line)?,
            },
            (Self::Extension { value, line }, _) if byte != b'\n' => Self::Extension {
                value,
                line: longer(line)?,
            },
            (Self::SizeLineFeed { value: 0 }, b'\n') => Self::Trailer(Trailer::FIRST),
            (Self::SizeLineFeed { value }, b'\n') => Self::Data { left: value },
            (Self::DataReturn, b'\r') => Self::DataLineFeed,
            (Self::DataLineFeed, b'\n') => Self::FIRST,
            (Self::Trailer(trailer), _) => return Ok(trailer.after(byte)?.map(Self::Trailer)),
            _ => return Err(Malformed),
        };
        Ok(Some(next))
    }
}

fn after_size(value: u64, line: usize, byte: u8) -> Result<Chunked, Malformed> {
    if let Some(digit) = (byte as char).to_digit(16) {
        // Leading zeros of a size do not count towards its magnitude.
        let value = value.checked_mul(16).ok_or(Malformed)? + u64::from(digit);
        return Ok(Chunked::Size {
            value,
            line: longer(line)?,
        });
    }
    match byte {
        _ if line == 0 => Err(Malformed),
        b'\r' => Ok(Chunked::SizeLineFeed { value }),
        b' ' | b'\t' => Ok(Chunked::Space {
            value,
            line: longer(line)?,
        }),
        b';' => Ok(Chunked::Extension {
            value,
            line: longer(line)?,
        }),
        _ => Err(Malformed),
    }
}

fn longer(line: usize) -> Result<usize, Malformed> {
    if line < MAX_LINE_BYTES {
        Ok(line + 1)
    } else {
        Err(Malformed)
    }
}

impl Trailer {
    const FIRST: Self = Self {
        place: Place::LineStart,
        bytes: 0,
        fields: 0,
    };

    /// The state after one byte; `None` when the section ends with it.
    fn after(self, byte: u8) -> Result<Option<Self>, Malformed> {
        let mut fields = self.fields;
        let bytes = self.bytes + 1;
        if bytes >= MAX_LINE_BYTES {
            return Err(Malformed);
        }

        let place = match (self.place, byte) {
            (Place::LineStart, b'\r') => Place::LastLineFeed,
            (Place::LastLineFeed, b'\n') => return Ok(None),
            (Place::LineStart, _) if is_token(byte) && fields < MAX_FIELDS => {
                fields += 1;
                Place::Name
            }
            (Place::Name, b':') => Place::Value,
            (Place::Name, _) if is_token(byte) => Place::Name,
            (Place::Value, b'\r') => Place::LineFeed,
            (Place::Value, b'\t' | b' '..=b'~' | 0x80..) => Place::Value,
            (Place::LineFeed, b'\n') => Place::LineStart,
            _ => return Err(Malformed),
        };
        Ok(Some(Self {
            place,
            bytes,
            fields,
        }))
    }
}

/// Whether a byte is allowed in the name of a field: RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
