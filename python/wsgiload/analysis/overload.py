"""The behavior of servers above capacity: their maximum goodput, and how much of it remains under
more load.

Pure, from the cells of summary.json. It does not look for a knee, because the position of a bend
depends on the scales of the axes. Rates of sessions are ignored, because a session consists of
several requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT, Runs, ServerLevel, counted_runs, figure_of
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Overload, OverloadPoint

SATURATED = 0.95
HELD, COLLAPSED = 0.9, 0.5
# How far above capacity a server should be measured; below it, all servers are alike.
OVERLOADS = (1.1, 1.5)


def saturation_goodputs(cells: Sequence[CellResult]) -> dict[str, float]:
    """The saturation throughput of each saturated server: its maximum of correct responses per
    second."""
    saturated = {
        level.server for level, runs in counted_runs(cells).items() if _is_saturated(level, runs)
    }
    return {
        server: max(goodputs.values())
        for server, goodputs in _goodputs(cells).items()
        if server in saturated
    }


def overload_points(cells: Sequence[CellResult]) -> tuple[Overload, ...]:
    """``overload`` of summary.json: the saturation throughput of each saturated server, and its
    goodput at every higher rate."""
    goodputs = _goodputs(cells)
    return tuple(
        Overload(
            server=server,
            max_goodput_per_s=max_goodput_per_s,
            points=_points(max_goodput_per_s, goodputs[server]),
        )
        for server, max_goodput_per_s in saturation_goodputs(cells).items()
    )


def _points(
    max_goodput_per_s: float, goodputs_per_s: Mapping[float, float]
) -> tuple[OverloadPoint, ...]:
    return tuple(
        OverloadPoint(
            rate=rate,
            relative_rate=rate / max_goodput_per_s,
            goodput_per_s=goodput_per_s,
            goodput_ratio=goodput_per_s / max_goodput_per_s,
        )
        for rate, goodput_per_s in sorted(goodputs_per_s.items())
        if rate > max_goodput_per_s
    )


def _goodputs(cells: Sequence[CellResult]) -> dict[str, dict[float, float]]:
    """The median goodput over runs, by server and rate."""
    goodputs: dict[str, dict[float, float]] = {}
    for level, runs in counted_runs(cells).items():
        if level.rate is not None and runs:
            goodputs.setdefault(level.server, {})[level.rate] = _median_goodput(runs)
    return goodputs


def _median_goodput(runs: Runs) -> float:
    return median(_goodput(cell) for cell in runs.values())


def _goodput(cell: CellResult) -> float:
    return figure_of(cell, GOODPUT) or 0.0


def _is_saturated(level: ServerLevel, runs: Runs) -> bool:
    """Whether, in every run, some responses are correct and some scheduled requests get none.

    In every run, because a short stall of the host makes any server late once.
    """
    if level.rate is None or not all(_goodput(cell) for cell in runs.values()):
        return False
    shares = [share for cell in runs.values() if (share := _response_share(cell)) is not None]
    return bool(shares) and all(share < SATURATED for share in shares)


def _response_share(cell: CellResult) -> float | None:
    """The share of scheduled requests that got a response in time. Errors count as responses: a
    server whose app fails has not reached its capacity."""
    outcomes = cell.outcomes
    if outcomes is None or not outcomes.scheduled:
        return None
    errors = outcomes.http_status + outcomes.bad_body
    return (_goodput(cell) * cell.duration_s + errors) / outcomes.scheduled
