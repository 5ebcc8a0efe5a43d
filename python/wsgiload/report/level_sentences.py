"""The comparison of the servers at one load level, in one or two sentences, and the lowest rate
that a server did not sustain or that would show it. Pure; decides nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT
from wsgiload.analysis.ranking import are_apart
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import ComparedFigure, Comparison, Race
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.over_runs import margin_words
from wsgiload.report.question import NOBODY, outcome_words, ranked
from wsgiload.report.recommendation import aim, figure_words, leanest, size_words
from wsgiload.units import NS_PER_S

# At most this many other figures in which another server is better are mentioned.
MAX_BETTER = 2


def alone(best: RankingEntry, main: RankingLevel) -> str:
    """``waitress (4 threads) sustains 400/s (p99 5.1 ms, 1 run).``"""
    # Nothing is known about servers that failed or have no valid result.
    is_only = any(entry.status == "overloaded" for entry in main.entries)
    sustains = "is the only server that sustains" if is_only else "sustains"
    figure = "" if main.rate is None else f"p99 {figure_words(best, main)}, "
    runs = words.plural(len(best.cell_ids), "run")
    without = " without errors" if _with_errors(main) else ""
    return f"{best.label}{size_words(best)} {sustains} {main.level}{without} ({figure}{runs})."


def _with_errors(level: RankingLevel) -> list[RankingEntry]:
    return [entry for entry in level.entries if entry.status == "errors"]


def with_errors(level: RankingLevel) -> str:
    """``errfast is not ranked: 0.8 % of its requests failed.``"""
    return " ".join(
        f"{entry.label} is not ranked: {words.format_ratio(entry.error_ratio)} of its requests "
        "failed."
        for entry in _with_errors(level)
    )


def quick_look(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison] = (),
) -> str:
    """The result of runs that do not decide."""
    count = len(best.cell_ids)
    runs = words.plural(count, "run")
    lead = (
        f"In {runs}, {best.label}{size_words(best)} had {aim(main)} at {main.level}, "
        f"{figure_words(best, main)}"
    )
    tied = [entry for entry in contenders if entry.label in best.tied_with]
    if tied:
        differences = "the difference from" if len(tied) == 1 else "the differences from"
        verb = "is" if len(tied) == 1 else "are"
        names = words.join_names([entry.label for entry in tied])
        return f"{lead}; {differences} {names} {verb} within the noise.{_lean_words(best, tied)}"
    if best.undecided_with:
        names = words.join_names(list(best.undecided_with))
        aimed = "higher" if main.rate is None else "lower"
        why = _open_words(best, main, comparisons)
        return f"{lead}. Whether this is {aimed} than that of {names} is not decided: {why}."
    verb = "is" if count == 1 else "are"
    return (
        f"{lead}. {_lead_words(best, main, contenders[1:])}, but {runs} {verb} too few to estimate "
        "the variation between runs."
    )


def _open_words(best: RankingEntry, main: RankingLevel, comparisons: Sequence[Comparison]) -> str:
    """Why the order of servers is not known."""
    compared = (
        comparison_of(best.label, name, main, figure_of_level(main), comparisons)
        for name in best.undecided_with
    )
    margins = [one.margin for one in compared if one is not None and one.margin is not None]
    if margins:
        return f"they may differ by up to {margin_words(max(margins))}"
    return "not all confidence intervals of p99 are bounded, and p50 and p90 do not differ clearly"


def _lead_words(best: RankingEntry, main: RankingLevel, others: Sequence[RankingEntry]) -> str:
    """What exceeds the noise: the figure itself, or only a lower quantile."""
    is_clear = main.rate is None or all(
        are_apart(best.interval_ns, other.interval_ns) for other in others
    )
    lead = "Its lead" if is_clear else "Its lead in p50 or p90"
    return f"{lead} exceeds the noise within a run"


def winner(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str:
    """The best server, and by how much it leads."""
    second = contenders[1]
    factor = _factor_words(best, second, main, comparisons)
    runs = words.plural(len(best.cell_ids), "run")
    figure = figure_of_level(main)
    compared = comparison_of(best.label, second.label, main, figure, comparisons)
    return (
        f"{best.label}{size_words(best)} has {aim(main)} at {main.level}: "
        f"{figure_words(best, main)}{factor} ({runs} each)."
        f"{_better_elsewhere(best, [second], [compared])}"
    )


def _factor_words(
    best: RankingEntry,
    second: RankingEntry,
    main: RankingLevel,
    comparisons: Sequence[Comparison],
) -> str:
    """``; waitress's p99 is 1.31× [1.22, 1.41] this value``."""
    figure, direction = ("goodput", "higher than") if main.rate is None else ("p99", "lower than")
    compared = comparison_of(best.label, second.label, main, figure, comparisons)
    if compared is None or compared.factor is None or compared.interval_95 is None:
        rival = second.label if main.rate is None else f"{second.label}'s"
        return f", {direction} {rival}"
    factor, ends = compared.factor, compared.interval_95
    # The comparison's factor is the first over the second server, in the order of the plan.
    is_inverted = (compared.first == best.label) == (figure == "p99")
    if is_inverted:
        factor, ends = 1 / factor, (1 / ends[1], 1 / ends[0])
    times = f"{factor:.2f}× [{ends[0]:.2f}, {ends[1]:.2f}]"
    if main.rate is None:
        return f", {times} the goodput of {second.label}"
    return f"; {second.label}'s p99 is {times} this value"


def tie(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str:
    """The tied servers, and what may decide between them."""
    tied = [entry for entry in contenders if entry.label in best.tied_with]
    figure = figure_of_level(main)
    compared = [comparison_of(best.label, one.label, main, figure, comparisons) for one in tied]
    margins = [one.margin for one in compared if one is not None and one.margin is not None]
    margin = f"they differ by at most {margin_words(max(margins))}" if margins else ""
    names = words.join_names([f"{best.label}{size_words(best)}", *(one.label for one in tied)])
    return (
        f"{names} are tied for {aim(main)} at {main.level}: {best.label} has "
        f"{figure_words(best, main)}, and {margin or 'the difference is not significant'}."
        f"{_better_elsewhere(best, tied, compared)}{_lean_words(best, tied)}"
    )


def raced(
    race: Race,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
    margin: float,
) -> str:
    """The outcome of a race, with how far the others are behind."""
    remaining = [entry for entry in contenders if entry.label in race.contenders]
    if not remaining:
        return NOBODY
    leader, *rivals = remaining
    what, lead = f"{aim(main)} at {main.level}", figure_words(leader, main)
    compared = [
        comparison_of(leader.label, one.label, main, figure_of_level(main), comparisons)
        for one in rivals
    ]
    elsewhere = _better_elsewhere(leader, rivals, compared)
    lean = _lean_words(leader, rivals) if race.outcome == "ties" else ""
    outcome = outcome_words(race, f"{leader.label}{size_words(leader)}", what, lead, margin)
    return f"{outcome}{elsewhere}{lean}"


def figure_of_level(level: RankingLevel) -> str:
    """The figure that ranks this level."""
    return "goodput" if level.rate is None else "p99"


def _better_elsewhere(
    best: RankingEntry, rivals: Sequence[RankingEntry], compared: Sequence[Comparison | None]
) -> str:
    """Rivals with other figures that are better than the first server's, and which may therefore be
    preferable: `` waitress's p50 is 0.71× [0.68, 0.74] gthread's.``"""
    sentences = []
    for rival, comparison in zip(rivals, compared, strict=True):
        for one in comparison.others if comparison is not None else ():
            assert comparison is not None
            times = _times_of(one, of_first=comparison.first == rival.label)
            is_better = (times[0] > 1) == (one.figure == GOODPUT)
            if one.conclusion == "different" and is_better:
                factor, low, high = times
                sentences.append(
                    f" {rival.label}'s {one.figure} is {factor:.2f}× [{low:.2f}, {high:.2f}] "
                    f"{best.label}'s."
                )
    return "".join(sentences[:MAX_BETTER])


def _times_of(figure: ComparedFigure, *, of_first: bool) -> tuple[float, float, float]:
    """The factor of the first over the second server, or its inverse, with its interval."""
    low, high = figure.interval_95
    if of_first:
        return figure.factor, low, high
    return 1 / figure.factor, 1 / high, 1 / low


def _lean_words(best: RankingEntry, tied: Sequence[RankingEntry]) -> str:
    """Names the server that the command line starts, if it is not the best-ranked one."""
    lean = leanest([best, *tied])
    if lean is best:
        return ""
    return f" {lean.label} needs less memory; the command below starts it."


def comparison_of(
    first: str, second: str, level: RankingLevel, figure: str, comparisons: Sequence[Comparison]
) -> Comparison | None:
    """The comparison of two servers at this level, in either order; None without one."""
    for one in comparisons:
        is_here = (one.rate, one.connections, one.app) == (level.rate, level.connections, level.app)
        if is_here and one.figure == figure and {one.first, one.second} == {first, second}:
            return one
    return None


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
