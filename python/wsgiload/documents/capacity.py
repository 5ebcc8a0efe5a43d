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
    """Memory limit in force. Unit: bytes. Source: cells. Null: no limit."""
    cpu_cores_mean: NonNegativeFloat | None
    """Mean CPU use at the confirmed rate. Unit: cores. Source: cells. Null: not measured."""


class CapacityTrial(Document, frozen=True, kw_only=True):
    """One trial of a capacity search."""

    cell: str
    """Identifier of its cell."""
    stage: Literal["initial", "bracket", "bisect", "confirm"]
    """`initial` (the closed loop), `bracket`, `bisect` or `confirm`."""
    rate_per_s: PositiveFloat | None
    """Offered rate. Unit: 1/s. Null: closed loop."""
    connections: PositiveInt | None
    """Users of the closed loop. Null: open loop."""
    met: bool | None
    """Whether the trial met the objective. Null: invalid, too short, or the initial closed loop."""
    discarded: bool
    """Whether it was discarded and repeated."""
    doubtful: bool
    """Whether a disturbance may have changed the outcome."""
    reason: str
    """The reason as text."""


class ServerCapacity(Document, frozen=True, kw_only=True):
    """The result of the search on one server."""

    server: str
    """The server."""
    app: str | None = None
    """The `module:callable` that it served. Null: `--url`."""
    rate_per_s: PositiveFloat | None
    """The confirmed rate. Unit: 1/s. Null: none was confirmed."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """Lower and upper bound of the capacity. Unit: 1/s. Null: an entry: no such bound was found."""
    confirmed: tuple[NonNegativeInt, NonNegativeInt] | None
    """Number of confirmation trials that met the objective, and number of all confirmation trials.
    Null: there were none."""
    verdict: Verdict
    """Whether the rate can be trusted, as in a load."""
    estimate_per_s: PositiveFloat | None
    """The rate at which half of the trials meet the objective. Unit: 1/s. Source: fit over all
    trials. Null: not enough trials."""
    interval_95: tuple[NonNegativeFloat | None, NonNegativeFloat | None] | None
    """95 % confidence interval of `estimate_per_s`, extended to include the confirmed rate. Unit:
    1/s. Null: unknown; an end: unbounded."""
    limited_by: LimitedBy | None
    """The bottleneck in the trials that missed the objective just above the rate: the CPU limit,
    one core per process, memory, a supporting service that saturates its cores, waiting (for a
    thread or for a connection to a service, although the server and its services have CPU time
    left), workers (connections wait although CPU time is left), or a full accept queue. Source:
    cgroup, kernel. Null: none of these, or not sampled."""
    limiting_services: tuple[str, ...] = ()
    """The services that saturated their cores in these trials. Source: cgroup."""
    strict_per_s: PositiveFloat | None
    """The highest rate up to which no trial missed the objective. Unit: 1/s. Null: none."""
    at_rate: UseAtCapacity | None
    """Resource use of the server at the confirmed rate. Null: `--url`, or no confirmed rate."""
    failure: CellFailure | None
    """Why the search on this server failed. Null: it did not fail."""
    trials: tuple[CapacityTrial, ...]
    """All trials, in the order in which they ran."""


class CapacityResult(Document, frozen=True, kw_only=True):
    """The result of a capacity search."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (the search is unfinished on some servers) or `failed`."""
    slo: tuple[str, ...]
    """The objectives, including the default limit of the error rate."""
    arrivals: Literal["poisson", "constant"]
    """Inter-arrival distribution."""
    keepalive: Literal["on", "off"] | PositiveInt
    """`on`, `off`, or requests per connection."""
    duration_s: PositiveFloat
    """Duration of a search trial. Unit: s."""
    confirm_duration_s: PositiveFloat
    """Duration of a confirmation trial. Unit: s."""
    width: PositiveFloat
    """Relative width of the bracket at which the search ends."""
    url: str | None
    """URL of the running server. Null: wsgiload launched the servers."""
    servers: tuple[ServerCapacity, ...]
    """One entry per server."""
    recommendations: tuple[Recommendation, ...]
    """The recommended configuration for each app, or why there is none."""
    run_dir: str
    """Path of the run directory."""
