//! Protocol settings: HTTP version, framing, TLS, connection reuse, and the source of timestamps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::plan::LoadPlan;
use crate::plan::phases::require;

/// HTTP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// HTTP/1.0: a connection is reused only if both sides send `Connection: keep-alive`.
    Http1_0,
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: negotiated by ALPN over TLS, with prior knowledge otherwise.
    Http2,
}

impl HttpVersion {
    /// Whether this is HTTP/1.0 or HTTP/1.1.
    #[must_use]
    pub fn is_http1(self) -> bool {
        self != Self::Http2
    }
}

/// Maximum number of concurrent streams on a connection. This many consecutive empty responses are
/// not yet treated as a flood.
pub(crate) const MAX_STREAMS: usize = 250;

impl LoadPlan {
    /// Whether the generator's own HTTP/1 implementation is used.
    pub(crate) fn is_native(&self) -> bool {
        self.http_version.is_http1() && self.wire == Wire::Native
    }

    /// Refuses an HTTP version that the chosen implementation does not support.
    pub(super) fn validate_http_version(&self) -> Result<(), LoadError> {
        require(
            self.http_version != HttpVersion::Http1_0 || self.wire == Wire::Native,
            "HTTP/1.0 needs the native implementation; omit --wire hyper",
        )
    }

    /// Refuses a number of streams that is out of range or incompatible with the rest of the plan.
    pub(super) fn validate_streams(&self) -> Result<(), LoadError> {
        require(
            (1..=MAX_STREAMS).contains(&self.streams),
            "streams must be between 1 and 250",
        )?;
        if self.streams == 1 {
            return Ok(());
        }

        require(
            self.http_version == HttpVersion::Http2,
            "more than one stream per connection requires HTTP/2; add --http2, or omit --streams",
        )?;
        require(
            self.sessions.is_empty(),
            "a session sends one request at a time over its own connection; omit --streams",
        )?;
        require(
            !self.keepalive.is_last(0),
            "more than one stream per connection requires connection reuse; omit --keepalive or \
            --streams",
        )
    }
}

/// TLS options.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// Whether certificates are accepted without verification.
    #[serde(default)]
    pub insecure: bool,
    /// PEM file of trusted certificate authorities. `None`: not set; the system's certificate
    /// authorities are trusted.
    #[serde(default)]
    pub ca_file: Option<String>,
    /// PEM file of the client certificate. `None`: no client certificate.
    #[serde(default)]
    pub client_cert: Option<String>,
    /// PEM file of the client certificate's private key. `None`: not set; the key is in
    /// `client_cert`.
    #[serde(default)]
    pub client_key: Option<String>,
}

/// Implementation of HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// The generator's own implementation: uses the least CPU time and writes a due request at
    /// once.
    #[default]
    Native,
    /// hyper, as an independent cross-check.
    Hyper,
}

/// How responses are timestamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveStamps {
    /// By the kernel when the data arrives, regardless of when the generator reads it.
    Kernel,
    /// Like `User`, but one connection in 16 also has kernel timestamps, to measure how late the
    /// generator reads.
    Sampled,
    /// By the generator after it has read the data.
    User,
}

/// Connection reuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keepalive {
    /// Connections are reused as long as the server allows.
    #[default]
    On,
    /// One request per connection.
    Off,
    /// A maximum number of requests per connection.
    Requests(#[schemars(range(min = 1))] u32),
}

impl Keepalive {
    /// Whether a connection that has carried `served` requests may carry only one more.
    #[must_use]
    pub fn is_last(self, served: u64) -> bool {
        match self {
            Self::On => false,
            Self::Off => true,
            Self::Requests(limit) => served + 1 >= u64::from(limit),
        }
    }
}
