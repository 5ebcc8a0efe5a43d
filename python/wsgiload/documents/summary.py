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
    """The short trials before a race, which choose who takes part."""

    rounds: PositiveInt
    """The first of its `runs`; no figure rests on them. Unit: rounds. Source: plan."""
    field: PositiveInt
    """How many servers race at most. Unit: servers. Source: plan."""
    duration_s: NonNegativeFloat
    """Measurement of such a trial. Unit: s. Source: plan."""


class ExperimentFacts(Document, frozen=True, kw_only=True):
    """The plan of the sweep, with every default filled in."""

    name: str | None
    """Name of the experiment. Source: plan. Null: not named."""
    profile: Literal["tuned", "stock"] | tuple[Literal["tuned", "stock"], ...] | None = None
    """`tuned` (equal budgets) or `stock` (each server as it comes); one for all its cells, or a
    list where `--grid profile=` combines both. Source: plan. Null: only commands of the user's."""
    app: str | tuple[str, ...] | None
    """`module:callable`; a list where `--grid app=` combines several. Source: plan. Null: only
    the user's commands know."""
    app_revision: str | None = None
    """Commit of the app that was checked out, with `+changes` where tracked files differed from it.
    Source: git. Null: no work tree of git, or a bundled app."""
    path: str | tuple[str, ...] | None
    """Path requested; a list where the apps of a grid have different ones. Source:
    plan. Null: several targets."""
    method: str | None = None
    """Method of the requests. Source: plan. Null: not stored."""
    targets: PositiveInt | None = None
    """How many weighted requests there were to choose from. Source: plan. Null: one request."""
    sessions: PositiveInt | None = None
    """How many kinds of session there were. Source: plan. Null: no sessions."""
    rates: tuple[PositiveFloat, ...] | None
    """Offered rates. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: tuple[PositiveInt, ...] | int | None
    """Numbers of connections of a closed loop, or the fixed number of an open one. Unit:
    connections. Source: plan. Null: open loop without a fixed number."""
    arrivals: Literal["poisson", "constant"] | None
    """`poisson` or `constant`. Source: plan. Null: closed loop."""
    on_busy: Literal["grow", "queue", "shed"] | None
    """`grow`, `queue` or `shed`. Source: plan. Null: closed loop."""
    max_connections: PositiveInt | None = None
    """Most connections of a load at once. Unit: connections. Source: plan. Null: closed loop."""
    max_pending: NonNegativeInt | None = None
    """Most arrivals that wait for a connection. Unit: requests. Source: plan. Null: closed loop;
    not given: as many as come in ten seconds, and no fewer than ten for each connection."""
    keepalive: Keepalive | tuple[Keepalive, ...] | None = None
    """`on`, `off`, or requests per connection; a list where a grid combines several. Source:
    plan. Null: not stored."""
    think_time_s: NonNegativeFloat | None = None
    """Mean think time of a user. Unit: s. Source: plan. Null: open loop."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    warmup_s: NonNegativeFloat
    """Length of the warm-up. Unit: s. Source: plan."""
    warmup_requests: PositiveInt | None = None
    """The warm-up lasts until this many requests were scheduled, where that takes longer. Unit:
    requests. Source: plan. Null: not set."""
    cooldown_s: NonNegativeFloat | None = None
    """Length of the cool-down. Unit: s. Source: plan. Null: not stored."""
    timeout_s: NonNegativeFloat | None = None
    """Longest time on the wire for one request. Unit: s. Source: plan. Null: not stored."""
    check_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    """Thresholds of checks that were set, by name. Source: plan."""
    runs: PositiveInt
    """Runs of each cell. Source: plan."""
    settle_s: NonNegativeFloat | None = None
    """Maximum wait for a quiet host before each trial. Unit: s. Source: plan. Null: not stored."""
    reruns: NonNegativeInt | None = None
    """How often a disturbed trial may be measured again. Source: plan. Null: not stored."""
    budget_s: NonNegativeFloat | None = None
    """Time of a race; `runs` are its most rounds. Unit: s. Source: plan. Null: every cell of the
    plan is measured."""
    qualifying: QualifyingFacts | None = None
    """The short trials before the race. Source: plan. Null: there are none."""
    aggregate: Literal["interval", "trim"] = "interval"
    """How several runs are summed up: `interval` (confidence interval of the mean) or `trim`
    (mean without the lowest and the highest). Source: plan."""
    slo: tuple[str, ...] | None = None
    """The objective by which a setting is recommended, with what was added. Source: plan, or
    `wsgiload report --slo`. Null: none was named."""
    cpus: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit of processes and threads. Source: plan. Null: no limit."""
    limits_policy: Literal["strict", "best-effort", "none"] | None = None
    """What happens to a limit that cannot be enforced. Source: plan. Null: not stored."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs that the server is bound to. Unit: CPU numbers. Source: plan. Null: not bound."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs that the generator is bound to. Unit: CPU numbers. Source: plan. Null: not bound."""
    servers: tuple[str, ...]
    """Servers in it. Source: plan."""


class ExternalCounts(Document, frozen=True, kw_only=True):
    """What others than the generator counted over the whole load, warm-up and cool-down
    included."""

    requests_seen: NonNegativeInt | None
    """How often the app was called, in all its processes. Unit: requests. Source: the bundled
    app, through shared memory. Null: an app of your own, or a server that does not pass on
    its environment."""
    retransmitted_segments: NonNegativeInt | None
    """Segments that the kernel sent again, over all TCP connections of the host. Unit: segments.
    Source: `/proc/net/snmp`: RetransSegs. Null: not readable."""
    listen_overflows: NonNegativeInt | None
    """Connections that found an accept queue full, likewise. Unit: connections. Source:
    `/proc/net/netstat`: ListenOverflows. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections that a listening socket dropped for any reason, likewise. Unit: connections.
    Source: `/proc/net/netstat`: ListenDrops. Null: not readable."""
    request_queue_full_drops: NonNegativeInt | None
    """Connection attempts dropped while too many were half open, likewise. Unit: connections.
    Source: `/proc/net/netstat`: TCPReqQFullDrop. Null: not readable."""


class AggregateFigure(Document, frozen=True, kw_only=True):
    """Nanoseconds of a quantile over all offered requests, or correct responses per second."""

    values: tuple[NonNegativeFloat | None, ...]
    """One per run, in the order of `runs`. Unit: ns, or 1/s. Source: cells. Null: that run did
    not meet it, or had too few requests."""
    median: NonNegativeFloat | None
    """Over the runs, one that was not met as infinite. Unit: ns, or 1/s. Source: values. Null:
    not met in half of the runs."""
    min: NonNegativeFloat | None
    """The least run. Unit: ns, or 1/s. Source: values. Null: no run met it."""
    max: NonNegativeFloat | None
    """The largest run. Unit: ns, or 1/s. Source: values. Null: a run did not meet it."""
    mean: NonNegativeFloat | None
    """Exp of the mean of the logarithms. Unit: ns, or 1/s. Source: values. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Exp(mean ± t s/√R) of the logarithms: low, high. Unit: ns, or 1/s. Source: values. Null:
    see `reason`."""
    between_run_cv: NonNegativeFloat | None
    """Standard deviation between runs over their mean, of a lognormal. Unit: share. Source:
    values. Null: see `reason`."""
    between_run_share: Share | None = None
    """Share of the variance of the runs' logarithms that is between runs; the rest is what the
    runs' own intervals say of themselves. Unit: 0 to 1. Source: values, `uncertainty` of the
    cells. Null: see `reason`, a goodput, or a run without an interval of its own."""
    trimmed_mean: NonNegativeFloat | None
    """Plain mean without the lowest and the highest run. Unit: ns, or 1/s. Source: values. Null:
    not requested (`--aggregate trim`), or fewer than three runs."""
    reason: str | None
    """Why there is no interval. Source: values. Null: there is one."""


class Comparison(Document, frozen=True, kw_only=True):
    """Two servers with one app at one load, paired by round."""

    first: str
    """A server. Source: cells."""
    second: str
    """Another. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None = None
    """What both served. Source: cells. Null: of two stored runs, they served different ones."""
    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """What is compared: `p99` of an open loop, `goodput` of a closed one, or what was chosen.
    Source: plan."""
    rounds: NonNegativeInt
    """Rounds in which both stand. Source: cells."""
    same_server: bool
    """Both are one server under two names (A/A). Source: catalogue."""
    factor: NonNegativeFloat | None
    """The first's figure over the second's; of two stored runs without an interval that of their
    medians. Unit: times. Source: rounds. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Of that factor: low, high. Unit: times. Source: rounds. Null: see `reason`."""
    p: Share | None
    """Paired t test, two-sided; of two stored runs a permutation test. Unit: 0 to 1. Source:
    rounds. Null: see `reason`."""
    p_adjusted: Share | None
    """The same by Holm over all pairs of this app at this load. Unit: 0 to 1. Source: rounds.
    Null: see `reason`."""
    aa_factor: float | None
    """By how much one server differed from itself with this app at this load. Unit: times.
    Source: rounds. Null: no server was measured under two names."""
    finding: Literal["different", "same", "undecided", "no inference"]
    """`different`, `same` (within 5 %), `undecided` or `no inference`. Source: rounds."""
    reason: str | None
    """Why nothing can be inferred, or why a difference is not called one. Source: rounds. Null: a
    finding without reservations."""
    load_share: NonNegativeFloat | None
    """The rate over the lesser of the two servers' goodput in saturation. Unit: share. Source:
    cells. Null: closed loop, sessions, or one of them was never saturated."""


class RaceDrop(Document, frozen=True, kw_only=True):
    """Why a server was not measured any more; this is no finding that it is slower."""

    server: str
    """The server. Source: cells."""
    rounds: PositiveInt
    """After so many rounds. Unit: rounds. Source: cells."""
    behind: str | None
    """Who was ahead. Source: cells. Null: the server failed in two rounds."""
    factor: NonNegativeFloat | None
    """By how much, in the rounds of both. Unit: times. Source: cells. Null: as `behind`."""
    in_qualifying: bool = False
    """By the short trials before the race, of which `rounds` are. Source: cells."""


class Race(Document, frozen=True, kw_only=True):
    """How the servers with one app at one load raced within a budget."""

    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """What they served. Source: cells. Null: the cells name none."""
    outcome: Literal["winner", "ties", "open", "failed"]
    """`winner`, `ties` (further rounds would hardly separate the contenders), `open` where the
    budget was used up before, `failed` where every server failed. Source: cells."""
    contenders: tuple[str, ...]
    """The servers that did not drop out, the fastest first. Source: cells."""
    dropped: tuple[RaceDrop, ...]
    """The others. Source: cells."""
    margin: NonNegativeFloat | None
    """The contenders are this close to the first with 95 % confidence, 0.09 for 9 %. Unit: share.
    Source: cells. Null: a winner, or too few rounds."""
    rounds_left: PositiveInt | None
    """Rounds of the contenders until a decision is expected. Unit: rounds. Source: cells. Null:
    decided, or not within the most rounds."""


class OverloadPoint(Document, frozen=True, kw_only=True):
    """One rate beyond the capacity."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    load_share: float
    """That rate over the capacity. Unit: share. Source: cells."""
    goodput_per_s: NonNegativeFloat
    """Correct responses. Unit: 1/s. Source: cells."""
    kept_ratio: Share
    """Those over the capacity: 1 is a plateau, 0 a collapse. Unit: 0 to 1. Source: cells."""


class Overload(Document, frozen=True, kw_only=True):
    """Of an open loop, medians over runs; empty for sessions, whose rate is not that of
    requests."""

    server: str
    """A server whose goodput stayed below 95 % of what was scheduled at some rate, in every run.
    Source: cells."""
    capacity_per_s: NonNegativeFloat
    """Its largest goodput at any rate. Unit: 1/s. Source: cells."""
    points: tuple[OverloadPoint, ...]
    """The rates above that. Source: cells."""


class EfficiencyPoint(Document, frozen=True, kw_only=True):
    """The efficiency at one rate."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    efficiency_per_s2: NonNegativeFloat
    """Median over runs. Unit: 1/s². Source: cells."""


class Efficiency(Document, frozen=True, kw_only=True):
    """Of an open loop: goodput over the mean response time of the correct responses. It is 0 where
    the server failed, or more than one request in a hundred: a failure counts as infinitely
    slow."""

    server: str
    """A server that was measured at three rates or more. Source: cells."""
    rate: NonNegativeFloat | None
    """The offered rate with the highest efficiency, by the medians over runs. Unit: 1/s. Source:
    cells. Null: see `reason`."""
    between: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """The rates next to it, below and above; next to that of every run, where runs disagree.
    Unit: 1/s. Source: cells. Null: see `reason`."""
    points: tuple[EfficiencyPoint, ...]
    """Every rate that was measured. Source: cells."""
    reason: str | None
    """Why the rate is not known: the largest is at an end of the rates that were measured, in
    the median or in some run, or there were hardly any responses. Source: cells. Null: it is
    known."""


class NoRecommendation(Document, frozen=True, kw_only=True):
    """Why nothing is recommended, and what would decide it."""

    why: str
    """What the cells do not say. Source: cells."""
    needs: str
    """What would decide it. Source: cells."""
    is_missed: bool
    """The cells say that no setting meets the objective; the command ends with 99. Source:
    cells."""


class MeasuredConcurrency(Document, frozen=True, kw_only=True):
    """Found on the app `conformance`, with the settings of the cell."""

    probed: PositiveInt
    """How many were tried at once."""
    backlog: NonNegativeInt | None
    """As in a cell. Unit: connections. Source: kernel. Null: it could not be read."""
    requests_at_once: NonNegativeInt | None
    """The most requests that were inside the app at one moment. Unit: requests. Source: the
    app's own stamps. Null: no response came in time."""
    connections_served: NonNegativeInt | None
    """Connections, opened one after the other and left open, that were answered before one was
    not. Unit: connections. Source: probe. Null: it keeps no connections."""
    connections_kept: NonNegativeInt | None
    """How many of them stayed open. Unit: connections. Source: probe. Null: it keeps no
    connections."""


class Versions(Document, frozen=True, kw_only=True):
    """The versions of what ran."""

    server: str | None
    """Version of the server. Source: its environment. Null: it could not be built, or the
    environment of the user's command does not say."""
    python: str | None
    """Version of the interpreter. Source: its environment. Null: it could not be built, or the
    environment of the user's command does not say."""
    packages: dict[str, str]
    """Versions of the packages of the server, by name. Source: its environment."""


class ServerSettings(Document, frozen=True, kw_only=True):
    """The settings with which a server ran."""

    command: tuple[str, ...]
    """The command as it was executed. Source: catalogue, plan."""
    own_command: str | None = None
    """The command as the user gave it, with its placeholders. Source: plan. Null: a server of the
    catalogue."""
    added_arguments: tuple[str, ...] = ()
    """Words of the command that the user added; they go before the others. Source: plan."""
    config_file: str | None = None
    """Configuration file that the user gave the server; what the command says goes before it.
    Source: plan. Null: none was given."""
    workers: PositiveInt | None
    """Number of worker processes requested. Source: plan, catalogue. Null: the server
    has none, its default applies, or the user's command does not say."""
    threads: PositiveInt | None
    """Number of threads requested for each worker. Source: plan, catalogue. Null: the
    server has none, its default applies, or the user's command does not say."""
    backlog: NonNegativeInt | None
    """Length of the accept queue. Unit: connections. Source: kernel. Null: it could not be
    read."""
    keepalive: Literal["on", "off"] | None
    """Whether connections were kept. Source: probe. Null: it did not get that far."""
    environment: dict[str, str]
    """Variables that were set for the server, in addition to those inherited. Secrets are replaced.
    Source: catalogue, plan."""
    versions: Versions
    """What ran."""


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
    """CPUs of the server. Unit: CPU numbers. Source: plan. Null: not bound."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs of the generator. Unit: CPU numbers. Source: plan. Null: not bound."""
    read_back: dict[str, float | str | None]
    """The values found in the control group files after setting them; `effective_...` are the
    tightest of the group and all groups above it, `affinity` is what the kernel says of a
    process pinned like the server. Unit: as in the file. Source: control group."""
    not_enforced: tuple[str, ...]
    """Limits that were requested and could not be set. Source: control group."""


class ExitStatus(Document, frozen=True, kw_only=True):
    """How a server ended."""

    code: int | None
    """Exit code. Source: kernel. Null: ended by a signal."""
    signal: int | str | None
    """Signal that ended it. Source: kernel. Null: ended by itself."""
    clean: bool
    """Whether it ended as asked, in time."""


class CellFailure(Document, frozen=True, kw_only=True):
    """Why a cell has no result that stands."""

    step: str
    """Where it failed, such as `provision`, `launch`, `readiness`, `load`."""
    message: str
    """What happened, and what helps."""
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
    """How often slow requests overlapped a signal, against all requests."""

    signal: Literal["throttled", "without_cpu", "paused", "short_of_memory"]
    """`throttled`, `without_cpu`, `paused` or `short_of_memory`."""
    slowest: ShareInterval
    """Share of the slowest requests that were in flight during it. Unit: a share. Source:
    samples, `flights`."""
    all: ShareInterval
    """The same share of all requests. Unit: a share. Source: samples, `flights`."""
    risk_ratio: ShareInterval | None
    """How much more often a request was among the slowest if it overlapped. Unit: a share.
    Source: the two above. Null: every request overlapped, or none did."""


class FingerprintResult(Document, frozen=True, kw_only=True):
    """A known cause that the samples point to."""

    name: str
    """Which pattern."""
    sentence: str
    """What was seen, in words."""
    rule: str
    """When it counts as seen."""
    source: str
    """What the figure was read from."""
    value: float
    """The figure. Unit: as in `rule`. Source: `source`."""
    limit: float
    """From which on it counts. Unit: as in `rule`."""


class AttributionResult(Document, frozen=True, kw_only=True):
    """What coincided, and not why; [attribution.md](attribution.md) has the rules."""

    slowest: NonNegativeInt | None
    """How many requests count as the slowest: one in a hundred, or ten where that is more. Unit:
    requests. Source: load. Null: the load tells of no flights."""
    slowest_ratio: Share | None
    """Their share of all. Unit: 0 to 1. Source: load. Null: the same."""
    resolution_ns: NonNegativeInt
    """Time resolution of the events: one CPU period. Unit: ns. Source: control group."""
    exposures: tuple[ExposureResult, ...]
    """How many requests overlapped each signal that was there. Source: samples, `flights`."""
    fingerprints: tuple[FingerprintResult, ...]
    """Which patterns were found. Source: samples."""
    worker_imbalance: NonNegativeFloat | None
    """0 where all workers use the same CPU time, 1 where one uses it all. Unit: 0 to 1. Source:
    processes.csv. Null: fewer than two workers."""
    foreign_cpu_ratio: Share | None
    """Share of the machine's CPU time that neither the server nor measuring it used. Unit: 0 to
    1. Source: `/proc/stat` in ticks, control group, client.csv. Null: not readable."""
    cpu_wait_ratio: NonNegativeFloat | None
    """Share of the time in which everything in the group waited for a CPU without throttling or
    want of memory. Unit: 0 to 1. Source: `cpu.pressure`. Null: no PSI."""


class CellResult(Document, frozen=True, kw_only=True):
    """The result of one cell: one server at one load in one run."""

    id: str
    """Names the cell and its files, `server@load#run`; a rerun is `server@load#run.2`."""
    attempt: PositiveInt | None = None
    """1, or more for a rerun of a trial that was discarded. Source: sweep."""
    server: str
    """Name in the catalogue, or of the user's command. Source: catalogue, plan."""
    variant: str | None
    """Its variant. Source: catalogue. Null: it has none."""
    alias: str | None = None
    """The name that the user gave it, as in `--servers again=waitress`. Source: plan. Null: none
    was given."""
    profile: Literal["tuned", "stock"] | None = None
    """That of the experiment, or its own of a grid. Source: plan. Null: a command of the user's."""
    size: str | None = None
    """Workers, threads, profile, keep-alive, version of Python and bundled app that a grid or a
    flag set, as `w2-t4` or `stock-close-py3.13-cpu`. Source: plan. Null: the profile
    decided."""
    app: str | None = None
    """`module:callable` that it served. Source: plan. Null: only the user's command knows."""
    legacy: bool | None = None
    """The server, or the interpreter it needs, is no longer maintained. Source: catalogue."""
    version: str | None
    """Version of the server that ran. Source: its environment. Null: it could not be built, or the
    environment of the user's command does not say."""
    python: str | None
    """Version of the Python that ran it. Source: its environment. Null: it could not be built, or
    the environment of the user's command does not say."""
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
    """As in a load: what one run says of its own quantiles, and nothing of the next run. Source:
    load. Null: nothing was measured."""
    limits: AppliedLimits | None
    """Limits of the server, as requested and as read back. Source: control group. Null: failed
    before they were set."""
    resources: ResourceUse | None
    """What the server used during the measurement. Source: control group. Null: nothing was
    measured."""
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
    """How long the trial waited for a quiet host. Unit: s. Source: host. Null: it did not wait."""
    warmup_s: NonNegativeFloat
    """Length of the warm-up. Unit: s. Source: plan."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    unhealthy_s: NonNegativeFloat | None = None
    """Length of the intervals in which requests were due and none was answered correctly. Unit: s.
    Source: load. Null: nothing was measured."""
    keepalive_honoured: bool | None
    """Whether the server kept connections open when asked to. Source: generator. Null: not asked
    for, or nothing was measured."""
    not_checked: tuple[NotChecked, ...] | None = None
    """As in a load, with those checks of the sweep (app-calls, kernel-drops) that could not
    look. Source: checks. Null: nothing was measured."""
    external_counts: ExternalCounts | None = None
    """What others than the generator counted over the whole load, warm-up and cool-down included
    (app-calls, kernel-drops). Source: app, kernel. Null: nothing was measured."""
    backlog: NonNegativeInt | None = None
    """How many connections one listening socket of the server lets wait. Unit: connections.
    Source: kernel. Null: it could not be read."""
    concurrency: MeasuredConcurrency | None = None
    """How much the server serves at once. Source: probe before its first cell. Null: tuned
    profile, or it could not be probed."""
    notes: tuple[str, ...]
    """Sentences to show with the result."""
    attribution: AttributionResult | None = None
    """What coincided with the load, see [attribution.md](attribution.md). Source: samples, load.
    Null: it was not sampled."""


class InterventionResult(Document, frozen=True, kw_only=True):
    """What lifting a limit changed."""

    limit: Literal["cpu"]
    """The limit that was lifted. Source: plan."""
    server: str
    """The server, with its variant and size. Source: plan."""
    rate: NonNegativeFloat | None
    """As in a cell. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """As in a cell. Unit: connections. Source: plan. Null: open loop."""
    pairs: NonNegativeInt
    """Pairs of runs that were begun."""
    used: NonNegativeInt
    """Pairs in which both runs are valid and have the quantile."""
    quantile: NonNegativeFloat | None
    """Which quantile is compared: the highest that every valid run has requests enough for, else
    the median. Unit: 0 to 1. Null: no pair could be used."""
    factor: NonNegativeFloat | None
    """The quantile without the limit to that with it, as a geometric mean over pairs. Source:
    headline quantiles. Null: no pair could be used."""
    low: NonNegativeFloat | None
    """Lower 95 % bound, by Student's t on logarithms. Source: the same. Null: fewer than four
    pairs."""
    high: NonNegativeFloat | None
    """Upper 95 % bound. Source: the same. Null: fewer than four pairs."""
    sentences: tuple[str, ...]
    """The same in words."""
    limited: tuple[CellResult, ...]
    """The runs with the limit, pair by pair. Unit: as cells."""
    lifted: tuple[CellResult, ...]
    """The runs without it. Unit: as cells."""


class AggregateFigures(Document, frozen=True, kw_only=True):
    """The figures of the runs of one server at one load."""

    p50: AggregateFigure
    """The median."""
    p99: AggregateFigure
    """The same of p99."""
    p99_9: AggregateFigure = msgspec.field(name="p99.9")
    """The same of p99.9."""
    goodput: AggregateFigure
    """Correct responses per second."""


class Aggregate(Document, frozen=True, kw_only=True):
    """One server at one load over its runs; discarded trials do not enter."""

    server: str
    """The server, as in a cell's `id`. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    runs: tuple[PositiveInt, ...]
    """Numbers of the runs that stand. Source: cells."""
    discarded: NonNegativeInt
    """Trials that do not. Unit: trials. Source: cells."""
    figures: AggregateFigures
    """`p50`, `p99`, `p99.9` over all offered requests (upper bounds), and `goodput`. Source:
    cells."""


class MemoryHeadroom(Document, frozen=True, kw_only=True):
    """Memory of the recommended setting against its limit."""

    peak_bytes: NonNegativeInt | None
    """Memory peak of the server at the recommended rate. Unit: bytes. Source: control group.
    Null: not measured."""
    limit_bytes: NonNegativeInt | None
    """Its memory limit. Unit: bytes. Source: control group. Null: no limit."""


class RecommendedSetting(Document, frozen=True, kw_only=True):
    """The setting to run."""

    server: str
    """The setting, as in the identifiers of its cells. Source: cells."""
    rate_per_s: PositiveFloat
    """The highest rate at which every setting was measured and this one meets the objective.
    Unit: 1/s. Source: cells."""
    figure: str
    """What its interval is of: the highest quantile of the objective, or `error_rate`. Source:
    objective."""
    centre: NonNegativeFloat | None
    """Geometric mean of that over its runs. Unit: ns. Source: cells. Null: the objective has no
    quantile."""
    interval: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Student's 95 % interval over its runs. Unit: ns. Source: cells. Null: as `centre`."""
    runs: PositiveInt
    """Runs that count. Unit: runs. Source: cells."""
    disturbed: NonNegativeInt
    """How many of them held although generator or host were disturbed. Unit: runs. Source:
    cells."""
    memory: MemoryHeadroom
    """`peak_bytes`, the most it used at any rate, and `limit_bytes`. Unit: bytes. Source:
    control group. Null: a part: not measured, or no limit."""
    runner_up: str | None
    """The next best setting. Source: cells. Null: there is none."""
    tied: tuple[str, ...]
    """Settings that need as little and meet the objective equally well, within the noise. Source:
    cells."""
    fewest_beyond: NonNegativeInt | None
    """Requests beyond the quantile in the run with the fewest; below ten the sentence says so.
    Unit: requests. Source: cells. Null: the objective has no quantile, or the rate was
    searched."""
    also_meets: tuple[str, ...] = ()
    """All others that meet the objective at that rate, the leanest first. Source: cells."""


class Recommendation(Document, frozen=True, kw_only=True):
    """How it is made: [capacity.md](capacity.md#one-setting)."""

    app: str | None
    """`module:callable`: each app has its own recommendation. Source:
    cells. Null: the cells name none."""
    objective: tuple[str, ...]
    """What has to hold. Source: plan."""
    recommended: RecommendedSetting | None
    """The setting. Source: cells. Null: `refused` says why."""
    refused: NoRecommendation | None
    """Why none is named. Source: cells. Null: one is."""


class DiscardedTrial(Document, frozen=True, kw_only=True):
    """A trial that was not counted."""

    id: str
    """The cell."""
    reason: str
    """Why it does not count."""


class SessionJudgement(Document, frozen=True, kw_only=True):
    """Which trials were discarded, and whether so many that the experiment is invalid."""

    status: Literal["valid", "invalid"]
    """`invalid` where more than a fifth of the trials were discarded. Source: cells."""
    trials: NonNegativeInt
    """All trials, reruns included. Unit: trials. Source: cells."""
    discarded: tuple[DiscardedTrial, ...]
    """`id` and `reason` of each that generator, host or plan invalidated. Source: cells."""


class RankingEntry(Document, frozen=True, kw_only=True):
    """One server at one level."""

    label: str
    """The server, as in the identifiers of its cells. Source: cells."""
    cell_ids: tuple[str, ...]
    """The cells that count. Source: cells."""
    status: Literal["ranked", "overloaded", "unjudged", "failed"]
    """`ranked`; `overloaded` where it answered less than 95 % of the scheduled requests in time, or
    less than 99 % of all correctly; `unjudged` where it answered, but generator or host made every
    run invalid; `failed` where it gave no result. Source: cells."""
    value_ns: NonNegativeFloat | None
    """p99 over all offered requests, the median over runs. Unit: ns. Source: cells. Null: not met,
    or nothing was measured."""
    interval_ns: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """95 % interval of that: between runs from four runs on, otherwise that inside the run, lowered
    by the generator's share; of two or three runs the widest. Unit: ns. Source: cells. Null: as
    `value_ns`."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses, the median over runs. Unit: 1/s. Source: cells. Null: nothing was
    measured."""
    p50_ns: NonNegativeFloat | None
    """The median response time, the median over runs. Unit: ns. Source: cells. Null: as
    `value_ns`."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use, the median over runs. Unit: cores. Source: control group. Null: not measured."""
    memory_peak_bytes: NonNegativeInt | None
    """Memory peak, the largest over runs. Unit: bytes. Source: control group. Null: not
    measured."""
    workers: PositiveInt | None
    """As in its settings. Source: settings. Null: as there."""
    threads: PositiveInt | None
    """As in its settings. Source: settings. Null: as there."""
    tied_with: tuple[str, ...]
    """Ranked servers of this level from which it does not differ by more than the noise. Source:
    comparisons, or overlapping intervals with fewer than four runs."""
    is_rough: bool = False
    """Whether fewer than ten requests of some run lie beyond `value_ns`. Source: cells."""


class RankingLevel(Document, frozen=True, kw_only=True):
    """All servers with one app at one level, the best first."""

    level: str
    """The level in words: `3,000/s` or `50 connections`. Source: plan."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """What they served. Source: cells. Null: the cells name none."""
    entries: tuple[RankingEntry, ...]
    """By p99, or by goodput in a closed loop; those that are not ranked at the end."""


class Answer(Document, frozen=True, kw_only=True):
    """What the experiment concludes."""

    question: str
    """What was asked. Source: plan."""
    status: Literal["decided", "tie", "undecided"]
    """`decided`, `tie` (several are as good as the data can tell) or `undecided`. Source:
    ranking, comparisons, recommendations."""
    sentence: str
    """The answer."""
    command_line: str | None
    """The command that starts the recommended server with its settings. Source: settings. Null:
    nothing is recommended, or an older version measured it."""
    needs: str | None
    """What would decide it. Null: it is decided."""
    cautions: tuple[str, ...]
    """What could change the answer, the most important first."""
    ranking: tuple[RankingLevel, ...]
    """Every level, the highest first."""


class Summary(Document, frozen=True, kw_only=True):
    """Times are integer nanoseconds of CLOCK_MONOTONIC, sizes bytes, rates per second. What is
    not known is null, never 0."""

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
    """What the runs of one server at one load say together. Source: cells. Null: the sweep has
    not ended: absent."""
    comparisons: tuple[Comparison, ...] | None = None
    """Servers against each other at one load; empty with fewer than four runs. Source: cells.
    Null: the sweep has not ended: absent."""
    races: tuple[Race, ...] | None = None
    """How the race ended at each load. Source: cells. Null: no `--budget`, or the sweep has not
    ended."""
    overload: tuple[Overload, ...] | None = None
    """What the servers did that were driven beyond their capacity. Source: cells. Null: the
    sweep has not ended: absent."""
    efficiency: tuple[Efficiency, ...] | None = None
    """The rate at which each server is used best; servers measured at fewer than three rates are
    left out. Source: cells. Null: the sweep has not ended: absent."""
    recommendations: tuple[Recommendation, ...] | None = None
    """Which setting to run, for each app; empty without `--slo`. Source: cells, `slo`. Null: the
    sweep has not ended: absent."""
    session: SessionJudgement | None = None
    """Which trials were discarded. Source: cells. Null: the sweep has not ended: absent."""
    answer: Answer | None = None
    """The answer to the question of the experiment. Source: cells, comparisons. Null: the sweep has
    not ended, or an older version measured it."""
    interventions: tuple[InterventionResult, ...] | None = None
    """What lifting a limit changed, for each server and load. Source: `--intervene`. Null: it
    was not requested."""
