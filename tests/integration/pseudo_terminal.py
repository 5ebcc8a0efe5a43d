"""Runs a command on a terminal of a given size, and returns what a user would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

POLL_S = 0.05
READ_BYTES = 65_536


class Terminal:
    """A command on a pseudoterminal, whose output is drawn by a terminal emulator."""

    def __init__(
        self,
        args: Sequence[object],
        cwd: Path,
        environment: dict[str, str],
        size: tuple[int, int],
    ) -> None:
        columns, lines = size
        self.screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._stream = pyte.ByteStream(self.screen)
        self.descriptor, subordinate = pty.openpty()
        self.output = b""
        self._resize(columns, lines)

        self.process = subprocess.Popen(
            [str(arg) for arg in args],
            cwd=cwd,
            env=environment,
            stdin=subordinate,
            stdout=subordinate,
            stderr=subordinate,
            start_new_session=True,
        )
        os.close(subordinate)

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        """Resize the window."""
        self.screen.resize(lines, columns)
        self._resize(columns, lines)

    def press_ctrl_c(self) -> None:
        """Send SIGINT to the foreground job."""
        os.killpg(self.process.pid, signal.SIGINT)

    @property
    def visible_lines(self) -> list[str]:
        """The lines on the screen, without trailing blanks."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def all_lines(self) -> list[str]:
        """All lines since the start, including those that have scrolled off the screen."""
        above = [
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return [*above, *self.visible_lines]

    def wait_until(self, condition: Callable[[], bool], timeout_s: float = 120.0) -> bool:
        """Draw the output until ``condition`` returns true; False if the command ended first."""
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            if condition():
                return True
            if not self._draw():
                return condition()

        raise AssertionError("\n".join(self.visible_lines))

    def end(self, timeout_s: float = 120.0) -> int:
        """Draw the output until the command ends; returns its exit code."""
        self.wait_until(lambda: False, timeout_s)
        os.close(self.descriptor)
        return self.process.wait(timeout_s)

    def _draw(self) -> bool:
        """Draw the available output; False at its end."""
        ready, _, _ = select.select([self.descriptor], [], [], POLL_S)
        if not ready:
            return True
        try:
            piece = os.read(self.descriptor, READ_BYTES)
        except OSError:  # no process has the other end open
            return False
        self.output += piece
        self._stream.feed(piece)
        return bool(piece)
