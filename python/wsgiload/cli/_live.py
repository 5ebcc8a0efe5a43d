"""The live view: a few lines at the bottom of the terminal while something is measured.

A thread of the lowest priority redraws them, on the orchestrator's cores. It reads what the
generator and the sampler have anyway, and no thread that measures ever waits for it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from wsgiload.cli._live_frame import Row, Stage, rows
from wsgiload.cli._output import tell
from wsgiload.foreign_text import visible
from wsgiload.sampling.running_load import LoadEvents, RunningLoad

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

REFRESH_S = 0.5
LABEL_WIDTH = 10
NARROWEST_COLUMNS = 40
LOWEST_PRIORITY = 19


def may_be_live() -> bool:
    """Whether standard error is a terminal that can redraw lines, and somebody looks at it."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return False
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    return os.get_terminal_size(sys.stderr.fileno()).columns >= NARROWEST_COLUMNS


@contextmanager
def live_view(*, quiet: bool) -> Iterator[LiveView | None]:
    """A view for as long as the block lasts; None where lines are told one after another."""
    if quiet or not may_be_live():
        yield None
        return
    with LiveView() as view:
        yield view


class LiveView(LoadEvents):
    """Draws from the first stage until it is closed; lines told meanwhile stay above it."""

    is_watching = True

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._running: RunningLoad | None = None
        # Held while the load is looked at: nobody may look at one that has ended.
        self._looking = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wsgiload-live", daemon=True)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def show(self, stage: Stage) -> None:
        """This is under way from now on. Call it on the orchestrator's cores: the thread that draws
        stays on those of its start."""
        self._stage = stage
        if self._live is None and not self._closing.is_set():
            self._live = _display()
            self._live.start()
            self._thread.start()

    def load_started(self, load: RunningLoad) -> None:
        """Its load begins."""
        with self._looking:
            self._running = load

    def load_ended(self) -> None:
        """Its load has ended; returns when nobody looks at it any more."""
        with self._looking:
            self._running = None

    def tell(self, text: str) -> None:
        """A line that stays."""
        if self._live is None or self._closing.is_set():
            tell(text)
            return
        self._live.console.print(
            visible(text), markup=False, highlight=False, soft_wrap=True, style=None
        )

    def close(self) -> None:
        """Erase the view and give the terminal back; may be called again."""
        self._closing.set()
        if self._live is not None and self._thread.is_alive():
            self._thread.join()
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        while not self._closing.is_set():
            self._draw()
            self._closing.wait(REFRESH_S)

    def _draw(self) -> None:
        stage, live = self._stage, self._live
        if stage is None or live is None:
            return
        with self._looking:
            running = self._running
            look = running.look() if running is not None else None
        try:
            live.update(_shown(rows(stage, running, look, time.monotonic_ns())), refresh=True)
        except OSError:
            self._closing.set()  # the terminal is gone, and the measurement is more important


def _display() -> Live:
    # rich takes 0.1 s to import, and most commands show no view.
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


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
