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
HttpVersion = Literal["http1_0", "http1", "http2"]


class Ramp(Document, frozen=True, kw_only=True):
    """A linear change of the rate."""

    from_per_s: float
    """Rate at the start of the measurement. Unit: 1/s."""
    to_per_s: float
    """Rate at the end of the ramp. Unit: 1/s."""
    over_ns: NonNegativeInt | None = None
    """Duration of the ramp; the rate is constant after it. Unit: ns. Null: the whole
    measurement."""


class Step(Document, frozen=True, kw_only=True):
    """A constant rate for some time."""

    rate_per_s: float
    """Arrivals per second; 0 is a pause. Unit: 1/s."""
    duration_ns: NonNegativeInt
    """Duration of the step. Unit: ns."""


class Replay(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Recorded arrivals, replayed at the original or another speed."""

    offsets_ns: tuple[NonNegativeInt, ...]
    """Arrival times relative to the first. Unit: ns."""
    speed: PositiveFloat
    """Speed factor; 2 replays twice as fast."""
    requests: tuple[NonNegativeInt, ...] | None = None
    """For each arrival, the index of its request in `targets`. If absent, requests are chosen by
    weight."""


class OpenLoop(Document, frozen=True, kw_only=True, omit_defaults=True):
    """An open loop: arrivals follow a schedule, regardless of how fast the server responds. Exactly
    one of `rate_per_s`, `ramp`, `steps` and `replay` is present."""

    rate_per_s: float | None = None
    """Arrivals per second over all threads. Unit: 1/s. Null: absent with another schedule."""
    ramp: Ramp | None = None
    """A linear ramp. Null: absent with another schedule."""
    steps: tuple[Step, ...] | None = None
    """Stepped rates. Null: absent with another schedule."""
    replay: Replay | None = None
    """Recorded arrivals. Null: absent with another schedule."""
    arrivals: Arrivals | None = None
    """Inter-arrival distribution. Null: absent in a replay."""
    on_busy: OnBusy
    """When the maximum number of connections is reached: `grow` and `queue` queue the request,
    `shed` drops it."""
    max_connections: NonNegativeInt | None
    """Maximum number of open connections. Null: as many as the process limits allow, at most
    4,096."""
    max_pending: NonNegativeInt | None
    """Maximum number of requests waiting for a connection; more are dropped and counted. Null: 10 s
    worth of requests, at least 10 per connection."""


class ClosedLoop(Document, frozen=True, kw_only=True):
    """A closed loop: a fixed number of users. Each waits for its response, then for a think time,
    before its next request."""

    connections: NonNegativeInt
    """Number of connections, each with one user, or `streams` users."""
    think_time_ns: NonNegativeInt = 0
    """Mean think time, exponentially distributed; 0 for none. Unit: ns."""


class LoadModel(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Open or closed loop. Exactly one of `open` and `closed` is present."""

    open: OpenLoop | None = None
    """Open loop: a schedule. Null: absent in a closed loop."""
    closed: ClosedLoop | None = None
    """Closed loop: a number of users. Null: absent in an open loop."""


class Phases(Document, frozen=True, kw_only=True):
    """The durations of the phases of a load."""

    warmup_ns: NonNegativeInt = 0
    """Warm-up: load before the measurement. Unit: ns."""
    measure_ns: NonNegativeInt
    """The measurement. Unit: ns."""
    drain_ns: NonNegativeInt | None = None
    """Maximum wait for responses after the last send. Unit: ns. Null: the request timeout."""
    cooldown_ns: NonNegativeInt = 0
    """Cool-down: load after the measurement, so that the server is under load until the last
    measured response. Unit: ns."""


class ResponseCheck(Document, frozen=True, kw_only=True):
    """When a response counts as correct. All other responses are failures."""

    statuses: tuple[int, ...] = (200,)
    """Accepted status codes."""
    body_base64: str | None = None
    """The exact body, base64. Null: not checked."""
    length: NonNegativeInt | None = None
    """Length of the body. Unit: bytes. Null: not checked."""
    sha256: str | None = None
    """SHA-256 hash of the body, hexadecimal. Null: not checked."""
    regex: str | None = None
    """Regular expression that the first MiB of the body must match. Null: not checked."""


class RequestPlan(Document, frozen=True, kw_only=True):
    """One of several requests. All of them go to the server in the plan's URL."""

    name: str | None = None
    """Name in the report. Null: method and path."""
    method: str = "GET"
    """Request method."""
    url: str
    """Path and query, or a URL of the same host."""
    headers: tuple[tuple[str, str], ...] = ()
    """Header fields, in order; those of the plan are added unless overridden here."""
    body_base64: str | None = None
    """Request body, base64. Null: no body."""
    check: ResponseCheck | None = None
    """The criteria of a correct response. Null: those of the plan."""


class WeightedRequest(Document, frozen=True, kw_only=True):
    """A request and its weight."""

    request: RequestPlan
    """The request."""
    weight: float = 1.0
    """Its share of the arrivals is its weight divided by the sum of all weights."""


class CapturePlan(Document, frozen=True, kw_only=True):
    """A value that is taken from a response and sent in later requests of the session."""

    name: str
    """Its name: later requests contain it as `{{name}}`."""
    source: Literal["json", "header", "regex"]
    """Where to find the value: in a JSON body, in a header field, or in any body."""
    expression: str
    """A path such as `.user.token`, the name of the header field, or a regular expression. If the
    expression has a group, the value is the first group; otherwise, it is the whole match."""


class StepPlan(Document, frozen=True, kw_only=True):
    """One request of a session."""

    request: RequestPlan
    """The request."""
    think_time_ns: NonNegativeInt = 0
    """Mean think time before the next request, exponentially distributed. Unit: ns."""
    captures: tuple[CapturePlan, ...] = ()
    """The values to take from its response for later requests of the session."""


class SessionPlan(Document, frozen=True, kw_only=True):
    """A session: requests one after the other over one connection, with cookies."""

    name: str
    """Name in the report."""
    weight: float = 1.0
    """Its share of the sessions is its weight divided by the sum of all weights."""
    steps: tuple[StepPlan, ...]
    """Its requests, in order."""


class KeepaliveLimit(Document, frozen=True, kw_only=True):
    """A fixed number of requests per connection."""

    requests: PositiveInt
    """Requests per connection."""


class TlsOptions(Document, frozen=True, kw_only=True):
    """TLS options."""

    insecure: bool = False
    """Whether certificates are accepted without verification."""
    ca_file: str | None = None
    """PEM file of trusted certificate authorities. Null: the system's."""
    client_cert: str | None = None
    """PEM file of the client certificate. Null: none is sent."""
    client_key: str | None = None
    """PEM file of the key of the client certificate. Null: it is in the same file."""


class NoiseFloor(Document, frozen=True, kw_only=True):
    """Response times of a server that responds immediately, measured in advance on this machine."""

    p50_ns: NonNegativeInt
    """Median. Unit: ns."""
    p99_ns: NonNegativeInt
    """p99. Unit: ns."""
    p999_ns: NonNegativeInt
    """p99.9. Unit: ns."""


class PrecisionTarget(Document, frozen=True, kw_only=True):
    """Target precision: the measurement is extended until it is reached."""

    quantile: float
    """The quantile over all offered requests."""
    half_width: float
    """Half-width of its 95 % confidence interval, relative to the quantile."""
    max_duration_ns: NonNegativeInt
    """Maximum duration of the measurement. Unit: ns."""


class LoadPlan(Document, frozen=True, kw_only=True):
    """The complete definition of one load."""

    url: str
    """`http://host[:port]/path?query`, or `https://` for TLS."""
    unix_socket: str | None = None
    """Path of a Unix socket to connect to instead of the URL's host. Null: TCP."""
    connect_to: str | None = None
    """Host and port to connect to instead of those of the URL. Null: those of the URL."""
    method: str = "GET"
    """Method of every request."""
    headers: tuple[tuple[str, str], ...] = ()
    """Extra header fields, in order. A report contains a hash instead of a secret."""
    body_base64: str | None = None
    """Request body, base64; in a report a hash of it. Null: no body."""
    targets: tuple[WeightedRequest, ...] = ()
    """Weighted requests, instead of a single one."""
    sessions: tuple[SessionPlan, ...] = ()
    """Sessions, instead of single requests; the rate is in sessions per second."""
    load: LoadModel
    """Open or closed loop."""
    phases: Phases
    """Durations of the phases."""
    interval_ns: NonNegativeInt | None = None
    """Length of a report interval. Unit: ns. Null: depends on the duration."""
    keep_flights: NonNegativeInt = 0
    """How many requests are listed in `flights` in the report: the slowest ones, and as many in a
    random sample."""
    keepalive: Literal["on", "off"] | KeepaliveLimit = "on"
    """Connection reuse: on, off, or the number of requests per connection."""
    timeout_ns: NonNegativeInt = 10_000_000_000
    """Request timeout, including connection setup. Unit: ns."""
    deadline_ns: NonNegativeInt | None = None
    """Requests not sent this long after their scheduled send time are dropped. Unit: ns. Null: no
    deadline."""
    threads: PositiveInt = 1
    """Generator threads."""
    seed: NonNegativeInt = 0
    """Random seed."""
    spin_window_ns: NonNegativeInt | None = None
    """How long before a send the generator busy-waits. Unit: ns. Null: depends on the rate and the
    cores."""
    shares_cores: bool = False
    """Whether other processes use the generator's cores. If so, the generator busy-waits only if
    `spin_window_ns` is set, and takes no real-time priority."""
    receive_stamps: ReceiveStamps | None = None
    """How responses are timestamped: by the `kernel`, by the generator (`user`), or `sampled`
    (mostly by the generator). Null: `kernel` in an open loop, `user` in a closed loop."""
    check: ResponseCheck = ResponseCheck()
    """The criteria of a correct response."""
    wire: Literal["native", "hyper"] = "native"
    """HTTP implementation."""
    http_version: HttpVersion = "http1"
    """HTTP version: 1.0, 1.1 or 2."""
    streams: PositiveInt = 1
    """Maximum number of concurrent requests on each connection; more than 1 only over HTTP/2."""
    tls: TlsOptions = TlsOptions()
    """TLS options."""
    source_addresses: tuple[str, ...] = ()
    """Source addresses of connections, used round-robin; empty: chosen by the kernel."""
    noise_floor: NoiseFloor | None = None
    """This machine's noise floor. Null: not measured."""
    requests: PositiveInt | None = None
    """A closed loop ends after this many requests, or after the duration. Null: no limit."""
    precision: PrecisionTarget | None = None
    """Target precision that extends the measurement. Null: fixed duration."""
    thresholds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """Thresholds of the checks, by check and key."""

    @property
    def users(self) -> int | None:
        """Users of a closed loop. ``None`` for an open loop."""
        closed = self.load.closed
        return None if closed is None else closed.connections * self.streams
