"""One run of a file, and the properties of its tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wsgiload.documents.audit import AuditAlarm, ErrorKind, Figures, ToolName
from wsgiload.findings.finding import Finding
from wsgiload.units import NS_PER_S

ERROR_RESPONSES: frozenset[ErrorKind] = frozenset(("status", "body"))
ALL_ERRORS: frozenset[ErrorKind] = ERROR_RESPONSES | {
    "connect",
    "read",
    "write",
    "timeout",
    "client",
    "other",
}
_KINDS: Mapping[ErrorKind, str] = {"status": "error status", "body": "wrong body"}


@dataclass(frozen=True, slots=True)
class Part:
    """One run inside a file; ``name`` is None if it is the only one."""

    figures: Figures
    name: str | None = None
    is_total: bool = False
    """Whether it aggregates the other parts of its file."""


@dataclass(frozen=True, slots=True)
class AuditTool:
    """How the files of one tool are recognized and read, and what its times mean."""

    name: ToolName
    recognises: Callable[[str], bool]
    parse: Callable[[str], Sequence[Part]]
    timed_errors: frozenset[ErrorKind] = field(default=ERROR_RESPONSES)
    """Kinds of failed requests whose times are among the response times."""
    corrects_omission: bool = False
    """Whether it adds samples for requests not sent during a stall (coordinated omission)."""
    pauses: bool = False
    """Whether its users may pause between requests."""
    keeps_failed_connections: bool = False
    """Whether a connection that failed once stays unused to the end."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a file."""

    file: str
    tool: AuditTool
    part: Part

    @property
    def figures(self) -> Figures:
        """The figures of the run."""
        return self.part.figures

    @property
    def tool_name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    @property
    def failures(self) -> int:
        """Failed requests of all kinds."""
        return sum(self.figures.errors.values())


def alarm(
    finding: Finding,
    message: str,
    *,
    arithmetic: str,
    value: float,
    limit: float,
    fix: str | None = None,
) -> AuditAlarm:
    """An alarm with its arithmetic, and the finding's fix unless the case has its own."""
    return AuditAlarm(
        alarm=finding.name,
        message=message,
        arithmetic=arithmetic,
        fix=fix or finding.fix or "",
        value=value,
        limit=limit,
    )


def kinds_of(failures: Mapping[ErrorKind, int]) -> str:
    """The number of failures of each kind: "5 error status, 2 timeout"."""
    return ", ".join(f"{n:,} {_KINDS.get(kind, kind)}" for kind, n in failures.items())


def in_flight(run: Run) -> float | None:
    """Requests in flight by Little's law: throughput times mean response time."""
    figures = run.figures
    if figures.achieved_per_s is None or figures.mean_ns is None:
        return None
    return figures.achieved_per_s * figures.mean_ns / NS_PER_S
