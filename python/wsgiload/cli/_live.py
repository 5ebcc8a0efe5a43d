"""The live view: what is measured, while it is, on the terminal and as a page.

A thread of the lowest priority draws both, on the orchestrator's cores. It reads what the generator
and the sampler have anyway, and no thread that measures ever waits for it.
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
from wsgiload.cli._live_screen import Screen, may_be_live
from wsgiload.cli._output import tell
from wsgiload.sampling.running_load import LoadEvents, RunningLoad

if TYPE_CHECKING:
    from wsgiload.cli._live_page import LivePage

REFRESH_S = 0.5
LOWEST_PRIORITY = 19


@contextmanager
def live_view(command: str, *, quiet: bool, port: int | None = None) -> Iterator[LiveView]:
    """A view for as long as the block lasts, on the terminal where there is one, and as a page if
    it is given a port. A port that cannot be used is a UsageError."""
    screen = Screen() if not quiet and may_be_live() else None
    page = _page(port, command) if port is not None else None
    view = LiveView(screen, page, quiet=quiet)
    try:
        if page is not None:
            tell(f"live view: {page.url}")
            view.begin()
        yield view
    finally:
        view.stop()
        if page is not None:
            page.close()


def _page(port: int, command: str) -> LivePage:
    # A server takes its time to import, and few commands serve a page.
    from wsgiload.cli._live_page import LivePage

    return LivePage(port, command)


class LiveView(LoadEvents):
    """Draws from the first stage until it is stopped, on the terminal and for the page, as far as
    there are any; without both, it tells plain lines."""

    def __init__(
        self, screen: Screen | None = None, page: LivePage | None = None, *, quiet: bool = False
    ) -> None:
        self._screen, self._page = screen, page
        self.is_watching = screen is not None or page is not None
        self.is_plain = screen is None and not quiet
        """Whether standard error gets one plain line after another meanwhile."""
        self._stage: Stage | None = None
        self._running: RunningLoad | None = None
        # Held while the load is looked at: nobody may look at one that has ended.
        self._looking = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wsgiload-live", daemon=True)

    def begin(self) -> None:
        """Draw from now on."""
        if self.is_watching and self._thread.ident is None and not self._closing.is_set():
            self._thread.start()

    def show(self, stage: Stage) -> None:
        """This is under way from now on. Call it on the orchestrator's cores: the threads of the
        view stay on those."""
        self._stage = stage
        if self._closing.is_set() or not self.is_watching:
            return
        if self._screen is not None and not self._screen.is_open:
            self._screen.start()
        self.begin()
        self._stay_on(os.sched_getaffinity(0))

    def _stay_on(self, cpus: set[int]) -> None:
        own = self._thread.native_id
        threads = ({own} if own is not None else set()) | (
            self._page.threads if self._page is not None else set()
        )
        for thread in threads:
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, cpus)

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
        self.tell_page(text)
        if self._screen is not None and self._screen.is_open:
            self._screen.tell(text)
        elif self._screen is not None or self.is_plain:
            tell(text)

    def tell_page(self, text: str) -> None:
        """A line of which standard error has got its parts."""
        if self._page is not None:
            self._page.tell(text)

    def stop(self) -> None:
        """Draw no more, and give the terminal back; may be called again. The page keeps what it
        shows."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._screen is not None:
            self._screen.close()

    def end(self, report: Path | None = None, text: str = "") -> None:
        """The page becomes the report, or shows this text where there is none."""
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
                self._closing.set()  # the terminal is gone, and the measurement is more important
            self._closing.wait(REFRESH_S)

    def _draw(self) -> None:
        stage = self._stage
        has_readers = self._page is not None and self._page.has_readers
        if stage is None or (self._screen is None and not has_readers):
            return
        with self._looking:
            running = self._running
            look = running.state() if running is not None else None

        now_ns = time.monotonic_ns()
        lines = rows(stage, running, look, now_ns)
        if self._page is not None:
            self._page.show(frame_of(lines, stage, (running, look), now_ns))
        if self._screen is not None:
            self._screen.draw(lines)
