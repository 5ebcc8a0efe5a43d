//! What a connection sends: frames are collected and written together, heads and control frames
//! before bodies. It records when each head is written.

use std::collections::VecDeque;

use crate::base::clock::monotonic_ns;
use crate::http::http2::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, ErrorCode, FRAME_BYTES, FRAME_HEADER_BYTES, FrameHeader,
    GOAWAY, HEADERS, RST_STREAM, WINDOW_UPDATE,
};
use crate::net::socket::Transfer;
use crate::net::transport::Transport;

/// Parts of bodies are added as long as fewer bytes than this are unsent.
const MAX_UNSENT_BYTES: usize = 64 * 1024;

/// With more bytes of unsent control frames than this, nothing is read that would need another one.
const MAX_UNSENT_CONTROL_BYTES: usize = 16 * 1024;

/// Frames that are not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// How many of the bytes the socket has accepted.
    sent: usize,
    /// Unsent bytes that the server has caused.
    control_bytes: usize,
    /// Heads that are not sent, as stream and position in `bytes`.
    heads: VecDeque<(u32, usize)>,
    /// Whether the socket accepts no more bytes for now.
    is_blocked: bool,
    /// Whether it accepts no more bytes at all.
    is_closed: bool,
}

impl Output {
    /// An output whose first bytes are these.
    pub fn beginning_with(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            ..Self::default()
        }
    }

    /// Adds a control frame.
    pub fn control(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let frame = FrameHeader {
            kind,
            flags,
            stream,
            payload_bytes: payload.len(),
        };
        self.bytes.extend_from_slice(&frame.bytes());
        self.bytes.extend_from_slice(payload);
        self.control_bytes += FRAME_HEADER_BYTES + payload.len();
    }

    /// Lets the server send so many more bytes on a stream, or on all of them together.
    pub fn open_window(&mut self, stream: u32, bytes: u32) {
        self.control(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }

    /// Resets a stream.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.control(RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
    }

    /// Says why the client ends the connection.
    pub fn go_away(&mut self, code: ErrorCode) {
        self.control(
            GOAWAY,
            0,
            0,
            &[[0; 4], (code as u32).to_be_bytes()].concat(),
        );
    }

    /// Adds the head that `write` appends.
    pub fn head(&mut self, stream: u32, is_end: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.heads.push_back((stream, start));
        let mut frame = FrameHeader {
            kind: HEADERS,
            flags: END_HEADERS | if is_end { END_STREAM } else { 0 },
            stream,
            payload_bytes: 0,
        };
        self.bytes.extend_from_slice(&frame.bytes());
        let block_start = self.bytes.len();
        write(&mut self.bytes);

        frame.payload_bytes = self.bytes.len() - block_start;
        if frame.payload_bytes > FRAME_BYTES {
            let block = self.bytes.split_off(block_start);
            self.bytes.truncate(start);
            return self.split_head(frame, &block);
        }
        self.bytes[start..block_start].copy_from_slice(&frame.bytes());
    }

    #[cold]
    fn split_head(&mut self, mut frame: FrameHeader, block: &[u8]) {
        let mut parts = block.chunks(FRAME_BYTES).peekable();
        frame.flags &= !END_HEADERS;
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                frame.flags |= END_HEADERS;
            }
            frame.payload_bytes = part.len();
            self.bytes.extend_from_slice(&frame.bytes());
            self.bytes.extend_from_slice(part);
            (frame.kind, frame.flags) = (CONTINUATION, 0);
        }
    }

    /// Adds a part of a body.
    pub fn data(&mut self, frame: FrameHeader, part: &[u8]) {
        self.bytes.extend_from_slice(&frame.bytes());
        self.bytes.extend_from_slice(part);
    }

    /// Whether there is room for parts of bodies.
    pub fn has_room(&self) -> bool {
        !self.is_closed && self.bytes.len() - self.sent < MAX_UNSENT_BYTES
    }

    /// Whether so much is unsent that nothing should be read.
    pub fn is_overfull(&self) -> bool {
        self.control_bytes > MAX_UNSENT_CONTROL_BYTES
    }

    /// Whether the socket accepts no more bytes for now.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether the socket accepts no more bytes at all.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.is_blocked
    }

    /// Writes as much as the socket accepts. Reports each stream whose head is sent with the time
    /// before the write in which it starts.
    pub fn write(&mut self, transport: &Transport, mut on_head: impl FnMut(u32, u64)) {
        while self.sent < self.bytes.len() {
            let before_ns = monotonic_ns();
            match transport.send(&self.bytes[self.sent..]) {
                Transfer::Bytes(count) => self.sent += count,
                Transfer::WouldBlock => {
                    self.is_blocked = true;
                    return self.forget_sent();
                }
                Transfer::Closed | Transfer::Broken => {
                    self.is_closed = true;
                    return self.clear();
                }
            }
            while let Some(&(stream, _)) = self.heads.front().filter(|head| head.1 < self.sent) {
                on_head(stream, before_ns);
                self.heads.pop_front();
            }
        }

        self.clear();
        // TLS may still keep some of the bytes.
        self.is_blocked = transport.poll_flush().is_pending();
    }

    /// The streams whose heads are not sent.
    pub fn unsent_heads(&self) -> impl Iterator<Item = u32> {
        self.heads.iter().map(|(stream, _)| *stream)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * MAX_UNSENT_BYTES);
        self.heads.clear();
        (self.sent, self.control_bytes) = (0, 0);
    }

    /// Releases the sent bytes once they are most of all.
    fn forget_sent(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            for (_, start) in &mut self.heads {
                *start -= self.sent;
            }
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_head_is_split() {
        for (bytes, expected) in [
            (0, vec![(HEADERS, END_HEADERS | END_STREAM, 0)]),
            (
                FRAME_BYTES,
                vec![(HEADERS, END_HEADERS | END_STREAM, FRAME_BYTES)],
            ),
            (
                2 * FRAME_BYTES + 1,
                vec![
                    (HEADERS, END_STREAM, FRAME_BYTES),
                    (CONTINUATION, 0, FRAME_BYTES),
                    (CONTINUATION, END_HEADERS, 1),
                ],
            ),
        ] {
            let mut output = Output::default();
            output.head(3, true, |out| out.resize(out.len() + bytes, 7));
            let mut frames = Vec::new();
            let mut rest = output.bytes.as_slice();
            while let Some(frame) = FrameHeader::parse(rest) {
                assert_eq!(frame.stream, 3);
                frames.push((frame.kind, frame.flags, frame.payload_bytes));
                rest = &rest[FRAME_HEADER_BYTES + frame.payload_bytes..];
            }
            assert_eq!(frames, expected);
        }
    }
}
