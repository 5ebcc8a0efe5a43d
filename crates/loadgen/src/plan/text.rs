//! Plans as JSON, with error messages that name the field.

use crate::base::error::LoadError;
use crate::plan::LoadPlan;

impl LoadPlan {
    /// Parses and validates a plan.
    ///
    /// # Errors
    /// [`LoadError::Plan`] with the field and the error.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let plan: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let field = shortened(error.path().to_string());
            let cause = shortened(in_words(error.inner()));
            LoadError::Plan(if field == "." {
                cause
            } else {
                format!("{field}: {cause}")
            })
        })?;
        json.end()
            .map_err(|error| LoadError::Plan(in_words(&error)))?;
        plan.validate()?;
        Ok(plan)
    }
}

/// Maximum length of a field's name or value in a message.
const MAX_CHARACTERS: usize = 300;

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The message without line and column, which are useless if a program wrote the JSON.
pub(crate) fn in_words(error: &serde_json::Error) -> String {
    error
        .to_string()
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;

    #[test]
    fn an_error_in_a_plan_names_its_field() {
        let plan = LoadPlan::open("http://h/", 100.0, NS_PER_S);
        let value = serde_json::to_value(&plan).expect("JSON");
        let with = |field: &str, wrong: serde_json::Value| {
            let mut changed = value.clone();
            *changed.pointer_mut(field).expect("a field") = wrong;
            LoadPlan::from_json(&changed.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(with("/seed", 7.into()).expect("possible").seed, 7);
        for (field, wrong, expected) in [
            (
                "/seed",
                (-1).into(),
                "seed: invalid value: integer `-1`, expected u64",
            ),
            (
                "/phases/measure_ns",
                "1s".into(),
                "phases.measure_ns: invalid type: string \"1s\", expected u64",
            ),
            ("/threads", 0.into(), "threads must be between 1 and 256"),
        ] {
            let error = with(field, wrong).expect_err("refused");
            assert!(error.ends_with(expected), "{error}");
            assert!(!error.contains("line 1"), "{error}");
        }
        let twice = LoadPlan::from_json(&format!("{value} {value}"))
            .expect_err("two plans")
            .to_string();
        assert!(twice.contains("trailing"), "{twice}");
        let long = with("/thresholds", serde_json::json!({ "é".repeat(9_000): 1 }));
        assert!(long.expect_err("unknown").chars().count() < 1_000);
        let error = LoadPlan::from_json("[").expect_err("no JSON").to_string();
        assert!(
            !error.starts_with('.') && !error.contains("column"),
            "{error}"
        );
    }
}
