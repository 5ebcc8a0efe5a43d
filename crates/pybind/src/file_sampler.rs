//! The sampler for Python: start it, stop it, get its samples.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sampler::{Sample, Sampler, SamplerPlan};

type PySample<'py> = (
    u64,
    u64,
    u64,
    Vec<(usize, Bound<'py, PyBytes>)>,
    Vec<Bound<'py, PyBytes>>,
);

/// Reads files and queries the kernel about sockets at fixed times, without the interpreter.
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

    /// Also reads these files; they get the next indices. Does nothing after a stop.
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

    /// The latest sample, in the format of `stop`; None before the first sample and after a stop.
    fn latest<'py>(&self, py: Python<'py>) -> Option<PySample<'py>> {
        let sampler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = sampler.as_ref().and_then(Sampler::latest);
        sample.map(|sample| to_python(py, &sample))
    }

    /// Takes a last sample and returns all: `(due, begun, ended, [(index, content)], [response])`.
    /// Empty the second time.
    fn stop<'py>(&self, py: Python<'py>) -> Vec<PySample<'py>> {
        let sampler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let samples = py.detach(|| sampler.map(Sampler::stop)).unwrap_or_default();
        samples.iter().map(|sample| to_python(py, sample)).collect()
    }
}

fn to_python<'py>(py: Python<'py>, sample: &Sample) -> PySample<'py> {
    let contents = sample
        .contents
        .iter()
        .map(|(place, content)| (*place, PyBytes::new(py, content)))
        .collect();
    let responses = sample
        .responses
        .iter()
        .map(|response| PyBytes::new(py, response))
        .collect();
    (
        sample.due_ns,
        sample.begun_ns,
        sample.ended_ns,
        contents,
        responses,
    )
}
