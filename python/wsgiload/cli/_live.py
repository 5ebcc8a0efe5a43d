"""The live view of the running measurement, on the terminal and as a page.

A thread with the lowest priority draws both, on the orchestrator's cores. It reads data that the
generator and the sampler record anyway, and no measuring thread ever waits for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wsgiload.cli._live_frame import Stage, frame_of, rows
from wsgiload.cli._output import print_status
from wsgiload.sampling.running_load import LoadEvents, RunningLoad

if TYPE_CHECKING:
    from wsgiload.cli._live_page import LivePage
import sys
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


REFRESH_S = 0.5
LOWEST_PRIORITY = 19


@contextmanager
def live_view(command: str, *, quiet: bool, port: int | None = None) -> Iterator[LiveView]:
    """Show a view during the block: on the terminal if there is one, and as a page if ``port`` is
    given. Raises UsageError if the port cannot be used."""
    screen = Screen() if not quiet and can_draw() else None
    page = _page(port, command) if port is not None else None
    view = LiveView(screen, page, quiet=quiet)
    try:
        if page is not None:
            print_status(f"live view: {page.url}")
            view.begin()
        yield view
    finally:
        view.stop()
        if page is not None:
            page.close()


def _page(port: int, command: str) -> LivePage:
    # The import is slow, and few commands serve a page.
    from wsgiload.cli._live_page import LivePage

    return LivePage(port, command)


class LiveView(LoadEvents):
    """Draws on the terminal and the page, if there are any, from the first stage until it is
    stopped. Without a terminal, it prints plain lines."""

    def __init__(
        self, screen: Screen | None = None, page: LivePage | None = None, *, quiet: bool = False
    ) -> None:
        self._screen, self._page = screen, page
        self.is_watching = screen is not None or page is not None
        self.is_plain = screen is None and not quiet
        """Whether progress is printed to standard error as plain lines."""
        self._stage: Stage | None = None
        self._running: RunningLoad | None = None
        # Held while the load is read, because a load must not be read after its end.
        self._load_lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wsgiload-live", daemon=True)

    def begin(self) -> None:
        """Start drawing."""
        if self.is_watching and self._thread.ident is None and not self._closing.is_set():
            self._thread.start()

    def show(self, stage: Stage) -> None:
        """Show this stage. Must be called on the orchestrator's cores, to which the view's threads
        are pinned, too."""
        self._stage = stage
        if self._closing.is_set() or not self.is_watching:
            return
        if self._screen is not None and not self._screen.is_open:
            self._screen.start()
        self.begin()
        self._stay_on(os.sched_getaffinity(0))

    def _stay_on(self, cpus: set[int]) -> None:
        native_id = self._thread.native_id
        threads = ({native_id} if native_id is not None else set()) | (
            self._page.threads if self._page is not None else set()
        )
        for thread in threads:
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, cpus)

    def load_started(self, load: RunningLoad) -> None:
        """Follow this load."""
        with self._load_lock:
            self._running = load

    def load_ended(self) -> None:
        """Stop following the load. Returns once no thread reads it."""
        with self._load_lock:
            self._running = None

    def print_line(self, text: str) -> None:
        """Print a permanent line."""
        self.print_page_line(text)
        if self._screen is not None and self._screen.is_open:
            self._screen.print_line(text)
        elif self._screen is not None or self.is_plain:
            print_status(text)

    def print_page_line(self, text: str) -> None:
        """Add a line to the page only; standard error already has its parts."""
        if self._page is not None:
            self._page.print_line(text)

    def stop(self) -> None:
        """Stop drawing and restore the terminal; may be called repeatedly. The page keeps its
        content."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._screen is not None:
            self._screen.close()

    def end(self, report: Path | None = None, text: str = "") -> None:
        """Stop, and replace the page by the report, or show this text if there is none."""
        self.stop()
        if self._page is not None:
            self._page.end(report, text)

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        if self._page is not None:
            self._page.start()
        while not self._closing.is_set():
            try:
                self._draw()
            except OSError:
                self._closing.set()  # the terminal is closed; the measurement continues
            self._closing.wait(REFRESH_S)

    def _draw(self) -> None:
        stage = self._stage
        has_readers = self._page is not None and self._page.has_readers
        if stage is None or (self._screen is None and not has_readers):
            return
        with self._load_lock:
            running = self._running
            state = running.state() if running is not None else None

        now_ns = time.monotonic_ns()
        lines = rows(stage, running, state, now_ns)
        if self._page is not None:
            self._page.show(frame_of(lines, stage, (running, state), now_ns))
        if self._screen is not None:
            self._screen.draw(lines)
