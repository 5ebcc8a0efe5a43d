//! Timestamps of access logs and of cookies.

use crate::base::clock::NS_PER_S;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A timestamp in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamp {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// Whether it has a fraction of a second.
    pub has_fraction: bool,
}

/// `25/Nov/2026:10:00:00 +0100`, ISO 8601, or seconds, milliseconds, microseconds or nanoseconds
/// since 1970; without a time zone it is UTC.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    common(text)
        .or_else(|| iso_8601(text))
        .or_else(|| since_1970(text))
}

fn common(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.split_once('/')?;
    let (month, rest) = rest.split_once('/')?;
    let (year, clock) = rest.split_once(':')?;
    let month = MONTHS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(month))?;

    at(days_since_1970(year, month + 1, day)?, clock)
}

fn iso_8601(text: &str) -> Option<Timestamp> {
    let (date, clock) = text.split_once(['T', ' '])?;
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;

    at(days_since_1970(year, month.parse().ok()?, day)?, clock)
}

/// Seconds since 1970 of a date in `Expires`: its parts in any order, by RFC 6265, section 5.1.1.
/// Dates before 1970 count as 1970.
pub(crate) fn cookie_date_unix_s(text: &str) -> Option<u64> {
    let is_delimiter = |letter: char| !letter.is_ascii_alphanumeric() && letter != ':';
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);

    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        let is_month = |name: &&str| {
            let beginning = token.get(..3);
            beginning.is_some_and(|letters| letters.eq_ignore_ascii_case(name))
        };
        if time.is_none() && token.contains(':') {
            time = Some(token);
        } else if day.is_none() && token.len() <= 2 && number(token).is_some() {
            day = Some(token);
        } else if month.is_none() && MONTHS.iter().any(is_month) {
            month = MONTHS.iter().position(is_month);
        } else if year.is_none() {
            year = number(token);
        }
    }

    let year = match year? {
        short @ 0..=69 => short + 2_000,
        short @ 70..=99 => short + 1_900,
        full => full,
    };
    let days = days_since_1970(&year.to_string(), month? + 1, day?)?;
    at(days.max(0), time?).map(|timestamp| timestamp.unix_ns / NS_PER_S)
}

/// The number of digits determines the unit: current times in seconds have ten digits.
fn since_1970(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unit_ns = match whole.len() {
        9..=11 => NS_PER_S,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        18..=19 => 1,
        _ => return None,
    };

    let whole_ns = number(whole)?.checked_mul(unit_ns)?;
    let fraction_ns = billionths(fraction)? / (NS_PER_S / unit_ns);
    Some(Timestamp {
        unix_ns: whole_ns.checked_add(fraction_ns)?,
        has_fraction: unit_ns < NS_PER_S || !fraction.is_empty(),
    })
}

/// A time of day, such as `10:00:00.25+01:00`, on a day since 1970.
fn at(day: i64, clock: &str) -> Option<Timestamp> {
    let zone_start = clock.find(['+', '-', 'Z', 'z', ' ']);
    let (time, zone) = clock.split_at(zone_start.unwrap_or(clock.len()));
    let (hour, rest) = time.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, ""));

    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day_s = i64::try_from(hour * 3_600 + minute * 60 + second).ok()?;
    let unix_s = u64::try_from(day * 86_400 + of_day_s - zone_s(zone.trim())?).ok()?;
    Some(Timestamp {
        unix_ns: unix_s.checked_mul(NS_PER_S)? + billionths(fraction)?,
        has_fraction: !fraction.is_empty(),
    })
}

/// Offset of `+0100`, `-05:30` or `Z` from UTC.
fn zone_s(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, digits) = zone.split_at_checked(1)?;
    let digits = digits.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { "0" } else { minutes };

    let ahead_s = i64::try_from(number(hours)? * 3_600 + number(minutes)? * 60).ok()?;
    match sign {
        "+" => Some(ahead_s),
        "-" => Some(-ahead_s),
        _ => None,
    }
}

/// Days of the Gregorian calendar, counted in eras of 400 years that begin in March.
fn days_since_1970(year: &str, month: usize, day: &str) -> Option<i64> {
    let year = i64::try_from(number(year)?).ok()?;
    let month = i64::try_from(month).ok()?;
    let day = i64::try_from(number(day)?).ok()?;
    if !(1..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }

    let march_year = if month <= 2 { year - 1 } else { year };
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Digits only: `parse` would also accept a sign.
fn number(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The digits after a decimal point as billionths; more than nine are truncated.
fn billionths(fraction: &str) -> Option<u64> {
    let digits = fraction.get(..9).unwrap_or(fraction);
    number(&format!("{digits:0<9}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_log_formats_are_parsed() {
        // 2026-11-25 10:00:00 UTC, by `date -d @1795600800`.
        let whole = |text: &str| (text.to_owned(), 1_795_600_800_000_000_000, false);
        let quarter = |text: &str| (text.to_owned(), 1_795_600_800_250_000_000, true);
        for (text, unix_ns, has_fraction) in [
            whole("25/Nov/2026:10:00:00 +0000"),
            whole("25/Nov/2026:11:00:00 +0100"),
            whole("25/Nov/2026:04:30:00 -0530"),
            whole("2026-11-25T10:00:00Z"),
            whole("2026-11-25 10:00:00"),
            whole("2026-11-25T12:00:00+02:00"),
            whole("1795600800"),
            quarter("25/Nov/2026:10:00:00.25 +0000"),
            quarter("2026-11-25T10:00:00.250Z"),
            quarter("2026-11-25 10:00:00,25"),
            quarter("1795600800.25"),
            quarter("1795600800250"),
            quarter("1795600800250000"),
            quarter("1795600800250000000"),
        ] {
            let expected = Timestamp {
                unix_ns,
                has_fraction,
            };
            assert_eq!(parse(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn leap_days_are_counted() {
        let day = |text| parse(text).expect(text).unix_ns / NS_PER_S / 86_400;
        assert_eq!(day("1970-01-01T00:00:00Z"), 0);
        assert_eq!(day("2000-02-29T00:00:00Z"), 11_016);
        assert_eq!(day("2024-03-01T00:00:00Z"), day("2024-02-28T00:00:00Z") + 2);
        assert_eq!(day("2100-03-01T00:00:00Z"), day("2100-02-28T00:00:00Z") + 1);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "-",
            "yesterday",
            "12",
            "25/Nox/2026:10:00:00 +0000",
            "25/Nov/2026:25:00:00 +0000",
            "2026-13-25T10:00:00Z",
            "2026-11-25T10:00Z",
            "2026-11-25T10:00:00 CET",
            "1969-12-31T00:00:00Z",
            "1795600800.2x",
            "1795600800.12345678é",
            "+1795600800",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
