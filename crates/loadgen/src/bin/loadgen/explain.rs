//! `--explain`: describes one check of a load.

use std::fmt::Write as _;

use loadgen::plan::Thresholds;
use loadgen::{CHECKS, Check};

/// The description of a check, by its name. `wsgiload explain` prints the same text.
///
/// # Errors
/// Lists the names of all checks if there is no such check.
pub fn explanation(name: &str) -> Result<String, String> {
    let Some(check) = CHECKS.into_iter().find(|check| check.name == name) else {
        let names = CHECKS.map(|check| check.name).join(", ");
        return Err(format!("unknown check {name:?}; the checks are {names}"));
    };

    let mut text = format!("{}\n\nTests: {}.", check.name, check.examines);
    let _ = write!(text, "\nFires when: {}", check.premise);
    if let Some(consequence) = consequence(check) {
        let _ = write!(text, "\nConsequence: {consequence}.");
    }
    if let Some(fix) = check.fix {
        let _ = write!(text, "\nFix: {fix}.");
    }
    for (key, limit) in Thresholds::default().of_check(check.name) {
        let _ = write!(
            text,
            "\nThreshold: --check-threshold {}.{key}={limit}",
            check.name
        );
    }
    Ok(text)
}

fn consequence(check: &Check) -> Option<&'static str> {
    let lengthens = "response times may be too long, never too short";
    check.consequence.or(check.lengthens.then_some(lengthens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_explained_by_name() {
        let by_name = explanation("send-lag").expect("a check");
        assert!(by_name.starts_with("send-lag\n"), "{by_name}");
        for part in [
            "never too short",
            "Fix: ",
            "--check-threshold send-lag.warn=0.05",
        ] {
            assert!(by_name.contains(part), "{by_name}");
        }
        assert!(
            explanation("send-lags")
                .expect_err("unknown")
                .contains("send-lag")
        );
    }

    #[test]
    fn every_check_has_a_premise() {
        for check in CHECKS {
            let text = explanation(check.name).expect(check.name);
            assert!(text.contains("Fires when: "), "{text}");
        }
    }
}
