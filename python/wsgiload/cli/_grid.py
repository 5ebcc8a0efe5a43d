"""``--grid`` on the command line: several words after it."""

from __future__ import annotations

import re

import click

from wsgiload.cli._options import ConfiguredCommand


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
