//! The generator processes of a load, and what they and the process that runs the load tell each
//! other.
//!
//! The latter starts the generators, agrees with them on a start, and adds their parts. Messages
//! are lines of JSON on the standard streams of each generator, which need not be on the same host:
//!
//! 1. in: an [`Order`], the plan and the generator's portion of it;
//! 2. out: [`Answer::Armed`], once it is prepared;
//! 3. in: a [`StartAt`], for all generators at the same time;
//! 4. out: [`Answer::Ended`], with its part.
//!
//! Another line, or the end of its input, stops a generator; the end of the process that started it
//! kills it. So none outlives the process that runs the load.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::base::clock::{NS_PER_S, monotonic_ns};
use crate::base::error::LoadError;
use crate::base::stop::StopToken;
use crate::engine::part::Part;
use crate::engine::run::{PreparedLoad, prepare};
use crate::net::socket::Endpoint;
use crate::plan::portion::Portion;
use crate::plan::{LoadModel, LoadPlan};
use crate::record::progress::ProgressFile;
use crate::report::BuildInfo;

/// How often the process that runs the load looks for a stop.
const POLL: Duration = Duration::from_millis(50);
/// How long the generators may prepare themselves, and how long they may report after the load.
const GRACE_S: u64 = 30;
/// The same after a stop.
const STOP_GRACE_NS: u64 = 5 * NS_PER_S;
/// Answers may be waiting when the time is over, because this process was suspended.
const MAX_LATE_POLLS: u32 = 20;

/// What a generator has to run.
#[derive(Serialize, Deserialize)]
struct Order {
    plan: LoadPlan,
    portion: Portion,
    /// The file for its progress.
    progress: Option<PathBuf>,
}

/// When the load starts, on the generator's `CLOCK_MONOTONIC`.
#[derive(Serialize, Deserialize)]
struct StartAt {
    start_ns: u64,
}

/// What a generator answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    Armed(Identity),
    Ended(Part),
    Failed(String),
}

/// What must be the same for all parts that are added.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    build: String,
    plan_sha256: String,
}

impl Identity {
    fn of(plan: &LoadPlan) -> io::Result<Self> {
        let BuildInfo {
            profile,
            target_cpu,
            git_sha,
        } = BuildInfo::default();
        let version = env!("CARGO_PKG_VERSION");
        let commit = git_sha.unwrap_or("no commit");
        Ok(Self {
            build: format!("{version} ({profile}, {target_cpu}, {commit})"),
            plan_sha256: format!("{:x}", Sha256::digest(serde_json::to_vec(plan)?)),
        })
    }

    /// # Errors
    /// A sentence that continues with the difference.
    fn require_same(&self, other: &Self) -> Result<(), String> {
        if self.build != other.build {
            return Err(format!(
                "is wsgiload {}, not {}; install the same version",
                other.build, self.build
            ));
        }
        if self.plan_sha256 != other.plan_sha256 {
            return Err("prepared another plan; please report this".to_owned());
        }
        Ok(())
    }
}

/// A generator that ended without its part, or did not end.
pub(crate) struct Lost {
    pub text: String,
    pub at_ns: u64,
}

/// The generators of a load, ready to start.
pub(crate) struct Generators {
    all: Vec<Generator>,
    answers: Receiver<(usize, Option<Answer>)>,
    /// A generator that has not ended this long after the start does not respond.
    longest_ns: u64,
}

impl Generators {
    /// Starts and arms the generators; `None` for a load that this process runs itself.
    pub fn of(load: &PreparedLoad) -> Result<Option<Self>, LoadError> {
        if load.plan.processes == 1 {
            return Ok(None);
        }

        let plan = resolved(load);
        let expected = Identity::of(&plan).map_err(|source| system("write a plan", source))?;
        let (sender, answers) = mpsc::channel();
        let mut generators = Self {
            all: Vec::new(),
            answers,
            longest_ns: plan.longest_phases().load_ns() + plan.drain_ns() + GRACE_S * NS_PER_S,
        };
        for index in 0..plan.processes {
            let order = Order {
                plan: plan.clone(),
                portion: Portion {
                    index,
                    count: plan.processes,
                },
                progress: load.progress.as_ref().map(ProgressFile::path_for_others),
            };
            let generator = Generator::start(&load.generator, &order, sender.clone())?;
            generators.all.push(generator);
        }
        generators.wait_until_armed(&expected)?;

        Ok(Some(generators))
    }

    fn wait_until_armed(&mut self, expected: &Identity) -> Result<(), LoadError> {
        for _ in 0..self.all.len() {
            let answer = self.answers.recv_timeout(Duration::from_secs(GRACE_S));
            let (index, answer) = answer.map_err(|_| {
                LoadError::Generator(format!("no generator got ready within {GRACE_S} s"))
            })?;
            let problem = match answer {
                Some(Answer::Armed(identity)) => expected.require_same(&identity).err(),
                Some(Answer::Failed(text)) => Some(format!("failed: {text}")),
                Some(Answer::Ended(_)) | None => Some(format!("ended ({})", self.all[index].end())),
            };
            if let Some(problem) = problem {
                return Err(self.error(index, &problem));
            }
        }
        Ok(())
    }

    /// Starts the load at this time; returns the sum of all parts. If a generator is lost, the
    /// others stop at once.
    pub fn run(
        mut self,
        start_ns: u64,
        stop: &StopToken,
    ) -> Result<(Part, Option<Lost>), LoadError> {
        for generator in &mut self.all {
            generator.tell(&StartAt { start_ns });
        }
        let mut until_ns = start_ns + self.longest_ns;
        let (mut parts, mut lost) = (Vec::new(), None);
        let (mut running, mut is_stopping) = (self.all.len(), false);
        let mut late_polls = 0;

        while running > 0 {
            if !is_stopping && (stop.is_stopped() || lost.is_some()) {
                is_stopping = true;
                until_ns = until_ns.min(monotonic_ns() + STOP_GRACE_NS);
                self.all.iter_mut().for_each(Generator::stop);
            }
            match self.answers.recv_timeout(POLL) {
                Ok((_, Some(Answer::Ended(part)))) => parts.push(part),
                Ok((index, Some(Answer::Failed(text)))) => {
                    return Err(self.error(index, &format!("failed: {text}")));
                }
                Ok((index, _)) => {
                    let end = self.all[index].end();
                    lost.get_or_insert(self.lost(index, start_ns, &end));
                }
                Err(_) => {
                    late_polls += u32::from(monotonic_ns() >= until_ns);
                    if late_polls <= MAX_LATE_POLLS {
                        continue;
                    }
                    lost.get_or_insert(self.unresponsive(running, start_ns));
                    break;
                }
            }
            running -= 1;
        }

        let part = parts.into_iter().reduce(|mut all: Part, part| {
            all.add(part);
            all
        });
        let nothing = || {
            let text = lost.as_ref().map_or("", |lost: &Lost| lost.text.as_str());
            LoadError::Generator(format!("no generator is left: {text}"))
        };
        Ok((part.ok_or_else(nothing)?, lost))
    }

    fn lost(&self, index: usize, start_ns: u64, end: &str) -> Lost {
        let at_ns = monotonic_ns();
        let after_s = at_ns.saturating_sub(start_ns) as f64 / NS_PER_S as f64;
        let name = self.name(index);
        Lost {
            text: format!("{name} was lost after {after_s:.1} s ({end})"),
            at_ns,
        }
    }

    fn unresponsive(&self, count: usize, start_ns: u64) -> Lost {
        let at_ns = start_ns + self.longest_ns;
        let all = self.all.len();
        Lost {
            text: format!("{count} of {all} generators did not respond at the end of the load"),
            at_ns: at_ns.min(monotonic_ns()),
        }
    }

    fn error(&self, index: usize, problem: &str) -> LoadError {
        LoadError::Generator(format!("{} {problem}", self.name(index)))
    }

    fn name(&self, index: usize) -> String {
        format!("generator {} of {}", index + 1, self.all.len())
    }
}

/// The plan with everything decided that must be the same for all generators.
fn resolved(load: &PreparedLoad) -> LoadPlan {
    let mut plan = load.plan.clone();
    if let Endpoint::Tcp(server) = load.target.route.endpoint {
        plan.connect_to = Some(server.to_string());
    }
    if let Some(sources) = &load.target.route.sources {
        plan.source_addresses = sources.texts();
    }
    if let LoadModel::Open(open) = &mut plan.load {
        open.max_connections = Some(load.max_connections);
    }
    plan
}

/// One generator process, killed when dropped.
struct Generator {
    process: Child,
    input: Option<ChildStdin>,
}

impl Generator {
    /// Starts it, and a thread that forwards its answers with its index; the last one is `None` if
    /// it is lost.
    fn start(
        command: &[OsString],
        order: &Order,
        answers: Sender<(usize, Option<Answer>)>,
    ) -> Result<Self, LoadError> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            LoadError::Plan("processes: this program cannot start generators".to_owned())
        })?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C concerns only the process that runs the load.
            .process_group(0)
            .spawn()
            .map_err(|source| system("start a generator process", source))?;
        let output = process.stdout.take().map(BufReader::new);
        let mut generator = Self {
            input: process.stdin.take(),
            process,
        };
        generator.tell(order);
        let index = order.portion.index;
        thread::Builder::new()
            .name("loadgen-answers".to_owned())
            .spawn(move || forward(output, |answer| answers.send((index, answer)).is_ok()))
            .map_err(|source| system("start a thread", source))?;

        Ok(generator)
    }

    /// If it has ended, this fails, and the end of its output says so.
    fn tell(&mut self, message: &impl Serialize) {
        if let Some(input) = &mut self.input {
            let _ = write_line(input, message);
        }
    }

    /// By a message, because a process that was forked from this one keeps the input open.
    fn stop(&mut self) {
        self.tell(&"stop");
        self.input = None;
    }

    /// How a generator ended whose output has ended.
    fn end(&mut self) -> String {
        let _ = self.process.kill();
        self.process
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Forwards all answers up to the last one, which is `None` at the end of the output.
fn forward(output: Option<impl BufRead>, mut send: impl FnMut(Option<Answer>) -> bool) {
    let Some(mut output) = output else {
        return;
    };
    loop {
        let answer = read_line(&mut output).ok().flatten();
        let is_last = !matches!(answer, Some(Answer::Armed(_)));
        if !send(answer) || is_last {
            return;
        }
    }
}

/// Runs one portion of a load as one of its generators: reads the order from `input`, writes
/// answers to `output`, and stops at the end of `input`. The end of its parent kills this process.
///
/// # Errors
/// [`LoadError::System`] if the process that runs the load no longer listens.
pub fn run_generator(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), LoadError> {
    // Without it, the end of the input suffices unless another process keeps the input open. The
    // kernel means the thread that started this process, which also waits for its part.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let answer = generate(input, &mut output).unwrap_or_else(|error| {
        let text = error.to_string();
        Some(Answer::Failed(text))
    });
    answer.map_or(Ok(()), |answer| {
        write_line(&mut output, &answer).map_err(|source| system("report its part", source))
    })
}

/// The last answer; `None` if the load was not started.
fn generate(
    mut input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> Result<Option<Answer>, LoadError> {
    let broken = |source| system("talk to the process that runs the load", source);
    let Some(order) = read_line::<Order>(&mut input).map_err(broken)? else {
        return Ok(None);
    };
    // A load does not need its progress.
    let progress = order.progress.and_then(|path| ProgressFile::at(path).ok());
    let mut load = prepare(&order.plan)?.showing(progress);
    if let Some(sources) = &mut load.target.route.sources {
        sources.share(order.portion);
    }
    let identity = Identity::of(&order.plan).map_err(broken)?;
    write_line(output, &Answer::Armed(identity)).map_err(broken)?;
    let Some(StartAt { start_ns }) = read_line(&mut input).map_err(broken)? else {
        return Ok(None);
    };

    let stop = StopToken::new();
    let at_end = stop.clone();
    thread::Builder::new()
        .name("loadgen-input".to_owned())
        .spawn(move || {
            let _ = input.skip_until(b'\n');
            at_end.stop();
        })
        .map_err(|source| system("start a thread", source))?;

    let part = Part::run(&load, order.portion, (start_ns, None), &stop)?;
    Ok(Some(Answer::Ended(part)))
}

fn system(action: &'static str, source: io::Error) -> LoadError {
    LoadError::System { action, source }
}

fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// The next message; `None` at the end of the input.
fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan {
            processes: 2,
            ..LoadPlan::closed("http://127.0.0.1:9/", 2, NS_PER_S)
        }
    }

    /// The answers of a generator to these messages.
    fn answers(messages: &[&str]) -> Vec<Answer> {
        let input = io::Cursor::new(messages.join("\n").into_bytes());
        let mut output = Vec::new();
        run_generator(input, &mut output).expect("it can answer");
        let lines = output.split_inclusive(|byte| *byte == b'\n');
        lines
            .map(|line| serde_json::from_slice(line).expect("an answer"))
            .collect()
    }

    fn order(plan: LoadPlan) -> String {
        let order = Order {
            plan,
            portion: Portion { index: 1, count: 2 },
            progress: None,
        };
        serde_json::to_string(&order).expect("JSON")
    }

    #[test]
    fn a_generator_sends_nothing_before_it_is_told_when() {
        let said = answers(&[&order(plan())]);
        assert!(matches!(&said[..], [Answer::Armed(_)]));

        let expected = Identity::of(&plan()).expect("JSON");
        let [Answer::Armed(identity)] = &said[..] else {
            panic!("armed")
        };
        expected.require_same(identity).expect("the same plan");
    }

    #[test]
    fn a_line_stops_a_generator_whose_input_stays_open() {
        let (input, mut messages) = io::pipe().expect("a pipe");
        let plan = LoadPlan {
            processes: 2,
            ..LoadPlan::closed("http://127.0.0.1:9/", 2, 60 * NS_PER_S)
        };
        let start_ns = monotonic_ns();
        let texts = [
            order(plan),
            format!("{{\"start_ns\":{start_ns}}}"),
            "\"stop\"".to_owned(),
        ];
        writeln!(messages, "{}", texts.join("\n")).expect("it listens");
        let mut output = Vec::new();
        run_generator(BufReader::new(input), &mut output).expect("it can answer");
        assert!(String::from_utf8_lossy(&output).contains("Ended"));
        assert!(monotonic_ns() - start_ns < 30 * NS_PER_S);
    }

    #[test]
    fn a_generator_says_why_it_cannot_run_a_plan() {
        let impossible = LoadPlan {
            processes: 3,
            ..plan()
        };
        for (message, cause) in [
            (order(impossible), "connections must be at least"),
            ("{}".to_owned(), "missing field"),
        ] {
            let said = answers(&[&message]);
            let [Answer::Failed(text)] = &said[..] else {
                panic!("{cause}")
            };
            assert!(text.contains(cause), "{text}");
        }
    }

    #[test]
    fn parts_of_other_plans_and_versions_are_refused() {
        let mine = Identity::of(&plan()).expect("JSON");
        let other_plan = Identity::of(&LoadPlan { seed: 8, ..plan() }).expect("JSON");
        let other_build = Identity {
            build: "0.0.9".to_owned(),
            plan_sha256: mine.plan_sha256.clone(),
        };
        for (other, word) in [(other_plan, "another plan"), (other_build, "0.0.9")] {
            let difference = mine.require_same(&other).expect_err(word);
            assert!(difference.contains(word), "{difference}");
        }
    }
}
