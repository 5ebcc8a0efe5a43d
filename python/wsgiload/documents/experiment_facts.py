"""The plan of a sweep, as ``summary.json`` holds it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

Keepalive = Literal["on", "off"] | PositiveInt


class QualifyingFacts(Document, frozen=True, kw_only=True):
    """The short trials before a race, which select the servers that take part."""

    rounds: PositiveInt
    """Number of rounds of short trials. They are included in `runs`, but no figure is based on
    them. Unit: rounds. Source: plan."""
    max_servers: PositiveInt
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
