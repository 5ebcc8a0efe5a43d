"""Ranks all servers at each load level and marks ties. Pure, from the cells of a summary.

p99 over all offered requests ranks an open loop; goodput ranks a closed loop. Neither failed
servers nor servers without a valid measurement are ranked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import geometric_mean, median
from typing import Literal

from msgspec.structs import replace

from wsgiload.analysis.absence import enough_requests
from wsgiload.analysis.aggregate import ServerLevel, counted_runs, level_of
from wsgiload.documents.answer import RankedService, RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Comparison
from wsgiload.statistics.effect import MIN_RUNS, PLANNED_FACTOR
from wsgiload.statistics.effect import mean_interval as t_interval
from wsgiload.units import level_words

P99 = "0.99"
P50, P90 = "0.5", "0.9"
# A server sustains a load level if it gives this share of all requests a correct response, and this
# share of the scheduled ones in time.
SUSTAINED_RATIO = 0.99
SUSTAINED_GOODPUT = 0.95
# With fewer than four runs, goodputs within this factor are tied.
CLOSE_GOODPUT = 1.1

Status = Literal["ranked", "errors", "overloaded", "invalid", "failed"]
_STATUSES: tuple[Status, ...] = ("ranked", "errors", "overloaded", "invalid", "failed")


@dataclass(frozen=True, slots=True)
class _Place:
    """One server at one load level: its valid runs, and all of its trials."""

    level: ServerLevel
    runs: tuple[CellResult, ...]
    trials: tuple[CellResult, ...]


def rank(
    cells: Sequence[CellResult],
    comparisons: Sequence[Comparison] = (),
    allowed_errors: float | None = None,
) -> tuple[RankingLevel, ...]:
    """``ranking`` of an answer, the highest load level first. A server with a larger share of
    errors than allowed is not ranked; by default, none are allowed if another server has none."""
    runs_by_level = counted_runs(cells)
    trials_by_level: dict[ServerLevel, list[CellResult]] = {}
    for cell in cells:
        trials_by_level.setdefault(level_of(cell), []).append(cell)
    by_level: dict[tuple[float, float | None, int | None, str | None], list[_Place]] = {}
    for where, runs in runs_by_level.items():
        trials = tuple(trials_by_level[where])
        place = _Place(where, tuple(runs[run] for run in sorted(runs)), trials)
        height = where.rate if where.rate is not None else float(where.connections or 0)
        key = (height, where.rate, where.connections, trials[0].app)
        by_level.setdefault(key, []).append(place)

    return tuple(
        _ranked_level(key, places, comparisons, allowed_errors)
        for key, places in sorted(by_level.items(), key=lambda item: -item[0][0])
    )


def _ranked_level(
    key: tuple[float, float | None, int | None, str | None],
    places: Sequence[_Place],
    comparisons: Sequence[Comparison],
    allowed_errors: float | None,
) -> RankingLevel:
    _, rate, connections, app = key
    entries = _without_errors([_entry(place) for place in places], allowed_errors)
    runs = {place.level.server: place.runs for place in places}
    relations = _relations(entries, runs, rate, connections, app, comparisons)
    tied = [
        replace(
            entry,
            tied_with=_related(entry, "tied", relations),
            undecided_with=_related(entry, "undecided", relations),
        )
        for entry in entries
    ]
    tied.sort(key=lambda entry: _order(entry, is_open=rate is not None))
    return RankingLevel(
        level=level_words(rate, connections),
        rate=rate,
        connections=connections,
        app=app,
        entries=tuple(tied),
    )


def _order(entry: RankingEntry, *, is_open: bool) -> tuple[int, float]:
    group = _STATUSES.index(entry.status)
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
        value_ns=_finite(center_of(runs)),
        interval_ns=interval_of(runs),
        goodput_per_s=median(goodputs) if goodputs else None,
        p50_ns=_finite(_median_of(runs, P50)),
        cpu_cores_mean=_median_known(cores),
        memory_peak_bytes=max((peak for peak in memory if peak is not None), default=None),
        workers=settings.workers if settings is not None else None,
        threads=settings.threads if settings is not None else None,
        tied_with=(),
        error_ratio=error_ratio(runs),
        few_requests_beyond=any(_has_few_requests(cell) for cell in runs),
        services=_services(runs),
    )


def _without_errors(entries: Sequence[RankingEntry], allowed: float | None) -> list[RankingEntry]:
    """The entries, of which those with more errors than allowed are not ranked."""
    ratios = [entry.error_ratio for entry in entries if entry.status == "ranked"]
    if allowed is None:
        allowed = 0.0 if 0.0 in ratios else math.inf
    return [
        replace(entry, status="errors")
        if entry.status == "ranked" and entry.error_ratio > allowed
        else entry
        for entry in entries
    ]


def error_ratio(runs: Sequence[CellResult]) -> float:
    """The share of errors that are not due to the generator."""
    known = [cell.outcomes for cell in runs if cell.outcomes is not None]
    scheduled = sum(one.scheduled for one in known)
    errors = sum(
        one.scheduled - one.ok - one.dropped - one.unfinished - one.client_error for one in known
    )
    return errors / scheduled if scheduled else 0.0


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
    return "ranked" if all(sustained(cell) for cell in place.runs) else "overloaded"


def _has_no_result(cell: CellResult) -> bool:
    return cell.failure is not None or cell.outcomes is None or cell.outcomes.ok == 0


def sustained(cell: CellResult) -> bool:
    """Whether the server kept up in this run, with hardly any errors."""
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


def center_of(cells: Sequence[CellResult], quantile: str = P99) -> float:
    """The figure to which ``interval_of`` belongs: the geometric mean of at least four runs with
    finite values, otherwise the median. The median of skewed runs can lie outside the interval."""
    values = [_upper_ns(cell, quantile) for cell in cells]
    if len(values) < MIN_RUNS or not all(math.isfinite(value) and value > 0 for value in values):
        return _median_of(cells, quantile)
    return geometric_mean(values)


def interval_of(
    cells: Sequence[CellResult], quantile: str = P99
) -> tuple[float, float | None] | None:
    """The 95 % interval of a quantile: Student's t over the logarithms of at least four runs. With
    fewer runs, the range that the intervals of all runs cover, each with its lower end reduced by
    the generator's contribution."""
    values = [_upper_ns(cell, quantile) for cell in cells]
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        return None
    if len(values) >= MIN_RUNS:
        interval = t_interval([math.log(value) for value in values])
        ends = (interval.mean - interval.half_95, interval.mean + interval.half_95)
        return math.exp(ends[0]), math.exp(ends[1])

    inside = [_inside_run(cell, quantile) for cell in cells]
    known = [one for one in inside if one is not None]
    if len(known) < len(inside):
        return None
    highs = [high for _, high in known]
    high = None if None in highs else max(high for high in highs if high is not None)
    return min(low for low, _ in known), high


def _inside_run(cell: CellResult, quantile: str) -> tuple[float, float | None] | None:
    uncertainty = cell.uncertainty
    known = uncertainty.offered_quantiles_ns.get(quantile) if uncertainty is not None else None
    if known is None or known.interval_95_ns is None:
        return None
    low, high = known.interval_95_ns
    budget = cell.error_budget_ns.get(quantile)
    added_ns = budget.generator[1] - budget.generator[0] if budget is not None else 0
    return float(max(0, low - added_ns)), None if high is None else float(high)


# --- ties

Relation = Literal["tied", "separate", "undecided"]


def _relations(
    entries: Sequence[RankingEntry],
    runs: Mapping[str, Sequence[CellResult]],
    rate: float | None,
    connections: int | None,
    app: str | None,
    comparisons: Sequence[Comparison],
) -> dict[tuple[str, str], Relation]:
    """How each pair of ranked servers differs."""
    figure = "p99" if rate is not None else "goodput"
    compared = {
        frozenset((one.first, one.second)): _compared(one)
        for one in comparisons
        if (one.rate, one.connections, one.app, one.figure) == (rate, connections, app, figure)
        and one.conclusion != "no inference"
    }
    relations: dict[tuple[str, str], Relation] = {}
    ranked = [entry for entry in entries if entry.status == "ranked"]
    for one, other in combinations(ranked, 2):
        pair = frozenset((one.label, other.label))
        if pair in compared:
            relation = compared[pair]
        elif rate is None:
            relation = "tied" if _are_close(one, other) else "separate"
        else:
            relation = _relation(one, other, runs)
        relations[one.label, other.label] = relations[other.label, one.label] = relation
    return relations


def _compared(comparison: Comparison) -> Relation:
    """Servers are tied only if their difference is known to be smaller than planned to detect."""
    if comparison.conclusion == "different":
        return "separate"
    margin = comparison.margin
    return "tied" if margin is not None and margin < PLANNED_FACTOR - 1 else "undecided"


def _related(
    entry: RankingEntry, relation: Relation, relations: Mapping[tuple[str, str], Relation]
) -> tuple[str, ...]:
    return tuple(
        other
        for (one, other), known in relations.items()
        if (one, known) == (entry.label, relation)
    )


def _relation(
    one: RankingEntry, other: RankingEntry, runs: Mapping[str, Sequence[CellResult]]
) -> Relation:
    """Two servers are tied only if both intervals of p99 are bounded and overlap. If p99 does not
    decide, a clear difference of p50 or p90 in the same direction does."""
    if are_apart(one.interval_ns, other.interval_ns):
        return "separate"
    if _is_bounded(one.interval_ns) and _is_bounded(other.interval_ns):
        return "tied"
    is_one_first = (one.value_ns or math.inf) < (other.value_ns or math.inf)
    first, second = (one, other) if is_one_first else (other, one)
    for quantile in (P50, P90):
        low, high = (interval_of(runs[entry.label], quantile) for entry in (first, second))
        if low is not None and high is not None and low[1] is not None and low[1] < high[0]:
            return "separate"
    return "undecided"


Ends = tuple[float, float | None] | None


def are_apart(one: Ends, other: Ends) -> bool:
    """Whether two intervals are known and do not overlap."""
    if one is None or other is None:
        return False
    (low, high), (other_low, other_high) = one, other
    return (high is not None and other_low > high) or (other_high is not None and low > other_high)


def _is_bounded(interval: Ends) -> bool:
    return interval is not None and interval[1] is not None


def _are_close(one: RankingEntry, other: RankingEntry) -> bool:
    """Whether two goodputs from few runs are too close to rank."""
    low, high = sorted((one.goodput_per_s or 0.0, other.goodput_per_s or 0.0))
    return high <= low * CLOSE_GOODPUT


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _median_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
