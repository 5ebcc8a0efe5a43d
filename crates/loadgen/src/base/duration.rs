//! Durations in text form.

/// `30s`, `250ms`, `1.5`, `2m`: seconds without a unit; nanoseconds out.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let scale_ns = match unit {
        "" | "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        "m" => 60e9,
        "h" => 3_600e9,
        _ => return Err(format!("unit {unit:?} is not one of ns, us, ms, s, m, h")),
    };
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a duration like 30s or 250ms"))?;
    if !(value.is_finite() && value >= 0.0) {
        return Err(format!("{text:?} is not a duration like 30s or 250ms"));
    }

    Ok((value * scale_ns).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_units() {
        let cases = [
            ("30s", 30e9),
            ("250ms", 250e6),
            ("1.5", 1.5e9),
            ("2m", 120e9),
            ("60us", 60e3),
            ("0", 0.0),
            ("1e-05", 1e4),
            ("86399.999999999", 86_399_999_999_999.0),
        ];
        for (text, expected_ns) in cases {
            assert_eq!(parse_duration_ns(text), Ok(expected_ns as u64), "{text}");
        }

        for text in ["", "ten", "5 parsecs", "-1s", "nan", "inf", "1e", "1e999"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }
}
