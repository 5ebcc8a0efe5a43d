//! The one place where a Rust error becomes a Python exception.

use loadgen::LoadError;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

/// What the caller gave cannot be used: `ValueError`. Anything else: `RuntimeError`. The Python
/// package turns both into its own error tree.
pub(crate) fn to_python(error: LoadError) -> PyErr {
    match error {
        LoadError::Plan(_)
        | LoadError::RequestsFile(_)
        | LoadError::Resolve { .. }
        | LoadError::Histogram(_) => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
