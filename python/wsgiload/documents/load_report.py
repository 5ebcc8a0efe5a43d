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
    """Its old code, such as `C4`, for old readers. Null: it never had one."""
    level: Level
    """`warn` or `invalid`."""
    message: str
    """What was found, in one sentence."""
    fix: str | None = None
    """What to do about it. Null: nothing helps, or the message says so."""
    value: float | str | bool | None
    """What was measured. Unit: of the check. Source: the check. Null: nothing to compare."""
    limit: float | str | bool | None
    """What it was compared with. Unit: of the check. Source: the check. Null: nothing to
    compare."""


class Verdict(Document, frozen=True, kw_only=True):
    """Whether the figures can be trusted, and the cause if not."""

    status: Literal["valid", "warn", "invalid"]
    """`valid`, `warn` or `invalid`. Source: checks."""
    blame: Blame | None
    """`client`, `host`, `method` or `server`. Source: checks. Null: nothing to blame."""
    reasons: tuple[Reason, ...]
    """One entry per check that found something. Source: checks."""


class Rates(Document, frozen=True, kw_only=True):
    """Called `rate` in a load and `rate_result` in a cell."""

    offered_per_s: NonNegativeFloat | None
    """Arrivals of the schedule by the length of the measurement: a mean where the [rate
    varies](schedules.md). Unit: 1/s. Source: plan. Null: closed loop."""
    sent_per_s: NonNegativeFloat | None
    """Requests put on the wire. Unit: 1/s. Source: generator. Null: nothing was measured."""
    achieved_per_s: NonNegativeFloat | None
    """Complete responses, correct or not. Unit: 1/s. Source: generator. Null: nothing was
    measured."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses. Unit: 1/s. Source: generator. Null: nothing was measured."""


class Outcomes(Document, frozen=True, kw_only=True):
    """Requests by what became of them. Each has exactly one outcome: `scheduled` is the sum of
    all others."""

    scheduled: NonNegativeInt
    """Requests whose intended send lies in the measurement. Unit: requests. Source: schedule."""
    ok: NonNegativeInt
    """Answered with the expected status and body. Unit: requests. Source: generator."""
    http_status: NonNegativeInt
    """Answered with another status. Unit: requests. Source: generator."""
    bad_body: NonNegativeInt
    """Expected status, but a body of wrong length, content or framing; or a response that is not
    HTTP. Unit: requests. Source: generator."""
    reset: NonNegativeInt
    """Connection broken after part of the response, or on a new connection. Unit: requests.
    Source: generator."""
    stale: NonNegativeInt
    """A kept-alive connection turned out to be closed before any byte of the response. Unit:
    requests. Source: generator."""
    refused: NonNegativeInt
    """Connection refused. Unit: requests. Source: generator."""
    connect_timeout: NonNegativeInt
    """No connection within the timeout. Unit: requests. Source: generator."""
    timeout: NonNegativeInt
    """Sent, but no response within the timeout. Unit: requests. Source: generator."""
    dropped: NonNegativeInt
    """Never sent: the queue was full (`--max-pending`), every connection was busy (`--on-busy
    shed`), or the deadline passed while it waited. Unit: requests. Source: generator."""
    unfinished: NonNegativeInt
    """Still under way when the drain ended. Unit: requests. Source: generator."""
    client_error: NonNegativeInt
    """Failed in the generator's own system: file descriptors, ports or memory ran out. Makes the
    measurement invalid. Unit: requests. Source: generator."""


class Distribution(Document, frozen=True, kw_only=True):
    """One of the time distributions above, measurement phase only."""

    count: NonNegativeInt
    """Values in it. Unit: requests. Source: generator."""
    min: NonNegativeInt | None
    """Smallest, exact. Unit: ns. Source: generator. Null: empty."""
    mean: NonNegativeFloat | None
    """Mean. Unit: ns. Source: generator. Null: empty."""
    max: NonNegativeInt | None
    """Largest, exact. Unit: ns. Source: generator. Null: empty."""
    quantiles: dict[QuantileKey, NonNegativeInt | None]
    """By quantile, from "0.5" to "0.9999"; at most 0.1 % above the true value. Unit: ns. Source:
    histogram. Null: an entry: empty."""
    intervals_95: dict[QuantileKey, tuple[NonNegativeInt | None, NonNegativeInt | None] | None]
    """By quantile: lower and upper end of the 95 % interval inside this run; the upper end is
    null where it is unbounded. Unit: ns. Source: batches of the run. Null: an entry: not
    resolved (`uncertainty` says why), or not a response time."""
    hdr_v2: str | None
    """The whole histogram, HdrHistogram V2 compressed, base64. Source: generator. Null: not
    kept."""


class Bounds(Document, frozen=True, kw_only=True):
    """Between which values a quantile over all offered requests lies."""

    low: NonNegativeInt | None
    """The quantile is at least this. Unit: ns. Source: requests that were cut off count as their
    elapsed time. Null: more requests failed outright than the quantile leaves room for."""
    high: NonNegativeInt | None
    """The quantile is at most this; equal to `low` where nothing was cut off below it. Unit: ns.
    Source: requests that were cut off or failed count as infinite. Null: the quantile was not
    met."""


class NotChecked(Document, frozen=True, kw_only=True):
    """A check that had no evidence to judge."""

    check: str
    """Name of the check."""
    reason: str
    """Why it could not look."""


class Diagnostic(Document, frozen=True, kw_only=True):
    """Something that was noticed and changes no figure; it helps to find a cause."""

    check: str
    """Name of the check."""
    message: str
    """What was found."""
    value: float
    """The figure that was found. Unit: that of the check."""
    limit: float
    """The limit that it crossed. Unit: that of the check."""


class ErrorBudget(Document, frozen=True, kw_only=True):
    """What may be wrong with one quantile of the response time
    ([statistics.md](statistics.md#the-error-budget))."""

    value: NonNegativeInt
    """The quantile as measured. Unit: ns. Source: response times."""
    generator: tuple[NonNegativeInt, NonNegativeInt]
    """The generator's share: the quantile without each request's send lag and without late reads,
    and the quantile as measured. Unit: ns. Source: generator."""
    sampling_95: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """95 % confidence interval inside this run; the upper end is null where it is unbounded. Unit:
    ns. Source: batches of the run. Null: fewer than 300 requests, interrupted, or not met."""
    noise_floor: NonNegativeInt | None
    """Noise floor of the machine at this quantile. Unit: ns. Source: `wsgiload calibrate`. Null:
    not calibrated."""
    undisturbed: NonNegativeInt | None
    """The quantile over the seconds in which the host was not disturbed. Unit: ns. Null: always;
    it is not measured yet."""
    band: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Where the value of an undisturbed generator lies: `sampling_95`, its lower end lowered by the
    generator's share and the median noise floor. Unit: ns. Source: derived. Null: as
    `sampling_95`."""
    standing: Literal["bounded", "upper_bound", "few_responses"]
    """`bounded`; `upper_bound` where the generator may have added more than 10 % and 100 µs; or
    `few_responses` where the interval is not reliable. Source: derived."""


class PrecisionReached(Document, frozen=True, kw_only=True):
    """The plan's `precision` has the target: `quantile`, over all offered requests;
    `share`; and `longest_ns`."""

    half_width: NonNegativeFloat | None
    """Half of the quantile's 95 % interval, as a share of it. Unit: share. Source:
    `uncertainty`. Null: it has no interval, or an unbounded one."""
    is_reached: bool
    """Whether the target was reached. Source: derived."""


class QuantileUncertainty(Document, frozen=True, kw_only=True):
    """How accurately one run knows a quantile."""

    interval_95_ns: tuple[NonNegativeInt, NonNegativeInt | None] | None
    """Lower and upper end of the 95 % interval inside this run; the upper end is null where it
    is unbounded. Unit: ns. Source: derived. Null: fewer than 300 requests, not met, or
    interrupted."""
    effective_requests: NonNegativeFloat | None
    """As many independent requests would know the quantile as well. Unit: requests. Source:
    scatter over 30, 60 and 120 batches. Null: fewer than 300 requests, or interrupted."""
    standing: Literal["headline", "resolved", "not_resolved"]
    """`headline` (at least 100 effective requests lie beyond it), `resolved` (at least 10) or
    `not_resolved`. Source: derived."""
    reason: (
        Literal[
            "too_few_requests",
            "too_few_effective_requests",
            "not_met",
            "measurement_floor",
            "interrupted",
        ]
        | None
    )
    """Why it is not resolved: `too_few_requests` (fewer than 300), `too_few_effective_requests`
    (fewer than 10 beyond it), `not_met` (more failed than it leaves), `measurement_floor`
    (below three times the plan's `floor`: an upper bound only) or `interrupted`. Source:
    derived. Null: resolved."""


class Uncertainty(Document, frozen=True, kw_only=True):
    """How accurately one run knows its quantiles, and which may be shown."""

    offered_quantiles_ns: dict[QuantileKey, QuantileUncertainty]
    """By quantile, of the quantiles over all offered requests; failures count as beyond every
    response. Source: batches of the run."""
    response_time_ns: dict[QuantileKey, QuantileUncertainty]
    """By quantile, of the response times of correct responses. Source: batches of the run."""


class LevelChange(Document, frozen=True, kw_only=True):
    """A change of the level of the median response time."""

    at_ns: NonNegativeInt
    """When. Unit: ns from the beginning of the measurement. Source: derived."""
    p50_before_ns: NonNegativeInt
    """Level of the median before. Unit: ns. Source: slices."""
    p50_after_ns: NonNegativeInt
    """Level of the median after. Unit: ns. Source: slices."""


class Stationarity(Document, frozen=True, kw_only=True):
    """Whether response times changed over the measurement."""

    state: Literal["stationary", "drifting", "non_stationary", "unstable"] | None
    """`stationary`, `drifting` (moved from the first third to the last, and KPSS confirms it),
    `non_stationary` (the median changed by more than a quarter) or `unstable` (a backlog
    grew, or the queue was full). Source: checks stationarity and
    backlog-growth. Null: not checked."""
    reason: str | None
    """Why the response times could not be checked. Null: they were."""
    slice_ns: NonNegativeInt | None
    """Length of the slices that were compared: one second, or what a thousand responses take, at
    most 5 s or one interval. Unit: ns. Source: derived. Null: not checked."""
    p50_drift: float | None
    """How much larger the median was in the last third than in the first. Unit: ratio. Source:
    slices. Null: not checked."""
    p99_drift: float | None
    """The same of p99. Unit: ratio. Source: slices. Null: not checked."""
    p50_kpss: NonNegativeFloat | None
    """KPSS statistic of the logarithm of the median; above 0.739 once in a hundred times by
    chance. Source: slices. Null: not checked."""
    p99_kpss: NonNegativeFloat | None
    """The same of p99. Source: slices. Null: not checked."""
    p50_range: NonNegativeFloat | None
    """How much larger the highest level of the median was than the lowest. Unit: ratio. Source:
    slices. Null: not checked."""
    changes: tuple[LevelChange, ...]
    """Places at which the level of the median changed. Source: slices."""
    settled_after_ns: NonNegativeInt | None
    """From here on nothing changed: so much more warm-up was needed. Unit: ns from the beginning
    of the measurement. Source: derived. Null: no change, or one in the second half."""


class RequestsInSystem(Document, frozen=True, kw_only=True):
    """Requests between their intended send and their end."""

    mean: NonNegativeFloat
    """Requests in the system, mean over the measurement. Unit: requests. Source: generator."""
    growth: float | None
    """By how many times that mean they grew over the measurement: about 2 where a backlog began
    with nothing. Unit: ratio. Source: median slope. Null: closed loop, varying rate, fewer
    than 1,000 requests, interrupted."""


class SendGaps(Document, frozen=True, kw_only=True):
    """Consecutive send times against the requested Poisson process."""

    count: NonNegativeInt
    """Gaps that were looked at, from the middle of the measurement. Unit: gaps. Source:
    generator."""
    anderson_darling: float
    """Statistic against exponential gaps; above 1.959 once in a hundred times by chance. Source:
    derived."""
    kolmogorov_distance: NonNegativeFloat
    """Largest distance between the two distributions. Source: derived."""
    dispersion_deviation: NonNegativeFloat | None
    """How far the index of dispersion of the sends in 10 ms, 100 ms or 1 s is from 1 at most.
    Unit: standard errors. Source: derived. Null: too short a stretch."""


class Build(Document, frozen=True, kw_only=True):
    """How the generator was built."""

    profile: str
    """`release` or `debug`; a debug build is not fit for measuring. Source: build."""
    target_cpu: str | None
    """The instruction set it was built for. Source: build. Null: the default of the compiler."""
    git_sha: str | None
    """Commit it was built from. Source: build. Null: not built from a checkout."""


class Tool(Document, frozen=True, kw_only=True):
    """What made the measurement."""

    name: str
    """`wsgiload`, for the binary `loadgen` too."""
    version: str
    """Its version. Source: build."""
    build: Build
    """How it was built. Source: build."""


class LocalPorts(Document, frozen=True, kw_only=True):
    """The local ports that connections come from."""

    source_addresses: tuple[str, ...] | None
    """Source addresses of connections, used round-robin. Source: plan, or chosen over loopback.
    Null: the kernel chose."""
    free: NonNegativeInt
    """Ports that were free for connections to this server. Unit: ports. Source:
    `/proc/sys/net/ipv4`, `/proc/net/tcp`."""
    needed_at_most: NonNegativeInt
    """Most that the plan could hold at once. Unit: ports. Source: derived."""
    warning: str | None
    """That they may run out, and what helps. Source: derived. Null: they suffice."""


class TrackedConnections(Document, frozen=True, kw_only=True):
    """Beyond the end of the table the kernel drops what would open another connection: the
    server looks slow (alarm network-resources)."""

    before: NonNegativeInt
    """Entries before the first connection of the load. Unit: connections. Source:
    `/proc/sys/net/netfilter/nf_conntrack_count`."""
    after: NonNegativeInt
    """Entries after the last; the kernel keeps one for a while when its connection has ended,
    two minutes as a rule. Unit: connections. Source: the same."""
    max: NonNegativeInt
    """Most that the table holds. Unit: connections. Source:
    `/proc/sys/net/netfilter/nf_conntrack_max`."""


class RequestsPerConnection(Document, frozen=True, kw_only=True):
    """How many requests one connection carried."""

    min: NonNegativeInt | None
    """Fewest. Unit: requests. Source: generator. Null: no connection."""
    mean: NonNegativeFloat | None
    """Mean. Unit: requests. Source: generator. Null: no connection."""
    max: NonNegativeInt | None
    """Most. Unit: requests. Source: generator. Null: no connection."""


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
    """Most connections open at once. Unit: connections. Source: generator. Null: not recorded."""
    max_connections: PositiveInt
    """Most connections that were allowed at once. Unit: connections. Source: plan, descriptor
    limit, free ports."""
    requests_per_connection: RequestsPerConnection | None
    """How many requests a connection carried. Unit: requests. Source: generator. Null: no
    connection was closed or counted."""
    failures: dict[str, PositiveInt]
    """Why connections were not made, in words, and how often, in all phases; beyond eight
    causes, `further causes`. Unit: connections. Source: kernel, TLS."""
    local_ports: LocalPorts | None
    """The ports that connections come from, as known before the first ([ways to the
    server](transports.md)). Source: kernel. Null: over a Unix socket, or no `/proc`."""
    tracked: TrackedConnections | None
    """The kernel's table of tracked connections, all programs together. Source: kernel. Null:
    over a Unix socket, or the kernel tracks none (`nf_conntrack` is not loaded), or hides the
    table from a container."""


class RequestCounts(Document, frozen=True, kw_only=True):
    """The outcome of one target, or of one request of a session."""

    name: str
    """Its name, or its method and path; before a request of a session the session and the place
    in it, such as `browse[2] GET /cart`. Source: options."""
    scheduled: NonNegativeInt
    """Requests of this kind in the measurement; those of all kinds add up to the load's. Unit:
    requests. Source: generator."""
    ok: NonNegativeInt
    """Of these, with a correct response. Unit: requests. Source: generator."""
    failed: NonNegativeInt
    """Of these, all others. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time. Unit: ns. Source: generator, socket times. Null: no correct
    response, or so many kinds that their histograms would take more than 256 MiB (over 900 with one
    thread)."""
    p99_ns: NonNegativeInt | None
    """Response time that 99 % do not exceed. Unit: ns. Source: generator, socket times. Null: as
    `p50_ns`."""
    max_ns: NonNegativeInt | None
    """Longest response time. Unit: ns. Source: generator, socket times. Null: as `p50_ns`."""


class SessionCounts(Document, frozen=True, kw_only=True):
    """What became of the sessions that began in the measurement."""

    started: NonNegativeInt
    """Sessions that began in the measurement; the sum of the next three. Unit: sessions. Source:
    generator."""
    completed: NonNegativeInt
    """Every request got a correct response. Unit: sessions. Source: generator."""
    failed: NonNegativeInt
    """A request got none, which ended the session; or it was dropped before its first. Unit:
    sessions. Source: generator."""
    unfinished: NonNegativeInt
    """Under way when the load ended. Unit: sessions. Source: generator."""
    requests_not_reached: NonNegativeInt
    """Requests that were never scheduled because their session failed or was unfinished; they
    are in no other count. Unit: requests. Source: generator."""
    duration_ns: Distribution | None
    """How long the completed sessions took, thinking included: from the intended beginning to
    the last response. As far as sessions were unfinished, long ones are missing from it. Unit:
    ns, histogram. Source: generator. Null: none was completed."""


class Interval(Document, frozen=True, kw_only=True):
    """One slice of the measurement."""

    start_ns: NonNegativeInt
    """Its beginning. Unit: ns, monotonic. Source: generator."""
    length_ns: NonNegativeInt
    """Its length. Unit: ns. Source: generator."""
    scheduled: NonNegativeInt
    """Requests intended in it. Unit: requests. Source: generator."""
    sent: NonNegativeInt
    """Of those, sent. Unit: requests. Source: generator."""
    ok: NonNegativeInt
    """Of those, with a correct response. Unit: requests. Source: generator."""
    failed: NonNegativeInt
    """Of those, failed. Unit: requests. Source: generator."""
    p50_ns: NonNegativeInt | None
    """Median response time of the correct responses. Unit: ns. Source: generator. Null: none."""
    p99_ns: NonNegativeInt | None
    """P99 of the same. Unit: ns. Source: generator. Null: none."""
    max_ns: NonNegativeInt | None
    """Largest of the same. Unit: ns. Source: generator. Null: none."""
    hdr_v2: str | None
    """Histogram of the response times, HdrHistogram V2 compressed, base64. Source: generator.
    Null: no correct response."""


class Flights(Document, frozen=True, kw_only=True):
    """At most 2,000 of either kind in a sweep, each as `[intended send, end]` in ns, monotonic.
    A failure counts as slower than any response."""

    slowest: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """The slowest requests of the measurement, slowest first. Unit: ns, monotonic. Source:
    generator."""
    sample: tuple[tuple[NonNegativeInt, NonNegativeInt], ...]
    """Requests of the measurement drawn by chance, in the order of their intended sends. Unit:
    ns, monotonic. Source: generator."""


class ClockReading(Document, frozen=True, kw_only=True):
    """Both clocks, read at the same moment."""

    monotonic_ns: NonNegativeInt
    """CLOCK_MONOTONIC. Unit: ns. Source: kernel."""
    realtime_ns: NonNegativeInt
    """CLOCK_REALTIME at the same moment. Unit: ns since 1970. Source: kernel."""
    drift_ns: int
    """How far the two clocks had moved apart by the end of the load. Unit: ns. Source: kernel."""


class AttachedResources(Document, frozen=True, kw_only=True):
    """The key `resources` of a load with `--attach-cgroup` or `--attach-pid`. Nothing is limited
    by looking; the limits are those found."""

    source: Literal["cgroup-v2", "cgroup-v1", "processes"]
    """`cgroup-v2`, `cgroup-v1`, or `processes`: the process and its descendants, where their
    control group holds the generator, too. Source: host."""
    name: str
    """The control group, or the number of the process. Source: host."""
    effective_cpus: NonNegativeFloat | None
    """The tightest CPU limit of the group and those above it. Unit: cores. Source: control
    group. Null: no limit, or `processes`."""
    effective_memory_bytes: NonNegativeFloat | None
    """The tightest memory limit, likewise. Unit: bytes. Source: control group. Null: no limit,
    or `processes`."""
    effective_pids: NonNegativeFloat | None
    """The tightest limit of processes and threads, likewise. Source: control group. Null: no
    limit, or `processes`."""
    used: ResourceUse
    """The keys of [ResourceUse](#resourceuse), over the measurement. Source: samples every 100
    ms."""


class SpinUse(Document, frozen=True, kw_only=True):
    """How the generator busy-waits before a send."""

    window_ns: NonNegativeInt
    """How long before a send the generator busy-waits. Unit: ns. Source: generator."""
    reason: Literal["asked", "automatic", "off_at_this_rate", "off_on_shared_cores"]
    """Why: `asked`, `automatic`, `off_at_this_rate` or `off_on_shared_cores`. Source: generator."""


class Stalls(Document, frozen=True, kw_only=True):
    """Stalls of the generator's event loop of more than 5 ms."""

    count: NonNegativeInt
    """How many. Source: generator."""
    total_ns: NonNegativeInt
    """All of them together. Unit: ns. Source: generator."""
    longest_ns: NonNegativeInt
    """The longest. Unit: ns. Source: generator."""
    waited_ns: NonNegativeInt | None = None
    """Of all of them together, the time in which the thread was ready to run and waited for a
    core. Unit: ns. Source: kernel. Null: an older version measured it."""
    arrivals: NonNegativeInt
    """Measured requests that were due in one. Unit: requests. Source: generator."""
    responses: NonNegativeInt
    """Measured responses that may have waited in one to be read. Unit: requests. Source:
    generator."""


class StampDoubts(Document, frozen=True, kw_only=True):
    """Kernel timestamps that were not used."""

    rejected: NonNegativeInt
    """Kernel timestamps that contradict their exchange. Source: generator."""
    clock_steps: NonNegativeInt
    """Steps of the wall clock. Source: kernel."""


class GeneratorUsage(Document, frozen=True, kw_only=True):
    """What the generator cost, and how much it was disturbed."""

    cpu_seconds: NonNegativeFloat | None
    """CPU time of the generator. Unit: s. Source: kernel, per-thread clock. Null: not readable."""
    cpu_per_request_ns: NonNegativeFloat | None
    """The same per complete response of the whole load, correct or not. Unit: ns. Source: derived.
    Null: no response."""
    run_queue_wait_ns: NonNegativeInt | None
    """Time in which the generator was ready to run and had no CPU. Unit: ns. Source:
    `/proc/self/task/*/schedstat`. Null: not readable."""
    max_send_lag_ns: NonNegativeInt | None
    """Largest send lag of all that was sent or dropped, correct responses or not. Unit: ns. Source:
    generator. Null: nothing was sent or dropped."""
    busy_share: NonNegativeFloat
    """Share of the wall time in which the busiest generator thread worked, its spin before sends
    not counted. Unit: ratio. Source: kernel, per-thread clock."""
    steal_share: NonNegativeFloat | None
    """Share of the host's CPU time that the hypervisor took. Unit: ratio. Source: `/proc/stat`.
    Null: no `/proc/stat`."""
    scheduling: Literal["ordinary", "realtime"] | None
    """How the kernel scheduled the generator's threads: `ordinary`, or `realtime`, ahead of
    every ordinary process. Source: `/proc`. Null: not readable."""
    real_time_off_share: Share | None
    """Share of the load in which the generator's threads were busy with their real-time priority
    given up: 7 % where they hardly sleep, because the kernel stops by force who is busy with
    it for more than 95 % of a second (a core per thread is assumed). They are ordinary
    threads of niceness -10 then, or of 0 where they may not be urgent, and so a CPU quota
    holds for them, which does not hold for real-time threads. Unit: ratio. Source: generator.
    Null: at ordinary priority, and where it may not be taken back: there they sleep instead
    (`curtailed_spins`)."""
    spin: SpinUse
    """`window_ns`: how long before a send the generator polls its sockets
    instead of sleeping; `reason`: `asked`, `automatic`, `off_at_this_rate` (it would cost
    more than a fifth of a core, or there is no rate, as in a closed loop) or
    `off_on_shared_cores` (the plan says that others work there, as a sweep's does where the
    server has no cores of its own, or there are no more cores than generator threads and none
    were set aside for it). `wsgiload load` says so in a line of its own. With or without a
    window, a timer is set earlier by what the last 16 wake-ups took at least, 20 µs at most.
    Source: generator."""
    spin_off_share: Share | None
    """Share of the load in which the generator did not spin, because the cores that it may use
    had less idle time than a tenth of a core per generator thread: looked at every half
    second, and it spins again once three tenths are idle. Unit: ratio. Source: `/proc/stat`.
    Null: the window was given or is 0, or the load had ended before the first look."""
    spin_cpu_seconds: NonNegativeFloat
    """CPU time that the spin cost. Unit: s. Source: generator."""
    curtailed_spins: NonNegativeInt
    """How often a spin was cut short by a nap, because a real-time thread that may not give its
    priority up and take it back had slept for less than 7 % of the time; hardly any makes a
    send late. Unit: looks. Source: generator."""
    stalls: Stalls
    """Stalls of the generator's own loop of more than 5 ms: `count`, `total_ns`, `longest_ns`,
    measured `arrivals` that were intended in one, and measured `responses` that may have come
    in one and waited to be read, where their moment is our own, or connections that may have
    been made in one. Source: generator."""
    throttled_periods: NonNegativeInt | None
    """Periods in which the generator's own control group was throttled. Unit: periods. Source:
    `cpu.stat` of that group. Null: no CPU controller."""
    receive_stamps: Literal["kernel", "sampled", "user"]
    """Whose timestamps the correct responses have, most of them: `kernel`, `sampled` (our own; one
    connection in sixteen is also stamped by the kernel, for `receive_delay_ns`) or `user`
    (our own). Source: generator."""
    user_timestamps: NonNegativeInt
    """Correct responses that have our own timestamps, so that a delay of the generator's may be in
    their response time: all of them unless `receive_stamps` is `kernel`; otherwise those that
    the server ended by closing the connection, and those whose stamp was missing or in doubt.
    Unit: requests. Source: generator."""
    stamp_doubts: StampDoubts
    """`rejected`: stamps of the kernel outside the exchange they belong to, or that could not
    be carried over to our clock; `clock_steps`: steps of the wall clock. Such responses have
    our own timestamps. Unit: counts. Source: generator."""


class LoadReport(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Times are integer nanoseconds of CLOCK_MONOTONIC, sizes bytes, rates per second. What is
    not known is null, never 0."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    tool: Tool
    """What made the measurement."""
    plan: LoadPlan
    """The plan with its fixed defaults filled in, seeds included, and `null` where the generator
    decides; its keys are those of the options. Source: options."""
    verdict: Verdict
    """Whether the numbers stand. Source: checks."""
    diagnostics: tuple[Diagnostic, ...]
    """What was noticed and casts no doubt on the figures. Source: checks."""
    not_checked: tuple[NotChecked, ...]
    """Checks of the load that could not look, and why; the checks and their thresholds are in
    [checks.md](checks.md). Source: checks."""
    measured_ns: NonNegativeInt
    """How much of the measure phase took place: all of it, unless the run was stopped or the
    server died; with `--max-duration` what it took. Unit: ns. Source: generator."""
    rate: Rates
    """Rates of the measurement phase."""
    outcomes: Outcomes
    """What became of every scheduled request. Unit: requests. Source: generator."""
    status_codes: dict[StatusCode, NonNegativeInt]
    """Answers by HTTP status, those that broke off after their head included. Unit: requests.
    Source: generator."""
    response_time_ns: Distribution | None
    """Intended send to last byte, of correct responses. Unit: ns. Source: generator, socket times.
    Null: no correct response."""
    service_time_ns: Distribution | None
    """Actual send to last byte, of correct responses. Unit: ns. Source: generator, socket times.
    Null: no correct response."""
    send_lag_ns: Distribution | None
    """The generator's own delay, of the correct responses. Unit: ns. Source: generator. Null:
    no correct response."""
    pool_wait_ns: Distribution | None
    """Waiting for a free connection, of the correct responses. Unit: ns. Source: generator. Null:
    no correct response."""
    connect_time_ns: Distribution | None
    """Opening a connection, of the correct responses that came over a new one. Unit: ns. Source:
    generator. Null: there was none."""
    first_byte_ns: Distribution | None
    """Actual send to first byte. Unit: ns. Source: generator, socket times. Null: no correct
    response."""
    transfer_ns: Distribution | None
    """First to last byte; 0 for a response that arrived in one piece. Unit: ns. Source: generator,
    socket times. Null: no correct response, or a report of version 1."""
    receive_delay_ns: Distribution | None
    """How much later than the kernel the generator had the last byte of a response. With the
    kernel timestamps (`client.receive_stamps`) it is part of the response time of no response
    that has one (`client.user_timestamps` says how many have none); with sampled ones it is part
    of every response time. Unit: ns. Source: kernel receive stamps. Null: no kernel stamp:
    Unix sockets, TLS, HTTP/2, hyper, responses that end with their connection,
    `--receive-stamps user`."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """The headline: quantiles over all offered requests. Unit: ns. Source: outcomes and response
    times. Null: never; empty where nothing was scheduled."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """The error budget of each quantile of `response_time_ns`. Unit: ns. Source: derived."""
    uncertainty: Uncertainty
    """How well each quantile is known, and whether it may be shown
    ([statistics.md](statistics.md)). Source: batches of the run."""
    precision: PrecisionReached | None
    """Whether the target precision was reached. Source: batches of the run. Null: no
    `precision` in the plan (`--precision` with `--max-duration`)."""
    stationarity: Stationarity
    """Whether the response times stayed what they were. Source: slices of the run."""
    in_system: RequestsInSystem
    """Requests between their intended send and their end. Source: generator."""
    send_gaps: SendGaps | None
    """Consecutive sends against the requested Poisson process. Source: generator. Null:
    no Poisson arrivals of one rate, fewer than 1,000 sends, requests that waited for a
    connection or were dropped, or sessions."""
    connections: ConnectionCounts | None
    """How connections were used. Source: generator. Null: not recorded."""
    client: GeneratorUsage | None
    """How the generator itself fared. Source: kernel, generator. Null: not recorded."""
    targets: tuple[RequestCounts, ...]
    """How each of several requests fared: each target, or each request of each session; none
    where there is one request. Source: generator."""
    sessions: SessionCounts | None
    """What became of the sessions that began in the measurement. Unit: sessions. Source:
    generator. Null: the load has no sessions."""
    intervals: tuple[Interval, ...]
    """The measurement, slice by slice. Source: generator."""
    flights: Flights | None
    """When single requests were in flight, to be held against what else happened then. Source:
    generator. Null: none were kept: always in `wsgiload load`."""
    clock: ClockReading
    """The two clocks read at the same moment, to place the run in wall time. Source: kernel."""
    resources: AttachedResources | None = None
    """Only with `--attach-cgroup` or `--attach-pid`: what a server that was already running used.
    Source: control group or processes."""
