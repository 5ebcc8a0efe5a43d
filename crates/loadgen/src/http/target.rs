//! Where and what to send: the URL resolved once, each request prepared once.

use std::borrow::Cow;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use crate::base::error::LoadError;
use crate::base::thousands::thousands;
use crate::http::captures::Captures;
use crate::http::request::{Request, RequestParts};
use crate::http::texts::Texts;
use crate::http::values::Names;
use crate::net::route::Route;
use crate::net::socket::Endpoint;
use crate::net::tls::TlsClient;
use crate::plan::placeholders;
use crate::plan::{Keepalive, LoadPlan, ReceiveStamps, RequestPlan, StepPlan};

/// Maximum wait for each address of a host that has several.
const CONNECT_PROBE: Duration = Duration::from_millis(500);

/// Maximum length of a URL in the `http` crate.
const MAX_URL_BYTES: usize = 65_534;

/// Everything that is the same for each request of a load.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub route: Route,
    pub requests: Vec<Request>,
}

impl Target {
    /// Resolves and prepares.
    pub fn prepare(plan: &LoadPlan) -> Result<Self, LoadError> {
        let (uri, authority) = url_of(plan)?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return Err(bad(format!(
                    "url {:?}: only http:// and https:// are supported",
                    plan.url
                )));
            }
        };
        if authority.port().is_none() && !authority.as_str().ends_with(authority.host()) {
            return Err(bad(format!(
                "url {:?}: the port must be between 0 and 65535",
                plan.url
            )));
        }

        let host = without_brackets(authority.host());
        let default_port = if is_tls { 443 } else { 80 };
        let endpoint = match (&plan.unix_socket, connect_to(plan)?) {
            (Some(path), _) => Endpoint::Unix(path.into()),
            (None, Some((host, port))) => Endpoint::Tcp(resolve(&host, port)?),
            (None, None) => {
                Endpoint::Tcp(resolve(host, authority.port_u16().unwrap_or(default_port))?)
            }
        };
        let tls = is_tls
            .then(|| TlsClient::prepare(host, &plan.tls, plan.http_version))
            .transpose()?;
        let route = Route::prepare(plan, endpoint, tls)?;
        let requests = requests_of(plan, &uri, authority.as_str())?;

        Ok(Self { route, requests })
    }

    /// The connection reuse of the plan; none if some requests close their connections.
    pub fn shortest_keepalive(&self, plan: &LoadPlan) -> Keepalive {
        let ends_some =
            plan.http_version.is_http1() && self.requests.iter().any(|one| one.has_close);
        if ends_some {
            Keepalive::Off
        } else {
            plan.keepalive
        }
    }

    /// Whether responses have kernel timestamps, unless the kernel omits one.
    pub fn may_have_kernel_timestamps(&self, plan: &LoadPlan) -> bool {
        let is_plain_tcp =
            matches!(self.route.endpoint, Endpoint::Tcp(_)) && self.route.tls.is_none();
        plan.receive_stamps() == ReceiveStamps::Kernel && plan.is_native() && is_plain_tcp
    }
}

/// Rejects a plan whose requests cannot be made, without resolving or contacting its host.
///
/// # Errors
/// [`LoadError::Plan`], which names the field or the request, and what is wrong with it.
pub fn check(plan: &LoadPlan) -> Result<(), LoadError> {
    plan.validate()?;
    connect_to(plan)?;
    let (uri, authority) = url_of(plan)?;
    requests_of(plan, &uri, authority.as_str()).map(drop)
}

fn url_of(plan: &LoadPlan) -> Result<(Uri, Authority), LoadError> {
    let uri = parsed_url(&placeholders::without_any(&plan.url), &plan.url)?;
    let authority = uri
        .authority()
        .ok_or_else(|| bad(format!("url {:?} has no host", plan.url)))?
        .clone();
    if authority.as_str().contains('@') {
        // The URL is not repeated in the message: it may contain a password.
        let header = "Authorization: Basic <base64 of user:password>";
        return Err(bad(format!(
            "url: user names in a URL are not sent; replace the user name with --header '{header}'"
        )));
    }

    Ok((uri, authority))
}

/// Parses a URL as people type it; messages quote it as `written`.
fn parsed_url(url: &str, written: &str) -> Result<Uri, LoadError> {
    if url.len() > MAX_URL_BYTES {
        return Err(bad(format!(
            "url of {} bytes: at most {} can be sent; shorten it, or send the data in a body",
            thousands(url.len() as u64),
            thousands(MAX_URL_BYTES as u64)
        )));
    }
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = after_scheme.split(['/', '?', '#']).next().unwrap_or("");
    if !host.is_ascii() {
        return Err(bad(format!(
            "url {written:?}: write the host in ASCII: python3 -c \
            'print({host:?}.encode(\"idna\").decode())' prints it"
        )));
    }

    percent_encoded(&with_scheme(url))
        .parse()
        .map_err(|error| bad(format!("url {written:?}: {error}")))
}

/// The URL, with `http://` if it begins with a host; a URL of the load's own server may begin with
/// its path.
fn with_scheme(url: &str) -> Cow<'_, str> {
    let is_scheme = |start: &str| start.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has_scheme = url
        .split_once("://")
        .is_some_and(|(start, _)| is_scheme(start));
    if has_scheme || url.starts_with('/') || url.is_empty() {
        return Cow::Borrowed(url);
    }
    Cow::Owned(format!("http://{url}"))
}

/// Encodes spaces and non-ASCII characters, which no request line can contain.
fn percent_encoded(url: &str) -> Cow<'_, str> {
    let is_sent = |byte: u8| byte.is_ascii() && byte != b' ';
    if url.bytes().all(is_sent) {
        return Cow::Borrowed(url);
    }
    url.bytes()
        .map(|byte| match byte {
            sent if is_sent(sent) => char::from(sent).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Refuses a path and query that an HTTP library cannot send. `max_bytes`: length with the longest
/// values of its placeholders.
fn require_possible(max_bytes: usize) -> Result<(), LoadError> {
    if max_bytes <= MAX_URL_BYTES {
        return Ok(());
    }
    Err(bad(format!(
        "url of up to {} bytes with placeholder values: over HTTP/2, and with --wire hyper, at most \
        {} can be sent; use shorter values, or send them in a body",
        thousands(max_bytes as u64),
        thousands(MAX_URL_BYTES as u64)
    )))
}

/// Host and port to connect to instead of those of the URL.
fn connect_to(plan: &LoadPlan) -> Result<Option<(String, u16)>, LoadError> {
    let Some(text) = &plan.connect_to else {
        return Ok(None);
    };

    let parsed = text.parse::<Authority>().ok();
    let parts = parsed
        .filter(|one| !one.host().is_empty() && !one.as_str().contains('@'))
        .and_then(|one| Some((without_brackets(one.host()).to_owned(), one.port_u16()?)));
    parts.map(Some).ok_or_else(|| {
        bad(format!(
            "connect_to {text:?} is not HOST:PORT; write it like 127.0.0.1:8443"
        ))
    })
}

/// The host of a URL as an address or a name: only IPv6 addresses have brackets.
fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The path and the query to request; a URL may omit the slash between host and query.
fn path_of(uri: &Uri) -> String {
    uri.path_and_query()
        .map_or_else(|| "/".to_owned(), PathAndQuery::to_string)
}

fn requests_of(plan: &LoadPlan, uri: &Uri, authority: &str) -> Result<Vec<Request>, LoadError> {
    let base = Base {
        plan,
        uri,
        authority,
    };
    let mut names = Names::new(plan.seed);
    if plan.targets.is_empty() && plan.sessions.is_empty() {
        return Ok(vec![base.single(&mut names)?]);
    }

    let mut requests = Vec::new();
    let mut labels = plan.request_labels().into_iter();
    let mut labelled = |prepared: Result<Request, LoadError>| {
        let label = labels.next().unwrap_or_default();
        prepared.map_err(|error| match error {
            LoadError::Plan(message) => bad(format!("request {label}: {message}")),
            other => other,
        })
    };
    for target in &plan.targets {
        requests.push(labelled(base.target(&target.request, &mut names))?);
    }
    for session in &plan.sessions {
        let mut variables = Vec::new();
        for step in &session.steps {
            requests.push(labelled(base.step(step, &mut names, &mut variables))?);
        }
    }

    Ok(requests)
}

/// The settings shared by all requests of a plan.
struct Base<'a> {
    plan: &'a LoadPlan,
    uri: &'a Uri,
    authority: &'a str,
}

impl Base<'_> {
    /// The request of a plan without targets and sessions.
    fn single(&self, names: &mut Names) -> Result<Request, LoadError> {
        let plan = self.plan;
        let request = RequestPlan {
            name: None,
            method: plan.method.clone(),
            url: plan.url.clone(),
            headers: plan.headers.clone(),
            body_base64: plan.body_base64.clone(),
            check: None,
        };
        let texts = Texts::filled(&request, &[], (names, None)).map_err(bad)?;
        self.listed(&texts, &request, None)
    }

    fn target(&self, request: &RequestPlan, names: &mut Names) -> Result<Request, LoadError> {
        let texts = Texts::filled(request, &self.plan.headers, (names, None)).map_err(bad)?;
        self.listed(&texts, request, None)
    }

    /// Prepares a step of a session that knows these `variables`; those that it captures are added.
    fn step(
        &self,
        step: &StepPlan,
        names: &mut Names,
        variables: &mut Vec<String>,
    ) -> Result<Request, LoadError> {
        let known = (names, Some(variables.as_slice()));
        let texts = Texts::filled(&step.request, &self.plan.headers, known).map_err(bad)?;
        let captures = Captures::prepare(&step.captures, variables).map_err(bad)?;
        self.listed(&texts, &step.request, captures)
    }

    fn listed(
        &self,
        texts: &Texts<'_>,
        request: &RequestPlan,
        captures: Option<Captures>,
    ) -> Result<Request, LoadError> {
        let path = path_of(&self.uri_of(&texts.url, &request.url)?);
        if let Some(stand_ins) = texts.stand_ins.as_ref().filter(|_| !self.plan.is_native()) {
            require_possible(stand_ins.max_target_bytes(&path))?;
        }

        Request::prepare(RequestParts {
            http_version: self.plan.http_version,
            method: &request.method,
            path: &path,
            authority: self.authority,
            headers: &texts.headers,
            default_headers: &texts.default_headers,
            body_base64: texts.body_base64.as_deref(),
            check: request.check.as_ref().unwrap_or(&self.plan.check),
            keeps_cookies: !self.plan.sessions.is_empty(),
            captures,
            stand_ins: texts.stand_ins.clone(),
        })
    }

    /// Parses a URL of the same server; messages quote it as `written`.
    fn uri_of(&self, url: &str, written: &str) -> Result<Uri, LoadError> {
        let (base, authority) = (self.uri, self.authority);
        let uri = parsed_url(url, written)?;
        if uri
            .authority()
            .is_some_and(|host| host.as_str() != authority)
        {
            return Err(bad(format!(
                "its host is not {authority}; a load targets a single server, so put the requests \
                for each server into a separate file"
            )));
        }

        if uri.scheme().is_some() && uri.scheme() != base.scheme() {
            let scheme = base.scheme_str().unwrap_or_default();
            return Err(bad(format!(
                "it does not begin with {scheme}://, unlike the load's URL"
            )));
        }
        Ok(uri)
    }
}

fn bad(message: String) -> LoadError {
    LoadError::Plan(message)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, LoadError> {
    let failed = |source| LoadError::Resolve {
        host: host.to_owned(),
        source,
    };
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "no address");
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    let listens =
        |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_PROBE).is_ok();
    // `localhost` is often both [::1] and 127.0.0.1, and a server listens on one of them.
    let chosen = if addresses.len() > 1 {
        addresses.iter().find(listens)
    } else {
        None
    };

    chosen
        .or(addresses.first())
        .copied()
        .ok_or_else(|| failed(none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::{HttpVersion, Wire};

    fn plan(url: &str) -> LoadPlan {
        LoadPlan::open(url, 1.0, 1)
    }

    fn prepared(url: &str) -> (Endpoint, String) {
        let target = Target::prepare(&plan(url)).expect("target");
        let head = String::from_utf8(target.requests[0].bytes(false).to_vec()).expect("text");
        (target.route.endpoint, head)
    }

    fn tcp(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().expect("address"))
    }

    #[test]
    fn a_url_determines_the_endpoint_and_the_head() {
        let (endpoint, head) = prepared("http://127.0.0.1:8000/a/b?c=d");
        assert_eq!(endpoint, tcp("127.0.0.1:8000"));
        assert_eq!(
            head,
            "GET /a/b?c=d HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n\r\n"
        );
    }

    #[test]
    fn a_url_may_be_typed_as_for_curl() {
        for (typed, line) in [
            ("127.0.0.1:8000/a?b=http://c", "GET /a?b=http://c HTTP/1.1"),
            ("127.0.0.1:8000", "GET / HTTP/1.1"),
            ("http://127.0.0.1:8000/a b", "GET /a%20b HTTP/1.1"),
            ("http://127.0.0.1:8000/é", "GET /%C3%A9 HTTP/1.1"),
            (
                "http://127.0.0.1:8000/?a=b|c[]{d}",
                "GET /?a=b|c[]{d} HTTP/1.1",
            ),
        ] {
            let (endpoint, head) = prepared(typed);
            assert_eq!(endpoint, tcp("127.0.0.1:8000"));
            assert_eq!(head.lines().next(), Some(line));
        }

        let message = check(&plan("http://bücher.example/")).expect_err("not ASCII");
        assert!(message.to_string().contains("idna"), "{message}");
    }

    #[test]
    fn connect_to_changes_the_address_but_not_the_host_name() {
        let target = |connect_to: &str| {
            Target::prepare(&LoadPlan {
                connect_to: Some(connect_to.to_owned()),
                ..plan("http://shop.invalid/a")
            })
        };
        for address in ["127.0.0.1:8000", "[::1]:8000"] {
            let target = target(address).expect(address);
            assert_eq!(target.route.endpoint, tcp(address));
            let head = String::from_utf8_lossy(target.requests[0].bytes(false)).into_owned();
            assert!(head.contains("host: shop.invalid\r\n"), "{head}");
        }
        for wrong in [
            "127.0.0.1",
            ":80",
            "h:99999",
            "a b:1",
            "http://h:1",
            "u@h:1",
            "",
        ] {
            let message = target(wrong).expect_err(wrong).to_string();
            assert!(
                message.contains("write it like 127.0.0.1:8443"),
                "{message}"
            );
        }
    }

    #[test]
    fn defaults_are_port_80_and_the_root() {
        let (endpoint, head) = prepared("http://[::1]");
        assert_eq!(endpoint, tcp("[::1]:80"));
        assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");
        let (_, head) = prepared("http://127.0.0.1:8000?c=d");
        assert!(head.starts_with("GET /?c=d HTTP/1.1\r\n"), "{head}");
    }

    #[test]
    fn requests_that_close_their_connections_disable_reuse() {
        let kept = |headers: &[(&str, &str)], http_version| {
            let headers = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let plan = LoadPlan {
                headers,
                http_version,
                ..LoadPlan::open("http://127.0.0.1:9/", 500.0, NS_PER_S)
            };
            Target::prepare(&plan)
                .expect("target")
                .shortest_keepalive(&plan)
        };
        let close = [("Connection", "close")];

        assert_eq!(kept(&[], HttpVersion::Http1), Keepalive::On);
        assert_eq!(kept(&close, HttpVersion::Http1), Keepalive::Off);
        assert_eq!(
            kept(&close, HttpVersion::Http2),
            Keepalive::On,
            "which has no such field"
        );
    }

    #[test]
    fn a_user_name_in_the_url_is_refused_without_showing_the_password() {
        let message = Target::prepare(&plan("http://me:secret@127.0.0.1/"))
            .expect_err("refused")
            .to_string();
        assert!(
            message.contains("Authorization: Basic") && !message.contains("secret"),
            "{message}"
        );
    }

    #[test]
    fn a_url_that_is_too_long_is_refused_with_its_length() {
        let of = |bytes: usize| format!("http://h/{}", "a".repeat(bytes - "http://h/".len()));
        assert!(check(&plan(&of(MAX_URL_BYTES))).is_ok());
        let message = check(&plan(&of(MAX_URL_BYTES + 1)))
            .expect_err("too long")
            .to_string();
        assert!(
            message.contains("url of 65,535 bytes: at most 65,534") && message.len() < 200,
            "{message}"
        );
    }

    #[test]
    fn values_that_make_a_url_too_long_for_a_library_are_refused() {
        const UUID_BYTES: usize = 36;
        let of = |path_bytes: usize| {
            let fixed = "a".repeat(path_bytes - "/".len() - UUID_BYTES);
            plan(&format!("http://h/{fixed}{{{{uuid}}}}"))
        };
        let http2 = |path_bytes| LoadPlan {
            http_version: HttpVersion::Http2,
            ..of(path_bytes)
        };
        let hyper = |path_bytes| LoadPlan {
            wire: Wire::Hyper,
            ..of(path_bytes)
        };
        assert!(check(&of(MAX_URL_BYTES + 1)).is_ok());
        let [longest, too_long] = [MAX_URL_BYTES, MAX_URL_BYTES + 1];
        for (possible, impossible) in [
            (http2(longest), http2(too_long)),
            (hyper(longest), hyper(too_long)),
        ] {
            assert!(check(&possible).is_ok());
            let refused = check(&impossible);
            let message = refused.expect_err("too long").to_string();
            assert!(
                message.contains("url of up to 65,535 bytes") && message.contains("shorter values"),
                "{message}"
            );
        }
    }

    #[test]
    fn unsupported_urls_are_refused_with_the_reason() {
        for (url, word) in [
            ("ftp://h/", "only http://"),
            ("/path", "no host"),
            ("http://127.0.0.1:99999/", "port"),
            ("http://a b/", "url"),
        ] {
            let message = Target::prepare(&plan(url)).expect_err(url).to_string();
            assert!(message.contains(word), "{url}: {message}");
        }
    }
}
