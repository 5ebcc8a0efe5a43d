"""``capacity.json`` of a capacity search."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.answer import Recommendation
from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.load_report import Verdict

LimitedBy = Literal[
    "cpu_limit", "cpu_per_process", "memory", "service", "waiting", "workers", "accept_queue"
]


class UseAtCapacity(Document, frozen=True, kw_only=True):
    """Resource use of a server just below its capacity."""

    memory_peak_bytes: NonNegativeInt | None
    """Peak memory in trials from 80 to 100 % of the capacity. Unit: bytes. Source: cells. Null: not
    measured."""
    memory_limit_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: cells. Null: no limit."""
    cpu_cores_mean: NonNegativeFloat | None
    """Mean CPU use during such a trial, maximum over trials. Unit: cores. Source: cells. Null: not
    measured."""


class CapacityTrial(Document, frozen=True, kw_only=True):
    """One trial of a capacity search."""

    cell: str
    """Identifier of the trial."""
    stage: Literal["initial", "bracket", "measure"]
    """Stage of the search: `initial` (closed loop), `bracket` (until some trials met the objective
    and some missed it) or `measure` (around the capacity)."""
    rate_per_s: PositiveFloat | None
    """Offered rate. Unit: 1/s. Null: closed loop."""
    connections: PositiveInt | None
    """Number of connections in the initial closed loop. Unit: connections. Null: open loop."""
    met: bool | None
    """Whether the trial met the objective. Null: the trial is too short, is the initial closed
    loop, or was made invalid by the generator, the host or the plan."""
    discarded: bool
    """Whether the trial does not count: it was inconclusive, or it was repeated because of a
    disturbance."""
    doubtful: bool
    """Whether a disturbance may have changed the result of the trial."""
    reason: str
    """Why the trial met or missed the objective, or why it is inconclusive."""


class ServerCapacity(Document, frozen=True, kw_only=True):
    """The result of the capacity search on one server."""

    server: str
    """Name of the server."""
    app: str | None = None
    """The app as `module:callable`. Null: the search used `--url`, or the app of the user's own
    server is unknown."""
    rate_per_s: PositiveFloat | None
    """Capacity: the rate at which the share of requests beyond the limit reaches what the objective
    allows, from a curve fitted to the trials; if no trial missed the objective, the highest rate.
    Unit: 1/s. Null: no trial met the objective, or the search did not end."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """Nearest measured rates around the capacity: one below it at which a trial met the objective,
    and one above it at which a trial missed. Unit: 1/s. Null: an entry: no such trial."""
    confirmed: tuple[NonNegativeInt, NonNegativeInt] | None
    """How many of the trials at 80 to 100 % of the capacity met the objective, and their number. At
    the capacity itself, half of them do. Unit: trials. Null: no such trials."""
    verdict: Verdict
    """Whether the rate can be trusted ([Verdict](#verdict))."""
    interval_95: tuple[NonNegativeFloat | None, NonNegativeFloat | None] | None
    """Lower and upper end of the 95 % confidence interval of the capacity. Unit: 1/s. Null:
    `rate_per_s` is null; as the upper end: no trial missed the objective."""
    limited_by: LimitedBy | None
    """Bottleneck in most of the trials that missed the objective at rates up to 1.25 times the
    upper bound of `bracket`: `cpu_limit`, `cpu_per_process` (each process is limited to one core),
    `memory`, `service` (a supporting service saturates its cores), `waiting` (requests wait for a
    thread or for a connection to a service, although the server and its services have CPU time
    left), `workers` (connections wait although CPU time is left) or `accept_queue` (full accept
    queue). Source: cgroup, kernel. Null: no known bottleneck, or resources were not sampled."""
    limiting_services: tuple[str, ...] = ()
    """Names of the supporting services that saturated their cores in at least one trial that missed
    the objective at a rate up to 1.25 times the upper bound of `bracket`. Source: cgroup."""
    at_rate: UseAtCapacity | None
    """Resource use of the server just below its capacity. Null: the search used `--url`, or there
    were no such trials."""
    failure: CellFailure | None
    """Why the search on this server failed. Null: the search did not fail."""
    trials: tuple[CapacityTrial, ...]
    """All trials, in the order in which they ran."""


class CapacityResult(Document, frozen=True, kw_only=True):
    """The result of a capacity search."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (the search is unfinished on some servers) or `failed`."""
    slo: tuple[str, ...]
    """The conditions of the objective, including the default limit for the error rate."""
    arrivals: Literal["poisson", "constant"]
    """Inter-arrival distribution: `poisson` or `constant`."""
    keepalive: Literal["on", "off"] | PositiveInt
    """Connection reuse: `on`, `off`, or a maximum number of requests per connection."""
    budget_s: PositiveFloat
    """Maximum duration of all searches (`--budget`). Unit: s."""
    width: PositiveFloat
    """Distance of both ends of the interval from the capacity at which a search ends, relative to
    the capacity (`--width`). Unit: ratio."""
    url: str | None
    """URL of the running server. Null: wsgiload started the servers."""
    servers: tuple[ServerCapacity, ...]
    """Result of the search on each server."""
    recommendations: tuple[Recommendation, ...]
    """The recommended configuration for each app, or why no configuration is recommended. Empty if
    there is only one server or the search was interrupted."""
    run_dir: str
    """Path of the run directory."""
