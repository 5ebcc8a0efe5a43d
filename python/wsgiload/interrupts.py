"""Replaces or delays interrupts during operations that must not stop halfway; names signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def replacing_interrupts(act: Callable[[], None]) -> Iterator[None]:
    """During the block, every SIGINT, SIGTERM or SIGHUP calls ``act`` instead of raising
    KeyboardInterrupt.

    Uses a handler, not a signal mask, because child processes would inherit the mask. Does nothing
    outside the main thread, which receives no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        act()

    # Ignored signals stay ignored: shells let background jobs ignore SIGINT.
    handled = [number for number in INTERRUPTS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP until the end of the block, and raise KeyboardInterrupt
    there if any arrived."""
    received: list[bool] = []
    with replacing_interrupts(lambda: received.append(True)):
        yield
    if received:
        raise KeyboardInterrupt


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
