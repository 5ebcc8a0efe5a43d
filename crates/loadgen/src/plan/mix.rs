//! Mixes of requests: weighted targets, and sessions with think times.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::base::thousands::thousands;
use crate::plan::placeholders;
use crate::plan::{
    CapturePlan, LoadModel, LoadPlan, LoadProfile, Order, Replay, ResponseCheck, default_method,
};

/// Maximum number of requests in a plan; each has its own counts in the report.
const MAX_REQUESTS: usize = 10_000;

/// Maximum for a replay that names the request of each arrival.
pub(crate) const MAX_RECORDED_REQUESTS: usize = 100_000;

/// One of several requests of a plan. All requests go to the same server.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPlan {
    /// Name of the request in the report. `None`: not set; the report contains the method and path.
    #[serde(default)]
    pub name: Option<String>,
    /// Request method.
    #[serde(default = "default_method")]
    pub method: String,
    /// Path and query, or a URL with the same host as the plan's URL.
    pub url: String,
    /// Header fields, in order. The plan's header fields are added, unless the request has a field
    /// of the same name.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Request body, base64. `None`: no body.
    #[serde(default)]
    pub body_base64: Option<String>,
    /// The criteria for a correct response. `None`: not set; the plan's `check` applies.
    #[serde(default)]
    pub check: Option<ResponseCheck>,
}

/// A request and its weight.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedRequest {
    /// The request.
    pub request: RequestPlan,
    /// Weight of the request. The request's share of the arrivals is the weight divided by the sum
    /// of all weights.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

/// A session: requests in sequence over one connection, with cookies.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    /// Name of the session in the report.
    pub name: String,
    /// Weight of the session. The session's share of all sessions is the weight divided by the sum
    /// of all weights.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Requests of the session, in order.
    pub steps: Vec<StepPlan>,
}

/// One request of a session.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepPlan {
    /// The request.
    pub request: RequestPlan,
    /// Mean of the exponentially distributed think time before the next request.
    #[serde(default)]
    pub think_time_ns: u64,
    /// Values to take from the response for later requests of the session.
    #[serde(default)]
    pub captures: Vec<CapturePlan>,
}

pub(crate) fn default_weight() -> f64 {
    1.0
}

/// The URL with file names instead of the paths of CSV files.
fn shown(url: &str) -> Cow<'_, str> {
    if !placeholders::has_any(url) {
        return Cow::Borrowed(url);
    }
    let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    Cow::Owned(placeholders::with_csv_paths(url, name_of))
}

impl RequestPlan {
    fn label(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format!("{} {}", self.method, shown(&self.url)))
    }
}

impl LoadPlan {
    /// The plan's targets or session steps, in the order of the report; empty if the plan has a
    /// single request.
    pub(crate) fn listed_requests(&self) -> impl Iterator<Item = &RequestPlan> {
        let steps = self
            .sessions
            .iter()
            .flat_map(|session| &session.steps)
            .map(|step| &step.request);
        self.targets
            .iter()
            .map(|target| &target.request)
            .chain(steps)
    }

    /// Names of [`Self::listed_requests`] in the report.
    pub(crate) fn request_labels(&self) -> Vec<String> {
        let of_step = |session: &SessionPlan| {
            let label = |(place, step): (usize, &StepPlan)| {
                format!("{}[{}] {}", session.name, place + 1, step.request.label())
            };
            session
                .steps
                .iter()
                .enumerate()
                .map(label)
                .collect::<Vec<_>>()
        };
        let targets = self.targets.iter().map(|target| target.request.label());
        targets
            .chain(self.sessions.iter().flat_map(of_step))
            .collect()
    }

    /// Refuses a mix that cannot be sent.
    pub(crate) fn validate_mix(&self) -> Result<(), LoadError> {
        let refuse = |message: &str| Err(LoadError::Plan(message.to_owned()));
        if !self.targets.is_empty() && !self.sessions.is_empty() {
            return refuse("targets and sessions are mutually exclusive");
        }
        let has_mix = !self.targets.is_empty() || !self.sessions.is_empty();
        if has_mix && (self.body_base64.is_some() || self.method != default_method()) {
            return refuse(
                "with targets or sessions, each request has its own method and body; omit the \
                plan's method and body",
            );
        }
        if !self.sessions.is_empty() && !matches!(self.load, LoadModel::Open(_)) {
            return refuse("sessions need an open loop; add a rate");
        }
        if self.sessions.iter().any(|session| session.steps.is_empty()) {
            return refuse("a session needs at least one request");
        }
        let weights = self.targets.iter().map(|target| target.weight);
        let mut weights = weights.chain(self.sessions.iter().map(|session| session.weight));
        if let Some(weight) = weights.find(|weight| !(weight.is_finite() && *weight > 0.0)) {
            return Err(LoadError::Plan(format!(
                "a weight must be positive, not {weight}"
            )));
        }
        self.validate_count()
    }

    fn validate_count(&self) -> Result<(), LoadError> {
        let count = self.listed_requests().count();
        let replay = self.recorded_requests();
        if let Some((replay, order)) = replay
            && !order.fits(replay.offsets_ns.offsets_ns().len(), self.targets.len())
        {
            return Err(LoadError::Plan(
                "a replay must name one target for each arrival".to_owned(),
            ));
        }

        let max = replay.map_or(MAX_REQUESTS, |_| MAX_RECORDED_REQUESTS);
        if count > max {
            return Err(LoadError::Plan(format!(
                "{} requests; a plan may have at most {}",
                thousands(count as u64),
                thousands(max as u64)
            )));
        }
        Ok(())
    }

    /// The replay and the request of each of its arrivals; `None` if targets are drawn by weight.
    fn recorded_requests(&self) -> Option<(&Replay, &Order)> {
        let LoadModel::Open(open) = &self.load else {
            return None;
        };
        let LoadProfile::Replay(replay) = &open.profile else {
            return None;
        };
        replay.requests.as_ref().map(|order| (replay, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;

    fn request(url: &str) -> RequestPlan {
        RequestPlan {
            name: None,
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body_base64: None,
            check: None,
        }
    }

    fn session(steps: &[&str]) -> SessionPlan {
        let step = |url: &&str| StepPlan {
            request: request(url),
            think_time_ns: 0,
            captures: Vec::new(),
        };
        SessionPlan {
            name: "browse".to_owned(),
            weight: 1.0,
            steps: steps.iter().map(step).collect(),
        }
    }

    #[test]
    fn invalid_mixes_are_refused_with_the_reason() {
        let good = LoadPlan::open("http://h/", 1.0, NS_PER_S);
        let target = |weight| {
            vec![WeightedRequest {
                request: request("/"),
                weight,
            }]
        };
        let sessions = vec![session(&["/"])];
        let cases = [
            (
                "weight",
                LoadPlan {
                    targets: target(0.0),
                    ..good.clone()
                },
            ),
            (
                "weight",
                LoadPlan {
                    targets: target(f64::NAN),
                    ..good.clone()
                },
            ),
            (
                "mutually exclusive",
                LoadPlan {
                    targets: target(1.0),
                    sessions: sessions.clone(),
                    ..good.clone()
                },
            ),
            (
                "body",
                LoadPlan {
                    targets: target(1.0),
                    body_base64: Some(String::new()),
                    ..good.clone()
                },
            ),
            (
                "at least one",
                LoadPlan {
                    sessions: vec![session(&[])],
                    ..good.clone()
                },
            ),
            (
                "rate",
                LoadPlan {
                    sessions,
                    ..LoadPlan::closed("http://h/", 1, NS_PER_S)
                },
            ),
            (
                "10,000",
                LoadPlan {
                    targets: vec![target(1.0).remove(0); MAX_REQUESTS + 1],
                    ..good.clone()
                },
            ),
        ];
        for (word, plan) in cases {
            let message = plan.validate().expect_err(word).to_string();
            assert!(message.contains(word), "{message:?} should name {word:?}");
        }
        LoadPlan {
            targets: target(0.5),
            ..good
        }
        .validate()
        .expect("a mix that can be sent");
    }

    #[test]
    fn a_replay_names_a_target_for_each_arrival() {
        let replaying = |requests: Vec<u32>| {
            let mut plan = LoadPlan::open("http://h/", 1.0, NS_PER_S);
            let target = |url: &&str| WeightedRequest {
                request: request(url),
                weight: 1.0,
            };
            plan.targets = ["/a", "/b"].iter().map(target).collect();
            let json = serde_json::json!({
                "open": {"replay": {"offsets_ns": [0, 10, 10], "requests": requests}}
            });
            plan.load = serde_json::from_value(json).expect("a load model");
            plan.validate()
        };

        replaying(vec![1, 0, 1]).expect("one target for each");
        for wrong in [vec![], vec![1, 0], vec![1, 0, 1, 0], vec![0, 1, 2]] {
            let message = replaying(wrong).expect_err("a misfit").to_string();
            assert!(message.contains("for each arrival"), "{message}");
        }
    }

    #[test]
    fn the_report_distinguishes_steps_by_session_and_position() {
        let mut plan = LoadPlan::open("http://h/", 1.0, NS_PER_S);
        plan.sessions = vec![session(&["/", "/cart"])];
        assert_eq!(
            plan.request_labels(),
            ["browse[1] GET /", "browse[2] GET /cart"]
        );
    }
}
