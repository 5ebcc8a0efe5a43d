"""Ranks all servers at each load level and marks ties. Pure, from the cells of a summary.

p99 over all offered requests ranks an open loop; goodput ranks a closed loop. Neither failed
servers nor servers without a valid measurement are ranked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal

from msgspec.structs import replace

from wsgiload.analysis.absence import enough_requests
from wsgiload.analysis.aggregate import ServerLevel, counted_runs, level_of
from wsgiload.documents.answer import RankedService, RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Comparison
from wsgiload.statistics.effect import MIN_RUNS
from wsgiload.statistics.effect import mean_interval as t_interval

P99 = "0.99"
P50 = "0.5"
# A server sustains a load level if it gives this share of all requests a correct response, and this
# share of the scheduled ones in time.
SUSTAINED_RATIO = 0.99
SUSTAINED_GOODPUT = 0.95
# With fewer than four runs, goodputs within this factor are tied.
CLOSE_GOODPUT = 1.1

Status = Literal["ranked", "overloaded", "invalid", "failed"]


@dataclass(frozen=True, slots=True)
class _Place:
    """One server at one load level: its valid runs, and all of its trials."""

    level: ServerLevel
    runs: tuple[CellResult, ...]
    trials: tuple[CellResult, ...]


def rank(
    cells: Sequence[CellResult], comparisons: Sequence[Comparison] = ()
) -> tuple[RankingLevel, ...]:
    """``ranking`` of an answer, the highest load level first."""
    runs_by_level = counted_runs(cells)
    by_level: dict[tuple[float, float | None, int | None, str | None], list[_Place]] = {}
    for where, runs in runs_by_level.items():
        trials = tuple(cell for cell in cells if level_of(cell) == where)
        place = _Place(where, tuple(runs[run] for run in sorted(runs)), trials)
        height = where.rate if where.rate is not None else float(where.connections or 0)
        key = (height, where.rate, where.connections, trials[0].app)
        by_level.setdefault(key, []).append(place)

    return tuple(
        _ranked_level(key, places, comparisons)
        for key, places in sorted(by_level.items(), key=lambda item: -item[0][0])
    )


def level_words(rate: float | None, connections: int | None) -> str:
    """``3,000/s``, or ``50 connections``."""
    if rate is not None:
        return f"{rate:,.10g}/s"
    return f"{connections:,} connection{'' if connections == 1 else 's'}"


def _ranked_level(
    key: tuple[float, float | None, int | None, str | None],
    places: Sequence[_Place],
    comparisons: Sequence[Comparison],
) -> RankingLevel:
    _, rate, connections, app = key
    entries = [_entry(place) for place in places]
    ties = _ties(entries, rate, connections, app, comparisons)
    tied = [replace(entry, tied_with=ties.get(entry.label, ())) for entry in entries]
    tied.sort(key=lambda entry: _order(entry, is_open=rate is not None))
    return RankingLevel(
        level=level_words(rate, connections),
        rate=rate,
        connections=connections,
        app=app,
        entries=tuple(tied),
    )


def _order(entry: RankingEntry, *, is_open: bool) -> tuple[int, float]:
    group = ("ranked", "overloaded", "invalid", "failed").index(entry.status)
    if is_open and entry.status == "ranked":
        return group, entry.value_ns if entry.value_ns is not None else math.inf
    return group, -(entry.goodput_per_s or 0.0)


def _entry(place: _Place) -> RankingEntry:
    status = _status(place)
    # Invalid figures are shown as they are, but no conclusion is drawn from them.
    runs = place.runs or tuple(cell for cell in place.trials if cell.outcomes is not None)
    cores = [cell.resources.cpu_cores_mean for cell in runs if cell.resources is not None]
    memory = [cell.resources.memory_peak_bytes for cell in runs if cell.resources is not None]
    settings = next((cell.settings for cell in runs if cell.settings is not None), None)
    goodputs = [
        cell.rate_result.goodput_per_s or 0.0 for cell in runs if cell.rate_result is not None
    ]
    return RankingEntry(
        label=place.level.server,
        cell_ids=tuple(cell.id for cell in place.runs),
        status=status,
        value_ns=_finite(_median_of(runs, P99)),
        interval_ns=interval_of(runs),
        goodput_per_s=median(goodputs) if goodputs else None,
        p50_ns=_finite(_median_of(runs, P50)),
        cpu_cores_mean=_median_known(cores),
        memory_peak_bytes=max((peak for peak in memory if peak is not None), default=None),
        workers=settings.workers if settings is not None else None,
        threads=settings.threads if settings is not None else None,
        tied_with=(),
        few_requests_beyond=any(_has_few_requests(cell) for cell in runs),
        services=_services(runs),
    )


def _has_few_requests(cell: CellResult) -> bool:
    scheduled = cell.outcomes.scheduled if cell.outcomes is not None else None
    return not enough_requests(scheduled, float(P99))


def _services(runs: Sequence[CellResult]) -> tuple[RankedService, ...]:
    """Each supporting service with its median CPU use."""
    cores: dict[str, list[float | None]] = {}
    for cell in runs:
        for one in cell.services:
            cores.setdefault(one.name, []).append(one.resources.cpu_cores_mean)
    return tuple(
        RankedService(name=name, cpu_cores_mean=_median_known(known))
        for name, known in cores.items()
    )


def _status(place: _Place) -> Status:
    if not place.runs:
        answered = any(cell.outcomes is not None and cell.outcomes.ok for cell in place.trials)
        return "invalid" if answered else "failed"
    if all(_has_no_result(cell) for cell in place.runs):
        return "failed"
    return "ranked" if all(_sustained(cell) for cell in place.runs) else "overloaded"


def _has_no_result(cell: CellResult) -> bool:
    return cell.failure is not None or cell.outcomes is None or cell.outcomes.ok == 0


def _sustained(cell: CellResult) -> bool:
    outcomes, rates = cell.outcomes, cell.rate_result
    if cell.failure is not None or outcomes is None or not outcomes.scheduled or rates is None:
        return False
    if outcomes.ok / outcomes.scheduled < SUSTAINED_RATIO:
        return False
    if rates.offered_per_s is None:
        return True
    return (rates.goodput_per_s or 0.0) >= SUSTAINED_GOODPUT * rates.offered_per_s


def _upper_ns(cell: CellResult, quantile: str) -> float:
    bounds = (cell.offered_quantiles_ns or {}).get(quantile)
    return math.inf if bounds is None or bounds.high is None else float(bounds.high)


def _median_of(cells: Sequence[CellResult], quantile: str) -> float:
    values = [_upper_ns(cell, quantile) for cell in cells]
    return median(values) if values else math.inf


def interval_of(cells: Sequence[CellResult]) -> tuple[float, float | None] | None:
    """The 95 % interval of p99: Student's t over the logarithms of at least four runs. With fewer
    runs, the range that the intervals of all runs cover, each with its lower end reduced by the
    generator's contribution."""
    values = [_upper_ns(cell, P99) for cell in cells]
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        return None
    if len(values) >= MIN_RUNS:
        interval = t_interval([math.log(value) for value in values])
        ends = (interval.mean - interval.half_95, interval.mean + interval.half_95)
        return math.exp(ends[0]), math.exp(ends[1])

    inside = [_inside_run(cell) for cell in cells]
    known = [one for one in inside if one is not None]
    if len(known) < len(inside):
        return None
    highs = [high for _, high in known]
    high = None if None in highs else max(high for high in highs if high is not None)
    return min(low for low, _ in known), high


def _inside_run(cell: CellResult) -> tuple[float, float | None] | None:
    known = cell.uncertainty.offered_quantiles_ns.get(P99) if cell.uncertainty is not None else None
    if known is None or known.interval_95_ns is None:
        return None
    low, high = known.interval_95_ns
    budget = cell.error_budget_ns.get(P99)
    added_ns = budget.generator[1] - budget.generator[0] if budget is not None else 0
    return float(max(0, low - added_ns)), None if high is None else float(high)


# --- ties


def _ties(
    entries: Sequence[RankingEntry],
    rate: float | None,
    connections: int | None,
    app: str | None,
    comparisons: Sequence[Comparison],
) -> Mapping[str, tuple[str, ...]]:
    """The tied servers of each server."""
    figure = "p99" if rate is not None else "goodput"
    different = {
        frozenset((one.first, one.second)): one.conclusion == "different"
        for one in comparisons
        if (one.rate, one.connections, one.app, one.figure) == (rate, connections, app, figure)
        and one.conclusion != "no inference"
    }
    ties: dict[str, tuple[str, ...]] = {}
    ranked = [entry for entry in entries if entry.status == "ranked"]
    for one, other in combinations(ranked, 2):
        pair = frozenset((one.label, other.label))
        overlap = _overlap(one, other) if rate is not None else _are_close(one, other)
        is_tie = not different[pair] if pair in different else overlap
        if is_tie:
            ties[one.label] = (*ties.get(one.label, ()), other.label)
            ties[other.label] = (*ties.get(other.label, ()), one.label)
    return ties


def _overlap(one: RankingEntry, other: RankingEntry) -> bool:
    """Whether two intervals overlap; servers without an interval are tied."""
    if one.interval_ns is None or other.interval_ns is None:
        return True
    (low, high), (other_low, other_high) = one.interval_ns, other.interval_ns
    return (high is None or other_low <= high) and (other_high is None or low <= other_high)


def _are_close(one: RankingEntry, other: RankingEntry) -> bool:
    """Whether two goodputs from few runs are too close to rank."""
    low, high = sorted((one.goodput_per_s or 0.0, other.goodput_per_s or 0.0))
    return high <= low * CLOSE_GOODPUT


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _median_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
