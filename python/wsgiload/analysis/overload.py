"""What servers do beyond their capacity: how much they serve at most, and how much of that is left
under more load.

Pure, from the cells of summary.json. No knee is looked for: where a curve bends depends on the
scales of its axes. Rates of sessions say nothing here: a capacity is one of requests, and a session
is several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT, Level, Runs, figure_of, standing
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Overload, OverloadPoint

SATURATED = 0.95
HELD, COLLAPSED = 0.9, 0.5
# How far beyond capacity a server should be looked at; every server looks alike below it.
OVERLOADS = (1.1, 1.5)


def saturation_goodputs(cells: Sequence[CellResult]) -> dict[str, float]:
    """For each server that was driven into saturation, the most correct responses per second that
    it gave."""
    saturated = {
        level.server for level, runs in standing(cells).items() if _is_saturated(level, runs)
    }
    return {
        server: max(goodputs.values())
        for server, goodputs in _goodputs(cells).items()
        if server in saturated
    }


def overload_points(cells: Sequence[CellResult]) -> tuple[Overload, ...]:
    """``overload`` of summary.json: of each saturated server its capacity, and its goodput at every
    rate above it."""
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
    for level, runs in standing(cells).items():
        if level.rate is not None and runs:
            goodputs.setdefault(level.server, {})[level.rate] = _median_goodput(runs)
    return goodputs


def _median_goodput(runs: Runs) -> float:
    return median(_goodput(cell) for cell in runs.values())


def _goodput(cell: CellResult) -> float:
    return figure_of(cell, GOODPUT) or 0.0


def _is_saturated(level: Level, runs: Runs) -> bool:
    """In every run some responses are correct, and some of what was scheduled gets none.

    In every one, because a host that stalls for a moment makes any server late once.
    """
    if level.rate is None or not all(_goodput(cell) for cell in runs.values()):
        return False
    shares = [share for cell in runs.values() if (share := _answered_share(cell)) is not None]
    return bool(shares) and all(share < SATURATED for share in shares)


def _answered_share(cell: CellResult) -> float | None:
    """How much of what was scheduled got a response in time. An error is one, too: a server whose
    app fails has not reached its capacity."""
    outcomes = cell.outcomes
    if outcomes is None or not outcomes.scheduled:
        return None
    errors = outcomes.http_status + outcomes.bad_body
    return (_goodput(cell) * cell.duration_s + errors) / outcomes.scheduled
