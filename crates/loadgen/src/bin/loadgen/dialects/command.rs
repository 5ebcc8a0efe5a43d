//! A command line of loadgen, as it is run and as it is printed.

use std::fmt::Display;

use loadgen::plan::{RequestPlan, SessionPlan, StepPlan};

/// Header fields that contain secrets, which must not be printed.
const SECRET_FIELDS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
];
const HIDDEN: &str = "…";

/// Characters that need no quotes in a shell.
const PLAIN: &str = "-_./:=,@%+";

/// A sequence of equal requests on a dedicated connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub count: usize,
}

/// A word as it is run, and as it is printed if that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    shown: Option<String>,
}

/// A command line of `loadgen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadgenCommand {
    words: Vec<Word>,
    /// The sessions that it reads from standard input.
    calls: Option<Calls>,
    /// Differences from the other tool, one sentence each.
    pub notes: Vec<String>,
}

impl LoadgenCommand {
    /// A load of this URL, in which braces are no placeholders.
    pub fn load(url: &str) -> Self {
        Self {
            words: Vec::new(),
            calls: None,
            notes: Vec::new(),
        }
        .word(literal(url))
    }

    fn word(mut self, text: impl Into<String>) -> Self {
        self.words.push(Word {
            text: text.into(),
            shown: None,
        });
        self
    }

    /// A flag without a value.
    pub fn flag(self, name: &str) -> Self {
        self.word(name)
    }

    /// A flag without a value, if it applies.
    pub fn flag_if(self, applies: bool, name: &str) -> Self {
        if applies { self.flag(name) } else { self }
    }

    /// A flag with a value.
    pub fn option(self, name: &str, value: impl Display) -> Self {
        self.word(name).word(value.to_string())
    }

    /// A flag with a value, if there is one.
    pub fn option_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    /// A header field, in which braces are no placeholders.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self = self.word("-H");
        let is_secret = SECRET_FIELDS
            .iter()
            .any(|field| name.eq_ignore_ascii_case(field));
        self.words.push(Word {
            text: format!("{name}: {}", literal(value)),
            shown: is_secret.then(|| format!("{name}: {HIDDEN}")),
        });
        self
    }

    /// Header fields as the user wrote them. Lines that are no header field are passed on, so that
    /// loadgen refuses them as usual.
    pub fn header_lines<'a>(self, lines: impl IntoIterator<Item = &'a str>) -> Self {
        lines
            .into_iter()
            .fold(self, |command, line| match line.split_once(':') {
                Some((name, value)) => command.header(name.trim(), value.trim()),
                None => command.option("-H", line),
            })
    }

    /// Header fields that the other tool sends by default, unless the user gave others of the same
    /// name.
    pub fn default_headers(self, defaults: &[(&str, &str)], lines: &[String]) -> Self {
        let is_given = |name: &str| {
            let mut names = lines.iter().filter_map(|line| line.split_once(':'));
            names.any(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        };
        defaults
            .iter()
            .filter(|(name, _)| !is_given(name))
            .fold(self, |command, (name, value)| command.header(name, value))
    }

    /// Sessions of these calls, instead of single requests.
    pub fn sessions(mut self, calls: Calls) -> Self {
        self.calls = Some(Calls {
            path: literal(&calls.path),
            ..calls
        });
        self
    }

    /// A sentence about a difference from the other tool.
    pub fn note(mut self, sentence: impl Into<String>) -> Self {
        self.notes.push(sentence.into());
        self
    }

    /// The words to parse, with the program in front; the sessions are in [`Self::session_plans`].
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().map(|word| word.text.as_str());
        std::iter::once("loadgen").chain(words)
    }

    /// The sessions of the load; none for a load of single requests.
    pub fn session_plans(&self) -> Vec<SessionPlan> {
        let session = self.calls.iter().map(|calls| SessionPlan {
            name: "calls".to_owned(),
            weight: 1.0,
            steps: vec![calls.step(); calls.count],
        });
        session.collect()
    }

    /// The command line for a shell, in one line and without secrets.
    pub fn line(&self) -> String {
        let words = self
            .words
            .iter()
            .map(|word| quoted(word.shown.as_ref().unwrap_or(&word.text)));
        let command = std::iter::once("loadgen".to_owned()).chain(words);
        let line = command.collect::<Vec<_>>().join(" ");
        match &self.calls {
            None => line,
            Some(calls) => format!("{} | {line} --sessions -", calls.shell()),
        }
    }
}

impl Calls {
    fn step(&self) -> StepPlan {
        StepPlan {
            request: RequestPlan {
                name: None,
                method: self.method.clone(),
                url: self.path.clone(),
                headers: Vec::new(),
                body_base64: None,
                check: None,
            },
            think_time_ns: 0,
            captures: Vec::new(),
        }
    }

    /// A shell command that prints the sessions file.
    fn shell(&self) -> String {
        let request = quoted(&format!("{} {}", self.method, self.path));
        format!(
            "{{ echo '[calls]'; yes {request} | head -n {}; }}",
            self.count
        )
    }
}

/// The text with braces escaped, because the other tools have no placeholders.
fn literal(text: &str) -> String {
    text.replace("{{", "{{{{")
}

/// The word, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A duration in the largest unit that makes it a whole number.
pub fn duration_text(duration_ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units
        .into_iter()
        .find(|(unit_ns, _)| duration_ns.is_multiple_of(*unit_ns));
    let (unit_ns, unit) = whole.unwrap_or((1, "ns"));
    format!("{}{unit}", duration_ns / unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_commands_are_quoted_and_hide_secrets() {
        let command = LoadgenCommand::load("http://h/?a=1&b=2")
            .option("-d", duration_text(1_500_000_000))
            .header("X-It's", "a b")
            .header_lines(["authorization:Basic x", "Cookie : a=b", "nonsense"]);
        assert_eq!(
            command.line(),
            "loadgen 'http://h/?a=1&b=2' -d 1500ms -H 'X-It'\\''s: a b' -H 'authorization: …' \
            -H 'Cookie: …' -H nonsense"
        );
        let words: Vec<&str> = command.words().collect();
        assert_eq!(words[7], "authorization: Basic x");
    }

    #[test]
    fn braces_are_not_placeholders() {
        let calls = Calls {
            method: "GET".to_owned(),
            path: "/{{uuid}}".to_owned(),
            count: 1,
        };
        let command = LoadgenCommand::load("http://h/{{a}}")
            .header("A", "{{b}}")
            .sessions(calls);
        let line = command.line();
        for text in ["'http://h/{{{{a}}'", "'A: {{{{b}}'", "'GET /{{{{uuid}}'"] {
            assert!(line.contains(text), "{line}");
        }
        assert_eq!(
            command.session_plans()[0].steps[0].request.url,
            "/{{{{uuid}}"
        );
    }

    #[test]
    fn user_fields_override_default_fields() {
        let defaults = [("Accept", "*/*"), ("User-Agent", "x")];
        let given = ["accept: text/html".to_owned()];
        let command = LoadgenCommand::load("http://h/").default_headers(&defaults, &given);
        assert_eq!(command.line(), "loadgen http://h/ -H 'User-Agent: x'");
    }

    #[test]
    fn sessions_are_piped_into_the_command() {
        let calls = Calls {
            method: "GET".to_owned(),
            path: "/a?b".to_owned(),
            count: 3,
        };
        let command = LoadgenCommand::load("http://h/").sessions(calls);
        assert_eq!(
            command.line(),
            "{ echo '[calls]'; yes 'GET /a?b' | head -n 3; } | loadgen http://h/ --sessions -"
        );
        let plans = command.session_plans();
        assert_eq!((plans.len(), plans[0].steps.len()), (1, 3));
    }

    #[test]
    fn durations_are_whole_numbers_of_their_unit() {
        for (duration_ns, text) in [
            (0, "0s"),
            (30_000_000_000, "30s"),
            (2_500_000, "2500us"),
            (1_428_571_428, "1428571428ns"),
        ] {
            assert_eq!(duration_text(duration_ns), text);
        }
    }
}
