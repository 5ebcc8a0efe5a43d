"""``--grid`` on the command line: several words after it, and what cannot be said beside it."""

from __future__ import annotations

import re
from typing import Any

import click

from wsgiload.cli._options import ConfiguredCommand
from wsgiload.experiment.grid import (
    OF_ONE_APP,
    ONE_OF_THEM,
    OWN_INTERPRETER,
    parse_sizes,
    refuse_beside,
)
from wsgiload.experiment.plan import Size

_OF_AN_APP = (
    *("path", "targets", "sessions"),
    *("expect_body_file", "expect_length", "expect_sha256", "expect_regex"),
)


class GridCommand(ConfiguredCommand):
    """Takes several words after ``--grid``: ``--grid workers=1,2 threads=4,8``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say ``--grid`` before each of them."""
        return super().parse_args(ctx, repeat_grid(args))


def repeat_grid(words: list[str]) -> list[str]:
    """``--grid a=1 b=2`` as ``--grid a=1 --grid b=2``; an app is never written with an equals
    sign."""
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
    """The settings that the options combine. Refused are apps and versions of Python beside an APP
    of the user's, and beside other options that choose them."""
    sizes = parse_sizes(options["workers"], options["server_threads"], options["grid"])
    own = {f"APP {app!r}": app}
    if sizes[0].app is not None:
        refuse_beside("--grid app=", own | _flags(options, "app_name"), ONE_OF_THEM)
        refuse_beside("--grid app=", _flags(options, *_OF_AN_APP), OF_ONE_APP)
    if sizes[0].python is not None:
        refuse_beside("--grid python=", own, OWN_INTERPRETER)
        refuse_beside("--grid python=", _flags(options, "python", "python_version"), ONE_OF_THEM)
    return sizes


def _flags(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {f"--{name.replace('_', '-')}": options[name] for name in names}
