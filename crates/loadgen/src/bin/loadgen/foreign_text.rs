//! The boundary for text of servers and files, such as names in them: what could steer a terminal or
//! reorder a line is shown as an escape. The Python package has the same one, for its own output.

use std::borrow::Cow;

/// As much of a message as tells what it is about.
const MOST_CHARACTERS: usize = 2_000;

/// The text with its invisible characters that do more than stand there as escapes: `\x1b`, `\u202e`.
/// Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |character, shown| {
        let code = u32::from(character);
        *shown += &match code {
            ..0x100 => format!("\\x{code:02x}"),
            0x100..0x1_0000 => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        };
    })
}

/// JSON with the same in its strings written as JSON writes it: it reads back unchanged.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    replaced(text, |character, shown| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            *shown += &format!("\\u{unit:04x}");
        }
    })
}

/// The text without its middle if it is longer than anybody reads.
pub fn shortened(text: &str) -> Cow<'_, str> {
    let characters = text.chars().count();
    if characters <= MOST_CHARACTERS {
        return Cow::Borrowed(text);
    }

    let half = MOST_CHARACTERS / 2;
    let beginning: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(characters - half).collect();
    Cow::Owned(format!("{beginning} … {end}"))
}

fn replaced(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_steering) {
        return Cow::Borrowed(text);
    }

    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_steering(character) {
            escape(character, &mut shown);
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Control characters but tab and newline, the direction of writing, ends of a line to some readers,
/// and invisible characters.
fn is_steering(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        '\u{2028}' | '\u{2029}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "\u{1b}]0;owned\u{7}\r\u{9b}31m\u{7f}\u{202e}gnp\u{2066}\u{2028}\u{feff}\u{e0041}";

    #[test]
    fn what_steers_a_terminal_is_an_escape_that_names_it() {
        let expected =
            "\\x1b]0;owned\\x07\\x0d\\x9b31m\\x7f\\u202egnp\\u2066\\u2028\\ufeff\\U000e0041";
        assert_eq!(visible(HOSTILE), expected);
        for ordinary in ["plain", "two\nlines\tand a tab", "Grüße, 漢字, עברית, 🙂"] {
            assert!(matches!(visible(ordinary), Cow::Borrowed(text) if text == ordinary));
        }
    }

    #[test]
    fn json_reads_back_unchanged() {
        let text = serde_json::to_string_pretty(&[HOSTILE, "é"]).expect("JSON");
        let shown = visible_json(&text);
        assert!(
            shown.contains("\\u202egnp") && shown.contains("\\udb40\\udc41"),
            "{shown}"
        );
        assert!(!shown.contains(is_steering), "{shown}");
        let read: [String; 2] = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read, [HOSTILE, "é"]);
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let long = format!("url {}: too long", "é".repeat(5_000_000));
        let short = shortened(&long);
        assert!(
            short.starts_with("url é") && short.ends_with("é: too long"),
            "{short}"
        );
        assert!(short.chars().count() < MOST_CHARACTERS + 10);
        assert_eq!(shortened("short"), "short");
    }
}
