//! Numbers in messages: three significant digits, with thousands separators.

pub(super) use crate::base::thousands::{plural, thousands};

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
            if value >= 1_000.0 {
                return format!("{} {unit}", thousands(value as u64));
            }
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

/// A rate as a user would write it: `1500.0` becomes "1,500", `0.25` stays "0.25".
pub(super) fn rate(per_s: f64) -> String {
    if per_s >= 100.0 {
        thousands(per_s.round() as u64)
    } else {
        ((per_s * 100.0).round() / 100.0).to_string()
    }
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
            (86_400_000_000_000, "86,400 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_have_thousands_separators_and_plural_nouns() {
        assert_eq!(plural(0, "request"), "0 requests");
        assert_eq!(plural(1, "request"), "1 request");
        assert_eq!(plural(2, "address"), "2 addresses");
        assert_eq!(plural(1_234_567, "request"), "1,234,567 requests");
    }

    #[test]
    fn rates_have_thousands_separators_and_two_decimals_below_100() {
        let cases = [(0.25, "0.25"), (99.5, "99.5"), (1_500.0, "1,500")];
        for (per_s, text) in cases {
            assert_eq!(rate(per_s), text);
        }
    }

    #[test]
    fn small_shares_keep_two_decimals() {
        assert_eq!(percent(0.1624), "16 %");
        assert_eq!(percent(0.0163), "1.6 %");
        assert_eq!(percent(0.00021), "0.02 %");
    }
}
