//! Finds and counts the frames that h2 reads and writes.
//!
//! h2 queues empty DATA frames without limit, and responds to every PING and SETTINGS frame. The
//! transport counts frames before h2 sees them, so that a flood uses little memory and is ended.

/// Length, type, flags and stream of a frame: RFC 9113, section 4.1.
const FRAME_HEADER_BYTES: usize = 9;

/// The connection preface, which a client sends before its first frame: RFC 9113, section 3.4.
const PREFACE_BYTES: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// Longer heads are rejected. The length counts the decoded fields plus 32 bytes for each (RFC
/// 9113, section 6.5.2). For every connection, h2 uses about twice as much memory for the fields,
/// even if the head never ends.
pub(crate) const MAX_HEADER_LIST_BYTES: u32 = 256 * 1024;

/// More consecutive frames without body data than this are a flood. The largest head takes 16
/// frames, and each of the concurrent streams of a connection may end with three frames.
pub(crate) const MAX_FRAMES_WITHOUT_DATA: u32 = 1_000;

/// Flow-control window of a connection, the same as in hyper's client: a large response does not
/// wait for window updates.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 5 * 1024 * 1024;

/// More bytes than this on a connection without requests are a flood. The server may still send the
/// rest of cancelled responses, as well as PING and SETTINGS frames.
const MAX_IDLE_BYTES: usize = CONNECTION_WINDOW_BYTES as usize + 1024 * 1024;

/// As many frames of the usual size as one turn of the engine reads.
const MAX_FRAMES_PER_TURN: u32 = 64;

/// A few compressed bytes can represent many fields, which take time to decode.
const MAX_HEADS_PER_TURN: u32 = 8;

/// The header of a frame.
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    kind: u8,
    stream: u32,
    payload_bytes: usize,
}

/// Finds the frames in the bytes of one direction, however they are split.
#[derive(Debug, Default)]
struct FrameFinder {
    /// The header of the current frame, as far as it is known.
    header: [u8; FRAME_HEADER_BYTES],
    header_bytes: usize,
    payload_left_bytes: usize,
}

impl FrameFinder {
    /// Takes the next bytes, and reports each frame header that they complete.
    fn take(&mut self, mut bytes: &[u8], mut on_header: impl FnMut(FrameHeader)) {
        while !bytes.is_empty() {
            let skipped = self.payload_left_bytes.min(bytes.len());
            self.payload_left_bytes -= skipped;
            bytes = &bytes[skipped..];

            let missing = FRAME_HEADER_BYTES - self.header_bytes;
            let (passed, rest) = bytes.split_at(missing.min(bytes.len()));
            let end = self.header_bytes + passed.len();
            self.header[self.header_bytes..end].copy_from_slice(passed);
            self.header_bytes = end;
            bytes = rest;

            if end == FRAME_HEADER_BYTES {
                self.header_bytes = 0;
                let header = self.current();
                self.payload_left_bytes = header.payload_bytes;
                on_header(header);
            }
        }
    }

    fn current(&self) -> FrameHeader {
        let [high, middle, low, kind, _, stream @ ..] = self.header;
        FrameHeader {
            kind,
            // The first bit is reserved.
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
            payload_bytes: u32::from_be_bytes([0, high, middle, low]) as usize,
        }
    }
}

/// Send times of request heads: h2 may write them later than requested.
#[derive(Debug)]
pub(crate) struct SentHeads {
    finder: FrameFinder,
    /// When the latest write began.
    write_ns: u64,
    heads: Vec<(u32, u64)>,
}

impl Default for SentHeads {
    fn default() -> Self {
        Self {
            finder: FrameFinder {
                payload_left_bytes: PREFACE_BYTES,
                ..FrameFinder::default()
            },
            write_ns: 0,
            heads: Vec::new(),
        }
    }
}

impl SentHeads {
    /// Takes the next bytes that the socket has accepted, in a write that began at `before_ns`.
    pub fn take(&mut self, bytes: &[u8], before_ns: u64) {
        // The first frame may have begun in the previous write.
        let is_begun = self.finder.header_bytes > 0;
        let mut begun_ns = if is_begun { self.write_ns } else { before_ns };
        self.write_ns = before_ns;
        self.finder.take(bytes, |frame| {
            if frame.kind == HEADERS {
                self.heads.push((frame.stream, begun_ns));
            }
            begun_ns = before_ns;
        });
    }

    /// Streams whose heads were sent since the last call, and when the write began.
    pub fn drain(&mut self) -> impl Iterator<Item = (u32, u64)> {
        self.heads.drain(..)
    }
}

/// Counts the frames in the bytes that a server sends.
#[derive(Debug, Default)]
pub(crate) struct FrameCounter {
    finder: FrameFinder,
    /// Announced length of the latest head so far. A compressed head is no longer than its header
    /// list.
    head_bytes: usize,
    without_data: u32,
    in_turn: u32,
    heads_in_turn: u32,
    /// Bytes since the connection became idle, if it is.
    idle_bytes: usize,
    is_going_away: bool,
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

    /// Takes the next bytes of the connection.
    pub fn take(&mut self, bytes: &[u8]) {
        self.idle_bytes = self.idle_bytes.saturating_add(bytes.len());
        let mut finder = std::mem::take(&mut self.finder);
        finder.take(bytes, |frame| self.count(frame));
        self.finder = finder;
    }

    /// Whether the server has announced that it accepts no more requests.
    pub fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    /// Whether the server has sent too many frames without body data, or too long a head.
    pub fn is_flooded(&self) -> bool {
        self.without_data > MAX_FRAMES_WITHOUT_DATA
            || self.head_bytes > MAX_HEADER_LIST_BYTES as usize
    }

    /// Whether the server has flooded an idle connection.
    pub fn is_flooded_while_idle(&self) -> bool {
        self.is_flooded() || self.idle_bytes > MAX_IDLE_BYTES
    }

    /// Whether this turn has taken enough frames.
    pub fn has_taken_enough(&self) -> bool {
        self.in_turn >= MAX_FRAMES_PER_TURN || self.heads_in_turn >= MAX_HEADS_PER_TURN
    }

    fn count(&mut self, frame: FrameHeader) {
        match frame.kind {
            HEADERS => self.head_bytes = frame.payload_bytes,
            CONTINUATION => self.head_bytes += frame.payload_bytes,
            GOAWAY => self.is_going_away = true,
            _ => {}
        }

        self.in_turn = self.in_turn.saturating_add(1);
        self.heads_in_turn += u32::from(frame.kind == HEADERS);
        match frame.kind {
            DATA if frame.payload_bytes > 0 => self.without_data = 0,
            // The server may send one for each part of a large request.
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
    fn frames_are_counted_however_they_are_split() {
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
            let finder = &counter.finder;
            assert_eq!((finder.header_bytes, finder.payload_left_bytes), (0, 0));
        }
    }

    #[test]
    fn too_many_frames_without_data_or_a_new_request_are_a_flood() {
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
    fn an_idle_connection_is_flooded_by_bytes_or_by_frames_without_data() {
        let piece = frame(DATA, 16 * 1024);
        let pieces = MAX_IDLE_BYTES / piece.len();
        let mut counter = FrameCounter::default();
        for _ in 0..2 {
            counter.start_idling();
            counter.take(&piece.repeat(pieces));
            assert!(!counter.is_flooded_while_idle());
        }
        counter.take(&piece);
        assert!(counter.is_flooded_while_idle() && !counter.is_flooded());

        let burst = [frame(6, 8), frame(4, 0), frame(WINDOW_UPDATE, 4)].concat();
        counter.start_idling();
        counter.take(&burst.repeat(MAX_FRAMES_WITHOUT_DATA as usize / 2));
        assert!(!counter.is_flooded_while_idle());
        counter.take(&frame(6, 8));
        assert!(counter.is_flooded_while_idle());
    }

    #[test]
    fn a_head_longer_than_the_limit_is_a_flood() {
        let frame_bytes = 16 * 1024;
        let frames = MAX_HEADER_LIST_BYTES as usize / frame_bytes;
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
    fn a_turn_ends_after_many_frames_or_some_heads() {
        for (frames, is_enough) in [
            (frame(DATA, 10).repeat(63), false),
            (frame(DATA, 10).repeat(64), true),
            (frame(HEADERS, 10).repeat(7), false),
            (frame(HEADERS, 10).repeat(8), true),
        ] {
            let mut counter = FrameCounter::default();
            counter.take(&frames);
            assert_eq!(counter.has_taken_enough(), is_enough);

            counter.start_turn();
            assert!(!counter.has_taken_enough());
        }
    }

    #[test]
    fn a_head_has_the_timestamp_of_the_write_in_which_it_starts() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let second = [&[0, 0, 2, HEADERS, 4, 0, 0, 0, 3][..], &[0x82, 0x84]].concat();
        let stream = [&preface[..], &frame(4, 6), &frame(HEADERS, 30), &second].concat();
        let (first_at, second_at) = (preface.len() + 15, preface.len() + 15 + 39);

        for piece_bytes in 1..=stream.len() {
            let mut sent = SentHeads::default();
            for (number, piece) in stream.chunks(piece_bytes).enumerate() {
                sent.take(piece, number as u64);
            }
            let heads: Vec<(u32, u64)> = sent.drain().collect();
            let streams: Vec<u32> = heads.iter().map(|head| head.0).collect();
            assert_eq!(streams, [1, 3], "in pieces of {piece_bytes}");
            if piece_bytes >= FRAME_HEADER_BYTES {
                let begun = [first_at, second_at].map(|byte| (byte / piece_bytes) as u64);
                assert_eq!(
                    [heads[0].1, heads[1].1],
                    begun,
                    "in pieces of {piece_bytes}"
                );
            }
        }
    }

    #[test]
    fn goaway_is_detected() {
        let mut counter = FrameCounter::default();
        counter.take(&frame(4, 6));
        assert!(!counter.is_going_away());
        counter.take(&frame(GOAWAY, 8));
        assert!(counter.is_going_away());
    }
}
