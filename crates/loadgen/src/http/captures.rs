//! Captures: values of a response that later requests of the session use.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use regex::bytes::Regex;

use crate::http::body_check::{KEPT_BODY_BYTES, Kept};
use crate::http::json_path::JsonPath;
use crate::plan::{CapturePlan, CaptureSource};

/// Sessions keep their values until they end, so long values could use unbounded memory.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// More captures of one response are refused.
const MAX_CAPTURES: usize = 20;

/// The captures of one response.
#[derive(Debug)]
pub(crate) struct Captures {
    all: Vec<Capture>,
    fields: Arc<[String]>,
}

#[derive(Debug)]
struct Capture {
    plan: CapturePlan,
    /// Index of the value among those of its session.
    variable: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Json(JsonPath),
    /// Index of the header field among those that are kept.
    Field(usize),
    Regex(Regex),
}

/// The parts of a response that are kept for its captures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptResponse<'a> {
    /// The values of [`Captures::fields`]; `None` if the response has none of that name.
    pub fields: &'a [Option<Vec<u8>>],
    pub body: Kept<'a>,
}

impl Captures {
    /// Prepares the captures of a step; `None` without any. `variables` are the names that the
    /// session knows; new ones are added.
    ///
    /// # Errors
    /// A message that explains what is wrong with a capture.
    pub fn prepare(
        plans: &[CapturePlan],
        variables: &mut Vec<String>,
    ) -> Result<Option<Self>, String> {
        if plans.len() > MAX_CAPTURES {
            return Err(format!(
                "{} captures; a step may have at most {MAX_CAPTURES}",
                plans.len()
            ));
        }

        let mut fields = Vec::new();
        let mut all = Vec::with_capacity(plans.len());
        for plan in plans {
            plan.check_name()?;
            let place = place_of(plan, &mut fields)
                .map_err(|cause| format!("--capture {}: {cause}", plan.name))?;
            let known = variables.iter().position(|name| *name == plan.name);
            let variable = known.unwrap_or_else(|| {
                variables.push(plan.name.clone());
                variables.len() - 1
            });
            all.push(Capture {
                plan: plan.clone(),
                variable,
                place,
            });
        }

        let fields = fields.into();
        Ok((!all.is_empty()).then_some(Self { all, fields }))
    }

    /// Whether any capture needs the body.
    pub fn need_body(&self) -> bool {
        self.all
            .iter()
            .any(|capture| !matches!(capture.place, Place::Field(_)))
    }

    /// The header fields that captures need.
    pub fn fields(&self) -> &Arc<[String]> {
        &self.fields
    }

    /// The values of these fields in the head of a response.
    pub fn fields_of(&self, headers: &HeaderMap) -> Vec<Option<Vec<u8>>> {
        let value_of = |name: &String| Some(headers.get(name)?.as_bytes().to_vec());
        self.fields.iter().map(value_of).collect()
    }

    /// Indices of the values among those of the session, in the order of [`Self::of`].
    pub fn variables(&self) -> impl Iterator<Item = usize> {
        self.all.iter().map(|capture| capture.variable)
    }

    /// Captures all values.
    ///
    /// # Errors
    /// A message that names the missing value.
    pub fn of(&self, kept: &KeptResponse<'_>) -> Result<Vec<Vec<u8>>, String> {
        self.all
            .iter()
            .map(|capture| {
                let value = capture.of(kept).ok_or_else(|| capture.missing(kept))?;
                if value.len() > MAX_VALUE_BYTES {
                    return Err(format!(
                        "value of {{{{{}}}}} is longer than 16 KiB",
                        capture.plan.name
                    ));
                }
                Ok(value)
            })
            .collect()
    }
}

impl Capture {
    fn of(&self, kept: &KeptResponse<'_>) -> Option<Vec<u8>> {
        match &self.place {
            Place::Field(index) => kept.fields.get(*index)?.clone(),
            Place::Json(path) => path.find(kept.body.bytes),
            Place::Regex(regex) => {
                let matched = regex.captures(kept.body.bytes)?;
                // The whole match only if there is no group, not if the group matched nothing.
                let group = matched.get(usize::from(regex.captures_len() > 1))?;
                Some(group.as_bytes().to_vec())
            }
        }
    }

    fn missing(&self, kept: &KeptResponse<'_>) -> String {
        let CapturePlan {
            name,
            source,
            expression,
        } = &self.plan;
        let cause = match source {
            CaptureSource::Header => format!("no header field {expression}"),
            _ if kept.body.is_cut => {
                format!("the body is longer than {KEPT_BODY_BYTES} bytes")
            }
            CaptureSource::Json => format!("the body is not JSON or has no {expression}"),
            CaptureSource::Regex => format!("no match of {expression} in the body"),
        };
        format!("no value for {{{{{name}}}}}: {cause}")
    }
}

fn place_of(plan: &CapturePlan, fields: &mut Vec<String>) -> Result<Place, String> {
    match plan.source {
        CaptureSource::Json => JsonPath::parse(&plan.expression).map(Place::Json),
        CaptureSource::Regex => Regex::new(&plan.expression)
            .map(Place::Regex)
            .map_err(|error| super::request::not_a_regex(&error)),
        CaptureSource::Header => {
            let name: HeaderName = plan
                .expression
                .parse()
                .map_err(|_| format!("{:?} is not the name of a header field", plan.expression))?;
            fields.push(name.to_string());
            Ok(Place::Field(fields.len() - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(texts: &[&str]) -> Result<Captures, String> {
        let plans: Vec<CapturePlan> = texts
            .iter()
            .map(|text| CapturePlan::parse(text).expect("a capture"))
            .collect();
        let captures = Captures::prepare(&plans, &mut Vec::new())?;
        Ok(captures.expect("at least one"))
    }

    fn values(text: &str, field: Option<&str>, body: &str) -> Result<String, String> {
        let kept = KeptResponse {
            fields: &[field.map(|value| value.as_bytes().to_vec())],
            body: Kept {
                bytes: body.as_bytes(),
                is_cut: false,
            },
        };
        let mut all = prepared(&[text])?.of(&kept)?;
        Ok(String::from_utf8(all.remove(0)).expect("text"))
    }

    #[test]
    fn values_are_found_in_fields_and_bodies() {
        let form = "<input name=\"csrf\" value=\"a1\">";
        for (text, body, expected) in [
            ("t=json:.token", "{\"token\": \"x\"}", "x"),
            ("t=header:X-Token", "", "from a field"),
            ("t=regex:value=\"(.*?)\"", form, "a1"),
            ("t=regex:value", form, "value"),
        ] {
            let value = values(text, Some("from a field"), body);
            assert_eq!(value.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_missing_value_is_reported_with_its_source() {
        for (text, body, expected) in [
            (
                "t=json:.token",
                "{}",
                "no value for {{t}}: the body is not JSON or has no .token",
            ),
            (
                "t=header:X-Token",
                "",
                "no value for {{t}}: no header field X-Token",
            ),
            (
                "t=regex:a+",
                "b",
                "no value for {{t}}: no match of a+ in the body",
            ),
            (
                "t=regex:a=(b)?",
                "a=",
                "no value for {{t}}: no match of a=(b)? in the body",
            ),
        ] {
            assert_eq!(values(text, None, body), Err(expected.to_owned()));
        }
        let long = format!("\"{}\"", "x".repeat(MAX_VALUE_BYTES + 1));
        assert_eq!(
            values("t=json:.", None, &long),
            Err("value of {{t}} is longer than 16 KiB".to_owned())
        );
    }

    #[test]
    fn invalid_captures_are_refused() {
        for (text, word) in [
            ("t=json:token", "JSON path"),
            ("t=regex:(", "unclosed group"),
            ("t=header:a b", "name of a header field"),
        ] {
            let message = prepared(&[text]).expect_err(text);
            assert!(
                message.starts_with("--capture t: ") && message.contains(word),
                "{message}"
            );
        }
    }

    #[test]
    fn a_name_has_one_index_in_its_session() {
        let mut variables = vec!["old".to_owned()];
        let plans = ["new=json:.a", "old=json:.b", "new=json:.c"]
            .map(|text| CapturePlan::parse(text).expect("a capture"));
        let captures = Captures::prepare(&plans, &mut variables).expect("prepared");
        let places: Vec<usize> = captures.expect("three").variables().collect();
        assert_eq!((places, variables.len()), (vec![1, 0, 1], 2));
    }
}
