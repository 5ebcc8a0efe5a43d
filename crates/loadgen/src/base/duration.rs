//! Durations in text form.

/// Parses `30s`, `250ms`, `1m30s` or `1.5` (seconds) into nanoseconds.
///
/// # Errors
/// A message that explains what is wrong with the text.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    if let Some(compound_ns) = compound_ns(text) {
        return Ok(compound_ns.round() as u64);
    }

    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let unit_or_seconds = if unit.is_empty() { "s" } else { unit };
    let scale_ns = scale_ns(unit_or_seconds)
        .ok_or_else(|| format!("unit {unit:?} is not one of ns, us, ms, s, m, h"))?;
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a duration like 30s or 250ms"))?;
    if !(value.is_finite() && value >= 0.0) {
        return Err(format!("{text:?} is not a duration like 30s or 250ms"));
    }

    Ok((value * scale_ns).round() as u64)
}

fn scale_ns(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        "m" => 60e9,
        "h" => 3_600e9,
        _ => return None,
    })
}

/// Parses `1h30m`: several numbers, each with a smaller unit than the one before it. `None` for
/// anything else.
fn compound_ns(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut last_scale_ns = f64::INFINITY;
    let mut total_ns = 0.0;
    let mut parts = 0;

    while !rest.is_empty() {
        let (number, from_unit) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let unit_length = from_unit.find(is_number).unwrap_or(from_unit.len());
        let (unit, next) = from_unit.split_at(unit_length);

        let part_scale_ns = scale_ns(unit).filter(|scale_ns| *scale_ns < last_scale_ns)?;
        let value: f64 = number
            .chars()
            .all(is_number)
            .then(|| number.parse().ok())??;
        total_ns += value * part_scale_ns;
        last_scale_ns = part_scale_ns;
        parts += 1;
        rest = next;
    }

    (parts > 1).then_some(total_ns)
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
            ("1m30s", 90e9),
            ("1h2m3s4ms", 3_723_004e6),
            ("0", 0.0),
            ("1e-05", 1e4),
            ("86399.999999999", 86_399_999_999_999.0),
        ];
        for (text, expected_ns) in cases {
            assert_eq!(parse_duration_ns(text), Ok(expected_ns as u64), "{text}");
        }

        for text in [
            "",
            "ten",
            "5 parsecs",
            "-1s",
            "nan",
            "inf",
            "1e",
            "1e999",
            "30s5m",
            "5m5m",
            "5m30",
        ] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }
}
