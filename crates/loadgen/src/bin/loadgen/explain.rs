//! `--explain`: describes one check of the catalogue.

use std::fmt::Write as _;

use loadgen::plan::Thresholds;
use loadgen::plan::catalogue;

/// The description of a check, by its name.
///
/// # Errors
/// Lists the names of all checks if there is no such check.
pub fn explanation(name: &str) -> Result<String, String> {
    let matching = catalogue::ALL.into_iter().find(|check| check.name == name);
    let Some(check) = matching else {
        let names: Vec<&str> = catalogue::ALL.iter().map(|check| check.name).collect();
        return Err(format!(
            "unknown check {name:?}; the checks are {}",
            names.join(", ")
        ));
    };

    let mut text = format!("{}\n\nTests: {}.", check.name, check.looks_at);
    let _ = write!(text, "\nFires when: {}", check.fires_when);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_explained_by_name() {
        let by_name = explanation("send-lag").expect("a check");
        assert!(by_name.starts_with("send-lag\n"), "{by_name}");
        assert!(
            by_name.contains("--check-threshold send-lag.warn=0.05"),
            "{by_name}"
        );
        assert!(
            explanation("send-lags")
                .expect_err("unknown")
                .contains("send-lag")
        );
    }

    #[test]
    fn every_check_has_an_explanation() {
        for check in catalogue::ALL {
            let text = explanation(check.name).expect(check.name);
            assert!(text.contains("Fires when: "), "{text}");
        }
    }
}
