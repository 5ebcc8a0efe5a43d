"""``--slo`` where settings were measured: which of them to run."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.cli._descriptions import described
from wsgiload.cli._help import option
from wsgiload.cli._output import say
from wsgiload.documents.recommendation import Recommendation
from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.report import recommendation_lines

slo_option = option("Procedure", "--slo", multiple=True, help=described(SweepOptions, "slo"))


def tell_recommendations(
    recommendations: Sequence[Recommendation],
    code: int,
    *,
    is_printed: bool = False,
    aside: bool = False,
) -> int:
    """Print the sentence of each app unless that is done, ``aside`` where standard output is JSON,
    and return the exit code: an objective that no setting meets has failed."""
    for sentence in () if is_printed else recommendation_lines(recommendations):
        say(sentence, aside=aside)
    is_missed = any(
        one.no_recommendation is not None and one.no_recommendation.is_missed
        for one in recommendations
    )
    return EXIT_THRESHOLD if is_missed and code == EXIT_OK else code
