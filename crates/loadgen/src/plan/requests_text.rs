//! The text of a file of targets or sessions, or of standard input.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::Path;

/// Stands for standard input where a file is expected.
const STANDARD_INPUT: &str = "-";

/// How messages name the file.
pub(crate) fn shown(path: &Path) -> String {
    if is_standard_input(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The whole text, without a byte-order mark.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let text = std::io::read_to_string(open(path)?)
        .map_err(|error| format!("cannot read {}: {error}", shown(path)))?;
    Ok(without_mark(&text).to_owned())
}

/// The file, or standard input.
///
/// # Errors
/// A sentence that says why it cannot be opened.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, String> {
    if !is_standard_input(path) {
        let file =
            File::open(path).map_err(|error| format!("cannot read {}: {error}", shown(path)))?;
        return Ok(Box::new(BufReader::new(file)));
    }

    let input = std::io::stdin();
    if input.is_terminal() {
        // Nobody could interrupt the wait from Python.
        return Err(
            "standard input is a terminal; pipe a file into it, or name the file".to_owned(),
        );
    }
    Ok(Box::new(BufReader::new(input)))
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// Whether it is what the network panel of a browser saves.
pub(crate) fn is_har(text: &str) -> bool {
    let start = text.trim_start().strip_prefix('{');
    start.is_some_and(|start| start.trim_start().starts_with("\"log\""))
}

/// The text without the mark that some editors write at its beginning.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
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
    fn a_har_file_is_told_from_a_target_in_json() {
        assert!(is_har("{\"log\":{"));
        assert!(is_har("\n{\n  \"log\": {"));
        assert!(!is_har("{\"method\": \"GET\", \"url\": \"/log\"}"));
        assert!(!is_har("GET /\n"));
    }

    #[test]
    fn standard_input_has_a_name() {
        assert_eq!(shown(Path::new("-")), "standard input");
        assert_eq!(shown(Path::new("a/-")), "a/-");
    }
}
