"""Recommends a configuration: the leanest of those that meet an objective at the highest rate, with
its interval, or the reason why there is none.

Pure, from the cells of a summary or from the document of a capacity search. A recommendation
requires enough valid runs, an interval within the objective, and no other configuration that might
be better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Literal, TypeVar

from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.effective_limit import effective_limit, effective_memory_bytes
from wsgiload.analysis.objective import Judgement, Objective
from wsgiload.analysis.threshold import QUANTILES, Threshold
from wsgiload.documents.answer import (
    CpuHeadroom,
    MemoryHeadroom,
    NoRecommendation,
    RecommendedConfiguration,
)
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.statistics.effect import t_quantile
from wsgiload.units import duration_words

LOWER_BOUND = "lower-bound"
# One configuration needs less memory than another if they differ by this factor.
LEANER_BY = 1.1
# The counts in the size of a cell: ``w2-t4``, ``t4-close``.
_COUNTS = re.compile(r"(?:w(?P<workers>\d+))?-?(?:t(?P<threads>\d+))?-?")
# With fewer than four runs, no rank or sign test can reach 5 %.
MIN_RUNS = 4
USUAL_RUNS = 6

Entry = TypeVar("Entry", CellResult, ServerCapacity)
State = Literal["meets", "misses", "unknown"]


@dataclass(frozen=True, slots=True)
class RequestedCounts:
    """The requested numbers of workers and threads, and their configuration: server, variant and
    other grid settings."""

    of: tuple[str | None, ...]
    workers: int
    threads: int

    def is_less_than(self, other: RequestedCounts) -> bool:
        """Whether it has no more of either, less of one, and is otherwise equal. Sizes of different
        servers are not comparable."""
        is_no_more = self.workers <= other.workers and self.threads <= other.threads
        return self != other and self.of == other.of and is_no_more


@dataclass(frozen=True, slots=True)
class AtRate:
    """One configuration at one rate, with the judgement of its runs."""

    rate_per_s: float
    state: State
    why: str
    interval: tuple[float, float] | None
    centre: float | None
    runs: int
    disturbed: int
    min_requests_beyond: int | None
    cpu: CpuHeadroom


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """One configuration at every rate, the lowest first."""

    server: str
    at: tuple[AtRate, ...]
    memory: MemoryHeadroom
    requested: RequestedCounts

    def largest(self, *states: State) -> AtRate | None:
        """The highest rate up to which it is in one of these states."""
        last = None
        for at in self.at:
            if at.state not in states:
                break
            last = at
        return last


RecordAtRate = tuple[SettingRecord, AtRate]


def by_app(entries: Sequence[Entry]) -> dict[str | None, list[Entry]]:
    """Cells, or entries of a capacity document, by app, because apps are not alternatives to each
    other."""
    apps: dict[str | None, list[Entry]] = {}
    for entry in entries:
        apps.setdefault(entry.app, []).append(entry)
    return apps


def recommend(
    cells: Sequence[CellResult], objective: Objective
) -> RecommendedConfiguration | NoRecommendation:
    """A recommendation from the open-loop cells of one app in a sweep, with every configuration at
    the same rates."""
    records = setting_records(cells, objective)
    if not records:
        return refusal("no cell was measured in an open loop", "measure with --rates")
    if all(at.runs < MIN_RUNS for record in records for at in record.at):
        return refusal(
            f"no configuration has {MIN_RUNS} valid runs at one rate"
            f"{best_so_far(cells, objective)}",
            f"use --runs {USUAL_RUNS} on an idle machine",
        )

    confirmed = {record.server: record.largest("meets") for record in records}
    best_per_s = max((at.rate_per_s for at in confirmed.values() if at is not None), default=None)
    if best_per_s is None:
        return _doubt(records, 0.0) or _none_holds(records, cells, objective)

    tied = [
        record
        for record in records
        if (at := confirmed[record.server]) and at.rate_per_s == best_per_s
    ]
    result = _leanest_of(
        tied, confirmed, _next_best(records, confirmed, best_per_s), objective.thresholds
    )
    # If the recommended configuration may do even better, it remains the best choice; for any other
    # configuration, this is a doubt.
    others = [record for record in records if record.server != result.server]
    return _doubt(others, best_per_s) or result


def refusal(why: str, needs: str, *, is_missed: bool = False) -> NoRecommendation:
    """Why there is no recommendation, and what is needed for one."""
    return NoRecommendation(reason=why, needs=needs, is_missed=is_missed)


def best_so_far(cells: Sequence[CellResult], objective: Objective) -> str:
    """``; the best so far is waitress (p99 372 ms)``, the configuration whose median run came
    closest to the objective at the lowest rate; empty if none has a value for every figure."""
    lowest = min((cell.rate for cell in cells if cell.rate is not None), default=None)
    runs: dict[str, list[CellResult]] = {}
    for cell in counted_attempts(cells):
        if cell.rate == lowest and cell.outcomes is not None:
            runs.setdefault(server_of(cell), []).append(cell)
    excesses = {
        name: median(max(one.excess(cell) for one in objective.thresholds) for cell in of_one)
        for name, of_one in runs.items()
    }
    name = min(excesses, key=lambda name: excesses[name], default=None)
    if name is None or math.isinf(excesses[name]):
        return ""
    quantile = shown_quantile(objective.thresholds)
    values = quantiles_ns(runs[name], quantile) if quantile is not None else []
    figure = f" ({quantile.figure} {duration_words(median(values))})" if quantile and values else ""
    return f"; the best so far is {name}{figure}"


def _none_holds(
    records: Sequence[SettingRecord], cells: Sequence[CellResult], objective: Objective
) -> NoRecommendation:
    lowest = min(at.rate_per_s for record in records for at in record.at)
    text = " and ".join(objective.texts)
    return refusal(
        f"no configuration meets {text} at {lowest:,.10g}/s{best_so_far(cells, objective)}",
        "use lower --rates, or a looser objective",
        is_missed=True,
    )


def _doubt(records: Sequence[SettingRecord], best_per_s: float) -> NoRecommendation | None:
    """The first of these configurations that may sustain a higher rate than ``best_per_s``."""
    for record in records:
        possible = record.largest("meets", "unknown")
        if possible is None or possible.rate_per_s <= best_per_s:
            continue
        unknown = next(at for at in record.at if at.state == "unknown")
        return refusal(
            f"the result of {record.server} at {unknown.rate_per_s:,.10g}/s is uncertain: "
            f"{unknown.why}",
            f"use --runs {2 * USUAL_RUNS}, or an idle machine if runs were invalid",
        )
    return None


def _next_best(
    records: Sequence[SettingRecord], confirmed: Mapping[str, AtRate | None], best_per_s: float
) -> str | None:
    others = [
        (at.rate_per_s, record.server)
        for record in records
        if (at := confirmed[record.server]) is not None
    ]
    below = [entry for entry in others if entry[0] < best_per_s]
    return max(below)[1] if below else None


def _leanest_of(
    tied: Sequence[SettingRecord],
    confirmed: Mapping[str, AtRate | None],
    next_best: str | None,
    thresholds: Sequence[Threshold],
) -> RecommendedConfiguration:
    """The leanest of the configurations that sustain the same rate."""
    order = lean_first([(record, at) for record in tied if (at := confirmed[record.server])])
    record, at = order[0]
    quantile = shown_quantile(thresholds)
    others = tuple(other.server for other, _ in order[1:])
    return RecommendedConfiguration(
        server=record.server,
        rate_per_s=at.rate_per_s,
        figure=quantile.figure if quantile is not None else "error_rate",
        estimate=at.centre,
        interval_95=at.interval,
        runs=at.runs,
        disturbed=at.disturbed,
        memory=record.memory,
        runner_up=None if others else next_best,
        tied=as_lean(order),
        min_requests_beyond=at.min_requests_beyond,
        also_meets=others,
        cpu=at.cpu,
    )


def lean_first(entries: Sequence[RecordAtRate]) -> list[RecordAtRate]:
    """Configurations that meet an objective in the order of recommendation: least memory; if nearly
    equal, fewer workers and threads of the same server; then the least CPU time; then the lowest
    quantile."""
    remaining, order = list(entries), list[RecordAtRate]()
    while remaining:
        best = min(_min_cpu(_simplest(remaining)), key=_centre)
        order.append(best)
        remaining.remove(best)
    return order


def _simplest(entries: Sequence[RecordAtRate]) -> list[RecordAtRate]:
    """The configurations that need about the least memory, without those that a smaller size of the
    same server could replace."""
    known = [used for record, _ in entries if (used := record.memory.peak_bytes) is not None]
    limit = LEANER_BY * min(known) if known else math.inf
    lean = [
        (record, at)
        for record, at in entries
        if not known or (record.memory.peak_bytes or math.inf) <= limit
    ]
    return [
        (record, at)
        for record, at in lean
        if not any(other.requested.is_less_than(record.requested) for other, _ in lean)
    ]


def _min_cpu(entries: Sequence[RecordAtRate]) -> list[RecordAtRate]:
    """The configurations that need about the least CPU time; unknown counts as the most."""
    known = [used for _, at in entries if (used := at.cpu.cores_mean) is not None]
    if not known:
        return list(entries)
    limit = LEANER_BY * min(known)
    return [
        entry
        for entry in entries
        if entry[1].cpu.cores_mean is not None and entry[1].cpu.cores_mean <= limit
    ]


def _centre(entry: RecordAtRate) -> float:
    centre = entry[1].centre
    return math.inf if centre is None else centre


def as_lean(order: Sequence[RecordAtRate]) -> tuple[str, ...]:
    """The configurations that are as lean and as simple as the first, and within the noise of its
    quantile."""
    _, best = order[0]
    return tuple(
        record.server
        for record, at in _min_cpu(_simplest(order))
        if at is not best and _reach(at, best)
    )


def _reach(other: AtRate, best: AtRate) -> bool:
    return other.interval is None or best.interval is None or best.interval[1] >= other.interval[0]


def setting_records(cells: Sequence[CellResult], objective: Objective) -> list[SettingRecord]:
    """The judged cells by configuration and rate; if a run was repeated, the valid attempt."""
    settings: dict[str, dict[float, dict[int, CellResult]]] = {}
    for cell in counted_attempts(cells):
        if cell.rate is not None:
            rates = settings.setdefault(cell.id.rpartition("@")[0], {})
            rates.setdefault(cell.rate, {})[cell.run] = cell
    return [_setting_record(server, rates, objective) for server, rates in settings.items()]


def _setting_record(
    server: str, rates: Mapping[float, Mapping[int, CellResult]], objective: Objective
) -> SettingRecord:
    cells = [cell for of_rate in rates.values() for cell in of_rate.values()]
    at = tuple(
        _at_rate(rate, list(of_rate.values()), objective) for rate, of_rate in sorted(rates.items())
    )
    return SettingRecord(server, at, _memory(cells), _requested_counts(cells[0]))


def _at_rate(rate_per_s: float, cells: Sequence[CellResult], objective: Objective) -> AtRate:
    judged = [
        (cell, judgement)
        for cell in cells
        if (judgement := judge_run(cell, objective)).met is not None
    ]
    passed = [cell for cell, judgement in judged if judgement.met]
    state, why = _state([judgement for _, judgement in judged], len(cells))

    all_passed = passed if len(passed) == len(judged) else []
    if state == "meets":
        open_end = _open_end(all_passed, objective.thresholds)
        if open_end is not None:
            state = "unknown"
            figure = open_end.figure
            why = f"{why}, but the 95 % CI of {figure} includes values that miss the objective"

    quantile = shown_quantile(objective.thresholds)
    values = quantiles_ns(all_passed, quantile) if quantile is not None else []
    interval = t_interval(values)
    return AtRate(
        rate_per_s,
        state,
        why,
        interval,
        math.exp(fmean(map(math.log, values))) if interval is not None else None,
        len(judged),
        sum(judgement.disturbance is not None for _, judgement in judged),
        _min_requests_beyond(passed, quantile),
        _cpu(cells),
    )


def _open_end(cells: Sequence[CellResult], thresholds: Sequence[Threshold]) -> Threshold | None:
    """The first quantile whose interval exceeds its threshold although each run is below it."""
    for threshold in thresholds:
        if threshold.figure in QUANTILES:
            interval = t_interval(quantiles_ns(cells, threshold))
            if interval is None or interval[1] > threshold.limit:
                return threshold
    return None


def _min_requests_beyond(cells: Sequence[CellResult], quantile: Threshold | None) -> int | None:
    if quantile is None:
        return None
    share = 1 - float(QUANTILES[quantile.figure])
    scheduled = [cell.outcomes.scheduled for cell in cells if cell.outcomes is not None]
    return min((math.floor(count * share + 1e-9) for count in scheduled), default=None)


def judge_run(cell: CellResult, objective: Objective) -> Judgement:
    """The judgement of one run; a server that failed missed the objective."""
    judgement = objective.judge(cell)
    if judgement.is_too_short:
        # A longer run is not possible, and omitting this one would select for passes.
        return replace(judgement, met=False)
    if cell.failure is None or judgement.met is None:
        return judgement
    return Judgement(False, "the server failed")


def _state(judgements: Sequence[Judgement], planned: int) -> tuple[State, str]:
    """The conclusion from all runs at one rate. A run that missed while it was disturbed does not
    count as a miss."""
    runs = len(judgements)
    missed = [judgement for judgement in judgements if not judgement.met]
    disturbances = [
        judgement.disturbance for judgement in missed if judgement.disturbance is not None
    ]

    if runs < MIN_RUNS:
        return "unknown", f"only {runs} of {planned} runs are conclusive; {MIN_RUNS} are needed"
    if 2 * (len(missed) - len(disturbances)) >= runs:
        return "misses", f"missed in {len(missed)} of {runs} runs"
    if disturbances:
        were = "was" if len(disturbances) == 1 else "were"
        why = f"{len(disturbances)} of these {were} disturbed ({disturbances[-1]})"
        return "unknown", f"missed in {len(missed)} of {runs} runs, but {why}"
    if missed:
        return "unknown", f"met in only {runs - len(missed)} of {runs} runs"
    return "meets", f"met in all {runs} runs"


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval over runs, on logarithms; None with fewer than two runs."""
    if len(values) < 2:
        return None
    logarithms = [math.log(value) for value in values]
    half = t_quantile(0.975, len(values) - 1) * stdev(logarithms) / math.sqrt(len(values))
    return math.exp(fmean(logarithms) - half), math.exp(fmean(logarithms) + half)


def shown_quantile(thresholds: Sequence[Threshold]) -> Threshold | None:
    """The highest quantile, which is the most uncertain: its interval is shown and distinguishes
    configurations."""
    quantiles = [threshold for threshold in thresholds if threshold.figure in QUANTILES]
    return max(quantiles, key=lambda threshold: float(QUANTILES[threshold.figure]), default=None)


def quantiles_ns(cells: Sequence[CellResult], threshold: Threshold) -> list[float]:
    """The known and finite values."""
    quantile = QUANTILES[threshold.figure]
    bounds = [(cell.offered_quantiles_ns or {}).get(quantile) for cell in cells]
    return [bound.high for bound in bounds if bound is not None and bound.high]


def _memory(cells: Sequence[CellResult]) -> MemoryHeadroom:
    peaks = [
        cell.resources.memory_peak_bytes
        for cell in cells
        if cell.resources is not None and cell.resources.memory_peak_bytes is not None
    ]
    return MemoryHeadroom(
        peak_bytes=max(peaks, default=None), limit_bytes=effective_memory_bytes(cells)
    )


def _cpu(cells: Sequence[CellResult]) -> CpuHeadroom:
    used = [
        cell.resources.cpu_cores_mean
        for cell in cells
        if cell.resources is not None and cell.resources.cpu_cores_mean is not None
    ]
    limits = {effective_limit(cell.limits, "cpus") for cell in cells if cell.limits is not None}
    return CpuHeadroom(
        cores_mean=fmean(used) if used else None,
        limit_cores=limits.pop() if len(limits) == 1 else None,
    )


def _requested_counts(cell: CellResult) -> RequestedCounts:
    """The requested counts; unspecified counts are equal, because the budget decided them."""
    size = cell.size or ""
    counts = _COUNTS.match(size)
    assert counts is not None  # every part is optional
    workers, threads = (int(count or 0) for count in counts.group("workers", "threads"))
    of = (cell.server, cell.variant, cell.pinned_version, cell.alias, size[counts.end() :])
    return RequestedCounts(of, workers, threads)


def recommend_capacity(
    servers: Sequence[ServerCapacity],
) -> RecommendedConfiguration | NoRecommendation:
    """A recommendation from the entries of one app in a capacity document: the highest rate,
    if no other server can reach it."""
    for server in servers:
        if server.verdict.status == "invalid" and server.failure is None:
            return refusal(
                f"the search on {server.server} is invalid ({server.verdict.blame})",
                "repeat it on an idle machine",
            )

    found = _found(servers)
    if not found:
        return _without_rate(servers)

    rate_per_s, first = found[0]
    others = [server for server in servers if server is not first]
    return _doubtful_capacity(others, first) or RecommendedConfiguration(
        server=first.server,
        rate_per_s=rate_per_s,
        figure="capacity",
        estimate=rate_per_s,
        interval_95=_closed_interval(first),
        runs=sum(one.rate_per_s is not None and not one.discarded for one in first.trials),
        disturbed=0,
        memory=_memory_at_capacity(first),
        cpu=_cpu_at_capacity(first),
        runner_up=found[1][1].server if len(found) > 1 else None,
        tied=(),
        min_requests_beyond=None,
    )


def _found(servers: Sequence[ServerCapacity]) -> list[tuple[float, ServerCapacity]]:
    """The servers with a rate, the highest first."""
    found = [(one.rate_per_s, one) for one in servers if one.rate_per_s is not None]
    return sorted(found, key=lambda entry: -entry[0])


def _doubtful_capacity(
    others: Sequence[ServerCapacity], first: ServerCapacity
) -> NoRecommendation | None:
    """Why one of the others may sustain as high a rate as the first."""
    for other in others:
        if other.failure is None and is_lower_bound(other):
            return refusal(
                f"{other.server} may have a higher capacity: it missed only in disturbed trials",
                "repeat the search on an idle machine",
            )
        if other.failure is None and _may_reach(other, first):
            return refusal(
                f"the 95 % CIs of {first.server} and {other.server} overlap",
                "use a longer --budget and a smaller --width",
            )
    return None


def _without_rate(servers: Sequence[ServerCapacity]) -> NoRecommendation:
    failures = [server.failure.message for server in servers if server.failure is not None]
    if len(failures) == len(servers):
        return refusal(
            f"the search failed on every server: {failures[0]}", "fix this and repeat the search"
        )
    reached = [(low, server.server) for server in servers if (low := server.bracket[0]) is not None]
    candidate = ""
    if reached:
        low_per_s, best = max(reached)
        candidate = (
            f"; the best so far is {best}, which met it at {low_per_s:,.10g}/s in the search"
        )
    return refusal(
        f"no rate was found for any configuration{candidate}",
        "use a longer --budget",
        is_missed=all(server.bracket[0] is None for server in servers),
    )


def _closed_interval(server: ServerCapacity) -> tuple[float, float] | None:
    low_per_s, high_per_s = server.interval_95 or (None, None)
    return None if low_per_s is None or high_per_s is None else (low_per_s, high_per_s)


def _memory_at_capacity(server: ServerCapacity) -> MemoryHeadroom:
    used = server.at_rate
    if used is None:
        return MemoryHeadroom(peak_bytes=None, limit_bytes=None)
    return MemoryHeadroom(peak_bytes=used.memory_peak_bytes, limit_bytes=used.memory_limit_bytes)


def _cpu_at_capacity(server: ServerCapacity) -> CpuHeadroom | None:
    """The CPU use; the document of a capacity search does not contain the limit."""
    used = server.at_rate
    return CpuHeadroom(cores_mean=used.cpu_cores_mean, limit_cores=None) if used else None


def _may_reach(other: ServerCapacity, first: ServerCapacity) -> bool:
    """Whether the other's interval overlaps that of the first; without an interval, its upper bound
    counts."""
    reach_per_s = other.interval_95[1] if other.interval_95 is not None else other.bracket[1]
    from_per_s = first.interval_95[0] if first.interval_95 is not None else None
    if from_per_s is None:
        from_per_s = first.rate_per_s
    return reach_per_s is None or from_per_s is None or reach_per_s >= from_per_s


def is_lower_bound(server: ServerCapacity) -> bool:
    """Whether the rate of an entry of ``servers`` may be too low because of disturbances."""
    return any(reason.check == LOWER_BOUND for reason in server.verdict.reasons)
