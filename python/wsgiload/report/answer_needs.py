"""The runs and time required to decide an undecided experiment. Pure, from a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.summary import Summary
from wsgiload.experiment.estimate import runs_s
from wsgiload.report import words
from wsgiload.report.level_sentences import comparison_of
from wsgiload.report.over_runs import typical_deviation
from wsgiload.statistics.effect import MAX_RUNS, PLANNED_FACTOR, runs_needed


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
