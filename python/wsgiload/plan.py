"""What the user asks for, as frozen data: an Experiment, and the cells it consists of in the order they are run.

Nothing here starts, measures or writes anything.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from wsgiload.bundled import bundled_app
from wsgiload.check_thresholds import Thresholds, of_generator
from wsgiload.contract import Profile
from wsgiload.errors import UsageError, require
from wsgiload.limits.model import Policy
from wsgiload.precision import Precision
from wsgiload.procedure import Procedure
from wsgiload.request import Request, base64_of
from wsgiload.schedule import LoadProfile, Replay
from wsgiload.transport import Transport
from wsgiload.units import NS_PER_S

Arrivals = Literal["poisson", "constant"]
OnBusy = Literal["grow", "queue", "shed"]
ReceiveStamps = Literal["kernel", "sampled", "user"]
Keepalive = Literal["on", "off"] | int

DEFAULT_TIMEOUT_NS = 10 * NS_PER_S
# No backlog in the catalogue holds more, so further connections would only wait in the kernel.
DEFAULT_MAX_CONNECTIONS = 1_000
# The slowest hundredth of a minute at 3,000 requests per second; some 140 kB in the report of a load.
KEPT_FLIGHTS = 2_000

# What the generator takes; said here so that it is said before a server is started.
LONGEST_LOAD_NS = 24 * 3600 * NS_PER_S
LEAST_TIMEOUT_NS, LONGEST_TIMEOUT_NS = 1_000_000, 3600 * NS_PER_S
LEAST_SAMPLE_INTERVAL_NS, LONGEST_SAMPLE_INTERVAL_NS = 1_000_000, NS_PER_S
HIGHEST_RATE_PER_S = 10_000_000
MOST_USERS = 1_000_000
MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How requests are sent, whatever the server and the level. Times in nanoseconds."""

    duration_ns: int
    warmup_ns: int = 0
    cooldown_ns: int = 0
    arrivals: Arrivals = "poisson"
    on_busy: OnBusy = "grow"
    max_connections: int | None = None
    # Most arrivals that wait for a connection; None: ten seconds' worth, and ten for each connection at least.
    max_pending: int | None = None
    think_time_ns: int = 0
    keepalive: Keepalive = "on"
    timeout_ns: int = DEFAULT_TIMEOUT_NS
    deadline_ns: int | None = None
    interval_ns: int | None = None  # the generator chooses by the duration
    # Of how many requests the report tells the instants, of the slowest and of all.
    keep_flights: int = 0
    threads: int = 1
    # How long before a send the generator spins; None: it decides by the rate and the cores.
    spin_window_ns: int | None = None
    # Whose instants of answers are reported; None: the kernel's in an open loop, the generator's in a closed one.
    receive_stamps: ReceiveStamps | None = None
    transport: Transport = field(default_factory=Transport)
    # By names such as C4.warn: when checks speak up.
    check_thresholds: Thresholds = ()
    # At a given rate the warm-up lasts until so many requests were due, where that is longer.
    warmup_requests: int | None = None

    def __post_init__(self) -> None:
        require(self.duration_ns > 0, "the duration must be longer than 0")
        require(self.load_ns <= LONGEST_LOAD_NS, "one load may last 24 hours at most, warm-up included")
        least, most = LEAST_TIMEOUT_NS, LONGEST_TIMEOUT_NS
        require(least <= self.timeout_ns <= most, "the timeout must lie between 1ms and 1h")
        require(self.deadline_ns is None or self.deadline_ns > 0, "the deadline must be longer than 0")
        require(1 <= self.threads <= MOST_THREADS, f"threads must lie between 1 and {MOST_THREADS}")
        fewest = self.threads if self.max_connections is None else self.max_connections
        require(fewest >= self.threads, "max_connections must be at least the number of threads")
        require(self.max_pending is None or self.max_pending >= 0, "max_pending must be at least 0")

    @property
    def load_ns(self) -> int:
        """From the first intended send to the end of the last."""
        return self.warmup_ns + self.duration_ns + self.cooldown_ns

    def warmup_ns_at(self, schedule: Level | LoadProfile) -> int:
        """The warm-up at one level: as long as was asked for, and as many requests."""
        rate = schedule.rate_per_s if isinstance(schedule, Level) else None
        if self.warmup_requests is None or rate is None:
            return self.warmup_ns
        return max(self.warmup_ns, math.ceil(self.warmup_requests / rate * NS_PER_S))

    def load_ns_at(self, level: Level) -> int:
        """``load_ns`` with the warm-up of this level."""
        return self.load_ns - self.warmup_ns + self.warmup_ns_at(level)


@dataclass(frozen=True, slots=True)
class Level:
    """One load: an offered rate (open loop) or a number of users (closed loop)."""

    rate_per_s: float | None = None
    connections: int | None = None

    def __post_init__(self) -> None:
        rate, users = self.rate_per_s, self.connections
        if rate is not None:
            possible = math.isfinite(rate) and 0 < rate <= HIGHEST_RATE_PER_S
            require(possible, f"the rate {rate:g} does not lie above 0 and up to {HIGHEST_RATE_PER_S:,} per second")
        if users is not None:
            require(1 <= users <= MOST_USERS, f"{users} connections do not lie between 1 and {MOST_USERS:,}")

    @property
    def text(self) -> str:
        """``1000``, or ``c100`` for a closed loop: short enough for a file name, and different for different levels."""
        return f"{self.rate_per_s:.15g}" if self.rate_per_s is not None else f"c{self.connections}"


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What a server may use; None where nothing is asked for."""

    cpus: float | None = 1.0
    memory_bytes: int | None = 512 * 1024**2
    pids: int | None = 512
    policy: Policy = "strict"
    server_cpus: tuple[int, ...] | None = None
    client_cpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """How many workers and threads the user wants a server to have; None leaves it to the profile.

    In a grid the profile, keep-alive, the bundled app (by name) and the version of Python may be factors, too; None
    leaves them to the experiment.
    """

    workers: int | None = None
    threads: int | None = None
    profile: Profile | None = None
    keepalive: Keepalive | None = None
    app: str | None = None
    python: str | None = None


@dataclass(frozen=True, slots=True)
class ServedApp:
    """What a server serves: ``module:callable``, the folder that it is imported from, and how it is asked."""

    app: str
    app_dir: Path
    request: Request


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything one sweep measures."""

    name: str
    app: str
    app_dir: Path
    request: Request
    load: LoadOptions
    levels: tuple[Level, ...]
    servers: tuple[str, ...] | None = None
    runs: int = 1
    seed: int = 1
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    profile: Profile = "tuned"
    sizes: tuple[Size, ...] = (Size(),)
    bundled: bool = False
    python: str | None = None
    python_version: str | None = None
    port: int | None = None
    ready_timeout_ns: int = 30 * NS_PER_S
    sample_interval_ns: int = 100_000_000
    # How well one run is to know a quantile; each cell says whether it does.
    precision: Precision | None = None
    # Which limit is lifted in further runs, to see what that changes.
    intervene: Literal["cpu"] | None = None
    # The objective by which a setting is recommended, as texts like ``p99<50ms``; it changes nothing that is measured.
    slo: tuple[str, ...] = ()
    out: Path = Path(".wsgiload/runs")
    procedure: Procedure = field(default_factory=Procedure)

    def __post_init__(self) -> None:
        is_open = all(level.rate_per_s is not None for level in self.levels)
        counted = self.load.warmup_requests is not None
        require(is_open or not counted, "a warm-up by requests needs a rate", "give --warmup in seconds instead")
        longest_ns = max((self.load.load_ns_at(level) for level in self.levels), default=0)
        require(longest_ns <= LONGEST_LOAD_NS, "one load may last 24 hours at most, warm-up included")
        possible = LEAST_SAMPLE_INTERVAL_NS <= self.sample_interval_ns <= LONGEST_SAMPLE_INTERVAL_NS
        require(possible, "the sample interval must lie between 1ms and 1s")

    def served(self, name: str | None) -> ServedApp:
        """The bundled app of that name, asked in its own way; without a name the experiment's app."""
        if name is None:
            return ServedApp(self.app, self.app_dir, self.request)
        own = bundled_app(name)
        request = replace(self.request, path=own.path, expected_body=own.expected_body)
        return ServedApp(own.app, own.app_dir, request)


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
        """``server@level#run``, a rerun ``server@level#run.2``: unique in a sweep, and a tag in the interval log."""
        again = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.server}@{self.level.text}#{self.run}{again}"


def expand(experiment: Experiment, servers: tuple[str, ...]) -> tuple[Cell, ...]:
    """The cells in the order they are run: a complete block per run, servers and levels in seeded random order.

    A fixed or rising order would confound the load with warm-up, leaks and the host's drift. At one level of one
    run every server meets the same arrivals.
    """
    order = random.Random(experiment.seed)
    cells = []
    for run in range(1, experiment.runs + 1):
        for server in order.sample(servers, len(servers)):
            for level in order.sample(experiment.levels, len(experiment.levels)):
                cells.append(Cell(server, level, run, arrival_seed(experiment.seed, level, run)))
    return tuple(cells)


def arrival_seed(seed: int, level: Level, run: int) -> int:
    """The seed of one load: that of the experiment, the level and the run, and nothing of the server."""
    # A checksum, because Python's own hash of a string differs from process to process.
    return zlib.crc32(f"{seed}/{level.text}/{run}".encode())


def load_plan(
    url: str, request: Request, load: LoadOptions, schedule: Level | LoadProfile, seed: int
) -> dict[str, Any]:
    """The plan of one load as the generator takes it."""
    keepalive = load.keepalive
    require(url.isascii(), f"url {url!r} has characters that a URL cannot have", "percent-encode them")
    require(isinstance(seed, int) and 0 <= seed < 2**64, f"the seed {seed!r} is no whole number from 0 to 2^64 - 1")
    return {
        "url": url,
        "method": request.method,
        "headers": [list(pair) for pair in request.headers],
        "body_base64": base64_of(request.body),
        "targets": [dict(target) for target in request.targets],
        "sessions": [dict(session) for session in request.sessions],
        "load": _load_model(load, schedule),
        "phases": {
            "warmup_ns": load.warmup_ns_at(schedule),
            "measure_ns": load.duration_ns,
            "cooldown_ns": load.cooldown_ns,
        },
        "interval_ns": load.interval_ns,
        "keep_flights": load.keep_flights,
        "keepalive": {"requests": keepalive} if isinstance(keepalive, int) else keepalive,
        "timeout_ns": load.timeout_ns,
        "deadline_ns": load.deadline_ns,
        "threads": load.threads,
        "seed": seed,
        "spin_window_ns": load.spin_window_ns,
        "receive_stamps": load.receive_stamps,
        "check": {
            "statuses": list(request.statuses),
            "body_base64": base64_of(request.expected_body),
            "length": request.expected_length,
            "sha256": request.expected_sha256,
            "regex": request.expected_regex,
        },
        "thresholds": of_generator(load.check_thresholds),
        **load.transport.plan(),
    }


def _load_model(load: LoadOptions, schedule: Level | LoadProfile) -> dict[str, Any]:
    policy = {"on_busy": load.on_busy, "max_connections": load.max_connections, "max_pending": load.max_pending}
    if isinstance(schedule, Replay):
        return {"open": schedule.plan() | policy}
    if not isinstance(schedule, Level):
        return {"open": schedule.plan() | {"arrivals": load.arrivals} | policy}
    if schedule.rate_per_s is not None:
        return {"open": {"rate_per_s": schedule.rate_per_s, "arrivals": load.arrivals} | policy}
    return {"closed": {"connections": schedule.connections, "think_time_ns": load.think_time_ns}}


def without_keepalive(load: LoadOptions) -> LoadOptions:
    """The same load with a connection per request, for a server that closes after each answer anyway."""
    return replace(load, keepalive="off")


def parse_keepalive(text: str) -> Keepalive:
    """``on``, ``off``, or the number of requests that a connection carries."""
    if text == "on":
        return "on"
    if text == "off":
        return "off"
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise UsageError(f"{text!r} is not a keep-alive", "write on, off, or a number of requests per connection")


def experiment_facts(experiment: Experiment, servers: tuple[str, ...]) -> Mapping[str, Any]:
    """The experiment as summary.json tells it."""
    rates = [level.rate_per_s for level in experiment.levels if level.rate_per_s is not None]
    connections = [level.connections for level in experiment.levels if level.connections is not None]
    is_open = bool(rates)
    load, limits = experiment.load, experiment.limits
    served = [experiment.served(size.app) for size in experiment.sizes]
    return {
        "name": experiment.name,
        "profile": _varied([size.profile or experiment.profile for size in experiment.sizes]),
        "app": _varied([one.app for one in served]),
        "path": _varied([one.request.path for one in served]),
        "method": experiment.request.method,
        "targets": len(experiment.request.targets) or None,
        "sessions": len(experiment.request.sessions) or None,
        "rates": rates or None,
        "connections": connections or None,
        "arrivals": load.arrivals if is_open else None,
        "on_busy": load.on_busy if is_open else None,
        "max_connections": load.max_connections if is_open else None,
        "max_pending": load.max_pending if is_open else None,
        "keepalive": _varied([size.keepalive or load.keepalive for size in experiment.sizes]),
        "think_time_s": None if is_open else load.think_time_ns / NS_PER_S,
        "duration_s": load.duration_ns / NS_PER_S,
        "warmup_s": load.warmup_ns / NS_PER_S,
        "warmup_requests": load.warmup_requests,
        "cooldown_s": load.cooldown_ns / NS_PER_S,
        "timeout_s": load.timeout_ns / NS_PER_S,
        "check_thresholds": dict(load.check_thresholds),
        "runs": experiment.runs,
        "settle_s": experiment.procedure.settle_ns / NS_PER_S,
        "reruns": experiment.procedure.reruns,
        "aggregate": experiment.procedure.aggregate,
        "slo": list(experiment.slo) or None,
        "cpus": limits.cpus,
        "memory_bytes": limits.memory_bytes,
        "pids": limits.pids,
        "limits_policy": limits.policy,
        "server_cpus": _as_list(limits.server_cpus),
        "client_cpus": _as_list(limits.client_cpus),
        "servers": list(servers),
    }


def _varied(values: Sequence[object]) -> object:
    """The one value, or all of them where a grid combines several."""
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else different


def _as_list(cores: tuple[int, ...] | None) -> list[int] | None:
    return None if cores is None else list(cores)


def plain(value: object) -> Any:
    """Plain data for run.json: dataclasses as objects, bytes as base64, paths as text."""
    if isinstance(value, bytes):
        return base64_of(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {key: plain(item) for key, item in asdict(value).items()}  # type: ignore[call-overload]
    return value
