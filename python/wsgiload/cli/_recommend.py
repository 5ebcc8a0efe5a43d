"""``--slo`` where settings were measured: which of them to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD
from wsgiload.objective import Objective
from wsgiload.recommend import Recommendation, Refusal, by_app, recommend
from wsgiload.report import recommendation_words
from wsgiload.report.words import join_words

Json = dict[str, Any]

slo_option = click.option(
    "--slo",
    multiple=True,
    help="Objective such as 'p99<50ms': ends with the setting that holds it at the largest rate. Implies --compare.",
)


def tell_recommendation(summary: dict[str, Any], objective: Objective | None, code: int, *, aside: bool = False) -> int:
    """Print the sentence, ``aside`` where standard output is JSON, and return the exit code: an objective that no
    setting holds has failed. Of several apps each has a sentence of its own."""
    if objective is None:
        return code
    held = objective
    return tell_each(summary["cells"], lambda cells: recommend(cells, held), held.texts, code, aside=aside)


def tell_each(
    entries: Sequence[Json],
    judge: Callable[[Sequence[Json]], Recommendation | Refusal],
    objective: list[str],
    code: int,
    *,
    aside: bool = False,
) -> int:
    """The same for what ``judge`` makes of the entries of each app."""
    apps = by_app(entries)
    for app, own in apps.items():
        found = judge(own)
        lead = f"{app}: " if len(apps) > 1 else ""
        click.echo(lead + recommendation_words(found, join_words(objective)), err=aside)
        if isinstance(found, Refusal) and found.is_missed and code == EXIT_OK:
            code = EXIT_THRESHOLD
    return code
