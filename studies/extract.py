"""Makes the stored result from a run directory of ``wsgiload reproduce``. Reads only this directory
and the experiment file."""

from __future__ import annotations

import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from studies.claims import judged
from studies.command import command_of
from studies.originals import original_of
from studies.results import (
    Figure,
    Finding,
    Machine,
    Row,
    ServerVersion,
    StoredClaim,
    StoredTable,
    StudyRun,
)
from studies.runs import (
    Estimate,
    Results,
    as_tenths,
    cores,
    failed_share,
    load_of,
    loads_of,
    max_ms,
    mean_ms,
    mean_of,
    median_of,
    memory_mb,
)
from studies.tables import tool_tables
from wsgiload import CellResult, UsageError
from wsgiload.analysis.aggregate import level_of
from wsgiload.documents.over_cells import Aggregate
from wsgiload.documents.run_info import RunInfo
from wsgiload.report.cells import Cell, conditions, read_sweep
from wsgiload.report.run_files import RunFiles, read_run

NS_PER_MS = 1e6
BYTES_PER_MIB, BYTES_PER_GIB = 1 << 20, 1 << 30
DIGITS = 4
_SETTINGS = {"keep": "keep-alive on", "close": "keep-alive off"}
# Parts of a size that are not factors of a study: workers, threads, the profile.
_NO_FACTOR = re.compile(r"[wt]\d+|stock|tuned")


def extract(directory: Path, experiments: Path) -> StudyRun:
    """The stored result of a run; ``experiments`` is the folder of the experiment files.

    Raises UsageError for a run of another experiment and for an unfinished run.
    """
    files = read_run(directory)
    facts, sweep = files.summary.experiment, read_sweep(files.summary)
    original = original_of(directory, facts.name)
    assert facts.name is not None
    if files.summary.status != "complete":
        fix = f"finish it: wsgiload sweep --resume {directory}"
        raise UsageError(f"{directory} was {files.summary.status}", fix)

    path = experiments / f"{facts.name}.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    command = command_of(facts, table)
    cells = [cell.result for cell in sweep.cells]
    limit = facts.memory_bytes
    return StudyRun(
        name=facts.name,
        title=facts.title or facts.name,
        source=facts.source,
        command=command,
        date=files.run.started_utc[:10],
        machine=_machine(files.run),
        # The page has a column for the settings of a grid.
        conditions=conditions(facts).replace("see the server's name", "see the `setting` column"),
        cpus=facts.cpus,
        memory_mib=None if limit is None else limit / BYTES_PER_MIB,
        is_open=sweep.open_loop,
        runs=facts.runs,
        notes=facts.notes[: len(table["notes"])],
        changes=facts.notes[len(table["notes"]) :],
        versions=_versions(cells),
        rows=_rows(files, cells),
        findings=_findings(cells),
        claims=_claims(facts.name, files, command),
        tables=tuple(
            StoredTable(title=one.title, headings=one.headings, rows=one.rows)
            for one in tool_tables(original.tables, sweep, loads_of(files))
        ),
    )


def _machine(run: RunInfo) -> Machine:
    host, size = run.host, run.host.memory_bytes
    return Machine(
        cpu_model=host.cpu_model,
        cpus=host.cpus,
        memory_gib=None if size is None else round(size / BYTES_PER_GIB, 1),
        # Without the suffix of a provider's build.
        kernel=None if host.kernel is None else re.split(r"[^0-9.]", host.kernel)[0],
        os=host.os,
        wsgiload=host.wsgiload,
    )


def _versions(cells: Sequence[CellResult]) -> tuple[ServerVersion, ...]:
    versions: dict[str, ServerVersion] = {}
    for cell in cells:
        one = ServerVersion(server=cell.server, version=cell.version, python=cell.python)
        if cell.version is not None or cell.server not in versions:
            versions[cell.server] = one
    return tuple(versions.values())


def _claims(name: str, files: RunFiles, command: str) -> tuple[StoredClaim, ...]:
    """The judged claims, each with the command that measures only its servers, with the options of
    this run."""
    return tuple(
        StoredClaim(
            name=one.claim.name,
            words=one.claim.words,
            figure=one.claim.figure,
            status=one.judgement.status,
            ours=one.judgement.ours,
            because=one.judgement.because,
            command=_for_servers(command, one.claim.servers),
        )
        for one in judged(name, files.summary, loads_of(files))
    )


def _for_servers(command: str, servers: Sequence[str]) -> str:
    """The command for only these servers, unless it already selects servers."""
    if not servers or "--servers" in command:
        return command
    return f"{command} --servers {','.join(servers)}"


def _findings(cells: Sequence[CellResult]) -> tuple[Finding, ...]:
    """The checks and alarms that fired, with their servers, most frequent first."""
    servers: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        for reason in () if cell.verdict is None else cell.verdict.reasons:
            if name_of(cell) not in servers[reason.check]:
                servers[reason.check].append(name_of(cell))
    ordered = sorted(servers.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Finding(check=check, servers=tuple(names)) for check, names in ordered)


# --- the figures of a server at a load


@dataclass(frozen=True, slots=True)
class _Place:
    """The cells of one server in one setting at one load."""

    trials: Sequence[CellResult]
    runs: Mapping[int, CellResult]
    aggregate: Aggregate | None


def _rows(files: RunFiles, cells: Sequence[CellResult]) -> tuple[Row, ...]:
    counted = {one.id for one in Results.of(files.summary, loads_of(files)).cells}
    aggregates = {
        (one.server, one.rate, one.connections): one for one in files.summary.aggregates or ()
    }
    trials: dict[tuple[str, float | None, int | None], list[CellResult]] = defaultdict(list)
    for cell in cells:
        level = level_of(cell)
        trials[level.server, level.rate, level.connections].append(cell)
    return tuple(
        _row(
            _Place(
                made,
                {cell.run: cell for cell in made if cell.id in counted},
                aggregates.get(level),
            )
        )
        for level, made in trials.items()
    )


def _row(place: _Place) -> Row:
    first, runs = place.trials[0], place.runs
    return Row(
        server=name_of(first),
        setting=setting_of(first),
        load=load_of(first),
        runs=len(runs),
        trials=len(place.trials),
        throughput_per_s=_over_runs(place, "goodput"),
        failed_share=_figure(failed_share(runs)),
        mean_ms=_figure(mean_of(runs, mean_ms, as_tenths)),
        p99_ms=_p99_ms(place),
        is_p99_beyond=_is_p99_beyond(place),
        slowest_ms=_rounded(max((max_ms(cell) or 0.0 for cell in runs.values()), default=None)),
        cpu_cores=_rounded(median_of(runs, cores)),
        memory_mb=_rounded(median_of(runs, memory_mb)),
        problem=None if runs else Cell(first).verdict_words(),
    )


def _p99_ms(place: _Place) -> Figure:
    """Over the runs; a single run has the interval within the run."""
    figure = _over_runs(place, "p99", NS_PER_MS)
    if len(place.runs) != 1:
        return figure
    low, high = _within(next(iter(place.runs.values())))
    return Figure(value=figure.value, low=_in(low, NS_PER_MS), high=_in(high, NS_PER_MS))


def _over_runs(place: _Place, name: Literal["goodput", "p99"], unit: float = 1.0) -> Figure:
    """The geometric mean with its interval, or the median if there is no interval, in this unit."""
    if place.aggregate is None or not place.runs:
        return Figure()
    figures = place.aggregate.figures
    figure = figures.goodput if name == "goodput" else figures.p99
    low, high = figure.interval_95 or (None, None)
    middle = figure.median if figure.mean is None else figure.mean
    return Figure(value=_in(middle, unit), low=_in(low, unit), high=_in(high, unit))


def _is_p99_beyond(place: _Place) -> bool:
    """Whether it has no finite value in half of the runs."""
    if place.aggregate is None or not place.runs:
        return False
    p99 = place.aggregate.figures.p99
    return p99.median is None and "no finite value" in (p99.reason or "")


def _within(cell: CellResult) -> tuple[float | None, float | None]:
    known = None if cell.uncertainty is None else cell.uncertainty.offered_quantiles_ns.get("0.99")
    if known is None or known.interval_95_ns is None:
        return None, None
    return known.interval_95_ns


def name_of(cell: CellResult) -> str:
    """The server's name without the settings of a grid."""
    bare = msgspec.structs.replace(cell, size=None, legacy=False)
    return Cell(bare).label


def setting_of(cell: CellResult) -> str:
    """The settings of the grid."""
    parts = [part for part in (cell.size or "").split("-") if part]
    return ", ".join(
        _SETTINGS.get(part, f"app {part}") for part in parts if not _NO_FACTOR.fullmatch(part)
    )


def _figure(estimate: Estimate | None) -> Figure:
    if estimate is None:
        return Figure()
    low, high = estimate.bounds or (None, None)
    return Figure(value=_rounded(estimate.middle), low=_rounded(low), high=_rounded(high))


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else _rounded(value / unit)


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")
