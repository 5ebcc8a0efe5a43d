//! The command-line interface of the binary.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use common::Client;
use rustix::process::{Pid, Signal, kill_process};

struct Running {
    child: Child,
    addr: SocketAddr,
}

fn refsrv(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refsrv"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(arguments: &[&str]) -> Running {
    let mut child = refsrv(arguments).spawn().expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let addr = line
        .strip_prefix("listening on ")
        .and_then(|addr| addr.trim().parse().ok());

    Running {
        child,
        addr: addr.unwrap_or_else(|| panic!("no address in {line:?}")),
    }
}

/// The path of a temporary file, which is removed when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("refsrv-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn it_serves_until_a_signal_and_then_writes_its_log() {
    for signal in [Signal::TERM, Signal::INT] {
        let log = Scratch::new(&format!("{signal:?}.csv"));
        let path = log.0.to_str().expect("UTF-8").to_owned();
        let arguments = [
            "--hold",
            "1ms",
            "--servers",
            "1",
            "--fault",
            "503@every:2",
            "--log",
            &path,
        ];
        let mut running = start(&arguments);
        let mut client = Client::connect(running.addr);
        let statuses: Vec<_> = (0..4)
            .map(|_| client.get().expect("a response").status)
            .collect();
        assert_eq!(statuses, [200, 503, 200, 503]);

        kill_process(Pid::from_child(&running.child), signal).expect("it can be signalled");
        assert!(running.child.wait().expect("it ends").success());

        let csv = std::fs::read_to_string(&log.0).expect("a log");
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "id,arrive_ns,hold_ns,finish_ns,write_ns,outcome,queued_ns"
        );
        assert_eq!(lines.len(), 5);
        assert!(lines[1].starts_with("0,") && lines[1].ends_with(",answered,"));
        assert!(lines[2].starts_with("1,") && lines[2].ends_with(",status-503,"));
    }
}

#[test]
fn it_ends_by_itself_when_the_time_is_up() {
    let mut running = start(&["--for", "50ms", "--fast"]);
    assert!(running.child.wait().expect("it ends").success());
}

#[test]
fn usage_errors_exit_with_2_and_list_valid_forms() {
    let cases: [(&[&str], &str); 9] = [
        (&["--listen", "0.0.0.0:0"], "not a loopback address"),
        (&["--hold", "fast"], "a hold such as 2ms"),
        (
            &["--hold", "exp:1ms", "--stall", "1s/10s"],
            "constant --hold",
        ),
        (&["--fault", "oops@1"], "FAULT@WHEN"),
        (&["--servers", "0"], "servers must be at least 1"),
        (&["--fast", "--hold", "1ms"], "cannot be used with"),
        (&["--fast", "--framing", "chunked"], "cannot be used with"),
        (
            &["--fast", "--requests-per-connection", "1"],
            "cannot be used with",
        ),
        (&["--log-queued"], "--log <FILE>"),
    ];
    for (arguments, expected) in cases {
        let mut child = refsrv(arguments).spawn().expect("the binary starts");
        let mut message = String::new();
        child
            .stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut message)
            .expect("text");

        assert_eq!(
            child.wait().expect("it ends").code(),
            Some(2),
            "{arguments:?}"
        );
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
