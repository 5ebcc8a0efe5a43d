"""The lines of the live view at the bottom of the terminal, drawn with rich."""

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
NARROWEST_COLUMNS = 40


def may_be_live() -> bool:
    """Whether standard error is a terminal that can redraw lines, and somebody looks at it."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return False
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    return os.get_terminal_size(sys.stderr.fileno()).columns >= NARROWEST_COLUMNS


class Screen:
    """Open from ``start`` until ``close``; what is told meanwhile stays above the lines."""

    def __init__(self) -> None:
        self._live: Live | None = None

    @property
    def is_open(self) -> bool:
        """Whether it draws."""
        return self._live is not None

    def start(self) -> None:
        """Begin at the cursor."""
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

    def tell(self, text: str) -> None:
        """A line that stays."""
        if self._live is None:
            return
        with suppress(OSError):  # that nobody reads it is no reason to end
            self._live.console.print(
                visible(text), markup=False, highlight=False, soft_wrap=True, style=None
            )

    def draw(self, lines: list[Row]) -> None:
        """Show these instead of those before; raises OSError where the terminal is gone."""
        if self._live is not None:
            self._live.update(_shown(lines), refresh=True)

    def close(self) -> None:
        """Erase the lines and give the terminal back; may be called again."""
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # the terminal is gone
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
