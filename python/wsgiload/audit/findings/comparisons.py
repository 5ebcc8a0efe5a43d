"""Findings across files: missing runs, averages with them, and contradictions between apps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from wsgiload.audit.run import Run, alarm
from wsgiload.audit.tools.table import TABLE
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_count, format_per_s, format_ratio
from wsgiload.units import three_digits

Level = tuple[str, int | None, float | None]
MISSING_RUN = Finding(
    name="missing-run",
    examines="other tools' results: runs without any response",
    premise="No request got a response. A table that counts the missing "
    "result as 0 ranks the server last, although its result is unknown.",
    fix="repeat the run, or omit it and say so; a missing result is unknown, not 0",
)


def missing_runs(series: Sequence[Run], count: int) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each run of a series without any response, unless ``failed-connections`` explains it and it
    is the only run of the audit; ``count`` is the number of runs."""
    for run in series:
        if run.figures.requests != 0 or (run.failures and count < 2):
            continue
        alike = [one for one in series if one.figures.requests and _level(one) == _level(run)]
        yield run, _alarm(run, [one.figures.achieved_per_s or 0.0 for one in alike], count)


def _level(run: Run) -> Level:
    return run.tool_name, run.figures.connections, run.figures.requested_per_s


def _alarm(run: Run, rates: Sequence[float], count: int) -> AuditAlarm:
    arithmetic = f"0 responses in this result (one of {format_count(count)} in the audit)"
    if rates:
        arithmetic = (
            f"mean of the {format_count(len(rates))} other results at this level: "
            f"{format_per_s(fmean(rates))}; with 0 for this one: "
            f"{format_per_s(fmean([*rates, 0.0]))}"
        )
    return alarm(
        MISSING_RUN,
        f"this run has no result ({run.tool_name} reports no response): scored as 0, it lowers "
        "means and ranks the server last",
        arithmetic=arithmetic,
        value=0,
        limit=1,
    )


# Of the cell: how exactly an average reproduces it, and how much the zeros change it.
SAME_WITHIN = 0.001
MIN_CHANGE = 0.05
ZERO_AVERAGE = Finding(
    name="zero-average",
    examines="other tools' results: the averages in a table, compared with the runs",
    premise="A cell equals an average of the runs of that server and level only if runs without a "
    "result count as 0.",
    fix="leave out runs without a result and say how many, or repeat them",
)


def zero_averages(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each cell of a table that averages in a 0 for a missing run."""
    measured = [run for run in runs if run.tool is not TABLE and run.figures.requests is not None]
    for cell in (run for run in runs if run.tool is TABLE):
        rates = [_rate(run) for run in measured if _is_of(run, cell)]
        value = cell.figures.achieved_per_s
        known = [rate for rate in rates if rate]
        if value is None or not known or len(known) == len(rates):
            continue
        with_zeros = next((one for one in _averages(rates) if _is_same(one, value)), None)
        without = [one for one in _averages(known) if abs(one - value) <= MIN_CHANGE * one]
        if with_zeros is not None and not without:
            yield cell, _alarm_of_averages(value, rates, known)


def _rate(run: Run) -> float:
    return (run.figures.achieved_per_s or 0.0) if run.figures.requests else 0.0


def _is_of(run: Run, cell: Run) -> bool:
    """Whether the run's file has the server and the level of the cell in its name."""
    server = (cell.part.name or "").rpartition(" at ")[0].lower()
    words = re.split(r"[^a-z0-9]+", Path(run.file).stem.lower())
    of_server = re.split(r"[^a-z0-9]+", server)
    is_server = any(
        words[place : place + len(of_server)] == of_server for place in range(len(words))
    )
    return is_server and run.figures.connections == cell.figures.connections


def _averages(rates: Sequence[float]) -> list[float]:
    """The mean, and the mean without the lowest and the highest."""
    averages = [fmean(rates)]
    if len(rates) > 2:
        averages.append(fmean(sorted(rates)[1:-1]))
    return averages


def _is_same(average: float, value: float) -> bool:
    return abs(average - value) <= SAME_WITHIN * max(average, value)


def _alarm_of_averages(value: float, rates: Sequence[float], known: Sequence[float]) -> AuditAlarm:
    missing = len(rates) - len(known)
    listed = ", ".join(format_per_s(rate) for rate in sorted(rates))
    return alarm(
        ZERO_AVERAGE,
        f"this average counts {format_count(missing)} of {format_count(len(rates))} runs, which "
        "have no result, as 0",
        arithmetic=f"runs: {listed}; table: {format_per_s(value)}; mean of the runs with a result: "
        f"{format_per_s(fmean(known))}",
        value=value,
        limit=fmean(known),
    )


MAX_RATIO = 1.1
_BARE = ("bare", "raw", "plain", "wsgi", "asgi", "none", "noframework")
_FRAMEWORKS = (
    *("flask", "django", "bottle", "falcon", "pyramid", "cherrypy", "tornado", "werkzeug"),
    *("webpy", "fastapi", "starlette", "quart", "sanic", "litestar", "aiohttp", "apiflask"),
)
SLOWER_BARE_APP = Finding(
    name="slower-bare-app",
    examines="other tools' results: an app without and with a framework on the same server",
    premise="Of two closed loops whose file names differ only in the framework, the one with the "
    f"framework has more than {three_digits(MAX_RATIO)} times the throughput of the bare app.",
    fix="compare settings and responses of the two runs (workers, keep-alive, Content-Length, "
    "logging, errors), and repeat them in turns",
)


def slower_bare_apps(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each run of a bare app that is slower than a framework on the same server."""
    bare = {key: run for run in runs if (key := _key(run, _BARE)) is not None}
    for run in runs:
        key = _key(run, _FRAMEWORKS)
        other = bare.get(key) if key is not None else None
        if other is None:
            continue
        with_per_s, bare_per_s = run.figures.achieved_per_s, other.figures.achieved_per_s
        if with_per_s and bare_per_s and with_per_s > MAX_RATIO * bare_per_s:
            yield other, _alarm_of_bare_app(run, with_per_s, bare_per_s)


def _key(run: Run, names: Sequence[str]) -> tuple[object, ...] | None:
    """What two comparable runs have in common; None unless exactly one word of the file's name is
    one of these."""
    path = Path(run.file)
    words = re.split(r"([^a-z0-9]+)", path.name.lower())
    places = [place for place, word in enumerate(words) if word in names]
    figures = run.figures
    if len(places) != 1 or figures.load == "open" or run.part.name is not None:
        return None
    words[places[0]] = "*"
    return (path.parent, *words, run.tool_name, figures.connections)


def _alarm_of_bare_app(run: Run, with_per_s: float, bare_per_s: float) -> AuditAlarm:
    return alarm(
        SLOWER_BARE_APP,
        f"the bare app is slower than the same server with a framework ({run.file}): a framework "
        "only adds work, so something else differs between the two runs",
        arithmetic=f"{format_per_s(with_per_s)} with / {format_per_s(bare_per_s)} without = "
        f"{format_ratio(with_per_s / bare_per_s)} (at most {format_ratio(MAX_RATIO)})",
        value=with_per_s / bare_per_s,
        limit=MAX_RATIO,
    )
