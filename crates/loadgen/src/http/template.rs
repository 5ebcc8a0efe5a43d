//! A request with placeholders, split once into fixed and variable parts, so that filling it in
//! only copies bytes.
//!
//! The request is first prepared like any other, with a stand-in for each value: a word that occurs
//! nowhere else in the request. Its bytes are then split at these words.

use crate::base::thousands::thousands;
use crate::http::digits::write_decimal;
use crate::http::values::{Inputs, Value};
use crate::plan::placeholders::{self, Part};

/// Every stand-in ends with a number of this many digits.
const NUMBER_DIGITS: usize = 5;

/// More values in one request are refused.
const MAX_USES: usize = 10_000;

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

/// A value, and the part of the request that contains it.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub value: Value,
    pub place: Place,
}

/// The values of a request, and their stand-ins.
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

    /// The text with its placeholders replaced by stand-ins. `value_of` returns the value of a
    /// name.
    ///
    /// # Errors
    /// A message that explains what is wrong with a placeholder.
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

        if self.uses.len() > MAX_USES {
            return Err(format!(
                "more than {} placeholders",
                thousands(MAX_USES as u64)
            ));
        }
        Ok(replaced)
    }

    /// Maximum length of a path and query with stand-ins once it is filled in, in bytes. Captured
    /// values count as 0, because they are known only during the load.
    pub fn max_target_bytes(&self, target: &str) -> usize {
        let uses = self.uses.iter().filter(|one| one.place == Place::Target);
        uses.fold(target.len(), |bytes, one| {
            (bytes + one.value.max_target_bytes()).saturating_sub(self.word_bytes())
        })
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
    kept: Vec<Piece>,
    last: Vec<Piece>,
    /// Bytes of the body besides values.
    fixed_body_bytes: usize,
    /// The values in the body.
    in_body: Vec<Use>,
}

/// A part of a request.
#[derive(Debug)]
enum Piece {
    Fixed(Box<[u8]>),
    Value(Use),
    BodyLength,
}

/// A reused buffer for the values of a body, whose length is needed before they are sent.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Template {
    /// Splits a request, given as it is sent over a connection that stays open and over one that is
    /// then closed, and the length of its body with stand-ins.
    pub fn split(
        stand_ins: StandIns,
        kept_bytes: &[u8],
        last_bytes: &[u8],
        body_bytes: usize,
    ) -> Self {
        let is_in_body = |one: &&Use| one.place == Place::Body;
        let in_body: Vec<_> = stand_ins.uses.iter().filter(is_in_body).cloned().collect();
        Self {
            fixed_body_bytes: body_bytes - in_body.len() * stand_ins.word_bytes(),
            kept: pieces(kept_bytes, &stand_ins),
            last: pieces(last_bytes, &stand_ins),
            in_body,
        }
    }

    /// Overwrites `kept` with the request with these values and, if it may be the last of its
    /// connection, `last` likewise.
    pub fn fill(
        &self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        kept: &mut Vec<u8>,
        last: Option<&mut Vec<u8>>,
    ) {
        let body_bytes = self.body_bytes(inputs, scratch);
        write(&self.kept, inputs, body_bytes, kept);
        if let Some(last) = last {
            write(&self.last, inputs, body_bytes, last);
        }
    }

    /// The length of the body, which the head contains. To compute it, values in a body are written
    /// twice; all other values are written directly to their destination.
    fn body_bytes(&self, inputs: &Inputs<'_>, scratch: &mut Scratch) -> usize {
        scratch.0.clear();
        for one in &self.in_body {
            one.write(inputs, &mut scratch.0);
        }
        self.fixed_body_bytes + scratch.0.len()
    }
}

impl Use {
    /// Appends the value's text, encoded for its part of the request.
    pub fn write(&self, inputs: &Inputs<'_>, out: &mut Vec<u8>) {
        let from = out.len();
        self.value.write(inputs, out);
        if self.value.may_need_encoding() {
            self.place.adapt(out, from);
        }
    }
}

/// Splits bytes at their stand-ins.
fn pieces(bytes: &[u8], stand_ins: &StandIns) -> Vec<Piece> {
    let word = stand_ins.word.as_bytes();
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(place) = find(rest, word) {
        let (fixed, stand_in) = rest.split_at(place);
        let (digits, after) = stand_in[word.len()..].split_at(NUMBER_DIGITS);
        let number = digits
            .iter()
            .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
        pieces.push(Piece::Fixed(fixed.into()));
        pieces.push(match number {
            BODY_LENGTH => Piece::BodyLength,
            number => Piece::Value(stand_ins.uses[number].clone()),
        });
        rest = after;
    }

    pieces.push(Piece::Fixed(rest.into()));
    pieces
}

/// Overwrites `out` with the pieces.
fn write(pieces: &[Piece], inputs: &Inputs<'_>, body_bytes: usize, out: &mut Vec<u8>) {
    out.clear();
    for piece in pieces {
        match piece {
            Piece::Fixed(bytes) => out.extend_from_slice(bytes),
            Piece::Value(one) => one.write(inputs, out),
            Piece::BodyLength => write_decimal(body_bytes as u64, out),
        }
    }
}

impl Place {
    /// Encodes the value that begins at `from` for this part of the request.
    ///
    /// Not inlined, because it would slow down numbers, which need no encoding.
    #[inline(never)]
    fn adapt(self, bytes: &mut Vec<u8>, from: usize) {
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

/// Length of a value in a path or query, in bytes.
pub(crate) fn target_bytes(value: &[u8]) -> usize {
    const ENCODED_BYTES: usize = 3;
    let bytes_of = |byte: &u8| if is_in_urls(*byte) { 1 } else { ENCODED_BYTES };
    value.iter().map(bytes_of).sum()
}

/// Whether a path or query may contain this byte.
fn is_in_urls(byte: u8) -> bool {
    IN_URLS[usize::from(byte)]
}

/// Letters, digits and the other characters of RFC 3986, appendix A; `%` may begin an escape in a
/// value that is encoded already.
const IN_URLS: [bool; 256] = {
    let mut in_urls = [false; 256];
    let mut others = b"-._~!$&'()*+,;=:@/?%".as_slice();
    while let [byte, rest @ ..] = others {
        in_urls[*byte as usize] = true;
        others = rest;
    }

    let mut byte = 0;
    while byte < in_urls.len() {
        in_urls[byte] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    in_urls
};

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
            length.as_bytes(),
            length.as_bytes(),
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
    fn values_replace_their_placeholders_and_the_length_is_correct() {
        for (text, values, expected) in [
            ("a{{x}}b{{y}}", vec!["1", "23"], "5|a1b23"),
            ("{{x}}{{y}}", vec!["", "é"], "2|é"),
            ("standin0x {{x}} {{{{", vec!["v"], "14|standin0x v {{"),
        ] {
            assert_eq!(filled(text, &values, Place::Body), expected);
        }
    }

    #[test]
    fn a_value_is_encoded_for_its_part_of_the_request() {
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
            target_bytes(value.as_bytes()),
            "a%20b/%C3%A9?x=1&y=%20%0D%0AX:%201".len()
        );
        assert_eq!(
            filled("{{x}}", &[value], Place::Body),
            format!("{}|{value}", value.len())
        );
    }
}
