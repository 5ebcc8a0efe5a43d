"""The options of a sweep in the Python API: frozen objects, named like the flags of the command
line, with durations in seconds.

Each option is declared here once (``wsgiload.options``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from wsgiload.catalogue.contract import Interface, Profile
from wsgiload.catalogue.user_server import parse_command
from wsgiload.experiment.procedure import Method
from wsgiload.experiment.variables import parse_variable
from wsgiload.loads.public_options import Keepalive
from wsgiload.options import ASSIGNMENT, DURATION, MARGIN, PORT, Command, Text, Whole, option

# The values of each factor.
Grid = Mapping[str, Sequence[str | int]]

_SWEEP: tuple[Command, ...] = ("sweep",)
# The commands that launch servers.
_LAUNCHING: tuple[Command, ...] = ("sweep", "capacity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """Your own server and its settings.

    Args:
        command: The command that starts the server; it may contain the placeholders of
            ``ServerOptions.command``.
        env: Environment variables of this server and of its setup and teardown. They take
            precedence over those of all servers.
        cwd: Directory in which the server is started, relative to ``ServerOptions.chdir``.
        setup: Commands to run before each start of the server, such as migrations.
        teardown: Commands to run after each stop of the server.
        ready_path: Path that responds with a status from 200 to 299 once the server is ready.
            Default: the server is ready once the first request of the load gets a correct response.
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
        attach: PID or cgroup of a running service, instead of a command.
        env: Environment variables for its commands.
        cwd: Directory in which the service is started, relative to ``ServerOptions.chdir``.
        ready: Port on which the service listens once it is ready, or a command that exits with 0
            once it is ready. Default: the service counts as ready immediately.
        stop_signal: Signal that stops the service.
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
        profile: Server settings: tuned (equivalent for all servers; see `wsgiload servers show`) or
            stock (each server's defaults).
        interface: Interface of the app: wsgi, or asgi for frameworks such as FastAPI and Starlette.
            Only servers with this interface are measured (asgi: granian, hypercorn and uvicorn).
        workers: Number of worker processes per server. Default: set by the profile.
        server_threads: Number of threads per worker process. Default: set by the profile.
        grid: Measure every combination of the given settings, such as workers=1,2,4 threads=1,4,8
            profile=tuned,stock keepalive=on,off. For bundled apps, app=hello,cpu and
            python=3.11,3.13 are also valid.
        app_name: Bundled app to measure instead of yours: hello, ok, unsized, json1k, events, echo,
            cpu, sleep, files, database or upstream.
        chdir: Directory from which the app is imported. Default: the current directory.
        pythonpath: Additional import directory for the app, such as src (repeatable).
        python: Python interpreter for the app. Default: the first of these that exists: an active
            virtual environment, the project's environment (.venv, venv or env, or that of uv,
            Poetry, Pipenv, PDM or Hatch), an active conda environment, wsgiload's interpreter.
        python_version: Python version for a bundled app, such as 3.13. It must be installed.
        port: Port of the server. Default: any free port.
        ready_timeout: Maximum startup time of a server.
        command: Command that starts your own server (repeatable). It can contain {address} (or
            {host} and {port}), {workers} and {threads}. Without --servers, only servers from
            --command are measured.
        servers_from: Directory with additional server definitions (same format as the built-in
            ones).
        server_args: Extra command-line arguments for a server from `wsgiload servers list`
            (repeatable). They override the profile's arguments.
        server_config: Configuration file for a server from `wsgiload servers list` (repeatable).
            The server's command-line arguments, including the profile's, override the file.
        env: Environment variable for all servers (repeatable).
        env_file: File with one NAME=VALUE line per environment variable (repeatable).
        trust_folder: As root, run code from a folder, an interpreter or a configuration file that
            belongs to another user as root.
    """

    profile: Profile = option(
        "tuned", "Server", get_args(Profile), only=_LAUNCHING, rare_in=_LAUNCHING
    )
    interface: Interface = option("wsgi", "Server", get_args(Interface), only=_LAUNCHING)
    workers: int | None = option(None, "Server", Whole(1), only=_LAUNCHING)
    server_threads: int | None = option(
        None, "Server", Whole(1), only=_LAUNCHING, rare_in=_LAUNCHING
    )
    grid: Grid = option(
        dict,
        "Server",
        only=_LAUNCHING,
        metavar="NAME=A,B,...",
        repeatable=True,
    )
    app_name: str | None = option(None, "Server", only=_LAUNCHING)
    chdir: str | Path = option(".", "Server", "folder", only=_LAUNCHING)
    pythonpath: Sequence[str | Path] = option(
        (), "Server", "folder", only=_LAUNCHING, metavar="DIR", repeatable=True
    )
    python: str | None = option(None, "Server", only=_LAUNCHING)
    python_version: str | None = option(None, "Server", only=_LAUNCHING, rare_in=_LAUNCHING)
    port: int | None = option(None, "Server", PORT, only=_LAUNCHING, rare_in=_LAUNCHING)
    ready_timeout: float = option(30.0, "Server", DURATION, only=_LAUNCHING, rare_in=_LAUNCHING)
    command: Mapping[str, str | ServerCommand] = option(
        dict,
        "Server",
        Text("[name=]command", parse_command),
        only=_LAUNCHING,
        metavar="[NAME=]COMMAND",
        repeatable=True,
    )
    servers_from: str | Path | None = option(
        None, "Server", "folder", only=_LAUNCHING, metavar="DIR"
    )
    server_args: Mapping[str, str] = option(
        dict,
        "Server",
        ASSIGNMENT,
        only=_LAUNCHING,
        metavar="NAME='ARGS'",
        repeatable=True,
        collect=dict,
    )
    server_config: Mapping[str, str | Path] = option(
        dict,
        "Server",
        ASSIGNMENT,
        only=_LAUNCHING,
        metavar="NAME=FILE",
        repeatable=True,
        collect=dict,
    )
    env: Mapping[str, str] = option(
        dict,
        "Server",
        Text("name=value", parse_variable),
        only=_LAUNCHING,
        metavar="NAME=VALUE",
        repeatable=True,
        collect=dict,
    )
    env_file: Sequence[str | Path] = option((), "Server", "file", only=_LAUNCHING, repeatable=True)
    trust_folder: bool = False  # read before all other flags


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """How trials are repeated and compared. Durations are in seconds.

    Args:
        name: Name of the experiment, used in the name of the run directory. Default: the app's
            name.
        runs: Number of runs of each server at each load level, in random order and with new server
            processes. Fixes the design. Default: as many as the decision needs within --budget; at
            least 6 with --compare; 1 if --duration is given or there is nothing to compare.
        compare: Measure every server in enough runs to compare all of them, at least 6. Fixes the
            design.
        budget: Decide which server is best within this time (a race). Slower servers drop out, and
            the others get more runs. With --slo, the configuration that meets the objective with
            the least memory wins. Default: 5m, unless --runs, --duration, --compare or intervene
            is given.
        margin: Smallest difference between servers that matters in a race, as a share; servers
            within it are tied.
        aggregate: Method for combining the runs of each server at each load level: interval (mean
            with confidence interval) or trim (adds a trimmed mean).
        slo: Objective, such as 'p99<50ms' (repeatable). The report recommends the configuration
            that meets it at the highest rate; ties go to the lowest memory use.
        settle: Maximum wait for an idle host before each trial. Default: 0s in a single run
            and in a race, otherwise 2m.
        reruns: Maximum number of reruns of a trial that is disturbed by the host, or invalid
            because of the generator, the host or the plan. Default: 1 if --runs is 1, 0 in
            a race, otherwise 3.
        intervene: Add pairs of runs with and without the CPU limit for each server at each load
            level. The number of pairs is --runs, or 6 if --runs is 1.
        sample_interval: Interval between samples of the server's resource use.
        store_secrets: Store secrets and request bodies instead of their hashes.
        show: Name of an environment variable, header field, URL parameter or cookie whose value is
            shown and stored; most values are hidden (repeatable).
    """

    name: str | None = option(None, "Output", only=_LAUNCHING, rare_in=_LAUNCHING)
    runs: int | None = option(None, "Procedure", Whole(1, 1000), only=_SWEEP)
    compare: bool = option(False, "Procedure", bool, only=_SWEEP)
    budget: float | None = option(None, "Procedure", DURATION, only=_SWEEP)
    margin: float = option(0.1, "Procedure", MARGIN, only=_SWEEP)
    aggregate: Method = option(
        "interval", "Procedure", get_args(Method), only=_SWEEP, rare_in=_SWEEP
    )
    slo: Sequence[str] = option((), "Procedure", only=_SWEEP, repeatable=True)
    settle: float | None = option(None, "Procedure", DURATION, only=_SWEEP)
    reruns: int | None = option(None, "Procedure", Whole(0, 100), only=_SWEEP, rare_in=_SWEEP)
    intervene: Literal["cpu"] | None = option(
        None, "Procedure", ("cpu",), only=_SWEEP, rare_in=_SWEEP
    )
    sample_interval: float = option(0.1, "Procedure", DURATION, only=_LAUNCHING, rare_in=_LAUNCHING)
    store_secrets: bool = option(False, "Output", bool, rare_in=_LAUNCHING)
    show: Sequence[str] = option((), "Output", metavar="NAME", repeatable=True)
