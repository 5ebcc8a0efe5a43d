"""Draws the live view at the bottom of the terminal with rich."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from wsgiload.cli._live_frame import Row
from wsgiload.foreign_text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

LABEL_WIDTH = 10
MIN_COLUMNS = 40


def can_draw() -> bool:
    """Whether standard error is an interactive terminal that can redraw lines."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return False
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    return os.get_terminal_size(sys.stderr.fileno()).columns >= MIN_COLUMNS


class Screen:
    """Drawn from ``start`` until ``close``; permanent lines are printed above the view."""

    def __init__(self) -> None:
        self._live: Live | None = None

    @property
    def is_open(self) -> bool:
        """Whether the view is on the terminal."""
        return self._live is not None

    def start(self) -> None:
        """Start drawing at the cursor."""
        # rich takes 0.1 s to import, and most commands show no view.
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def print_line(self, text: str) -> None:
        """Print a permanent line above the view."""
        if self._live is None:
            return
        with suppress(OSError):  # a closed terminal must not end the measurement
            self._live.console.print(
                visible(text), markup=False, highlight=False, soft_wrap=True, style=None
            )

    def draw(self, lines: list[Row]) -> None:
        """Redraw the view with these lines. Raises OSError if the terminal is closed."""
        if self._live is not None:
            self._live.update(_shown(lines), refresh=True)

    def close(self) -> None:
        """Erase the view and restore the terminal; may be called repeatedly."""
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # the terminal is closed
                live.stop()


def _shown(lines: list[Row]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(
        *(
            Text.assemble(
                (f"{label:<{LABEL_WIDTH}}", "dim"),
                visible(text),
                no_wrap=True,
                overflow="ellipsis",
            )
            for label, text in lines
        )
    )
