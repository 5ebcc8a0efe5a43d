"""Prints recommendations for ``--slo``: the best of the measured configurations."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.cli._output import say
from wsgiload.documents.recommendation import Recommendation
from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD
from wsgiload.report import recommendation_lines


def print_recommendations(
    recommendations: Sequence[Recommendation],
    code: int,
    *,
    is_printed: bool = False,
    aside: bool = False,
) -> int:
    """Print one sentence per app, unless ``is_printed``; ``aside`` on standard error if standard
    output is JSON. Returns the exit code: if no configuration meets the objective, it failed."""
    for sentence in () if is_printed else recommendation_lines(recommendations):
        say(sentence, aside=aside)
    is_missed = any(
        one.no_recommendation is not None and one.no_recommendation.is_missed
        for one in recommendations
    )
    return EXIT_THRESHOLD if is_missed and code == EXIT_OK else code
