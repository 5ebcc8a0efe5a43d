//! Finds one value in a JSON text by a path such as `.items[0].id`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A key, borrowed from the text unless it contains escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The path from the outermost value to the selected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl JsonPath {
    /// Parses any sequence of `.key`, `["key"]` and `[0]`; `.` alone selects the whole value.
    ///
    /// # Errors
    /// A message that explains what is wrong with the path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a JSON path; write one like .user.token, .items[0].id or [\"a b\"]"
            )
        };
        let mut steps = Vec::new();
        let mut rest = text;
        if rest == "." {
            return Ok(Self(steps));
        }

        while !rest.is_empty() {
            let (step, after) = if let Some(inside) = rest.strip_prefix('[') {
                bracketed(inside).ok_or_else(wrong)?
            } else {
                let name = rest.strip_prefix('.').ok_or_else(wrong)?;
                let length = name.find(['.', '[']).unwrap_or(name.len());
                (Step::Key(name[..length].to_owned()), &name[length..])
            };
            if step == Step::Key(String::new()) {
                return Err(wrong());
            }
            steps.push(step);
            rest = after;
        }

        if steps.is_empty() {
            Err(wrong())
        } else {
            Ok(Self(steps))
        }
    }

    /// The selected string, number or boolean as text; `None` if the text is not JSON or has no
    /// such value. Numbers keep their digits.
    pub fn find(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut value: &RawValue = serde_json::from_slice(text).ok()?;
        for step in &self.0 {
            value = match step {
                Step::Key(key) => {
                    let object: BTreeMap<Key<'_>, &RawValue> =
                        serde_json::from_str(value.get()).ok()?;
                    *object.get(&Key(Cow::Borrowed(key)))?
                }
                Step::Index(index) => {
                    let array: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                    *array.get(*index)?
                }
            };
        }

        match value.get().as_bytes().first()? {
            b'"' => serde_json::from_str(value.get())
                .ok()
                .map(String::into_bytes),
            b'{' | b'[' | b'n' => None,
            _ => Some(value.get().as_bytes().to_vec()),
        }
    }
}

/// The step in brackets, and the text after them.
fn bracketed(inside: &str) -> Option<(Step, &str)> {
    if inside.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let key = texts.next()?.ok()?;
        let after = inside[texts.byte_offset()..].strip_prefix(']')?;
        return Some((Step::Key(key), after));
    }

    let (digits, after) = inside.split_once(']')?;
    Some((Step::Index(digits.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_at(path: &str, text: &str) -> Option<String> {
        let value = JsonPath::parse(path).expect(path).find(text.as_bytes())?;
        Some(String::from_utf8(value).expect("text"))
    }

    #[test]
    fn a_path_selects_one_value() {
        let text = r#"{"token": "a\"b", "user": {"id": 12345678901234567890123, "a b": [1.50, true]},
            "k\u0065y": "escaped", "none": null}"#;
        for (path, expected) in [
            (".token", Some("a\"b")),
            (".user.id", Some("12345678901234567890123")),
            (".user[\"a b\"][0]", Some("1.50")),
            (".user[\"a b\"][1]", Some("true")),
            (".key", Some("escaped")),
            (".user[\"a b\"][2]", None),
            (".user", None),
            (".none", None),
            (".missing", None),
            (".token.deeper", None),
        ] {
            assert_eq!(value_at(path, text).as_deref(), expected, "{path}");
        }
        assert_eq!(value_at(".", "\"whole\"").as_deref(), Some("whole"));
        assert_eq!(value_at("[0]", "[7]").as_deref(), Some("7"));
        assert_eq!(value_at(".token", "<html>"), None);
    }

    #[test]
    fn invalid_paths_are_refused_with_an_example() {
        for text in ["", "token", "..a", ".a.", "[x]", "[1", "[\"a]", ".a[0]b"] {
            let message = JsonPath::parse(text).expect_err(text);
            assert!(message.contains(".items[0].id"), "{message}");
        }
    }
}
