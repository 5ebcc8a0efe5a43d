//! Escapes untrusted text from servers and files, such as names, before it is printed: characters
//! that control a terminal or reorder a line are shown as escapes. The Python package does the same
//! for its output.

use std::borrow::Cow;

/// Longer messages are shortened.
const MAX_CHARACTERS: usize = 2_000;

/// The text with control and invisible characters shown as escapes, such as `\x1b` and `\u202e`.
/// Line feeds and tabs are kept.
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

/// JSON with the same characters shown as JSON escapes, so that its value is unchanged.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    replaced(text, |character, shown| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            *shown += &format!("\\u{unit:04x}");
        }
    })
}

/// The text without its middle if it is longer than [`MAX_CHARACTERS`].
pub fn shortened(text: &str) -> Cow<'_, str> {
    let characters = text.chars().count();
    if characters <= MAX_CHARACTERS {
        return Cow::Borrowed(text);
    }

    let half = MAX_CHARACTERS / 2;
    let beginning: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(characters - half).collect();
    Cow::Owned(format!("{beginning} … {end}"))
}

fn replaced(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }

    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            escape(character, &mut shown);
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Control characters except tab and newline, characters that change the text direction, other line
/// separators, and invisible characters. Joiners (U+200C, U+200D) are safe: words of some scripts
/// and emoji need them.
fn is_unsafe(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        '\u{2028}' | '\u{2029}' => true,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' => {
            true
        }
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "\u{1b}]0;owned\u{7}\r\u{9b}31m\u{7f}\u{202e}gnp\u{2066}\u{2028}\u{feff}\u{e0041}\u{200b}";

    #[test]
    fn unsafe_characters_are_shown_as_escapes() {
        let expected =
            "\\x1b]0;owned\\x07\\x0d\\x9b31m\\x7f\\u202egnp\\u2066\\u2028\\ufeff\\U000e0041\\u200b";
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
        assert!(!shown.contains(is_unsafe), "{shown}");
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
        assert!(short.chars().count() < MAX_CHARACTERS + 10);
        assert_eq!(shortened("short"), "short");
    }
}
