"""The terminal: a rich console that escapes control characters in untrusted text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table

from wsgiload.foreign_text import visible

TEXT_COLUMNS = 120
FULL_WIDTH = 154


class _Visible:
    """A renderable whose text is escaped after rendering."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            is_text = segment.control is None
            yield Segment(visible(segment.text), segment.style) if is_text else segment


class _EscapeForeignText(RenderHook):
    """Escapes everything that ``Console.print`` prints. rich adds its colors later."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """The renderables with escaped text."""
        return [_Visible(one) for one in renderables]


class _Terminal(Console):
    """A console that tolerates a closed pipe, such as ``| head``, without ending the command."""

    def on_broken_pipe(self) -> None:
        """Discard all further output, because Python would flush the buffer again at exit."""
        self.quiet = True
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open until exit


def terminal() -> Console:
    """Standard output, for tables that may contain untrusted text."""
    console = _Terminal()
    console.push_render_hook(_EscapeForeignText())
    return console


@contextmanager
def full_width(console: Console) -> Iterator[None]:
    """Use the full width if the output is a file or a pipe."""
    width = console.width
    if not console.is_terminal and width < FULL_WIDTH:
        console.width = FULL_WIDTH
    try:
        yield
    finally:
        console.width = width


def plain_table(*headings: str, numbers: Sequence[str] = ()) -> Table:
    """A table without rules: columns of text, then columns of ``numbers``, which never wrap."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def text_of(show: Callable[[Console], None]) -> str:
    """The output of ``show`` as plain text, on a console of ``TEXT_COLUMNS`` columns."""
    file = StringIO()
    console = _Terminal(file=file, width=TEXT_COLUMNS, color_system=None)
    console.push_render_hook(_EscapeForeignText())
    show(console)
    return file.getvalue()
