//! One line of an access log: the common and the combined format, and JSON.

use http::uri::PathAndQuery;
use serde_json::{Map, Value};

use crate::plan::timestamp::{self, Timestamp};

/// Field names in JSON logs; the first one present is used.
const TIMES: [&str; 9] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "msec",
    "time_iso8601",
    "time_local",
    "start_time",
    "date",
];
const METHODS: [&str; 3] = ["method", "request_method", "verb"];
const PATHS: [&str; 4] = ["uri", "request_uri", "url", "path"];
const STATUSES: [&str; 3] = ["status", "status_code", "response_code"];

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub time: Timestamp,
    pub request: Option<LoggedRequest>,
    pub status: Option<u16>,
}

/// A logged request that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoggedRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
}

/// Whether a file with this first line is an access log.
pub(crate) fn is_access_log(line: &str) -> bool {
    line.starts_with('{') || (line.contains('[') && line.contains('"'))
}

/// Parses one line.
///
/// # Errors
/// A sentence that describes the error.
pub(crate) fn parse(line: &str) -> Result<LogEntry, String> {
    if line.starts_with('{') {
        return of_json(line);
    }
    of_common(line).ok_or_else(|| {
        "not a line of an access log in common or combined format, such as: 127.0.0.1 - - \
        [25/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5"
            .to_owned()
    })
}

fn of_common(line: &str) -> Option<LogEntry> {
    let timed = |(start, _)| {
        let (time, rest) = line[start + 1..].split_once(']')?;
        Some((timestamp::parse(time)?, rest))
    };
    let (time, rest) = line.match_indices('[').find_map(timed)?;
    let (_, quoted) = rest.split_once('"')?;
    let end = closing_quote(quoted)?;
    let status = quoted[end + 1..].split_whitespace().next();

    Some(LogEntry {
        time,
        request: request_line(&quoted[..end]),
        status: status.and_then(|text| text.parse().ok()),
    })
}

/// Apache escapes a quote inside the request with a backslash.
fn closing_quote(text: &str) -> Option<usize> {
    let is_escaped = |place: usize| {
        let slashes = text[..place]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\');
        slashes.count() % 2 == 1
    };
    text.match_indices('"')
        .map(|(place, _)| place)
        .find(|place| !is_escaped(*place))
}

fn of_json(line: &str) -> Result<LogEntry, String> {
    let fields: Map<String, Value> =
        serde_json::from_str(line).map_err(|_| "not a JSON object".to_owned())?;
    let time = text_of(&fields, &TIMES)
        .ok_or_else(|| format!("no timestamp; use one of the keys {}", TIMES.join(", ")))?;
    let time = timestamp::parse(&time).ok_or_else(|| {
        format!("{time:?} is not a timestamp; write it like 2026-11-25T10:00:00.123Z")
    })?;

    // Caddy logs the request as an object, nginx as the request line.
    let inner = fields.get("request").and_then(Value::as_object);
    let parts = inner.unwrap_or(&fields);
    let line = fields.get("request").and_then(Value::as_str);
    let method = text_of(parts, &METHODS).unwrap_or_else(|| "GET".to_owned());
    let path = text_of(parts, &PATHS);
    let request = match (line, path) {
        (Some(line), _) => request_line(line),
        (None, Some(path)) => requested(&method, &path),
        (None, None) => {
            return Err(format!(
                "no request; use one of the keys {} for its path",
                PATHS.join(", ")
            ));
        }
    };

    Ok(LogEntry {
        time,
        request,
        status: text_of(&fields, &STATUSES).and_then(|text| text.parse().ok()),
    })
}

/// The first of these fields that is a string or a number, as text.
fn text_of(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match fields.get(*name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Parses `GET /path HTTP/1.1`. Logs also contain malformed request lines of attacks and broken
/// clients.
fn request_line(line: &str) -> Option<LoggedRequest> {
    let (method, rest) = line.split_once(' ')?;
    let (target, version) = rest.split_once(' ')?;
    if !version.starts_with("HTTP/") {
        return None;
    }
    requested(method, target)
}

fn requested(method: &str, target: &str) -> Option<LoggedRequest> {
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let path = path_of(target)?;
    let is_path = path.starts_with('/')
        // A backslash starts an escape sequence of the log, such as \x22.
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && path.parse::<PathAndQuery>().is_ok();

    (is_method && method != "CONNECT" && is_path).then(|| LoggedRequest {
        method: method.to_owned(),
        path: path.to_owned(),
    })
}

/// Removes the scheme and the host of a request to a proxy.
fn path_of(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let (_, from_host) = target.split_once("://")?;
    Some(from_host.find('/').map_or("/", |start| &from_host[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_NS: u64 = 1_795_600_800_000_000_000;

    fn shape(line: &str) -> (u64, String, Option<u16>) {
        let entry = parse(line).expect(line);
        let request = entry.request.map_or_else(
            || "none".to_owned(),
            |request| format!("{} {}", request.method, request.path),
        );
        (entry.time.unix_ns - TEN_NS, request, entry.status)
    }

    #[test]
    fn every_format_gives_the_same_entry() {
        for line in [
            r#"127.0.0.1 - - [25/Nov/2026:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 302 5"#,
            r#"::1 - Ann B [25/Nov/2026:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 302 5 "-" "x [y] z""#,
            r#"h:80 [::1] - - [25/Nov/2026:10:00:00 +0000] "GET http://h/a?b=1 HTTP/1.1" 302 -"#,
            r#"{"time": "2026-11-25T10:00:00Z", "request": "GET /a?b=1 HTTP/1.1", "status": 302}"#,
            r#"{"msec": "1795600800", "request_method": "GET", "request_uri": "/a?b=1", "status": "302"}"#,
            r#"{"ts": 1795600800, "request": {"method": "GET", "uri": "/a?b=1"}, "status": 302}"#,
        ] {
            assert_eq!(
                shape(line),
                (0, "GET /a?b=1".to_owned(), Some(302)),
                "{line}"
            );
        }
    }

    #[test]
    fn requests_that_cannot_be_replayed_keep_their_time() {
        for request in [
            "-",
            "",
            r"\x16\x03\x01",
            "GET / FTP",
            "CONNECT h:443 HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET /a b HTTP/1.1",
            "get / HTTP/1.1",
            r#"GET /\" HTTP/1.1 \" x"#,
        ] {
            let line = format!(r#"h - - [25/Nov/2026:10:00:00 +0000] "{request}" 400 0"#);
            assert_eq!(shape(&line), (0, "none".to_owned(), Some(400)), "{line}");
        }
    }

    #[test]
    fn errors_name_what_a_line_lacks() {
        for (line, word) in [
            ("GET / HTTP/1.1", "common or combined"),
            (
                r#"h - - [yesterday] "GET / HTTP/1.1" 200 5"#,
                "common or combined",
            ),
            (r#"{"time": 1"#, "JSON"),
            (r#"{"uri": "/"}"#, "@timestamp"),
            (r#"{"time": "noon", "uri": "/"}"#, "noon"),
            (r#"{"time": 1795600800}"#, "request_uri"),
        ] {
            let message = parse(line).expect_err(line);
            assert!(message.contains(word), "{message}");
        }
    }
}
