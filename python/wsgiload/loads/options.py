"""The settings and the level of one load, and the generator's plan.

Starts, measures and writes nothing. The generator checks whether the plan is possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from wsgiload.documents.load_plan import (
    Arrivals,
    ClosedLoop,
    KeepaliveLimit,
    LoadModel,
    LoadPlan,
    OnBusy,
    OpenLoop,
    Phases,
    ReceiveStamps,
)
from wsgiload.errors import UsageError, require
from wsgiload.loads.request import Request, base64_of
from wsgiload.loads.schedule import LoadProfile
from wsgiload.loads.thresholds import Thresholds, of_generator
from wsgiload.loads.transport import Transport
from wsgiload.units import NS_PER_S

Keepalive = Literal["on", "off"] | int

DEFAULT_TIMEOUT_NS = 10 * NS_PER_S
# Below the listen backlog of the tuned profile (1,024), so the accept queue can hold all of them.
DEFAULT_MAX_CONNECTIONS = 1_000
# The slowest 1 % of one minute at 3,000 requests per second; about 140 kB in a load report.
KEPT_FLIGHTS = 2_000

# A capacity search must stay within the generator's limit.
MAX_RATE_PER_S = 10_000_000
MAX_USERS = 1_000_000
MAX_WARMUP_REQUESTS = 1_000_000_000
# The generator rejects longer durations.
_TOO_LONG_NS = 2**63


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How requests are sent, independent of server and level. Times in nanoseconds.

    ``LoadOptions`` documents the settings; None leaves a choice to the generator.
    """

    duration_ns: int
    warmup_ns: int = 0
    cooldown_ns: int = 0
    arrivals: Arrivals = "poisson"
    on_busy: OnBusy = "grow"
    max_connections: int | None = None
    max_pending: int | None = None
    think_time_ns: int = 0
    keepalive: Keepalive = "on"
    timeout_ns: int = DEFAULT_TIMEOUT_NS
    deadline_ns: int | None = None
    interval_ns: int | None = None
    # How many of the slowest requests, and how many randomly sampled ones, the report lists.
    keep_flights: int = 0
    threads: int = 1
    spin_window_ns: int | None = None
    receive_stamps: ReceiveStamps | None = None
    transport: Transport = field(default_factory=Transport)
    check_thresholds: Thresholds = ()
    warmup_requests: int | None = None

    def __post_init__(self) -> None:
        requests = self.warmup_requests
        require(
            requests is None or 1 <= requests <= MAX_WARMUP_REQUESTS,
            f"the number of warm-up requests must be between 1 and {MAX_WARMUP_REQUESTS:,}",
        )

    @property
    def load_ns(self) -> int:
        """The duration from the first scheduled send to the end of the last request."""
        return self.warmup_ns + self.duration_ns + self.cooldown_ns

    def warmup_ns_at(self, schedule: Level | LoadProfile) -> int:
        """The warm-up at one level: at least the requested time and number of requests."""
        rate = schedule.rate_per_s if isinstance(schedule, Level) else None
        if self.warmup_requests is None or rate is None:
            return self.warmup_ns
        of_requests_ns = min(self.warmup_requests / rate * NS_PER_S, _TOO_LONG_NS)
        return max(self.warmup_ns, math.ceil(of_requests_ns))

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
            require(
                0 < rate <= MAX_RATE_PER_S,
                f"the rate must be above 0 and at most {MAX_RATE_PER_S:,} per second, not {rate:g}",
            )
        if users is not None:
            require(
                1 <= users <= MAX_USERS,
                f"connections must be between 1 and {MAX_USERS:,}, not {users}",
            )

    @property
    def text(self) -> str:
        """``1000``, or ``c100`` for a closed loop; unique, and short enough for a file name."""
        return f"{self.rate_per_s:.15g}" if self.rate_per_s is not None else f"c{self.connections}"


def load_plan(
    url: str, request: Request, load: LoadSettings, schedule: Level | LoadProfile, seed: int
) -> LoadPlan:
    """The generator's plan of one load."""
    require(
        url.isascii(), f"url {url!r} has characters not allowed in a URL", "percent-encode them"
    )
    is_seed = isinstance(seed, int) and 0 <= seed < 2**64
    require(is_seed, f"the seed must be an integer from 0 to 2^64 - 1, not {seed!r}")
    keepalive = load.keepalive
    transport = load.transport

    return LoadPlan(
        url=url,
        unix_socket=transport.unix_socket,
        connect_to=transport.connect_to,
        method=request.method,
        headers=request.headers,
        body_base64=base64_of(request.body),
        targets=request.targets,
        sessions=request.sessions,
        load=_load_model(load, schedule),
        phases=Phases(
            warmup_ns=load.warmup_ns_at(schedule),
            measure_ns=load.duration_ns,
            cooldown_ns=load.cooldown_ns,
        ),
        interval_ns=load.interval_ns,
        keep_flights=load.keep_flights,
        keepalive=KeepaliveLimit(requests=keepalive) if isinstance(keepalive, int) else keepalive,
        timeout_ns=load.timeout_ns,
        deadline_ns=load.deadline_ns,
        threads=load.threads,
        seed=seed,
        spin_window_ns=load.spin_window_ns,
        receive_stamps=load.receive_stamps,
        check=request.check,
        http_version=transport.http_version,
        streams=transport.streams,
        tls=transport.tls,
        source_addresses=transport.source_addresses,
        thresholds=of_generator(load.check_thresholds),
    )


def _load_model(load: LoadSettings, schedule: Level | LoadProfile) -> LoadModel:
    if isinstance(schedule, Level) and schedule.rate_per_s is None:
        users = schedule.connections or 1
        closed = ClosedLoop(connections=users, think_time_ns=load.think_time_ns)
        return LoadModel(closed=closed)

    policy = OpenLoop(
        arrivals=load.arrivals,
        on_busy=load.on_busy,
        max_connections=load.max_connections,
        max_pending=load.max_pending,
    )
    if isinstance(schedule, Level):
        return LoadModel(open=msgspec.structs.replace(policy, rate_per_s=schedule.rate_per_s))
    return LoadModel(open=schedule.onto(policy))


def without_keepalive(load: LoadSettings) -> LoadSettings:
    """The same load with a new connection per request, for a server that closes connections
    anyway."""
    return replace(load, keepalive="off")


def parse_keepalive(text: str) -> Keepalive:
    """``on``, ``off``, or the number of requests per connection."""
    if text == "on":
        return "on"
    if text == "off":
        return "off"
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise UsageError(
        f"invalid keep-alive {text!r}", "write on, off, or a number of requests per connection"
    )
