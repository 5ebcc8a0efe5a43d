//! Parsers for the values of single flags.

use loadgen::parse_duration_ns;
use loadgen::plan::{Keepalive, Ramp, Step};

/// A finite number, per second unless it says otherwise: `500`, `500/s`, `3000/m`, `1/10s`.
fn rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let period = match unit.trim() {
        "" => return None,
        unit if unit.starts_with(|first: char| first.is_ascii_digit()) => unit.to_owned(),
        unit => format!("1{unit}"),
    };
    let period_ns = parse_duration_ns(&period).ok()?;
    let per_s = number.trim().parse::<f64>().ok()? / (period_ns as f64 / 1e9);
    per_s.is_finite().then_some(per_s)
}

/// `500`, `500/s`, `3000/m` or `1/10s`.
pub fn rate_per_s(text: &str) -> Result<f64, String> {
    rate(text)
        .ok_or_else(|| format!("{text:?} is not a rate; write it like 500, 500/s, 3000/m or 1/10s"))
}

/// `1000:3000` or `1000:3000@30s`.
pub fn ramp(text: &str) -> Result<Ramp, String> {
    let (rates, time) = text
        .split_once('@')
        .map_or((text, None), |(rates, time)| (rates, Some(time)));
    let ends = rates
        .split_once(':')
        .and_then(|(from, to)| Some((rate(from)?, rate(to)?)));
    let (from_per_s, to_per_s) = ends.ok_or_else(|| {
        format!("{text:?} is not a ramp; write it like 1000:3000 or 1000:3000@30s")
    })?;
    Ok(Ramp {
        from_per_s,
        to_per_s,
        over_ns: time.map(parse_duration_ns).transpose()?,
    })
}

/// `1000@10s`.
pub fn step(text: &str) -> Result<Step, String> {
    let invalid = || format!("{text:?} is not a step; write steps like 1000@10s,2000@10s");
    let (rate_text, time) = text.split_once('@').ok_or_else(invalid)?;
    let rate_per_s = rate(rate_text).ok_or_else(invalid)?;
    Ok(Step {
        rate_per_s,
        duration_ns: parse_duration_ns(time)?,
    })
}

/// `p99:5%`, or `5%` of p99: the quantile, and the half-width of its 95 % confidence interval as a
/// share of the quantile.
pub fn precision(text: &str) -> Result<(f64, f64), String> {
    let (name, percent) = text.split_once(':').unwrap_or(("p99", text));
    let hundredth = |digits: &str| format!("{digits}e-2").parse::<f64>().ok();
    name.strip_prefix('p')
        .and_then(hundredth)
        .zip(percent.strip_suffix('%').and_then(hundredth))
        .ok_or_else(|| format!("{text:?} is not a precision; write it like 5% or p99.9:2%"))
}

/// `on`, `off` or a number of requests.
pub fn keepalive(text: &str) -> Result<Keepalive, String> {
    match text {
        "on" => Ok(Keepalive::On),
        "off" => Ok(Keepalive::Off),
        number => number
            .parse()
            .map(Keepalive::Requests)
            .map_err(|_| format!("{text:?} is neither on, off, nor a number of requests")),
    }
}

/// Refuses `-t`, which has three meanings in other generators.
pub fn refuse_t(_: &str) -> Result<String, String> {
    Err(
        "-t is ambiguous (threads in wrk, timeout in oha and hey, duration in locust); use --threads, \
        --timeout or --duration"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keepalive_takes_three_forms() {
        assert_eq!(keepalive("on"), Ok(Keepalive::On));
        assert_eq!(keepalive("off"), Ok(Keepalive::Off));
        assert_eq!(keepalive("10"), Ok(Keepalive::Requests(10)));
        assert!(keepalive("maybe").is_err());
    }

    #[test]
    fn a_rate_is_per_second_unless_it_says_otherwise() {
        assert_eq!(rate_per_s("500"), Ok(500.0));
        assert_eq!(rate_per_s("500/s"), Ok(500.0));
        assert_eq!(rate_per_s("3000/m"), Ok(50.0));
        assert_eq!(rate_per_s("50/1m"), rate_per_s("50/m"));
        assert_eq!(rate_per_s("1/10s"), Ok(0.1));
        for text in ["", "fast", "5/", "5/d", "nan", "5/s/s", "5/0s", "5/-1s"] {
            assert!(rate_per_s(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_precision_is_of_p99_unless_it_names_a_quantile() {
        assert_eq!(precision("5%"), Ok((0.99, 0.05)));
        assert_eq!(precision("p99.9:2.5%"), Ok((0.999, 0.025)));
        for text in ["5", "p99", "p99:5", "99:5%", "p:5%", "p99:%", "p99:x%"] {
            assert!(
                precision(text)
                    .expect_err(text)
                    .contains("write it like 5% or p99.9:2%"),
                "{text}"
            );
        }
    }
}
