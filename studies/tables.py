"""Tables for comparison with published results: the judged claims, and the results of a sweep in
the formats of the originals (AppDynamics, FunkLoad, httperf and ab). Pure.

Invalid and failed runs have no figures; these are never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from studies.claims import JudgedClaim
from wsgiload import LoadReport, Report
from wsgiload.report import words
from wsgiload.report.cells import Cell, Sweep, median_of

Style: TypeAlias = Literal["appdynamics", "funkload", "httperf", "ab"]
Figure: TypeAlias = Callable[[Cell], float | None]
NS_PER_MS = 1e6
BYTES_PER_MB = 1e6


@dataclass(frozen=True, slots=True)
class ToolTable:
    """A table of text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tool_tables(
    style: Style, sweep: Sweep, loads: Mapping[str, LoadReport]
) -> tuple[ToolTable, ...]:
    """The tables of a style; ``loads`` contains the load reports by cell identifier."""
    tables = {"appdynamics": _blocks, "funkload": _cycles, "httperf": _httperf, "ab": _ab}
    return tuple(tables[style](sweep, loads))


def tables_markdown(tables: Sequence[ToolTable]) -> str:
    """The tables, each under its title."""
    lines = []
    for table in tables:
        lines += [
            f"## {table.title}",
            "",
            _line(table.headings),
            "|" + " --- |" * len(table.headings),
        ]
        lines += [_line(row) for row in table.rows]
        lines.append("")
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def claims_tables(verdicts: Sequence[JudgedClaim]) -> list[ToolTable]:
    """One table with a row for each claim; none without claims."""
    headings = ("name", "claim", "original result", "our result", "judgment")
    rows = tuple(map(_claim_row, verdicts))
    return [ToolTable("Claims", headings, rows)] if rows else []


def _claim_row(verdict: JudgedClaim) -> tuple[str, ...]:
    claim, judged = verdict.claim, verdict.judgement
    judgement = f"**{judged.status}**"
    if judged.because is not None:
        reason = "needs " if judged.status == "undecided" else ""
        judgement += f": {reason}{judged.because}"
    return (f"`{claim.name}`", claim.words, claim.figure, judged.ours or words.MISSING, judgement)


# --- AppDynamics: a block for each figure, a row for each server, a column for each level


def _blocks(sweep: Sweep, loads: Mapping[str, LoadReport]) -> Iterator[ToolTable]:
    blocks: dict[str, tuple[Figure, int]] = {
        "REQUESTS (per second)": (lambda cell: cell.goodput_per_s, 1),
        "LATENCIES (mean, ms)": (_mean_ms, 3),
        "CPU (peak, %)": (lambda cell: _times(cell.used.cpu_cores_peak, 100), 0),
        "MEMORY (peak, MB)": (
            lambda cell: _times(cell.used.memory_peak_bytes, 1 / BYTES_PER_MB),
            1,
        ),
        "ERRORS": (failed, 0),
    }
    headings = ("server", *(f"{load:g}" for load in sweep.loads))
    for title, (figure, digits) in blocks.items():
        rows = [
            (label, *(_median(sweep, label, load, figure, digits) for load in sweep.loads))
            for label in sweep.labels
        ]
        yield ToolTable(title, headings, tuple(rows))


# --- FunkLoad: a table for each server, a row for each number of users


def _cycles(sweep: Sweep, loads: Mapping[str, LoadReport]) -> Iterator[ToolTable]:
    quantiles = {"P10": 0.1, "MED": 0.5, "P90": 0.9, "P95": 0.95}
    figures: dict[str, tuple[Figure, int]] = {
        "RPS": (lambda cell: cell.goodput_per_s, 1),
        "TOTAL": (lambda cell: cell.scheduled, 0),
        "SUCCESS": (lambda cell: None if cell.outcomes is None else cell.outcomes.ok, 0),
        "ERROR": (failed, 0),
        "MIN": (_min_ms, 1),
        "AVG": (_mean_ms, 1),
        "MAX": (_max_ms, 1),
        **{name: (_quantile_ms(loads, value), 1) for name, value in quantiles.items()},
    }
    heading = "CUs" if not sweep.open_loop else "rate"
    yield from _of_servers(sweep, heading, figures, "times in ms")


# --- httperf: a table for each server, a row for each rate


def _httperf(sweep: Sweep, loads: Mapping[str, LoadReport]) -> Iterator[ToolTable]:
    figures: dict[str, tuple[Figure, int]] = {
        "req/s": (lambda cell: cell.rates.achieved_per_s, 1),
        "min": (_min_ms, 2),
        "avg": (_mean_ms, 2),
        "max": (_max_ms, 2),
        "median": (_quantile_ms(loads, 0.5), 2),
        "errors": (failed, 0),
        "client-timo": (_outcomes("timeout"), 0),
        "socket-timo": (_outcomes("connect_timeout"), 0),
        "connrefused": (_outcomes("refused"), 0),
        "connreset": (_outcomes("reset", "stale"), 0),
        "fd-unavail": (_outcomes("client_error"), 0),
        "other": (_outcomes("http_status", "bad_body", "dropped"), 0),
    }
    heading = "rate" if sweep.open_loop else "connections"
    yield from _of_servers(sweep, heading, figures, "connection time in ms")


# --- ab: a table for each server, a row for each concurrency


def _ab(sweep: Sweep, loads: Mapping[str, LoadReport]) -> Iterator[ToolTable]:
    figures: dict[str, tuple[Figure, int]] = {
        "Complete requests": (lambda cell: None if cell.outcomes is None else cell.outcomes.ok, 0),
        "Failed requests": (failed, 0),
        "Requests per second": (lambda cell: cell.goodput_per_s, 2),
        "Time per request": (_mean_ms, 3),
        "50%": (_quantile_ms(loads, 0.5), 1),
        "90%": (_quantile_ms(loads, 0.9), 1),
        "99%": (_quantile_ms(loads, 0.99), 1),
        "100%": (_max_ms, 1),
    }
    yield from _of_servers(sweep, "Concurrency Level", figures, "times in ms")


def _of_servers(
    sweep: Sweep, heading: str, figures: Mapping[str, tuple[Figure, int]], unit: str
) -> Iterator[ToolTable]:
    for label in sweep.labels:
        rows = [
            (
                f"{load:g}",
                *(_median(sweep, label, load, *figure) for figure in figures.values()),
            )
            for load in sweep.loads
        ]
        yield ToolTable(f"{label} ({unit})", (heading, *figures), tuple(rows))


def _median(sweep: Sweep, label: str, load: float, figure: Figure, digits: int) -> str:
    """The median over the runs that have the figure."""
    value = median_of(sweep.at(label, load), figure)
    return words.MISSING if value is None else f"{value:.{digits}f}"


# --- figures of a cell


def failed(cell: Cell) -> float | None:
    """Requests without a correct response, without those that the end of the load cut off."""
    outcomes = cell.outcomes
    return None if outcomes is None else outcomes.scheduled - outcomes.ok - outcomes.unfinished


def _outcomes(*kinds: str) -> Figure:
    def count(cell: Cell) -> float | None:
        outcomes = cell.outcomes
        return None if outcomes is None else sum(getattr(outcomes, kind) for kind in kinds)

    return count


def _mean_ms(cell: Cell) -> float | None:
    times = cell.result.response_time_ns
    return None if times is None else _times(times.mean, 1 / NS_PER_MS)


def _min_ms(cell: Cell) -> float | None:
    times = cell.result.response_time_ns
    return None if times is None else _times(times.min, 1 / NS_PER_MS)


def _max_ms(cell: Cell) -> float | None:
    times = cell.result.response_time_ns
    return None if times is None else _times(times.max, 1 / NS_PER_MS)


def _quantile_ms(loads: Mapping[str, LoadReport], probability: float) -> Figure:
    """A quantile of the correct responses, from the histogram, because a summary does not contain
    low quantiles."""

    def quantile(cell: Cell) -> float | None:
        load = loads.get(cell.id)
        histogram = None if load is None else Report(load).response_time
        value_ns = None if histogram is None else histogram.quantile(probability)
        return _times(value_ns, 1 / NS_PER_MS)

    return quantile


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
