"""``wsgiload explain``: explains what a check or alarm tests, when it fires, and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

import click

from wsgiload.attribution.fingerprints import FINGERPRINTS
from wsgiload.cli._completion import complete_checks
from wsgiload.cli._help import HelpfulCommand
from wsgiload.errors import UsageError
from wsgiload.findings.finding import LENGTHENS, Finding, findings_of
from wsgiload.findings.of_trials import of_trials

EXAMPLES = (
    "wsgiload explain",
    "wsgiload explain send-lag",
    "wsgiload explain nagle-delay",
)


@click.command("explain", cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("name", required=False, shell_complete=complete_checks)
def explain(name: str | None) -> int:
    """Explain a check, an alarm or a fingerprint, such as send-lag. Without NAME, list all of them."""
    lines = _list() if name is None else _explained(_finding(name))
    for line in lines:
        click.echo(line)
    return 0


def every_finding() -> dict[str, Finding]:
    """Every check, alarm and fingerprint by name."""
    others = (*of_searches(), *of_audits())
    return of_trials() | FINGERPRINTS | {one.name: one for one in others}


def of_searches() -> tuple[Finding, ...]:
    """The checks of a capacity search."""
    from wsgiload.capacity_search import result

    return findings_of(result)


def of_audits() -> tuple[Finding, ...]:
    """The findings that only ``wsgiload audit`` reports; it shares the others with the alarms."""
    from wsgiload.audit import findings

    names = [f"{findings.__name__}.{one.name}" for one in iter_modules(findings.__path__)]
    return tuple(
        one for one in findings_of(*map(import_module, names)) if one.name not in of_trials()
    )


def _finding(name: str) -> Finding:
    by_name = every_finding()
    if name in by_name:
        return by_name[name]
    close = get_close_matches(name, by_name, n=3, cutoff=0.5)
    fix = "`wsgiload explain` lists them"
    if close:
        fix = f"did you mean {' or '.join(close)}? {fix} all"
    raise UsageError(f"there is no check, alarm or fingerprint {name!r}", fix)


def _list() -> Iterator[str]:
    every = every_finding().values()
    width = max(len(one.name) for one in every)
    for one in every:
        yield f"{one.name:<{width}}  {one.examines}"


def _explained(one: Finding) -> Iterator[str]:
    yield one.name
    yield ""
    yield f"Tests: {one.examines}."
    yield f"Fires when: {one.premise}"
    if consequence := one.consequence or (LENGTHENS if one.lengthens else None):
        yield f"Consequence: {consequence}."
    if one.misleads is not None:
        yield f"Misleading result: {one.misleads}."
    if one.fix is not None:
        yield f"Fix: {one.fix}."
    for key, limit in sorted(one.thresholds.items()):
        yield f"Threshold: --check-threshold {one.name}.{key}={limit:.15g}"
