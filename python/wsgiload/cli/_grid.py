"""``--grid`` on the command line: several words after it, and what cannot be said beside it."""

from __future__ import annotations

import re
from typing import Any

import click

from wsgiload.cli._options import ConfiguredCommand
from wsgiload.errors import UsageError
from wsgiload.grid import parse_sizes
from wsgiload.plan import Size

# What says the same a second time, or of one app what is different of the next.
_SAME_AS_PYTHON = ("python", "python_version")
_OF_ONE_APP = (
    *("path", "targets", "sessions"),
    *("expect_body_file", "expect_length", "expect_sha256", "expect_regex"),
)


class GridCommand(ConfiguredCommand):
    """Takes several words after ``--grid``: ``--grid workers=1,2 threads=4,8``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say ``--grid`` before each of them."""
        return super().parse_args(ctx, repeat_grid(args))


def repeat_grid(words: list[str]) -> list[str]:
    """``--grid a=1 b=2`` as ``--grid a=1 --grid b=2``; an app is never written with an equals sign."""
    repeated: list[str] = []
    is_open = False
    for word in words:
        is_size = bool(re.fullmatch(r"[a-z]+=.*", word))
        if is_open and is_size and repeated[-1] != "--grid":
            repeated.append("--grid")
        is_open = word == "--grid" or (is_open and is_size)
        repeated.append(word)
    return repeated


def sizes_of(app: str | None, options: dict[str, Any]) -> tuple[Size, ...]:
    """The settings that the options combine. Refused are apps and versions of Python beside an APP of the user's, and
    beside other options that choose them."""
    sizes = parse_sizes(options["workers"], options["server_threads"], options["grid"])
    if sizes[0].app is not None:
        if app is not None:
            raise _given_twice("app", f"APP {app!r}", "give one of them: app= names bundled apps")
        _require_none_of(("app_name",), options, "app", "give one of them")
        own = "leave it out: each bundled app is asked, and checked, in its own way"
        _require_none_of(_OF_ONE_APP, options, "app", own)
    if sizes[0].python is not None:
        if app is not None:
            own = "an app of your own stays on its interpreter: name it with --python, one in each run"
            raise _given_twice("python", f"APP {app!r}", own)
        _require_none_of(_SAME_AS_PYTHON, options, "python", "give one of them")
    return sizes


def _require_none_of(names: tuple[str, ...], options: dict[str, Any], factor: str, cure: str) -> None:
    for name in names:
        if options[name] is not None:
            raise _given_twice(factor, f"--{name.replace('_', '-')}", cure)


def _given_twice(factor: str, other: str, cure: str) -> UsageError:
    return UsageError(f"--grid {factor}= and {other} were both given", cure)
