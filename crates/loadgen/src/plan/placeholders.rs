//! Placeholders in requests: `{{name}}`. This module only parses them; their values are determined
//! when the requests are prepared.

/// Starts a placeholder. Written twice, it stands for a literal `{{`.
const OPENING: &str = "{{";
const CLOSING: &str = "}}";

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Sent unchanged.
    Text(&'a str),
    /// The text between the braces.
    Placeholder(&'a str),
}

/// Whether a text has a placeholder or escaped braces.
pub(crate) fn has_any(text: &str) -> bool {
    text.contains(OPENING)
}

/// The parts of a text, in order.
///
/// # Errors
/// A sentence that describes the error.
pub(crate) fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find(OPENING) {
        parts.push(Part::Text(&rest[..place]));
        let inside = &rest[place + OPENING.len()..];
        if let Some(after) = inside.strip_prefix(OPENING) {
            parts.push(Part::Text(OPENING));
            rest = after;
            continue;
        }

        let Some(length) = inside.find(CLOSING) else {
            return Err(format!(
                "{:?} has {{{{ without }}}}; write {{{{{{{{ to send {{{{",
                beginning(&rest[place..])
            ));
        };
        parts.push(Part::Placeholder(inside[..length].trim()));
        rest = &inside[length + CLOSING.len()..];
    }

    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    Ok(parts)
}

/// Escapes a text so that none of it is a placeholder.
pub(crate) fn escaped(text: &str) -> String {
    text.replace(OPENING, &OPENING.repeat(2))
}

/// Replaces placeholders with a text that is valid in every URL.
pub(crate) fn without_any(text: &str) -> String {
    let Ok(parts) = parts(text) else {
        return text.to_owned();
    };
    let sample = |part| match part {
        Part::Text(text) => text,
        Part::Placeholder(_) => "0",
    };
    parts.into_iter().map(sample).collect()
}

/// Replaces the paths of CSV files in placeholders. Invalid placeholders stay unchanged.
pub(crate) fn with_csv_paths(text: &str, other: impl Fn(&str) -> String) -> String {
    let Ok(parts) = parts(text) else {
        return text.to_owned();
    };
    let written = |part| match part {
        Part::Text(text) => escaped(text),
        Part::Placeholder(name) => {
            let path = name.strip_prefix("csv:").and_then(csv_path);
            let name = path.map_or_else(
                || name.to_owned(),
                |(path, rest)| format!("csv:{}{rest}", other(path)),
            );
            format!("{OPENING}{name}{CLOSING}")
        }
    };
    parts.into_iter().map(written).collect()
}

/// The path before the column, and everything after it.
fn csv_path(text: &str) -> Option<(&str, &str)> {
    let columns = text.strip_suffix(":random").unwrap_or(text);
    Some(text.split_at(columns.rfind(':')?))
}

/// The beginning of a text, for messages.
fn beginning(text: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    let mut shown: String = text.chars().take(MAX_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_its_placeholders() {
        use Part::{Placeholder, Text};
        for (text, expected) in [
            ("", vec![]),
            ("/a{b}}", vec![Text("/a{b}}")]),
            (
                "/u/{{seq:1}}?a={{ token }}",
                vec![
                    Text("/u/"),
                    Placeholder("seq:1"),
                    Text("?a="),
                    Placeholder("token"),
                ],
            ),
            (
                "{\"n\":{{uuid}}}",
                vec![Text("{\"n\":"), Placeholder("uuid"), Text("}")],
            ),
            ("{{{{a}}", vec![Text("{{"), Text("a}}")]),
        ] {
            assert_eq!(parts(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn only_paths_of_csv_files_are_replaced() {
        let text = "/{{csv:a/b.csv:id}}/{{csv:c:d.csv:e:random}}{{seq:1}}{{{{{{csv:x}}";
        let replaced = with_csv_paths(text, |path| format!("<{path}>"));
        let expected = "/{{csv:<a/b.csv>:id}}/{{csv:<c:d.csv>:e:random}}{{seq:1}}{{{{{{csv:x}}";
        assert_eq!(replaced, expected);
        assert_eq!(without_any("http://h/{{csv:a b:c}}"), "http://h/0");
    }

    #[test]
    fn unclosed_braces_are_refused_with_the_escape_for_literal_braces() {
        let message = parts("/a{{b}").expect_err("no end");
        assert!(
            message.contains("\"{{b}\"") && message.contains("write {{{{ to send {{"),
            "{message}"
        );
    }

    #[test]
    fn escaped_text_is_sent_unchanged() {
        for text in ["", "{", "{{", "{{{", "{{{{", "a{{7*7}}b", "{{{x}}}"] {
            let written = escaped(text);
            let sent: String = parts(&written)
                .expect("no placeholder")
                .into_iter()
                .map(|part| match part {
                    Part::Text(text) => text,
                    Part::Placeholder(name) => panic!("{name}"),
                })
                .collect();
            assert_eq!(sent, text, "{written}");
        }
    }
}
