//! Values that a session's step captures from its response for later steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const EXAMPLE: &str = "--capture token=json:.token";

/// Names of built-in placeholders.
const BUILTIN_NAMES: [&str; 4] = ["seq", "random", "uuid", "csv"];

/// A value that is taken from a response and sent in later requests of the session.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturePlan {
    /// Name of the value: later requests contain it as `{{name}}`.
    pub name: String,
    /// Where to find the value: `json` (in a JSON body), `header` (in a header field) or `regex`
    /// (in any body).
    pub source: CaptureSource,
    /// How to find the value: a path such as `.user.token`, the name of the header field, or a
    /// regular expression. A regular expression yields its first group or, without a group, the
    /// whole match.
    pub expression: String,
}

/// The part of a response that holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSource {
    /// A JSON body.
    Json,
    /// A header field.
    Header,
    /// A body of any kind.
    Regex,
}

impl CapturePlan {
    /// Reads `NAME=json:PATH`, `NAME=header:NAME` or `NAME=regex:PATTERN`.
    ///
    /// # Errors
    /// A sentence that describes the error.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not NAME=json:PATH, NAME=header:NAME or NAME=regex:PATTERN; write for \
                example: {EXAMPLE}"
            )
        };
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (source, expression) = rest.split_once(':').ok_or_else(wrong)?;
        let source = match source.trim() {
            "json" => CaptureSource::Json,
            "header" => CaptureSource::Header,
            "regex" => CaptureSource::Regex,
            _ => return Err(wrong()),
        };
        let capture = Self {
            name: name.trim().to_owned(),
            source,
            expression: expression.trim().to_owned(),
        };
        capture.check_name()?;
        Ok(capture)
    }

    /// Refuses a name that a placeholder cannot have.
    pub(crate) fn check_name(&self) -> Result<(), String> {
        let name = &self.name;
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(format!(
                "{name:?} is not the name of a captured value; use letters, digits, _, - and ."
            ));
        }
        if BUILTIN_NAMES.contains(&name.as_str()) {
            return Err(format!(
                "{name:?} is the name of a built-in placeholder; use another name"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_parsed() {
        for (text, source, expression) in [
            ("token=json:.token", CaptureSource::Json, ".token"),
            ("token=header:X-Token", CaptureSource::Header, "X-Token"),
            (
                "token = regex:name=\"csrf:(.*?)\"",
                CaptureSource::Regex,
                "name=\"csrf:(.*?)\"",
            ),
        ] {
            let expected = CapturePlan {
                name: "token".to_owned(),
                source,
                expression: expression.to_owned(),
            };
            assert_eq!(CapturePlan::parse(text), Ok(expected));
        }
    }

    #[test]
    fn invalid_captures_are_refused_with_an_example() {
        for text in ["token", "token=.token", "token=xml:/a"] {
            let message = CapturePlan::parse(text).expect_err(text);
            assert!(message.contains(EXAMPLE), "{message}");
        }
        for (text, word) in [
            ("=json:.a", "is not the name"),
            ("a b=json:.a", "is not the name"),
            ("uuid=json:.a", "another name"),
        ] {
            let message = CapturePlan::parse(text).expect_err(text);
            assert!(message.contains(word), "{message}");
        }
    }
}
