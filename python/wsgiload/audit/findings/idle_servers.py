"""A closed loop whose server was idle: neither the connections nor the server were the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.audit.tools.docker_stats import DOCKER_STATS
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_count, format_ratio
from wsgiload.units import three_digits

MIN_IDLE_RATIO = 0.5
MAX_IN_FLIGHT_RATIO = 0.5
IDLE_SERVER = Finding(
    name="idle-server",
    examines="other tools' results: a closed loop, and the docker stats with the same file name",
    premise=f"In at least {percent(MIN_IDLE_RATIO)} of the samples the container used no CPU, and "
    f"at most {percent(MAX_IN_FLIGHT_RATIO)} of the connections had a request in flight.",
    fix="check whether the server keeps connections alive and the client still sends, then repeat "
    "the run",
)


def idle_servers(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each closed loop during which its container was idle although the client waited for it."""
    containers = {
        Path(run.file).with_suffix(""): run
        for run in runs
        if run.tool is DOCKER_STATS and run.part.name is None
    }
    for run in runs:
        container = containers.get(Path(run.file).with_suffix(""))
        busy, connections = in_flight(run), run.figures.connections
        if container is None or run.tool is DOCKER_STATS or busy is None or not connections:
            continue
        idle_ratio = container.figures.idle_ratio or 0.0
        is_waiting = busy <= MAX_IN_FLIGHT_RATIO * connections
        if run.figures.load == "closed" and idle_ratio >= MIN_IDLE_RATIO and is_waiting:
            yield run, _alarm(idle_ratio, busy, connections)


def _alarm(idle_ratio: float, busy: float, connections: int) -> AuditAlarm:
    return alarm(
        IDLE_SERVER,
        "the server was idle most of the time although connections were waiting: this throughput "
        "is not the server's speed",
        arithmetic=f"no CPU in {format_ratio(idle_ratio)} of the samples (at least "
        f"{format_ratio(MIN_IDLE_RATIO)}); {three_digits(busy)} in flight / "
        f"{format_count(connections)} connections = {three_digits(busy / connections)} (at most "
        f"{MAX_IN_FLIGHT_RATIO})",
        value=idle_ratio,
        limit=MIN_IDLE_RATIO,
    )
