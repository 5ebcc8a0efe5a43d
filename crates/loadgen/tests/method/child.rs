//! The generator as a separate process, so that it can be stopped, pinned, limited and measured.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Keeps a generator from taking real-time priority: it does not change a niceness that the user
/// chose.
pub const AS_SCHED_OTHER: [&str; 3] = ["nice", "-n", "1"];

/// A running `loadgen`; dropping it ends it.
pub struct Generator(Option<Child>);

impl Generator {
    /// Starts it with these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_loadgen")).args(arguments))
    }

    /// Starts it inside a cgroup, before its first instruction, as SCHED_OTHER, because a CPU quota
    /// does not apply to a real-time thread.
    pub fn start_in(procs_file: &str, arguments: &[&str]) -> Self {
        let enter = r#"echo $$ > "$0" && exec "$@""#;
        let program = env!("CARGO_BIN_EXE_loadgen");
        Self::start_as(
            Command::new("sh")
                .args(["-c", enter, procs_file])
                .args(AS_SCHED_OTHER)
                .arg(program)
                .args(arguments),
        )
    }

    /// Starts it through wrapper commands, such as `["chrt", "-r", "10"]`.
    pub fn start_by(commands: &[&str], arguments: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_loadgen");
        Self::start_as(
            Command::new(commands[0])
                .args(&commands[1..])
                .arg(program)
                .args(arguments),
        )
    }

    fn start_as(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the generator starts");
        Self(Some(child))
    }

    fn child(&self) -> &Child {
        self.0.as_ref().expect("it runs until its report is read")
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child()), signal).expect("it can be signalled");
    }

    /// Waits for its end and reads its report.
    pub fn report(mut self) -> Value {
        let child = self.0.take().expect("it runs until its report is read");
        let output = child.wait_with_output().expect("it ends");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "no report ({error}), {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stdout)
            )
        })
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
