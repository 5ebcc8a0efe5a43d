//! A sampler for Python: started, stopped, its looks taken.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sampler::{Look, Sampler, SamplerPlan};

type PyLook<'py> = (
    u64,
    u64,
    u64,
    Vec<(usize, Bound<'py, PyBytes>)>,
    Vec<Bound<'py, PyBytes>>,
);

/// Reads files and asks the kernel about sockets at fixed moments, without the interpreter.
#[pyclass(frozen, module = "wsgiload._loadgen")]
pub(crate) struct FileSampler(Mutex<Option<Sampler>>);

#[pymethods]
impl FileSampler {
    /// Starts at once.
    #[new]
    fn new(files: Vec<(PathBuf, u64)>, queries: Vec<Vec<u8>>, interval_ns: u64) -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(Sampler::start(SamplerPlan {
            files,
            queries,
            interval_ns,
        })?))))
    }

    /// Reads these files, too; they take the next places. Does nothing once it was stopped.
    fn add(&self, files: Vec<(PathBuf, u64)>) {
        if let Some(sampler) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            sampler.add(files);
        }
    }

    /// The latest look, as one of those that `stop` gives back; None before the first and at the end.
    fn latest<'py>(&self, py: Python<'py>) -> Option<PyLook<'py>> {
        let sampler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let look = sampler.as_ref().and_then(Sampler::latest);
        look.map(|look| to_python(py, &look))
    }

    /// Takes a last look and gives back all: `(due, begun, ended, [(place, content)], [answer])`.
    /// Empty the second time.
    fn stop<'py>(&self, py: Python<'py>) -> Vec<PyLook<'py>> {
        let sampler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let looks = py.detach(|| sampler.map(Sampler::stop)).unwrap_or_default();
        looks.iter().map(|look| to_python(py, look)).collect()
    }
}

fn to_python<'py>(py: Python<'py>, look: &Look) -> PyLook<'py> {
    let texts = look
        .texts
        .iter()
        .map(|(place, text)| (*place, PyBytes::new(py, text)))
        .collect();
    let answers = look
        .answers
        .iter()
        .map(|answer| PyBytes::new(py, answer))
        .collect();
    (look.due_ns, look.begun_ns, look.ended_ns, texts, answers)
}
