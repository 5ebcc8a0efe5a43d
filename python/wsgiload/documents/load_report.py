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
    """Name of the check, such as `send-lag`."""
    code: str | None = None
    """Code of the check in older results, such as `C4`. Null: the check has no code."""
    level: Level
    """`warn` or `invalid`."""
    message: str
    """What was found, in one sentence."""
    fix: str | None = None
    """What to do about it. Null: no fix, or the message contains it."""
    value: float | str | bool | None
    """Measured value. Unit: depends on the check. Source: the check. Null: the check compares no
    value."""
    limit: float | str | bool | None
    """Limit of the value. Unit: depends on the check. Source: the check. Null: the check compares
    no value."""


class Verdict(Document, frozen=True, kw_only=True):
    """Whether the figures can be trusted and, if not, the cause."""

    status: Literal["valid", "warn", "invalid"]
    """`valid`, `warn` or `invalid`. Source: checks."""
    blame: Blame | None
    """Cause of the most severe finding: `client`, `host`, `method` or `server`. Source: checks.
    Null: no finding."""
    reasons: tuple[Reason, ...]
    """One entry per check that fired. Source: checks."""


class Rates(Document, frozen=True, kw_only=True):
    """Rates of a load (key `rate`) or of a cell (key `rate_result`)."""

    offered_per_s: NonNegativeFloat | None
    """Scheduled arrivals divided by the length of the measurement; the mean if the [rate
    varies](schedules.md). Unit: 1/s. Source: plan. Null: closed loop."""
    sent_per_s: NonNegativeFloat | None
    """Requests sent. Unit: 1/s. Source: generator. Null: nothing was measured."""
    achieved_per_s: NonNegativeFloat | None
    """Complete responses, correct or not. Unit: 1/s. Source: generator. Null: nothing was
    measured."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses. Unit: 1/s. Source: generator. Null: nothing was measured."""


class Outcomes(Document, frozen=True, kw_only=True):
    """Requests by outcome. Each has exactly one: `scheduled` is the sum of all others."""

    scheduled: NonNegativeInt
    """Requests with a scheduled send time within the measurement. Unit: requests. Source:
    schedule."""
    ok: NonNegativeInt
    """Response with the expected status and body. Unit: requests. Source: generator."""
    http_status: NonNegativeInt
    """Response with an unexpected status. Unit: requests. Source: generator."""
    bad_body: NonNegativeInt
    """Response with the expected status but a body of wrong length, content or framing; or not a
    valid HTTP response. Unit: requests. Source: generator."""
    reset: NonNegativeInt
    """Connection lost in the middle of the response, or a new connection lost before it. Unit:
    requests. Source: generator."""
    stale: NonNegativeInt
    """Reused connection that the server had closed, before the first byte of the response. Unit:
    requests. Source: generator."""
    refused: NonNegativeInt
    """Connection refused. Unit: requests. Source: generator."""
    connect_timeout: NonNegativeInt
    """No connection within the timeout. Unit: requests. Source: generator."""
    timeout: NonNegativeInt
    """Sent, or waiting for a stream of its connection, but no response within the timeout. Unit:
    requests. Source: generator."""
    dropped: NonNegativeInt
    """Never sent: the queue was full (`--max-pending`), all connections were busy (`--on-busy
    shed`), or the deadline passed first. Unit: requests. Source: generator."""
    unfinished: NonNegativeInt
    """Still in the system when the drain ended. Unit: requests. Source: generator."""
    client_error: NonNegativeInt
    """Failed because the generator ran out of file descriptors, ports or memory; the measurement is
    then invalid. Unit: requests. Source: generator."""


class Distribution(Document, frozen=True, kw_only=True):
    """The distribution of one of the times of a request in the measurement phase."""

    count: NonNegativeInt
    """Number of values. Unit: requests. Source: generator."""
    min: NonNegativeInt | None
    """Minimum, exact. Unit: ns. Source: generator. Null: empty."""
    mean: NonNegativeFloat | None
    """Mean. Unit: ns. Source: generator. Null: empty."""
    max: NonNegativeInt | None
    """Maximum, exact. Unit: ns. Source: generator. Null: empty."""
    quantiles: dict[QuantileKey, NonNegativeInt | None]
    """By quantile, from "0.5" to "0.9999"; at most 0.1 % above the true value. Unit: ns. Source:
    histogram. Null: an entry: there are no values."""
    intervals_95: dict[QuantileKey, tuple[NonNegativeInt | None, NonNegativeInt | None] | None]
    """By quantile: lower and upper end of this run's 95 % confidence interval; the upper end is
    null if unbounded. Unit: ns. Source: batches of the run. Null: an entry: not resolved (the
    reason is in `uncertainty`), or not a response time."""
    hdr_v2: str | None
    """Full histogram: HdrHistogram V2, compressed, base64. Source: generator. Null: not stored."""


class Bounds(Document, frozen=True, kw_only=True):
    """Lower and upper bound of a quantile over all offered requests."""

    low: NonNegativeInt | None
    """Lower bound; requests that were cut off (such as by a timeout) count with their elapsed time.
    Unit: ns. Source: outcomes. Null: too many requests failed."""
    high: NonNegativeInt | None
    """Upper bound; requests that were cut off or failed count as infinitely slow. Equal to `low` if
    no request was cut off earlier than this time. Unit: ns. Source: outcomes. Null: too many
    requests failed."""


class NotChecked(Document, frozen=True, kw_only=True):
    """A check that could not run."""

    check: str
    """Name of the check."""
    reason: str
    """Why it could not run."""


class Diagnostic(Document, frozen=True, kw_only=True):
    """An observation that does not affect the verdict but can help to explain a result."""

    check: str
    """Name of the check."""
    message: str
    """What was found."""
    value: float
    """Measured value. Unit: depends on the check."""
    limit: float
    """Limit that it exceeded. Unit: depends on the check."""


class ErrorBudget(Document, frozen=True, kw_only=True):
    """The possible error of one quantile of the response time
    ([statistics.md](statistics.md#the-error-budget))."""

    value: NonNegativeInt
    """The quantile as measured. Unit: ns. Source: response times."""
    generator: tuple[NonNegativeInt, NonNegativeInt]
    """Range of the quantile. The lower end excludes the generator's delays (send lag and read delay
    of each request); the upper end is the quantile as measured. Unit: ns. Source: generator."""
    sampling_95: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """95 % confidence interval within this run; the upper end is null if unbounded. Unit: ns.
    Source: batches of the run. Null: fewer than 300 requests, interrupted, or no finite value."""
    noise_floor: NonNegativeInt | None
    """Noise floor of the machine at this quantile. Unit: ns. Source: `wsgiload calibrate`. Null:
    not calibrated."""
    undisturbed: NonNegativeInt | None
    """The quantile over the intervals in which the host was not disturbed (`disturbed_s` of the
    cell), except those directly after a disturbed one; equal to `value` if the host was never
    disturbed. Unit: ns. Source: intervals, host. Null: the host was not observed (always with
    `wsgiload load`), or fewer than ten responses lie beyond the quantile."""
    band: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """The range of values that an undisturbed generator would measure: `sampling_95`, with its
    lower end reduced by the generator's contribution and the median noise floor. Unit: ns. Source:
    derived. Null: as `sampling_95`."""
    bound_status: Literal["bounded", "upper_bound", "few_responses"]
    """`bounded`; `upper_bound` if the generator may have added more than 10 % and 100 µs; or
    `few_responses` if the interval is not reliable. Source: derived."""


class PrecisionReached(Document, frozen=True, kw_only=True):
    """The precision that was reached; the target is in the plan's `precision`."""

    half_width: NonNegativeFloat | None
    """Half-width of the quantile's 95 % confidence interval, relative to the quantile. Unit: share.
    Source: `uncertainty`. Null: there is no interval, or it is unbounded."""
    is_reached: bool
    """Whether the target was reached. Source: derived."""


class QuantileUncertainty(Document, frozen=True, kw_only=True):
    """The uncertainty of a quantile within one run."""

    interval_95_ns: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Lower and upper end of the 95 % confidence interval within this run; the upper end is null
    if unbounded. Unit: ns. Source: derived. Null: fewer than 300 requests, no finite value, or
    interrupted."""
    effective_requests: NonNegativeFloat | None
    """Number of independent requests that would give the same precision. Unit: requests. Source:
    variance over 30, 60 and 120 batches. Null: fewer than 300 requests, or interrupted."""
    resolution_status: Literal["headline", "resolved", "not_resolved"]
    """`headline` (at least 100 effective requests lie beyond it), `resolved` (at least 10) or
    `not_resolved`. Source: derived."""
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
    """Why it is not resolved: `too_few_requests` (fewer than 300), `too_few_effective_requests`
    (fewer than 10 beyond it), `not_met` (too many failed), `below_noise_floor` (below three times
    the plan's `floor`, so only an upper bound) or `interrupted`. Source: derived. Null:
    resolved."""


class Uncertainty(Document, frozen=True, kw_only=True):
    """The uncertainty of the quantiles of one run, and which of them are shown."""

    offered_quantiles_ns: dict[QuantileKey, QuantileUncertainty]
    """By quantile, over all offered requests; failures count as slower than any response. Source:
    batches of the run."""
    response_time_ns: dict[QuantileKey, QuantileUncertainty]
    """By quantile, over correct responses. Source: batches of the run."""


class ChangePoint(Document, frozen=True, kw_only=True):
    """A change point of the median response time."""

    at_ns: NonNegativeInt
    """Time of the change. Unit: ns from the start of the measurement. Source: derived."""
    p50_before_ns: NonNegativeInt
    """Median response time before the change. Unit: ns. Source: slices."""
    p50_after_ns: NonNegativeInt
    """Median response time after the change. Unit: ns. Source: slices."""


class Stationarity(Document, frozen=True, kw_only=True):
    """Whether response times changed over the measurement."""

    state: Literal["stationary", "drifting", "non_stationary", "unstable"] | None
    """`stationary`, `drifting` (changed between the first and the last third, confirmed by KPSS),
    `non_stationary` (the median changed by more than a quarter) or `unstable` (the backlog grew,
    or the queue was full). Source: checks stationarity and backlog-growth. Null: not checked."""
    reason: str | None
    """Why the response times were not checked. Null: they were checked."""
    slice_ns: NonNegativeInt | None
    """Length of the compared slices: 1 s, or the time of 1,000 responses if that is longer, but at
    most 5 s or one interval. If fewer than ten such slices fit into the measurement: a thirtieth to
    a tenth of the measurement. Unit: ns. Source: derived. Null: not checked."""
    p50_drift: float | None
    """Relative change of the median between the first and the last third. Unit: ratio. Source:
    slices. Null: not checked."""
    p99_drift: float | None
    """The same for p99. Unit: ratio. Source: slices. Null: not checked, or shorter slices."""
    p50_kpss: NonNegativeFloat | None
    """KPSS statistic of the logarithm of the median; 1 % of stationary series exceed 0.739.
    Source: slices. Null: not checked."""
    p99_kpss: NonNegativeFloat | None
    """The same for p99. Source: slices. Null: not checked, or shorter slices."""
    p50_range: NonNegativeFloat | None
    """Relative difference between the highest and the lowest level of the median. Unit: ratio.
    Source: slices. Null: not checked."""
    changes: tuple[ChangePoint, ...]
    """Change points of the median. Source: slices."""
    settled_after_ns: NonNegativeInt | None
    """Time after which response times were steady; the warm-up should be longer by this time. Unit:
    ns from the start of the measurement. Source: derived. Null: no change, or a change in the
    second half."""


class RequestsInSystem(Document, frozen=True, kw_only=True):
    """The number of requests in the system (from their scheduled send time to their end)."""

    mean: NonNegativeFloat
    """Mean number over the measurement. Unit: requests. Source: generator."""
    growth: float | None
    """Growth over the measurement, relative to the mean; about 2 for a backlog that grew from
    zero. Unit: ratio. Source: median slope. Null: closed loop, varying rate, fewer than 1,000
    requests, or interrupted."""


class SendGaps(Document, frozen=True, kw_only=True):
    """Consecutive send times, compared with the requested Poisson process."""

    count: NonNegativeInt
    """Number of inter-arrival times tested, from the middle of the measurement. Source:
    generator."""
    anderson_darling: float
    """Anderson-Darling statistic for exponential inter-arrival times; 1 % of true Poisson
    processes exceed 1.959. Source: derived."""
    kolmogorov_distance: NonNegativeFloat
    """Kolmogorov-Smirnov distance from the exponential distribution. Source: derived."""
    dispersion_deviation: NonNegativeFloat | None
    """Largest deviation from 1 of the index of dispersion (variance divided by mean) of the number
    of sends per 10 ms, 100 ms and 1 s. Unit: standard errors. Source: derived. Null: too few
    sends."""


class Build(Document, frozen=True, kw_only=True):
    """How the generator was built."""

    profile: str
    """`release` or `debug`; debug builds are unsuitable for measurements. Source: build."""
    target_cpu: str | None
    """Instruction set for which it was built. Source: build. Null: the compiler's default."""
    git_sha: str | None
    """Commit from which it was built. Source: build. Null: built outside a git checkout."""


class Tool(Document, frozen=True, kw_only=True):
    """The tool that made the measurement."""

    name: str
    """`wsgiload`, also for the binary `loadgen`."""
    version: str
    """Its version. Source: build."""
    build: Build
    """How it was built. Source: build."""


class LocalPorts(Document, frozen=True, kw_only=True):
    """The local ports of the connections."""

    source_addresses: tuple[str, ...] | None
    """Source addresses of connections, used round-robin. Source: plan; chosen
    automatically for loopback targets. Null: chosen by the kernel."""
    free: NonNegativeInt
    """Ports that were free for connections to this server. Unit: ports. Source:
    `/proc/sys/net/ipv4`, `/proc/net/tcp`."""
    needed_at_most: NonNegativeInt
    """Maximum number of ports that the plan may need at the same time. Unit: ports. Source:
    derived."""
    warning: str | None
    """Warning that ports may run out, with a fix. Source: derived. Null: there are enough ports."""


class TrackedConnections(Document, frozen=True, kw_only=True):
    """The connection tracking (conntrack) table. When it is full, the kernel drops new connections,
    so the server looks slow (alarm network-resources)."""

    before: NonNegativeInt
    """Entries before the first connection of the load. Unit: connections. Source:
    `/proc/sys/net/netfilter/nf_conntrack_count`."""
    after: NonNegativeInt
    """Entries after the last connection; the kernel keeps an entry for a while after its
    connection has ended, usually 2 minutes. Unit: connections. Source: the same."""
    max: NonNegativeInt
    """Size of the table. Unit: connections. Source: `/proc/sys/net/netfilter/nf_conntrack_max`."""


class RequestsPerConnection(Document, frozen=True, kw_only=True):
    """The number of requests per connection."""

    min: NonNegativeInt | None
    """Minimum. Unit: requests. Source: generator. Null: no connection."""
    mean: NonNegativeFloat | None
    """Mean. Unit: requests. Source: generator. Null: no connection."""
    max: NonNegativeInt | None
    """Maximum. Unit: requests. Source: generator. Null: no connection."""


class ConnectionCounts(Document, frozen=True, kw_only=True):
    """How connections were used."""

    opened: NonNegativeInt
    """Connections opened. Unit: connections. Source: generator."""
    reused: NonNegativeInt | None
    """Requests sent on a connection that had been used before. Unit: requests. Source:
    generator. Null: not recorded."""
    closed_by_server: NonNegativeInt | None
    """Connections that the server closed. Unit: connections. Source: generator. Null: not
    recorded."""
    peak: NonNegativeInt | None
    """Peak number of open connections. Unit: connections. Source: generator. Null: not
    recorded."""
    max_connections: PositiveInt
    """Maximum number of open connections allowed. Unit: connections. Source: plan, file descriptor
    limit, free ports."""
    requests_per_connection: RequestsPerConnection | None
    """Number of requests per connection. Unit: requests. Source: generator. Null: not
    recorded for any connection."""
    allowed_streams: NonNegativeInt | None = None
    """Lowest limit on concurrent streams that the server set for any connection. Unit: streams.
    Source: the server's HTTP/2 settings. Null: at least `plan.streams`."""
    failures: dict[str, PositiveInt]
    """Causes of failed connections and how often each occurred, in all phases; after the first
    eight causes, all others are counted as `further causes`. Unit: connections. Source: kernel,
    TLS."""
    local_ports: LocalPorts | None
    """Local ports before the first connection ([transports.md](transports.md)). Source: kernel.
    Null: Unix socket, or no `/proc`."""
    tracked: TrackedConnections | None
    """The kernel's connection tracking (conntrack) table, which all programs share. Source: kernel.
    Null: Unix socket, `nf_conntrack` is not loaded, or the table is hidden from a container."""


class RequestCounts(Document, frozen=True, kw_only=True):
    """The results of one target, or of one request of a session."""

    name: str
    """Its name, or its method and path; in a session preceded by the session and the position,
    such as `browse[2] GET /cart`. Source: options."""
    scheduled: NonNegativeInt
    """Scheduled requests of this target in the measurement; those of all targets add up to the
    load's `scheduled`. Unit: requests. Source: generator."""
    ok: NonNegativeInt
    """Those with a correct response. Unit: requests. Source: generator."""
    failed: NonNegativeInt
    """All others. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time. Unit: ns. Source: generator, socket times. Null: no correct response,
    or so many targets that their histograms would need more than 256 MiB (more than 900 targets
    with one thread)."""
    p99_ns: NonNegativeInt | None
    """p99 response time. Unit: ns. Source: generator, socket times. Null: as `p50_ns`."""
    max_ns: NonNegativeInt | None
    """Longest response time. Unit: ns. Source: generator, socket times. Null: as `p50_ns`."""


class WrongResponse(Document, frozen=True, kw_only=True):
    """The first wrong response with this outcome and status."""

    outcome: Literal["http_status", "bad_body"]
    """`http_status` or `bad_body`. Source: generator."""
    status: NonNegativeInt | None
    """Its status. Source: server. Null: its head could not be read."""
    reason: str | None
    """Why its head or body was rejected. Source: generator. Null: it was rejected because of its
    status."""
    first_line: str
    """The first 300 bytes of its first line. Source: server."""
    location: str | None
    """Its header `Location`. Source: server. Null: it has none."""
    content_encoding: str | None
    """Its header `Content-Encoding`. Source: server. Null: it has none."""
    body: str | None
    """The first 300 bytes of its body, as text. Source: server. Null: it is encoded, or its head
    could not be read."""


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
    """Sessions still running when the load ended. Unit: sessions. Source: generator."""
    requests_not_reached: NonNegativeInt
    """Requests that were never scheduled because their session failed or was unfinished; they
    are not included in any other count. Unit: requests. Source: generator."""
    duration_ns: Distribution | None
    """Duration of the completed sessions, with think times, from the scheduled start to the last
    response. Unfinished sessions are not included, so long sessions may be missing. Unit: ns,
    histogram. Source: generator. Null: no session was completed."""


class Interval(Document, frozen=True, kw_only=True):
    """One interval of the measurement."""

    start_ns: NonNegativeInt
    """Start of the interval. Unit: ns, monotonic. Source: generator."""
    length_ns: NonNegativeInt
    """Length of the interval. Unit: ns. Source: generator."""
    scheduled: NonNegativeInt
    """Requests scheduled in the interval. Unit: requests. Source: generator."""
    sent: NonNegativeInt
    """Those that were sent. Unit: requests. Source: generator."""
    ok: NonNegativeInt
    """Those with a correct response. Unit: requests. Source: generator."""
    failed: NonNegativeInt
    """Those that failed. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time of the correct responses. Unit: ns. Source: generator. Null: no correct
    response."""
    p99_ns: NonNegativeInt | None
    """p99 response time. Unit: ns. Source: generator. Null: no correct response."""
    max_ns: NonNegativeInt | None
    """Longest response time. Unit: ns. Source: generator. Null: none."""
    hdr_v2: str | None
    """Histogram of the response times: HdrHistogram V2, compressed, base64. Source: generator.
    Null: no correct response."""


class Flights(Document, frozen=True, kw_only=True):
    """When individual requests were in the system, each as `[scheduled send time,
    end]` in ns, monotonic; in a sweep, at most 2,000 in `slowest` and in `sample`. A failure counts
    as slower than any response."""

    slowest: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """The slowest requests of the measurement, slowest first. Unit: ns, monotonic. Source:
    generator."""
    slowest_parts: tuple[
        tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt, NonNegativeInt] | None, ...
    ] = ()
    """The parts of the response time of each slowest request, in the same order: wait for a
    connection, connect time, time to first byte, transfer. The rest is the send lag. Unit: ns.
    Source: generator. Null: an entry: a failure. Empty: measured by an older version."""
    sample: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """Random sample of the requests, in the order of their scheduled send times. Unit: ns,
    monotonic. Source: generator."""


class ClockReading(Document, frozen=True, kw_only=True):
    """Two clocks, read at the same time."""

    monotonic_ns: NonNegativeInt
    """CLOCK_MONOTONIC. Unit: ns. Source: kernel."""
    realtime_ns: NonNegativeInt
    """CLOCK_REALTIME at the same time. Unit: ns since 1970. Source: kernel."""
    drift_ns: int
    """Drift between the two clocks by the end of the load. Unit: ns. Source: kernel."""


class AttachedResources(Document, frozen=True, kw_only=True):
    """The key `resources` of a load with `--attach-cgroup` or `--attach-pid`. Attaching does not
    set limits; these are the limits that were already in force."""

    source: Literal["cgroup-v2", "cgroup-v1", "processes"]
    """`cgroup-v2` or `cgroup-v1`; `processes` (the process and its descendants) if their cgroup
    also contains the generator. Source: host."""
    name: str
    """The cgroup, or the process ID. Source: host."""
    effective_cpus: NonNegativeFloat | None
    """Smallest CPU limit on the path to the root cgroup. Unit: cores. Source: cgroup. Null: no
    limit, or `processes`."""
    effective_memory_bytes: NonNegativeFloat | None
    """Smallest memory limit on that path. Unit: bytes. Source: cgroup. Null: no limit, or
    `processes`."""
    effective_pids: NonNegativeFloat | None
    """Smallest limit on processes and threads on that path. Source: cgroup. Null: no limit, or
    `processes`."""
    used: ResourceUse
    """Resource use during the measurement ([ResourceUse](#resourceuse)). Source: samples every
    100 ms."""


class LoadAttempt(Document, frozen=True, kw_only=True):
    """One attempt of a load with `--reruns`. The attempt that the host disturbed the least is
    reported, whatever its result; of the others, only this entry is kept."""

    reported: bool
    """Whether this report is that of the attempt. Source: derived."""
    status: Literal["valid", "warn", "invalid"]
    """Status of its verdict. Source: checks."""
    rerun_reason: str | None
    """Why the attempt is a reason to repeat the load. Source: checks, host. Null: neither invalid
    nor disturbed."""
    disturbed_s: NonNegativeFloat | None
    """How long the host was disturbed during the measurement, in whole intervals; without
    `--attach-cgroup` or `--attach-pid`, only by the hypervisor. Unit: s. Source: host counters.
    Null: not observed."""
    goodput_per_s: NonNegativeFloat | None
    """Goodput. Unit: 1/s. Source: generator. Null: nothing was measured."""
    p99_ns: NonNegativeInt | None
    """p99 of the response times of correct responses. Unit: ns. Source: generator. Null: no correct
    response."""


class SpinUse(Document, frozen=True, kw_only=True):
    """How long the generator busy-waits before a send, and why."""

    window_ns: NonNegativeInt
    """How long before a send the generator polls its sockets instead of sleeping. Unit: ns. Source:
    generator."""
    reason: Literal["user_set", "automatic", "off_at_this_rate", "off_on_shared_cores"]
    """Why this window was used: `user_set`, `automatic`, `off_at_this_rate` (it
    would use more than a fifth of a core, or there is no rate) or `off_on_shared_cores` (other
    processes use the generator's cores). Source: generator."""


class Stalls(Document, frozen=True, kw_only=True):
    """Stalls of the generator's event loop of more than 5 ms."""

    count: NonNegativeInt
    """Number of stalls. Source: generator."""
    total_ns: NonNegativeInt
    """Total duration. Unit: ns. Source: generator."""
    longest_ns: NonNegativeInt
    """Longest stall. Unit: ns. Source: generator."""
    waited_ns: NonNegativeInt | None = None
    """Part of the total duration in which the thread was runnable and waited for a core. Unit: ns.
    Source: kernel. Null: measured by an older version."""
    arrivals: NonNegativeInt
    """Measured requests that were due during a stall. Unit: requests. Source: generator."""
    responses: NonNegativeInt
    """Measured responses that may have been read late because of a stall. Unit: requests. Source:
    generator."""


class RejectedTimestamps(Document, frozen=True, kw_only=True):
    """Kernel timestamps that were not used."""

    count: NonNegativeInt
    """Kernel timestamps that were inconsistent with their request. Source: generator."""
    clock_steps: NonNegativeInt
    """Steps of the wall clock. Source: kernel."""


class GeneratorUsage(Document, frozen=True, kw_only=True):
    """The generator's resource use, and how much it was disturbed."""

    cpu_seconds: NonNegativeFloat | None
    """CPU time of the generator. Unit: s. Source: kernel, per-thread clock. Null: not readable."""
    cpu_per_request_ns: NonNegativeFloat | None
    """CPU time per complete response of the whole load, correct or not. Unit: ns. Source: derived.
    Null: no response."""
    run_queue_wait_ns: NonNegativeInt | None
    """Time that the generator was runnable without a CPU. Unit: ns. Source:
    `/proc/self/task/*/schedstat`. Null: not readable."""
    max_send_lag_ns: NonNegativeInt | None
    """Largest send lag of all requests that were sent or dropped, including those that failed.
    Unit: ns. Source: generator. Null: no request was sent or dropped."""
    busy_share: NonNegativeFloat
    """Share of the wall time that the busiest generator thread was busy, excluding busy-waiting
    before sends. Unit: ratio. Source: kernel, per-thread clock."""
    steal_share: NonNegativeFloat | None
    """Share of the host's CPU time that the hypervisor took. Unit: ratio. Source: `/proc/stat`.
    Null: no `/proc/stat`."""
    scheduling: Literal["sched_other", "realtime"] | None
    """Scheduling class of the generator's threads: `ordinary`, or `realtime` (ahead of every
    ordinary process). They take real-time priority (`SCHED_RR`, 1) where permitted, except on cores
    that the server shares, with as many threads as cores, with a limit on the CPU time of real-time
    threads (`RLIMIT_RTTIME`), or if the generator was started with a policy or niceness of its own
    (`nice`, `chrt`). Source: `/proc`. Null: not readable."""
    real_time_off_share: Share | None
    """Share of the load in which busy generator threads ran without real-time priority, to avoid RT
    throttling (the kernel stops real-time threads that use more than 95 % of a second). Threads
    that hardly sleep give up this priority for 7 % of the time. Meanwhile, a CPU quota applies to
    them, and they run at niceness 0, or at -10 if the generator was started at real-time priority
    and this is permitted. Unit: ratio. Source: generator. Null: ordinary priority, or threads that
    could not regain real-time priority and sleep instead (`curtailed_spins`)."""
    spin: SpinUse
    """Busy-waiting before sends ([SpinUse](#spinuse)). In addition, timers are set earlier by the
    shortest of the last 16 wake-up delays, at most 20 µs. Source: generator."""
    spin_off_share: Share | None
    """Share of the load without busy-waiting, because the generator's cores were idle for less than
    a tenth of a core per thread. Busy-waiting resumes above three tenths; this is checked every 0.5
    s. Unit: ratio. Source: `/proc/stat`. Null: the window was set by the user or is 0, or the load
    ended before the first check."""
    spin_cpu_seconds: NonNegativeFloat
    """CPU time of the busy-waiting. Unit: s. Source: generator."""
    curtailed_spins: NonNegativeInt
    """How often busy-waiting was interrupted by a sleep. Real-time threads that cannot change their
    priority sleep for 7 % of the time to avoid RT throttling; this rarely delays a send. Source:
    generator."""
    stalls: Stalls
    """Stalls of the generator's event loop of more than 5 ms. Source: generator."""
    throttled_periods: NonNegativeInt | None
    """CPU periods in which the generator's own cgroup was throttled. Unit: periods. Source:
    `cpu.stat` of that cgroup. Null: no CPU controller."""
    receive_stamps: Literal["kernel", "sampled", "user"]
    """How responses were timestamped: by the `kernel`, when the data arrived; by the generator
    (`user`), when it read them; or `sampled`: like `user`, but one connection in 16 also has kernel
    timestamps, for `receive_delay_ns`. Source: generator."""
    user_timestamps: NonNegativeInt
    """Correct responses that were timestamped by the generator, so that their response times may
    include its delays: all of them unless `receive_stamps` is `kernel`; in that case, only
    close-delimited responses and those without a usable kernel timestamp. Unit: requests. Source:
    generator."""
    rejected_timestamps: RejectedTimestamps
    """Kernel timestamps that were not used; those responses have the generator's timestamps.
    Source: generator."""


class LoadReport(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The report. Times are integer nanoseconds of CLOCK_MONOTONIC, sizes bytes, rates per second.
    Unknown values are null, never 0."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    tool: Tool
    """The tool that made the measurement."""
    plan: LoadPlan
    """The plan with its defaults filled in, including seeds. Values that the generator chooses are
    `null`. The keys match the options. Source: options."""
    verdict: Verdict
    """Whether the figures can be trusted. Source: checks."""
    diagnostics: tuple[Diagnostic, ...]
    """Observations that do not affect the verdict. Source: checks."""
    not_checked: tuple[NotChecked, ...]
    """Checks that could not run, and why; [checks.md](checks.md) lists all checks and thresholds.
    Source: checks."""
    measured_ns: NonNegativeInt
    """Actual duration of the measurement phase; shorter than planned if the run was stopped or the
    server died. Unit: ns. Source: generator."""
    rate: Rates
    """Rates of the measurement phase."""
    outcomes: Outcomes
    """Outcome of every scheduled request. Unit: requests. Source: generator."""
    status_codes: dict[StatusCode, NonNegativeInt]
    """Responses by HTTP status, including those that ended prematurely after the head. Unit:
    requests. Source: generator."""
    wrong_responses: tuple[WrongResponse, ...] = ()
    """The first wrong response of each outcome and status in any phase, at most eight; always empty
    with HTTP/2 or hyper. Source: generator."""
    response_time_ns: Distribution | None
    """Response time of correct responses: scheduled send time to last byte. Unit: ns. Source:
    generator, socket times. Null: no correct response."""
    service_time_ns: Distribution | None
    """Service time of correct responses: actual send to last byte. Unit: ns. Source: generator,
    socket times. Null: no correct response."""
    send_lag_ns: Distribution | None
    """Send lag of correct responses: the generator's own delay. Unit: ns. Source: generator. Null:
    no correct response."""
    pool_wait_ns: Distribution | None
    """Wait for a free connection, for correct responses. Unit: ns. Source: generator. Null: no
    correct response."""
    connect_time_ns: Distribution | None
    """Connect time of correct responses over a new connection. Unit: ns. Source: generator. Null:
    there was no such response."""
    first_byte_ns: Distribution | None
    """Time to first byte: actual send to first byte. Unit: ns. Source: generator, socket times.
    Null: no correct response."""
    transfer_ns: Distribution | None
    """First to last byte; 0 if the response arrived in one piece. Unit: ns. Source: generator,
    socket times. Null: no correct response, or a report of version 1."""
    receive_delay_ns: Distribution | None
    """Delay between the kernel's and the generator's receipt of the last byte. It is included in
    the response times of responses without a kernel timestamp (`client.user_timestamps`). Unit: ns.
    Source: kernel timestamps. Null: there are no kernel timestamps (Unix sockets, TLS, HTTP/2,
    hyper, responses that end with their connection, or `--receive-stamps user`)."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """The headline figures: quantiles over all offered requests. Unit: ns. Source: outcomes and
    response times. Null: never; empty if nothing was scheduled."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """The error budget of each quantile of `response_time_ns`. Unit: ns. Source: derived."""
    uncertainty: Uncertainty
    """Uncertainty of each quantile, and whether the quantile is shown
    ([statistics.md](statistics.md)). Source: batches of the run."""
    precision: PrecisionReached | None
    """Whether the target precision was reached. Source: batches of the run. Null: no
    `precision` in the plan (`--precision` with `--max-duration`)."""
    stationarity: Stationarity
    """Whether response times were stationary. Source: slices of the run."""
    in_system: RequestsInSystem
    """The number of requests in the system. Source: generator."""
    send_gaps: SendGaps | None
    """Send times, compared with the requested Poisson process. Source: generator. Null: not Poisson
    arrivals at a constant rate, fewer than 1,000 sends, requests that waited for a connection or
    were dropped, or sessions."""
    connections: ConnectionCounts | None
    """How connections were used. Source: generator. Null: not recorded."""
    client: GeneratorUsage | None
    """Resource use of the generator. Source: kernel, generator. Null: not recorded."""
    targets: tuple[RequestCounts, ...]
    """Results of each target, or of each request of each session; empty for a single request.
    Source: generator."""
    sessions: SessionCounts | None
    """Outcomes of the sessions that began in the measurement. Unit: sessions. Source: generator.
    Null: the load has no sessions."""
    intervals: tuple[Interval, ...]
    """The figures of each interval. Source: generator."""
    flights: Flights | None
    """When individual requests were in the system, for comparison with other
    events. Source: generator. Null: not recorded (always with `wsgiload load`)."""
    clock: ClockReading
    """Two clocks, read at the same time, to convert times to wall-clock time. Source: kernel."""
    resources: AttachedResources | None = None
    """Resource use of the running server; only with `--attach-cgroup` or `--attach-pid`. Source:
    cgroup or processes."""
    attempts: tuple[LoadAttempt, ...] = ()
    """All attempts, the first one first; only with `--reruns`. Source: `wsgiload load`."""
