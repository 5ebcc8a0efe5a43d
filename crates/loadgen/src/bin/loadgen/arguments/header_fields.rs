//! Header fields of the command line: a single one, or a file of them.

use std::path::Path;

use http::HeaderName;
use loadgen::read_file;

/// More than any server accepts.
const MAX_FILE_BYTES: usize = 1024 * 1024;

const SYNTAX: &str = "write it as 'Name: value'";

/// The header fields of one `--header`, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderFields(pub Vec<(String, String)>);

/// `Name: value`, or `@FILE` with one on each line; empty lines and lines that begin with `#` are
/// skipped.
pub fn header_fields(text: &str) -> Result<HeaderFields, String> {
    if let Some(path) = text.strip_prefix('@') {
        return fields_of_file(path).map(HeaderFields);
    }

    let field =
        field_of(text).ok_or_else(|| format!("{text:?} is not a header field; {SYNTAX}"))?;
    Ok(HeaderFields(vec![field]))
}

fn field_of(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    let name = name.trim();
    HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name.to_owned(), value.trim().to_owned()))
}

/// Messages give the line number but not the text, because such files may contain secrets.
fn fields_of_file(path: &str) -> Result<Vec<(String, String)>, String> {
    let text = read(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);

    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let invalid_line = || format!("{path}: line {number} is not a header field; {SYNTAX}");
            field_of(line).ok_or_else(invalid_line)
        })
        .collect()
}

fn read(path: &str) -> Result<String, String> {
    let hint = "name a file with one header field per line";
    if path.is_empty() {
        return Err(format!("@ is not followed by a file name; {hint}"));
    }

    let bytes = read_file(Path::new(path), MAX_FILE_BYTES)
        .map_err(|message| format!("{message}; {hint}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8; use ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    /// The header fields of a file with these bytes.
    fn of_file(name: &str, bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
        let file = format!("loadgen-headers-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, bytes).expect("a file");
        let shown = path.display().to_string();

        let fields = header_fields(&format!("@{shown}"));
        std::fs::remove_file(&path).expect("removed");
        fields
            .map(|HeaderFields(fields)| fields)
            .map_err(|message| message.replace(&shown, "FILE"))
    }

    #[test]
    fn a_single_field_is_parsed() {
        let fields = HeaderFields(vec![field("Accept", "a:b")]);
        assert_eq!(header_fields(" Accept : a:b "), Ok(fields));
        for text in ["", "Accept", ": b", "a b: c", "\u{e9}: b"] {
            let message = header_fields(text).expect_err(text);
            assert!(message.ends_with("write it as 'Name: value'"), "{message}");
        }
    }

    #[test]
    fn a_file_has_a_field_on_each_line() {
        let text = "\u{feff}Authorization: Bearer a=b\r\n\n  \n# not sent: 1\nX-Empty:\nA: 1\nA: 2";
        let fields = [
            field("Authorization", "Bearer a=b"),
            field("X-Empty", ""),
            field("A", "1"),
            field("A", "2"),
        ];
        assert_eq!(of_file("fields", text.as_bytes()), Ok(fields.to_vec()));
        assert_eq!(of_file("nothing", b"\n"), Ok(Vec::new()));
    }

    #[test]
    fn errors_in_a_file_do_not_show_its_text() {
        let large = [b"A: ", &vec![b'a'; 1024 * 1024][..]].concat();
        for (name, bytes, expected) in [
            (
                "line",
                &b"A: b\n\nsecret\n"[..],
                "FILE: line 3 is not a header field; write it as",
            ),
            ("bytes", b"A: \xff", "FILE is not UTF-8; use ASCII"),
            (
                "large",
                &large,
                "FILE is larger than 1 MiB; name a file with",
            ),
        ] {
            let message = of_file(name, bytes).expect_err(name);
            assert!(message.starts_with(expected), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }

        for (text, expected) in [
            ("@", "@ is not followed by a file name; name a file with"),
            (
                "@/nowhere/headers",
                "cannot read /nowhere/headers: No such file",
            ),
            ("@/", "cannot read /: Is a directory"),
        ] {
            let message = header_fields(text).expect_err(text);
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
