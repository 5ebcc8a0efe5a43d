"""The terminal: rich's console, through which no control character of others passes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from wsgiload.foreign_text import visible

TEXT_COLUMNS = 120
FULL_WIDTH = 154


class _Visible:
    """Anything rich can show, with the text that it ends up as escaped."""

    def __init__(self, shown: ConsoleRenderable) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._shown, options):
            is_text = segment.control is None
            yield Segment(visible(segment.text), segment.style) if is_text else segment


class _EscapeForeignText(RenderHook):
    """What ``Console.print`` lets everything pass through. rich adds its colors after that."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Each of them, escaped."""
        return [_Visible(one) for one in renderables]


class _Terminal(Console):
    """A console whose reader may go away, as ``head`` does, without ending the command."""

    def on_broken_pipe(self) -> None:
        """Write no more: what is still in the buffer would be tried again at the very end."""
        self.quiet = True
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # until then


def terminal() -> Console:
    """Standard output, for tables that may hold text of servers and of stored files."""
    console = _Terminal()
    console.push_render_hook(_EscapeForeignText())
    return console


@contextmanager
def full_width(console: Console) -> Iterator[None]:
    """Full width into files and pipes, whose width nobody chose."""
    width = console.width
    if not console.is_terminal and width < FULL_WIDTH:
        console.width = FULL_WIDTH
    try:
        yield
    finally:
        console.width = width


def text_of(show: Callable[[Console], None]) -> str:
    """What it prints to a console of a page's width, as plain text."""
    file = StringIO()
    console = _Terminal(file=file, width=TEXT_COLUMNS, color_system=None)
    console.push_render_hook(_EscapeForeignText())
    show(console)
    return file.getvalue()
