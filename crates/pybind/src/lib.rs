//! `wsgiload._loadgen`: Python bindings of the load generator, without any logic.

mod errors;
mod file_sampler;
mod handle;
mod histogram;

use std::io::{BufReader, stdin, stdout};
use std::path::PathBuf;

use loadgen::{LoadPlan, LoadProgress, Place, ProgressFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// `CLOCK_MONOTONIC` now, in nanoseconds: the clock of every timestamp in a report.
#[pyfunction]
fn monotonic_ns() -> u64 {
    loadgen::clock::monotonic_ns()
}

/// Runs as one of a load's generator processes, on the standard streams.
#[pyfunction]
fn run_generator(py: Python<'_>) -> PyResult<()> {
    py.detach(|| loadgen::run_generator(BufReader::new(stdin()), stdout()))
        .map_err(errors::to_python)
}

/// Progress of a load with this number of threads, from its progress file (JSON); None until all
/// threads have written.
#[pyfunction]
fn read_progress(path: PathBuf, threads: usize) -> PyResult<Option<String>> {
    let file = ProgressFile::at(path)?;
    Ok(LoadProgress::read(&file, threads).map(|progress| progress.to_json()))
}

/// How the generator was built: `(version, profile, target_cpu, git_sha or None)`.
#[pyfunction]
fn build_info() -> (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
) {
    let build = loadgen::BuildInfo::default();
    (
        env!("CARGO_PKG_VERSION"),
        build.profile,
        build.target_cpu,
        build.git_sha,
    )
}

/// Validates a plan (JSON) without starting a load. Returns a warning for each of the `given`
/// options without effect.
#[pyfunction]
#[pyo3(signature = (plan_json, given=Vec::new(), open_by="--rate"))]
fn check_plan(plan_json: &str, given: Vec<String>, open_by: &str) -> PyResult<Vec<String>> {
    let plan = LoadPlan::from_json(plan_json).map_err(errors::to_python)?;
    loadgen::check(&plan).map_err(errors::to_python)?;
    Ok(loadgen::plan::without_effect(&plan, &given, open_by))
}

/// A text with its placeholders filled in as in the load's first request, for this part of the
/// request: "target", "field" or "body".
#[pyfunction]
fn first_text(text: &str, part: &str) -> PyResult<String> {
    let place = match part {
        "target" => Place::Target,
        "field" => Place::Field,
        _ => Place::Body,
    };
    loadgen::first_text(text, place).map_err(errors::to_python)
}

/// The records of the checks of a load (JSON).
#[pyfunction]
fn check_catalogue() -> String {
    loadgen::check_catalogue_json()
}

/// The JSON Schema of a load report.
#[pyfunction]
fn report_schema() -> String {
    loadgen::report_schema_json()
}

/// The weighted requests of a file, as the plan's `targets` (JSON).
#[pyfunction]
fn read_targets(path: PathBuf) -> PyResult<String> {
    as_json(&loadgen::read_targets(&path).map_err(errors::to_python)?)
}

/// The sessions of a file, as the plan's `sessions` (JSON).
#[pyfunction]
fn read_sessions(path: PathBuf) -> PyResult<String> {
    as_json(&loadgen::read_sessions(&path).map_err(errors::to_python)?)
}

fn as_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The arrivals of a trace or an access log, and the requests of the latter (JSON).
#[pyfunction]
fn read_recording(path: PathBuf) -> PyResult<String> {
    as_json(&loadgen::read_recording(&path).map_err(errors::to_python)?)
}

/// The extension module.
#[pymodule]
fn _loadgen(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(monotonic_ns, module)?)?;
    module.add_function(wrap_pyfunction!(build_info, module)?)?;
    module.add_function(wrap_pyfunction!(check_plan, module)?)?;
    module.add_function(wrap_pyfunction!(first_text, module)?)?;
    module.add_function(wrap_pyfunction!(check_catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(report_schema, module)?)?;
    module.add_function(wrap_pyfunction!(read_targets, module)?)?;
    module.add_function(wrap_pyfunction!(read_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(read_recording, module)?)?;
    module.add_function(wrap_pyfunction!(read_progress, module)?)?;
    module.add_function(wrap_pyfunction!(run_generator, module)?)?;
    module.add_class::<handle::LoadHandle>()?;
    module.add_class::<file_sampler::FileSampler>()?;
    module.add_class::<histogram::Histogram>()?;
    Ok(())
}
