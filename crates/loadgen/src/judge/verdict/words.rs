//! Figures as they appear in messages: three significant digits, thousands separated.

const DURATION_UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];

/// `0.1624` becomes "16 %".
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size >= 10.0 => format!("{percent:.0} %"),
        size if size >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// 14_044_123 becomes "14.0 ms".
pub(super) fn duration(ns: u64) -> String {
    // Rounded first: 999.6 µs is 1.00 ms, not 1000 µs.
    let rounded = format!("{:.2e}", ns as f64).parse().unwrap_or(ns as f64);
    for (unit_ns, unit) in DURATION_UNITS {
        if rounded >= unit_ns {
            let value = rounded / unit_ns;
            let decimals = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.decimals$} {unit}");
        }
    }
    format!("{rounded:.0} ns")
}

/// 10000 becomes "10,000".
pub(super) fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// "1 response", "10,000 responses".
pub(super) fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_significant_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (14_044_123, "14.0 ms"),
            (819_400, "819 µs"),
            (999_600, "1.00 ms"),
            (2_346_000_000, "2.35 s"),
            (86_400_000_000_000, "86400 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_are_separated_and_agree_with_their_noun() {
        assert_eq!(plural(0, "request"), "0 requests");
        assert_eq!(plural(1, "request"), "1 request");
        assert_eq!(plural(999, "request"), "999 requests");
        assert_eq!(plural(1_234_567, "request"), "1,234,567 requests");
    }

    #[test]
    fn small_shares_keep_two_decimals() {
        assert_eq!(percent(0.1624), "16 %");
        assert_eq!(percent(0.0163), "1.6 %");
        assert_eq!(percent(0.00021), "0.02 %");
    }
}
