//! The variants of a load against a hostile server, and their possible outcomes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{HttpVersion, Keepalive, RequestPlan, SessionPlan, StepPlan, TlsOptions, Wire};
use loadgen::{LoadPlan, Outcome};

use crate::attack::Attack;
use crate::support::{MS, constant_rate};
use crate::tls_server::Certificate;

const TIMEOUT_NS: u64 = 300 * MS;
const MEASURE_NS: u64 = 200 * MS;
const RATE_PER_S: f64 = 50.0;
const USERS: usize = 4;

/// The load model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    Open,
    OpenInTwoThreads,
    /// Sessions of two requests each.
    Sessions,
    Closed,
}

impl Traffic {
    pub const ALL: [Self; 4] = [
        Self::Open,
        Self::OpenInTwoThreads,
        Self::Sessions,
        Self::Closed,
    ];
}

/// HTTP version and implementation.
#[derive(Clone, Copy)]
pub struct Protocol {
    pub version: HttpVersion,
    pub wire: Wire,
    /// Maximum number of concurrent requests on each connection.
    pub streams: usize,
}

impl Protocol {
    pub const HTTP1: [Self; 2] = [
        Self::one_at_a_time(HttpVersion::Http1, Wire::Native),
        Self::one_at_a_time(HttpVersion::Http1, Wire::Hyper),
    ];
    pub const HTTP2: [Self; 2] = [
        Self::one_at_a_time(HttpVersion::Http2, Wire::Native),
        Self {
            streams: 8,
            ..Self::one_at_a_time(HttpVersion::Http2, Wire::Native)
        },
    ];

    const fn one_at_a_time(version: HttpVersion, wire: Wire) -> Self {
        Self {
            version,
            wire,
            streams: 1,
        }
    }
}

/// Protocol, TLS and traffic of a load.
#[derive(Clone, Copy)]
pub struct LoadVariant<'a> {
    pub protocol: Protocol,
    pub certificate: Option<&'a Certificate>,
    pub traffic: Traffic,
}

impl fmt::Display for LoadVariant<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Protocol {
            version,
            wire,
            streams,
        } = self.protocol;
        let (scheme, traffic) = (self.scheme(), self.traffic);
        write!(
            formatter,
            "{scheme}, {version:?}, {wire:?}, {streams} streams, {traffic:?}"
        )
    }
}

impl LoadVariant<'_> {
    pub fn scheme(&self) -> &'static str {
        self.certificate.map_or("http", |_| "https")
    }

    /// Whether this load is possible: sessions and connections without reuse allow only one stream.
    pub fn is_possible_with(&self, attack: &Attack) -> bool {
        let needs_one_stream =
            self.traffic == Traffic::Sessions || attack.keepalive == Keepalive::Off;
        self.protocol.streams == 1 || !needs_one_stream
    }

    pub fn plan(&self, attack: &Attack, url: &str) -> LoadPlan {
        let mut plan = match self.traffic {
            Traffic::Closed => LoadPlan::closed(url, USERS, MEASURE_NS),
            _ => constant_rate(url, RATE_PER_S, MEASURE_NS),
        };
        if self.traffic == Traffic::OpenInTwoThreads {
            plan.threads = 2;
        }

        let request = request(attack);
        if self.traffic == Traffic::Sessions {
            plan.sessions = vec![session(request)];
        } else {
            (plan.method, plan.body_base64) = (request.method, request.body_base64);
        }

        LoadPlan {
            http_version: self.protocol.version,
            wire: self.protocol.wire,
            streams: self.protocol.streams,
            keepalive: attack.keepalive,
            timeout_ns: TIMEOUT_NS,
            tls: self
                .certificate
                .map_or_else(TlsOptions::default, Certificate::trusting_options),
            ..plan
        }
    }

    /// Possible outcomes. hyper has other limits, reports an error within a body like a broken
    /// connection, except for the source of the error, and accepts 101 as the status of a complete
    /// response. But it must not report a failure as correct.
    pub fn expected(&self, attack: &Attack) -> Vec<Outcome> {
        let mut expected = attack.expected.clone();
        let Protocol { version, wire, .. } = self.protocol;
        let is_hyper = version == HttpVersion::Http1 && wire == Wire::Hyper;

        if is_hyper && !expected.contains(&Outcome::Ok) {
            let failures = [
                Outcome::BadBody,
                Outcome::HttpStatus,
                Outcome::Reset,
                Outcome::Timeout,
            ];
            expected.extend(
                failures
                    .iter()
                    .filter(|outcome| !attack.expected.contains(outcome)),
            );
        }

        if self.protocol.streams > 1 {
            expected.extend(&attack.expected_for_others);
        }
        if self.certificate.is_some() && expected.contains(&Outcome::Timeout) {
            // While the server floods other connections, its handshakes are slow.
            expected.push(Outcome::ConnectTimeout);
        }

        expected
    }
}

fn request(attack: &Attack) -> RequestPlan {
    let is_large = attack.request_bytes > 0;
    RequestPlan {
        name: None,
        method: if is_large { "POST" } else { "GET" }.to_owned(),
        url: "/".to_owned(),
        headers: Vec::new(),
        body_base64: is_large.then(|| STANDARD.encode(vec![b'a'; attack.request_bytes])),
        check: None,
    }
}

fn session(request: RequestPlan) -> SessionPlan {
    let step = StepPlan {
        request,
        think_time_ns: 0,
        captures: Vec::new(),
    };
    SessionPlan {
        name: "twice".to_owned(),
        weight: 1.0,
        steps: vec![step.clone(), step],
    }
}
