//! Plans in text form, for the command line. No I/O.

use crate::fault::{Fault, FaultRule, When};
use crate::response::Framing;
use crate::service::Service;

/// A text that is not a valid plan. The message lists the valid forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct SpecError {
    text: String,
    expected: &'static str,
}

impl SpecError {
    fn new(text: &str, expected: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            expected,
        }
    }
}

const UNITS_NS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// Parses a duration: `1.5s`, `20ms`, `60us`, `100ns`, `2min`, `1h`, or a plain `0`.
///
/// # Errors
/// If it is none of these.
pub fn parse_duration_ns(text: &str) -> Result<u64, SpecError> {
    let error = || {
        SpecError::new(
            text,
            "a duration such as 1.5s, 20ms, 60us, 100ns, 2min or 0",
        )
    };
    let text_trimmed = text.trim();
    if text_trimmed == "0" {
        return Ok(0);
    }

    let unit_begins = text_trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or_else(error)?;
    let (number, unit) = text_trimmed.split_at(unit_begins);
    let number: f64 = number.parse().map_err(|_| error())?;
    let (_, unit_ns) = UNITS_NS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(error)?;

    Ok((number * unit_ns).round() as u64)
}

/// Parses a service plan: `2ms`, `exp:2ms`, `bimodal:1ms,50ms,200`, `list:1ms,2ms`,
/// `lognormal:1ms,1.5` (median, sigma) or `pareto:1.5,1ms,60s` (alpha, minimum, maximum).
///
/// # Errors
/// If it is none of these.
pub fn parse_service(text: &str, seed: u64) -> Result<Service, SpecError> {
    let error = || {
        SpecError::new(
            text,
            "a hold such as 2ms, exp:2ms, bimodal:1ms,50ms,200, list:1ms,2ms, \
             lognormal:1ms,1.5 or pareto:1.5,1ms,60s",
        )
    };
    let Some((kind, values)) = text.split_once(':') else {
        let hold_ns = parse_duration_ns(text).map_err(|_| error())?;
        return Ok(Service::Constant { hold_ns });
    };

    let values: Vec<&str> = values.split(',').collect();
    Ok(match (kind, values.as_slice()) {
        ("exp", [mean]) => Service::Exponential {
            mean_ns: parse_duration_ns(mean)?,
            seed,
        },
        ("bimodal", [fast, slow, every]) => Service::Bimodal {
            fast_ns: parse_duration_ns(fast)?,
            slow_ns: parse_duration_ns(slow)?,
            slow_every: every.parse().map_err(|_| error())?,
        },
        ("list", holds) => Service::List {
            holds_ns: holds
                .iter()
                .copied()
                .map(parse_duration_ns)
                .collect::<Result<_, _>>()?,
        },
        ("lognormal", [median, sigma]) => Service::Lognormal {
            median_ns: parse_duration_ns(median)?,
            sigma: sigma.parse().map_err(|_| error())?,
            seed,
        },
        ("pareto", [alpha, min, max]) => Service::Pareto {
            alpha: alpha.parse().map_err(|_| error())?,
            min_ns: parse_duration_ns(min)?,
            max_ns: parse_duration_ns(max)?,
            seed,
        },
        _ => return Err(error()),
    })
}

/// A periodic stall, without the service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Length of a stall.
    pub stall_ns: u64,
    /// Time between the starts of two stalls.
    pub period_ns: u64,
    /// Start of the first stall after the server's start.
    pub offset_ns: u64,
}

/// Parses a stall: `1s/10s` (length, period), or `1s/10s+5s` with the first one after 5 s.
///
/// # Errors
/// If it is neither.
pub fn parse_stall(text: &str) -> Result<Stall, SpecError> {
    let error = || SpecError::new(text, "a stall such as 1s/10s or 1s/10s+5s");
    let (stall, rest) = text.split_once('/').ok_or_else(error)?;
    let (period, offset) = rest.split_once('+').unwrap_or((rest, "0"));

    Ok(Stall {
        stall_ns: parse_duration_ns(stall)?,
        period_ns: parse_duration_ns(period)?,
        offset_ns: parse_duration_ns(offset)?,
    })
}

/// Parses a fault rule, `FAULT@WHEN`.
///
/// FAULT is a status such as `503`, `reset`, `reset-mid-body`, `truncate`, `never`, `hold:5s`,
/// `wrong-body` or `stale-close`. WHEN is `every:100` (the last of each 100), `every:100+7`
/// (arrivals 7, 107, …) or a list of arrival numbers, `3,9,27`, counted from 0.
///
/// # Errors
/// If it is not of this form.
pub fn parse_fault_rule(text: &str) -> Result<FaultRule, SpecError> {
    let error = || {
        SpecError::new(
            text,
            "FAULT@WHEN, with FAULT a status, reset, reset-mid-body, truncate, never, hold:5s, \
             wrong-body or stale-close, and WHEN every:100, every:100+7 or 3,9,27",
        )
    };
    let (fault, when) = text.split_once('@').ok_or_else(error)?;
    let fault = parse_fault(fault)?.ok_or_else(error)?;
    let when = parse_when(when).ok_or_else(error)?;

    Ok(FaultRule { when, fault })
}

/// Parses a framing: `content-length`, `chunked` or `until-close`.
///
/// # Errors
/// If it is none of these.
pub fn parse_framing(text: &str) -> Result<Framing, SpecError> {
    match text {
        "content-length" => Ok(Framing::ContentLength),
        "chunked" => Ok(Framing::Chunked),
        "until-close" => Ok(Framing::UntilClose),
        _ => Err(SpecError::new(
            text,
            "content-length, chunked or until-close",
        )),
    }
}

fn parse_fault(text: &str) -> Result<Option<Fault>, SpecError> {
    Ok(Some(match text {
        "reset" => Fault::Reset,
        "reset-mid-body" => Fault::ResetMidBody,
        "truncate" => Fault::Truncate,
        "never" => Fault::NeverAnswer,
        "wrong-body" => Fault::WrongBody,
        "stale-close" => Fault::StaleClose,
        _ => match (text.strip_prefix("hold:"), text.parse()) {
            (Some(hold), _) => Fault::HoldFor(parse_duration_ns(hold)?),
            (None, Ok(status)) => Fault::Status(status),
            (None, Err(_)) => return Ok(None),
        },
    }))
}

fn parse_when(text: &str) -> Option<When> {
    let Some(every) = text.strip_prefix("every:") else {
        let arrivals: Result<_, _> = text.split(',').map(str::parse).collect();
        return arrivals.ok().map(When::at);
    };
    match every.split_once('+') {
        Some((n, offset)) => Some(When::Every {
            n: n.parse().ok()?,
            offset: offset.parse().ok()?,
        }),
        None => Some(When::every(every.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn durations_are_read_with_their_unit() {
        let cases = [
            ("2ms", 2 * MS),
            ("1.5s", 1_500 * MS),
            ("60us", 60_000),
            ("60µs", 60_000),
            ("7ns", 7),
            ("2min", 120_000 * MS),
            ("1h", 3_600_000 * MS),
            ("0", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration_ns(text), Ok(expected), "{text}");
        }

        for text in ["", "5", "ms", "-1s", "1 fortnight", "1..2s", "nan"] {
            assert!(parse_duration_ns(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_service_has_a_text_form() {
        let cases = [
            ("2ms", Service::Constant { hold_ns: 2 * MS }),
            (
                "exp:2ms",
                Service::Exponential {
                    mean_ns: 2 * MS,
                    seed: 9,
                },
            ),
            (
                "bimodal:1ms,50ms,200",
                Service::Bimodal {
                    fast_ns: MS,
                    slow_ns: 50 * MS,
                    slow_every: 200,
                },
            ),
            (
                "list:1ms,2ms",
                Service::List {
                    holds_ns: vec![MS, 2 * MS],
                },
            ),
            (
                "lognormal:1ms,1.5",
                Service::Lognormal {
                    median_ns: MS,
                    sigma: 1.5,
                    seed: 9,
                },
            ),
            (
                "pareto:1.5,1ms,60s",
                Service::Pareto {
                    alpha: 1.5,
                    min_ns: MS,
                    max_ns: 60_000 * MS,
                    seed: 9,
                },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_service(text, 9), Ok(expected), "{text}");
        }

        for text in ["exp:", "exp:1ms,2ms", "bimodal:1ms", "gauss:1ms", "list:"] {
            assert!(parse_service(text, 9).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_stall_is_length_over_period_plus_offset() {
        let stall = Stall {
            stall_ns: 1_000 * MS,
            period_ns: 10_000 * MS,
            offset_ns: 0,
        };
        assert_eq!(parse_stall("1s/10s"), Ok(stall));
        assert_eq!(
            parse_stall("1s/10s+5s"),
            Ok(Stall {
                offset_ns: 5_000 * MS,
                ..stall
            })
        );
        assert!(parse_stall("1s").is_err());
    }

    #[test]
    fn every_fault_has_a_text_form() {
        let cases = [
            ("503", Fault::Status(503)),
            ("reset", Fault::Reset),
            ("reset-mid-body", Fault::ResetMidBody),
            ("truncate", Fault::Truncate),
            ("never", Fault::NeverAnswer),
            ("hold:5s", Fault::HoldFor(5_000 * MS)),
            ("wrong-body", Fault::WrongBody),
            ("stale-close", Fault::StaleClose),
        ];
        for (text, fault) in cases {
            let rule = parse_fault_rule(&format!("{text}@9,3"));
            assert_eq!(
                rule,
                Ok(FaultRule {
                    when: When::At(vec![3, 9]),
                    fault
                }),
                "{text}"
            );
        }
    }

    #[test]
    fn a_fault_rule_can_have_an_offset() {
        let when = |text| parse_fault_rule(text).map(|rule| rule.when);
        assert_eq!(
            when("reset@every:100"),
            Ok(When::Every { n: 100, offset: 99 })
        );
        assert_eq!(
            when("reset@every:100+7"),
            Ok(When::Every { n: 100, offset: 7 })
        );

        for text in ["reset", "reset@", "reset@every:x", "oops@1", "@1"] {
            assert!(parse_fault_rule(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_error_lists_the_valid_forms() {
        let error = parse_framing("gzip").expect_err("no such framing");
        assert_eq!(
            error.to_string(),
            "\"gzip\" is not content-length, chunked or until-close"
        );
    }
}
