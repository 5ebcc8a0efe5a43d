"""A terminal that is closed while a command runs in it: nobody reads any more, and what was
measured is kept."""

from __future__ import annotations

import fcntl
import os
import subprocess
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from .command import SCRIPT, Command, read_json, until
from .stored import only_run
from .target import CountingServer, wait_for


class Terminal:
    """A terminal with one command in it."""

    def __init__(self, command: Command, words: Sequence[str]) -> None:
        self._window, inside = os.openpty()
        self.process = subprocess.Popen(
            [str(SCRIPT), *words],
            cwd=command.folder,
            env=command.environment,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inside)
        os.set_blocking(self._window, False)
        self._shown = b""

    @property
    def shown(self) -> str:
        """What is to be read in it so far."""
        with suppress(OSError):
            self._shown += os.read(self._window, 1 << 16)
        return self._shown.decode()

    def close(self) -> None:
        """The kernel sends SIGHUP, and no write succeeds from now on."""
        os.close(self._window)


@contextmanager
def terminal(command: Command, *words: str) -> Iterator[Terminal]:
    started = Terminal(command, words)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def test_a_load_keeps_its_report(target: CountingServer, command: Command) -> None:
    words = ("load", target.url, "-R", "200", "-d", "60s", "--json", "out.json")
    with terminal(command, *words) as window:
        wait_for(target, 20)
        window.close()
        assert window.process.wait(30) == 130
    report = read_json(command.folder / "out.json")
    assert report["outcomes"]["ok"] >= 20
    assert "interrupted" in {reason["check"] for reason in report["verdict"]["reasons"]}
    command.require_nothing_left()


@pytest.mark.servers
def test_a_sweep_keeps_its_finished_cells(command: Command) -> None:
    briefly = ("--duration", "1s", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
    words = ("sweep", "--servers", "wsgiref", "--rates", "50,60", *briefly)
    files = ("--json", "out.json", "--html", "out.html")
    with terminal(command, *words, *files) as window:
        until(lambda: "[2/2]" in window.shown, "the second cell")
        window.close()
        assert window.process.wait(30) == 130
    summary = read_json(only_run(command) / "summary.json")
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["status"] == "interrupted"
    assert read_json(command.folder / "out.json") == summary
    assert (command.folder / "out.html").is_file()
    command.require_nothing_left()
