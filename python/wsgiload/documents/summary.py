"""``summary.json`` of a sweep, with the plan of the sweep."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.answer import Answer, Recommendation
from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import (
    Aggregate,
    Comparison,
    Efficiency,
    ExperimentValidity,
    InterventionResult,
    Overload,
    Race,
)

Keepalive = Literal["on", "off"] | PositiveInt


class ExperimentFacts(Document, frozen=True, kw_only=True):
    """The plan of the sweep, including default values."""

    name: str | None
    """Name of the experiment (`--name`); by default, the name of the app or of the user's own
    servers. Source: plan."""
    title: str | None = None
    """Title of the experiment. Source: experiment file. Null: no title was given."""
    source: str | None = None
    """Publication or other origin of the experiment. Source: experiment file. Null: no source was
    given."""
    notes: tuple[str, ...] = ()
    """Notes on the experiment, such as how it was scaled. Source: experiment file."""
    profile: Literal["tuned", "stock"] | tuple[Literal["tuned", "stock"], ...] | None = None
    """Profile of the server settings: `tuned` (equivalent settings) or `stock` (each server's
    defaults). A list if `--grid profile=` combines both profiles. Source: plan. Null: only the
    user's own servers were measured."""
    interface: Literal["wsgi", "asgi"] | None = None
    """How the servers call the app: `wsgi` or `asgi`. Source: plan. Null: stored by an older
    version, or only the user's own servers were measured."""
    app: str | tuple[str, ...] | None
    """The app as `module:callable`. A list if `--grid app=` combines several apps. Source: plan.
    Null: the app of the user's own servers is unknown."""
    app_revision: str | None = None
    """Checked-out commit of the app, with `+changes` if tracked files were modified. Source: git.
    Null: the app is not in a git work tree, or it is a bundled app."""
    path: str | tuple[str, ...] | None
    """Path of the requests; targets and sessions have their own paths. A list if the apps of a grid
    have different paths. Source: plan."""
    method: str | None = None
    """Method of the requests; targets and sessions have their own methods. Source: plan. Null:
    stored by an older version, or the apps of a grid have different methods."""
    targets: PositiveInt | None = None
    """Number of targets (different requests with weights). Unit: targets. Source: plan. Null: a
    single request, or sessions."""
    sessions: PositiveInt | None = None
    """Number of different sessions in the plan. Unit: sessions. Source: plan. Null: a load without
    sessions."""
    rates: tuple[PositiveFloat, ...] | None
    """Offered rates; with sessions, sessions per second. Unit: 1/s. Source: plan. Null: closed
    loop."""
    connections: tuple[PositiveInt, ...] | int | None
    """Numbers of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    arrivals: Literal["poisson", "constant"] | None
    """Inter-arrival distribution: `poisson` or `constant`. Source: plan. Null: closed loop."""
    on_busy: Literal["grow", "queue", "shed"] | None
    """What happens to a request when `max_connections` connections are in use: `grow` (or its
    synonym `queue`) lets the request wait; `shed` drops the request. Source: plan. Null:
    closed loop."""
    max_connections: PositiveInt | None = None
    """Maximum number of open connections. Unit: connections. Source: plan. Null: closed loop."""
    max_pending: NonNegativeInt | None = None
    """Maximum number of requests waiting for a connection. Unit: requests. Source: plan. Null:
    closed loop, or the default applies (10 s worth of requests, at least 10 per connection)."""
    keepalive: Keepalive | tuple[Keepalive, ...] | None = None
    """Connection reuse: `on`, `off`, or a maximum number of requests per connection. A list if a
    grid combines several values. Source: plan. Null: stored by an older version."""
    think_time_s: NonNegativeFloat | None = None
    """Mean think time of a user. Unit: s. Source: plan. Null: open loop."""
    duration_s: NonNegativeFloat
    """Duration of each measurement. Unit: s. Source: plan."""
    warmup_s: NonNegativeFloat
    """Duration of each warm-up. Unit: s. Source: plan."""
    warmup_requests: PositiveInt | None = None
    """Minimum number of scheduled requests in each warm-up. Unit: requests. Source: plan. Null: no
    minimum."""
    cooldown_s: NonNegativeFloat | None = None
    """Duration of each cool-down. Unit: s. Source: plan. Null: stored by an older version."""
    timeout_s: NonNegativeFloat | None = None
    """Timeout of a request. Unit: s. Source: plan. Null: stored by an older version."""
    check_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    """Check thresholds that differ from the defaults, such as `send-lag.warn`. Source: plan."""
    load_options: dict[str, float | str] = msgspec.field(default_factory=dict)
    """Other options of the load that differ from their defaults, such as `deadline`, with the names
    and the values of the Python API (durations in seconds). Source: plan."""
    runs: PositiveInt
    """Number of runs of each cell. In a race, the maximum number of blocks. Unit: runs. Source:
    plan."""
    settle_s: NonNegativeFloat | None = None
    """Maximum wait for an idle host before each trial. Before a rerun, the maximum is never less
    than 10 s. Unit: s. Source: plan. Null: stored by an older version."""
    reruns: NonNegativeInt | None = None
    """Maximum number of reruns per cell and run. Unit: reruns. Source: plan. Null: stored by an
    older version."""
    budget_s: NonNegativeFloat | None = None
    """Time budget of a race for measuring (`--budget`), with the closed loops that determine its
    rates. Unit: s. Source: plan. Null: no race."""
    margin: NonNegativeFloat | None = None
    """Smallest difference between servers that matters (`--margin`). Unit: ratio. Source: plan.
    Null: no race, or a race with an objective."""
    planned_blocks: NonNegativeFloat | None = None
    """Number of blocks that the budget of a race allows if no server drops out. Early blocks need
    more evidence than this one. Unit: blocks. Source: plan. Null: no race, or a race with an
    objective."""
    aggregate: Literal["interval", "trim"] = "interval"
    """How runs are combined: `interval` (mean with confidence interval) or `trim` (mean with
    confidence interval, and mean without the lowest and the highest run). Source: plan."""
    slo: tuple[str, ...] | None = None
    """The conditions of the objective, including the default limit for the error rate. Source:
    plan, or `wsgiload report --slo`. Null: no objective was given."""
    cpus: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit on the number of processes and threads. Unit: processes and threads. Source: plan.
    Null: no limit."""
    limits_policy: Literal["strict", "best-effort", "none"] | None = None
    """What happens if a limit cannot be enforced: `strict` (the sweep does not start),
    `best-effort` (the limit is listed in `not_enforced`) or `none` (`cpus`, `memory_bytes` and
    `pids` are not applied). Source: plan. Null: stored by an older version."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs to which the server is pinned. Unit: CPU numbers. Source: plan. Null: not pinned."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs to which the generator is pinned. Unit: CPU numbers. Source: plan. Null: not pinned."""
    user: str | None = None
    """User as whom the servers ran. Source: plan. Null: the user who ran wsgiload."""
    servers: tuple[str, ...]
    """Names of the measured servers. Source: plan."""


class Summary(Document, frozen=True, kw_only=True):
    """The summary of a sweep. Unless a key states another unit, times are in nanoseconds,
    timestamps are readings of CLOCK_MONOTONIC, sizes are in bytes, and rates are per second.
    Unknown values are null, never 0. For a capacity search, `summary.json` contains only the
    trials: all keys after `cells` are null."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some trials are missing) or `failed`."""
    experiment: ExperimentFacts
    """The plan of the sweep. Source: plan."""
    order: tuple[str, ...]
    """Identifiers of the planned trials, in the planned order. Source: seed."""
    seed: int | None
    """Seed of the order and of the arrivals. Source: plan."""
    cells: tuple[CellResult, ...]
    """Results of all trials."""
    aggregates: tuple[Aggregate, ...] | None = None
    """Results of each server at each load level, over all runs. Source: cells. Null: the sweep has
    not ended."""
    comparisons: tuple[Comparison, ...] | None = None
    """Comparisons of two servers at one load level; empty with fewer than four runs, except in a
    race. Source: cells. Null: the sweep has not ended."""
    races: tuple[Race, ...] | None = None
    """The race at each load level. Source: cells. Null: no `--budget`, or the sweep has not
    ended."""
    overload: tuple[Overload, ...] | None = None
    """Results of the servers that were [saturated](terminology.md#rates) at some load level.
    Source: cells. Null: the sweep has not ended."""
    efficiency: tuple[Efficiency, ...] | None = None
    """The most efficient rate of each server that was measured at three or more rates. Source:
    cells. Null: the sweep has not ended."""
    recommendations: tuple[Recommendation, ...] | None = None
    """The recommended configuration for each app; empty without `--slo`. Source: cells, `slo`.
    Null: the sweep has not ended."""
    validity: ExperimentValidity | None = None
    """The discarded trials, and whether the experiment is valid despite them. Source: cells. Null:
    the sweep has not ended."""
    answer: Answer | None = None
    """The conclusion of the sweep. Source: cells, comparisons. Null: stored by an older version, or
    the sweep has not ended."""
    interventions: tuple[InterventionResult, ...] | None = None
    """The effect of removing a limit, for each server and load level. Source: `--intervene`. Null:
    not requested, or the sweep was interrupted before its first pair of runs."""
