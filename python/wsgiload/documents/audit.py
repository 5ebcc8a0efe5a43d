"""The JSON of ``wsgiload audit``: the figures in the files of other tools, and the findings."""

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
)

ToolName = Literal[
    "wrk",
    "wrk2",
    "ab",
    "httperf",
    "hey",
    "oha",
    "bombardier",
    "vegeta",
    "k6",
    "locust",
    "funkload",
    "docker stats",
    "summary table",
]
# connect: no connection; read and write: connection lost; status and body: incorrect response;
# client: the client ran out of file descriptors or ports.
ErrorKind = Literal["connect", "read", "write", "timeout", "status", "body", "client", "other"]


class Figures(Document, frozen=True, kw_only=True):
    """The figures of one run, as printed by the tool that measured it."""

    load: Literal["closed", "open"] | None = None
    """`closed` (each connection sends its next request after the previous response) or `open`
    (requests are sent on a schedule). Source: file, or `--rate`. Null: not in the file."""
    connections: PositiveInt | None = None
    """Number of connections or users. Source: file, or `--connections`. Null: not in the file."""
    requested_per_s: PositiveFloat | None = None
    """Requested rate. Unit: 1/s. Source: file, or `--rate`. Null: closed loop,
    or not in the file."""
    sent_per_s: NonNegativeFloat | None = None
    """Requests sent per second. Unit: 1/s. Source: file. Null: not in the file."""
    achieved_per_s: NonNegativeFloat | None = None
    """Responses per second. Unit: 1/s. Source: file. Null: not in the file."""
    duration_ns: NonNegativeInt | None = None
    """Duration of the run. Unit: ns. Source: file. Null: not in the file."""
    requests: NonNegativeInt | None = None
    """Number of responses, including those with an error status. Unit: requests. Source: file.
    Null: not in the file."""
    timed_requests: NonNegativeInt | None = None
    """Number of requests on which the quantiles are based. Unit: requests. Source: file. Null:
    equal to `requests`."""
    errors: dict[ErrorKind, PositiveInt] = msgspec.field(default_factory=dict)
    """Number of failed requests of each kind: `connect`, `read`, `write`, `timeout`, `status`,
    `body`, `client` (out of file descriptors or ports) or `other`. Unit: requests. Source: file."""
    dropped: NonNegativeInt | None = None
    """Requests that were scheduled but never sent. Unit: requests. Source: file. Null: not in the
    file."""
    keepalive: bool | None = None
    """Whether the tool requested keep-alive. Source: file. Null: not in the file."""
    reused: NonNegativeInt | None = None
    """Number of responses on a connection that had already been used. Unit: requests. Source: file.
    Null: not in the file."""
    max_send_lag_ns: NonNegativeInt | None = None
    """Largest send lag of the tool. Unit: ns. Source: derived. Null: not in the file."""
    min_ns: NonNegativeInt | None = None
    """Shortest response time. Unit: ns. Source: file. Null: not in the file."""
    mean_ns: NonNegativeInt | None = None
    """Mean response time. Unit: ns. Source: file. Null: not in the file."""
    deviation_ns: NonNegativeInt | None = None
    """Standard deviation of the response times. Unit: ns. Source: file. Null: not in the file."""
    max_ns: NonNegativeInt | None = None
    """Longest response time. Unit: ns. Source: file. Null: not in the file."""
    transfer_ns: NonNegativeInt | None = None
    """Mean transfer time: first to last byte of a response. Unit: ns. Source: file. Null: not in
    the file."""
    quantiles_ns: dict[QuantileKey, NonNegativeInt] = msgspec.field(default_factory=dict)
    """Quantiles of the response time. Unit: ns. Source: file."""
    resolution_ns: PositiveInt | None = None
    """Resolution of the reported quantiles. Unit: ns. Null: negligible."""
    mean_resolution_ns: PositiveInt | None = None
    """Resolution of the reported mean. Unit: ns. Null: negligible."""
    mean_cpu_cores: NonNegativeFloat | None = None
    """Mean CPU use of a container. Unit: cores. Source: file. Null: not in the file."""
    max_cpu_cores: NonNegativeFloat | None = None
    """Largest CPU use of a container. Unit: cores. Source: file. Null: not in the file."""
    idle_ratio: NonNegativeFloat | None = None
    """Share of the samples in which a container used less than 0.02 cores. Unit: 1. Source: file.
    Null: not in the file."""
    max_memory_bytes: NonNegativeInt | None = None
    """Largest memory use of a container. Unit: bytes. Source: file. Null: not in the file."""


class AuditAlarm(Document, frozen=True, kw_only=True):
    """A finding of the audit: a pattern that makes the figures misleading."""

    alarm: str
    """Name of the finding; `wsgiload explain` describes it."""
    message: str
    """What is misleading, in one sentence."""
    arithmetic: str
    """The calculation, with the figures of the file."""
    fix: str
    """How to measure correctly."""
    value: float
    """The calculated value. Unit: depends on the finding."""
    limit: float
    """The limit that the value exceeds or falls below. Unit: depends on the finding."""


class AuditedRun(Document, frozen=True, kw_only=True):
    """One run in a file."""

    file: str
    """Path of the file."""
    part: str | None
    """Run, load level or URL within the file. Null: the file contains one run."""
    tool: ToolName
    """Name of the tool that wrote the file."""
    figures: Figures
    """The figures of the run."""
    alarms: tuple[AuditAlarm, ...]
    """Findings: patterns that make the figures misleading."""


class RejectedFile(Document, frozen=True, kw_only=True):
    """A file that could not be audited."""

    file: str
    """Path of the file."""
    reason: str
    """Why the file could not be audited, and how to fix the problem."""


class AuditReport(Document, frozen=True, kw_only=True):
    """The result of an audit."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    files: tuple[AuditedRun, ...]
    """The runs in the audited files, with their findings."""
    rejected: tuple[RejectedFile, ...]
    """Files that could not be audited. In a directory, files of unknown tools are skipped
    instead."""
