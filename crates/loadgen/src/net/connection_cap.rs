//! Limits the connections of a load to the file descriptors that its processes may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::base::error::LoadError;
use crate::base::thousands::{plural, thousands};
use crate::plan::{LoadModel, LoadPlan, MAX_PROCESSES};

/// File descriptors that each process needs for anything other than connections.
const SPARE_FILE_DESCRIPTORS: u64 = 64;

/// Default maximum. More connections are only opened on request, because no listen backlog holds
/// more.
pub(crate) const AUTOMATIC_MAX_CONNECTIONS: usize = 4_096;

/// The number of connections that the plan requests, if any, and the maximum without a request.
/// Both fit within the limit on file descriptors.
pub(crate) fn connection_cap(plan: &LoadPlan) -> Result<(Option<usize>, usize), LoadError> {
    let file_descriptors = raise_file_descriptor_limit();
    let each = usize::try_from(file_descriptors.saturating_sub(SPARE_FILE_DESCRIPTORS))
        .unwrap_or(usize::MAX);
    let possible = each.saturating_mul(plan.processes);
    let requested = match &plan.load {
        LoadModel::Open(open) => open.max_connections,
        LoadModel::Closed(closed) => Some(closed.connections),
    };
    let required = requested.unwrap_or(plan.all_threads());
    if required > possible {
        return Err(LoadError::Plan(format!(
            "{} connections need more file descriptors than {} may open ({} each); {}",
            thousands(required as u64),
            plural(plan.processes as u64, "process"),
            thousands(file_descriptors),
            fix(plan, required, each)
        )));
    }

    Ok((
        requested,
        AUTOMATIC_MAX_CONNECTIONS
            .max(plan.all_threads())
            .min(possible),
    ))
}

/// More processes, or a higher limit if there cannot be as many processes as it would take. The
/// process that runs the load holds two pipes to each.
fn fix(plan: &LoadPlan, connections: usize, each: usize) -> String {
    let possible = MAX_PROCESSES.min(each / 2);
    if plan.possible_lengths_ns().is_none() && connections <= each.saturating_mul(possible) {
        return format!("use --processes {}", connections.div_ceil(each));
    }
    let needed = connections as u64 + SPARE_FILE_DESCRIPTORS;
    format!("raise the limit with: ulimit -n {needed}")
}

/// Raises the soft limit on file descriptors to the hard limit; returns the effective limit.
fn raise_file_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(u64::MAX);
    }

    limit.current.unwrap_or(u64::MAX)
}
