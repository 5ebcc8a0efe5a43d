//! Results of the measure phase for one of several requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::LoadPlan;
use crate::record::exchange::Parts;
use crate::record::histogram::LatencyHistogram;

/// Size of a histogram with values of a tenth of a second.
const HISTOGRAM_BYTES_ESTIMATE: usize = 144 * 1024;
/// If the histograms of all requests do not fit into this, the report has their counts but no
/// quantiles.
const HISTOGRAMS_BYTES_LIMIT: usize = 256 << 20;

/// Counts and response times of one request, of one thread or of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestRecord {
    ok: u64,
    failed: u64,
    response: Option<LatencyHistogram>,
}

/// The results of one target, or of one request of a session.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct RequestReport {
    /// Name of the target, or its method and path. For a request of a session, the session's name
    /// and the request's position come first, as in `browse[2] GET /cart`.
    pub name: String,
    /// Scheduled requests of this target in the measurement. The sum over all targets is the load's
    /// `outcomes.scheduled`.
    pub scheduled: u64,
    /// Requests of this target with a correct response.
    pub ok: u64,
    /// Requests of this target without a correct response.
    pub failed: u64,
    /// Median response time of the correct responses. `None`: no correct response, or the
    /// histograms of all targets would need more than 256 MiB (more than 900 targets with one
    /// thread).
    pub p50_ns: Option<u64>,
    /// p99 response time of the correct responses. `None`: as for `p50_ns`.
    pub p99_ns: Option<u64>,
    /// Longest response time of the correct responses. `None`: as for `p50_ns`.
    pub max_ns: Option<u64>,
}

impl RequestRecord {
    /// Empty records for the requests of a plan with several; none for a plan with one.
    pub(crate) fn for_each(plan: &LoadPlan) -> Vec<Self> {
        let count = plan.listed_requests().count();
        // One copy per thread, and one for their sum. A process that merges them has all.
        let is_affordable =
            count * (plan.all_threads() + 1) * HISTOGRAM_BYTES_ESTIMATE <= HISTOGRAMS_BYTES_LIMIT;
        let empty = Self {
            response: is_affordable.then(LatencyHistogram::new),
            ..Self::default()
        };

        vec![empty; count]
    }

    /// Counts a completion, with the parts of a correct response.
    pub(crate) fn count(&mut self, parts: Option<&Parts>) {
        let Some(parts) = parts else {
            self.failed += 1;
            return;
        };

        self.ok += 1;
        if let Some(response) = &mut self.response {
            response.record(parts.response_ns);
        }
    }

    /// Adds another thread's record.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        if let Some((mine, theirs)) = self.response.as_mut().zip(other.response.as_ref()) {
            mine.add(theirs);
        }
    }

    /// The report of this request.
    pub(crate) fn report(&self, name: String) -> RequestReport {
        let response = self.response.as_ref();
        RequestReport {
            name,
            scheduled: self.ok + self.failed,
            ok: self.ok,
            failed: self.failed,
            p50_ns: response.and_then(|response| response.quantile_ns(0.5)),
            p99_ns: response.and_then(|response| response.quantile_ns(0.99)),
            max_ns: response.and_then(LatencyHistogram::max_ns),
        }
    }
}
