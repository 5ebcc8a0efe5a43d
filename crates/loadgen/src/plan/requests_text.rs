//! The text of a file of targets or sessions, or of standard input.

use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::Path;

use crate::base::files::{self, MAX_BYTES, read_all};

/// The file name that means standard input.
const STANDARD_INPUT: &str = "-";

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The file's name in messages.
pub(crate) fn shown(path: &Path) -> String {
    if is_standard_input(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The whole text, without a byte order mark.
///
/// # Errors
/// A sentence that says why the file cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let name = shown(path);
    let bytes = read_all(open(path)?, MAX_BYTES)
        .map_err(|error| format!("cannot read {name}: {error}"))?
        .ok_or_else(|| format!("{name} is larger than 64 MiB; use a part of it"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8"))?;
    Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The file, or standard input.
///
/// # Errors
/// A sentence that says why the file cannot be opened.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, String> {
    if !is_standard_input(path) {
        let file =
            files::open(path).map_err(|error| format!("cannot read {}: {error}", shown(path)))?;
        return Ok(Box::new(BufReader::new(file)));
    }

    let input = std::io::stdin();
    if input.is_terminal() {
        // Python could not interrupt the wait.
        return Err(
            "standard input is a terminal; pipe a file into it, or name the file".to_owned(),
        );
    }
    Ok(Box::new(BufReader::new(input)))
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// If the text must be converted first: its kind, and the arguments of `wsgiload import` before the
/// file name.
pub(crate) fn importable(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.trim_start();
    // `curl /path` is a target with the method curl: a command has options or a URL.
    if let Some(arguments) = text.strip_prefix("curl ")
        && !arguments.trim_start().starts_with('/')
    {
        return Some(("a list of curl commands", "curl - <"));
    }
    let first_key = text.strip_prefix('{')?.trim_start();
    let begins = |key: &str| first_key.starts_with(key);
    if begins("\"log\"") {
        Some(("a HAR file", "har "))
    } else if begins("\"openapi\"") || begins("\"swagger\"") {
        Some(("an OpenAPI description", "openapi "))
    } else {
        None
    }
}

/// The text without a byte order mark.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_skipped_only_at_the_start() {
        assert_eq!(without_mark("\u{feff}GET /"), "GET /");
        assert_eq!(without_mark("GET /\u{feff}"), "GET /\u{feff}");
    }

    #[test]
    fn files_to_import_are_distinguished_from_targets() {
        let command = |text| importable(text).map(|(_, command)| command);
        assert_eq!(command("{\"log\":{"), Some("har "));
        assert_eq!(command("\n{\n  \"log\": {"), Some("har "));
        assert_eq!(command("{\"openapi\": \"3.1.0\""), Some("openapi "));
        assert_eq!(command("{\n\t\"swagger\": \"2.0\""), Some("openapi "));
        assert_eq!(command("\ncurl http://h/"), Some("curl - <"));
        for targets in [
            "{\"method\": \"GET\", \"url\": \"/log\"}",
            "GET /\n",
            "/curl",
            "curl /cart",
        ] {
            assert_eq!(command(targets), None, "{targets}");
        }
    }

    #[test]
    fn standard_input_has_a_name() {
        assert_eq!(shown(Path::new("-")), "standard input");
        assert_eq!(shown(Path::new("a/-")), "a/-");
    }
}
