"""Reads the words after ``--grid`` into the settings that they combine. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from wsgiload.catalogue.bundled import bundled_app
from wsgiload.catalogue.contract import Profile
from wsgiload.environments.versions import VERSION
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Size
from wsgiload.loads.options import parse_keepalive

LARGEST_SIZE = 1_000
ONE_OF_THEM = "give one of them"
OF_ONE_APP = "omit it: each bundled app has its own request and check"
OWN_INTERPRETER = "your own app uses one interpreter per run (--python)"


def parse_sizes(workers: int | None, threads: int | None, grid: Sequence[str]) -> tuple[Size, ...]:
    """Every combination of the values of ``--grid``; without it the one size of --workers and
    --server-threads."""
    values: dict[str, list[Any]] = {name: [None] for name in _READERS}
    values |= {"workers": [workers], "threads": [threads]}
    for text in grid:
        name, equals, listed = text.partition("=")
        if not equals or name not in _READERS:
            *first, last = _READERS
            raise UsageError(
                f"--grid {text}: not {', '.join(first)} nor {last}",
                "write it like workers=1,2,4 threads=1,4,8 keepalive=on,off",
            )
        if values[name] != [None]:
            raise UsageError(
                f"{name} of the servers was given twice", "give it once, in --grid or by itself"
            )
        values[name] = [_READERS[name](value.strip(), text) for value in listed.split(",")]
    return tuple(
        Size(**dict(zip(values, combined, strict=True)))
        for combined in itertools.product(*values.values())
    )


def refuse_beside(factor: str, given: Mapping[str, object], fix: str) -> None:
    """Refuse what says the same as a factor, or what would be meant for one of its values;
    ``given`` is by name, None where it was not given."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{factor} and {name} were both given", fix)


def apps_of(sizes: Sequence[Size]) -> list[str]:
    """The bundled apps that a grid names, each once."""
    return list(dict.fromkeys(size.app for size in sizes if size.app is not None))


def _count(text: str, whole: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_SIZE:
        return int(text)
    raise UsageError(
        f"--grid {whole}: {text!r} is no number from 1 to {LARGEST_SIZE:,}",
        "write it like workers=1,2",
    )


def _profile(text: str, whole: str) -> str:
    profiles = get_args(Profile)
    if text in profiles:
        return text
    raise UsageError(f"--grid {whole}: {text!r} is no profile", f"choose {' or '.join(profiles)}")


def _version(text: str, whole: str) -> str:
    if VERSION.fullmatch(text):
        return text
    raise UsageError(
        f"--grid {whole}: {text!r} is no version",
        "write it like python=3.11,3.13, or 3.14t if it is free-threaded",
    )


# By the fields of a size, in their order.
_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "workers": _count,
    "threads": _count,
    "profile": _profile,
    "keepalive": lambda text, _: parse_keepalive(text),
    "app": lambda text, _: bundled_app(text).name,
    "python": _version,
}
