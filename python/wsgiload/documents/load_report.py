"""The report of one load, as ``wsgiload load --json`` and ``loadgen --json`` write it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    QuantileKey,
    Share,
    StatusCode,
)
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.resources import ResourceUse

Level = Literal["warn", "invalid"]
Blame = Literal["client", "host", "method", "server"]


class Reason(Document, frozen=True, kw_only=True):
    """One finding of a check."""

    check: str
    """Name of the check that fired, such as `send-lag`."""
    level: Level
    """`warn` (the figures are usable) or `invalid` (they must not be used)."""
    message: str
    """What the check found, in one sentence."""
    fix: str | None = None
    """How to fix the cause. Null: no fix is known, or `message` contains the fix."""
    value: float | str | bool | None
    """Measured value. Unit: depends on the check. Source: the check. Null: the check compares no
    value."""
    limit: float | str | bool | None
    """Limit for the measured value. Unit: depends on the check. Source: the check. Null: the check
    compares no value."""


class Verdict(Document, frozen=True, kw_only=True):
    """Whether the figures can be trusted and, if not, why."""

    status: Literal["valid", "warn", "invalid"]
    """`valid`, `warn` or `invalid` ([terminology.md](terminology.md#validity)). Source: checks."""
    blame: Blame | None
    """Cause of the most severe finding: `client` (the generator), `host` (the machine), `method`
    (the plan) or `server`. Source: checks. Null: no check fired."""
    reasons: tuple[Reason, ...]
    """One entry per check that fired. Source: checks."""


class Rates(Document, frozen=True, kw_only=True):
    """Rates of a load (key `rate`) or of a cell (key `rate_result`)."""

    offered_per_s: NonNegativeFloat | None
    """Scheduled requests per second; the mean rate if the [rate varies](schedules.md). Unit: 1/s.
    Source: schedule. Null: closed loop."""
    sent_per_s: NonNegativeFloat | None
    """Requests sent per second. Unit: 1/s. Source: generator. Null: nothing was measured."""
    achieved_per_s: NonNegativeFloat | None
    """Complete responses per second, correct or not. Unit: 1/s. Source: generator. Null: nothing
    was measured."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses per second. Unit: 1/s. Source: generator. Null: nothing was measured."""


class Outcomes(Document, frozen=True, kw_only=True):
    """The number of requests with each outcome. Every request has exactly one outcome, so
    `scheduled` is the sum of all other values."""

    scheduled: NonNegativeInt
    """Requests whose scheduled send time is in the measurement. Unit: requests. Source:
    schedule."""
    ok: NonNegativeInt
    """Requests with a correct response: expected status and body. Unit: requests. Source:
    generator."""
    http_status: NonNegativeInt
    """Requests whose response has an unexpected status. Unit: requests. Source: generator."""
    bad_body: NonNegativeInt
    """Requests whose response is not valid HTTP, or is
    [unsolicited](transports.md#unsolicited-responses), or has the expected status but a body of
    wrong length, content or framing. Unit: requests. Source: generator."""
    reset: NonNegativeInt
    """Requests whose connection was lost in the middle of the response or, on a new connection,
    before the response, or whose [TLS handshake failed](transports.md#tls). Unit: requests. Source:
    generator."""
    stale: NonNegativeInt
    """Requests on a reused connection that was lost before the first byte of the response. Unit:
    requests. Source: generator."""
    refused: NonNegativeInt
    """Requests whose connection attempt failed: refused, or host unreachable. Unit: requests.
    Source: generator."""
    connect_timeout: NonNegativeInt
    """Requests whose connection was not established within the timeout. Unit: requests. Source:
    generator."""
    timeout: NonNegativeInt
    """Requests that were sent, or that waited for an HTTP/2 stream, but got no complete response
    within the timeout. Unit: requests. Source: generator."""
    dropped: NonNegativeInt
    """Requests that were never sent because the queue was full (`--max-pending`), all connections
    were busy (`--on-busy shed`) or the deadline passed (`--deadline`). Unit: requests. Source:
    generator."""
    unfinished: NonNegativeInt
    """Requests that were still in the system when the drain ended or the load was interrupted.
    Unit: requests. Source: generator."""
    client_error: NonNegativeInt
    """Requests that failed because the generator ran out of file descriptors, ports or memory, or
    because a captured value made the URL too long. The measurement is invalid if more than 0.1 % of
    the requests failed for these reasons. Unit: requests. Source: generator."""


class Distribution(Document, frozen=True, kw_only=True):
    """The distribution of a duration, such as the response time, in the measurement."""

    count: NonNegativeInt
    """Number of recorded values. Unit: requests. Source: generator."""
    min: NonNegativeInt | None
    """Minimum, exact. Unit: ns. Source: generator. Null: no values were recorded."""
    mean: NonNegativeFloat | None
    """Mean. Unit: ns. Source: generator. Null: no values were recorded."""
    max: NonNegativeInt | None
    """Maximum, exact. Unit: ns. Source: generator. Null: no values were recorded."""
    quantiles: dict[QuantileKey, NonNegativeInt | None]
    """Quantiles from `0.5` to `0.9999`; at most 0.1 % above the exact value. Unit: ns. Source:
    histogram. Null: an entry: no values were recorded."""
    intervals_95: dict[QuantileKey, tuple[NonNegativeInt | None, NonNegativeInt | None] | None]
    """Lower and upper end of each quantile's 95 % confidence interval; the upper end is null if the
    interval is unbounded. Unit: ns. Source: batches. Null: an entry: `uncertainty` contains no
    interval, or the values are not response times."""
    hdr_v2: str | None
    """Full histogram (HdrHistogram V2, compressed, base64). Source: generator. Null: not stored."""


class Bounds(Document, frozen=True, kw_only=True):
    """Lower and upper bound of a quantile over all scheduled requests."""

    low: NonNegativeInt | None
    """Lower bound: a request that timed out or stayed unfinished counts as if its response had
    arrived when the generator stopped waiting. Unit: ns. Source: outcomes. Null: so many requests
    failed in other ways that the quantile has no finite value."""
    high: NonNegativeInt | None
    """Upper bound: every request without a correct response counts as infinitely slow. Equal to
    `low` if the timed-out and unfinished requests cannot affect the quantile. Unit: ns. Source:
    outcomes. Null: so many requests failed that the quantile has no finite value."""


class NotChecked(Document, frozen=True, kw_only=True):
    """A check that could not run."""

    check: str
    """Name of the check."""
    reason: str
    """Why the check could not run."""


class Diagnostic(Document, frozen=True, kw_only=True):
    """An observation made by a check. Observations do not affect the verdict, but can help to
    explain a result."""

    check: str
    """Name of the check."""
    message: str
    """The observation, in one sentence."""
    value: float
    """Measured value. Unit: depends on the check."""
    limit: float
    """Limit at which the observation is reported. Unit: depends on the check."""


class ErrorBudget(Document, frozen=True, kw_only=True):
    """The possible error of one quantile of the response time
    ([statistics.md](statistics.md#the-error-budget))."""

    value: NonNegativeInt
    """Measured quantile. Unit: ns. Source: response times."""
    generator: tuple[NonNegativeInt, NonNegativeInt]
    """Lower end: the quantile without the generator's delays (send lag and `receive_delay_ns`).
    Upper end: the measured quantile. Unit: ns. Source: generator."""
    sampling_95: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Lower and upper end of the quantile's 95 % confidence interval; the upper end is null if the
    interval is unbounded. Unit: ns. Source: batches. Null: fewer than 300 requests, interrupted
    load, or the quantile has no finite value."""
    noise_floor: NonNegativeInt | None
    """Noise floor of this machine at this quantile. Unit: ns. Source: `wsgiload calibrate`. Null:
    the machine was not calibrated."""
    undisturbed: NonNegativeInt | None
    """The quantile over the intervals in which the host was not
    [disturbed](terminology.md#validity), excluding the first interval after each disturbed
    interval. Equal to `value` if the host was never disturbed. Unit: ns. Source: intervals, host.
    Null: always in the JSON of one load; in `summary.json`, if the host was not observed or fewer
    than ten responses are slower than the quantile."""
    band: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Range in which the quantile would lie if the generator caused no delay. It is `sampling_95`
    with the lower end reduced by the p50 of the noise floor and by the width of `generator`. Unit:
    ns. Source: derived. Null: `sampling_95` is null."""
    bound_status: Literal["bounded", "upper_bound", "few_responses"]
    """`bounded` (the true value lies in `band`), `upper_bound` (the generator may have increased
    the quantile by more than 10 % and 100 µs, so the true value may be lower) or `few_responses`
    (the quantile is [not resolved](#quantileuncertainty), usually because there are too few
    responses). Source: derived."""


class PrecisionReached(Document, frozen=True, kw_only=True):
    """The precision that was reached for the quantile in `plan.precision`."""

    half_width: NonNegativeFloat | None
    """Half-width of the quantile's 95 % confidence interval, relative to the quantile. Unit: ratio.
    Source: `uncertainty`. Null: the quantile is not resolved, or the interval is unbounded."""
    is_reached: bool
    """Whether the target was reached: `half_width` is at most `plan.precision.half_width`. Source:
    derived."""


class QuantileUncertainty(Document, frozen=True, kw_only=True):
    """The uncertainty of one quantile within one run."""

    interval_95_ns: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Lower and upper end of the quantile's 95 % confidence interval; the upper end is null if the
    interval is unbounded. Unit: ns. Source: derived. Null: fewer than 300 requests, interrupted
    load, or the quantile has no finite value."""
    effective_requests: NonNegativeFloat | None
    """Number of [effective requests](terminology.md#statistics). Unit: requests. Source: variance
    over 30, 60 and 120 batches. Null: fewer than 300 requests, or interrupted load."""
    resolution_status: Literal["headline", "resolved", "not_resolved"]
    """`headline` (at least 100 effective requests are slower than the quantile), `resolved` (at
    least 10) or `not_resolved` (see `reason`). Source: derived."""
    reason: (
        Literal[
            "too_few_requests",
            "too_few_effective_requests",
            "not_met",
            "below_noise_floor",
            "interrupted",
        ]
        | None
    )
    """Why the quantile is not resolved: `too_few_requests` (fewer than 300),
    `too_few_effective_requests` (fewer than 10 are slower than the quantile), `not_met` (too many
    requests failed, so the quantile has no finite value), `below_noise_floor` (the quantile is less
    than three times the noise floor, so the value is only an upper bound) or `interrupted`. Source:
    derived. Null: the quantile is resolved."""


class Uncertainty(Document, frozen=True, kw_only=True):
    """The uncertainty of each quantile within one run, and whether the quantile is resolved."""

    offered_quantiles_ns: dict[QuantileKey, QuantileUncertainty]
    """Uncertainty of each quantile over all scheduled requests; failures count as slower than any
    response. Source: batches."""
    response_time_ns: dict[QuantileKey, QuantileUncertainty]
    """Uncertainty of each quantile over correct responses. Source: batches."""


class ChangePoint(Document, frozen=True, kw_only=True):
    """A change of the median response time during the measurement."""

    at_ns: NonNegativeInt
    """Time of the change. Unit: ns from the start of the measurement. Source: derived."""
    p50_before_ns: NonNegativeInt
    """Median response time before the change. Unit: ns. Source: time slices."""
    p50_after_ns: NonNegativeInt
    """Median response time after the change. Unit: ns. Source: time slices."""


class Stationarity(Document, frozen=True, kw_only=True):
    """Whether response times changed during the measurement."""

    state: Literal["stationary", "drifting", "non_stationary", "unstable"] | None
    """`stationary`; `drifting` (response times changed between the first and the last third,
    confirmed by the KPSS stationarity test); `non_stationary` (the median response time changed by
    more than 25 % and 50 µs); or `unstable` (the backlog grew, or more than 1 % of the requests
    were dropped because the queue was full). Source: checks `stationarity` and `backlog-growth`.
    Null: not checked."""
    reason: str | None
    """Why the response times were not checked. Null: they were checked."""
    slice_ns: NonNegativeInt | None
    """Length of the compared time slices. A slice is long enough for 1,000 responses, but at
    least 1 s, at most 5 s, and never shorter than a report interval. A measurement that is shorter
    than ten such slices is divided into 10 to 30 shorter slices. Unit: ns. Source: derived. Null:
    not checked."""
    p50_drift: float | None
    """Relative change of the median response time between the first and the last third of the
    measurement. Unit: ratio. Source: time slices. Null: not checked."""
    p99_drift: float | None
    """Relative change of the p99 response time between the first and the last third of the
    measurement. Unit: ratio. Source: time slices. Null: not checked, or the measurement was divided
    into shorter slices (`slice_ns`)."""
    p50_kpss: NonNegativeFloat | None
    """KPSS statistic of the logarithms of the slices' median response times. It exceeds 0.739 in 1
    % of stationary series. Source: time slices. Null: not checked."""
    p99_kpss: NonNegativeFloat | None
    """KPSS statistic of the logarithms of the slices' p99 response times. It exceeds 0.739 in 1 %
    of stationary series. Source: time slices. Null: as for `p99_drift`."""
    p50_range: NonNegativeFloat | None
    """Changes of the median response time divide the measurement into segments. The value is the
    difference between the highest and the lowest segment median, relative to the lowest.
    Unit: ratio. Source: time slices. Null: not checked."""
    changes: tuple[ChangePoint, ...]
    """All changes of the median response time. Source: time slices."""
    settled_after_ns: NonNegativeInt | None
    """Time of the last change, after which response times were steady. Lengthen the warm-up by this
    time. Unit: ns from the start of the measurement. Source: derived. Null: no change, or a change
    in the second half."""


class RequestsInSystem(Document, frozen=True, kw_only=True):
    """The number of requests [in the system](terminology.md#statistics)."""

    mean: NonNegativeFloat
    """Mean number of requests in the system during the measurement. Unit: requests. Source:
    generator."""
    growth: float | None
    """Growth of the number of requests in the system during the measurement, divided by `mean`;
    about 2 if a backlog grew steadily from zero. Unit: ratio. Source: Theil–Sen slope (median of
    all pairwise slopes). Null: closed loop, varying rate, fewer than 1,000 requests, or interrupted
    load."""


class SendGaps(Document, frozen=True, kw_only=True):
    """A comparison of the send times with the requested Poisson process."""

    count: NonNegativeInt
    """Number of tested inter-arrival times, taken from the middle of the measurement. Source:
    generator."""
    anderson_darling: float
    """Anderson-Darling statistic for exponential inter-arrival times. It exceeds 1.959 for 1 % of
    true Poisson processes. Source: derived."""
    kolmogorov_distance: NonNegativeFloat
    """Kolmogorov-Smirnov distance of the inter-arrival times from the exponential distribution.
    Source: derived."""
    dispersion_deviation: NonNegativeFloat | None
    """The index of dispersion (variance divided by mean) is computed for the number of sends per 10
    ms, per 100 ms and per 1 s. The value is its largest deviation from 1. Unit: standard errors.
    Source: derived. Null: too few sends."""


class Build(Document, frozen=True, kw_only=True):
    """How the generator was built."""

    profile: str
    """`release` or `debug`; debug builds are unsuitable for measurements. Source: build."""
    target_cpu: str | None
    """Instruction set for which the generator was built. Source: build. Null: the compiler's
    default was used."""
    git_sha: str | None
    """Commit from which the generator was built. Source: build. Null: the source was not a git
    checkout."""


class Tool(Document, frozen=True, kw_only=True):
    """The tool that made the measurement."""

    name: str
    """`wsgiload`; the binary `loadgen` reports the same name."""
    version: str
    """Version of the tool. Source: build."""
    build: Build
    """How the generator was built. Source: build."""


class LocalPorts(Document, frozen=True, kw_only=True):
    """The local ports that the connections can use."""

    source_addresses: tuple[str, ...] | None
    """Source addresses of the connections, used round-robin. Source: plan, or chosen automatically
    for loopback servers. Null: the kernel chose the address."""
    free: NonNegativeInt
    """Ports that were free for connections to this server before the load. Unit: ports. Source:
    `/proc/sys/net/ipv4`, `/proc/net/tcp`."""
    needed_at_most: NonNegativeInt
    """Upper bound on the number of ports that the load needs at the same time. Unit: ports. Source:
    derived."""
    warning: str | None
    """Warning that ports may run out, with a fix. Source: derived. Null: there are enough ports."""


class TrackedConnections(Document, frozen=True, kw_only=True):
    """The kernel's connection tracking (conntrack) table. When the table is full, the kernel drops
    new connections, so the server seems slow (alarm [`network-resources`](alarms.md))."""

    before: NonNegativeInt
    """Entries of the conntrack table before the first connection of the load. Unit: connections.
    Source: `/proc/sys/net/netfilter/nf_conntrack_count`."""
    after: NonNegativeInt
    """Entries of the conntrack table after the last connection. The kernel keeps an entry after its
    connection has ended, usually for 2 minutes. Unit: connections. Source:
    `/proc/sys/net/netfilter/nf_conntrack_count`."""
    max: NonNegativeInt
    """Maximum number of entries of the conntrack table. Unit: connections. Source:
    `/proc/sys/net/netfilter/nf_conntrack_max`."""


class RequestsPerConnection(Document, frozen=True, kw_only=True):
    """The number of requests per connection."""

    min: NonNegativeInt | None
    """Lowest number of requests on one connection. Unit: requests. Source: generator. Null: no
    connection was opened."""
    mean: NonNegativeFloat | None
    """Mean number of requests on one connection. Unit: requests. Source: generator. Null: no
    connection was opened."""
    max: NonNegativeInt | None
    """Highest number of requests on one connection. Unit: requests. Source: generator. Null: no
    connection was opened."""


class ConnectionCounts(Document, frozen=True, kw_only=True):
    """How connections were used, including warm-up and cool-down."""

    opened: NonNegativeInt
    """Connections that the generator opened. Unit: connections. Source: generator."""
    reused: NonNegativeInt | None
    """Requests sent on a connection that had already been used. Unit: requests. Source: generator.
    Null: not recorded."""
    closed_by_server: NonNegativeInt | None
    """Connections that the server closed. Unit: connections. Source: generator. Null: not
    recorded."""
    peak: NonNegativeInt | None
    """Highest number of connections open at the same time; with several threads, the sum of the
    threads' peaks, which may exceed the true peak. Unit: connections. Source: generator. Null: not
    recorded."""
    max_connections: PositiveInt
    """Maximum number of connections allowed at the same time. Unit: connections. Source: plan, file
    descriptor limit, free ports."""
    requests_per_connection: RequestsPerConnection | None
    """Number of requests per connection. Unit: requests. Source: generator. Null: no connection was
    recorded."""
    allowed_streams: NonNegativeInt | None = None
    """Lowest limit that the server set for the concurrent streams of a connection. Unit: streams.
    Source: the server's HTTP/2 settings. Null: every limit is at least `plan.streams`."""
    failures: dict[str, PositiveInt]
    """Number of failed connections by cause. After the first eight causes, all others count as
    `further causes`. Unit: connections. Source: kernel, TLS."""
    local_ports: LocalPorts | None
    """Local ports before the first connection ([transports.md](transports.md)). Source: kernel.
    Null: Unix socket, or no `/proc`."""
    tracked: TrackedConnections | None
    """The kernel's connection tracking (conntrack) table, which all programs share. Source: kernel.
    Null: Unix socket, `nf_conntrack` is not loaded, or the table is hidden from a container."""


class RequestCounts(Document, frozen=True, kw_only=True):
    """The results of one target, or of one request of a session."""

    name: str
    """Name of the target, or its method and path. For a request of a session, the session's name
    and the request's position come first, as in `browse[2] GET /cart`. Source: options."""
    scheduled: NonNegativeInt
    """Scheduled requests of this target in the measurement. The sum over all targets is the load's
    `outcomes.scheduled`. Unit: requests. Source: generator."""
    ok: NonNegativeInt
    """Requests of this target with a correct response. Unit: requests. Source: generator."""
    failed: NonNegativeInt
    """Requests of this target without a correct response. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time of the correct responses. Unit: ns. Source: kernel or generator
    timestamps. Null: no correct response, or the histograms of all targets would need more than 256
    MiB (more than 900 targets with one thread)."""
    p99_ns: NonNegativeInt | None
    """p99 response time of the correct responses. Unit: ns. Source: kernel or generator timestamps.
    Null: as for `p50_ns`."""
    max_ns: NonNegativeInt | None
    """Longest response time of the correct responses. Unit: ns. Source: kernel or generator
    timestamps. Null: as for `p50_ns`."""


class WrongResponse(Document, frozen=True, kw_only=True):
    """The first incorrect response with a given outcome and status."""

    outcome: Literal["http_status", "bad_body"]
    """`http_status` or `bad_body`. Source: generator."""
    status: NonNegativeInt | None
    """Status of the response. Source: server. Null: the response head could not be read."""
    reason: str | None
    """Why the response head or body was rejected. Source: generator. Null: the response was
    rejected because of its status."""
    first_line: str
    """The first 300 bytes of the response's first line. Source: server."""
    location: str | None
    """`Location` header of the response. Source: server. Null: no such header."""
    content_encoding: str | None
    """`Content-Encoding` header of the response. Source: server. Null: no such header, or
    `identity`."""
    body: str | None
    """The first 300 bytes of the response body, as text. Source: server. Null: the body has a
    content encoding, or the response head could not be read."""


class SessionCounts(Document, frozen=True, kw_only=True):
    """The outcomes of the sessions that began in the measurement."""

    started: NonNegativeInt
    """Sessions that began in the measurement; the sum of `completed`, `failed` and `unfinished`.
    Unit: sessions. Source: generator."""
    completed: NonNegativeInt
    """Sessions whose requests all got a correct response. Unit: sessions. Source: generator."""
    failed: NonNegativeInt
    """Sessions that ended because a request got no correct response, or that were dropped before
    their first request. Unit: sessions. Source: generator."""
    unfinished: NonNegativeInt
    """Sessions that were still running when the load ended. Unit: sessions. Source: generator."""
    requests_not_reached: NonNegativeInt
    """Requests that were never scheduled because their session failed or was unfinished. No other
    count includes them. Unit: requests. Source: generator."""
    duration_ns: Distribution | None
    """Duration of the completed sessions, including think times, from the scheduled start to the
    last response. Unfinished sessions are excluded, so the longest sessions may be missing. Unit:
    ns. Source: generator. Null: no session was completed."""


class Interval(Document, frozen=True, kw_only=True):
    """One report interval of the measurement."""

    start_ns: NonNegativeInt
    """Start of the interval. Unit: ns (CLOCK_MONOTONIC). Source: generator."""
    length_ns: NonNegativeInt
    """Length of the interval. Unit: ns. Source: generator."""
    scheduled: NonNegativeInt
    """Requests that were due in this interval. Unit: requests. Source: generator."""
    sent: NonNegativeInt
    """Requests due in this interval that were sent. Unit: requests. Source: generator."""
    ok: NonNegativeInt
    """Requests due in this interval that got a correct response. Unit: requests. Source:
    generator."""
    failed: NonNegativeInt
    """Requests due in this interval that failed. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time of the correct responses. Unit: ns. Source: generator. Null: no correct
    response."""
    p99_ns: NonNegativeInt | None
    """p99 response time of the correct responses. Unit: ns. Source: generator. Null: no correct
    response."""
    max_ns: NonNegativeInt | None
    """Longest response time of the correct responses. Unit: ns. Source: generator. Null: no correct
    response."""
    hdr_v2: str | None
    """Histogram of the correct responses' response times (HdrHistogram V2, compressed, base64).
    Source: generator. Null: no correct response."""


class Flights(Document, frozen=True, kw_only=True):
    """When selected requests were in the system. In a sweep, `slowest` and `sample` contain at most
    2,000 requests each."""

    slowest: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """The slowest requests of the measurement, slowest first, each as `[scheduled send time, end]`.
    A failure counts as slower than any response. Unit: ns (CLOCK_MONOTONIC). Source: generator."""
    slowest_parts: tuple[
        tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt, NonNegativeInt] | None, ...
    ] = ()
    """For each request in `slowest`: pool wait, connect time, time to first byte, and transfer. The
    rest of the response time is the send lag. Empty in reports of older versions. Unit: ns. Source:
    generator. Null: an entry: the request failed."""
    sample: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """A random sample of the requests, in the order of their scheduled send times, each as
    `[scheduled send time, end]`. Unit: ns (CLOCK_MONOTONIC). Source: generator."""


class ClockReading(Document, frozen=True, kw_only=True):
    """Simultaneous readings of two clocks at the start of the load."""

    monotonic_ns: NonNegativeInt
    """Reading of CLOCK_MONOTONIC. Unit: ns. Source: kernel."""
    realtime_ns: NonNegativeInt
    """Reading of CLOCK_REALTIME. Unit: ns since 1970. Source: kernel."""
    drift_ns: int
    """Time that CLOCK_REALTIME gained relative to CLOCK_MONOTONIC during the load; negative if
    CLOCK_REALTIME lost time. Unit: ns. Source: kernel."""


class AttachedResources(Document, frozen=True, kw_only=True):
    """Limits and resource use of a running server, with `--attach-cgroup` or `--attach-pid`. These
    options do not change any limit."""

    source: Literal["cgroup-v2", "cgroup-v1", "processes"]
    """What was sampled: a cgroup (`cgroup-v2` or `cgroup-v1`), or the process and its descendants
    (`processes`) if their cgroup also contains the generator. Source: host."""
    name: str
    """Path of the cgroup, or the process ID. Source: host."""
    effective_cpus: NonNegativeFloat | None
    """Lowest CPU limit of the cgroup and its ancestors. Unit: cores. Source: cgroup. Null: no
    limit, or `source` is `processes`."""
    effective_memory_bytes: NonNegativeFloat | None
    """Lowest memory limit of the cgroup and its ancestors. Unit: bytes. Source: cgroup. Null: no
    limit, or `source` is `processes`."""
    effective_pids: NonNegativeFloat | None
    """Lowest limit on processes and threads of the cgroup and its ancestors. Unit: processes and
    threads. Source: cgroup. Null: no limit, or `source` is `processes`."""
    used: ResourceUse
    """Resource use during the measurement ([ResourceUse](#resourceuse)). Source: samples every
    100 ms."""


class LoadAttempt(Document, frozen=True, kw_only=True):
    """One attempt of a load with `--reruns`. The report describes the least disturbed attempt that
    was not [discarded](terminology.md#what-is-run) or, if all were discarded, the last attempt. For
    the other attempts, only the values below are stored."""

    reported: bool
    """Whether the report describes this attempt. Source: derived."""
    status: Literal["valid", "warn", "invalid"]
    """Status of the attempt's verdict. Source: checks."""
    rerun_reason: str | None
    """Why the load should be repeated after this attempt. Source: checks, host. Null: the attempt
    is neither discarded nor disturbed."""
    disturbed_s: NonNegativeFloat | None
    """Total length of the intervals in which the host was disturbed. Without `--attach-cgroup` or
    `--attach-pid`, only disturbances by the hypervisor count. Unit: s. Source: host counters. Null:
    not observed."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses per second. Unit: 1/s. Source: generator. Null: nothing was measured."""
    p99_ns: NonNegativeInt | None
    """p99 response time of the correct responses. Unit: ns. Source: generator. Null: no correct
    response."""


class SpinUse(Document, frozen=True, kw_only=True):
    """Busy-waiting before sends."""

    window_ns: NonNegativeInt
    """Duration of the busy-wait before each send. A busy-waiting generator polls its sockets
    instead of sleeping. Unit: ns. Source: generator."""
    reason: Literal["user_set", "automatic", "off_at_this_rate", "off_on_shared_cores"]
    """Why `window_ns` has this value: `user_set`, `automatic`, `off_at_this_rate` (busy-waiting
    would use more than 20 % of a core, or the load has no rate) or `off_on_shared_cores` (other
    processes use the generator's cores, or the generator has as many threads as cores). Source:
    generator."""


class Stalls(Document, frozen=True, kw_only=True):
    """Stalls of the generator's event loop that were longer than 5 ms."""

    count: NonNegativeInt
    """Number of stalls. Source: generator."""
    total_ns: NonNegativeInt
    """Total duration of the stalls. Unit: ns. Source: generator."""
    longest_ns: NonNegativeInt
    """Duration of the longest stall. Unit: ns. Source: generator."""
    waited_ns: NonNegativeInt | None = None
    """Part of `total_ns` in which the thread was runnable but had no CPU. Unit: ns. Source: kernel.
    Null: the report is from an older version."""
    arrivals: NonNegativeInt
    """Requests of the measurement that were due during a stall. Unit: requests. Source:
    generator."""
    responses: NonNegativeInt
    """Responses of the measurement that may have been read late because of a stall. Unit: requests.
    Source: generator."""


class RejectedTimestamps(Document, frozen=True, kw_only=True):
    """Kernel timestamps that were not used."""

    count: NonNegativeInt
    """Number of kernel timestamps that were before the start or after the end of the request, or
    that could not be converted to CLOCK_MONOTONIC. Source: generator."""
    clock_steps: NonNegativeInt
    """Number of times that the wall clock was stepped during the load. Source: kernel."""


class GeneratorUsage(Document, frozen=True, kw_only=True):
    """The generator's resource use, including warm-up and cool-down, and disturbances of the
    generator."""

    cpu_seconds: NonNegativeFloat | None
    """CPU time of the generator. Unit: s. Source: kernel, per-thread clock. Null: not readable."""
    cpu_per_request_ns: NonNegativeFloat | None
    """CPU time of the generator per complete response, correct or not, over the whole load. Unit:
    ns. Source: derived. Null: no response."""
    run_queue_wait_ns: NonNegativeInt | None
    """Time in which generator threads were runnable but had no CPU. Unit: ns. Source:
    `/proc/self/task/*/schedstat`. Null: not readable."""
    max_send_lag_ns: NonNegativeInt | None
    """Largest send lag of all requests of the measurement, including failed requests. For a request
    dropped at its deadline, the send lag is the delay until the drop. Unit: ns. Source: generator.
    Null: no request was sent, and none was dropped at its deadline."""
    busy_share: NonNegativeFloat
    """CPU time of the busiest generator thread, without busy-waiting before sends, divided by the
    elapsed time. Unit: ratio. Source: kernel, per-thread clock."""
    steal_share: NonNegativeFloat | None
    """Steal: share of the host's CPU time that the hypervisor took. Unit: ratio. Source:
    `/proc/stat`. Null: no `/proc/stat`."""
    scheduling: Literal["sched_other", "realtime"] | None
    """Scheduling policy of the generator's threads: `sched_other` (SCHED_OTHER) or `realtime`
    (SCHED_RR or SCHED_FIFO, which preempt all SCHED_OTHER threads). The generator uses SCHED_RR
    with priority 1 if permitted. Exceptions: the server shares the generator's cores, the generator
    has as many threads as cores, the CPU time of real-time threads is limited (`RLIMIT_RTTIME`), or
    the generator was started with another policy or niceness (`nice`, `chrt`). Source: `/proc`.
    Null: not readable."""
    real_time_off_share: Share | None
    """Share of the load's duration in which busy generator threads gave up real-time priority. This
    avoids RT throttling: the kernel stops real-time threads that use more than 95 % of a second.
    Threads that hardly sleep give up this priority for 7 % of the time. In that time, CPU quotas
    apply to them, and their niceness is 0, or -10 if the generator was started at real-time
    priority and a negative niceness is permitted. Unit: ratio. Source: generator. Null:
    `scheduling` is not `realtime`, or the threads could not regain real-time priority and slept
    instead (`curtailed_spins`)."""
    spin: SpinUse
    """Busy-waiting before sends ([SpinUse](#spinuse)). To compensate for wake-up delays, each sleep
    is shortened by the shortest of the last 16 delays, but by at most 20 µs. Source: generator."""
    spin_off_share: Share | None
    """Share of the load's duration in which busy-waiting was off because fewer than 0.1 cores per
    generator thread were idle. Busy-waiting resumes above 0.3 idle cores per thread. Idle time is
    checked every 0.5 s. Unit: ratio. Source: `/proc/stat`. Null: `spin.window_ns` was set by the
    user or is 0, or the load ended before the first check."""
    spin_cpu_seconds: NonNegativeFloat
    """CPU time that busy-waiting used. Unit: s. Source: generator."""
    curtailed_spins: NonNegativeInt
    """Number of times that a thread slept instead of busy-waiting. Real-time threads that cannot
    change their priority sleep for 7 % of the time to avoid RT throttling. These sleeps rarely
    delay a send. Source: generator."""
    stalls: Stalls
    """Stalls of more than 5 ms in the generator's event loop. Source: generator."""
    throttled_periods: NonNegativeInt | None
    """CPU periods in which the generator's own cgroup was throttled. Unit: periods. Source:
    `cpu.stat` of the cgroup. Null: no CPU controller."""
    receive_stamps: Literal["kernel", "sampled", "user"]
    """How responses were timestamped: `kernel` (when the data arrived), `user` (when the generator
    read the data), or `sampled` (like `user`, but one connection in 16 also has kernel timestamps,
    for `receive_delay_ns`). Source: generator."""
    user_timestamps: NonNegativeInt
    """Correct responses of the measurement that the generator timestamped, such as close-delimited
    responses and responses without a usable kernel timestamp. Their response times may include the
    generator's delays. If `receive_stamps` is `sampled`, all correct responses are counted. Unit:
    requests. Source: generator."""
    rejected_timestamps: RejectedTimestamps
    """Kernel timestamps that were not used. The affected responses have the generator's timestamps
    instead. Source: generator."""


class LoadReport(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The report of one load. Unknown values are null, never 0."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    tool: Tool
    """The tool that made the measurement."""
    plan: LoadPlan
    """The plan of the load, including default values and seeds. Values that the generator chooses
    are `null`. Source: options."""
    verdict: Verdict
    """Whether the figures can be trusted and, if not, why. Source: checks."""
    diagnostics: tuple[Diagnostic, ...]
    """Observations that do not affect the verdict. Source: checks."""
    not_checked: tuple[NotChecked, ...]
    """Checks that could not run, with the reasons. [checks.md](checks.md) lists all checks and
    thresholds. Source: checks."""
    measured_ns: NonNegativeInt
    """Actual duration of the measurement: longer than `plan.phases.measure_ns` if it was extended
    (`plan.precision`), shorter if the load was interrupted, the server died, or a closed loop
    reached `plan.requests`. Unit: ns. Source: generator."""
    rate: Rates
    """Rates over the measurement."""
    outcomes: Outcomes
    """Number of scheduled requests with each outcome. Unit: requests. Source: generator."""
    status_codes: dict[StatusCode, NonNegativeInt]
    """Number of responses with each HTTP status, including responses that ended prematurely after
    the response head. Unit: requests. Source: generator."""
    wrong_responses: tuple[WrongResponse, ...] = ()
    """The first incorrect response for each combination of outcome and status, in any phase; at
    most eight. Always empty with HTTP/2 or hyper. Source: generator."""
    response_time_ns: Distribution | None
    """Response time of correct responses: scheduled send time to last byte. Unit: ns. Source:
    kernel or generator timestamps. Null: no correct response."""
    service_time_ns: Distribution | None
    """Service time of correct responses: actual send to last byte. Unit: ns. Source: kernel or
    generator timestamps. Null: no correct response."""
    send_lag_ns: Distribution | None
    """Send lag (the generator's own delay) of correct responses. Unit: ns. Source: generator. Null:
    no correct response."""
    pool_wait_ns: Distribution | None
    """Pool wait (wait for a free connection) of correct responses. Unit: ns. Source: generator.
    Null: no correct response."""
    connect_time_ns: Distribution | None
    """Connect time of correct responses over new connections. Unit: ns. Source: generator. Null: no
    correct response over a new connection."""
    first_byte_ns: Distribution | None
    """Time to first byte of correct responses: actual send to first byte. Unit: ns. Source: kernel
    or generator timestamps. Null: no correct response."""
    transfer_ns: Distribution | None
    """Transfer time of correct responses: first to last byte; 0 if the response arrived in one
    piece. Unit: ns. Source: kernel or generator timestamps. Null: no correct response."""
    receive_delay_ns: Distribution | None
    """Delay between the arrival of the last byte in the kernel and the read by the generator.
    Response times without a kernel timestamp include this delay (`client.user_timestamps`). Unit:
    ns. Source: kernel timestamps. Null: no kernel timestamps: Unix sockets, TLS, HTTP/2, hyper,
    close-delimited responses, or `--receive-stamps user`."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """Quantiles over all scheduled requests. Empty if nothing was scheduled. Unit: ns. Source:
    outcomes and response times."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """The [error budget](statistics.md#the-error-budget) of each response-time quantile. Unit: ns.
    Source: derived."""
    uncertainty: Uncertainty
    """Uncertainty of each quantile, and whether the quantile is resolved
    ([statistics.md](statistics.md)). Source: batches."""
    precision: PrecisionReached | None
    """Whether the target precision was reached. Source: batches. Null: `plan.precision` is
    null."""
    stationarity: Stationarity
    """Whether response times were stationary. Source: time slices."""
    in_system: RequestsInSystem
    """The number of requests in the system. Source: generator."""
    send_gaps: SendGaps | None
    """Comparison of the send times with the requested Poisson process. Source: generator. Null: the
    arrivals are not Poisson at a constant rate, there were fewer than 1,000 sends, requests waited
    for a connection or were dropped, or the load has sessions."""
    connections: ConnectionCounts | None
    """How connections were used. Source: generator. Null: not recorded."""
    client: GeneratorUsage | None
    """Resource use of the generator. Source: kernel, generator. Null: not recorded."""
    targets: tuple[RequestCounts, ...]
    """Results for each target, or for each request of each session; empty for a single request.
    Source: generator."""
    sessions: SessionCounts | None
    """Outcomes of the sessions that began in the measurement. Source: generator. Null: the load has
    no sessions."""
    intervals: tuple[Interval, ...]
    """Results for each report interval. Source: generator."""
    flights: Flights | None
    """When selected requests were in the system, for finding events that coincided with slow
    requests. Source: generator. Null: not recorded; `wsgiload load` never records them."""
    clock: ClockReading
    """Readings of two clocks at the start of the load, for converting timestamps to wall-clock
    time. Source: kernel."""
    resources: AttachedResources | None = None
    """Limits and resource use of a running server; only with `--attach-cgroup` or `--attach-pid`.
    Source: cgroup or processes."""
    attempts: tuple[LoadAttempt, ...] = ()
    """All attempts of the load, in order; only with `--reruns`. Source: `wsgiload load`."""
