//! One line of vegeta's JSON format as a request.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::plan::RequestPlan;
use crate::plan::text::in_words;

const EXAMPLE: &str = r#"{"method": "GET", "url": "http://127.0.0.1:8000/"}"#;

/// The fields that vegeta writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTarget {
    method: String,
    url: String,
    /// Base64.
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

/// The request on this line.
///
/// # Errors
/// A sentence that describes the error.
pub(crate) fn request_of(line: &str) -> Result<RequestPlan, String> {
    let target: JsonTarget = serde_json::from_str(line).map_err(|error| {
        format!(
            "not a target in JSON: {}; write it like {EXAMPLE}",
            in_words(&error)
        )
    })?;
    let body = target.body.filter(|body| !body.is_empty());
    if let Some(Err(error)) = body.as_ref().map(|body| STANDARD.decode(body)) {
        return Err(format!("the body is not base64: {error}"));
    }

    let fields = target.header.unwrap_or_default().into_iter();
    let headers = fields
        .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));

    Ok(RequestPlan {
        name: None,
        method: target.method,
        url: target.url,
        headers: headers.collect(),
        body_base64: body,
        check: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_vegeta_is_read() {
        let line =
            r#"{"method":"POST","url":"/b","body":"e30=","header":{"A":["1","2"],"B":["3"]}}"#;
        let request = request_of(line).expect("a target");
        assert_eq!(
            (request.method.as_str(), request.url.as_str()),
            ("POST", "/b")
        );
        assert_eq!(request.body_base64.as_deref(), Some("e30="));
        let fields: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(fields, [("A", "1"), ("A", "2"), ("B", "3")]);

        let bare = request_of(r#"{"method":"GET","url":"/","body":"","header":null}"#);
        let bare = bare.expect("a target");
        assert_eq!((bare.body_base64, bare.headers.len()), (None, 0));
    }

    #[test]
    fn a_line_that_is_no_target_is_refused_with_an_example() {
        for (line, word) in [
            ("{", "EOF"),
            (r#"{"method":"GET"}"#, "url"),
            (r#"{"method":"GET","url":"/","wieght":1}"#, "wieght"),
        ] {
            let message = request_of(line).expect_err(line);
            assert!(
                message.contains(word) && message.contains(EXAMPLE),
                "{message}"
            );
        }
        let message = request_of(r#"{"method":"GET","url":"/","body":"{}"}"#).expect_err("a body");
        assert!(message.contains("not base64"), "{message}");
    }
}
