"""The plan of one load: the input of the generator, repeated in its report.

Generated from the types in ``crates/loadgen/src/plan`` by ``make schemas``; do not edit. The
generator validates a plan and fills in its fixed defaults; ``None`` means that the generator
chooses the value.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveInt

CaptureSource = Literal["json", "header", "regex"]
Arrivals = Literal["poisson", "constant"]
OnBusy = Literal["grow", "queue", "shed"]
ReceiveStamps = Literal["kernel", "sampled", "user"]
Wire = Literal["native", "hyper"]
HttpVersion = Literal["http1_0", "http1", "http2"]


class ResponseCheck(Document, frozen=True, kw_only=True):
    """The criteria for a correct response. All other responses are failures."""

    statuses: tuple[NonNegativeInt, ...] = (200,)
    """Accepted status codes."""
    body_base64: str | None = None
    """Expected body, base64. Null: not checked."""
    length: NonNegativeInt | None = None
    """Expected length of the body. Unit: bytes. Null: not checked."""
    sha256: str | None = None
    """Expected SHA-256 hash of the body, hexadecimal. Null: not checked."""
    regex: str | None = None
    """Regular expression that must have a match in the first MiB of the body. Null: not checked."""


class RequestPlan(Document, frozen=True, kw_only=True):
    """One of several requests of a plan. All requests go to the same server."""

    name: str | None = None
    """Name of the request in the report. Null: not set; the report contains the method and path."""
    method: str = "GET"
    """Request method."""
    url: str
    """Path and query, or a URL with the same host as the plan's URL."""
    headers: tuple[tuple[str, str], ...] = ()
    """Header fields, in order. The plan's header fields are added, unless the request has a field
    of the same name."""
    body_base64: str | None = None
    """Request body, base64. Null: no body."""
    check: ResponseCheck | None = None
    """The criteria for a correct response. Null: not set; the plan's `check` applies."""


class WeightedRequest(Document, frozen=True, kw_only=True):
    """A request and its weight."""

    request: RequestPlan
    """The request."""
    weight: float = 1.0
    """Weight of the request. The request's share of the arrivals is the weight divided by the sum
    of all weights."""


class CapturePlan(Document, frozen=True, kw_only=True):
    """A value that is taken from a response and sent in later requests of the session."""

    name: str
    """Name of the value: later requests contain it as `{{name}}`."""
    source: CaptureSource
    """Where to find the value: `json` (in a JSON body), `header` (in a header field) or `regex` (in
    any body)."""
    expression: str
    """How to find the value: a path such as `.user.token`, the name of the header field, or a
    regular expression. A regular expression yields its first group or, without a group, the whole
    match."""


class StepPlan(Document, frozen=True, kw_only=True):
    """One request of a session."""

    request: RequestPlan
    """The request."""
    think_time_ns: NonNegativeInt = 0
    """Mean of the exponentially distributed think time before the next request. Unit: ns."""
    captures: tuple[CapturePlan, ...] = ()
    """Values to take from the response for later requests of the session."""


class SessionPlan(Document, frozen=True, kw_only=True):
    """A session: requests in sequence over one connection, with cookies."""

    name: str
    """Name of the session in the report."""
    weight: float = 1.0
    """Weight of the session. The session's share of all sessions is the weight divided by the sum
    of all weights."""
    steps: tuple[StepPlan, ...]
    """Requests of the session, in order."""


class Ramp(Document, frozen=True, kw_only=True):
    """A linear change of the rate."""

    from_per_s: float
    """Rate at the start of the measurement. Unit: 1/s."""
    to_per_s: float
    """Rate at the end of the ramp. Unit: 1/s."""
    over_ns: NonNegativeInt | None = None
    """Duration of the ramp; afterwards, the rate is constant. Unit: ns. Null: the ramp lasts for
    the whole measurement."""


class Replay(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Recorded arrivals, replayed at the original or another speed."""

    requests: tuple[NonNegativeInt, ...] | None = None
    """For each arrival, the index of its request in `targets`. If absent, requests are chosen by
    weight."""
    offsets_ns: tuple[NonNegativeInt, ...]
    """Arrival times, relative to the first arrival. Unit: ns."""
    speed: float
    """Speed factor; 2 replays twice as fast. Unit: ratio."""


class Step(Document, frozen=True, kw_only=True):
    """A constant rate for a given time."""

    rate_per_s: float
    """Arrivals per second; 0 is a pause. Unit: 1/s."""
    duration_ns: NonNegativeInt
    """Duration of the step. Unit: ns."""


class OpenLoop(Document, frozen=True, kw_only=True, omit_defaults=True):
    """An open loop: arrivals follow a schedule, regardless of how fast the server responds. Exactly
    one of `rate_per_s`, `ramp`, `steps` and `replay` is present."""

    arrivals: Arrivals | None = None
    """Inter-arrival distribution: `poisson` or `constant`. Null: absent in a replay."""
    ramp: Ramp | None = None
    """Linear change of the rate. Null: absent with another load profile."""
    rate_per_s: float | None = None
    """Constant rate: arrivals per second over all threads. Unit: 1/s. Null: absent with another
    load profile."""
    replay: Replay | None = None
    """Recorded arrivals. Null: absent with another load profile."""
    steps: tuple[Step, ...] | None = None
    """Constant rates, one after the other. Null: absent with another load profile."""
    on_busy: OnBusy
    """What happens to a request when the maximum number of connections is open and all are busy:
    `grow` and its synonym `queue` queue the request, `shed` drops the request."""
    max_connections: NonNegativeInt | None
    """Maximum number of open connections. Unit: connections. Null: not set; 4,096, or fewer if
    there are not enough file descriptors or ports."""
    max_pending: NonNegativeInt | None
    """Maximum number of requests waiting for a connection; further requests are dropped. Unit:
    requests. Null: not set; the number of requests in 10 s at the highest rate of the load profile,
    but at least 10 per connection."""


class ClosedLoop(Document, frozen=True, kw_only=True):
    """A closed loop: a fixed number of users. After each response, a user pauses for the think time
    and then sends the next request."""

    connections: NonNegativeInt
    """Number of connections. Each has one user or, with HTTP/2, `streams` users. Unit:
    connections."""
    think_time_ns: NonNegativeInt = 0
    """Mean of the exponentially distributed think time; 0 for none. Unit: ns."""


class LoadModel(Document, frozen=True, kw_only=True, omit_defaults=True):
    """An open or a closed loop. Exactly one of `open` and `closed` is present."""

    open: OpenLoop | None = None
    """The open loop. Null: absent in a closed loop."""
    closed: ClosedLoop | None = None
    """The closed loop. Null: absent in an open loop."""


class Phases(Document, frozen=True, kw_only=True):
    """The durations of the phases of a load."""

    warmup_ns: NonNegativeInt = 0
    """Duration of the warm-up: load before the measurement. Unit: ns."""
    measure_ns: NonNegativeInt
    """Duration of the measurement. Unit: ns."""
    cooldown_ns: NonNegativeInt = 0
    """Duration of the cool-down: load after the measurement, so that the server is still under load
    while it handles the last measured requests. Unit: ns."""
    drain_ns: NonNegativeInt | None = None
    """Maximum wait for responses after the last send. Unit: ns. Null: not set; the request timeout
    plus 500 ms."""


class KeepaliveLimit(Document, frozen=True, kw_only=True):
    """A maximum number of requests per connection."""

    requests: PositiveInt
    """A maximum number of requests per connection."""


class TlsOptions(Document, frozen=True, kw_only=True):
    """TLS options."""

    insecure: bool = False
    """Whether certificates are accepted without verification."""
    ca_file: str | None = None
    """PEM file of trusted certificate authorities. Null: not set; the system's certificate
    authorities are trusted."""
    client_cert: str | None = None
    """PEM file of the client certificate. Null: no client certificate."""
    client_key: str | None = None
    """PEM file of the client certificate's private key. Null: not set; the key is in
    `client_cert`."""


class NoiseFloor(Document, frozen=True, kw_only=True):
    """The noise floor: response times measured in advance on this machine against a server that
    responds immediately."""

    p50_ns: NonNegativeInt
    """Median response time. Unit: ns."""
    p99_ns: NonNegativeInt
    """p99 response time. Unit: ns."""
    p999_ns: NonNegativeInt
    """p99.9 response time. Unit: ns."""


class PrecisionTarget(Document, frozen=True, kw_only=True):
    """The target precision of a quantile. The measurement ends after 1, 2, 4, 8 … times its
    shortest length, as soon as the target is reached, and at the latest after the last of these
    lengths that `max_duration_ns` allows."""

    quantile: float
    """Quantile to which the target applies, over all scheduled requests. Unit: ratio."""
    half_width: float
    """Largest acceptable half-width of the quantile's 95 % confidence interval, relative to the
    quantile. Unit: ratio."""
    max_duration_ns: NonNegativeInt
    """Maximum duration of the measurement. Unit: ns."""


class LoadPlan(Document, frozen=True, kw_only=True):
    """The complete definition of one load."""

    url: str
    """URL of the request: `http://host[:port]/path?query`, or `https://` for TLS."""
    unix_socket: str | None = None
    """Path of the Unix socket to connect to, instead of the URL's host, which is then used only in
    the header `Host`. Null: not set; TCP is used."""
    connect_to: str | None = None
    """`HOST:PORT` to connect to, instead of those in the URL. The name in the URL is still used in
    requests and for TLS. Null: not set; those in the URL are used."""
    method: str = "GET"
    """Method of the request; `targets` and `sessions` have their own methods."""
    headers: tuple[tuple[str, str], ...] = ()
    """Additional header fields, in order. `Host` is set from the URL unless it is given here.
    Unless `--store-secrets` is given, reports of `wsgiload` contain hashes instead of
    [secrets](secrets.md)."""
    body_base64: str | None = None
    """Request body, base64. Unless `--store-secrets` is given, reports of `wsgiload` contain a hash
    instead. Null: no body."""
    targets: tuple[WeightedRequest, ...] = ()
    """Weighted requests, used instead of the single request. The plan's header fields are added to
    each of them."""
    sessions: tuple[SessionPlan, ...] = ()
    """Sessions, used instead of single requests. The rate is then in sessions per second."""
    load: LoadModel
    """Open or closed loop."""
    phases: Phases
    """Durations of the phases."""
    interval_ns: NonNegativeInt | None = None
    """Length of a report interval. Unit: ns. Null: not set; 1 s, or longer if so many intervals
    would not fit into memory."""
    keep_flights: NonNegativeInt = 0
    """Number of slowest requests in the report's `flights`; the random sample has the same size.
    Unit: requests."""
    keepalive: Literal["on", "off"] | KeepaliveLimit = "on"
    """Connection reuse: `on`, `off`, or a maximum number of requests per connection."""
    timeout_ns: NonNegativeInt = 10_000_000_000
    """Timeout of a request, including connection setup. Unit: ns."""
    deadline_ns: NonNegativeInt | None = None
    """Maximum delay of a send after its scheduled time. A request that is not sent within this time
    is dropped. Unit: ns. Null: not set; there is no deadline."""
    threads: PositiveInt = 1
    """Number of generator threads, each with its own event loop, connections and histograms. Unit:
    threads."""
    processes: PositiveInt = 1
    """Number of generator processes, each with that many threads, which share one schedule. Unit:
    processes."""
    seed: NonNegativeInt = 0
    """Seed of all random numbers: arrivals, their distribution over threads, the choice of idle
    connections."""
    spin_window_ns: NonNegativeInt | None = None
    """Duration of the busy-wait before each send. Unit: ns. Null: not set; chosen according to the
    rate and the cores."""
    shares_cores: bool = False
    """Whether other processes use the generator's cores. On shared cores, the generator does not
    use real-time priority, and busy-waits only if `spin_window_ns` is set."""
    receive_stamps: ReceiveStamps | None = None
    """How responses are timestamped: by the kernel (`kernel`), by the generator (`user`), or by the
    generator with additional kernel timestamps on some connections (`sampled`). Null: not set;
    `kernel` in an open loop, `user` in a closed loop."""
    check: ResponseCheck = ResponseCheck()
    """The criteria for a correct response."""
    wire: Wire = "native"
    """HTTP/1.1 implementation of the generator: its own (`native`), or the library hyper (`hyper`).
    HTTP/2 always uses its own."""
    http_version: HttpVersion = "http1"
    """HTTP version: `http1_0`, `http1` (HTTP/1.1) or `http2`."""
    streams: PositiveInt = 1
    """Maximum number of concurrent requests on each connection, at most 250; above 1 only with
    HTTP/2. Unit: requests."""
    tls: TlsOptions = TlsOptions()
    """TLS options."""
    source_addresses: tuple[str, ...] = ()
    """Source addresses of the connections, used round-robin: `127.0.0.2`, `127.0.0.2-127.0.0.50`,
    `127.0.0.0/24`. If empty, the kernel chooses the address; over loopback, enough addresses are
    used that ports do not run out ([transports.md](transports.md))."""
    noise_floor: NoiseFloor | None = None
    """Noise floor of this machine. Null: the machine was not calibrated."""
    requests: PositiveInt | None = None
    """Number of requests after which a closed loop ends, unless its duration ends first. Unit:
    requests. Null: not set; there is no limit."""
    precision: PrecisionTarget | None = None
    """Target precision of a quantile. Null: not set; the duration is fixed."""
    thresholds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """Thresholds by name of the check and name of the threshold; missing thresholds have their
    defaults."""
