//! `refsrv`: the reference server as a command.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use refsrv::spec::{self, SpecError, Stall};
use refsrv::{
    Config, Endpoint, FaultPlan, FaultRule, Framing, Lateness, ReferenceServer, Service, log,
};
use tokio::signal::unix::{SignalKind, signal};

/// Options that have no effect in fast mode.
const NOT_IN_FAST_MODE: [&str; 13] = [
    "hold",
    "seed",
    "servers",
    "stall",
    "faults",
    "framing",
    "no_stamps",
    "requests_per_connection",
    "no_announce_close",
    "cpu",
    "spin",
    "log",
    "log_queued",
];

/// Reference HTTP/1.1 server whose response times are known exactly.
///
/// Prints `listening on ADDRESS`, then serves until SIGTERM, SIGINT, or the end of --for.
/// Durations are written like 1.5s, 20ms, 60us, 100ns, 2min or 0.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Listen address: a loopback address and port (0: any free port), or unix:/path
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: Endpoint,
    /// Service time: 2ms, exp:2ms (mean), bimodal:1ms,50ms,200 (fast, slow, one slow request in
    /// 200), list:1ms,2ms, lognormal:1ms,1.5 (median, sigma), pareto:1.5,1ms,60s (alpha, minimum,
    /// maximum)
    #[arg(long, default_value = "0")]
    hold: String,
    /// Random seed for service times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of requests served at once; others wait in a queue [default: unlimited]
    #[arg(long)]
    servers: Option<usize>,
    /// Stall service periodically: 1s/10s (stall, period) or 1s/10s+5s (first stall after 5 s).
    /// Requires a constant --hold
    #[arg(long, value_parser = spec::parse_stall)]
    stall: Option<Stall>,
    /// Inject a fault (repeatable). FAULT: a status, reset, reset-mid-body, truncate, never,
    /// hold:5s, wrong-body, stale-close. WHEN: every:100, every:100+7, or the numbers of requests
    /// (from 0), such as 3,9,27
    #[arg(long = "fault", value_name = "FAULT@WHEN", value_parser = spec::parse_fault_rule)]
    faults: Vec<FaultRule>,
    /// Body of each normal response
    #[arg(long, default_value = "hello", conflicts_with = "body_bytes")]
    body: String,
    /// Length of the body of each normal response, in bytes, instead of --body
    #[arg(long)]
    body_bytes: Option<usize>,
    /// Body framing: content-length, chunked or until-close
    #[arg(long, default_value = "content-length", value_parser = spec::parse_framing)]
    framing: Framing,
    /// Omit the header fields X-Id, X-Arrive, X-Hold and X-Write
    #[arg(long)]
    no_stamps: bool,
    /// Close each connection after this many responses [default: never]
    #[arg(long, value_name = "K")]
    requests_per_connection: Option<u64>,
    /// Omit `Connection: close` from the last response on a connection
    #[arg(long)]
    no_announce_close: bool,
    /// CPU time to use before each response, on the server's only thread
    #[arg(long, default_value = "0", value_parser = spec::parse_duration_ns)]
    cpu: u64,
    /// Busy-wait time before a response is due (0: only sleep)
    #[arg(long, default_value = "60us", value_parser = spec::parse_duration_ns)]
    spin: u64,
    /// Send a fixed response to each blank line, without delays, faults, timestamps or log
    #[arg(long, conflicts_with_all = NOT_IN_FAST_MODE)]
    fast: bool,
    /// Stop after this time [default: never]
    #[arg(long = "for", value_name = "DURATION", value_parser = spec::parse_duration_ns)]
    run_for: Option<u64>,
    /// Write one CSV line per request to this file at the end, and print the lateness of the
    /// responses on standard error
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Also log the kernel's receive timestamp of each request. Requires --log and TCP
    #[arg(long, requires = "log")]
    log_queued: bool,
}

/// Exit code for a usage or configuration error, as clap's own.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match config(&arguments) {
        Ok(config) => config,
        Err(message) => return fail(USAGE, &message),
    };

    match serve(config, arguments.run_for, arguments.log.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Start(error @ refsrv::StartError::Io { .. })) => fail(1, &error.to_string()),
        Err(Failure::Start(error)) => fail(USAGE, &error.to_string()),
        Err(Failure::Io(error)) => fail(1, &error.to_string()),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    // Nothing is left to do if stderr is closed as well.
    let _ = writeln!(io::stderr(), "refsrv: {message}");
    ExitCode::from(code)
}

fn config(arguments: &Arguments) -> Result<Config, String> {
    let body = match arguments.body_bytes {
        Some(count) => vec![b'x'; count],
        None => arguments.body.clone().into_bytes(),
    };
    Ok(Config {
        listen: arguments.listen.clone(),
        service: service(arguments)?,
        servers: arguments.servers,
        faults: FaultPlan {
            rules: arguments.faults.clone(),
        },
        body,
        framing: arguments.framing,
        stamp_headers: !arguments.no_stamps,
        requests_per_connection: arguments.requests_per_connection,
        announce_close: !arguments.no_announce_close,
        cpu_ns: arguments.cpu,
        spin_ns: arguments.spin,
        log: arguments.log.is_some(),
        log_queued: arguments.log_queued,
        fast: arguments.fast,
    })
}

fn service(arguments: &Arguments) -> Result<Service, String> {
    let service = spec::parse_service(&arguments.hold, arguments.seed)
        .map_err(|error: SpecError| format!("--hold: {error}"))?;
    let Some(Stall {
        stall_ns,
        period_ns,
        offset_ns,
    }) = arguments.stall
    else {
        return Ok(service);
    };
    let Service::Constant { hold_ns: base_ns } = service else {
        return Err("--stall requires a constant --hold, such as 1ms".to_owned());
    };

    Ok(Service::PeriodicStall {
        base_ns,
        period_ns,
        stall_ns,
        offset_ns,
    })
}

enum Failure {
    Start(refsrv::StartError),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn serve(config: Config, run_for: Option<u64>, log_file: Option<&Path>) -> Result<(), Failure> {
    // Opened first: a log that cannot be written should not cost a run.
    let log_target = log_file.map(File::create).transpose()?;
    let mut server = ReferenceServer::start(config).map_err(Failure::Start)?;
    wait_for_end(run_for, || {
        let mut stdout = io::stdout();
        writeln!(stdout, "listening on {}", server.endpoint())?;
        stdout.flush()
    })?;
    server.stop();

    if let Some(target) = log_target {
        let entries = server.log();
        log::write_csv(BufWriter::new(target), &entries)?;
        if let Some(lateness) = Lateness::of(&entries) {
            writeln!(io::stderr(), "refsrv: {lateness}")?;
        }
    }

    Ok(())
}

/// Calls `ready` once the signals are caught, then waits for one of them or until the time is up.
fn wait_for_end(run_for: Option<u64>, ready: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        ready()?;
        let time_up = async {
            match run_for {
                Some(ns) => tokio::time::sleep(Duration::from_nanos(ns)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = time_up => {}
        }
        Ok(())
    })
}
