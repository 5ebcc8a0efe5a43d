//! Limits what a server may send without sending responses: a flood uses little time and memory,
//! and is ended.

use crate::http::http2::frames::{CONTINUATION, DATA, FrameHeader, HEADERS, WINDOW_UPDATE};

/// More consecutive frames without body data than this are a flood. Each of the concurrent streams
/// of a connection may end with three frames.
const MAX_FRAMES_WITHOUT_DATA: u32 = 1_000;

/// Longer heads are rejected, in compressed bytes as well as decoded with 32 bytes for each field
/// (RFC 9113, section 6.5.2).
pub(crate) const MAX_HEADER_LIST_BYTES: u32 = 256 * 1024;

/// The longest head takes 16 frames.
const MAX_CONTINUATIONS: u32 = 20;

/// Flow-control window of a connection: a large response does not wait for window updates.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 5 * 1024 * 1024;

/// More bytes than this on a connection without requests are a flood. The server may still send the
/// rest of cancelled responses, as well as PING and SETTINGS frames.
const MAX_IDLE_BYTES: usize = CONNECTION_WINDOW_BYTES as usize + 1024 * 1024;

/// As many frames of the usual size as one turn of the engine reads.
const MAX_FRAMES_PER_TURN: u32 = 64;

/// A few compressed bytes can represent many fields, which take time to decode.
const MAX_HEADS_PER_TURN: u32 = 8;

/// Counts the frames that a server sends.
#[derive(Debug, Default)]
pub(crate) struct FrameCounter {
    /// Compressed length and number of frames of the latest head so far.
    head_bytes: usize,
    continuations: u32,
    without_data: u32,
    in_turn: u32,
    heads_in_turn: u32,
    /// Bytes since the connection became idle, if it is.
    idle_bytes: usize,
}

impl FrameCounter {
    /// Starts another turn of the engine.
    pub fn start_turn(&mut self) {
        (self.in_turn, self.heads_in_turn) = (0, 0);
    }

    /// Starts another request.
    pub fn start_request(&mut self) {
        self.without_data = 0;
    }

    /// The last request in progress has ended.
    pub fn start_idling(&mut self) {
        self.idle_bytes = 0;
    }

    /// Bytes were read.
    pub fn received(&mut self, bytes: usize) {
        self.idle_bytes = self.idle_bytes.saturating_add(bytes);
    }

    /// Counts a frame; returns whether the server has sent too many frames without body data, or
    /// too long a head.
    #[inline]
    pub fn is_flooded_by(&mut self, frame: FrameHeader) -> bool {
        match frame.kind {
            HEADERS => (self.head_bytes, self.continuations) = (frame.payload_bytes, 0),
            CONTINUATION => {
                self.head_bytes += frame.payload_bytes;
                self.continuations += 1;
            }
            _ => {}
        }

        self.in_turn += 1;
        self.heads_in_turn += u32::from(frame.kind == HEADERS);
        match frame.kind {
            DATA if frame.payload_bytes > 0 => self.without_data = 0,
            // The server may send one for each part of a large request.
            WINDOW_UPDATE => {}
            _ => self.without_data += 1,
        }

        self.without_data > MAX_FRAMES_WITHOUT_DATA
            || self.head_bytes > MAX_HEADER_LIST_BYTES as usize
            || self.continuations > MAX_CONTINUATIONS
    }

    /// Whether the server has flooded an idle connection.
    pub fn is_flooded_while_idle(&self) -> bool {
        self.idle_bytes > MAX_IDLE_BYTES
    }

    /// Whether this turn has taken enough frames.
    pub fn has_taken_enough(&self) -> bool {
        self.in_turn >= MAX_FRAMES_PER_TURN || self.heads_in_turn >= MAX_HEADS_PER_TURN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http2::frames::{PING, SETTINGS};

    fn is_flooded_by(counter: &mut FrameCounter, kind: u8, bytes: usize, times: u32) -> bool {
        let frame = FrameHeader {
            kind,
            flags: 0,
            stream: 1,
            payload_bytes: bytes,
        };
        (0..times).any(|_| counter.is_flooded_by(frame))
    }

    #[test]
    fn too_many_frames_without_data_or_a_new_request_are_a_flood() {
        let limit = MAX_FRAMES_WITHOUT_DATA;
        let mut counter = FrameCounter::default();
        assert!(!is_flooded_by(&mut counter, PING, 8, limit));
        assert!(!is_flooded_by(&mut counter, DATA, 1, 1));
        assert!(!is_flooded_by(&mut counter, PING, 8, limit));
        counter.start_request();
        assert!(!is_flooded_by(&mut counter, SETTINGS, 0, limit));
        assert!(!is_flooded_by(&mut counter, WINDOW_UPDATE, 4, 10 * limit));
        assert!(is_flooded_by(&mut counter, DATA, 0, 1));
    }

    #[test]
    fn a_head_that_is_too_long_is_a_flood() {
        let frames = MAX_HEADER_LIST_BYTES / 16_384;
        let mut counter = FrameCounter::default();
        for _ in 0..2 {
            assert!(!is_flooded_by(&mut counter, HEADERS, 16_384, 1));
            assert!(!is_flooded_by(
                &mut counter,
                CONTINUATION,
                16_384,
                frames - 1
            ));
        }
        assert!(is_flooded_by(&mut counter, CONTINUATION, 1, 1));

        let mut counter = FrameCounter::default();
        assert!(!is_flooded_by(&mut counter, HEADERS, 1, 1));
        assert!(!is_flooded_by(
            &mut counter,
            CONTINUATION,
            0,
            MAX_CONTINUATIONS
        ));
        assert!(is_flooded_by(&mut counter, CONTINUATION, 0, 1));
    }

    #[test]
    fn bytes_are_limited_only_while_the_connection_is_idle() {
        let mut counter = FrameCounter::default();
        counter.received(MAX_IDLE_BYTES + 1);
        counter.start_idling();
        assert!(!counter.is_flooded_while_idle());
        counter.received(MAX_IDLE_BYTES);
        assert!(!counter.is_flooded_while_idle());
        counter.received(1);
        assert!(counter.is_flooded_while_idle());
    }

    #[test]
    fn a_turn_takes_a_limited_number_of_frames() {
        for (kind, frames) in [(DATA, MAX_FRAMES_PER_TURN), (HEADERS, MAX_HEADS_PER_TURN)] {
            let mut counter = FrameCounter::default();
            is_flooded_by(&mut counter, kind, 5, frames - 1);
            assert!(!counter.has_taken_enough());
            is_flooded_by(&mut counter, kind, 5, 1);
            assert!(counter.has_taken_enough());
            counter.start_turn();
            assert!(!counter.has_taken_enough());
        }
    }
}
