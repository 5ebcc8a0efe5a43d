"""``--slo`` where settings were measured: which of them to run."""

from __future__ import annotations

from typing import Any

import click

from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD
from wsgiload.objective import Objective
from wsgiload.recommend import Recommendation, Refusal, recommend
from wsgiload.report import recommendation_words
from wsgiload.report.words import join_words

slo_option = click.option(
    "--slo",
    multiple=True,
    help="Objective such as 'p99<50ms': ends with the setting that holds it at the largest rate. Implies --compare.",
)


def tell_recommendation(summary: dict[str, Any], objective: Objective | None, code: int, *, aside: bool = False) -> int:
    """Print the sentence, ``aside`` where standard output is JSON, and return the exit code: an objective that no
    setting holds has failed."""
    if objective is None:
        return code
    return tell(recommend(summary["cells"], objective), objective.texts, code, aside=aside)


def tell(found: Recommendation | Refusal, objective: list[str], code: int, *, aside: bool = False) -> int:
    """The same for a recommendation that is already made."""
    click.echo(recommendation_words(found, join_words(objective)), err=aside)
    is_missed = isinstance(found, Refusal) and found.is_missed
    return EXIT_THRESHOLD if is_missed and code == EXIT_OK else code
