//! How many connections a load may have, as far as the process may open so many file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::base::error::LoadError;
use crate::plan::{LoadModel, LoadPlan};

/// Descriptors that the process needs for other things than connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// More connections than this are only opened when asked for: no backlog holds more.
const AUTOMATIC_MAX_CONNECTIONS: usize = 4_096;

/// Connections that the plan asks for by number, and the most that are opened without: both within
/// what the process may open.
pub(crate) fn connection_cap(plan: &LoadPlan) -> Result<(Option<usize>, usize), LoadError> {
    let descriptors = raise_descriptor_limit();
    let possible =
        usize::try_from(descriptors.saturating_sub(SPARE_DESCRIPTORS)).unwrap_or(usize::MAX);
    let asked = match &plan.load {
        LoadModel::Open(open) => open.max_connections,
        LoadModel::Closed(closed) => Some(closed.connections),
    };
    let least = asked.unwrap_or(plan.threads);
    if least > possible {
        return Err(LoadError::Plan(format!(
            "{least} connections need more descriptors than the {descriptors} this process may \
            open; raise the limit with: ulimit -n {}",
            least as u64 + SPARE_DESCRIPTORS
        )));
    }
    Ok((
        asked,
        AUTOMATIC_MAX_CONNECTIONS.max(plan.threads).min(possible),
    ))
}

/// Raises the soft limit on file descriptors to the hard one; returns what holds.
fn raise_descriptor_limit() -> u64 {
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
