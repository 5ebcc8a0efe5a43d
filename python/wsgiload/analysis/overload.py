"""What servers do beyond their capacity: how much they serve at most, and how much of that is left
under more load.

Pure, from the cells of summary.json. No knee is looked for: where a curve bends depends on the
scales of its axes. Rates of sessions say nothing here: a capacity is one of requests, and a session
is several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from wsgiload.analysis.aggregate import GOODPUT, Level, figure_of, standing

Json = Mapping[str, Any]

SATURATED = 0.95
HELD, COLLAPSED = 0.9, 0.5
# How far beyond capacity a server should be looked at; every server looks alike below it.
OVERLOADS = (1.1, 1.5)


def saturation_goodputs(cells: Sequence[Json]) -> dict[str, float]:
    """For each server that was driven into saturation, the most correct answers per second that it
    gave."""
    saturated = {
        where.server for where, runs in standing(cells).items() if _is_saturated(where, runs)
    }
    return {
        server: max(goodputs.values())
        for server, goodputs in _goodputs(cells).items()
        if server in saturated
    }


def overload_points(cells: Sequence[Json]) -> list[dict[str, Any]]:
    """``overload`` of summary.json: of each saturated server its capacity, and its goodput at every
    rate above it."""
    capacities, goodputs = saturation_goodputs(cells), _goodputs(cells)
    return [
        {
            "server": server,
            "capacity_per_s": capacity,
            "points": [
                {
                    "rate": rate,
                    "load_share": rate / capacity,
                    "goodput_per_s": goodput,
                    "kept_ratio": goodput / capacity,
                }
                for rate, goodput in sorted(goodputs[server].items())
                if rate > capacity
            ],
        }
        for server, capacity in capacities.items()
    ]


def _goodputs(cells: Sequence[Json]) -> dict[str, dict[float, float]]:
    """The median goodput over runs, by server and rate."""
    found: dict[str, dict[float, float]] = {}
    for where, runs in standing(cells).items():
        if where.rate is not None and runs:
            found.setdefault(where.server, {})[where.rate] = _median_goodput(runs)
    return found


def _median_goodput(runs: Mapping[int, Json]) -> float:
    return median(figure_of(cell, GOODPUT) or 0.0 for cell in runs.values())


def _is_saturated(where: Level, runs: Mapping[int, Json]) -> bool:
    """In every run goodput stays below what was scheduled, though it is not nothing.

    In every one, because a host that stalls for a moment makes any server late once.
    """
    cells = [cell for cell in runs.values() if cell["outcomes"]]
    return (
        where.rate is not None
        and bool(cells)
        and all(
            0 < (figure_of(cell, GOODPUT) or 0.0) < SATURATED * _scheduled_per_s(cell)
            for cell in cells
        )
    )


def _scheduled_per_s(cell: Json) -> float:
    return float(cell["outcomes"]["scheduled"] / cell["duration_s"])
