//! Fast mode: the same bytes for every blank line, and nothing else.
//!
//! It measures the ceiling of a load generator, so each request must cost next to nothing:
//! requests that came in one read are answered in one write.

use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::answer::{Answer, Framing, Layout};
use crate::shared::Shared;

const RECEIVE_BYTES: usize = 64 * 1024;
/// As many answers as are laid out side by side for one write.
const BATCH: usize = 64;

/// The bytes of one answer, and of a whole batch.
#[derive(Debug)]
pub(crate) struct FastAnswers {
    batch: Vec<u8>,
    answer_bytes: usize,
}

impl FastAnswers {
    pub(crate) fn new(body: &[u8]) -> Self {
        let answer = Answer::lay_out(&Layout {
            status: 200,
            body,
            framing: Framing::ContentLength,
            stamps: None,
            connection: None,
            head_only: false,
        });
        Self { batch: answer.bytes().repeat(BATCH), answer_bytes: answer.bytes().len() }
    }
}

/// Serves a connection until either side closes it.
pub(crate) async fn serve(mut stream: TcpStream, shared: Rc<Shared>, answers: Rc<FastAnswers>) {
    let mut received = vec![0; RECEIVE_BYTES];
    let mut blank_lines = BlankLines::default();
    loop {
        let Ok(count @ 1..) = stream.read(&mut received).await else { return };
        let requests = blank_lines.count(&received[..count]);
        shared.count(|stats| stats.arrivals += requests as u64);
        let mut left = requests;
        while left > 0 {
            let now = left.min(BATCH);
            if stream.write_all(&answers.batch[..now * answers.answer_bytes]).await.is_err() {
                return;
            }
            left -= now;
        }
    }
}

/// Counts blank lines in a stream that is cut into pieces anywhere.
#[derive(Debug, Default)]
struct BlankLines {
    /// How many bytes of CR LF CR LF were seen last.
    matched: u8,
}

impl BlankLines {
    fn count(&mut self, piece: &[u8]) -> usize {
        let mut found = 0;
        for &byte in piece {
            self.matched = match (self.matched, byte) {
                (0 | 2, b'\r') | (1, b'\n') => self.matched + 1,
                (3, b'\n') => {
                    found += 1;
                    0
                }
                (_, b'\r') => 1,
                _ => 0,
            };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_counted_wherever_the_stream_is_cut() {
        let stream = b"GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\r\n\r\n\r\n\r\n";
        let whole = BlankLines::default().count(stream);
        assert_eq!(whole, 3);
        for cut in 0..stream.len() {
            let mut blank_lines = BlankLines::default();
            let (first, second) = stream.split_at(cut);
            assert_eq!(blank_lines.count(first) + blank_lines.count(second), whole, "cut at {cut}");
        }
    }
}
