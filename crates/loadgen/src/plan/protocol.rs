//! Protocol settings: HTTP version, framing, TLS, connection reuse, and the source of timestamps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::plan::LoadPlan;
use crate::plan::phases::require;

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// HTTP/1.0, as old clients speak it: a connection is kept where both ends say `Keep-Alive`.
    Http1_0,
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: agreed on by ALPN over TLS, presumed without.
    Http2,
}

impl HttpVersion {
    /// Whether messages are text, one after another on a connection.
    #[must_use]
    pub fn is_http1(self) -> bool {
        self != Self::Http2
    }
}

/// Most concurrent streams on each connection: as many empty responses in a row are not yet a flood.
pub(crate) const MOST_STREAMS: usize = 250;

impl LoadPlan {
    /// Whether the generator's own implementation frames the messages, rather than a library.
    pub(crate) fn is_native(&self) -> bool {
        self.http_version.is_http1() && self.wire == Wire::Native
    }

    /// Refuses a version that the chosen implementation does not support.
    pub(super) fn validate_http_version(&self) -> Result<(), LoadError> {
        require(
            self.http_version != HttpVersion::Http1_0 || self.wire == Wire::Native,
            "HTTP/1.0 needs the native implementation; omit --wire hyper",
        )
    }

    /// Refuses streams that do not fit the rest of the plan.
    pub(super) fn validate_streams(&self) -> Result<(), LoadError> {
        require(
            (1..=MOST_STREAMS).contains(&self.streams),
            "streams must be between 1 and 250",
        )?;
        if self.streams == 1 {
            return Ok(());
        }

        require(
            self.http_version == HttpVersion::Http2,
            "several streams need HTTP/2; add --http2, or omit --streams",
        )?;
        require(
            self.sessions.is_empty(),
            "a session sends one request at a time over its own connection; omit --streams",
        )?;
        require(
            !self.keepalive.is_last(0),
            "several streams need connection reuse; omit --keepalive or --streams",
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
    /// PEM file of the client certificate's private key. `None`: the key is in `client_cert`.
    #[serde(default)]
    pub client_key: Option<String>,
}

/// Who frames the messages on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Our own framing: cheapest, and a due request is written at once.
    #[default]
    Native,
    /// hyper: the second opinion.
    Hyper,
}

/// Where the times of responses are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveStamps {
    /// In the kernel, when the bytes arrive, however late the generator reads them.
    Kernel,
    /// As with `User`; on one connection in sixteen also in the kernel, to measure how late the
    /// generator reads.
    Sampled,
    /// In the generator, after the read.
    User,
}

/// How long a connection is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keepalive {
    /// As long as the server allows.
    #[default]
    On,
    /// One request per connection.
    Off,
    /// This many requests per connection.
    Requests(u32),
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
