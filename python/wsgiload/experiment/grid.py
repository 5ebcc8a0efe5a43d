"""Parses ``--grid`` into combinations of settings. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from wsgiload.catalogue.bundled import bundled_app
from wsgiload.catalogue.contract import Profile
from wsgiload.environments.versions import VERSION
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Size
from wsgiload.loads.public_options import parse_keepalive

MAX_COUNT = 1_000
SINGLE_APP_FIX = "omit it: each bundled app has its own request and check"
INTERPRETER_FIX = "your own app uses one interpreter per run (--python)"


def parse_sizes(workers: int | None, threads: int | None, grid: Sequence[str]) -> tuple[Size, ...]:
    """Every combination of the values of ``--grid``; without it, the one size set by ``workers``
    and ``server_threads``."""
    return combinations(workers, threads, parse_grid(grid))


def parse_grid(words: Sequence[str]) -> dict[str, list[str]]:
    """Parse the words after ``--grid``, such as ``workers=1,2``, into values by factor."""
    grid: dict[str, list[str]] = {}
    for word in words:
        name, equals, listed = word.partition("=")
        _require_factor(name, word, is_assignment=bool(equals))
        if name in grid:
            raise UsageError(f"{name} was given twice", "list all its values in one place")
        grid[name] = [value.strip() for value in listed.split(",")]
    return grid


def combinations(
    workers: int | None, threads: int | None, grid: Mapping[str, Sequence[str | int]]
) -> tuple[Size, ...]:
    """Every combination of the values of a grid with the fixed numbers of workers and threads."""
    values: dict[str, list[Any]] = {name: [None] for name in _READERS}
    values |= {"workers": [workers], "threads": [threads]}
    for name, listed in grid.items():
        word = f"{name}={','.join(map(str, listed))}"
        _require_factor(name, word)
        if values[name] != [None]:
            fix = "use it either in --grid or as an option"
            raise UsageError(f"{name} was given twice", fix)
        values[name] = [_READERS[name](str(value), word) for value in listed]
    return tuple(
        Size(**dict(zip(values, combined, strict=True)))
        for combined in itertools.product(*values.values())
    )


def _require_factor(name: str, word: str, *, is_assignment: bool = True) -> None:
    if is_assignment and name in _READERS:
        return
    *first, last = _READERS
    raise UsageError(
        f"--grid {word}: unknown factor; use {', '.join(first)} or {last}",
        "write it like workers=1,2,4 threads=1,4,8 keepalive=on,off",
    )


def require_exclusive(option: str, others: Mapping[str, object], fix: str | None = None) -> None:
    """Raise UsageError if another option is set, too. ``others`` maps names to values; None: not
    set."""
    for name, value in others.items():
        if value is not None:
            raise UsageError(f"{option} and {name} are mutually exclusive", fix)


def apps_of(sizes: Sequence[Size]) -> list[str]:
    """The bundled apps in a grid, without duplicates."""
    return list(dict.fromkeys(size.app for size in sizes if size.app is not None))


def _count(text: str, whole: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_COUNT:
        return int(text)
    raise UsageError(
        f"--grid {whole}: {text!r} is not a number from 1 to {MAX_COUNT:,}",
        "write it like workers=1,2",
    )


def _profile(text: str, whole: str) -> str:
    profiles = get_args(Profile)
    if text in profiles:
        return text
    raise UsageError(
        f"--grid {whole}: {text!r} is not a profile", f"choose {' or '.join(profiles)}"
    )


def _version(text: str, whole: str) -> str:
    if VERSION.fullmatch(text):
        return text
    raise UsageError(
        f"--grid {whole}: {text!r} is not a version",
        "write it like python=3.11,3.13, or 3.14t for a free-threaded build",
    )


# A parser for each field of Size, in the same order.
_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "workers": _count,
    "threads": _count,
    "profile": _profile,
    "keepalive": lambda text, _: parse_keepalive(text),
    "app": lambda text, _: bundled_app(text).name,
    "python": _version,
}
