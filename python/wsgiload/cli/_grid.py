"""``--grid`` with several values on the command line."""

from __future__ import annotations

import re

import click

from wsgiload.cli._options import ConfiguredCommand


class GridCommand(ConfiguredCommand):
    """Accepts several values after ``--grid``: ``--grid workers=1,2 threads=4,8``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--grid`` before each of its values."""
        return super().parse_args(ctx, repeat_grid(args))


def repeat_grid(words: list[str]) -> list[str]:
    """Convert ``--grid a=1 b=2`` to ``--grid a=1 --grid b=2``. An app never contains an equals
    sign, so it is not mistaken for a value."""
    repeated: list[str] = []
    is_open = False
    for word in words:
        is_size = bool(re.fullmatch(r"[a-z]+=.*", word))
        if is_open and is_size and repeated[-1] != "--grid":
            repeated.append("--grid")
        is_open = word == "--grid" or (is_open and is_size)
        repeated.append(word)
    return repeated
