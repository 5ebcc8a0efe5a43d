//! Why a configuration is rejected.

/// A setting that cannot be carried out as written. Change the named field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {must_be}")]
pub struct ConfigError {
    /// The invalid setting.
    pub field: &'static str,
    /// What it must be instead.
    pub must_be: &'static str,
}
