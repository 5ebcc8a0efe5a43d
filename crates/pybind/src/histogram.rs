//! A read-only histogram for Python.

use loadgen::LatencyHistogram;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::errors::to_python;

/// Durations in nanoseconds with three significant digits.
#[pyclass(frozen, module = "wsgiload._loadgen")]
pub(crate) struct Histogram(LatencyHistogram);

#[pymethods]
impl Histogram {
    #[classmethod]
    fn from_hdr_v2(_class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        LatencyHistogram::from_hdr_v2(data)
            .map(Self)
            .map_err(to_python)
    }

    #[classmethod]
    fn from_values(_class: &Bound<'_, PyType>, values_ns: Vec<u64>) -> Self {
        let mut histogram = LatencyHistogram::new();
        values_ns
            .into_iter()
            .for_each(|value| histogram.record(value));
        Self(histogram)
    }

    fn to_hdr_v2<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_hdr_v2().map_err(to_python)?))
    }

    fn quantile(&self, quantile: f64) -> PyResult<Option<u64>> {
        if !(0.0..=1.0).contains(&quantile) {
            let message =
                format!("a quantile must be between 0 and 1, not {quantile}; p99 is 0.99");
            return Err(PyValueError::new_err(message));
        }
        Ok(self.0.quantile_ns(quantile))
    }

    fn count_above(&self, limit_ns: u64) -> u64 {
        self.0.count_above(limit_ns)
    }

    fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.buckets()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn min(&self) -> Option<u64> {
        self.0.min_ns()
    }

    #[getter]
    fn max(&self) -> Option<u64> {
        self.0.max_ns()
    }

    #[getter]
    fn mean(&self) -> Option<f64> {
        self.0.mean_ns()
    }

    fn merge(&self, other: &Self) -> Self {
        let mut sum = self.0.clone();
        sum.add(&other.0);
        Self(sum)
    }

    fn __add__(&self, other: &Self) -> Self {
        self.merge(other)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.count()).unwrap_or(usize::MAX)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0.buckets() == other.0.buckets()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = slf.get_type().getattr("from_hdr_v2")?;
        Ok((rebuild, (slf.get().to_hdr_v2(slf.py())?,)))
    }

    fn __repr__(&self) -> String {
        let p99 = self
            .0
            .quantile_ns(0.99)
            .map_or("None".to_owned(), |ns| ns.to_string());
        format!("Histogram(count={}, p99={p99} ns)", self.0.count())
    }
}
