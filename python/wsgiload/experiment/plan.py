"""An experiment and its cells, in their order of execution, as frozen data.

This module starts, measures and writes nothing.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from wsgiload.catalogue.adjust import Adjustment
from wsgiload.catalogue.bundled import bundled_app
from wsgiload.catalogue.contract import Interface, Profile
from wsgiload.catalogue.user_server import UserServer
from wsgiload.documents.codec import encode_bytes
from wsgiload.documents.load_plan import ClosedLoop, OpenLoop
from wsgiload.documents.summary import ExperimentFacts
from wsgiload.errors import require
from wsgiload.experiment.bundled_apps import request_of
from wsgiload.experiment.procedure import Procedure
from wsgiload.experiment.public_options import SupportingService
from wsgiload.experiment.redaction import show_values_of
from wsgiload.experiment.slices import slice_ns
from wsgiload.experiment.stored_secrets import public_request
from wsgiload.experiment.variables import with_secrets, without_secrets
from wsgiload.host.cpus import parse_cpu_list
from wsgiload.limits.model import Policy
from wsgiload.loads.options import Level, LoadSettings, names_of, options_in
from wsgiload.loads.precision import Precision
from wsgiload.loads.public_options import Keepalive, LoadOptions
from wsgiload.loads.request import Request
from wsgiload.options import SIZE, Command, Text, Whole, option
from wsgiload.units import NS_PER_S, parse_cpus

T = TypeVar("T")


def _cpu_list(text: str) -> tuple[int, ...] | None:
    return parse_cpu_list(text) if text else None


# The commands that launch servers.
_LAUNCHING: tuple[Command, ...] = ("sweep", "capacity")

# Time to launch, probe and stop a typical server.
AROUND_A_LAUNCH_S = 2.0
MIN_SAMPLE_INTERVAL_NS, MAX_SAMPLE_INTERVAL_NS = 1_000_000, NS_PER_S


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What a server may use; None for no limit.

    Args:
        cpus: CPU limit of the server, in cores.
        memory_bytes: Memory limit of the server (swap disabled).
        pids: Maximum number of processes and threads of the server.
        policy: Action if a limit cannot be enforced: flag the result (best-effort) or fail
            (strict). With none, no limits are set.
        server_cpus: CPUs to pin the server to, such as 1 or 2-3. Default: chosen automatically.
        client_cpus: CPUs to pin the load generator to. Default: chosen automatically.
        user: User as whom the server, its setup, its services and the import check run (only as
            root). Default: the user who runs wsgiload.
    """

    cpus: float | None = option(
        1.0, "Limits", Text("cpus", parse_cpus, "{:g}".format), only=_LAUNCHING
    )
    memory_bytes: int | None = option(512 * 1024**2, "Limits", SIZE, "--memory", only=_LAUNCHING)
    pids: int | None = option(512, "Limits", Whole(1), only=_LAUNCHING)
    policy: Policy = option("best-effort", "Limits", get_args(Policy), "--limits", only=_LAUNCHING)
    server_cpus: tuple[int, ...] | None = option(None, "Limits", only=_LAUNCHING, collect=_cpu_list)
    client_cpus: tuple[int, ...] | None = option(None, "Limits", only=_LAUNCHING, collect=_cpu_list)
    user: str | None = option(None, "Limits", only=_LAUNCHING)


@dataclass(frozen=True, slots=True)
class Size:
    """A server's number of workers and threads; None: set by the profile.

    A grid may also vary the profile, keep-alive, the bundled app (by name) and the Python version;
    None: as in the experiment.
    """

    workers: int | None = None
    threads: int | None = None
    profile: Profile | None = None
    keepalive: Keepalive | None = None
    app: str | None = None
    python: str | None = None


@dataclass(frozen=True, slots=True)
class ServedApp:
    """The app of a server as ``module:callable``, its import directory, and its request. ``app`` is
    None if only the user's server commands name it."""

    app: str | None
    app_dir: Path
    request: Request


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything that one sweep measures."""

    name: str
    app: str | None
    app_dir: Path
    request: Request
    load: LoadSettings
    levels: tuple[Level, ...]
    servers: tuple[str, ...] | None = None
    # A directory with additional server definitions.
    servers_from: Path | None = None
    own_servers: tuple[UserServer, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    # By name; their directories are absolute.
    services: Mapping[str, SupportingService] = field(default_factory=dict)
    # The user's environment variables for all servers.
    variables: Mapping[str, str] = field(default_factory=dict)
    runs: int = 1
    seed: int = 1
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    profile: Profile = "tuned"
    # Of the app. Only catalogue servers with this interface are measured.
    interface: Interface = "wsgi"
    sizes: tuple[Size, ...] = (Size(),)
    bundled: bool = False
    app_revision: str | None = None
    python: str | None = None
    python_version: str | None = None
    # Import directories that follow the app's directory.
    pythonpath: tuple[Path, ...] = ()
    port: int | None = None
    ready_timeout_ns: int = 30 * NS_PER_S
    sample_interval_ns: int = 100_000_000
    # The target precision; each cell reports whether it was reached.
    precision: Precision | None = None
    # The limit that additional runs lift, to measure its effect.
    intervene: Literal["cpu"] | None = None
    store_secrets: bool = False
    # Names whose values are stored and shown.
    show: tuple[str, ...] = ()
    # The objective of the recommendation, such as ``p99<50ms``. It affects the measurement only in
    # a race.
    slo: tuple[str, ...] = ()
    # The budget of a race, which ends once its question is decided; None: no race.
    budget_ns: int | None = None
    # The part of the budget in which closed loops determined the rates.
    closed_loops_ns: int = 0
    # The smallest difference that matters in a race.
    margin: float = 0.1
    # Whether each measurement of a race is only as long as p99 needs.
    is_sliced: bool = False
    out: Path = Path(".wsgiload/runs")
    procedure: Procedure = field(default_factory=Procedure)
    # The description from an experiment file.
    title: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        is_open = all(level.rate_per_s is not None for level in self.levels)
        counted = self.load.warmup_requests is not None
        require(
            is_open or not counted,
            "--warmup-requests requires --rates",
            "use --warmup",
        )
        possible = MIN_SAMPLE_INTERVAL_NS <= self.sample_interval_ns <= MAX_SAMPLE_INTERVAL_NS
        require(possible, "the sample interval must be between 1ms and 1s")

    def without_secrets(self) -> Experiment:
        """The experiment for storing and printing. From now on, all output hides its secrets."""
        show_values_of(self.show)
        if self.store_secrets:
            return self
        variables, request = without_secrets(self.variables), public_request(self.request)
        own_servers = tuple(replace(one, env=without_secrets(one.env)) for one in self.own_servers)
        services = {
            name: replace(one, env=without_secrets(one.env)) for name, one in self.services.items()
        }
        public = replace(self, variables=variables, request=request, own_servers=own_servers)
        return replace(public, services=services)

    def with_secrets(self, given: Mapping[str, str]) -> Experiment:
        """The stored experiment with its secret variables: the given ones, and others from this
        process's environment."""
        own_servers = tuple(replace(one, env=with_secrets(one.env, {})) for one in self.own_servers)
        services = {
            name: replace(one, env=with_secrets(one.env, {})) for name, one in self.services.items()
        }
        variables = with_secrets(self.variables, given)
        return replace(self, variables=variables, own_servers=own_servers, services=services)

    @property
    def measures_catalogue(self) -> bool:
        """Whether any catalogue server is measured."""
        return bool(self.servers) or not self.own_servers

    @property
    def is_race(self) -> bool:
        """Whether blocks of launches are analysed until the question is decided."""
        return self.budget_ns is not None

    @property
    def race_s(self) -> float:
        """The budget of the race itself."""
        return ((self.budget_ns or 0) - self.closed_loops_ns) / NS_PER_S

    def load_of(self, level: Level) -> LoadSettings:
        """The load settings at this level."""
        if self.is_sliced:
            return replace(self.load, duration_ns=slice_ns(level, self.slo))
        return self.load

    def served(self, name: str | None) -> ServedApp:
        """The bundled app with this name and its request; without a name, the experiment's app."""
        if name is None:
            return ServedApp(self.app, self.app_dir, self.request)
        own = bundled_app(name)
        request = replace(self.request, path=own.path, expected_body=own.expected_body)
        return ServedApp(own.app_for(self.interface), own.app_dir, request_of(own, request))


@dataclass(frozen=True, slots=True)
class Cell:
    """One server at one level in one run."""

    server: str
    level: Level
    run: int
    seed: int
    attempt: int = 1

    @property
    def id(self) -> str:
        """``server@level#run``, or ``server@level#run.2`` for a rerun. Unique in a sweep, and used
        as a tag in the interval log."""
        again = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.server}@{self.level.text}#{self.run}{again}"


def expand(experiment: Experiment, servers: tuple[str, ...]) -> tuple[Cell, ...]:
    """The cells in their order of execution: one complete block per run, with servers and levels in
    seeded random order.

    A fixed or ascending order would confound the load level with warm-up, leaks and host drift.
    Within a run, all servers get the same arrivals at each level.
    """
    order = random.Random(experiment.seed)
    cells = []
    levels = experiment.levels
    for run in range(1, experiment.runs + 1):
        for server in order.sample(servers, len(servers)):
            for level in order.sample(levels, len(levels)):
                seed = arrival_seed(experiment.seed, level, run)
                cells.append(Cell(server, level, run, seed))
    return tuple(cells)


def levels_down(experiment: Experiment) -> list[Level]:
    """The levels, the highest load first."""
    return sorted(experiment.levels, key=lambda one: -(one.rate_per_s or one.connections or 0.0))


def planned_blocks(experiment: Experiment, servers: int) -> float:
    """The number of blocks within the budget of a race if no server drops out and only the highest
    level is measured."""
    highest = levels_down(experiment)[0]
    launch_s = experiment.load_of(highest).load_ns_at(highest) / NS_PER_S + AROUND_A_LAUNCH_S
    return max(1.0, experiment.race_s / launch_s / max(1, servers))


def launches_s(experiment: Experiment) -> list[float]:
    """The expected duration of a launch of a race: at all levels, or with an objective at each
    level, the highest first."""
    levels = levels_down(experiment)
    loads_s = [experiment.load_of(level).load_ns_at(level) / NS_PER_S for level in levels]
    return [one + AROUND_A_LAUNCH_S for one in (loads_s if experiment.slo else [sum(loads_s)])]


def arrival_seed(seed: int, level: Level, run: int) -> int:
    """The seed of a load. It depends on the experiment's seed, the level and the run, but not on
    the server."""
    # A checksum, because Python's string hash differs between processes.
    return zlib.crc32(f"{seed}/{level.text}/{run}".encode())


def experiment_facts(experiment: Experiment, servers: tuple[str, ...]) -> ExperimentFacts:
    """The experiment in the form of summary.json."""
    experiment = experiment.without_secrets()
    levels = experiment.levels
    rates = tuple(level.rate_per_s for level in levels if level.rate_per_s is not None)
    connections = tuple(level.connections for level in levels if level.connections is not None)
    is_open = bool(rates)
    sizes = experiment.sizes
    served = [experiment.served(size.app) for size in sizes]
    apps = [one.app for one in served if one.app is not None]
    methods = {one.request.method for one in served}
    load, limits, procedure = experiment.load, experiment.limits, experiment.procedure
    leads = experiment.is_race and not experiment.slo

    return ExperimentFacts(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        notes=experiment.notes,
        profile=_varied([size.profile or experiment.profile for size in sizes])
        if experiment.measures_catalogue
        else None,
        interface=experiment.interface if experiment.measures_catalogue else None,
        app=_varied(apps) if apps else None,
        app_revision=experiment.app_revision,
        path=_varied([one.request.path for one in served]),
        method=methods.pop() if len(methods) == 1 else None,
        targets=len(experiment.request.targets) or None,
        sessions=len(experiment.request.sessions) or None,
        rates=rates or None,
        connections=connections or None,
        duration_s=load.duration_ns / NS_PER_S,
        **_load_facts(load, is_open=is_open)
        | {"keepalive": _varied([size.keepalive or load.keepalive for size in sizes])},
        runs=experiment.runs,
        settle_s=procedure.settle_ns / NS_PER_S,
        reruns=procedure.reruns,
        budget_s=None if experiment.budget_ns is None else experiment.budget_ns / NS_PER_S,
        margin=experiment.margin if leads else None,
        planned_blocks=planned_blocks(experiment, len(servers)) if leads else None,
        aggregate=procedure.aggregate,
        slo=experiment.slo or None,
        cpus=limits.cpus,
        memory_bytes=limits.memory_bytes,
        pids=limits.pids,
        limits_policy=limits.policy,
        server_cpus=limits.server_cpus,
        client_cpus=limits.client_cpus,
        user=limits.user,
        servers=servers,
    )


def _load_facts(load: LoadSettings, *, is_open: bool) -> dict[str, Any]:
    """The options of a load: those that have a fact of their own, and others that were set. Those
    without effect in this kind of loop are null."""
    ignored = options_in(load, ClosedLoop if is_open else OpenLoop)
    facts: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for one in fields(LoadOptions):
        value, (name, key) = getattr(load, one.name), names_of(one)
        fact = f"{name}_s" if key != name else name
        if fact in ExperimentFacts.__struct_fields__:
            facts[fact] = None if key in ignored else value
        elif value != one.default and name != "seed":  # of the whole sweep
            others[name] = value
    return {**facts, "load_options": others}


def _varied(values: Sequence[T]) -> T | tuple[T, ...]:
    """The value, or all distinct values of a grid."""
    different = tuple(dict.fromkeys(values))
    return different[0] if len(different) == 1 else different


def plain(value: object) -> Any:
    """The value as plain JSON data: objects as mappings, bytes as base64, paths as strings."""
    return msgspec.json.decode(encode_bytes(value, enc_hook=_path_text))


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")
