//! The values of placeholders, and their text in one request.
//!
//! A value depends only on the seed, the text of the placeholder, and the index of its arrival in
//! the whole load, not on the number of threads or on other requests.

use rand::Rng as _;

use crate::base::random::{Stream, generator, scatter};
use crate::http::csv_files::{Column, CsvFiles};
use crate::http::digits::{hexadecimal, write_decimal};
use crate::http::template::target_bytes;

/// Digits and a sign of a 64-bit integer.
const MAX_NUMBER_BYTES: usize = 20;

const UUID_BYTES: usize = 36;

/// The supported placeholders, for messages.
const FORMS: &str =
    "{{seq:1}}, {{random:1:100}}, {{uuid}}, {{csv:FILE:COLUMN}} and {{csv:FILE:COLUMN:random}}";

/// The value of a placeholder.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The index of the arrival, counted from this number.
    Sequence { first: u64 },
    /// A whole number from `low` to `low + span`.
    Random { key: u64, low: i64, span: u64 },
    /// A random UUID of version 4.
    Uuid { key: u64 },
    /// A cell of a table. Rows are taken in order, or at random if there is a key.
    Cell { column: Column, key: Option<u64> },
    /// The session's value with this index, captured by an earlier step.
    Captured(usize),
}

/// The inputs to the values of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    /// Index of its arrival, or of its session, in the whole load.
    pub place: u64,
    /// The captured values of its session.
    pub captured: &'a [Option<Vec<u8>>],
}

impl Value {
    /// Whether its text may contain bytes that need encoding in some parts of a request.
    pub fn may_need_encoding(&self) -> bool {
        match self {
            Self::Sequence { .. } | Self::Random { .. } | Self::Uuid { .. } => false,
            Self::Cell { .. } | Self::Captured(_) => true,
        }
    }

    /// Appends the value's text.
    pub fn write(&self, inputs: &Inputs<'_>, out: &mut Vec<u8>) {
        let place = inputs.place;
        match self {
            Self::Sequence { first } => write_decimal(first.wrapping_add(place), out),
            Self::Random { key, low, span } => {
                let number = low.wrapping_add_unsigned(scaled(scatter(*key, place), *span));
                if number < 0 {
                    out.push(b'-');
                }
                write_decimal(number.unsigned_abs(), out);
            }
            Self::Uuid { key } => write_uuid(*key, place, out),
            Self::Cell { column, key } => {
                let rows = column.rows();
                let row = key.map_or(place % rows, |key| scaled(scatter(key, place), rows - 1));
                out.extend_from_slice(column.cell(row));
            }
            Self::Captured(index) => {
                let value = inputs.captured.get(*index).and_then(Option::as_ref);
                out.extend_from_slice(value.map_or(&[][..], Vec::as_slice));
            }
        }
    }

    /// Its maximum length in a path or query, in bytes; 0 for a captured value.
    pub fn max_target_bytes(&self) -> usize {
        match self {
            Self::Sequence { .. } | Self::Random { .. } => MAX_NUMBER_BYTES,
            Self::Uuid { .. } => UUID_BYTES,
            Self::Cell { column, .. } => column.cells().map(target_bytes).max().unwrap_or(0),
            Self::Captured(_) => 0,
        }
    }
}

/// Scales a point of the 64-bit range to the range from 0 to `max`.
fn scaled(point: u64, max: u64) -> u64 {
    ((u128::from(point) * (u128::from(max) + 1)) >> 64) as u64
}

/// RFC 9562, section 5.4.
fn write_uuid(key: u64, place: u64, out: &mut Vec<u8>) {
    let high = scatter(key, place) & !0xf000 | 0x4000;
    let low = scatter(!key, place) & !(0b11 << 62) | (0b10 << 62);
    out.extend_from_slice(&[b'-'; UUID_BYTES]);
    let Some(text) = out.last_chunk_mut::<UUID_BYTES>() else {
        return;
    };

    // Groups of 8, 4, 4, 4 and 12 digits. The last group is 4 digits of the third word and all 8 of
    // the fourth.
    let [first, second, third, fourth] =
        [high >> 32, high, low >> 32, low].map(|word| hexadecimal(word as u32));
    text[..8].copy_from_slice(&first);
    text[9..13].copy_from_slice(&second[..4]);
    text[14..18].copy_from_slice(&second[4..]);
    text[19..23].copy_from_slice(&third[..4]);
    text[24..28].copy_from_slice(&third[4..]);
    text[28..].copy_from_slice(&fourth);
}

/// Resolves the names in placeholders, for all requests of a load.
pub(crate) struct Names {
    key: u64,
    files: CsvFiles,
}

impl Names {
    pub fn new(seed: u64) -> Self {
        Self {
            key: generator(seed, Stream::Placeholders).random(),
            files: CsvFiles::default(),
        }
    }

    /// The value of a name. `variables`: those that are known in the session; `None` outside of
    /// sessions.
    ///
    /// # Errors
    /// A message that explains what is wrong with the name.
    pub fn value_of(&mut self, name: &str, variables: Option<&[String]>) -> Result<Value, String> {
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        match kind {
            "seq" => {
                let first = rest.parse();
                let first = first.map_err(|_| misread(name, "write it like {{seq:1}}"))?;
                Ok(Value::Sequence { first })
            }
            "random" => self.random(name, rest),
            "uuid" if rest.is_empty() => Ok(Value::Uuid {
                key: self.key_of(name),
            }),
            "csv" => self.cell(name, rest),
            _ => captured(name, variables),
        }
    }

    fn random(&self, name: &str, rest: &str) -> Result<Value, String> {
        let bounds = rest.split_once(':');
        let bounds = bounds.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        let bounds = bounds.filter(|(low, high): &(i64, i64)| low <= high);
        let (low, high) = bounds.ok_or_else(|| {
            let fix =
                "write it like {{random:1:100}}, with the lowest and the highest whole number";
            misread(name, fix)
        })?;
        Ok(Value::Random {
            key: self.key_of(name),
            low,
            span: high.wrapping_sub(low).cast_unsigned(),
        })
    }

    fn cell(&mut self, name: &str, rest: &str) -> Result<Value, String> {
        let (rest, is_random) = rest
            .strip_suffix(":random")
            .map_or((rest, false), |rest| (rest, true));
        let (path, column) = rest
            .rsplit_once(':')
            .filter(|(path, column)| !path.is_empty() && !column.is_empty())
            .ok_or_else(|| misread(name, "write it like {{csv:users.csv:id}}"))?;
        let column = self.files.column(path, column)?;
        // All columns of a file come from the same row, whatever path names the file.
        let file = path.rsplit('/').next().unwrap_or(path);
        let key = is_random.then(|| self.key_of(&format!("csv:{file}")));
        Ok(Value::Cell { column, key })
    }

    /// The key of all placeholders with this text.
    fn key_of(&self, text: &str) -> u64 {
        // FNV-1a, 64 bits.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        scatter(self.key, hash)
    }
}

fn captured(name: &str, variables: Option<&[String]>) -> Result<Value, String> {
    let known = variables.unwrap_or_default();
    if let Some(index) = known.iter().position(|variable| variable == name) {
        return Ok(Value::Captured(index));
    }

    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if variables.is_some() && !name.is_empty() && name.chars().all(is_word) {
        return Err(format!(
            "no earlier step of the session captures {{{{{name}}}}}; add a line below that step, for \
            example: --capture {name}=json:.{name}"
        ));
    }
    Err(format!(
        "{{{{{name}}}}} is unknown; use {FORMS}, or write {{{{{{{{ to send {{{{"
    ))
}

fn misread(name: &str, fix: &str) -> String {
    format!("{{{{{name}}}}}: {fix}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn value_of(name: &str) -> Value {
        Names::new(7).value_of(name, None).expect(name)
    }

    fn text(value: &Value, place: u64) -> String {
        let mut out = Vec::new();
        let captured = &[];
        value.write(&Inputs { place, captured }, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_sequence_counts_arrivals() {
        let sequence = value_of("seq:10");
        let texts: Vec<String> = (0..3).map(|place| text(&sequence, place)).collect();
        assert_eq!(texts, ["10", "11", "12"]);
    }

    #[test]
    fn random_numbers_fill_their_range_evenly() {
        let random = value_of("random:-2:2");
        let mut counts = [0_u32; 5];
        for place in 0..50_000 {
            let number: i64 = text(&random, place).parse().expect("a number");
            counts[(number + 2) as usize] += 1;
        }
        // Five standard deviations.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 450),
            "{counts:?}"
        );

        let all = value_of(&format!("random:{}:{}", i64::MIN, i64::MAX));
        let numbers: BTreeSet<i64> = (0..1_000)
            .map(|place| text(&all, place).parse().expect("a number"))
            .collect();
        assert_eq!(numbers.len(), 1_000);
        assert_eq!(text(&value_of("random:5:5"), 3), "5");
    }

    #[test]
    fn uuids_differ_and_are_well_formed() {
        let uuid = value_of("uuid");
        let texts: BTreeSet<String> = (0..1_000).map(|place| text(&uuid, place)).collect();
        assert_eq!(texts.len(), 1_000);
        let form = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
        let form = regex::Regex::new(form).expect("a pattern");
        assert!(texts.iter().all(|text| form.is_match(text)), "{texts:?}");
    }

    #[test]
    fn a_uuid_contains_the_random_bits_of_its_index() {
        let key = 5;
        for place in 0..1_000 {
            let shown = text(&Value::Uuid { key }, place).replace('-', "");
            let shown = u128::from_str_radix(&shown, 16).expect("hexadecimal digits");
            let bits = u128::from(scatter(key, place)) << 64 | u128::from(scatter(!key, place));
            let version_and_variant = 0xf << 76 | 0b11 << 62;
            assert_eq!(
                (shown ^ bits) & !version_and_variant,
                0,
                "{shown:x} {bits:x}"
            );
        }
    }

    #[test]
    fn values_depend_only_on_seed_text_and_index() {
        let of = |seed: u64, name: &str| {
            let value = Names::new(seed).value_of(name, None).expect(name);
            (0..20).map(|place| text(&value, place)).collect::<Vec<_>>()
        };
        assert_eq!(of(1, "random:1:1000000"), of(1, "random:1:1000000"));
        assert_ne!(of(1, "random:1:1000000"), of(2, "random:1:1000000"));
        assert_ne!(of(1, "random:1:1000000"), of(1, "random:1:1000001"));
    }

    #[test]
    fn unknown_names_are_refused_with_a_suggestion() {
        let variables = vec!["token".to_owned()];
        for (name, variables, word) in [
            ("", None, "{{seq:1}}"),
            ("user", None, "{{user}} is unknown; use {{seq:1}}"),
            ("seq", None, "write it like {{seq:1}}"),
            ("seq:-1", None, "write it like {{seq:1}}"),
            ("random:5", None, "{{random:1:100}}"),
            ("random:5:1", None, "{{random:1:100}}"),
            ("uuid:4", None, "is unknown"),
            ("csv:users.csv", None, "{{csv:users.csv:id}}"),
            ("tokn", Some(&variables[..]), "--capture tokn=json:.tokn"),
            ("7*7", Some(&variables[..]), "write {{{{ to send {{"),
        ] {
            let message = Names::new(1).value_of(name, variables).expect_err(name);
            assert!(message.contains(word), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
        let known = Names::new(1).value_of("token", Some(&variables));
        assert!(matches!(known, Ok(Value::Captured(0))));
    }
}
