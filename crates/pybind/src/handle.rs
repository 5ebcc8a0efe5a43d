//! A running load: start it, wait for it without holding the GIL, stop it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadgen::{LoadError, LoadPlan, LoadReport, ProgressFile, StopToken, prepare};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// How often signals are handled during a wait, so that Ctrl-C works.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

type Running = JoinHandle<Result<LoadReport, LoadError>>;

/// A load that runs in its own threads. Dropping it stops the load.
#[pyclass(frozen, module = "wsgiload._loadgen")]
pub(crate) struct LoadHandle {
    stop: StopToken,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl LoadHandle {
    /// Starts a load from its plan (JSON); `progress` is an existing file for its progress,
    /// `generator` the command that runs `run_generator`, for plans with several processes.
    #[new]
    #[pyo3(signature = (plan_json, progress=None, generator=Vec::new()))]
    fn new(plan_json: &str, progress: Option<PathBuf>, generator: Vec<OsString>) -> PyResult<Self> {
        let progress = progress.map(ProgressFile::at).transpose()?;
        let plan = LoadPlan::from_json(plan_json).map_err(to_python)?;
        let stop = StopToken::new();
        let token = stop.clone();
        let running = std::thread::Builder::new()
            .name("loadgen".to_owned())
            .spawn(move || {
                let load = prepare(&plan)?.showing(progress);
                load.with_generator(generator).run(&token)
            })?;
        Ok(Self {
            stop,
            running: Mutex::new(Some(running)),
        })
    }

    /// Stops the load; its result contains the measurements so far, marked as interrupted.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Whether the load has ended.
    fn is_done(&self) -> bool {
        self.lock().as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the load, at most `timeout_s`; returns whether it has ended. A signal
    /// handler that raises (Ctrl-C) ends the wait with its exception; the load continues until it
    /// is stopped.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        // Negative means no wait; too large for a duration means no limit.
        let limit =
            timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let until = limit.map(|limit| Instant::now() + limit);
        while !self.is_done() {
            let remaining = until.map_or(SIGNAL_CHECK, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if remaining.is_zero() {
                return Ok(false);
            }
            py.detach(|| std::thread::park_timeout(remaining.min(SIGNAL_CHECK)));
            py.check_signals()?;
        }
        Ok(true)
    }

    /// The report as JSON. Waits for the end like `wait`. Available once.
    fn result_json(&self, py: Python<'_>) -> PyResult<String> {
        self.wait(py, None)?;
        let running = self.lock().take();
        let running =
            running.ok_or_else(|| PyRuntimeError::new_err("the result has already been taken"))?;
        let ended = py.detach(|| running.join());
        let report = ended
            .map_err(|_| PyRuntimeError::new_err("the generator panicked; please report this"))?;
        Ok(report.map_err(to_python)?.to_json())
    }
}

impl LoadHandle {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        // Nothing can panic while the lock is held, so a poisoned lock still holds valid data.
        self.running
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for LoadHandle {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
