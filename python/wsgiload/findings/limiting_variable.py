"""Compares two servers that have the same command but differ in one environment variable, such as
the size of a connection pool. If only one of them waits, the variable is the bottleneck. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from wsgiload.documents.cell_result import CellResult, ServerSettings, server_of
from wsgiload.findings.alarms import IDLE_SERVER
from wsgiload.findings.finding import Finding, Fired, percent

# More than the usual difference between runs of one setting.
MIN_FACTOR = 1.2
LIMITING_VARIABLE = Finding(
    name="limiting-variable",
    examines="your own commands that differ in one environment variable and have the same number "
    "of workers and threads",
    premise="At the same rate, idle-server fires for one command, and another command responds to "
    f"at least {percent(MIN_FACTOR - 1)} more requests: the variable, such as a pool size, is the "
    "bottleneck.",
    fix="use the value of the faster command",
    misleads="a connection pool that is too small, presented as a slow server",
)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A user-defined server at one load, over its runs."""

    server: str
    rate: float
    settings: ServerSettings
    goodput_per_s: float
    waits: bool


def limiting_variables(cells: Sequence[CellResult]) -> Iterator[Fired]:
    """For each server that waits, the variable that removes the bottleneck, at the lowest such
    rate."""
    measured, named = _measured(cells), set[str]()
    for slow in sorted(measured, key=lambda one: one.rate):
        if not slow.waits or slow.server in named:
            continue
        faster = [one for one in measured if _is_faster(one, slow)]
        if faster:
            named.add(slow.server)
            yield _fired(slow, max(faster, key=lambda one: one.goodput_per_s))


def _measured(cells: Sequence[CellResult]) -> list[_Measured]:
    runs: dict[tuple[str, float], list[CellResult]] = {}
    for cell in cells:
        if cell.rate is not None and _is_valid_user_server(cell):
            runs.setdefault((server_of(cell), cell.rate), []).append(cell)
    return [_over_runs(server, rate, of) for (server, rate), of in runs.items()]


def _is_valid_user_server(cell: CellResult) -> bool:
    is_valid = cell.verdict is not None and cell.verdict.status != "invalid"
    is_user_server = cell.settings is not None and cell.settings.user_command is not None
    return is_valid and is_user_server and cell.failure is None and cell.rate_result is not None


def _over_runs(server: str, rate: float, cells: Sequence[CellResult]) -> _Measured:
    goodputs = [one.rate_result.goodput_per_s or 0.0 for one in cells if one.rate_result]
    reasons = (one.verdict.reasons for one in cells if one.verdict is not None)
    waits = any(reason.check == IDLE_SERVER.name for of_cell in reasons for reason in of_cell)
    (settings, *_) = (one.settings for one in cells if one.settings is not None)
    return _Measured(server, rate, settings, fmean(goodputs), waits)


def _is_faster(one: _Measured, slow: _Measured) -> bool:
    is_alike = (one.rate, _size(one.settings)) == (slow.rate, _size(slow.settings))
    is_faster = one.goodput_per_s >= MIN_FACTOR * slow.goodput_per_s > 0
    return is_alike and is_faster and _only_difference(one, slow) is not None


def _size(settings: ServerSettings) -> tuple[str | None, int | None, int | None]:
    return settings.user_command, settings.workers, settings.threads


def _only_difference(one: _Measured, other: _Measured) -> str | None:
    """The only variable in which they differ; None if there is none, or several."""
    first, second = one.settings.environment, other.settings.environment
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return names[0] if len(names) == 1 else None


def _fired(slow: _Measured, fast: _Measured) -> Fired:
    name = _only_difference(fast, slow)
    small, large = (_value(one.settings.environment, name) for one in (slow, fast))
    message = (
        f"{name} is the bottleneck of {slow.server}: with {small}, it responds to "
        f"{slow.goodput_per_s:,.0f} of {slow.rate:,g} requests/s; {fast.server} with {large} "
        f"responds to {fast.goodput_per_s:,.0f}"
    )
    factor = fast.goodput_per_s / slow.goodput_per_s
    fix = f"use the value of {fast.server} for {name}"
    return LIMITING_VARIABLE.fired(message, factor, MIN_FACTOR, fix=fix)


def _value(variables: Mapping[str, str], name: str | None) -> str:
    return variables.get(name or "", "no value")
