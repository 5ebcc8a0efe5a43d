//! The generator as a separate process, so that it can be stopped, pinned, limited and measured.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Keeps the generator at SCHED_OTHER: it takes no real-time priority if the user set a niceness.
pub const AS_SCHED_OTHER: [&str; 3] = ["nice", "-n", "1"];

/// A running `loadgen`; killed when dropped.
pub struct Generator(Option<Child>);

impl Generator {
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_loadgen")).args(arguments))
    }

    /// Starts it inside a cgroup, as SCHED_OTHER, because a CPU quota does not apply to real-time
    /// threads.
    pub fn start_in_cgroup(procs_file: &str, arguments: &[&str]) -> Self {
        let enter = r#"echo $$ > "$0" && exec "$@""#;
        let program = env!("CARGO_BIN_EXE_loadgen");
        Self::spawn(
            Command::new("sh")
                .args(["-c", enter, procs_file])
                .args(AS_SCHED_OTHER)
                .arg(program)
                .args(arguments),
        )
    }

    /// Starts it through wrapper commands, such as `["chrt", "--rr", "1"]`.
    pub fn start_wrapped(commands: &[&str], arguments: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_loadgen");
        Self::spawn(
            Command::new(commands[0])
                .args(&commands[1..])
                .arg(program)
                .args(arguments),
        )
    }

    fn spawn(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the generator starts");
        Self(Some(child))
    }

    fn child(&self) -> &Child {
        self.0.as_ref().expect("the report was not read yet")
    }

    pub fn id(&self) -> u32 {
        self.child().id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child()), signal)
            .expect("the generator can be signalled");
    }

    /// Waits until it ends and reads its report.
    pub fn report(self) -> Value {
        self.end().1
    }

    /// Waits until it ends; returns its exit code and its report.
    pub fn end(mut self) -> (Option<i32>, Value) {
        let child = self.0.take().expect("the report was not read yet");
        let output = child.wait_with_output().expect("the generator ends");
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "no report ({error}), {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stdout)
            )
        });
        (output.status.code(), report)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
