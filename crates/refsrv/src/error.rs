//! Why a configuration is refused.

/// A setting that cannot be carried out as written. Change the named field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {must_be}")]
pub struct ConfigError {
    /// The setting at fault.
    pub field: &'static str,
    /// What it has to be instead.
    pub must_be: &'static str,
}
