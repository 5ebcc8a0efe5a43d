"""``wsgiload explain``: explains what a check or alarm tests, when it fires, and the fix."""

from __future__ import annotations

from collections.abc import Iterator

import click

from wsgiload.analysis.explanation import Explanation
from wsgiload.analysis.explanations import explanation_of, explanations
from wsgiload.cli._completion import complete_checks
from wsgiload.cli._help import HelpfulCommand

EXAMPLES = (
    "wsgiload explain",
    "wsgiload explain send-lag",
    "wsgiload explain nagle-delay",
)


@click.command("explain", cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("name", required=False, shell_complete=complete_checks)
def explain(name: str | None) -> int:
    """Explain a check or alarm, such as send-lag. Without NAME, list all of them."""
    lines = _list() if name is None else _explained(explanation_of(name))
    for line in lines:
        click.echo(line)
    return 0


def _list() -> Iterator[str]:
    every = explanations().values()
    width = max(len(one.name) for one in every)
    for one in every:
        yield f"{one.name:<{width}}  {one.looks_at}"


def _explained(one: Explanation) -> Iterator[str]:
    yield one.name
    yield ""
    yield f"Tests: {one.looks_at}."
    yield f"Fires when: {one.fires_when}"
    if one.fix is not None:
        yield f"Fix: {one.fix}."
    for key, limit in sorted(one.thresholds.items()):
        yield f"Threshold: --check-threshold {one.name}.{key}={limit:.15g}"
