//! A running load: started, waited for with the interpreter free, stopped.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadgen::{LoadError, LoadPlan, LoadReport, ProgressFile, StopToken, prepare};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// Signals are looked at this often while a load is waited for: Ctrl-C works within it.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

type Running = JoinHandle<Result<LoadReport, LoadError>>;

/// A load that runs in threads of its own. Dropping it stops the load.
#[pyclass(frozen, module = "wsgiload._loadgen")]
pub(crate) struct LoadHandle {
    stop: StopToken,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl LoadHandle {
    /// Starts the load that this plan (JSON) describes; `progress` is an existing file that shows how
    /// it progresses.
    #[new]
    #[pyo3(signature = (plan_json, progress=None))]
    fn new(plan_json: &str, progress: Option<PathBuf>) -> PyResult<Self> {
        let progress = progress.map(ProgressFile::at).transpose()?;
        let plan = LoadPlan::from_json(plan_json).map_err(to_python)?;
        let stop = StopToken::new();
        let token = stop.clone();
        let running = std::thread::Builder::new()
            .name("loadgen".to_owned())
            .spawn(move || prepare(&plan)?.showing(progress).run(&token))?;
        Ok(Self {
            stop,
            running: Mutex::new(Some(running)),
        })
    }

    /// Asks the load to end; its result then holds what was measured, marked as interrupted.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Whether the load has ended.
    fn is_done(&self) -> bool {
        self.lock().as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the load has ended, no longer than `timeout_s`; says whether it has. A signal
    /// handler that raises (Ctrl-C) ends the wait with its exception; the load goes on until it is
    /// stopped.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        // Negative is "no wait"; too large for a duration is "no limit".
        let limit =
            timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let until = limit.map(|limit| Instant::now() + limit);
        while !self.is_done() {
            let left = until.map_or(SIGNAL_CHECK, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            py.detach(|| std::thread::park_timeout(left.min(SIGNAL_CHECK)));
            py.check_signals()?;
        }
        Ok(true)
    }

    /// The report as JSON. Waits for the end as `wait` does. Can be taken once.
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
        // Nothing can panic while the lock is held, so a poisoned one still holds good data.
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
