"""``summary.json`` of a sweep."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    QuantileKey,
    Share,
)
from wsgiload.documents.load_report import (
    Bounds,
    Distribution,
    ErrorBudget,
    NotChecked,
    Outcomes,
    Rates,
    Uncertainty,
    Verdict,
)
from wsgiload.documents.resources import ResourceUse

Keepalive = Literal["on", "off"] | PositiveInt


class QualifyingFacts(Document, frozen=True, kw_only=True):
    """The short trials before a race, which select the servers that take part."""

    rounds: PositiveInt
    """Number of rounds of short trials. They are included in `runs`, but no figure is based on
    them. Unit: rounds. Source: plan."""
    field: PositiveInt
    """Maximum number of servers in the race. Unit: servers. Source: plan."""
    duration_s: NonNegativeFloat
    """Duration of the measurement of a short trial. Unit: s. Source: plan."""


class ExperimentFacts(Document, frozen=True, kw_only=True):
    """The plan of the sweep, with every default filled in."""

    name: str | None
    """Name of the experiment. Source: plan. Null: not named."""
    title: str | None = None
    """Title of the experiment. Source: experiment file. Null: none was given."""
    source: str | None = None
    """Publication or origin of the experiment. Source: experiment file. Null: not given."""
    notes: tuple[str, ...] = ()
    """Notes on the experiment, such as how it was scaled. Source: experiment file."""
    profile: Literal["tuned", "stock"] | tuple[Literal["tuned", "stock"], ...] | None = None
    """`tuned` (equivalent settings) or `stock` (each server's defaults); a list if
    `--grid profile=` combines both. Source: plan. Null: only the user's own commands."""
    interface: Literal["wsgi", "asgi"] | None = None
    """How the servers call the app. Source: plan. Null: not stored, or only the user's own
    commands."""
    app: str | tuple[str, ...] | None
    """`module:callable`; a list if `--grid app=` combines several. Source: plan. Null:
    unknown for the user's own commands."""
    app_revision: str | None = None
    """Checked-out commit of the app, with `+changes` if tracked files were modified. Source: git.
    Null: no git work tree, or a bundled app."""
    path: str | tuple[str, ...] | None
    """Requested path; a list if the apps of a grid have different ones. Source: plan. Null:
    several targets."""
    method: str | None = None
    """Method of the requests. Source: plan. Null: not stored, or the apps of a grid have different
    ones."""
    targets: PositiveInt | None = None
    """Number of weighted requests. Source: plan. Null: one request."""
    sessions: PositiveInt | None = None
    """Number of different sessions. Source: plan. Null: no sessions."""
    rates: tuple[PositiveFloat, ...] | None
    """Offered rates. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: tuple[PositiveInt, ...] | int | None
    """Numbers of connections of a closed loop, or the fixed number of an open loop. Unit:
    connections. Source: plan. Null: open loop without a fixed number."""
    arrivals: Literal["poisson", "constant"] | None
    """`poisson` or `constant`. Source: plan. Null: closed loop."""
    on_busy: Literal["grow", "queue", "shed"] | None
    """`grow`, `queue` or `shed`. Source: plan. Null: closed loop."""
    max_connections: PositiveInt | None = None
    """Maximum number of open connections. Unit: connections. Source: plan. Null: closed loop."""
    max_pending: NonNegativeInt | None = None
    """Maximum number of arrivals waiting for a connection. Unit: requests. Source: plan. Null:
    closed loop, or the default: 10 s worth of requests, at least 10 per connection."""
    keepalive: Keepalive | tuple[Keepalive, ...] | None = None
    """`on`, `off`, or requests per connection; a list if a grid combines several. Source: plan.
    Null: not stored."""
    think_time_s: NonNegativeFloat | None = None
    """Mean think time of a user. Unit: s. Source: plan. Null: open loop."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    warmup_s: NonNegativeFloat
    """Length of the warm-up. Unit: s. Source: plan."""
    warmup_requests: PositiveInt | None = None
    """Minimum number of scheduled requests in the warm-up. Unit: requests. Source: plan. Null: not
    set."""
    cooldown_s: NonNegativeFloat | None = None
    """Length of the cool-down. Unit: s. Source: plan. Null: not stored."""
    timeout_s: NonNegativeFloat | None = None
    """Request timeout. Unit: s. Source: plan. Null: not stored."""
    check_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    """Overridden check thresholds, by name. Source: plan."""
    runs: PositiveInt
    """Runs of each cell. Source: plan."""
    settle_s: NonNegativeFloat | None = None
    """Maximum wait for a quiet host before each trial. Unit: s. Source: plan. Null: not stored."""
    reruns: NonNegativeInt | None = None
    """Maximum retries of a disturbed trial. Source: plan. Null: not stored."""
    budget_s: NonNegativeFloat | None = None
    """Time limit of a race, in which `runs` is the maximum number of rounds. Unit: s. Source:
    plan. Null: no race."""
    qualifying: QualifyingFacts | None = None
    """The short trials before the race. Source: plan. Null: there are none."""
    aggregate: Literal["interval", "trim"] = "interval"
    """How runs are combined: `interval` (mean with confidence interval) or `trim` (additionally a
    mean without the lowest and the highest run). Source: plan."""
    slo: tuple[str, ...] | None = None
    """The objective of the recommendation, including the default limit of the error rate. Source:
    plan, or `wsgiload report --slo`. Null: none was given."""
    cpus: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit of processes and threads. Source: plan. Null: no limit."""
    limits_policy: Literal["strict", "best-effort", "none"] | None = None
    """What happens to a limit that cannot be enforced. Source: plan. Null: not stored."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs that the server is pinned to. Unit: CPU numbers. Source: plan. Null: not pinned."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs that the generator is pinned to. Unit: CPU numbers. Source: plan. Null: not pinned."""
    servers: tuple[str, ...]
    """The measured servers. Source: plan."""


class ExternalCounts(Document, frozen=True, kw_only=True):
    """Counts by the app and the kernel over the whole load, including warm-up and cool-down."""

    requests_seen: NonNegativeInt | None
    """Number of calls of the app, in all its processes. Unit: requests. Source: the bundled app,
    through shared memory. Null: your own app, or a server that does not pass on its
    environment."""
    retransmitted_segments: NonNegativeInt | None
    """TCP segments retransmitted by the host. Unit: segments. Source: `/proc/net/snmp`:
    RetransSegs. Null: not readable."""
    listen_overflows: NonNegativeInt | None
    """Connections dropped by the host because an accept queue was full. Unit: connections. Source:
    `/proc/net/netstat`: ListenOverflows. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections dropped by the host's listening sockets for any reason. Unit: connections.
    Source: `/proc/net/netstat`: ListenDrops. Null: not readable."""
    request_queue_full_drops: NonNegativeInt | None
    """Connection attempts dropped by the host because a request queue (SYN queue) was full. Unit:
    connections. Source: `/proc/net/netstat`: TCPReqQFullDrop. Null: not readable."""


class AggregateFigure(Document, frozen=True, kw_only=True):
    """A quantile over all offered requests (ns), or a goodput (1/s), over several runs."""

    values: tuple[NonNegativeFloat | None, ...]
    """One value per run, in the order of `runs`. Unit: ns, or 1/s. Source: cells. Null: no finite
    value, or too few requests."""
    median: NonNegativeFloat | None
    """Median of the runs; a run without a finite value counts as infinite. Unit: ns, or 1/s.
    Source: values. Null: no finite value in half of the runs."""
    min: NonNegativeFloat | None
    """Lowest run. Unit: ns, or 1/s. Source: values. Null: no run has a finite value."""
    max: NonNegativeFloat | None
    """Highest run. Unit: ns, or 1/s. Source: values. Null: a run has no finite value."""
    mean: NonNegativeFloat | None
    """Geometric mean. Unit: ns, or 1/s. Source: values. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the geometric mean (Student's t on logarithms): low, high. Unit:
    ns, or 1/s. Source: values. Null: see `reason`."""
    between_run_cv: NonNegativeFloat | None
    """Coefficient of variation between runs (lognormal). Unit: share. Source: values. Null: see
    `reason`."""
    between_run_share: Share | None = None
    """Share of the variance (of logarithms) that is due to differences between runs; the rest is
    the sampling error within runs. Unit: 0 to 1. Source: values, `uncertainty` of the cells. Null:
    see `reason`, a goodput, or a run without a confidence interval."""
    trimmed_mean: NonNegativeFloat | None
    """Arithmetic mean without the lowest and the highest run. Unit: ns, or 1/s. Source: values.
    Null: not requested (`--aggregate trim`), or fewer than three runs."""
    reason: str | None
    """Why there is no interval. Source: values. Null: there is an interval."""


class ComparedFigure(Document, frozen=True, kw_only=True):
    """Another figure of the two compared servers, evaluated in the same way."""

    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """Compared figure. Source: plan."""
    factor: NonNegativeFloat
    """Ratio: the first server's figure divided by the second's. Unit: ratio. Source: rounds."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat]
    """95 % confidence interval of the ratio: low, high. Unit: ratio. Source: rounds."""
    p_adjusted: Share
    """p-value, adjusted for all pairs with this app at this load level. Unit: 0 to 1. Source:
    rounds."""
    margin: NonNegativeFloat
    """As in the comparison. Unit: share. Source: rounds."""
    finding: Literal["different", "same", "undecided"]
    """`different`, `same` (within 5 %) or `undecided`. Source: rounds."""


class Comparison(Document, frozen=True, kw_only=True):
    """Two servers with one app at one load level, paired by round."""

    first: str
    """The first server. Source: cells."""
    second: str
    """The second server. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None = None
    """The app that both served. Source: cells. Null: different apps in two stored runs."""
    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """Compared figure: `p99` in an open loop, `goodput` in a closed loop, or the one chosen.
    Source: plan."""
    rounds: NonNegativeInt
    """Rounds in which both have a valid result. Source: cells."""
    same_server: bool
    """Whether both are the same server under two names (A/A test). Source: catalogue."""
    factor: NonNegativeFloat | None
    """Ratio: the first server's figure divided by the second's; for two stored runs without an
    interval, the ratio of their medians. Unit: ratio. Source: rounds. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the ratio: low, high. Unit: ratio. Source: rounds. Null: see
    `reason`."""
    p: Share | None
    """p-value of a two-sided paired t test; for two stored runs, of a permutation test. Unit: 0 to
    1. Source: rounds. Null: see `reason`."""
    p_adjusted: Share | None
    """p-value, Holm-adjusted for all pairs with this app at this load level. Unit: 0 to 1. Source:
    rounds. Null: see `reason`."""
    aa_factor: float | None
    """A/A ratio: one server compared with itself, with this app at this load level. Unit: ratio.
    Source: rounds. Null: no server was measured under two names."""
    margin: NonNegativeFloat | None = None
    """The two differ by at most this share, with 95 % confidence (0.09 is 9 %); two one-sided
    tests. Unit: share. Source: rounds. Null: see `reason`, or stored by an older version."""
    finding: Literal["different", "same", "undecided", "no inference"]
    """`different`, `same` (within 5 %), `undecided` or `no inference`. Source: rounds."""
    reason: str | None
    """Why no conclusion is possible, or why a difference is not reported. Source: rounds. Null:
    neither applies."""
    load_share: NonNegativeFloat | None
    """The rate divided by the lower of the two servers' saturated goodputs. Unit: share. Source:
    cells. Null: closed loop, sessions, or one of the servers was never saturated."""
    others: tuple[ComparedFigure, ...] = ()
    """Comparisons of p50, p99 and goodput, without the one in `figure`. A comparison is present if its
    values are known in every round. Source: rounds."""


class RaceDrop(Document, frozen=True, kw_only=True):
    """Why a server dropped out of a race. Dropping out is not proof that it is slower."""

    server: str
    """The server. Source: cells."""
    rounds: PositiveInt
    """Rounds until it dropped out. Unit: rounds. Source: cells."""
    behind: str | None
    """The server that was ahead of it. Source: cells. Null: it failed in two rounds."""
    factor: NonNegativeFloat | None
    """Ratio to that server's figure over their common rounds. Unit: ratio. Source: cells. Null: as
    `behind`."""
    in_qualifying: bool = False
    """Whether it dropped out in the short trials before the race; `rounds` then counts these.
    Source: cells."""


class Race(Document, frozen=True, kw_only=True):
    """A race within a budget between the servers with one app at one load level."""

    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app that the servers served. Source: cells. Null: not recorded."""
    outcome: Literal["winner", "ties", "open", "failed"]
    """`winner`, `ties` (more rounds are unlikely to separate the contenders), `open` (the budget
    ran out first) or `failed` (every server failed). Source: cells."""
    contenders: tuple[str, ...]
    """The servers that did not drop out, the fastest first. Source: cells."""
    dropped: tuple[RaceDrop, ...]
    """The servers that dropped out. Source: cells."""
    margin: NonNegativeFloat | None
    """Maximum difference between the contenders and the first, with 95 % confidence (0.09 is 9 %).
    Unit: share. Source: cells. Null: a winner, or too few rounds."""
    rounds_left: PositiveInt | None
    """Expected number of further rounds until a decision. Unit: rounds. Source: cells. Null:
    decided, or more than the maximum number of rounds."""


class OverloadPoint(Document, frozen=True, kw_only=True):
    """One rate above the maximum goodput."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    load_share: float
    """The rate divided by the maximum goodput. Unit: share. Source: cells."""
    goodput_per_s: NonNegativeFloat
    """Correct responses. Unit: 1/s. Source: cells."""
    kept_ratio: Share
    """Goodput divided by the maximum goodput: 1 means that the goodput was kept, 0 that it
    collapsed. Unit: 0 to 1. Source: cells."""


class Overload(Document, frozen=True, kw_only=True):
    """A saturated server in an open loop, as medians over runs; not available for sessions."""

    server: str
    """A server whose goodput was below 95 % of the scheduled rate in every run at some rate.
    Source: cells."""
    capacity_per_s: NonNegativeFloat
    """Its highest goodput at any rate. Unit: 1/s. Source: cells."""
    points: tuple[OverloadPoint, ...]
    """The rates above that goodput. Source: cells."""


class EfficiencyPoint(Document, frozen=True, kw_only=True):
    """The efficiency at one rate."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    efficiency_per_s2: NonNegativeFloat
    """Median over runs. Unit: 1/s². Source: cells."""


class Efficiency(Document, frozen=True, kw_only=True):
    """Efficiency in an open loop: goodput divided by the mean response time of the correct
    responses. It is 0 if the server or more than 1 % of the requests failed."""

    server: str
    """A server that was measured at three rates or more. Source: cells."""
    rate: NonNegativeFloat | None
    """The offered rate with the highest efficiency (median over runs). Unit: 1/s. Source: cells.
    Null: see `reason`."""
    between: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """The next lower and the next higher measured rate; a wider range if runs disagree. Unit: 1/s.
    Source: cells. Null: see `reason`."""
    points: tuple[EfficiencyPoint, ...]
    """All measured rates. Source: cells."""
    reason: str | None
    """Why the rate is unknown: efficiency peaks at the lowest or the highest measured rate, or
    there were too few correct responses. Source: cells. Null: it is known."""


class NoRecommendation(Document, frozen=True, kw_only=True):
    """Why no configuration is recommended, and what is needed for a recommendation."""

    why: str
    """Why no configuration can be recommended. Source: cells."""
    needs: str
    """What is needed for a recommendation. Source: cells."""
    is_missed: bool
    """Whether no configuration meets the objective, so that the command exits with code 99. Source:
    cells."""


class MeasuredConcurrency(Document, frozen=True, kw_only=True):
    """The concurrency of a server, measured with the app `conformance` and the cell's settings."""

    probed: PositiveInt
    """Number of simultaneous requests or connections tried."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    requests_at_once: NonNegativeInt | None
    """Maximum number of requests inside the app at the same time. Unit: requests. Source:
    timestamps of the app. Null: no response in time."""
    connections_served: NonNegativeInt | None
    """Number of connections, opened one after the other, on which a response arrived. Unit:
    connections. Source: probe. Null: no keep-alive."""
    connections_kept: NonNegativeInt | None
    """Number of these connections that stayed open. Unit: connections. Source: probe. Null: no
    keep-alive."""


class Versions(Document, frozen=True, kw_only=True):
    """The versions of a server, its interpreter and its packages."""

    server: str | None
    """Version of the server. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    python: str | None
    """Version of the interpreter. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    packages: dict[str, str]
    """Versions of the packages of the server, by name. Source: its environment."""


class ServerSettings(Document, frozen=True, kw_only=True):
    """The settings with which a server ran."""

    command: tuple[str, ...]
    """The command as it was executed. Source: catalogue, plan."""
    own_command: str | None = None
    """The command as the user gave it, with its placeholders. Source: plan. Null: a server of the
    catalogue."""
    folder: str | None = None
    """Folder that the user's command ran in. Source: plan. Null: a server of the catalogue."""
    setup: tuple[str, ...] = ()
    """The user's commands that ran before its start. Source: plan."""
    teardown: tuple[str, ...] = ()
    """The user's commands that ran after its end. Source: plan."""
    ready_path: str | None = None
    """Path polled to detect that the user's command is ready. Source: plan. Null: the first request
    of the load was used."""
    stop_signal: str | None = None
    """Signal that stops it. Source: plan. Null: a server of the catalogue."""
    scripts: tuple[str, ...] = ()
    """Scripts of wsgiload that the command uses, where the server has no suitable command line; see
    `wsgiload servers script`. Source: catalogue."""
    requirements: tuple[str, ...] = ()
    """Python packages that the server was installed from. Source: catalogue."""
    system_packages: tuple[str, ...] = ()
    """Debian packages that it needs. Source: catalogue."""
    added_arguments: tuple[str, ...] = ()
    """Arguments that the user added; they take precedence over the others. Source: plan."""
    config_file: str | None = None
    """The user's configuration file for the server; the command line takes precedence over it.
    Source: plan. Null: none was given."""
    workers: PositiveInt | None
    """Number of worker processes requested. Source: plan, catalogue. Null: the server
    has none, its default applies, or the user's command does not say."""
    threads: PositiveInt | None
    """Number of threads requested for each worker. Source: plan, catalogue. Null: the
    server has none, its default applies, or the user's command does not say."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    keepalive: Literal["on", "off"] | None
    """Whether the server kept connections alive. Source: probe. Null: not probed."""
    environment: dict[str, str]
    """Variables that were set for the server, in addition to those inherited. Secrets are replaced.
    Source: catalogue, plan."""
    versions: Versions
    """Versions of the server and its packages."""


class AppliedLimits(Document, frozen=True, kw_only=True):
    """The limits of a server, as requested and as read back."""

    backend: Literal["cgroup-v2", "cgroup-v1", "none"]
    """`cgroup-v2`, `cgroup-v1` or `none`. Source: host."""
    cpus: NonNegativeFloat | None
    """CPU limit. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit, swap off. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit of processes and threads. Source: plan. Null: no limit."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs of the server. Unit: CPU numbers. Source: plan. Null: not pinned."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs of the generator. Unit: CPU numbers. Source: plan. Null: not pinned."""
    read_back: dict[str, float | str | None]
    """The limits read back from the cgroup files; `effective_...` is the smallest limit on the
    path to the root cgroup, `affinity` the CPU affinity of a process pinned like the server. Unit:
    as in the file. Source: cgroup."""
    not_enforced: tuple[str, ...]
    """Limits that were requested but could not be set. Source: cgroup."""


class ExitStatus(Document, frozen=True, kw_only=True):
    """How a server ended."""

    code: int | None
    """Exit code. Source: kernel. Null: killed by a signal."""
    signal: int | str | None
    """Signal that killed it. Source: kernel. Null: not killed by a signal."""
    clean: bool
    """Whether it stopped on request and in time."""


class CellFailure(Document, frozen=True, kw_only=True):
    """Why a cell failed."""

    step: str
    """Step that failed, such as `provision`, `launch`, `readiness` or `load`."""
    message: str
    """Cause and fix."""
    log_tail: str | None
    """End of the server's log. Source: server log. Null: there is none."""


class ShareInterval(Document, frozen=True, kw_only=True):
    """A share with its confidence interval."""

    value: NonNegativeFloat
    """The share, or the ratio."""
    low: NonNegativeFloat | None
    """Lower 95 % bound. Source: bootstrap over seconds of the measurement. Null: fewer than five
    seconds."""
    high: NonNegativeFloat | None
    """Upper 95 % bound. Source: the same. Null: fewer than five seconds."""


class ExposureResult(Document, frozen=True, kw_only=True):
    """How often slow requests overlapped an event, compared with all requests."""

    signal: Literal["throttled", "without_cpu", "paused", "short_of_memory"]
    """`throttled` (by the CPU limit), `without_cpu` (runnable, but waiting for a CPU), `paused` (neither
    running nor runnable while connections waited) or `short_of_memory` (memory pressure)."""
    slowest: ShareInterval
    """Share of the slowest requests that were in the system during the event. Unit: 0 to 1. Source:
    samples, `flights`."""
    all: ShareInterval
    """Share of all requests that were in the system during the event. Unit: 0 to 1. Source:
    samples, `flights`."""
    risk_ratio: ShareInterval | None
    """Probability that a request that overlapped the event was among the slowest, divided by the same
    probability for the other requests. Unit: ratio. Source: the two above. Null: every request overlapped, or none did."""


class FingerprintResult(Document, frozen=True, kw_only=True):
    """A known pattern in the samples that indicates a cause."""

    name: str
    """Name of the pattern."""
    sentence: str
    """The observation as a sentence."""
    rule: str
    """Condition for reporting the pattern."""
    source: str
    """Source of the value."""
    value: float
    """Measured value. Unit: as in `rule`. Source: `source`."""
    limit: float
    """Threshold of the rule. Unit: as in `rule`."""


class AttributionResult(Document, frozen=True, kw_only=True):
    """Events that coincided with slow requests, which does not imply a cause;
    [attribution.md](attribution.md) has the rules."""

    slowest: NonNegativeInt | None
    """Number of requests that count as the slowest: 1 %, but at least ten. Unit: requests. Source:
    load. Null: the load has no `flights`."""
    slowest_ratio: Share | None
    """Their share of all requests. Unit: 0 to 1. Source: load. Null: as `slowest`."""
    resolution_ns: NonNegativeInt
    """Time resolution of the events: one CPU period. Unit: ns. Source: cgroup."""
    exposures: tuple[ExposureResult, ...]
    """How many requests overlapped each signal that occurred. Source: samples, `flights`."""
    fingerprints: tuple[FingerprintResult, ...]
    """The patterns that were detected. Source: samples."""
    worker_imbalance: NonNegativeFloat | None
    """0 if all workers use the same CPU time, 1 if one uses all of it. Unit: 0 to 1. Source:
    processes.csv. Null: fewer than two workers."""
    foreign_cpu_ratio: Share | None
    """Share of the machine's CPU time used neither by the server nor by the measurement. Unit: 0
    to 1. Source: `/proc/stat` in ticks, cgroup, client.csv. Null: not readable."""
    cpu_wait_ratio: NonNegativeFloat | None
    """Share of the time in which the whole cgroup waited for a CPU without throttling or memory
    pressure. Unit: 0 to 1. Source: `cpu.pressure`. Null: no PSI."""


class ServiceUse(Document, frozen=True, kw_only=True):
    """Resource use of a supporting service during the measurement of a cell."""

    name: str
    """As in `[services.NAME]`. Source: plan."""
    cpus: NonNegativeFloat | None
    """Cores that it may use. Unit: cores. Source: plan, cgroup. Null: not known."""
    shares_server_cores: bool
    """Whether the server runs on the same cores. Source: plan."""
    resources: ResourceUse
    """Its resource use, as for a server. Source: cgroup, or its processes."""


class CellResult(Document, frozen=True, kw_only=True):
    """The result of one cell in one run: one server with one app at one load level."""

    id: str
    """Name of the cell and its files: `server@load#run`, or `server@load#run.2` for a rerun."""
    attempt: PositiveInt | None = None
    """1, or higher for a rerun. Source: sweep."""
    server: str
    """Name in the catalogue, or name of the user's command. Source: catalogue, plan."""
    variant: str | None
    """Variant of the server. Source: catalogue. Null: it has none."""
    alias: str | None = None
    """Alias, as in `--servers again=waitress`. Source: plan. Null: no alias."""
    pinned_version: str | None = None
    """Requested version, as in `--servers waitress==3.0.1`. Source: plan. Null: that of the
    catalogue, or the user's own command."""
    profile: Literal["tuned", "stock"] | None = None
    """Profile of the experiment, or of this cell in a grid. Source: plan. Null: the user's own
    command."""
    size: str | None = None
    """Workers, threads, profile, keep-alive, Python version and bundled app if set by a grid or an
    option, such as `w2-t4` or `stock-close-py3.13-cpu`. Source: plan. Null: set by the profile."""
    app: str | None = None
    """`module:callable` that it served. Source: plan. Null: unknown for the user's command."""
    legacy: bool | None = None
    """Whether the server, or the only interpreter that it supports, is no longer maintained.
    Source: catalogue."""
    version: str | None
    """Version of the server that ran. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    python: str | None
    """Version of the Python that ran it. Source: its environment. Null: it could not be built, or
    the version is unknown for the user's command."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    run: PositiveInt
    """Number of the run, from 1. Source: plan."""
    verdict: Verdict | None
    """As in a load. Source: checks. Null: nothing was measured."""
    rate_result: Rates | None
    """As `rate` in a load. Unit: 1/s. Source: load. Null: nothing was measured."""
    outcomes: Outcomes | None
    """As in a load. Unit: requests. Source: load. Null: nothing was measured."""
    response_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    service_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    send_lag_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    connect_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    uncertainty: Uncertainty | None = None
    """As in a load: the uncertainty within one run, without the variation between runs. Source:
    load. Null: nothing was measured."""
    limits: AppliedLimits | None
    """Limits of the server, as requested and as read back. Source: cgroup. Null: failed
    before they were set."""
    resources: ResourceUse | None
    """Resource use of the server during the measurement. Source: cgroup. Null: nothing was
    measured."""
    services: tuple[ServiceUse, ...] = ()
    """Resource use of the supporting services during the measurement. Source: cgroup."""
    server_exit: ExitStatus | None
    """How the server ended. Source: kernel. Null: it never started."""
    failure: CellFailure | None
    """Why there is no result. Null: it did not fail."""
    settings: ServerSettings | None = None
    """The settings with which the server ran. Source: catalogue, kernel. Null: it was not started,
    or an older version measured it."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """As in a load. Unit: ns. Source: load, host."""
    settled_s: NonNegativeFloat | None = None
    """Time for which the trial waited for a quiet host. Unit: s. Source: host. Null: it did not
    wait."""
    disturbed_s: NonNegativeFloat | None = None
    """Total length of the intervals in which other processes used more than 15 % of the machine's
    CPU time, or the hypervisor took more than 5 %. Unit: s. Source: `/proc/stat`, cgroup,
    client.csv. Null: not known."""
    warmup_s: NonNegativeFloat
    """Length of the warm-up. Unit: s. Source: plan."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    unhealthy_s: NonNegativeFloat | None = None
    """Total length of the intervals in which requests were due but none got a correct response.
    Unit: s. Source: load. Null: nothing was measured."""
    keepalive_honoured: bool | None
    """Whether the server kept connections open when keep-alive was requested. Source: generator.
    Null: not requested, or nothing was measured."""
    not_checked: tuple[NotChecked, ...] | None = None
    """As in a load, plus the checks of the sweep (app-calls, kernel-drops) that could not run.
    Source: checks. Null: nothing was measured."""
    external_counts: ExternalCounts | None = None
    """Counts by the app and the kernel over the whole load, including warm-up and cool-down, for
    app-calls and kernel-drops. Source: app, kernel. Null: nothing was measured."""
    backlog: NonNegativeInt | None = None
    """Listen backlog per socket. Unit: connections. Source: kernel. Null: not readable."""
    concurrency: MeasuredConcurrency | None = None
    """How many requests and connections the server handles at once. Source: probe before its first
    cell. Null: tuned profile, or it could not be probed."""
    notes: tuple[str, ...]
    """Notes shown with the result."""
    attribution: AttributionResult | None = None
    """Events that coincided with slow requests ([attribution.md](attribution.md)). Source: samples,
    load. Null: not sampled."""


class InterventionResult(Document, frozen=True, kw_only=True):
    """The effect of removing a limit."""

    limit: Literal["cpu"]
    """The limit that was removed. Source: plan."""
    server: str
    """The server, with its variant and size. Source: plan."""
    rate: NonNegativeFloat | None
    """As in a cell. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """As in a cell. Unit: connections. Source: plan. Null: open loop."""
    pairs: NonNegativeInt
    """Pairs of runs that were started."""
    used: NonNegativeInt
    """Pairs in which both runs are valid and have the quantile."""
    quantile: NonNegativeFloat | None
    """The compared quantile: the highest for which every valid run has enough requests, otherwise
    the median. Unit: 0 to 1. Null: no usable pair."""
    factor: NonNegativeFloat | None
    """Ratio: the quantile without the limit divided by the quantile with it; geometric mean over
    pairs. Source: headline quantiles. Null: no usable pair."""
    low: NonNegativeFloat | None
    """Lower 95 % bound, by Student's t on logarithms. Source: the same. Null: fewer than four
    pairs."""
    high: NonNegativeFloat | None
    """Upper 95 % bound. Source: the same. Null: fewer than four pairs."""
    sentences: tuple[str, ...]
    """The result as sentences."""
    limited: tuple[CellResult, ...]
    """The runs with the limit, pair by pair. Unit: as cells."""
    lifted: tuple[CellResult, ...]
    """The runs without the limit, pair by pair. Unit: as cells."""


class AggregateFigures(Document, frozen=True, kw_only=True):
    """The figures of one server at one load level, over its runs."""

    p50: AggregateFigure
    """The median."""
    p99: AggregateFigure
    """p99."""
    p99_9: AggregateFigure = msgspec.field(name="p99.9")
    """p99.9."""
    goodput: AggregateFigure
    """Correct responses per second."""


class Aggregate(Document, frozen=True, kw_only=True):
    """One server at one load level over its runs, without discarded trials."""

    server: str
    """The server, as in a cell's `id`. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    runs: tuple[PositiveInt, ...]
    """Numbers of the valid runs. Source: cells."""
    discarded: NonNegativeInt
    """Number of discarded trials. Unit: trials. Source: cells."""
    figures: AggregateFigures
    """`p50`, `p99`, `p99.9` over all offered requests (upper bounds), and `goodput`. Source:
    cells."""


class MemoryHeadroom(Document, frozen=True, kw_only=True):
    """Memory of the recommended configuration, compared with its limit."""

    peak_bytes: NonNegativeInt | None
    """Memory peak of the server at the recommended rate. Unit: bytes. Source: cgroup.
    Null: not measured."""
    limit_bytes: NonNegativeInt | None
    """Its memory limit. Unit: bytes. Source: cgroup. Null: no limit."""


class CpuHeadroom(Document, frozen=True, kw_only=True):
    """CPU use of the recommended configuration, compared with its limit."""

    cores_mean: NonNegativeFloat | None
    """CPU use at the recommended rate, mean over the runs. Unit: cores. Source: cgroup. Null: not
    measured."""
    limit_cores: NonNegativeFloat | None
    """Its CPU limit. Unit: cores. Source: cgroup. Null: no limit."""


class RecommendedSetting(Document, frozen=True, kw_only=True):
    """The configuration to run."""

    server: str
    """The configuration, as in the identifiers of its cells. Source: cells."""
    rate_per_s: PositiveFloat
    """The highest rate at which every configuration was measured and this one meets the objective.
    Unit: 1/s. Source: cells."""
    figure: str
    """The figure of `centre` and `interval`: the highest quantile of the objective, or
    `error_rate`. Source: objective."""
    centre: NonNegativeFloat | None
    """Geometric mean of that figure over the runs. Unit: ns. Source: cells. Null: the objective
    has no quantile."""
    interval: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval over the runs (Student's t). Unit: ns. Source: cells. Null: as
    `centre`."""
    runs: PositiveInt
    """Number of runs that count. Unit: runs. Source: cells."""
    disturbed: NonNegativeInt
    """Number of runs that met the objective although the generator or the host was disturbed. Unit:
    runs. Source: cells."""
    memory: MemoryHeadroom
    """Peak memory at any rate, and the limit. Unit: bytes. Source: cgroup. Null: an entry: not
    measured, or no limit."""
    runner_up: str | None
    """The next best configuration. Source: cells. Null: there is none."""
    tied: tuple[str, ...]
    """Configurations that meet the objective and do not differ from the recommended one in
    resources or, beyond the noise, in performance. Source: cells."""
    fewest_beyond: NonNegativeInt | None
    """Lowest number of requests beyond the quantile in any run; the recommendation mentions it if
    it is below ten. Unit: requests. Source: cells. Null: the objective has no quantile, or the rate
    was found by a search."""
    also_meets: tuple[str, ...] = ()
    """All other configurations that meet the objective at that rate, the leanest first. Source:
    cells."""
    cpu: CpuHeadroom | None = None
    """CPU use at that rate, and the limit. Source: cgroup. Null: stored by an older version."""
    needs: str | None = None
    """What is needed for a conclusive result. Given if the configuration met the objective in every
    run, but there were too few runs. Source: cells. Null: the result is conclusive."""


class Recommendation(Document, frozen=True, kw_only=True):
    """The recommended configuration for an app
    ([capacity.md](capacity.md#choosing-a-configuration))."""

    app: str | None
    """`module:callable` of the app. Source: cells. Null: not recorded."""
    objective: tuple[str, ...]
    """The objective. Source: plan."""
    recommended: RecommendedSetting | None
    """The recommended configuration. Source: cells. Null: there is no recommendation; see
    `refused`."""
    refused: NoRecommendation | None
    """Why there is no recommendation. Source: cells. Null: there is a recommendation."""


class DiscardedTrial(Document, frozen=True, kw_only=True):
    """A trial that does not count."""

    id: str
    """The cell."""
    reason: str
    """Why it does not count."""


class SessionJudgement(Document, frozen=True, kw_only=True):
    """The discarded trials, and whether there were so many that the experiment is invalid."""

    status: Literal["valid", "invalid"]
    """`invalid` if more than 20 % of the trials of several runs were invalid. Source: cells."""
    trials: NonNegativeInt
    """Number of trials, including reruns. Unit: trials. Source: cells."""
    discarded: tuple[DiscardedTrial, ...]
    """The trials invalidated by the generator, the host or the plan, and those that were repeated
    because the host was disturbed. Source: cells."""


class RankedService(Document, frozen=True, kw_only=True):
    """CPU use of a supporting service while one server was measured at one load level."""

    name: str
    """As in `[services.NAME]`. Source: plan."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use, median over runs. Unit: cores. Source: cgroup. Null: not measured."""


class RankingEntry(Document, frozen=True, kw_only=True):
    """One server at one load level."""

    label: str
    """The server, as in the identifiers of its cells. Source: cells."""
    cell_ids: tuple[str, ...]
    """The cells that count. Source: cells."""
    status: Literal["ranked", "overloaded", "unjudged", "failed"]
    """`ranked`; `overloaded` (goodput below 95 % of the scheduled rate, or less than 99 % correct
    responses); `unjudged` (it responded, but the generator or the host made every run invalid); or
    `failed` (no result). Source: cells."""
    value_ns: NonNegativeFloat | None
    """p99 over all offered requests, median over runs. Unit: ns. Source: cells. Null: no finite
    value, or nothing was measured."""
    interval_ns: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """95 % confidence interval of `value_ns`: over runs with four or more runs, otherwise the
    widest within a run, with the lower end reduced by the generator's contribution. Unit: ns.
    Source: cells. Null: as `value_ns`."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses, median over runs. Unit: 1/s. Source: cells. Null: nothing was
    measured."""
    p50_ns: NonNegativeFloat | None
    """p50 over all offered requests, median over runs. Unit: ns. Source: cells. Null: as
    `value_ns`."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use, median over runs. Unit: cores. Source: cgroup. Null: not measured."""
    memory_peak_bytes: NonNegativeInt | None
    """Peak memory, highest of the runs. Unit: bytes. Source: cgroup. Null: not measured."""
    workers: PositiveInt | None
    """As in `settings`. Source: settings. Null: as in `settings`."""
    threads: PositiveInt | None
    """As in `settings`. Source: settings. Null: as in `settings`."""
    tied_with: tuple[str, ...]
    """Ranked servers at this load level whose difference from this one is within the noise. Source:
    comparisons, or overlapping intervals with fewer than four runs."""
    is_rough: bool = False
    """Whether fewer than ten requests of some run lie beyond `value_ns`. Source: cells."""
    services: tuple[RankedService, ...] = ()
    """The supporting services. Source: cells."""


class RankingLevel(Document, frozen=True, kw_only=True):
    """All servers with one app at one load level, the best first."""

    level: str
    """The load level as text: `3,000/s` or `50 connections`. Source: plan."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app that the servers served. Source: cells. Null: not recorded."""
    entries: tuple[RankingEntry, ...]
    """Ordered by p99, or by goodput in a closed loop; unranked servers last."""


class Answer(Document, frozen=True, kw_only=True):
    """The conclusion of the experiment."""

    question: str
    """The question. Source: plan."""
    status: Literal["decided", "tie", "undecided"]
    """`decided`, `tie` (differences are within the noise) or `undecided`. Source: ranking,
    comparisons, recommendations."""
    sentence: str
    """The conclusion as text."""
    command_line: str | None
    """The commands that start the recommended server with its settings, one per line. The last one
    starts the server; the others prepare for it. Source: settings. Null: no recommendation, or
    measured by an older version."""
    needs: str | None
    """What is needed for a decision. Null: decided."""
    cautions: tuple[str, ...]
    """Warnings about the conclusion, the most important first."""
    ranking: tuple[RankingLevel, ...]
    """All load levels, the highest first."""
    command_of: str | None = None
    """The server that `command_line` starts. Source: ranking. Null: as `command_line`."""


class Summary(Document, frozen=True, kw_only=True):
    """The summary. Times are integer nanoseconds of CLOCK_MONOTONIC, sizes bytes, rates per second.
    Unknown values are null, never 0."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some cells are missing) or `failed`."""
    experiment: ExperimentFacts
    """The plan. Source: plan."""
    order: tuple[str, ...]
    """Cell identifiers in the order in which they were run. Source: seed."""
    seed: int | None
    """Seed of that order and of the arrivals. Source: plan. Null: not fixed."""
    cells: tuple[CellResult, ...]
    """The results."""
    aggregates: tuple[Aggregate, ...] | None = None
    """Each server at each load level, over its runs. Source: cells. Null: absent until the sweep
    has ended."""
    comparisons: tuple[Comparison, ...] | None = None
    """Pairs of servers at each load level; empty with fewer than four runs. Source: cells. Null:
    absent until the sweep has ended."""
    races: tuple[Race, ...] | None = None
    """The race at each load level. Source: cells. Null: no `--budget`, or the sweep has not
    ended."""
    overload: tuple[Overload, ...] | None = None
    """Servers that were saturated: at some rate, their goodput was below 95 % of the scheduled
    rate. Source: cells. Null: absent until the sweep has ended."""
    efficiency: tuple[Efficiency, ...] | None = None
    """The most efficient rate of each server that was measured at three rates or more. Source:
    cells. Null: absent until the sweep has ended."""
    recommendations: tuple[Recommendation, ...] | None = None
    """The recommended configuration for each app; empty without `--slo`. Source: cells, `slo`.
    Null: absent until the sweep has ended."""
    session: SessionJudgement | None = None
    """The discarded trials. Source: cells. Null: absent until the sweep has ended."""
    answer: Answer | None = None
    """The conclusion. Source: cells, comparisons. Null: the sweep has not ended, or it was measured
    by an older version."""
    interventions: tuple[InterventionResult, ...] | None = None
    """The effect of removing a limit, for each server and load level. Source: `--intervene`. Null:
    not requested."""
