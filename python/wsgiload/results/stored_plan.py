"""An experiment as run.json holds it, read back, and what must not have changed before it is
resumed.

Pure but for reading files.
"""

from __future__ import annotations

import base64
import dataclasses
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from wsgiload.documents.codec import read_plain
from wsgiload.documents.run_info import RunInfo
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment, plain

Json = dict[str, Any]

# What a figure depends on; the rest of the host's facts may differ from hour to hour.
HOST_FACTS = (
    "kernel",
    "machine",
    "cpu_model",
    "cpus",
    "available_cpus",
    "memory_bytes",
    "wsgiload",
    "generator",
)
# What run.json holds beside the experiment, and what of it may be another without making another
# experiment.
_RESOLVED = ("order", "cpu_plan")
_ELSEWHERE = ("out", "slo")


def read_plan(run_dir: Path) -> tuple[Experiment, list[str], Json]:
    """The experiment of a run directory, its order, and the host it was begun on."""
    path = run_dir / "run.json"
    run = read_plain(RunInfo, path)
    try:
        plan, order, host = run["plan"], run["plan"]["order"], run["host"]
        experiment = revive(
            Experiment, {key: value for key, value in plan.items() if key not in _RESOLVED}
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path} was written by another version of wsgiload ({error})", "start a new run"
        ) from error
    return experiment, list(order), dict(host)


def revive(kind: Any, value: Any) -> Any:
    """The inverse of ``plain``: data as the dataclass, tuple, path or bytes that the annotation
    asks for."""
    origin = get_origin(kind)
    if value is None or kind is Any or origin is Literal:
        return value
    if origin in (Union, types.UnionType):
        return _revive_union(
            [choice for choice in get_args(kind) if choice is not types.NoneType], value
        )
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{name: revive(hints[name], item) for name, item in value.items()})
    if origin is tuple:
        choices = get_args(kind)
        repeated = [choices[0]] * len(value) if choices[-1] is Ellipsis else choices
        return tuple(revive(choice, item) for choice, item in zip(repeated, value, strict=True))
    if kind is bytes:
        return base64.b64decode(value)
    return Path(value) if kind is Path else value


def _revive_union(choices: Sequence[Any], value: Any) -> Any:
    return revive(choices[0], value) if len(choices) == 1 else value  # a word or a number, as it is


def require_same_plan(stored: Experiment, asked: Experiment) -> None:
    """Refuse options that ask for another experiment than the one that is stored."""
    before, now = _flat(plain(stored)), _flat(plain(asked))
    for name in before | now:
        if before.get(name) != now.get(name):
            raise UsageError(
                f"--resume: {name} is {now.get(name)!r} here and {before.get(name)!r} in the "
                "stored plan",
                "give --resume alone: the plan is in the run directory",
            )


def _flat(plan: Mapping[str, Any], prefix: str = "") -> Json:
    flat: Json = {}
    for name, value in plan.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif name not in _ELSEWHERE:
            flat[prefix + name] = value
    return flat


def require_same_host(stored: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a machine, a kernel or a version of wsgiload that the first half was not measured
    with."""
    for name in HOST_FACTS:
        if plain(stored.get(name)) != plain(now.get(name)):
            raise UsageError(
                f"--resume: the host has changed: {name} is {now.get(name)!r} and was "
                f"{stored.get(name)!r}",
                "start a new run, and compare the two with `wsgiload compare`",
            )


def require_same_versions(
    cells: Sequence[Mapping[str, Any]], versions: Mapping[str, tuple[str, str | None]]
) -> None:
    """Refuse servers or interpreters of other versions; ``versions`` is (server, Python) by server
    identifier."""
    for cell in cells:
        before = (cell["version"], cell["python"])
        now = versions.get(str(cell["id"]).rpartition("@")[0])
        if now is not None and before[0] is not None and before != now:
            raise UsageError(
                f"--resume: {cell['id']} was measured with {before[0]} on Python {before[1]}, "
                f"and now there is {now[0]} on Python {now[1]}",
                "start a new run, and compare the two with `wsgiload compare`",
            )
