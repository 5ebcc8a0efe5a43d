//! Where to send and what: the URL resolved once, the request prepared once, the check decoded once.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper::body::Bytes;

use crate::error::LoadError;
use crate::plan::LoadPlan;

/// Longest wait for each of several addresses of one host.
const CONNECT_PROBE: Duration = Duration::from_millis(500);

/// Everything that is the same for each request of a load.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub address: SocketAddr,
    method: Method,
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
    kept_bytes: Bytes,
    last_bytes: Bytes,
    statuses: Vec<u16>,
    pub expected_body: Option<Bytes>,
}

impl Target {
    /// Resolves and prepares.
    pub fn prepare(plan: &LoadPlan) -> Result<Self, LoadError> {
        let uri: Uri = plan.url.parse().map_err(|error| bad(format!("url {:?}: {error}", plan.url)))?;
        let authority = uri.authority().ok_or_else(|| bad(format!("url {:?} has no host", plan.url)))?;
        if uri.scheme_str() != Some("http") {
            return Err(bad(format!("url {:?}: only http:// can be driven", plan.url)));
        }
        if authority.port().is_none() && !authority.as_str().ends_with(authority.host()) {
            return Err(bad(format!("url {:?}: the port must lie between 0 and 65535", plan.url)));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let address = resolve(host, authority.port_u16().unwrap_or(80))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let method = plan.method.parse().map_err(|_| bad(format!("method {:?} is not a token", plan.method)))?;
        let body = decode("body_base64", plan.body_base64.as_deref())?.unwrap_or_default();
        let mut headers = parse_headers(&plan.headers)?;
        if !headers.contains_key(HOST) {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|error| bad(error.to_string()))?;
            headers.insert(HOST, host);
        }
        if plan.body_base64.is_some() && !headers.contains_key(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut target = Self {
            address,
            method,
            path: path.parse().map_err(|error| bad(format!("path {path:?}: {error}")))?,
            headers,
            body,
            kept_bytes: Bytes::new(),
            last_bytes: Bytes::new(),
            statuses: plan.check.statuses.clone(),
            expected_body: decode("check.body_base64", plan.check.body_base64.as_deref())?,
        };
        // Once for all connections: a new one costs no more than its handshake.
        target.kept_bytes = target.serialise(false);
        target.last_bytes = target.serialise(true);
        Ok(target)
    }

    /// The request; `is_last` asks the server to close the connection after its answer.
    pub fn request(&self, is_last: bool) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        if is_last {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        request
    }

    /// The request as it stands on the wire; `is_last` as in [`Self::request`].
    pub fn request_bytes(&self, is_last: bool) -> Bytes {
        if is_last { self.last_bytes.clone() } else { self.kept_bytes.clone() }
    }

    fn serialise(&self, is_last: bool) -> Bytes {
        let request = self.request(is_last);
        let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
        for (name, value) in request.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        Bytes::from(bytes)
    }

    /// Whether the method is HEAD.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Whether the answer has a body by its status and the request's method alone.
    pub fn answer_may_have_body(&self, status: u16) -> bool {
        self.method != Method::HEAD && status >= 200 && status != 204 && status != 304
    }

    /// Whether this status counts as right.
    pub fn accepts(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }
}

fn bad(message: String) -> LoadError {
    LoadError::Plan(message)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, LoadError> {
    let failed = |source| LoadError::Resolve { host: host.to_owned(), source };
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "no address");
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_PROBE).is_ok();
    // `localhost` is often both [::1] and 127.0.0.1, and a server listens on one of them.
    let chosen = if addresses.len() > 1 { addresses.iter().find(listens) } else { None };
    chosen.or(addresses.first()).copied().ok_or_else(|| failed(none()))
}

fn decode(field: &str, text: Option<&str>) -> Result<Option<Bytes>, LoadError> {
    text.map(|text| STANDARD.decode(text).map(Bytes::from))
        .transpose()
        .map_err(|error| bad(format!("{field} is not base64: {error}")))
}

fn parse_headers(fields: &[(String, String)]) -> Result<HeaderMap, LoadError> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let parsed_name: HeaderName =
            name.parse().map_err(|_| bad(format!("header name {name:?} is not a token")))?;
        let parsed_value = HeaderValue::from_str(value)
            .map_err(|_| bad(format!("header {name}: the value has characters that HTTP forbids")))?;
        headers.append(parsed_name, parsed_value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(url: &str) -> LoadPlan {
        LoadPlan::open(url, 1.0, 1)
    }

    #[test]
    fn a_url_is_taken_apart() {
        let target = Target::prepare(&plan("http://127.0.0.1:8000/a/b?c=d")).expect("target");
        let request = target.request(false);
        assert_eq!(target.address.to_string(), "127.0.0.1:8000");
        assert_eq!(request.uri().to_string(), "/a/b?c=d");
        assert_eq!(request.headers()[HOST], "127.0.0.1:8000");
        assert!(!request.headers().contains_key(CONNECTION));
        assert_eq!(target.request(true).headers()[CONNECTION], "close");
    }

    #[test]
    fn defaults_are_port_80_and_the_root() {
        let target = Target::prepare(&plan("http://[::1]")).expect("target");
        assert_eq!(target.address.to_string(), "[::1]:80");
        assert_eq!(target.request(false).uri().to_string(), "/");
    }

    #[test]
    fn the_bytes_of_a_request_are_those_of_the_protocol() {
        let mut post = plan("http://127.0.0.1:8000/a?b");
        post.method = "POST".into();
        post.headers = vec![("X-A".into(), "b".into())];
        post.body_base64 = Some("aGVsbG8=".into());
        let target = Target::prepare(&post).expect("target");
        let (kept, last) = (target.request_bytes(false), target.request_bytes(true));
        let kept = std::str::from_utf8(&kept).expect("text").to_ascii_lowercase();
        assert!(kept.starts_with("post /a?b http/1.1\r\n"), "{kept}");
        assert!(kept.ends_with("\r\n\r\nhello"), "{kept}");
        for field in ["host: 127.0.0.1:8000\r\n", "x-a: b\r\n", "content-length: 5\r\n"] {
            assert_eq!(kept.matches(field).count(), 1, "{field} in {kept}");
        }
        assert!(!kept.contains("connection:"));
        assert!(std::str::from_utf8(&last).expect("text").contains("connection: close\r\n"));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        for (url, word) in [
            ("https://h/", "only http://"),
            ("/path", "no host"),
            ("http://127.0.0.1:99999/", "port"),
            ("http://a b/", "url"),
        ] {
            let message = Target::prepare(&plan(url)).expect_err(url).to_string();
            assert!(message.contains(word), "{url}: {message}");
        }
        let mut newline = plan("http://127.0.0.1/");
        newline.headers = vec![("X-A".into(), "b\r\nC: d".into())];
        assert!(Target::prepare(&newline).expect_err("newline").to_string().contains("X-A"));
    }
}
