"""The plan of one load, as the generator takes it and as its report repeats it.

The generator validates a plan and fills in its fixed defaults; ``None`` leaves a choice to it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveFloat, PositiveInt

Arrivals = Literal["poisson", "constant"]
OnBusy = Literal["grow", "queue", "shed"]
ReceiveStamps = Literal["kernel", "sampled", "user"]


class Ramp(Document, frozen=True, kw_only=True):
    """A rate that changes evenly from one value to another."""

    from_per_s: float
    """Rate at the start of the measurement. Unit: 1/s."""
    to_per_s: float
    """Rate at the end of the ramp. Unit: 1/s."""
    over_ns: NonNegativeInt | None = None
    """How long the ramp takes; its last rate then holds. Unit: ns. Null: the whole measurement."""


class Step(Document, frozen=True, kw_only=True):
    """One rate for some time."""

    rate_per_s: float
    """Arrivals per second; 0 is a pause. Unit: 1/s."""
    duration_ns: NonNegativeInt
    """How long it holds. Unit: ns."""


class Replay(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Recorded arrivals, at their own speed or another."""

    offsets_ns: tuple[NonNegativeInt, ...]
    """Recorded arrivals since the first. Unit: ns."""
    speed: PositiveFloat
    """Offsets are divided by this: 2 replays an hour in half an hour."""
    requests: tuple[NonNegativeInt, ...] | None = None
    """For each arrival the index of its request in `targets`. Absent: drawn by weight."""


class OpenLoop(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Arrivals follow a schedule, whatever the server does.

    Exactly one of `rate_per_s`, `ramp`, `steps` and `replay` is present.
    """

    rate_per_s: float | None = None
    """Arrivals per second over all threads. Unit: 1/s. Null: absent with another schedule."""
    ramp: Ramp | None = None
    """A rate that changes evenly. Null: absent with another schedule."""
    steps: tuple[Step, ...] | None = None
    """One rate after another. Null: absent with another schedule."""
    replay: Replay | None = None
    """Recorded arrivals. Null: absent with another schedule."""
    arrivals: Arrivals | None = None
    """Inter-arrival distribution. Null: absent in a replay."""
    on_busy: OnBusy
    """What an arrival does at the cap on connections: `grow` and `queue` wait, `shed` drops it."""
    max_connections: NonNegativeInt | None
    """Most connections at once. Null: as many as the process limits allow, at most 4,096."""
    max_pending: NonNegativeInt | None
    """Most arrivals that wait for a connection; further ones are dropped and counted. Null: ten
    seconds' worth, and ten per connection at least."""


class ClosedLoop(Document, frozen=True, kw_only=True):
    """Each of a number of users waits for its response, thinks, and sends the next request."""

    connections: NonNegativeInt
    """Users, each with one connection."""
    think_time_ns: NonNegativeInt = 0
    """Mean think time, exponentially distributed; 0 for none. Unit: ns."""


class LoadModel(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Where arrivals come from. Exactly one of `open` and `closed` is present."""

    open: OpenLoop | None = None
    """A schedule. Null: absent in a closed loop."""
    closed: ClosedLoop | None = None
    """A number of users. Null: absent in an open loop."""


class Phases(Document, frozen=True, kw_only=True):
    """How long each phase of a load lasts."""

    warmup_ns: NonNegativeInt = 0
    """Sent, but not counted. Unit: ns."""
    measure_ns: NonNegativeInt
    """The measurement. Unit: ns."""
    drain_ns: NonNegativeInt | None = None
    """Longest wait for responses once the sends have ended. Unit: ns. Null: until the last request
    has had its timeout."""
    cooldown_ns: NonNegativeInt = 0
    """Sent, but not counted, so that the end of the measurement is under load. Unit: ns."""


class ResponseCheck(Document, frozen=True, kw_only=True):
    """What counts as a correct response; anything else is a failure, however fast it came."""

    statuses: tuple[int, ...] = (200,)
    """Accepted status codes."""
    body_base64: str | None = None
    """The exact body, base64. Null: not checked."""
    length: NonNegativeInt | None = None
    """Length of the body. Unit: bytes. Null: not checked."""
    sha256: str | None = None
    """SHA-256 of the body, in hexadecimal digits. Null: not checked."""
    regex: str | None = None
    """Regular expression that the first MiB of the body matches. Null: not checked."""


class RequestPlan(Document, frozen=True, kw_only=True):
    """One of several requests to the server of the plan's URL."""

    name: str | None = None
    """What the report calls it. Null: its method and path."""
    method: str = "GET"
    """Its method."""
    url: str
    """Path and query, or a URL of the same host."""
    headers: tuple[tuple[str, str], ...] = ()
    """Header fields, in order; the plan's own are added where the name is not among these."""
    body_base64: str | None = None
    """Its body, base64. Null: no body."""
    check: ResponseCheck | None = None
    """What counts as a correct response. Null: what the plan says."""


class WeightedRequest(Document, frozen=True, kw_only=True):
    """A request, and how often it is sent."""

    request: RequestPlan
    """The request."""
    weight: float = 1.0
    """Its share of the arrivals is its weight over the sum of all weights."""


class StepPlan(Document, frozen=True, kw_only=True):
    """One request of a session."""

    request: RequestPlan
    """The request."""
    think_time_ns: NonNegativeInt = 0
    """Mean think time before the next request, exponentially distributed. Unit: ns."""


class SessionPlan(Document, frozen=True, kw_only=True):
    """What one kind of user does: requests in turn over one connection, cookies kept."""

    name: str
    """What the report calls it."""
    weight: float = 1.0
    """Its share of the sessions is its weight over the sum of all weights."""
    steps: tuple[StepPlan, ...]
    """Its requests, in order."""


class KeepaliveLimit(Document, frozen=True, kw_only=True):
    """A connection carries a fixed number of requests."""

    requests: PositiveInt
    """Requests per connection."""


class TlsOptions(Document, frozen=True, kw_only=True):
    """Whom to trust over TLS."""

    insecure: bool = False
    """Whether certificates are accepted without verification."""
    ca_file: str | None = None
    """PEM file of the trusted authorities. Null: those of the system."""


class NoiseFloor(Document, frozen=True, kw_only=True):
    """Response times of a server that responds at once, measured on this machine beforehand."""

    p50_ns: NonNegativeInt
    """Median. Unit: ns."""
    p99_ns: NonNegativeInt
    """p99. Unit: ns."""
    p999_ns: NonNegativeInt
    """p99.9. Unit: ns."""


class PrecisionTarget(Document, frozen=True, kw_only=True):
    """A measurement that continues until a quantile is known well enough."""

    quantile: float
    """The quantile over all offered requests."""
    share: float
    """Half-width of its 95 % confidence interval, as a share of it."""
    longest_ns: NonNegativeInt
    """Longest measurement. Unit: ns."""


class LoadPlan(Document, frozen=True, kw_only=True):
    """Everything one load does: what it sends, when, how, and what counts as correct."""

    url: str
    """`http://host[:port]/path?query`, or `https://` for TLS."""
    unix_socket: str | None = None
    """Path of a Unix socket to connect to instead of the URL's host. Null: TCP."""
    method: str = "GET"
    """Method of every request."""
    headers: tuple[tuple[str, str], ...] = ()
    """Extra header fields, in order. A report contains a hash instead of a secret."""
    body_base64: str | None = None
    """Request body, base64; in a report a hash of it. Null: no body."""
    targets: tuple[WeightedRequest, ...] = ()
    """Requests to choose from instead of the one above."""
    sessions: tuple[SessionPlan, ...] = ()
    """What each arrival does instead of sending one request; the rate is that of sessions."""
    load: LoadModel
    """Open or closed loop."""
    phases: Phases
    """How long each phase lasts."""
    interval_ns: NonNegativeInt | None = None
    """Length of one recording interval. Unit: ns. Null: chosen by the duration."""
    keep_flights: NonNegativeInt = 0
    """How many of the slowest requests, and of a random sample, the report lists."""
    keepalive: Literal["on", "off"] | KeepaliveLimit = "on"
    """How long a connection is kept."""
    timeout_ns: NonNegativeInt = 10_000_000_000
    """Longest time on the wire for one request, connecting included. Unit: ns."""
    deadline_ns: NonNegativeInt | None = None
    """Longest time from the intended send; later requests are dropped unsent. Unit: ns. Null:
    none."""
    threads: PositiveInt = 1
    """Generator threads."""
    seed: NonNegativeInt = 0
    """Seed of every random choice."""
    spin_window_ns: NonNegativeInt | None = None
    """How long before a send the generator busy-waits. Unit: ns. Null: chosen by rate and
    cores."""
    shares_cores: bool = False
    """Whether other processes use the generator's cores: then nothing spins unless requested."""
    receive_stamps: ReceiveStamps | None = None
    """Whose receive timestamps are reported. Null: the kernel's in an open loop."""
    check: ResponseCheck = ResponseCheck()
    """What counts as a correct response."""
    wire: Literal["native", "hyper"] = "native"
    """Which HTTP implementation frames the messages."""
    http_version: Literal["http1", "http2"] = "http1"
    """Version of HTTP."""
    tls: TlsOptions = TlsOptions()
    """Whom to trust over TLS."""
    source_addresses: tuple[str, ...] = ()
    """Source addresses of connections, used round-robin; empty for the kernel's choice."""
    floor: NoiseFloor | None = None
    """The noise floor of this machine. Null: not measured."""
    precision: PrecisionTarget | None = None
    """When the measurement may end. Null: after its planned length."""
    thresholds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """Thresholds of the checks, by check and key."""
