"""The experiment's conclusion as text: the first thing a user reads.

Pure, from a summary. All decisions are made in ``analysis``; this names the best server, its ties,
and what could change that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from wsgiload.analysis.answered import are_open, errors_to_resolve
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.races import race_at, ranked_by_race
from wsgiload.analysis.ranking import rank
from wsgiload.documents.answer import Answer, RankingEntry, RankingLevel, Recommendation
from wsgiload.documents.over_cells import Comparison, Race
from wsgiload.documents.summary import Summary
from wsgiload.experiment.estimate import runs_s
from wsgiload.report import words
from wsgiload.report.cautions import cautions
from wsgiload.report.command_line import start_of
from wsgiload.report.level_sentences import (
    alone,
    comparison_of,
    quick_look,
    raced,
    saturation_sentence,
    tie,
    winner,
    with_errors,
)
from wsgiload.report.over_runs import typical_deviation
from wsgiload.report.question import (
    STATUSES,
    by_app,
    duration_needs,
    limits_words,
    main_level,
    objective_words,
    question_of,
    race_needs,
    ranked,
)
from wsgiload.report.recommendation import leanest, recommendation_sentences
from wsgiload.statistics.effect import MAX_RUNS, MIN_RUNS, PLANNED_FACTOR, runs_needed

Status = Literal["decided", "tie", "undecided"]


def with_answer(summary: Summary) -> Summary:
    """The summary with its answer."""
    return msgspec.structs.replace(summary, answer=answer_of(summary))


def answer_of(summary: Summary) -> Answer:
    """``answer`` of summary.json; without a ranked server, it states why."""
    ranking = tuple(
        level if (race := race_at(summary.races, level)) is None else ranked_by_race(level, race)
        for level in rank(summary.cells, summary.comparisons or (), _allowed_errors(summary))
    )
    decided = [one for one in summary.recommendations or () if one.recommended is not None]
    if summary.recommendations:
        return _of_objective(summary, ranking, summary.recommendations, decided)
    of_apps = [_of_app(summary, levels) for levels in by_app(ranking)]
    if len(of_apps) == 1:
        return of_apps[0]
    return _of_several_apps(summary, ranking, of_apps)


def _allowed_errors(summary: Summary) -> float | None:
    """The share of errors that the objective allows; None without an objective."""
    slo = summary.experiment.slo
    objective = parse_objective(slo) if slo else None
    limits = (
        [one.limit for one in objective.thresholds if one.figure == "error_rate"]
        if objective
        else []
    )
    return max(limits, default=None)


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
        warnings=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _of_level(summary: Summary, ranking: tuple[RankingLevel, ...], main: RankingLevel) -> Answer:
    contenders = ranked(main)
    best = contenders[0]
    can_infer = len(best.cell_ids) >= MIN_RUNS
    race = race_at(summary.races, main)
    needs = None
    status: Status
    if len(contenders) == 1:
        status, sentence = "decided", alone(best, main)
    elif race is not None:
        status = STATUSES[race.outcome]
        margin = summary.experiment.margin or 0.1
        sentence = raced(race, main, contenders, summary.comparisons or (), margin)
        needs = _race_needs(summary, race, main) if status == "undecided" else None
    elif not can_infer:
        status, sentence = "undecided", quick_look(best, main, contenders)
        needs = compare_needs(summary)
    elif best.undecided_with:
        status = "undecided"
        sentence = quick_look(best, main, contenders, summary.comparisons or ())
        needs = duration_needs(main) or separating_needs(summary, best, main, contenders)
        needs = needs or compare_needs(summary)
    elif best.tied_with:
        status, sentence = "tie", tie(best, main, contenders, summary.comparisons or ())
    else:
        status, sentence = "decided", winner(best, main, contenders, summary.comparisons or ())

    is_leader = race is not None and race.outcome in ("undecided", "leader")
    alike = {best.label} if is_leader else _and_ties(best)
    recommended = leanest([entry for entry in contenders if entry.label in alike])
    saturation = saturation_sentence(summary, ranking)
    has_winner = race is None or race.outcome != "failed"
    command_line = None if not has_winner else start_of(summary.cells, recommended.cell_ids)
    return Answer(
        question=question_of(summary, main),
        status=status,
        sentence=" ".join(part for part in (sentence, with_errors(main), saturation) if part),
        command_line=command_line,
        command_of=None if command_line is None else recommended.label,
        needs=needs,
        warnings=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _race_needs(summary: Summary, race: Race, level: RankingLevel) -> str:
    errors = errors_to_resolve(summary.cells, level) if race.outcome == "failed" else None
    return errors or race_needs(race, level, summary)


def _and_ties(entry: RankingEntry) -> set[str]:
    return {entry.label, *entry.tied_with}


def _of_objective(
    summary: Summary,
    ranking: tuple[RankingLevel, ...],
    entries: Sequence[Recommendation],
    decided: Sequence[Recommendation],
) -> Answer:
    results = (one.no_recommendation or one.recommended for one in entries)
    needs = [result.needs for result in results if result is not None]
    open_needs = list(dict.fromkeys(need for need in needs if need is not None))
    if ranking and not decided:
        errors = errors_to_resolve(summary.cells, ranking[-1])
        open_needs = open_needs if errors is None else [errors]
    has_ties = any(one.recommended is not None and one.recommended.tied for one in entries)
    status: Status = "undecided" if are_open(entries) else "tie" if has_ties else "decided"
    label = decided[0].recommended.server if decided and decided[0].recommended else None
    entry = next((one for level in ranking for one in level.entries if one.label == label), None)
    command_line = None if entry is None else start_of(summary.cells, entry.cell_ids)
    return Answer(
        question=question_of(summary, main_level(ranking)),
        status=status,
        sentence=" ".join([*recommendation_sentences(entries), *_selected(summary)]),
        command_line=command_line,
        command_of=None if command_line is None else label,
        needs="; ".join(open_needs) or None,
        warnings=tuple(cautions(summary, ranking)),
        ranking=ranking,
    )


def _selected(summary: Summary) -> list[str]:
    """How the other configurations of a race dropped out at the decisive rate."""
    if summary.experiment.margin is not None:
        return []
    decisive = [race for race in summary.races or () if race.outcome != "failed"]
    text = objective_words(decisive[0]) if len(decisive) == 1 else ""
    return [text] if text else []


def _nothing_ranked(summary: Summary, ranking: tuple[RankingLevel, ...]) -> Answer:
    counts = _counts(ranking[-1].entries if ranking else ())
    sentence = (
        f"No server sustained any tested load level{counts}."
        if ranking and ranking[-1].entries
        else "Nothing was measured."
    )
    warnings = tuple(cautions(summary, ranking))
    return Answer(
        question=question_of(summary, ranking[0] if ranking else None),
        status="undecided",
        sentence=sentence,
        command_line=None,
        needs=_needs(summary, ranking[-1], warnings) if ranking else None,
        warnings=warnings,
        ranking=ranking,
    )


def _needs(summary: Summary, lowest: RankingLevel, warnings: Sequence[str]) -> str:
    errors = errors_to_resolve(summary.cells, lowest)
    if errors is not None:
        return errors
    if all(entry.status == "failed" for entry in lowest.entries):
        return "resolve the failures listed below"
    return "use lower --rates" + ("; the reasons are listed below" if warnings else "")


def _counts(entries: Iterable[RankingEntry]) -> str:
    names = {
        "invalid": "without a valid result",
        "failed": "failed",
    }
    statuses = [entry.status for entry in entries]
    counts = [
        f"{statuses.count(status)} {text}" for status, text in names.items() if status in statuses
    ]
    return f" ({', '.join(counts)})" if counts else ""


def compare_needs(summary: Summary) -> str:
    """The options that decide in the fewest minutes."""
    if len({cell.app for cell in summary.cells}) == 1:
        return "repeat without --runs and --duration (at most 5 min)"
    runs = runs_needed(1)
    span = _span(summary, runs)
    return f"repeat with --compare ({runs} runs per server and load level, about {span})"


def separating_needs(
    summary: Summary,
    best: RankingEntry,
    main: RankingLevel,
    contenders: Sequence[RankingEntry],
) -> str | None:
    """The runs required to separate servers, given the variation between these runs; None if that
    would require too many, or if nothing was compared."""
    figure = "goodput" if main.rate is None else "p99"
    comparisons = summary.comparisons or ()
    open_pairs = _with_margin(best, main, figure, comparisons)
    if not open_pairs:
        return None
    runs = runs_needed(math.comb(len(contenders), 2), typical_deviation(open_pairs))
    rounds = max(one.rounds for one in open_pairs)
    if not rounds < runs < MAX_RUNS:
        return None

    span = _span(summary, runs)
    return (
        f"{runs} runs per server and load level (--runs {runs}, about {span}) would detect "
        f"differences in {figure} of {100 * (PLANNED_FACTOR - 1):.0f} % or more"
    )


def _with_margin(
    best: RankingEntry, main: RankingLevel, figure: str, comparisons: Sequence[Comparison]
) -> list[Comparison]:
    open_pairs = (
        comparison_of(best.label, name, main, figure, comparisons) for name in best.undecided_with
    )
    return [one for one in open_pairs if one is not None and one.margin is not None]


def _span(summary: Summary, runs: int) -> str:
    experiment = summary.experiment
    return words.format_span(runs_s(experiment, len(experiment.servers), runs))
