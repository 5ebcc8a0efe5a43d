//! Limits of what a server may send over an HTTP/2 connection besides bodies.
//!
//! hyper queues interim responses and empty data, and answers pings and settings for as long as
//! they come. The transport counts frames before hyper sees them, so that a flood of them takes
//! little memory and ends.

use crate::http::decoder::MAX_HEAD_BYTES;

/// Type, flags and length of a frame and its stream: RFC 9113, section 4.1.
const FRAME_HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// With more frames in a row that carry no body, a server floods its client. A head of the largest
/// size takes 64 frames.
pub(crate) const MAX_FRAMES_WITHOUT_DATA: u32 = 1_000;

/// As much of a body as one turn of the engine reads, in frames of the usual size.
const MAX_FRAMES_PER_TURN: u32 = 64;

/// Few bytes can stand for many fields, all of which hyper keeps until the turn ends.
const MAX_HEADS_PER_TURN: u32 = 1;

/// Counts the frames in the bytes that a server sends.
#[derive(Debug, Default)]
pub(crate) struct FrameCounter {
    /// The header of the current frame, as far as it has arrived.
    header: [u8; FRAME_HEADER_BYTES],
    header_bytes: usize,
    payload_left_bytes: usize,
    /// Of the latest head, as far as it has been announced.
    head_bytes: usize,
    without_data: u32,
    in_turn: u32,
    heads_in_turn: u32,
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

    /// Takes the next bytes of the connection.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = self.payload_left_bytes.min(bytes.len());
            self.payload_left_bytes -= skipped;
            bytes = &bytes[skipped..];

            let missing = FRAME_HEADER_BYTES - self.header_bytes;
            let (arrived, rest) = bytes.split_at(missing.min(bytes.len()));
            let end = self.header_bytes + arrived.len();
            self.header[self.header_bytes..end].copy_from_slice(arrived);
            self.header_bytes = end;
            bytes = rest;

            if end == FRAME_HEADER_BYTES {
                self.header_bytes = 0;
                self.count();
            }
        }
    }

    /// Whether the server sends frame after frame without a body, or a head without end.
    pub fn is_flooded(&self) -> bool {
        self.without_data > MAX_FRAMES_WITHOUT_DATA || self.head_bytes > MAX_HEAD_BYTES
    }

    /// Whether this turn has taken enough frames.
    pub fn has_taken_enough(&self) -> bool {
        self.in_turn >= MAX_FRAMES_PER_TURN || self.heads_in_turn > MAX_HEADS_PER_TURN
    }

    fn count(&mut self) {
        let [high, middle, low, kind, ..] = self.header;
        let payload_bytes = u32::from_be_bytes([0, high, middle, low]);
        self.payload_left_bytes = payload_bytes as usize;
        match kind {
            HEADERS => self.head_bytes = self.payload_left_bytes,
            CONTINUATION => self.head_bytes += self.payload_left_bytes,
            _ => {}
        }

        self.in_turn = self.in_turn.saturating_add(1);
        self.heads_in_turn += u32::from(kind == HEADERS);
        match kind {
            DATA if payload_bytes > 0 => self.without_data = 0,
            // Each part of a large request may have one.
            WINDOW_UPDATE => {}
            _ => self.without_data = self.without_data.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload_bytes: usize) -> Vec<u8> {
        let length = u32::try_from(payload_bytes).expect("a short frame");
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.resize(FRAME_HEADER_BYTES + payload_bytes, 0xff);
        frame
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let stream = [
            frame(4, 6),
            frame(HEADERS, 300),
            frame(DATA, 5),
            frame(6, 8),
            frame(DATA, 0),
        ]
        .concat();
        for piece_bytes in 1..=stream.len() {
            let mut counter = FrameCounter::default();
            for piece in stream.chunks(piece_bytes) {
                counter.take(piece);
            }

            let counts = (counter.in_turn, counter.heads_in_turn, counter.without_data);
            assert_eq!(counts, (5, 1, 2), "in pieces of {piece_bytes}");
            assert_eq!((counter.header_bytes, counter.payload_left_bytes), (0, 0));
        }
    }

    #[test]
    fn a_flood_is_what_exceeds_the_limit_without_data_or_a_new_request() {
        let limit = MAX_FRAMES_WITHOUT_DATA as usize;
        let mut counter = FrameCounter::default();

        counter.take(&frame(6, 8).repeat(limit));
        assert!(!counter.is_flooded());
        counter.take(&frame(DATA, 1));
        counter.take(&frame(6, 8).repeat(limit));
        assert!(!counter.is_flooded());

        counter.start_request();
        counter.take(&frame(6, 8).repeat(limit));
        assert!(!counter.is_flooded());
        counter.take(&frame(WINDOW_UPDATE, 4));
        assert!(!counter.is_flooded());
        counter.take(&frame(DATA, 0));
        assert!(counter.is_flooded());
    }

    #[test]
    fn a_head_longer_than_the_limit_is_a_flood_long_before_its_frames_are_many() {
        let frame_bytes = 16 * 1024;
        let frames = MAX_HEAD_BYTES / frame_bytes;
        let mut counter = FrameCounter::default();
        for _ in 0..2 {
            counter.take(&frame(HEADERS, frame_bytes));
            counter.take(&frame(CONTINUATION, frame_bytes).repeat(frames - 1));
            assert!(!counter.is_flooded());
        }

        counter.take(&frame(CONTINUATION, 1));
        assert!(counter.is_flooded());
    }

    #[test]
    fn a_turn_ends_after_many_frames_or_a_second_head() {
        for (frames, is_enough) in [
            (frame(DATA, 10).repeat(63), false),
            (frame(DATA, 10).repeat(64), true),
            (frame(HEADERS, 10), false),
            (frame(HEADERS, 10).repeat(2), true),
        ] {
            let mut counter = FrameCounter::default();
            counter.take(&frames);
            assert_eq!(counter.has_taken_enough(), is_enough);

            counter.start_turn();
            assert!(!counter.has_taken_enough());
        }
    }
}
