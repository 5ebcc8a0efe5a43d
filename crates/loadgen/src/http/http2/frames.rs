//! Frames: RFC 9113, section 4.

/// Length, type, flags and stream of a frame.
pub(crate) const FRAME_HEADER_BYTES: usize = 9;

/// Maximum length of a frame, unless the peer permits more: RFC 9113, section 6.5.2.
pub(crate) const FRAME_BYTES: usize = 16 * 1024;

/// The maximum of a window and of a stream's number: RFC 9113, sections 5.1.1 and 6.9.1.
pub(crate) const MAX_31_BITS: u32 = u32::MAX >> 1;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
const PRIORITIZED: u8 = 0x20;

/// What the server did wrong, in the words of HTTP/2: RFC 9113, section 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    Protocol = 1,
    FlowControl = 3,
    FrameSize = 6,
    Cancel = 8,
    Compression = 9,
    Calm = 11,
}

/// A frame without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload_bytes: usize,
}

impl FrameHeader {
    /// Parses the beginning of a frame, as soon as it is complete.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<FRAME_HEADER_BYTES>()?;
        let [high, middle, low, kind, flags, stream @ ..] = *header;
        Some(Self {
            kind,
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes(stream) & MAX_31_BITS,
            payload_bytes: u32::from_be_bytes([0, high, middle, low]) as usize,
        })
    }

    /// Whether the frame has this flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The bytes on the wire.
    pub fn bytes(&self) -> [u8; FRAME_HEADER_BYTES] {
        let [_, high, middle, low] = (self.payload_bytes as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }

    /// The payload of a DATA or HEADERS frame without its padding and priority.
    pub fn unpadded<'a>(&self, mut payload: &'a [u8]) -> Result<&'a [u8], ErrorCode> {
        let mut padding_bytes = 0;
        if self.has(PADDED) {
            let (first, rest) = payload.split_first().ok_or(ErrorCode::FrameSize)?;
            (padding_bytes, payload) = (usize::from(*first), rest);
        }
        if self.kind == HEADERS && self.has(PRIORITIZED) {
            payload = payload.get(5..).ok_or(ErrorCode::FrameSize)?;
        }
        let end = payload.len().checked_sub(padding_bytes);
        Ok(&payload[..end.ok_or(ErrorCode::Protocol)?])
    }
}

/// Puts frames together that arrive in pieces.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// The beginning of a frame that has not arrived completely.
    partial: Vec<u8>,
}

impl FrameReader {
    /// Takes the next bytes of a connection, and reports each frame that they complete.
    pub fn take(
        &mut self,
        mut bytes: &[u8],
        mut on_frame: impl FnMut(FrameHeader, &[u8]) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        while !self.partial.is_empty() && !bytes.is_empty() {
            let missing = missing_bytes(&self.partial)?;
            let (part, rest) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(part);
            bytes = rest;
            if missing_bytes(&self.partial)? == 0 {
                let mut whole = std::mem::take(&mut self.partial);
                take_first(&whole, &mut on_frame)?;
                whole.clear();
                self.partial = whole;
            }
        }

        while missing_bytes(bytes)? == 0 {
            bytes = &bytes[take_first(bytes, &mut on_frame)?..];
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

/// How many bytes are missing to complete the header of the first frame or, after that, the frame.
fn missing_bytes(bytes: &[u8]) -> Result<usize, ErrorCode> {
    let Some(header) = FrameHeader::parse(bytes) else {
        return Ok(FRAME_HEADER_BYTES - bytes.len());
    };
    if header.payload_bytes > FRAME_BYTES {
        return Err(ErrorCode::FrameSize);
    }
    Ok((FRAME_HEADER_BYTES + header.payload_bytes).saturating_sub(bytes.len()))
}

/// Reports the first frame, which is complete; returns its length.
#[inline]
fn take_first(
    bytes: &[u8],
    on_frame: &mut impl FnMut(FrameHeader, &[u8]) -> Result<(), ErrorCode>,
) -> Result<usize, ErrorCode> {
    let header = FrameHeader::parse(bytes).ok_or(ErrorCode::FrameSize)?;
    let end = FRAME_HEADER_BYTES + header.payload_bytes;
    on_frame(header, &bytes[FRAME_HEADER_BYTES..end])?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let header = FrameHeader {
            kind,
            flags,
            stream: 1,
            payload_bytes: payload.len(),
        };
        [&header.bytes()[..], payload].concat()
    }

    #[test]
    fn frames_are_found_however_they_are_split() {
        let sent = [
            (SETTINGS, vec![]),
            (HEADERS, vec![7; 300]),
            (DATA, vec![1; 5]),
            (PING, vec![0; 8]),
            (DATA, vec![]),
        ];
        let stream: Vec<u8> = sent
            .iter()
            .flat_map(|(kind, payload)| frame(*kind, 0, payload))
            .collect();
        for piece_bytes in 1..=stream.len() {
            let mut reader = FrameReader::default();
            let mut found = Vec::new();
            for piece in stream.chunks(piece_bytes) {
                let taken = reader.take(piece, |header, payload| {
                    found.push((header.kind, payload.to_vec()));
                    Ok(())
                });
                assert_eq!(taken, Ok(()));
            }
            assert_eq!(found, sent, "in pieces of {piece_bytes}");
            assert!(reader.partial.is_empty());
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_header() {
        let header = FrameHeader {
            kind: DATA,
            flags: 0,
            stream: 1,
            payload_bytes: FRAME_BYTES + 1,
        };
        for piece_bytes in [1, FRAME_HEADER_BYTES] {
            let mut reader = FrameReader::default();
            let bytes = header.bytes();
            let mut pieces = bytes.chunks(piece_bytes);
            let refused = pieces.find_map(|piece| reader.take(piece, |_, _| Ok(())).err());
            assert_eq!(refused, Some(ErrorCode::FrameSize));
        }
    }

    #[test]
    fn padding_and_priority_are_removed() {
        for (kind, flags, payload, expected) in [
            (DATA, 0, &b"abc"[..], Ok(&b"abc"[..])),
            (DATA, PADDED, b"\x01abc", Ok(b"ab")),
            (DATA, PADDED, b"\x03abc", Ok(b"")),
            (DATA, PADDED, b"\x04abc", Err(ErrorCode::Protocol)),
            (DATA, PADDED, b"", Err(ErrorCode::FrameSize)),
            (HEADERS, PADDED | PRIORITIZED, b"\x01.....ab", Ok(b"a")),
            (HEADERS, PRIORITIZED, b"....", Err(ErrorCode::FrameSize)),
        ] {
            let bytes = frame(kind, flags, payload);
            let header = FrameHeader::parse(&bytes).expect("a header");
            assert_eq!(header.unpadded(payload), expected, "{payload:?}");
        }
    }
}
