"""The settings and the level of one load, the generator's plan, and how many connections the limit
on file descriptors (``ulimit -n``) allows.

Starts, measures and writes nothing. The generator checks whether the plan is possible.
"""

from __future__ import annotations

import math
import re
import resource
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal

import msgspec

from wsgiload.documents.base import Document
from wsgiload.documents.load_plan import (
    ClosedLoop,
    KeepaliveLimit,
    LoadModel,
    LoadPlan,
    OpenLoop,
    Phases,
)
from wsgiload.errors import UsageError, require
from wsgiload.loads.public_options import Keepalive, LoadOptions
from wsgiload.loads.request import Request, Transport, base64_of
from wsgiload.loads.schedule import LoadProfile
from wsgiload.loads.thresholds import of_generator, require_thresholds
from wsgiload.options import DURATION, declaration_of
from wsgiload.units import NS_PER_S, seconds_to_ns

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
# The host, with its port.
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?([^/?#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings(LoadOptions):
    """How requests are sent, independent of server and level: the user's options, and what the
    command decides."""

    duration_ns: int
    warmup: float = 0.0
    cooldown: float = 0.0
    interval_ns: int | None = None
    # How many of the slowest requests, and how many randomly sampled ones, the report lists.
    keep_flights: int = 0
    transport: Transport = field(default_factory=Transport)

    def __post_init__(self) -> None:
        require_thresholds(self.check_thresholds)
        requests = self.warmup_requests
        require(
            requests is None or 1 <= requests <= MAX_WARMUP_REQUESTS,
            f"the number of warm-up requests must be between 1 and {MAX_WARMUP_REQUESTS:,}",
        )
        options_in(self, LoadPlan)  # refuses impossible durations

    @property
    def warmup_ns(self) -> int:
        """The requested warm-up."""
        return seconds_to_ns(self.warmup)

    @property
    def cooldown_ns(self) -> int:
        """The cool-down."""
        return seconds_to_ns(self.cooldown)

    @property
    def timeout_ns(self) -> int:
        """The timeout of a request."""
        return seconds_to_ns(self.timeout)

    @property
    def load_ns(self) -> int:
        """The duration from the first scheduled send to the end of the last request."""
        return self.warmup_ns + self.duration_ns + self.cooldown_ns

    def warmed(self, warmup_s: float | None) -> LoadSettings:
        """The same with a server's own warm-up: 0 for none, otherwise at least this."""
        if warmup_s is None:
            return self
        if warmup_s == 0:
            return replace(self, warmup=0.0, warmup_requests=None)
        return replace(self, warmup=max(self.warmup, warmup_s))

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


def with_ascii_host(url: str) -> str:
    """The URL with an internationalised host name as DNS has it."""
    try:
        url.encode()
    except UnicodeEncodeError:
        raise UsageError(f"url {url!r} is not UTF-8", "percent-encode its characters") from None
    host = _HOST.match(url)
    if host is None or host[1].isascii():
        return url
    try:
        ascii_host = host[1].encode("idna").decode()
    except UnicodeError as error:
        raise UsageError(f"url {url!r}: the host is no domain name: {error}") from None
    return url[: host.start(1)] + ascii_host + url[host.end(1) :]


def settings_of(
    options: LoadOptions, duration_ns: int, transport: Transport | None = None
) -> LoadSettings:
    """The settings that follow from the user's options."""
    values = {option.name: getattr(options, option.name) for option in fields(LoadOptions)}
    return LoadSettings(**values, duration_ns=duration_ns, transport=transport or Transport())


def load_plan(
    url: str, request: Request, load: LoadSettings, schedule: Level | LoadProfile, seed: int
) -> LoadPlan:
    """The generator's plan of one load."""
    is_seed = isinstance(seed, int) and 0 <= seed < 2**64
    require(is_seed, f"the seed must be an integer from 0 to 2^64 - 1, not {seed!r}")
    transport = load.transport
    return LoadPlan(
        **{
            **options_in(load, LoadPlan),
            "url": with_ascii_host(url),
            "unix_socket": transport.unix_socket,
            "connect_to": transport.connect_to,
            "method": request.method,
            "headers": request.headers,
            "body_base64": base64_of(request.body),
            "targets": request.targets,
            "sessions": request.sessions,
            "load": _load_model(load, schedule),
            "phases": Phases(
                **options_in(load, Phases) | {"warmup_ns": load.warmup_ns_at(schedule)},
                measure_ns=load.duration_ns,
            ),
            "interval_ns": load.interval_ns,
            "keep_flights": load.keep_flights,
            "keepalive": _keepalive(load.keepalive),
            "seed": seed,
            "spin_window_ns": None if load.spin is None else seconds_to_ns(load.spin),
            "check": request.check,
            "http_version": transport.http_version,
            "streams": transport.streams,
            "tls": transport.tls,
            "source_addresses": transport.source_addresses,
            "precision": None,
            "thresholds": of_generator(load.check_thresholds),
        }
    )


def options_in(load: LoadOptions, part: type[Document]) -> dict[str, Any]:
    """The options that a part of the plan has under the same name, or, for durations, under this
    name with ``_ns``."""
    values: dict[str, Any] = {}
    for option in fields(LoadOptions):
        value, (name, key) = getattr(load, option.name), names_of(option)
        if key != name and value is not None:
            value = seconds_to_ns(value)
        if key in part.__struct_fields__:
            values[key] = value
    return values


def names_of(option: Field[Any]) -> tuple[str, str]:
    """The names of an option here and in the plan, where the name of a duration ends in ``_ns``."""
    made = declaration_of(option.metadata)
    is_duration = made is not None and made.kind is DURATION
    return option.name, f"{option.name}_ns" if is_duration else option.name


def _keepalive(keepalive: Keepalive) -> Literal["on", "off"] | KeepaliveLimit:
    return KeepaliveLimit(requests=keepalive) if isinstance(keepalive, int) else keepalive


def _load_model(load: LoadSettings, schedule: Level | LoadProfile) -> LoadModel:
    if isinstance(schedule, Level) and schedule.rate_per_s is None:
        users = schedule.connections or 1
        return LoadModel(closed=ClosedLoop(connections=users, **options_in(load, ClosedLoop)))

    policy = OpenLoop(**options_in(load, OpenLoop))
    if isinstance(schedule, Level):
        return LoadModel(open=msgspec.structs.replace(policy, rate_per_s=schedule.rate_per_s))
    return LoadModel(open=schedule.onto(policy))


def without_keepalive(load: LoadSettings) -> LoadSettings:
    """The same load with a new connection per request, for a server that closes connections
    anyway."""
    return replace(load, keepalive="off")


# As in the generator (net/connection_cap.rs): descriptors for anything other than connections.
SPARE_DESCRIPTORS = 64


def default_max_connections() -> int:
    """The default maximum of an open loop: 1,000, or as many as this process may open."""
    possible = _limit() - SPARE_DESCRIPTORS
    return min(DEFAULT_MAX_CONNECTIONS, possible) if possible > 0 else DEFAULT_MAX_CONNECTIONS


def lowered_default(load: LoadSettings) -> str | None:
    """A note if the limit lowered the default maximum."""
    if load.max_connections == DEFAULT_MAX_CONNECTIONS:
        return None
    if load.max_connections != default_max_connections():
        return None
    return (
        f"at most {load.max_connections:,} connections, because this process may open only "
        f"{_limit():,} files; `ulimit -n {DEFAULT_MAX_CONNECTIONS + SPARE_DESCRIPTORS}` allows the "
        f"usual {DEFAULT_MAX_CONNECTIONS:,}"
    )


def require_descriptors(load: LoadSettings, level: Level) -> None:
    """Raise UsageError if the connections of this load need more descriptors than this process may
    open."""
    is_open = level.rate_per_s is not None
    connections = (load.max_connections if is_open else level.connections) or 1
    needed, limit = connections + SPARE_DESCRIPTORS, _limit()
    if needed <= limit:
        return
    flag, possible = "--max-connections" if is_open else "--connections", limit - SPARE_DESCRIPTORS
    raise UsageError(
        f"{connections:,} connections need {needed:,} file descriptors, but this"
        f" process may open only {limit:,}",
        f"ulimit -n {needed}" + (f", or {flag} {possible}" if possible > 0 else ""),
    )


def _limit() -> int:
    """The descriptors that this process may get."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**63 if hard == resource.RLIM_INFINITY else hard
