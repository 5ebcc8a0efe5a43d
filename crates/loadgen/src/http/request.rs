//! One prepared request: its bytes on the wire, and what counts as a correct response to it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use hyper::body::Bytes;
use regex::bytes::Regex;

use crate::base::error::LoadError;
use crate::base::thousands::thousands;
use crate::http::body_check::ExpectedBody;
use crate::http::captures::Captures;
use crate::http::http2::request_head::RequestHead;
use crate::http::template::{Scratch, StandIns, Template};
use crate::http::values::Inputs;
use crate::plan::{HttpVersion, ResponseCheck};

/// `HeaderMap` holds 24,576 names; those of the request and those of the plan share one.
const MAX_REQUEST_FIELDS: usize = 10_000;

/// A request as specified by the plan.
pub(crate) struct RequestParts<'a> {
    pub http_version: HttpVersion,
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// For the `Host` field, unless `headers` has one.
    pub authority: &'a str,
    pub headers: &'a [(String, String)],
    /// Header fields that apply only if `headers` has none of that name.
    pub default_headers: &'a [(String, String)],
    pub body_base64: Option<&'a str>,
    pub check: &'a ResponseCheck,
    /// Whether the cookies of its response are used.
    pub keeps_cookies: bool,
    /// The values to capture from its response.
    pub captures: Option<Captures>,
    /// The stand-ins for the values in the texts above, if there are any.
    pub stand_ins: Option<StandIns>,
}

/// A request that can be sent any number of times; one with placeholders, once it has been filled
/// in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    common: Arc<Common>,
    kept_bytes: Vec<u8>,
    last_bytes: Vec<u8>,
    /// Whether the bytes were filled in, so that they differ from `common`.
    is_changed: bool,
}

/// The part of a request that does not change when it is filled in.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    http_version: HttpVersion,
    method: Method,
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
    statuses: Vec<u16>,
    /// Whether 101 (Switching Protocols) is accepted.
    pub accepts_switch: bool,
    pub expected_body: Arc<ExpectedBody>,
    /// The values to capture from its response.
    pub captures: Option<Arc<Captures>>,
    /// Whether the cookies of its response are used.
    pub keeps_cookies: bool,
    /// Whether its `Connection` header contains `close` (RFC 9112, section 9.6).
    pub has_close: bool,
    /// The head in HTTP/2 form, if it does not change.
    http2_head: Option<RequestHead>,
    /// If there is one, path, headers and body contain stand-ins.
    template: Option<Arc<Template>>,
}

impl Deref for Request {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl Request {
    /// Checks and serialises.
    pub fn prepare(parts: RequestParts<'_>) -> Result<Self, LoadError> {
        let method: Method = parts
            .method
            .parse()
            .map_err(|_| bad(format!("method {:?} is not a token", parts.method)))?;
        let path = parts
            .path
            .parse()
            .map_err(|error| bad(format!("path {:?}: {error}", parts.path)))?;
        let body = decode("body_base64", parts.body_base64)?;
        let mut headers = headers_of(&parts)?;
        let sends_length = body.is_some() || expects_body(&method);
        let length = length_of(&headers, body.as_ref(), parts.stand_ins.as_ref())?;
        if sends_length && !headers.contains_key(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, length);
        }

        let has_close = headers.get_all(CONNECTION).iter().any(lists_close);
        let needs_body = parts.captures.as_ref().is_some_and(Captures::need_body);
        let request = Self::of(Common {
            http_version: parts.http_version,
            method,
            path,
            headers,
            body: body.unwrap_or_default(),
            statuses: parts.check.statuses.clone(),
            accepts_switch: parts.check.statuses.contains(&101),
            expected_body: Arc::new(ExpectedBody {
                is_kept: needs_body,
                ..expected_body(parts.check)?
            }),
            captures: parts.captures.map(Arc::new),
            keeps_cookies: parts.keeps_cookies,
            has_close,
            http2_head: None,
            template: None,
        });

        Ok(match parts.stand_ins {
            Some(stand_ins) => request.with_template(stand_ins),
            None => request,
        })
    }

    fn of(mut common: Common) -> Self {
        let kept_bytes = common.serialise(false);
        if common.http_version == HttpVersion::Http2 {
            common.http2_head = RequestHead::of(&kept_bytes);
        }
        Self {
            kept_bytes,
            last_bytes: common.serialise(true),
            common: Arc::new(common),
            is_changed: false,
        }
    }

    fn with_template(self, stand_ins: StandIns) -> Self {
        let template = Template::split(
            stand_ins,
            &self.kept_bytes,
            &self.last_bytes,
            self.body.len(),
        );
        let common = Common {
            template: Some(Arc::new(template)),
            ..Common::clone(&self)
        };
        Self {
            common: Arc::new(common),
            ..self
        }
    }

    /// Whether it must be filled in before it is sent.
    pub fn has_placeholders(&self) -> bool {
        self.template.is_some()
    }

    /// Turns this request into `request`, filled in. `may_be_last`: whether its connection may be
    /// closed after it.
    pub fn fill(
        &mut self,
        request: &Self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        may_be_last: bool,
    ) {
        if !Arc::ptr_eq(&self.common, &request.common) {
            self.common = Arc::clone(&request.common);
        }
        if let Some(template) = &self.common.template {
            let last = may_be_last.then_some(&mut self.last_bytes);
            template.fill(inputs, scratch, &mut self.kept_bytes, last);
            self.is_changed = true;
        }
    }

    /// The request for a library, if one can represent it; `is_last` asks the server to close the
    /// connection after its response.
    pub fn message(&self, is_last: bool) -> Option<http::Request<Bytes>> {
        if self.is_changed {
            return parsed(self.bytes(is_last));
        }
        Some(self.common.message(is_last))
    }

    /// The request on the wire; `is_last` as in [`Self::message`].
    pub fn bytes(&self, is_last: bool) -> &[u8] {
        if is_last {
            &self.last_bytes
        } else {
            &self.kept_bytes
        }
    }

    /// The head in HTTP/2 form, if it can be sent.
    pub fn http2_head(&self) -> Option<Cow<'_, RequestHead>> {
        if self.is_changed {
            return RequestHead::of(&self.kept_bytes).map(Cow::Owned);
        }
        self.common.http2_head.as_ref().map(Cow::Borrowed)
    }

    /// The body.
    pub fn body(&self) -> Bytes {
        if !self.is_changed {
            return self.common.body.clone();
        }
        let end = self
            .kept_bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n");
        let body = end.map_or(&[][..], |end| &self.kept_bytes[end + 4..]);
        Bytes::copy_from_slice(body)
    }

    /// The path as sent, without the query.
    pub fn path(&self) -> &[u8] {
        let target = self.kept_bytes.split(|byte| *byte == b' ').nth(1);
        let target = target.unwrap_or_default();
        let end = target.iter().position(|byte| *byte == b'?');
        &target[..end.unwrap_or(target.len())]
    }

    /// The cookies in its header fields.
    pub fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        let (head, _) = head_and_rest(&self.kept_bytes);
        lines(head).filter_map(|line| Some(line.strip_prefix(COOKIE_NAME)?.trim_ascii()))
    }

    /// The same request with this `Cookie` field instead of its own.
    pub fn with_cookie(&self, cookie: &HeaderValue) -> Self {
        Self {
            common: Arc::clone(&self.common),
            kept_bytes: with_cookie(&self.kept_bytes, cookie),
            last_bytes: with_cookie(&self.last_bytes, cookie),
            is_changed: true,
        }
    }
}

impl Common {
    fn message(&self, is_last: bool) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.clone();
        let mut headers = self.headers.clone();
        match (is_last, self.is_http1_0()) {
            (true, false) if !self.has_close => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // An HTTP/1.0 connection is closed unless keep-alive is requested.
            (true, true) if !self.has_close => {
                headers.remove(CONNECTION);
            }
            (false, true) if !headers.contains_key(CONNECTION) => {
                headers.insert(CONNECTION, HeaderValue::from_static("Keep-Alive"));
            }
            _ => {}
        }
        *request.headers_mut() = headers;

        request
    }

    /// Whether it is an HTTP/1.0 request.
    pub fn is_http1_0(&self) -> bool {
        self.http_version == HttpVersion::Http1_0
    }

    fn serialise(&self, is_last: bool) -> Vec<u8> {
        let request = self.message(is_last);
        let minor_version = u8::from(!self.is_http1_0());
        let line = format!(
            "{} {} HTTP/1.{minor_version}\r\n",
            request.method(),
            request.uri()
        );
        let mut bytes = line.into_bytes();

        for (name, value) in request.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }

        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Whether the method is HEAD.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Whether the status and the request's method allow the response to have a body.
    pub fn response_may_have_body(&self, status: u16) -> bool {
        self.method != Method::HEAD && status >= 200 && status != 204 && status != 304
    }

    /// Whether this status is accepted.
    pub fn accepts(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }
}

/// All header fields except Content-Length.
fn headers_of(parts: &RequestParts<'_>) -> Result<HeaderMap, LoadError> {
    let mut headers = parse_headers(parts.headers)?;
    let names: HashSet<_> = headers.keys().cloned().collect();
    for (name, value) in &parse_headers(parts.default_headers)? {
        if !names.contains(name) {
            headers.append(name, value.clone());
        }
    }

    if !headers.contains_key(HOST) {
        headers.insert(
            HOST,
            HeaderValue::from_str(parts.authority).map_err(|error| bad(error.to_string()))?,
        );
    }
    Ok(headers)
}

/// The length of the body, or its stand-in. The header fields of a request must not contradict its
/// actual body: otherwise, the server would wait for the rest, or parse the rest as the next
/// request.
fn length_of(
    headers: &HeaderMap,
    body: Option<&Bytes>,
    stand_ins: Option<&StandIns>,
) -> Result<HeaderValue, LoadError> {
    if headers.contains_key(TRANSFER_ENCODING) {
        let message =
            "header Transfer-Encoding: bodies are sent with Content-Length; omit the header";
        return Err(bad(message.to_owned()));
    }

    let changing = stand_ins.filter(|stand_ins| stand_ins.are_in_body());
    let length = changing.map_or_else(
        || body.map_or(0, Bytes::len).to_string(),
        StandIns::body_length,
    );
    let given: Vec<_> = headers
        .get_all(CONTENT_LENGTH)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if given.is_empty() || given == [length.as_bytes()] {
        return HeaderValue::from_str(&length).map_err(|error| bad(error.to_string()));
    }

    let real = changing.map_or_else(
        || format!("{length} bytes"),
        |_| "whose length changes".to_owned(),
    );
    Err(bad(format!(
        "header Content-Length: {} does not match the body ({real}); omit the header",
        String::from_utf8_lossy(&given.join(&b", "[..]))
    )))
}

/// How a `Cookie` field begins on the wire.
const COOKIE_NAME: &[u8] = b"cookie: ";

/// The lines before the empty line that ends the head, and everything after them.
fn head_and_rest(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    bytes.split_at(end.map_or(bytes.len(), |place| place + 2))
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split_inclusive(|byte| *byte == b'\n')
}

fn with_cookie(bytes: &[u8], cookie: &HeaderValue) -> Vec<u8> {
    let (head, rest) = head_and_rest(bytes);
    let mut changed = Vec::with_capacity(bytes.len() + COOKIE_NAME.len() + cookie.len() + 2);
    for line in lines(head).filter(|line| !line.starts_with(COOKIE_NAME)) {
        changed.extend_from_slice(line);
    }

    for part in [COOKIE_NAME, cookie.as_bytes(), b"\r\n", rest] {
        changed.extend_from_slice(part);
    }
    changed
}

/// Parses a request; `None` if the `http` crate cannot represent it.
fn parsed(bytes: &[u8]) -> Option<http::Request<Bytes>> {
    let (head, _) = head_and_rest(bytes);
    let mut fields = vec![httparse::EMPTY_HEADER; lines(head).count()];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(head_bytes) = request.parse(bytes).ok()? else {
        return None;
    };

    let body = Bytes::copy_from_slice(&bytes[head_bytes..]);
    let mut message = http::Request::new(body);
    *message.method_mut() = request.method?.parse().ok()?;
    *message.uri_mut() = request.path?.parse().ok()?;
    for field in &*request.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(field.value).ok()?;
        message.headers_mut().append(name, value);
    }
    Some(message)
}

/// Whether a server may wait for a body, or reject the request, if Content-Length is missing: RFC
/// 9110, section 8.6.
fn expects_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

fn lists_close(connection: &HeaderValue) -> bool {
    connection
        .as_bytes()
        .split(|byte| *byte == b',')
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

fn bad(message: String) -> LoadError {
    LoadError::Plan(message)
}

fn expected_body(check: &ResponseCheck) -> Result<ExpectedBody, LoadError> {
    let regex = check.regex.as_deref().map(Regex::new).transpose();
    let sha256 = check
        .sha256
        .as_deref()
        .map(|text| hash_of(text).ok_or(text))
        .transpose();
    Ok(ExpectedBody {
        is_kept: false,
        exact: decode("check.body_base64", check.body_base64.as_deref())?,
        length: check.length,
        sha256: sha256.map_err(|text| {
            bad(format!(
                "{text:?} is not a SHA-256 hash of 64 hexadecimal digits"
            ))
        })?,
        regex: regex.map_err(|error| bad(not_a_regex(&error)))?,
    })
}

/// The error on a single line, without the drawing that marks its position.
pub(crate) fn not_a_regex(error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.trim_start_matches("error: ");
    format!("invalid regular expression: {reason}; see https://docs.rs/regex/latest/regex/#syntax")
}

fn hash_of(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }

    let mut hash = [0; 32];
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }

    Some(hash)
}

fn decode(field: &str, text: Option<&str>) -> Result<Option<Bytes>, LoadError> {
    text.map(|text| STANDARD.decode(text).map(Bytes::from))
        .transpose()
        .map_err(|error| bad(format!("{field} is not base64: {error}")))
}

fn parse_headers(fields: &[(String, String)]) -> Result<HeaderMap, LoadError> {
    if fields.len() > MAX_REQUEST_FIELDS {
        return Err(bad(format!(
            "a request has {} header fields; at most {} are possible",
            thousands(fields.len() as u64),
            thousands(MAX_REQUEST_FIELDS as u64)
        )));
    }

    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let parsed_name: HeaderName = name
            .parse()
            .map_err(|_| bad(format!("header name {name:?} is not a token")))?;
        let parsed_value = HeaderValue::from_str(value).map_err(|_| {
            bad(format!(
                "header {name}: the value has characters that HTTP forbids"
            ))
        })?;
        headers.append(parsed_name, parsed_value);
    }

    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(headers: &'a [(String, String)], check: &'a ResponseCheck) -> RequestParts<'a> {
        RequestParts {
            http_version: HttpVersion::Http1,
            method: "POST",
            path: "/a?b",
            authority: "h:8000",
            headers,
            default_headers: &[],
            body_base64: None,
            check,
            keeps_cookies: false,
            captures: None,
            stand_ins: None,
        }
    }

    #[test]
    fn more_header_fields_than_a_map_can_hold_are_refused() {
        let check = ResponseCheck::default();
        let fields = |prefix: &str, count: usize| -> Vec<_> {
            (0..count)
                .map(|number| (format!("{prefix}-{number}"), "v".to_owned()))
                .collect()
        };
        let (most, others) = (
            fields("x", MAX_REQUEST_FIELDS),
            fields("y", MAX_REQUEST_FIELDS),
        );
        let more = fields("x", MAX_REQUEST_FIELDS + 1);
        let both = RequestParts {
            default_headers: &others,
            ..parts(&most, &check)
        };
        assert!(Request::prepare(both).is_ok());

        let error = Request::prepare(parts(&more, &check)).expect_err("too many");
        assert!(
            error.to_string().contains("10,001 header fields"),
            "{error}"
        );
    }

    #[test]
    fn an_invalid_regular_expression_is_explained_in_one_line() {
        for (pattern, reason) in [("(", "unclosed group"), ("a{9999999}", "size limit")] {
            let check = ResponseCheck {
                regex: Some(pattern.to_owned()),
                ..ResponseCheck::default()
            };
            let error = Request::prepare(parts(&[], &check)).expect_err(pattern);
            let message = error.to_string();
            assert!(message.contains(reason), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn a_request_that_cannot_be_represented_is_not_replaced_by_another() {
        let check = ResponseCheck::default();
        let mut request = Request::prepare(parts(&[], &check)).expect("a request");
        request.is_changed = true;
        for (path_bytes, is_possible) in [(65_534, true), (65_535, false)] {
            let path = format!("/{}", "a".repeat(path_bytes - 1));
            request.kept_bytes = format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").into_bytes();
            let message = request.message(false);
            assert_eq!(message.is_some(), is_possible, "{path_bytes}");
            assert!(message.is_none_or(|message| message.uri().path() == path));
        }
    }

    #[test]
    fn a_request_is_serialised_as_http() {
        let headers = vec![("X-A".into(), "b".into())];
        let check = ResponseCheck::default();
        let post = RequestParts {
            body_base64: Some("aGVsbG8="),
            ..parts(&headers, &check)
        };
        let request = Request::prepare(post).expect("request");
        let text = |is_last| {
            std::str::from_utf8(request.bytes(is_last))
                .expect("text")
                .to_ascii_lowercase()
        };
        let kept = text(false);

        assert!(kept.starts_with("post /a?b http/1.1\r\n"), "{kept}");
        assert!(kept.ends_with("\r\n\r\nhello"), "{kept}");

        for field in ["host: h:8000\r\n", "x-a: b\r\n", "content-length: 5\r\n"] {
            assert_eq!(kept.matches(field).count(), 1, "{field} in {kept}");
        }

        assert!(!kept.contains("connection:"));
        assert!(text(true).contains("connection: close\r\n"));
    }

    #[test]
    fn methods_that_expect_a_body_declare_an_empty_one() {
        let check = ResponseCheck::default();
        for (method, sends_length) in [
            ("POST", true),
            ("PUT", true),
            ("PATCH", true),
            ("GET", false),
            ("DELETE", false),
        ] {
            let parts = RequestParts {
                method,
                ..parts(&[], &check)
            };
            let request = Request::prepare(parts).expect("request");
            let text = std::str::from_utf8(request.bytes(false)).expect("text");
            assert_eq!(
                text.contains("content-length: 0\r\n"),
                sends_length,
                "{text}"
            );
        }
    }

    #[test]
    fn requests_with_connection_close_are_recognised() {
        let check = ResponseCheck::default();
        for (value, has_close) in [
            ("close", true),
            ("TE, Close", true),
            ("keep-alive", false),
            ("closed", false),
        ] {
            let headers = [("Connection".to_owned(), value.to_owned())];
            let request = Request::prepare(parts(&headers, &check)).expect("request");
            assert_eq!(request.has_close, has_close, "{value}");
            let last = std::str::from_utf8(request.bytes(true))
                .expect("text")
                .to_ascii_lowercase();
            let expected = if has_close { value } else { "close" }.to_ascii_lowercase();
            assert!(
                last.contains(&format!("connection: {expected}\r\n")),
                "{last}"
            );
            assert_eq!(last.matches("connection:").count(), 1);
        }
    }

    #[test]
    fn http_1_0_requests_ask_for_keep_alive() {
        let check = ResponseCheck::default();
        let text = |headers: &[(String, String)], is_last| {
            let parts = RequestParts {
                http_version: HttpVersion::Http1_0,
                ..parts(headers, &check)
            };
            let request = Request::prepare(parts).expect("request");
            String::from_utf8(request.bytes(is_last).to_vec()).expect("text")
        };
        let connection_field = |value: &str| [("Connection".to_owned(), value.to_owned())];

        let kept = text(&[], false);
        assert!(kept.starts_with("POST /a?b HTTP/1.0\r\n"), "{kept}");
        assert!(kept.contains("connection: Keep-Alive\r\n"), "{kept}");
        assert!(!text(&[], true).contains("connection:"));

        let keep_alive_text = text(&connection_field("keep-alive"), false);
        assert!(
            keep_alive_text.contains("connection: keep-alive\r\n"),
            "{keep_alive_text}"
        );
        assert!(!text(&connection_field("keep-alive"), true).contains("connection:"));
        for is_last in [false, true] {
            assert!(text(&connection_field("close"), is_last).contains("connection: close\r\n"));
        }
    }

    #[test]
    fn headers_that_contradict_the_body_are_refused() {
        let check = ResponseCheck::default();
        let of = |name: &str, value: &str, body_base64| {
            let headers = [(name.to_owned(), value.to_owned())];
            Request::prepare(RequestParts {
                body_base64,
                ..parts(&headers, &check)
            })
            .map(drop)
            .map_err(|error| error.to_string())
        };

        assert_eq!(of("content-length", "5", Some("aGVsbG8=")), Ok(()));
        assert_eq!(of("content-length", "0", None), Ok(()));

        for (name, value, body) in [
            ("Content-Length", "6", Some("aGVsbG8=")),
            ("Content-Length", "5", None),
            ("Content-Length", "x", None),
            ("Content-Length", "+5", Some("aGVsbG8=")),
            ("Transfer-Encoding", "chunked", Some("aGVsbG8=")),
        ] {
            let error = of(name, value, body).expect_err("refused");
            assert!(
                error.contains(name) && error.contains("omit the header"),
                "{error}"
            );
        }
    }

    #[test]
    fn request_headers_override_default_headers() {
        let headers = vec![("X-A".into(), "own".into())];
        let check = ResponseCheck::default();
        let defaults = [("x-a", "1"), ("x-b", "2"), ("x-b", "3")]
            .map(|(name, value)| (name.into(), value.into()));
        let parts = RequestParts {
            default_headers: &defaults,
            ..parts(&headers, &check)
        };
        let request = Request::prepare(parts).expect("request");
        let text = std::str::from_utf8(request.bytes(false)).expect("text");

        assert!(
            text.contains("x-a: own\r\n") && !text.contains("x-a: 1"),
            "{text}"
        );
        assert!(text.contains("x-b: 2\r\nx-b: 3\r\n"), "{text}");
    }

    #[test]
    fn invalid_checks_are_refused() {
        let refused = |check: ResponseCheck| {
            Request::prepare(parts(&[], &check))
                .expect_err("refused")
                .to_string()
        };
        let hash = Some("2cf24d".to_owned());
        let regex = Some("(".to_owned());

        assert!(
            refused(ResponseCheck {
                sha256: hash,
                ..ResponseCheck::default()
            })
            .contains("SHA-256")
        );
        assert!(
            refused(ResponseCheck {
                regex,
                ..ResponseCheck::default()
            })
            .contains("regular expression")
        );
        assert_eq!(
            hash_of(&"0aF1".repeat(16)).map(|hash| [hash[0], hash[1]]),
            Some([0x0a, 0xf1])
        );
        assert_eq!(hash_of(&"é".repeat(32)), None);
    }

    #[test]
    fn header_values_with_line_ends_are_refused() {
        let headers = vec![("X-A".into(), "b\r\nC: d".into())];
        let check = ResponseCheck::default();

        assert!(
            Request::prepare(parts(&headers, &check))
                .expect_err("newline")
                .to_string()
                .contains("X-A")
        );
    }
}
