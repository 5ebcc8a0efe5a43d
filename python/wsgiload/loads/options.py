"""How one load is sent: its options, its level, and the plan that the generator takes.

Nothing here starts, measures or writes anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from wsgiload.documents.load_plan import (
    ClosedLoop,
    KeepaliveLimit,
    LoadModel,
    LoadPlan,
    OpenLoop,
    Phases,
    ResponseCheck,
    TlsOptions,
)
from wsgiload.errors import UsageError, require
from wsgiload.loads.request import Request, base64_of
from wsgiload.loads.schedule import LoadProfile, Ramp, Replay, Steps
from wsgiload.loads.thresholds import Thresholds, of_generator
from wsgiload.loads.transport import Transport
from wsgiload.units import NS_PER_S

Arrivals = Literal["poisson", "constant"]
OnBusy = Literal["grow", "queue", "shed"]
ReceiveStamps = Literal["kernel", "sampled", "user"]
Keepalive = Literal["on", "off"] | int

DEFAULT_TIMEOUT_NS = 10 * NS_PER_S
# No backlog in the catalogue holds more, so further connections would only wait in the kernel.
DEFAULT_MAX_CONNECTIONS = 1_000
# The slowest hundredth of a minute at 3,000 requests per second; some 140 kB in the report of a
# load.
KEPT_FLIGHTS = 2_000

# What the generator takes; said here so that it is said before a server is started.
LONGEST_LOAD_NS = 24 * 3600 * NS_PER_S
LEAST_TIMEOUT_NS, LONGEST_TIMEOUT_NS = 1_000_000, 3600 * NS_PER_S
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
    # Most arrivals that wait for a connection; None: ten seconds' worth, and ten for each
    # connection at least.
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
    # Whose instants of answers are reported; None: the kernel's in an open loop, the generator's in
    # a closed one.
    receive_stamps: ReceiveStamps | None = None
    transport: Transport = field(default_factory=Transport)
    # By names such as send-lag.warn: when checks speak up.
    check_thresholds: Thresholds = ()
    # At a given rate the warm-up lasts until so many requests were due, where that is longer.
    warmup_requests: int | None = None

    def __post_init__(self) -> None:
        require(self.duration_ns > 0, "the duration must be longer than 0")
        require(
            self.load_ns <= LONGEST_LOAD_NS, "a load may last at most 24 hours, warm-up included"
        )
        least, most = LEAST_TIMEOUT_NS, LONGEST_TIMEOUT_NS
        require(least <= self.timeout_ns <= most, "the timeout must be between 1ms and 1h")
        require(
            self.deadline_ns is None or self.deadline_ns > 0, "the deadline must be longer than 0"
        )
        require(1 <= self.threads <= MOST_THREADS, f"threads must be between 1 and {MOST_THREADS}")
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
            require(
                possible,
                f"the rate {rate:g} does not lie above 0 and up to {HIGHEST_RATE_PER_S:,} per "
                "second",
            )
        if users is not None:
            require(
                1 <= users <= MOST_USERS,
                f"{users} connections do not lie between 1 and {MOST_USERS:,}",
            )

    @property
    def text(self) -> str:
        """``1000``, or ``c100`` for a closed loop: short enough for a file name, and different for
        different levels."""
        return f"{self.rate_per_s:.15g}" if self.rate_per_s is not None else f"c{self.connections}"


def load_plan(
    url: str, request: Request, load: LoadOptions, schedule: Level | LoadProfile, seed: int
) -> LoadPlan:
    """The plan of one load as the generator takes it."""
    keepalive, transport = load.keepalive, load.transport
    require(
        url.isascii(), f"url {url!r} has characters that a URL cannot have", "percent-encode them"
    )
    require(
        isinstance(seed, int) and 0 <= seed < 2**64,
        f"the seed {seed!r} is no whole number from 0 to 2^64 - 1",
    )

    return LoadPlan(
        url=url,
        unix_socket=transport.unix_socket,
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
        check=_check(request),
        http_version="http2" if transport.http2 else "http1",
        tls=TlsOptions(insecure=transport.insecure, ca_file=transport.ca_file),
        source_addresses=transport.source_addresses,
        thresholds=of_generator(load.check_thresholds),
    )


def _check(request: Request) -> ResponseCheck:
    return ResponseCheck(
        statuses=request.statuses,
        body_base64=base64_of(request.expected_body),
        length=request.expected_length,
        sha256=request.expected_sha256,
        regex=request.expected_regex,
    )


def _load_model(load: LoadOptions, schedule: Level | LoadProfile) -> LoadModel:
    if isinstance(schedule, Level) and schedule.rate_per_s is None:
        users = schedule.connections or 1
        return LoadModel(closed=ClosedLoop(connections=users, think_time_ns=load.think_time_ns))

    return LoadModel(
        open=OpenLoop(
            rate_per_s=schedule.rate_per_s if isinstance(schedule, Level) else None,
            ramp=schedule.plan() if isinstance(schedule, Ramp) else None,
            steps=schedule.plan() if isinstance(schedule, Steps) else None,
            replay=schedule.plan() if isinstance(schedule, Replay) else None,
            arrivals=None if isinstance(schedule, Replay) else load.arrivals,
            on_busy=load.on_busy,
            max_connections=load.max_connections,
            max_pending=load.max_pending,
        )
    )


def without_keepalive(load: LoadOptions) -> LoadOptions:
    """The same load with a connection per request, for a server that closes after each answer
    anyway."""
    return replace(load, keepalive="off")


def parse_keepalive(text: str) -> Keepalive:
    """``on``, ``off``, or the number of requests that a connection carries."""
    if text == "on":
        return "on"
    if text == "off":
        return "off"
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise UsageError(
        f"invalid keep-alive {text!r}", "write on, off, or a number of requests per connection"
    )
