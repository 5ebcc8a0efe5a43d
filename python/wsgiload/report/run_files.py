"""Reads a run directory for the report: the JSON files and, by cell, the CSV files. Of each load
report, only what the page shows is kept: those of thousands of cells do not fit into memory.

It never writes. Files that an interrupted run did not write count as empty.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from wsgiload.analysis.over_cells import analyse
from wsgiload.attribution.evidence import slowest_count
from wsgiload.documents.base import convert, decode_json
from wsgiload.documents.codec import SCHEMA_VERSION, read
from wsgiload.documents.load_plan import KeepaliveLimit
from wsgiload.documents.load_report import GeneratorUsage, LoadReport
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.experiment.procedure import Method
from wsgiload.foreign_files import LOAD_REPORT, TABLE, RefusedFile, read_file, read_lines
from wsgiload.limits.model import COUNTER_NAMES
from wsgiload.report import words
from wsgiload.report.answer import with_answer
from wsgiload.results.integrity import finite, read_load
from wsgiload.results.stored_plan import read_summary
from wsgiload.sampling.sampler import Sample

PARTS = ("pool wait", "connect", "first byte", "transfer", "send lag")


class _Plan(msgspec.Struct, frozen=True):
    keepalive: Literal["on", "off"] | KeepaliveLimit = "on"


class _Times(msgspec.Struct, frozen=True):
    intervals_95: dict[str, tuple[int | None, int | None] | None]


class _Outcomes(msgspec.Struct, frozen=True):
    scheduled: int


class _Flights(msgspec.Struct, frozen=True):
    slowest: tuple[tuple[int, int], ...]
    slowest_parts: tuple[tuple[int, ...] | None, ...] = ()


class StoredLoad(msgspec.Struct, frozen=True):
    """The keys of a load report that are read, under the same names."""

    plan: _Plan
    outcomes: _Outcomes
    status_codes: dict[str, int]
    client: GeneratorUsage | None = None
    response_time_ns: _Times | None = None
    flights: _Flights | None = None


@dataclass(frozen=True, slots=True)
class LoadDigest:
    """The figures of one load."""

    keepalive: Literal["on", "off"] | int
    status_codes: dict[str, int]
    client: GeneratorUsage | None
    p99_interval_ns: tuple[int | None, int | None] | None
    # How many of the slowest requests got a response, how many failed, and the sums of the parts of
    # the former, in the order of PARTS.
    slowest: int
    failed: int
    sums_ns: tuple[int, ...]


def read_digests(directory: Path, cells: Iterable[str]) -> dict[str, LoadDigest]:
    """The digests of these cells, as far as their reports exist."""
    digests = {}
    for cell in cells:
        try:
            data = read_file(LOAD_REPORT, directory / "load" / f"{cell}.json")
            digests[cell] = digest_of(decode_json(data, StoredLoad))
        except (FileNotFoundError, ValueError, RecursionError):
            continue
    return digests


def digest_of(load: LoadReport | StoredLoad) -> LoadDigest:
    """The digest of one report."""
    policy, times = load.plan.keepalive, load.response_time_ns
    parts = _slowest(load)
    known = [one for one in parts if one is not None]
    return LoadDigest(
        policy.requests if isinstance(policy, KeepaliveLimit) else policy,
        load.status_codes,
        load.client,
        times.intervals_95.get("0.99") if times is not None else None,
        len(known),
        len(parts) - len(known),
        tuple(map(sum, zip(*known, strict=True))),
    )


def _slowest(load: LoadReport | StoredLoad) -> list[tuple[int, ...] | None]:
    """The parts of each of the slowest requests, in the order of PARTS; None for a failure."""
    if load.flights is None:
        return []
    slowest = load.flights.slowest[: slowest_count(load.outcomes.scheduled)]
    components: list[tuple[int, ...] | None] = []
    for (start_ns, end_ns), parts in zip(slowest, load.flights.slowest_parts, strict=False):
        left_ns = None if parts is None else end_ns - start_ns - sum(parts)
        components.append(None if parts is None or left_ns is None else (*parts, max(0, left_ns)))
    return components


class IntervalRow(msgspec.Struct, frozen=True):
    """The columns of intervals.csv that the charts use."""

    start_ns: int
    length_ns: int
    failed: int | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None


class SampleRow(msgspec.Struct, frozen=True):
    """The columns of resources.csv that the charts use."""

    t_ns: int
    cpu_usage_ns: int
    nr_periods: int | None = None
    nr_throttled: int | None = None
    memory_anon_bytes: int | None = None
    memory_shared_bytes: int | None = None
    memory_kernel_bytes: int | None = None
    listen_queue: int | None = None
    psi_cpu_some_ns: int | None = None
    psi_cpu_full_ns: int | None = None
    psi_memory_some_ns: int | None = None
    memory_high: int | None = None
    width_ns: int | None = None


def sample_row(sample: Sample) -> SampleRow:
    """The row for a sample that was not stored."""
    names = {field.name for field in msgspec.structs.fields(SampleRow)}
    known = {name: getattr(sample.counters, name) for name in names & set(COUNTER_NAMES)}
    times = {"t_ns": sample.t_ns, "width_ns": sample.width_ns}
    return SampleRow(**known | times | {"cpu_usage_ns": known["cpu_usage_ns"] or 0})


Row = TypeVar("Row", IntervalRow, SampleRow)


@dataclass(frozen=True, slots=True)
class Series:
    """Time series of some cells."""

    intervals: Mapping[str, Sequence[IntervalRow]]
    samples: Mapping[str, Sequence[SampleRow]]
    # Samples of each cell by supporting service.
    services: Mapping[str, Mapping[str, Sequence[SampleRow]]]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The contents of a run directory, without what is large: time series and load reports are read
    for the cells that are drawn."""

    directory: Path
    run: RunInfo
    summary: Summary
    loads: Mapping[str, LoadDigest]
    # The cells that can be drawn over time.
    recorded: Collection[str]

    def series(self, cells: Collection[str]) -> Series:
        """The time series of these cells."""
        return Series(
            intervals=_rows_by_cell(IntervalRow, self.directory / "intervals.csv", cells),
            samples=_rows_by_cell(SampleRow, self.directory / "resources.csv", cells),
            services=_services_by_cell(self.directory / "services.csv", cells),
        )


def read_run(
    directory: Path,
    method: Method | None = None,
    slo: Sequence[str] = (),
    summary: Summary | None = None,
) -> RunFiles:
    """Read one run directory, which must contain summary.json. Aggregates and conclusions are
    recomputed, unless ``summary`` has them. Damaged data is omitted; ``results.integrity`` reports
    it."""
    if summary is None:
        summary = with_answer(analyse(read_summary(directory, is_lean=True), method, slo))
    return RunFiles(
        directory=directory,
        run=read_run_info(directory),
        summary=summary,
        loads=read_digests(directory, [cell.id for cell in summary.cells]),
        recorded=_recorded(directory / "intervals.csv"),
    )


def read_load_reports(directory: Path, cells: Iterable[str]) -> dict[str, LoadReport]:
    """The load reports of these cells, as far as they exist."""
    known = {cell: read_load_report(directory, cell) for cell in cells}
    return {cell: load for cell, load in known.items() if load is not None}


def read_run_info(directory: Path) -> RunInfo:
    """run.json, or placeholders if it cannot be read."""
    try:
        return read(RunInfo, directory / "run.json")
    except RefusedFile:
        raise
    except UsageError:
        return RunInfo(
            schema_version=SCHEMA_VERSION,
            started_utc=words.MISSING,
            status="failed",
            plan=msgspec.Raw(b"{}"),
            host=HostFacts(),
        )


def read_load_report(directory: Path, cell: str) -> LoadReport | None:
    """The load report of a cell; None if it does not exist or is damaged."""
    path = directory / "load" / f"{cell}.json"
    try:
        return read_load(path) if path.exists() else None
    except RefusedFile:
        raise
    except UsageError:
        return None


def _recorded(path: Path) -> set[str]:
    """The cells that have rows."""
    with suppress(FileNotFoundError):
        return {_first_field(line) for line in read_lines(TABLE, path, errors="replace")}
    return set()


def _first_field(line: str) -> str:
    return line.partition(",")[0].strip('"\n')


def _services_by_cell(path: Path, cells: Collection[str]) -> dict[str, dict[str, list[SampleRow]]]:
    by_cell: dict[str, dict[str, list[SampleRow]]] = defaultdict(dict)
    for (cell, service), rows in _rows_by(SampleRow, path, ("cell", "service"), cells).items():
        by_cell[cell][service] = rows
    return by_cell


def _rows_by_cell(kind: type[Row], path: Path, cells: Collection[str]) -> dict[str, list[Row]]:
    return {cell: rows for (cell,), rows in _rows_by(kind, path, ("cell",), cells).items()}


def _rows_by(
    kind: type[Row], path: Path, columns: Sequence[str], cells: Collection[str]
) -> dict[tuple[str, ...], list[Row]]:
    """The lines of these cells in a CSV file, grouped by these columns. Lines without a timestamp
    or CPU use are omitted."""
    rows: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    fields = msgspec.structs.fields(kind)
    needed: set[str] = {field.name for field in fields if field.required}
    wanted = {*cells, "cell"}  # and the heading
    all_lines = read_lines(TABLE, path, errors="replace")
    lines = csv.reader(line for line in all_lines if _first_field(line) in wanted)
    with suppress(csv.Error, FileNotFoundError):
        heading = next(lines, [])
        places = {name: place for place, name in enumerate(heading)}
        if not places.keys() >= {*columns, *needed}:
            return rows
        numbers = [(name, places[name]) for name in (one.name for one in fields) if name in places]
        for line in lines:
            line += [""] * (len(heading) - len(line))  # a damaged line may be short
            known = {
                name: value for name, place in numbers if (value := finite(line[place])) is not None
            }
            key = tuple(line[places[column]] for column in columns)
            if needed <= known.keys() and all(key):
                rows[key].append(convert(known, kind))
    return rows
