//! Files of targets and sessions: vegeta's HTTP format with options, vegeta's JSON lines, and lists
//! of URLs.
//!
//! For command lines; a load itself does not read files. `docs/requests.md` describes the format.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::duration::parse_duration_ns;
use crate::base::error::LoadError;
use crate::base::files::{MAX_BYTES, read_file};
use crate::plan::mix::default_weight;
use crate::plan::{
    CapturePlan, RequestPlan, ResponseCheck, SessionPlan, StepPlan, WeightedRequest,
};
use crate::plan::{default_method, json_target, placeholders, requests_text};

/// Reads a file of weighted requests; `-` is standard input. Paths of body files are relative to
/// it.
///
/// # Errors
/// [`LoadError::RequestsFile`] with the file, the line and the error.
pub fn read_targets(path: &Path) -> Result<Vec<WeightedRequest>, LoadError> {
    let parsed = parse_file(path, Kind::Targets)?;
    let weighted = |parsed: ParsedRequest| WeightedRequest {
        request: parsed.request,
        weight: parsed.weight,
    };
    Ok(parsed.targets.into_iter().map(weighted).collect())
}

/// Reads a file of sessions; `-` is standard input. Paths of body files are relative to it.
///
/// # Errors
/// [`LoadError::RequestsFile`] with the file, the line and the error.
pub fn read_sessions(path: &Path) -> Result<Vec<SessionPlan>, LoadError> {
    Ok(parse_file(path, Kind::Sessions)?.sessions)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Targets,
    Sessions,
}

/// A request in the file, with its options.
struct ParsedRequest {
    request: RequestPlan,
    weight: f64,
    think_time_ns: u64,
    captures: Vec<CapturePlan>,
}

fn parse_file(path: &Path, kind: Kind) -> Result<Parser<'_>, LoadError> {
    let shown = requests_text::shown(path);
    let refused = LoadError::RequestsFile;
    let text = requests_text::read(path).map_err(refused)?;
    if let Some((kind, import)) = requests_text::importable(&text) {
        return Err(refused(format!(
            "{shown} is {kind}; convert it to targets: wsgiload import {import}{shown} -o FILE"
        )));
    }
    let mut parser = Parser::new(kind, path.parent().unwrap_or(Path::new("")));
    for (line, number) in text.lines().zip(1..) {
        parser
            .take(line.trim())
            .map_err(|cause| refused(format!("{shown}:{number}: {}", shortened(&cause))))?;
    }
    parser.end_request();
    match kind {
        Kind::Targets if parser.targets.is_empty() => {
            Err(refused(format!("{shown} has no request")))
        }
        Kind::Sessions if parser.sessions.is_empty() => {
            Err(refused(format!("{shown} has no [session]")))
        }
        _ => Ok(parser),
    }
}

/// A cause may quote a line of any length.
fn shortened(cause: &str) -> String {
    let (head, tail) = (cause.chars().take(200), cause.chars().rev().take(200));
    if cause.chars().nth(500).is_none() {
        return cause.to_owned();
    }
    let tail: Vec<char> = tail.collect();
    head.chain(" … ".chars())
        .chain(tail.into_iter().rev())
        .collect()
}

struct Parser<'a> {
    kind: Kind,
    folder: &'a Path,
    /// The request that subsequent lines belong to.
    open: Option<ParsedRequest>,
    targets: Vec<ParsedRequest>,
    sessions: Vec<SessionPlan>,
}

impl<'a> Parser<'a> {
    fn new(kind: Kind, folder: &'a Path) -> Self {
        Self {
            kind,
            folder,
            open: None,
            targets: Vec::new(),
            sessions: Vec::new(),
        }
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            self.end_request();
            return Ok(());
        }
        if line.starts_with('#') {
            return Ok(());
        }
        if let Some(name) = line.strip_prefix('[') {
            return self.begin_session(name);
        }
        if let Some(option) = line.strip_prefix("--") {
            let (name, value) = option.split_once([' ', '=']).unwrap_or((option, ""));
            return self.take_option(name, value.trim());
        }
        if let Some(path) = line.strip_prefix('@') {
            return self.take_body_file(path.trim());
        }
        if line.starts_with('{') {
            return self.begin_request(json_target::request_of(line)?);
        }
        if is_path_or_url(line) {
            return self.begin_request(bare_request(default_method(), line));
        }
        match line.split_once(char::is_whitespace) {
            Some((method, url)) if !method.contains(':') => {
                self.begin_request(bare_request(method.to_owned(), url.trim()))
            }
            _ => self.take_header(line),
        }
    }

    fn begin_session(&mut self, rest: &str) -> Result<(), String> {
        self.end_request();
        if self.kind == Kind::Targets {
            return Err("[session] is only allowed in a --sessions file".to_owned());
        }
        let name = rest
            .strip_suffix(']')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| "a session must begin with [name]".to_owned())?;
        if self.sessions.iter().any(|session| session.name == name) {
            return Err(format!("two sessions are named {name:?}"));
        }
        let session = SessionPlan {
            name: name.to_owned(),
            weight: default_weight(),
            steps: Vec::new(),
        };
        self.sessions.push(session);
        Ok(())
    }

    fn begin_request(&mut self, request: RequestPlan) -> Result<(), String> {
        self.end_request();
        if self.kind == Kind::Sessions && self.sessions.is_empty() {
            return Err("a session must begin with [name], before its first request".to_owned());
        }
        let url = &request.url;
        if !is_path_or_url(url) {
            return Err(format!(
                "{url:?} is neither a path nor a URL; write for example: GET /index.html"
            ));
        }
        if url.contains(char::is_whitespace) {
            return Err(format!("{url:?} has a space; write it as %20"));
        }

        self.open = Some(ParsedRequest {
            request,
            weight: default_weight(),
            think_time_ns: 0,
            captures: Vec::new(),
        });
        Ok(())
    }

    fn end_request(&mut self) {
        let Some(mut parsed) = self.open.take() else {
            return;
        };
        self.find_tables(&mut parsed.request);
        match self.sessions.last_mut() {
            Some(session) => {
                let step = StepPlan {
                    request: parsed.request,
                    think_time_ns: parsed.think_time_ns,
                    captures: parsed.captures,
                };
                session.steps.push(step);
            }
            None => self.targets.push(parsed),
        }
    }

    /// Resolves the paths of CSV files relative to the requests file, like those of bodies.
    fn find_tables(&self, request: &mut RequestPlan) {
        let beside_file = |path: &str| {
            let path = self.folder.join(path);
            let path = std::path::absolute(&path).unwrap_or(path);
            path.to_string_lossy().into_owned()
        };
        let replace = |text: &mut String| {
            if placeholders::has_any(text) {
                *text = placeholders::with_csv_paths(text, beside_file);
            }
        };
        replace(&mut request.url);
        request
            .headers
            .iter_mut()
            .for_each(|(_, value)| replace(value));

        let bytes = request.body_base64.as_ref();
        let bytes = bytes.and_then(|body| STANDARD.decode(body).ok());
        if let Some(mut text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            replace(&mut text);
            request.body_base64 = Some(STANDARD.encode(text));
        }
    }

    fn request(&mut self) -> Result<&mut RequestPlan, String> {
        let open = self.open.as_mut().map(|parsed| &mut parsed.request);
        open.ok_or_else(|| {
            "this line belongs to no request; begin one above it, for example: GET /index.html"
                .to_owned()
        })
    }

    fn take_header(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line.split_once(':').ok_or_else(|| {
            format!(
                "{line:?} is not a request (METHOD URL), a header field (Name: value) or an \
            option"
            )
        })?;
        let field = (name.trim().to_owned(), value.trim().to_owned());
        self.request()?.headers.push(field);
        Ok(())
    }

    fn take_body_file(&mut self, path: &str) -> Result<(), String> {
        let body = self.read(path)?;
        self.take_body(&body)
    }

    fn take_body(&mut self, body: &[u8]) -> Result<(), String> {
        let request = self.request()?;
        if request.body_base64.is_some() {
            return Err("the request has two bodies".to_owned());
        }
        request.body_base64 = Some(STANDARD.encode(body));
        Ok(())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        read_file(&self.folder.join(path), MAX_BYTES)
    }

    fn take_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Err(format!("--{name} needs a value"));
        }
        match name {
            "weight" => self.take_weight(value),
            "think-time" => self.take_think_time(value),
            "capture" => self.take_capture(value),
            "name" => {
                self.request()?.name = Some(value.to_owned());
                Ok(())
            }
            "body" => self.take_body(value.as_bytes()),
            "body-file" => self.take_body_file(value),
            _ => self.take_expectation(name, value),
        }
    }

    fn take_weight(&mut self, value: &str) -> Result<(), String> {
        let weight: f64 = value
            .parse()
            .map_err(|_| format!("{value:?} is not a weight like 3 or 0.5"))?;
        if !(weight.is_finite() && weight > 0.0) {
            return Err(format!("a weight must be greater than 0, not {value}"));
        }
        match (self.kind, &mut self.open, self.sessions.last_mut()) {
            (Kind::Targets, Some(parsed), _) => parsed.weight = weight,
            (Kind::Sessions, None, Some(session)) if session.steps.is_empty() => {
                session.weight = weight
            }
            (Kind::Sessions, ..) => {
                return Err("--weight of a session must follow its [name] line".to_owned());
            }
            (Kind::Targets, ..) => self.request().map(drop)?,
        }
        Ok(())
    }

    fn take_think_time(&mut self, value: &str) -> Result<(), String> {
        if self.kind == Kind::Targets {
            return Err("--think-time is only allowed in a --sessions file".to_owned());
        }
        self.request()?;
        let think_time_ns = parse_duration_ns(value)?;
        if let Some(parsed) = &mut self.open {
            parsed.think_time_ns = think_time_ns;
        }
        Ok(())
    }

    fn take_capture(&mut self, value: &str) -> Result<(), String> {
        if self.kind == Kind::Targets {
            return Err("--capture is only allowed in a --sessions file".to_owned());
        }
        self.request()?;
        let capture = CapturePlan::parse(value)?;
        if let Some(parsed) = &mut self.open {
            parsed.captures.push(capture);
        }
        Ok(())
    }

    fn take_expectation(&mut self, name: &str, value: &str) -> Result<(), String> {
        let body = if name == "expect-body-file" {
            Some(STANDARD.encode(self.read(value)?))
        } else {
            None
        };
        let check = self
            .request()?
            .check
            .get_or_insert_with(ResponseCheck::default);
        match name {
            "expect-status" => check.statuses = statuses(value)?,
            "expect-body" => check.body_base64 = Some(STANDARD.encode(value)),
            "expect-body-file" => check.body_base64 = body,
            "expect-length" => {
                let length = value
                    .parse()
                    .map_err(|_| format!("{value:?} is not a number of bytes"))?;
                check.length = Some(length);
            }
            "expect-sha256" => check.sha256 = Some(value.to_owned()),
            "expect-regex" => check.regex = Some(value.to_owned()),
            _ => {
                return Err(format!("unknown option --{name}; see docs/requests.md"));
            }
        }
        Ok(())
    }
}

fn is_path_or_url(text: &str) -> bool {
    ["/", "http://", "https://"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn bare_request(method: String, url: &str) -> RequestPlan {
    RequestPlan {
        name: None,
        method,
        url: url.to_owned(),
        headers: Vec::new(),
        body_base64: None,
        check: None,
    }
}

fn statuses(text: &str) -> Result<Vec<u16>, String> {
    let one = |code: &str| {
        code.trim()
            .parse()
            .map_err(|_| format!("{code:?} is not a status code"))
    };
    text.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder, deleted on drop.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("loadgen-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).expect("a file");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn targets_have_headers_bodies_weights_and_expectations() {
        let folder = Folder::new("targets");
        folder.write("order.json", "{}");
        let path = folder.write(
            "targets",
            "# the shop\nGET /\n--weight 3\nGET http://h/b?c\nAccept: text/html\n\n\
             POST /orders\nContent-Type: application/json\n@order.json\n--name order\n--weight=0.5\n\
             --expect-status 201,202\n--expect-regex ^\\{\"id\": \n",
        );
        let targets = read_targets(&path).expect("targets");
        let weights: Vec<f64> = targets.iter().map(|target| target.weight).collect();
        assert_eq!(weights, [3.0, 1.0, 0.5]);
        let requests: Vec<&RequestPlan> = targets.iter().map(|target| &target.request).collect();
        assert_eq!(
            (requests[1].method.as_str(), requests[1].url.as_str()),
            ("GET", "http://h/b?c")
        );
        assert_eq!(
            requests[1].headers,
            [("Accept".to_owned(), "text/html".to_owned())]
        );
        assert_eq!(
            (&requests[0].check, &requests[0].body_base64),
            (&None, &None)
        );
        let order = requests[2];
        assert_eq!(
            (order.name.as_deref(), order.body_base64.as_deref()),
            (Some("order"), Some("e30="))
        );
        let check = ResponseCheck {
            statuses: vec![201, 202],
            regex: Some("^\\{\"id\":".to_owned()),
            ..ResponseCheck::default()
        };
        assert_eq!(order.check.as_ref(), Some(&check));
    }

    #[test]
    fn json_lines_url_lists_carriage_returns_and_a_byte_order_mark_are_read() {
        let folder = Folder::new("formats");
        let shape = |text: &str| {
            let targets = read_targets(&folder.write("formats", text)).expect(text);
            let one = |target: WeightedRequest| {
                let request = target.request;
                (
                    request.method,
                    request.url,
                    request.headers.len(),
                    target.weight,
                )
            };
            targets.into_iter().map(one).collect::<Vec<_>>()
        };
        let get = |url: &str| ("GET".to_owned(), url.to_owned(), 0, 1.0);

        assert_eq!(shape("\u{feff}GET http://h/a\n"), [get("http://h/a")]);
        assert_eq!(
            shape("http://h/a\nhttps://h/b?c=d\n/e\n"),
            [get("http://h/a"), get("https://h/b?c=d"), get("/e")]
        );
        assert_eq!(
            shape("/a\nX-One: 1\n--weight 2\n/b\n"),
            [("GET".to_owned(), "/a".to_owned(), 1, 2.0), get("/b")]
        );
        assert_eq!(
            shape("GET /a\r\nX-One: 1\r\n\r\nGET /b\r\n"),
            [("GET".to_owned(), "/a".to_owned(), 1, 1.0), get("/b")]
        );
        assert_eq!(
            shape("{\"method\":\"PUT\",\"url\":\"/a\",\"header\":{\"A\":[\"1\"]}}\n/b\n"),
            [("PUT".to_owned(), "/a".to_owned(), 1, 1.0), get("/b")]
        );
    }

    #[test]
    fn sessions_have_names_weights_and_think_times() {
        let folder = Folder::new("sessions");
        let path = folder.write(
            "sessions",
            "[browse]\n--weight 4\nGET /\n--think-time 1.5s\nGET /cart\n\n[buy]\nPOST /buy\n--body \
            a=b\n",
        );
        let sessions = read_sessions(&path).expect("sessions");
        let shape = |session: &SessionPlan| {
            let steps = session
                .steps
                .iter()
                .map(|step| (step.request.url.clone(), step.think_time_ns));
            (
                session.name.clone(),
                session.weight,
                steps.collect::<Vec<_>>(),
            )
        };
        let browse = (
            "browse".to_owned(),
            4.0,
            vec![("/".to_owned(), 1_500_000_000), ("/cart".to_owned(), 0)],
        );
        assert_eq!(shape(&sessions[0]), browse);
        assert_eq!(
            shape(&sessions[1]),
            ("buy".to_owned(), 1.0, vec![("/buy".to_owned(), 0)])
        );
        assert_eq!(
            sessions[1].steps[0].request.body_base64.as_deref(),
            Some("YT1i")
        );
    }

    #[test]
    fn steps_capture_values_from_their_responses() {
        let folder = Folder::new("captures");
        let path = folder.write(
            "captures",
            "[a]\nPOST /login\n--capture token=json:.token\n--capture=csrf=regex:csrf=(.*?);\n\
             GET /me\nAuthorization: Bearer {{token}}\n",
        );
        let sessions = read_sessions(&path).expect("sessions");
        let captures: Vec<Vec<&str>> = sessions[0]
            .steps
            .iter()
            .map(|step| step.captures.iter().map(|one| one.name.as_str()).collect())
            .collect();
        assert_eq!(captures, [vec!["token", "csrf"], vec![]]);
        assert_eq!(sessions[0].steps[0].captures[1].expression, "csrf=(.*?);");
    }

    #[test]
    fn paths_of_csv_files_are_relative_to_the_requests_file() {
        let folder = Folder::new("tables");
        let path = folder.write(
            "tables",
            "GET /{{csv:u.csv:id}}\nX-User: {{csv:/a/u.csv:id:random}}\n--body {{csv:u.csv:id}} {{{{\n",
        );
        let targets = read_targets(&path).expect("targets");
        let request = &targets[0].request;
        let beside = folder.0.join("u.csv");
        let beside = beside.to_str().expect("text");
        assert_eq!(request.url, format!("/{{{{csv:{beside}:id}}}}"));
        assert_eq!(request.headers[0].1, "{{csv:/a/u.csv:id:random}}");
        let body = format!("{{{{csv:{beside}:id}}}} {{{{{{{{");
        assert_eq!(request.body_base64, Some(STANDARD.encode(body)));
    }

    #[test]
    fn errors_give_the_line() {
        let folder = Folder::new("wrong");
        let targets = [
            ("GET /\n\nAccept: a\n", 3, "belongs to no request"),
            ("--weight 3\n", 1, "belongs to no request"),
            ("GET /\n--wieght 3\n", 2, "--wieght"),
            ("GET /\n--weight 0\n", 2, "greater than 0"),
            ("GET /\n--weight\n", 2, "needs a value"),
            ("GET index.html\n", 1, "neither a path nor a URL"),
            ("http://h/a b\n", 1, "write it as %20"),
            ("/a\n{\"method\": 1}\n", 2, "not a target in JSON"),
            ("GET /\nnonsense\n", 2, "is not a request"),
            ("GET /\n--expect-status ok\n", 2, "status code"),
            ("GET /\n--body a\n--body b\n", 3, "two bodies"),
            ("GET /\n@missing\n", 2, "cannot read"),
            ("GET /\n--think-time 1s\n", 2, "--sessions"),
            ("GET /\n--capture a=json:.b\n", 2, "--sessions"),
            ("[browse]\n", 1, "--sessions"),
        ];
        let sessions = [
            ("GET /\n", 1, "[name]"),
            ("[a]\nGET /\n--weight 3\n", 3, "must follow"),
            ("[a]\n[a]\n", 2, "two sessions"),
            ("[a\n", 1, "[name]"),
            ("[a]\nGET /\n--think-time 1 fortnight\n", 3, "fortnight"),
            ("[a]\nGET /\n--capture token\n", 3, "token=json:.token"),
            ("[a]\n--capture a=json:.b\n", 2, "belongs to no request"),
        ];
        let check = |(text, line, word): (&str, usize, &str), error: Option<LoadError>| {
            let message = error.expect(text).to_string();
            assert!(
                message.contains(&format!("wrong:{line}: ")) && message.contains(word),
                "{message}"
            );
        };
        for case in targets {
            check(case, read_targets(&folder.write("wrong", case.0)).err());
        }
        for case in sessions {
            check(case, read_sessions(&folder.write("wrong", case.0)).err());
        }
        let empty = folder.write("empty", "# nothing\n");
        assert!(
            read_targets(&empty)
                .expect_err("empty")
                .to_string()
                .contains("no request")
        );
        assert!(
            read_sessions(&empty)
                .expect_err("empty")
                .to_string()
                .contains("no [session]")
        );
    }
}
