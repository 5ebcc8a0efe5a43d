"""``capacity.json`` of a capacity search."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.load_report import Verdict
from wsgiload.documents.recommendation import Recommendation

LimitedBy = Literal[
    "cpu_limit", "cpu_per_process", "memory", "service", "waiting", "workers", "accept_queue"
]


class UseAtCapacity(Document, frozen=True, kw_only=True):
    """Resource use of a server at its confirmed rate."""

    memory_peak_bytes: NonNegativeInt | None
    """Peak memory at the confirmed rate. Unit: bytes. Source: cells. Null: not measured."""
    memory_limit_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: cells. Null: no limit."""
    cpu_cores_mean: NonNegativeFloat | None
    """Mean CPU use during a trial at the confirmed rate, maximum over trials. Unit: cores. Source:
    cells. Null: not measured."""


class CapacityTrial(Document, frozen=True, kw_only=True):
    """One trial of a capacity search."""

    cell: str
    """Identifier of the trial."""
    stage: Literal["initial", "bracket", "bisect", "confirm"]
    """Stage of the search: `initial` (closed loop), `bracket` (doubling or halving the rate),
    `bisect` (narrowing the bracket) or `confirm` (new trials at the lower bound or, if these missed
    the objective, at a slightly lower rate)."""
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
    """Capacity: the confirmed rate or, without confirmation trials, the lower bound. Unit: 1/s.
    Null: no rate was confirmed, no lower bound was found, or the search did not end."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """Lower and upper bound of the capacity. Unit: 1/s. Null: an entry: the bound was not found."""
    confirmed: tuple[NonNegativeInt, NonNegativeInt] | None
    """For the last rate with confirmation trials: the number of these trials that met the
    objective, and their planned number (`--confirmations`). Unit: trials. Null: no confirmation
    trials."""
    verdict: Verdict
    """Whether the rate can be trusted ([Verdict](#verdict))."""
    estimate_per_s: PositiveFloat | None
    """Estimated rate at which half of the trials meet the objective. Unit: 1/s. Source: fit over
    all conclusive trials that were not discarded. Null: no trial met the objective, no trial missed
    it, or the search did not end."""
    interval_95: tuple[NonNegativeFloat | None, NonNegativeFloat | None] | None
    """Lower and upper end of the 95 % confidence interval of `estimate_per_s`, extended to include
    the confirmed rate. Unit: 1/s. Null: `estimate_per_s` is null."""
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
    strict_per_s: PositiveFloat | None
    """Highest measured rate below the lowest rate at which a trial missed the objective.
    Confirmation trials do not count. Unit: 1/s. Null: no measured rate qualifies."""
    at_rate: UseAtCapacity | None
    """Resource use of the server at the confirmed rate. Null: the search used `--url`, or no rate
    was confirmed."""
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
    duration_s: PositiveFloat
    """Planned duration of the measurement in each search trial. A trial that missed the objective
    with too few requests is repeated with a longer duration. Unit: s."""
    confirm_duration_s: PositiveFloat
    """Duration of the measurement in each confirmation trial. Unit: s."""
    width: PositiveFloat
    """Target width of the bracket, relative to the lower bound. The search narrows the bracket to
    this width. Unit: ratio."""
    url: str | None
    """URL of the running server. Null: wsgiload started the servers."""
    servers: tuple[ServerCapacity, ...]
    """Result of the search on each server."""
    recommendations: tuple[Recommendation, ...]
    """The recommended configuration for each app, or why no configuration is recommended. Empty if
    there is only one server or the search was interrupted."""
    run_dir: str
    """Path of the run directory."""
