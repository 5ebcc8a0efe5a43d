"""The options of a sweep as users give them: frozen objects, named like the flags of the command
line, durations in seconds.

Their docstrings are the one place that says what an option means: the command line takes its help
from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wsgiload.catalogue.contract import Interface, Profile
from wsgiload.experiment.procedure import Method
from wsgiload.loads.options import Keepalive

# The values of each factor.
Grid = Mapping[str, Sequence[str | int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """Your own server and its settings.

    Args:
        command: The command that starts the server; it may contain the placeholders of
            ``ServerOptions.command``.
        env: Environment variables of this server and of its setup and teardown. They take
            precedence over those of all servers.
        cwd: Directory in which it is started, relative to ``ServerOptions.chdir``.
        setup: Commands to run before each start of the server, such as migrations.
        teardown: Commands to run each time the server has stopped.
        ready_path: Path that responds with a status from 200 to 299 once the server is ready.
            Default: the first request of the load must get its correct response.
        stop_signal: Signal that stops the server.
        keepalive: Connection reuse: on, off, or the number of requests per connection. Default: as
            for all servers.
    """

    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "."
    setup: str | Sequence[str] = ()
    teardown: str | Sequence[str] = ()
    ready_path: str | None = None
    stop_signal: str = "SIGTERM"
    keepalive: Keepalive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingService:
    """A service that the measured servers need, such as a database. It is started before the first
    server, stopped after the last, and runs outside their limits.

    Args:
        command: The command that starts the service in the foreground.
        attach: Instead of a command, the PID or cgroup of a service that is already running.
        env: Environment variables for its commands.
        cwd: Directory in which it is started, relative to ``ServerOptions.chdir``.
        ready: Port on which the service listens once it is ready, or a command that exits with 0
            once it is ready. Default: the service counts as ready immediately.
        stop_signal: Signal that stops it.
    """

    command: str | None = None
    attach: int | str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "."
    ready: int | str | None = None
    stop_signal: str = "SIGTERM"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How servers are set up. Durations are in seconds.

    Args:
        profile: Server settings: tuned (equivalent for all servers: processes according to the CPU
            limit, the same backlog, keep-alive, no access log) or stock (each server's defaults).
        interface: Interface of APP: wsgi, or asgi for apps such as FastAPI and Starlette. Only
            servers with this interface are measured; with asgi: granian, hypercorn and uvicorn.
        workers: Processes of each server. Default: set by the profile.
        server_threads: Threads per server process. Default: set by the profile.
        grid: Settings to combine with each other: workers=1,2,4 threads=1,4,8 profile=tuned,stock
            keepalive=on,off; for bundled apps also app=hello,cpu python=3.11,3.13.
        app_name: Bundled app to measure instead of APP: hello, ok, unsized, json1k, events, echo,
            cpu, sleep, files, database or upstream.
        chdir: Directory from which APP is imported.
        pythonpath: Additional import directory for APP, such as src (repeatable).
        python: Python interpreter for APP. Default: the first of an active virtual environment, the
            project's .venv (also in a parent directory), Poetry's environment, an active conda
            environment, and the Python that runs wsgiload.
        python_version: Installed Python version for a bundled app, such as 3.13.
        port: Port of the server. Default: any free port.
        ready_timeout: Maximum startup time of a server.
        command: Command that starts your own server, optionally named; it runs in your environment.
            {address} (or {host} and {port}) is the listen address; {workers} and {threads} are the
            process and thread counts. Without --servers, only these commands are measured. To set
            more than the command, use a table [servers.NAME] (in Python, a ServerCommand).
        servers_from: Directory with additional server files in the catalogue's format.
        server_args: Extra arguments for a catalogue server's command, per server. They take
            precedence over the profile's.
        server_config: Configuration file of a catalogue server, per server. Command-line settings,
            including the profile's, take precedence over it.
        env: Environment variables for all servers.
        env_file: Files with one NAME=VALUE line per environment variable.
    """

    profile: Profile = "tuned"
    interface: Interface = "wsgi"
    workers: int | None = None
    server_threads: int | None = None
    grid: Grid = field(default_factory=dict)
    app_name: str | None = None
    chdir: str | Path = "."
    pythonpath: Sequence[str | Path] = ()
    python: str | None = None
    python_version: str | None = None
    port: int | None = None
    ready_timeout: float = 30.0
    command: Mapping[str, str | ServerCommand] = field(default_factory=dict)
    servers_from: str | Path | None = None
    server_args: Mapping[str, str] = field(default_factory=dict)
    server_config: Mapping[str, str | Path] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    env_file: Sequence[str | Path] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """How trials are repeated and compared. Durations are in seconds.

    Args:
        name: Name of the run directory. Default: the app's name.
        runs: Number of runs, each with fresh processes, in random order. Default: 1; with --compare
            at least 6.
        compare: Use the number of runs needed to compare these servers, at least 6.
        budget: Time limit of a race: clearly slower servers drop out early, and the others get the
            remaining rounds. If there are many configurations, short trials first select some of
            them. With an objective, the winner is the configuration that meets it with the least
            memory.
        aggregate: How runs are combined: interval (mean with confidence interval) or trim
            (additionally a trimmed mean).
        slo: Objective, such as 'p99<50ms'. Recommends the configuration that meets it at the
            highest rate and uses the least memory. Implies --compare, except with --budget.
        settle: Maximum wait for a quiet host before each trial. Default: 0s with one run, else 2m.
        reruns: Maximum retries of a trial that is invalid because of the generator or the host, or
            disturbed by the host. Default: 1 with one run, else 3.
        intervene: Also measure each server and load in pairs of runs, with and without the CPU
            limit: 6 pairs, or as many as --runs.
        sample_interval: Sampling interval of the server's resource use.
        store_secrets: Store secrets and request bodies instead of their hashes.
    """

    name: str | None = None
    runs: int | None = None
    compare: bool = False
    budget: float | None = None
    aggregate: Method = "interval"
    slo: Sequence[str] = ()
    settle: float | None = None
    reruns: int | None = None
    intervene: Literal["cpu"] | None = None
    sample_interval: float = 0.1
    store_secrets: bool = False
