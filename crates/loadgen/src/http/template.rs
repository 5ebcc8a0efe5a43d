//! A request whose text has placeholders, split once into what stays and what changes, so that
//! filling it in is copying.
//!
//! The request is first prepared like any other, with a stand-in at the place of each value: a word
//! that occurs nowhere else in it. Its bytes are then split at these words.

use std::ops::Range;

use crate::http::values::{Inputs, Value};
use crate::plan::placeholders::{self, Part};

/// Every stand-in ends with a number of so many digits.
const NUMBER_DIGITS: usize = 5;

/// More values in one request are refused.
const MOST_USES: usize = 10_000;

/// The number of the stand-in for the length of the body.
const BODY_LENGTH: usize = 99_999;

/// The part of a request in which a value is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Path or query: what a URL cannot contain is percent-encoded.
    Target,
    /// A header field: control characters become spaces, so that a value cannot begin a new field.
    Field,
    /// A body: values are sent unchanged.
    Body,
}

/// A value in a certain place.
#[derive(Clone, Debug)]
struct Use {
    value: Value,
    place: Place,
}

/// The values of a request, and the words that stand for them.
#[derive(Clone, Debug)]
pub(crate) struct StandIns {
    word: String,
    uses: Vec<Use>,
}

impl StandIns {
    /// Words that occur in none of these texts.
    pub fn apart_from<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let is_free = |word: &String| texts.clone().all(|text| !text.contains(word));
        let word = (0_u64..)
            .map(|number| format!("standin{number}x"))
            .find(is_free)
            .unwrap_or_default();
        Self {
            word,
            uses: Vec::new(),
        }
    }

    /// The text with its placeholders replaced by stand-ins. `value_of` says what a name stands
    /// for.
    ///
    /// # Errors
    /// A sentence that says what is wrong with a placeholder.
    pub fn replace(
        &mut self,
        text: &str,
        place: Place,
        value_of: &mut impl FnMut(&str) -> Result<Value, String>,
    ) -> Result<String, String> {
        let mut replaced = String::with_capacity(text.len());
        for part in placeholders::parts(text)? {
            match part {
                Part::Text(text) => replaced.push_str(text),
                Part::Placeholder(name) => {
                    let value = value_of(name)?;
                    replaced.push_str(&self.word_of(self.uses.len()));
                    self.uses.push(Use { value, place });
                }
            }
        }

        if self.uses.len() > MOST_USES {
            return Err(format!("more than {MOST_USES} placeholders"));
        }
        Ok(replaced)
    }

    /// Stands for the length of the body in decimal digits.
    pub fn body_length(&self) -> String {
        self.word_of(BODY_LENGTH)
    }

    /// Whether there are any values at all.
    pub fn is_empty(&self) -> bool {
        self.uses.is_empty()
    }

    /// Whether the length of the body depends on values.
    pub fn are_in_body(&self) -> bool {
        self.uses.iter().any(|one| one.place == Place::Body)
    }

    fn word_of(&self, number: usize) -> String {
        format!("{}{number:0NUMBER_DIGITS$}", self.word)
    }

    fn word_bytes(&self) -> usize {
        self.word.len() + NUMBER_DIGITS
    }
}

/// A request ready to be filled in.
#[derive(Debug)]
pub(crate) struct Template {
    uses: Vec<Use>,
    kept: Split,
    last: Split,
    /// Bytes of the body besides values.
    fixed_body_bytes: usize,
}

/// Bytes, split at the places of values.
#[derive(Debug)]
struct Split {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Fixed(Range<usize>),
    Value(usize),
    BodyLength,
}

/// Room for the values of one request, kept for the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
}

impl Template {
    /// Splits a request, given as it is sent over a kept connection and over one that it closes,
    /// and the length of its body with stand-ins.
    pub fn split(
        stand_ins: StandIns,
        kept_bytes: Vec<u8>,
        last_bytes: Vec<u8>,
        body_bytes: usize,
    ) -> Self {
        let in_body = stand_ins
            .uses
            .iter()
            .filter(|one| one.place == Place::Body)
            .count();
        Self {
            fixed_body_bytes: body_bytes - in_body * stand_ins.word_bytes(),
            kept: Split::of(kept_bytes, &stand_ins),
            last: Split::of(last_bytes, &stand_ins),
            uses: stand_ins.uses,
        }
    }

    /// Writes the request with these values over what was in `kept` and, if it may be the last of
    /// its connection, in `last`.
    pub fn fill(
        &self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        kept: &mut Vec<u8>,
        last: Option<&mut Vec<u8>>,
    ) {
        scratch.bytes.clear();
        scratch.ends.clear();
        let mut body_bytes = self.fixed_body_bytes;
        for one in &self.uses {
            let from = scratch.bytes.len();
            one.value.write(inputs, &mut scratch.bytes);
            one.place.adapt(&mut scratch.bytes, from);
            scratch.ends.push(scratch.bytes.len());
            if one.place == Place::Body {
                body_bytes += scratch.bytes.len() - from;
            }
        }

        self.kept.write(scratch, body_bytes, kept);
        if let Some(last) = last {
            self.last.write(scratch, body_bytes, last);
        }
    }
}

impl Split {
    fn of(bytes: Vec<u8>, stand_ins: &StandIns) -> Self {
        let word = stand_ins.word.as_bytes();
        let mut pieces = Vec::new();
        let mut from = 0;
        while let Some(place) = find(&bytes[from..], word) {
            pieces.push(Piece::Fixed(from..from + place));
            let digits = from + place + word.len();
            from = digits + NUMBER_DIGITS;
            let number = bytes[digits..from]
                .iter()
                .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            pieces.push(match number {
                BODY_LENGTH => Piece::BodyLength,
                number => Piece::Value(number),
            });
        }

        pieces.push(Piece::Fixed(from..bytes.len()));
        Self { bytes, pieces }
    }

    fn write(&self, scratch: &Scratch, body_bytes: usize, out: &mut Vec<u8>) {
        out.clear();
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(range) => out.extend_from_slice(&self.bytes[range.clone()]),
                Piece::Value(index) => out.extend_from_slice(scratch.value(*index)),
                Piece::BodyLength => write_decimal(body_bytes as u64, out),
            }
        }
    }
}

impl Scratch {
    fn value(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from..self.ends[index]]
    }
}

impl Place {
    /// Makes the value that begins at `from` one that this place may have.
    pub(crate) fn adapt(self, bytes: &mut Vec<u8>, from: usize) {
        match self {
            Self::Target if !bytes[from..].iter().copied().all(is_in_urls) => {
                let value = bytes.split_off(from);
                for byte in value {
                    if is_in_urls(byte) {
                        bytes.push(byte);
                    } else {
                        bytes.extend_from_slice(format!("%{byte:02X}").as_bytes());
                    }
                }
            }
            Self::Field => bytes[from..]
                .iter_mut()
                .filter(|byte| byte.is_ascii_control() && **byte != b'\t')
                .for_each(|byte| *byte = b' '),
            Self::Target | Self::Body => {}
        }
    }
}

/// Whether a path or query may contain this byte (RFC 3986, appendix A); `%` may begin what is
/// encoded already.
fn is_in_urls(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte)
}

/// Appends a number in decimal digits.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut place = digits.len();
    let mut left = number;
    loop {
        place -= 1;
        digits[place] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[place..]);
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, values: &[&str], place: Place) -> String {
        let mut stand_ins = StandIns::apart_from([text].into_iter());
        let mut names = Vec::new();
        let replaced = stand_ins
            .replace(text, place, &mut |name: &str| {
                names.push(name.to_owned());
                Ok(Value::Captured(names.len() - 1))
            })
            .expect("placeholders");
        let length = format!("{}|{replaced}", stand_ins.body_length());
        let template = Template::split(
            stand_ins,
            length.clone().into_bytes(),
            length.into_bytes(),
            replaced.len(),
        );
        let captured: Vec<Option<Vec<u8>>> = values
            .iter()
            .map(|value| Some(value.as_bytes().to_vec()))
            .collect();
        let (mut kept, mut last) = (b"before".to_vec(), Vec::new());
        let inputs = Inputs {
            place: 0,
            captured: &captured,
        };
        let mut scratch = Scratch::default();
        for _ in 0..2 {
            template.fill(&inputs, &mut scratch, &mut kept, Some(&mut last));
            assert_eq!(kept, last);
        }
        String::from_utf8(kept).expect("text")
    }

    #[test]
    fn values_go_where_their_placeholders_were_and_the_length_follows() {
        for (text, values, expected) in [
            ("a{{x}}b{{y}}", vec!["1", "23"], "5|a1b23"),
            ("{{x}}{{y}}", vec!["", "é"], "2|é"),
            ("standin0x {{x}} {{{{", vec!["v"], "14|standin0x v {{"),
        ] {
            assert_eq!(filled(text, &values, Place::Body), expected);
        }
    }

    #[test]
    fn a_value_is_adapted_to_its_place() {
        let value = "a b/é?x=1&y=%20\r\nX: 1";
        let expected = [
            (Place::Target, "a%20b/%C3%A9?x=1&y=%20%0D%0AX:%201"),
            (Place::Field, "a b/é?x=1&y=%20  X: 1"),
        ];
        for (place, expected) in expected {
            let filled = filled("{{x}}", &[value], place);
            let (_, sent) = filled.split_once('|').expect("a length in front");
            assert_eq!(sent, expected);
        }
        assert_eq!(
            filled("{{x}}", &[value], Place::Body),
            format!("{}|{value}", value.len())
        );
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 9, 10, 1_234_567_890, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(number, &mut out);
            assert_eq!(String::from_utf8(out).expect("digits"), number.to_string());
        }
    }
}
