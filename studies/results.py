"""The stored result of a published comparison (``docs/studies/NAME.json``): a few figures of each
server, and nothing that identifies the machine.

Raises UsageError for a stored file that cannot be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import msgspec

from studies.judgement import Status
from wsgiload import UsageError

FOLDER = Path("docs", "studies")
FAIR = "-fair"


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of a stored file. Times are milliseconds, memory is in MB."""


class Figure(Stored, frozen=True, kw_only=True):
    """A figure with its 95 % interval; null if it was not measured."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class Row(Stored, frozen=True, kw_only=True):
    """A server in one setting at one load."""

    server: str
    # The settings of the grid, such as "keep-alive off, app ok"; empty without a grid.
    setting: str
    # Connections, or requests per second.
    load: float
    # Valid runs, and all measured trials.
    runs: int
    trials: int
    throughput_per_s: Figure
    failed_share: Figure
    mean_ms: Figure
    # Of all scheduled requests. The interval of a single run is that within the run.
    p99_ms: Figure
    # More than 1 % of the requests failed, in at least half of the runs.
    is_p99_beyond: bool
    slowest_ms: float | None
    cpu_cores: float | None
    memory_mb: float | None
    # The reason for a missing figure.
    problem: str | None = None


class ServerVersion(Stored, frozen=True, kw_only=True):
    """Which version of a server ran, and on which Python."""

    server: str
    version: str | None
    python: str | None


class StoredClaim(Stored, frozen=True, kw_only=True):
    """A claim of the original, and its judgment."""

    name: str
    words: str
    figure: str
    status: Status
    ours: str | None
    because: str | None
    command: str


class StoredTable(Stored, frozen=True, kw_only=True):
    """A table in the form in which the original was published."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Finding(Stored, frozen=True, kw_only=True):
    """A check or an alarm, and for which servers it fired."""

    check: str
    servers: tuple[str, ...]


class Machine(Stored, frozen=True, kw_only=True):
    """The machine, without anything that identifies it."""

    cpu_model: str | None
    cpus: int | None
    memory_gib: float | None
    kernel: str | None
    os: str | None
    wsgiload: str | None


class StudyRun(Stored, frozen=True, kw_only=True):
    """A run of one experiment file."""

    schema_version: Literal[1] = 1
    name: str
    title: str
    source: str | None
    command: str
    date: str
    machine: Machine
    conditions: str
    cpus: float | None
    memory_mib: float | None
    # Whether the load is a rate, and not a number of connections.
    is_open: bool
    runs: int
    notes: tuple[str, ...]
    # Options changed by the scale or for this machine.
    changes: tuple[str, ...]
    versions: tuple[ServerVersion, ...]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    claims: tuple[StoredClaim, ...]
    tables: tuple[StoredTable, ...]

    @property
    def is_fair(self) -> bool:
        return self.name.endswith(FAIR)


def write_run(root: Path, run: StudyRun) -> Path:
    """Store a run in a checkout, in place of an earlier one."""
    path = root / FOLDER / f"{run.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(msgspec.to_builtins(run)), encoding="utf-8")
    return path


def read_runs(root: Path) -> dict[str, StudyRun]:
    """The stored runs of a checkout, by name."""
    paths = sorted((root / FOLDER).glob("*.json"))
    return {path.stem: _read(path) for path in paths}


def _read(path: Path) -> StudyRun:
    try:
        run = msgspec.json.decode(path.read_bytes(), type=StudyRun)
    except (msgspec.DecodeError, UnicodeError) as error:
        fix = f"store the run of {path.stem} again: python -m studies store RUN"
        raise UsageError(f"{path} is not a stored result: {error}", fix) from error
    if run.name != path.stem:
        raise UsageError(
            f"{path} contains the result of {run.name}", f"rename it to {run.name}.json"
        )
    return run


def _lines(document: dict[str, object]) -> str:
    """One item of a list on a line, so that results can be compared as text."""
    parts = [f"{json.dumps(key)}: {_value(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: object) -> str:
    if not isinstance(value, list | tuple) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(f" {json.dumps(item, ensure_ascii=False)}" for item in value) + "\n]"
