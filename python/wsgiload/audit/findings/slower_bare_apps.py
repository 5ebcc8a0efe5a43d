"""Files that contradict each other: a framework adds work, so a bare app cannot be slower."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_per_s, format_ratio
from wsgiload.units import three_digits

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
            yield other, _alarm(run, with_per_s, bare_per_s)


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


def _alarm(run: Run, with_per_s: float, bare_per_s: float) -> AuditAlarm:
    return alarm(
        SLOWER_BARE_APP,
        f"the bare app is slower than the same server with a framework ({run.file}): a framework "
        "only adds work, so something else differs between the two runs",
        arithmetic=f"{format_per_s(with_per_s)} with / {format_per_s(bare_per_s)} without = "
        f"{format_ratio(with_per_s / bare_per_s)} (at most {format_ratio(MAX_RATIO)})",
        value=with_per_s / bare_per_s,
        limit=MAX_RATIO,
    )
