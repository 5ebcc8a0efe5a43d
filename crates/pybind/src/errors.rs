//! Conversion of Rust errors to Python exceptions.

use loadgen::LoadError;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

/// `ValueError` for invalid arguments, `RuntimeError` for everything else. The Python package
/// converts both to its own exceptions.
pub(crate) fn to_python(error: LoadError) -> PyErr {
    match error {
        LoadError::Plan(_)
        | LoadError::RequestsFile(_)
        | LoadError::Resolve { .. }
        | LoadError::Histogram(_) => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
