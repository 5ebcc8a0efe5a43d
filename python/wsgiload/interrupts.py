"""What an interrupt does while something goes on that must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def instead_of_interrupts(act: Callable[[], None]) -> Iterator[None]:
    """Within the block a SIGINT, SIGTERM or SIGHUP calls ``act``, however many come, and raises
    nothing.

    A handler, not a signal mask: children would inherit the mask. Outside the main thread no signal
    arrives, so there is nothing to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        act()

    # A shell has its jobs in the background ignore the terminal's interrupt.
    heeded = [number for number in HELD_BACK if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish the block first; a SIGINT, SIGTERM or SIGHUP that came meanwhile is raised as
    KeyboardInterrupt after it."""
    came: list[bool] = []
    with instead_of_interrupts(lambda: came.append(True)):
        yield
    if came:
        raise KeyboardInterrupt
