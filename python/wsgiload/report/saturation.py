"""The lowest rate that a server did not sustain, or the rate that would show it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.levels import ranked
from wsgiload.units import NS_PER_S

# Requests wait if their time on the wire exceeds their CPU time by this factor and slack, which
# cover the network and the generator.
MAX_OVER_CPU, SLACK_NS = 2, 1_000_000
# Up to a quarter of the bound, queueing makes requests at most a quarter longer (see ``_bound``).
MIN_OVER_RATE = 4
# A rate is suggested this far beyond the estimated capacity.
BEYOND_CAPACITY = 1.2


def saturation_sentence(summary: Summary, ranking: Sequence[RankingLevel]) -> str:
    """The lowest rate that a server did not sustain, or which rate to try if there is none."""
    rising = [level for level in reversed(ranking) if level.rate is not None]
    for level in rising:
        behind = [entry.label for entry in level.entries if entry.status == "overloaded"]
        if behind:
            are = "is" if len(behind) == 1 else "are"
            return (
                f"{words.join_names(behind)} {are} the first not to sustain the rate, "
                f"at {level.level}."
            )
    if not rising or not ranked(rising[-1]):
        return ""

    top = rising[-1]
    sentence = f"No server saturated at {top.level}."
    bounds = [_bound(entry, top, summary) for entry in ranked(top)]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return sentence  # an unknown bound may be the lowest
    return f"{sentence} {_bound_words(min(known, key=lambda bound: bound.per_s), known)}"


@dataclass(frozen=True, slots=True)
class _Bound:
    """The rate that a server cannot exceed, and why."""

    label: str
    per_s: float
    # Requests at once and the mean time of each, if these are the bound, not CPU time.
    busy: tuple[int, float] | None
    # Whether requests spend most of their time without CPU, such as in a lock or a pool. The true
    # limit may then be far below the bound.
    waits: bool


def _bound_words(least: _Bound, known: Sequence[_Bound]) -> str:
    """The rate of the lowest bound; it is the first to saturate only if no server waits."""
    suggested = _round_up(least.per_s * BEYOND_CAPACITY)
    near = words.format_per_s(_two_digits(least.per_s))
    first = " first," if len(known) > 1 and not any(one.waits for one in known) else ""
    latest = " at the latest" if least.waits else ""
    why = f"CPU use suggests that {least.label}"
    if least.busy is not None:
        at_once, each_ns = least.busy
        each = words.format_duration_ns(each_ns)
        why = f"With {words.plural(at_once, 'request')} at a time, {each} each, {least.label}"
    return f"{why} would saturate{first} near {near}{latest} (try --rates {suggested:g})."


def _bound(entry: RankingEntry, level: RankingLevel, summary: Summary) -> _Bound | None:
    """The tightest of the CPU limit, assuming constant CPU time per request, and the requests
    handled at once. None if CPU time is the only known bound of a server whose requests wait, if
    requests queued, or if the server sustained more than the bound."""
    cells = [cell for cell in summary.cells if cell.id in entry.cell_ids]
    service_ns, used_ns = _service_ns(cells), _cpu_ns(cells)
    cores, limit, rate = entry.cpu_cores_mean, summary.experiment.cpus, level.rate
    if not service_ns or not used_ns or not cores or rate is None or limit is None:
        return None
    # Because of the GIL, a worker runs Python code on one core at a time.
    usable = min(limit, entry.workers) if entry.workers is not None else limit
    cpu_per_s = rate * usable / cores
    waits = service_ns > MAX_OVER_CPU * used_ns + SLACK_NS
    at_once = _requests_at_once(cells)
    busy_per_s = math.inf if at_once is None else at_once * NS_PER_S / service_ns
    # The service time W includes queueing in the server. Without it, the limit would be higher by
    # at most the rate, because an M/M/n queue has n/S <= n/W + rate.
    if at_once is not None and busy_per_s + rate < cpu_per_s:
        bound = _Bound(entry.label, busy_per_s, (at_once, service_ns), waits)
        return bound if busy_per_s >= MIN_OVER_RATE * rate else None
    return None if waits or cpu_per_s <= rate else _Bound(entry.label, cpu_per_s, None, waits)


def _service_ns(cells: Sequence[CellResult]) -> float | None:
    times = (cell.service_time_ns for cell in cells)
    return _median([one.mean for one in times if one is not None])


def _cpu_ns(cells: Sequence[CellResult]) -> float | None:
    return _median([one.cpu_ns_per_request for cell in cells if (one := cell.resources)])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _requests_at_once(cells: Sequence[CellResult]) -> int | None:
    """The measured concurrency, or workers times threads; None if unknown, as for greenlets."""
    for cell in cells:
        if cell.concurrency is not None and cell.concurrency.requests_at_once is not None:
            return cell.concurrency.requests_at_once
        settings = cell.settings
        if settings is not None and settings.workers and settings.threads:
            return settings.workers * settings.threads
    return None


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _round_up(value: float) -> float:
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step
