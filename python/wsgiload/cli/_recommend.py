"""``--slo`` where settings were measured: which of them to run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from wsgiload.documents.summary import Recommendation
from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD
from wsgiload.report import recommendation_lines

slo_option = click.option(
    "--slo",
    multiple=True,
    help="Objective, such as 'p99<50ms'; recommends the setting that meets it at the largest rate. Implies --compare.",
)


def tell_recommendations(
    entries: Sequence[Recommendation], code: int, *, aside: bool = False
) -> int:
    """Print the sentence of each app, ``aside`` where standard output is JSON, and return the exit
    code: an objective that no setting holds has failed."""
    for sentence in recommendation_lines(entries):
        click.echo(sentence, err=aside)
    is_missed = any(entry.refused is not None and entry.refused.is_missed for entry in entries)
    return EXIT_THRESHOLD if is_missed and code == EXIT_OK else code
