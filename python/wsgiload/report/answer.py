"""The experiment's conclusion as text: the first thing a user reads.

Pure, from a summary. All decisions are made in ``analysis``; this names the best server, its ties,
and what could change that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import shorten
from typing import Literal

import msgspec

from wsgiload.analysis.aggregate import GOODPUT, server_of
from wsgiload.analysis.alarms import alarms_over_cells
from wsgiload.analysis.attempts import standing_attempts
from wsgiload.analysis.effective_limit import held_limit
from wsgiload.analysis.races import after_qualifying, race_at, ranked_by_race
from wsgiload.analysis.ranking import level_words, rank
from wsgiload.analysis.recommend import LEANER_BY
from wsgiload.documents.summary import (
    Answer,
    CellFailure,
    CellResult,
    ComparedFigure,
    Comparison,
    Race,
    RankingEntry,
    RankingLevel,
    Recommendation,
    ServerSettings,
    Summary,
)
from wsgiload.experiment.estimate import runs_s
from wsgiload.report import words
from wsgiload.report.bottlenecks import bottleneck_lines
from wsgiload.report.cells import HEADLINE
from wsgiload.report.command_line import to_paste
from wsgiload.report.over_runs import margin_words, typical_deviation
from wsgiload.report.races import (
    NOBODY,
    STATUSES,
    dropped_words,
    objective_words,
    open_words,
    race_needs,
    tie_words,
)
from wsgiload.report.recommendation import recommendation_sentences
from wsgiload.statistics.effect import FEWEST_RUNS, MOST_RUNS, PLANNED_FACTOR, runs_needed

Status = Literal["decided", "tie", "undecided"]

MOST_CAUTIONS = 5
# A smaller saving decides nothing between servers that are equally fast.
LEAST_SAVING_BYTES = 16 * 2**20
# Of several figures in which another server is better.
MOST_BETTER = 2
# A disturbance is worth a line from such a difference on.
MATTERS_BY, MATTERS_FROM_NS = 1.1, 100_000
MOST_CAUSE_CHARACTERS = 160
MOST_FIX_CHARACTERS = 400
# Poisson arrivals may be fewer than rate times duration.
SPARE = 1.1
# A rate is suggested this far beyond the estimated capacity.
BEYOND_CAPACITY = 1.2


def with_answer(summary: Summary) -> Summary:
    """The summary with its answer."""
    return msgspec.structs.replace(summary, answer=answer_of(summary))


def answer_of(summary: Summary) -> Answer:
    """``answer`` of summary.json; without a ranked server it says what is missing."""
    standing = after_qualifying(summary.cells, summary.experiment)
    ranking = tuple(
        level if (race := race_at(summary.races, level)) is None else ranked_by_race(level, race)
        for level in rank(standing, summary.comparisons or ())
    )
    decided = [one for one in summary.recommendations or () if one.recommended is not None]
    if summary.recommendations:
        return _of_objective(summary, ranking, summary.recommendations, decided)
    of_apps = [_of_app(summary, levels) for levels in by_app(ranking)]
    if len(of_apps) == 1:
        return of_apps[0]
    return _of_several_apps(summary, ranking, of_apps)


def by_app(ranking: Sequence[RankingLevel]) -> list[tuple[RankingLevel, ...]]:
    """The levels of each app; apps are never ranked against each other."""
    apps = dict.fromkeys(level.app for level in ranking)
    return [tuple(level for level in ranking if level.app == app) for app in apps] or [()]


def _of_app(summary: Summary, levels: tuple[RankingLevel, ...]) -> Answer:
    main = main_level(levels)
    if main is None:
        return _nothing_ranked(summary, levels)
    return _of_level(summary, levels, main)


def _of_several_apps(
    summary: Summary, ranking: tuple[RankingLevel, ...], answers: Sequence[Answer]
) -> Answer:
    """One answer for each app, side by side."""
    order: tuple[Status, ...] = ("undecided", "tie", "decided")
    needs = dict.fromkeys(one.needs for one in answers if one.needs is not None)
    return Answer(
        question=f"Which server is best for each of {len(answers)} apps{limits_words(summary)}?",
        status=min((one.status for one in answers), key=order.index),
        sentence=" ".join(f"{one.ranking[0].app}: {one.sentence}" for one in answers),
        command_line=None,
        needs="; ".join(needs) or None,
        cautions=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def main_level(ranking: Sequence[RankingLevel]) -> RankingLevel | None:
    """The highest level that any server sustained."""
    with_ranked = (level for level in ranking if ranked(level))
    return next(with_ranked, None)


def ranked(level: RankingLevel) -> list[RankingEntry]:
    """The servers that sustained the level in a valid measurement, the best first."""
    return [entry for entry in level.entries if entry.status == "ranked"]


# --- the question


def question_of(summary: Summary, level: RankingLevel | None) -> str:
    """What the experiment asks."""
    experiment = summary.experiment
    inside = limits_words(summary)
    if experiment.slo:
        objective = " and ".join(experiment.slo)
        return f"Which server, with which settings, meets {objective} at the highest rate{inside}?"
    where = f" at {level.level}" if level is not None else ""
    count = _competitors(summary, level) if level is not None else 0
    figure = "the most requests per second" if level and level.rate is None else "the lowest p99"
    if count == 1 and level is not None:
        return f"How does {level.entries[0].label} perform{where}{inside}?"
    which = f"Which of {count} servers" if count else "Which server"
    return f"{which} has {figure}{where}{inside}?"


def _competitors(summary: Summary, level: RankingLevel) -> int:
    """Also those that did not qualify for a race, and so are in no ranking."""
    race = race_at(summary.races, level)
    if race is None:
        return len({entry.label for entry in level.entries})
    return len(race.contenders) + len(race.dropped)


def limits_words(summary: Summary) -> str:
    """ " with 2 CPUs and 512 MiB": only limits that were enforced; a requested limit alone does not
    qualify a result."""
    cpus, memory = _held(summary.cells, "cpus"), _held(summary.cells, "memory_bytes")
    limits = [f"{cpus:g} CPU{'' if cpus == 1 else 's'}"] if cpus is not None else []
    limits += [words.format_bytes(memory)] if memory is not None else []
    return f" with {words.join_words(limits)}" if limits else ""


def _held(cells: Sequence[CellResult], name: Literal["cpus", "memory_bytes"]) -> float | None:
    """A limit that was enforced in every cell that was measured."""
    held = {held_limit(cell.limits, name) for cell in cells if cell.limits is not None}
    return held.pop() if len(held) == 1 else None


# --- without an objective: the best at the highest level that any server sustained


def _of_level(summary: Summary, ranking: tuple[RankingLevel, ...], main: RankingLevel) -> Answer:
    contenders = ranked(main)
    best = contenders[0]
    can_infer = len(best.cell_ids) >= FEWEST_RUNS
    race = race_at(summary.races, main)
    needs = None
    status: Status
    if len(contenders) == 1:
        status, sentence = "decided", _alone(best, main)
    elif race is not None:
        status = STATUSES[race.outcome]
        sentence = _raced(race, main, contenders, summary.comparisons or ())
        needs = race_needs(race, summary.experiment) if status == "undecided" else None
    elif not can_infer:
        status, sentence = "undecided", _quick_look(best, main, contenders)
        needs = _needs(summary)
    elif best.tied_with:
        status, sentence = "tie", _tie(best, main, contenders, summary.comparisons or ())
        needs = _separates(best, main, contenders, summary.comparisons or ())
    else:
        status, sentence = "decided", _winner(best, main, contenders, summary.comparisons or ())

    is_leader = race is not None and status == "undecided"
    alike = {best.label} if is_leader else _and_ties(best)
    recommended = leanest([entry for entry in contenders if entry.label in alike])
    saturation = saturation_sentence(summary, ranking)
    return Answer(
        question=question_of(summary, main),
        status=status,
        sentence=" ".join(part for part in (sentence, saturation) if part),
        command_line=command_line(summary.cells, recommended),
        needs=needs,
        cautions=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _raced(
    race: Race,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str:
    left = [entry for entry in contenders if entry.label in race.contenders]
    if not left:
        return NOBODY
    names = [entry.label for entry in left]
    aim, lead = f"{_aim(main)} at {main.level}", figure_words(left[0], main)
    if race.outcome == "winner":
        ending = _winner(left[0], main, contenders, comparisons)
    elif race.outcome == "ties" and len(left) > 1:
        figure = "goodput" if main.rate is None else "p99"
        found = [_comparison(names[0], name, main, figure, comparisons) for name in names[1:]]
        elsewhere = _better_elsewhere(left[0], left[1:], found)
        lean = _lean_words(left[0], left[1:])
        ending = f"{tie_words(names, race.margin, aim, lead)}{elsewhere}{lean}"
    else:
        ending = open_words(names, aim, lead)
    return " ".join(part for part in (ending, dropped_words(race.dropped)) if part)


def _and_ties(entry: RankingEntry) -> set[str]:
    return {entry.label, *entry.tied_with}


def leanest(entries: Sequence[RankingEntry]) -> RankingEntry:
    """Among ties the one with the least memory; if the difference does not matter, the
    better-ranked one."""
    best = entries[0]
    for entry in entries[1:]:
        memory, least = entry.memory_peak_bytes, best.memory_peak_bytes
        if not memory or not least:
            continue
        if memory * LEANER_BY < least and least - memory >= LEAST_SAVING_BYTES:
            best = entry
    return best


def figure_words(entry: RankingEntry, level: RankingLevel) -> str:
    """``0.24 ms [0.22 ms, 0.28 ms]``, or a goodput."""
    if level.rate is None:
        return words.format_per_s(entry.goodput_per_s)
    return p99_words(entry)


def p99_words(entry: RankingEntry) -> str:
    """``0.24 ms [0.22 ms, 0.28 ms]``, or ``≈ 0.24 ms``."""
    value = words.rough(words.format_duration_ns(entry.value_ns), is_rough=entry.is_rough)
    return f"{value}{interval_words(entry)}"


def interval_words(entry: RankingEntry) -> str:
    """`` [0.22 ms, 0.28 ms]``, or nothing."""
    if entry.interval_ns is None:
        return ""
    low, high = entry.interval_ns
    upper = "unbounded" if high is None else words.format_duration_ns(high)
    return f" [{words.format_duration_ns(low)}, {upper}]"


def size_words(entry: RankingEntry) -> str:
    """`` (2 workers, 4 threads)``, if set."""
    sizes = [words.plural(entry.workers, "worker")] if entry.workers is not None else []
    sizes += [words.plural(entry.threads, "thread")] if entry.threads is not None else []
    return f" ({', '.join(sizes)})" if sizes else ""


def _aim(level: RankingLevel) -> str:
    return "the most requests per second" if level.rate is None else "the lowest p99"


def _alone(best: RankingEntry, main: RankingLevel) -> str:
    # A server that failed, or could not be judged, says nothing about what it sustains.
    only = "Only " if any(entry.status == "overloaded" for entry in main.entries) else ""
    figure = "" if main.rate is None else f" with p99 {figure_words(best, main)}"
    runs = words.plural(len(best.cell_ids), "run")
    return f"{only}{best.label}{size_words(best)} sustains {main.level}{figure} ({runs})."


def _quick_look(best: RankingEntry, main: RankingLevel, contenders: Sequence[RankingEntry]) -> str:
    runs = words.plural(len(best.cell_ids), "run")
    lead = (
        f"In {runs}, {best.label}{size_words(best)} had {_aim(main)} at {main.level}, "
        f"{figure_words(best, main)}"
    )
    tied = [entry for entry in contenders if entry.label in best.tied_with]
    if tied:
        differences = "the difference from" if len(tied) == 1 else "the differences from"
        verb = "is" if len(tied) == 1 else "are"
        names = words.join_names([entry.label for entry in tied])
        return f"{lead}; {differences} {names} {verb} within the noise.{_lean_words(best, tied)}"
    verb = "is" if len(best.cell_ids) == 1 else "are"
    return (
        f"{lead}. Its lead exceeds the noise within a run, but {runs} {verb} too few to estimate "
        "the variation between runs."
    )


def _winner(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str:
    second = contenders[1]
    factor = _factor_words(best, second, main, comparisons)
    runs = words.plural(len(best.cell_ids), "run")
    figure = "goodput" if main.rate is None else "p99"
    found = _comparison(best.label, second.label, main, figure, comparisons)
    return (
        f"{best.label}{size_words(best)} has {_aim(main)} at {main.level}: "
        f"{figure_words(best, main)}{factor} ({runs} each)."
        f"{_better_elsewhere(best, [second], [found])}"
    )


def _factor_words(
    best: RankingEntry,
    second: RankingEntry,
    main: RankingLevel,
    comparisons: Sequence[Comparison],
) -> str:
    """``; waitress's p99 is 1.31× [1.22, 1.41] this value``."""
    figure, direction = ("goodput", "more than") if main.rate is None else ("p99", "lower than")
    found = _comparison(best.label, second.label, main, figure, comparisons)
    if found is None or found.factor is None or found.interval_95 is None:
        rival = second.label if main.rate is None else f"{second.label}'s"
        return f", {direction} {rival}"
    factor, ends = found.factor, found.interval_95
    # The comparison is of the first over the second, in the order of the plan.
    is_inverted = (found.first == best.label) == (figure == "p99")
    if is_inverted:
        factor, ends = 1 / factor, (1 / ends[1], 1 / ends[0])
    times = f"{factor:.2f}× [{ends[0]:.2f}, {ends[1]:.2f}]"
    if main.rate is None:
        return f", {times} the goodput of {second.label}"
    return f"; {second.label}'s p99 is {times} this value"


def _tie(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str:
    tied = [entry for entry in contenders if entry.label in best.tied_with]
    figure = "goodput" if main.rate is None else "p99"
    found = [_comparison(best.label, one.label, main, figure, comparisons) for one in tied]
    margins = [one.margin for one in found if one is not None and one.margin is not None]
    margin = f"they differ by at most {margin_words(max(margins))}" if margins else ""
    names = words.join_names([f"{best.label}{size_words(best)}", *(one.label for one in tied)])
    return (
        f"{names} are tied for {_aim(main)} at {main.level}: {best.label} has "
        f"{figure_words(best, main)}, and {margin or 'the difference is not significant'}."
        f"{_better_elsewhere(best, tied, found)}{_lean_words(best, tied)}"
    )


def _separates(
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
    comparisons: Sequence[Comparison],
) -> str | None:
    """The runs that would find a ratio of 1.3, given how these vary; None where it is excluded, or
    would take too many."""
    figure = "goodput" if main.rate is None else "p99"
    found = [
        one
        for name in best.tied_with
        if (one := _comparison(best.label, name, main, figure, comparisons)) is not None
        and one.margin is not None
    ]
    margins = [one.margin for one in found if one.margin is not None]
    if not margins or max(margins) < PLANNED_FACTOR - 1:
        return None
    runs = runs_needed(math.comb(len(contenders), 2), typical_deviation(found))
    made = max(one.rounds for one in found)
    if not made < runs < MOST_RUNS:
        return None
    return f"use --runs {runs} to find a ratio of {PLANNED_FACTOR:g}, given how these runs vary"


def _better_elsewhere(
    best: RankingEntry, rivals: Sequence[RankingEntry], found: Sequence[Comparison | None]
) -> str:
    """A rival whose other figures are better than those of the first, which may then be the one to
    choose: `` waitress's p50 is 0.71× [0.68, 0.74] gthread's.``"""
    sentences = []
    for rival, comparison in zip(rivals, found, strict=True):
        for one in comparison.others if comparison is not None else ():
            assert comparison is not None
            times = _times_of(one, of_first=comparison.first == rival.label)
            is_better = (times[0] > 1) == (one.figure == GOODPUT)
            if one.finding == "different" and is_better:
                factor, low, high = times
                sentences.append(
                    f" {rival.label}'s {one.figure} is {factor:.2f}× [{low:.2f}, {high:.2f}] "
                    f"{best.label}'s."
                )
    return "".join(sentences[:MOST_BETTER])


def _times_of(figure: ComparedFigure, *, of_first: bool) -> tuple[float, float, float]:
    """The factor with its interval, of the first over the second server or the other way round."""
    low, high = figure.interval_95
    if of_first:
        return figure.factor, low, high
    return 1 / figure.factor, 1 / high, 1 / low


def _lean_words(best: RankingEntry, tied: Sequence[RankingEntry]) -> str:
    """Names the server whose command line follows, if it is not the best-ranked."""
    lean = leanest([best, *tied])
    if lean is best:
        return ""
    return f" {lean.label} uses the least memory of these; the command below starts it."


def _comparison(
    first: str, second: str, level: RankingLevel, figure: str, comparisons: Sequence[Comparison]
) -> Comparison | None:
    for one in comparisons:
        is_here = (one.rate, one.connections, one.app) == (level.rate, level.connections, level.app)
        if is_here and one.figure == figure and {one.first, one.second} == {first, second}:
            return one
    return None


def _needs(summary: Summary) -> str:
    """The runs and the time that were named before the first trial."""
    experiment = summary.experiment
    apps = {server_of(cell): cell.app for cell in summary.cells}
    of_app = Counter(apps.get(server) for server in experiment.servers)
    runs = runs_needed(max((math.comb(count, 2) for count in of_app.values()), default=0))
    span = words.format_span(runs_s(experiment, len(experiment.servers), runs))
    return f"add --compare ({runs} runs per server, about {span})"


# --- with an objective


def _of_objective(
    summary: Summary,
    ranking: tuple[RankingLevel, ...],
    entries: Sequence[Recommendation],
    decided: Sequence[Recommendation],
) -> Answer:
    needs = [found.needs for one in entries if (found := one.refused or one.recommended)]
    open_needs = list(dict.fromkeys(need for need in needs if need is not None))
    has_ties = any(one.recommended is not None and one.recommended.tied for one in entries)
    status: Status = "undecided" if open_needs else "tie" if has_ties else "decided"
    label = decided[0].recommended.server if decided and decided[0].recommended else None
    entry = next((one for level in ranking for one in level.entries if one.label == label), None)
    return Answer(
        question=question_of(summary, main_level(ranking)),
        status=status,
        sentence=" ".join([*recommendation_sentences(entries), *_qualified(summary)]),
        command_line=command_line(summary.cells, entry) if entry is not None else None,
        needs="; ".join(open_needs) or None,
        cautions=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _qualified(summary: Summary) -> list[str]:
    """How the other settings of a race dropped out, at the rate that decided."""
    if summary.experiment.qualifying is None:
        return []
    decisive = [race for race in summary.races or () if race.outcome != "failed"]
    text = objective_words(decisive[0]) if len(decisive) == 1 else ""
    return [text] if text else []


def _nothing_ranked(summary: Summary, ranking: tuple[RankingLevel, ...]) -> Answer:
    counts = _counts(ranking[-1].entries if ranking else ())
    sentence = (
        f"No server sustained any tested load: {counts}." if counts else "Nothing was measured."
    )
    return Answer(
        question=question_of(summary, ranking[0] if ranking else None),
        status="undecided",
        sentence=sentence,
        command_line=None,
        needs="use lower --rates; the reasons are listed below" if ranking else None,
        cautions=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _counts(entries: Iterable[RankingEntry]) -> str:
    names = {
        "overloaded": "saturated",
        "unjudged": "without a valid result",
        "failed": "failed",
    }
    statuses = [entry.status for entry in entries]
    found = [
        f"{statuses.count(status)} {text}" for status, text in names.items() if status in statuses
    ]
    return ", ".join(found)


# --- saturation


def saturation_sentence(summary: Summary, ranking: Sequence[RankingLevel]) -> str:
    """The rate at which the first server saturates, or which rate to try if none did."""
    rising = [level for level in reversed(ranking) if level.rate is not None]
    for level in rising:
        behind = [entry.label for entry in level.entries if entry.status == "overloaded"]
        if behind:
            verb = "saturates" if len(behind) == 1 else "saturate"
            return f"{words.join_names(behind)} {verb} first, at {level.level}."
    if not rising or not ranked(rising[-1]):
        return ""

    top = rising[-1]
    estimates = [_capacity_per_s(entry, top, summary) for entry in ranked(top)]
    known = [
        (capacity, entry.label)
        for capacity, entry in zip(estimates, ranked(top), strict=True)
        if capacity is not None
    ]
    if not known:
        return f"No server saturates at {top.level}."
    capacity, label = min(known)
    suggested = _round_up(capacity * BEYOND_CAPACITY)
    return (
        f"No server saturates at {top.level}; extrapolating from CPU use, {label} would "
        f"saturate first, near {words.format_per_s(_two_digits(capacity))} "
        f"(try --rates {suggested:g})."
    )


def _capacity_per_s(entry: RankingEntry, level: RankingLevel, summary: Summary) -> float | None:
    """The rate at which its CPU limit is used up, assuming constant CPU time per request."""
    cores, limit = entry.cpu_cores_mean, summary.experiment.cpus
    if not cores or level.rate is None or limit is None:
        return None
    # A worker of CPython runs Python code on one core at a time.
    usable = min(limit, entry.workers) if entry.workers is not None else limit
    return level.rate * usable / cores


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _round_up(value: float) -> float:
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step


# --- what could change the answer


def cautions(summary: Summary, ranking: Sequence[RankingLevel]) -> list[str]:
    """At most five lines, the most important first."""
    cells = after_qualifying(summary.cells, summary.experiment)
    lines = [
        *_failed_early(summary),
        *_not_ranked(ranking, cells),
        *bottleneck_lines(cells),
        *_rough(ranking),
        *_upper_bounds(cells),
        *_without_disturbance(standing_attempts(cells)),
        *_reasons(cells),
        *_not_checked(cells),
    ]
    over_cells = [alarm.message for alarm in alarms_over_cells(cells)]
    lines += [message for message in over_cells if message not in lines]
    if len(lines) > MOST_CAUTIONS:
        left = len(lines) - MOST_CAUTIONS + 1
        lines = [*lines[: MOST_CAUTIONS - 1], f"{left} more; --verbose shows all"]
    return lines


def _failed_early(summary: Summary) -> list[str]:
    """Servers that could not run in their short trial, and so are in no table."""
    shown = {cell.id for cell in after_qualifying(summary.cells, summary.experiment)}
    by_cause: dict[str, dict[str, None]] = {}
    for cell in summary.cells:
        if cell.failure is not None and cell.id not in shown:
            by_cause.setdefault(_first_line(cell.failure), {})[server_of(cell)] = None
    return [f"failed: {words.join_names(list(of))}: {cause}" for cause, of in by_cause.items()]


def _not_ranked(ranking: Sequence[RankingLevel], cells: Sequence[CellResult]) -> list[str]:
    """Servers that failed, with the cause, and servers without a valid measurement."""
    failed: dict[tuple[str, str], list[str]] = {}
    unjudged: dict[str, list[str]] = {}
    for level in ranking:
        for entry in level.entries:
            if entry.status == "failed":
                cause = _cause(entry, level, cells)
                failed.setdefault((cause, entry.label), []).append(level.level)
            elif entry.status == "unjudged":
                unjudged.setdefault(entry.label, []).append(level.level)

    by_cause: dict[str, list[str]] = {}
    for (cause, label), levels in failed.items():
        by_cause.setdefault(cause, []).append(_at(label, levels, ranking))
    lines = [f"failed: {words.join_names(labels)}: {cause}" for cause, labels in by_cause.items()]
    if unjudged:
        names = words.join_names(
            [_at(label, levels, ranking) for label, levels in unjudged.items()]
        )
        lines.append(
            f"no valid result (generator or host disturbed): {names}; repeat on a quiet host"
        )
    return lines


def _at(label: str, levels: Sequence[str], ranking: Sequence[RankingLevel]) -> str:
    """The server, and the levels unless they are all."""
    return label if len(levels) == len(ranking) else f"{label} at {' and '.join(reversed(levels))}"


def _cause(entry: RankingEntry, level: RankingLevel, cells: Sequence[CellResult]) -> str:
    """Why a server gave no result at this level, in one line."""
    here = [
        cell
        for cell in cells
        if server_of(cell) == entry.label
        and (cell.rate, cell.connections, cell.app) == (level.rate, level.connections, level.app)
    ]
    for cell in here:
        if cell.failure is not None:
            return _first_line(cell.failure).removeprefix(f"{entry.label}: ")
    for cell in here:
        if cell.outcomes is not None:
            kinds = words.failures_by_kind(cell.outcomes).items()
            counts = ", ".join(f"{kind} {words.format_count(count)}" for kind, count in kinds)
            return f"no correct response ({counts})"
    return words.NOT_MEASURED


def _first_line(failure: CellFailure) -> str:
    lines = failure.message.strip().splitlines() or [failure.step]
    return _with_whole_fix(lines[0])


def _with_whole_fix(message: str) -> str:
    """A message whose cause is cut, and never the fix that is to be pasted."""
    cause, _, fix = message.rpartition("; ")
    if not cause or len(fix) > MOST_FIX_CHARACTERS:
        return shorten(message, MOST_CAUSE_CHARACTERS, placeholder=" …")
    return f"{shorten(cause, MOST_CAUSE_CHARACTERS, placeholder=' …')}; {fix}"


def _rough(ranking: Sequence[RankingLevel]) -> list[str]:
    """Which p99 rests on few requests, and the duration that would change that."""
    rough = [
        level
        for level in ranking
        if level.rate is not None and any(entry.is_rough for entry in ranked(level))
    ]
    rates = [level.rate for level in rough if level.rate]
    if not rates:
        return []
    where = words.join_words([level.level for level in reversed(rough)])
    duration_s = math.ceil(SPARE * words.fewest_requests(HEADLINE) / min(rates))
    return [
        f"p99 at {where} is rough (≈): it {words.needed_requests(HEADLINE)} per run; "
        f"use --duration {duration_s}s"
    ]


def _upper_bounds(cells: Sequence[CellResult]) -> list[str]:
    bound = [
        cell
        for cell in cells
        if (budget := cell.error_budget_ns.get("0.99")) is not None
        and budget.standing == "upper_bound"
    ]
    if not bound:
        return []
    added = max(
        cell.error_budget_ns["0.99"].generator[1] - cell.error_budget_ns["0.99"].generator[0]
        for cell in bound
    )
    count = words.plural(len(bound), "cell")
    return [
        f"p99 of {count} is an upper bound: the generator's delay may account for up to "
        f"{words.format_duration_ns(added)}"
    ]


def _without_disturbance(cells: Sequence[CellResult]) -> list[str]:
    """The p99 that other processes changed the most, and what it is without that time."""
    found = [
        (budget.value / budget.undisturbed, budget, cell)
        for cell in cells
        if (budget := cell.error_budget_ns.get("0.99")) is not None
        and budget.undisturbed
        and budget.value > MATTERS_BY * budget.undisturbed
        and budget.value - budget.undisturbed > MATTERS_FROM_NS
    ]
    if not found:
        return []
    _, budget, cell = max(found, key=lambda entry: entry[0])
    where = level_words(cell.rate, cell.connections)
    return [
        f"the host was disturbed in {words.plural(len(found), 'cell')}; without those seconds, "
        f"p99 of {server_of(cell)} at {where} is {words.format_duration_ns(budget.undisturbed)}, "
        f"not {words.format_duration_ns(budget.value)}"
    ]


_ABOUT_SERVERS = {
    "no-keepalive": "no keep-alive, so every request opens a new connection",
    "nagle-delay": "delayed by Nagle's algorithm with delayed ACKs",
    "closed-loop-stalls": "the closed-loop p99 hides stalls; use an open loop (--rates)",
    "cached-response": "every request hit the same URL, and the app caches its response",
    "memory-growth": "memory kept growing",
    "failed": "failed requests",
    "stationarity": "response times changed during the measurement",
    "app-calls": "the app's call count does not match the requests sent",
}
_ABOUT_HOST = {
    "contaminated": "other processes competed for the CPU",
    "steal": "the hypervisor took CPU time",
    "settle": "the host was not quiet before the trial",
    "shared-cores": "server and generator share cores",
    "limits": "a limit was not enforced",
    "client-stalls": "the generator stalled",
    "send-lag": "the generator sent requests late",
}


def _reasons(cells: Sequence[CellResult]) -> list[str]:
    """Server-related reasons by server; host-related reasons by number of cells."""
    servers: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for cell in cells:
        for reason in cell.verdict.reasons if cell.verdict is not None else ():
            if reason.check in _ABOUT_SERVERS:
                servers.setdefault(reason.check, []).append(cell.id.rpartition("@")[0])
            elif reason.check in _ABOUT_HOST:
                counts[reason.check] = counts.get(reason.check, 0) + 1
    by_count = sorted(counts, key=lambda check: -counts[check])
    lines = [
        f"{_ABOUT_HOST[check]} in {counts[check]} of {len(cells)} cells ({check})"
        for check in by_count
    ]
    lines += [
        f"{text}: {words.join_names(list(dict.fromkeys(servers[check])))} ({check})"
        for check, text in _ABOUT_SERVERS.items()
        if check in servers
    ]
    return lines


def _not_checked(cells: Sequence[CellResult]) -> list[str]:
    """Where a server that warmed up or slowed down would look like one that did not."""
    reasons = [
        one.reason
        for cell in cells
        for one in cell.not_checked or ()
        if one.check == "stationarity" and _has_response(cell)
    ]
    return [
        f"whether response times changed was not checked in {reasons.count(reason)} of "
        f"{len(cells)} cells: {reason} (stationarity)"
        for reason in dict.fromkeys(reasons)
    ]


def _has_response(cell: CellResult) -> bool:
    return cell.outcomes is not None and cell.outcomes.ok > 0


# --- the command to paste


def command_line(cells: Sequence[CellResult], entry: RankingEntry) -> str | None:
    """The command that starts a server as it was measured."""
    settings = _settings(cells, entry)
    return None if settings is None else to_paste(settings)


def _settings(cells: Sequence[CellResult], entry: RankingEntry) -> ServerSettings | None:
    ids = set(entry.cell_ids)
    return next((cell.settings for cell in cells if cell.id in ids and cell.settings), None)
