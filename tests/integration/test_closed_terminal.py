"""Commands keep their measurements if their terminal is closed."""

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
from .target import CountingServer, wait_for_responses


class Terminal:
    """A terminal that runs one command."""

    def __init__(self, command: Command, args: Sequence[str]) -> None:
        self._window, tty = os.openpty()
        self.process = subprocess.Popen(
            [str(SCRIPT), *args],
            cwd=command.folder,
            env=command.environment,
            stdin=tty,
            stdout=tty,
            stderr=tty,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(tty)
        os.set_blocking(self._window, False)
        self._output = b""

    @property
    def output(self) -> str:
        """The output so far."""
        with suppress(OSError):
            self._output += os.read(self._window, 1 << 16)
        return self._output.decode()

    def close(self) -> None:
        """Close the terminal: the kernel sends SIGHUP, and all further writes fail."""
        os.close(self._window)


@contextmanager
def terminal(command: Command, *args: str) -> Iterator[Terminal]:
    window = Terminal(command, args)
    try:
        yield window
    finally:
        window.process.kill()
        window.process.wait()


def test_a_load_writes_its_report_after_the_terminal_closes(
    target: CountingServer, command: Command
) -> None:
    args = ("load", target.url, "-R", "200", "-d", "60s", "--json", "out.json")
    with terminal(command, *args) as window:
        wait_for_responses(target, 20)
        window.close()
        assert window.process.wait(30) == 130

    report = read_json(command.folder / "out.json")
    assert report["outcomes"]["ok"] >= 20
    assert "interrupted" in {reason["check"] for reason in report["verdict"]["reasons"]}
    command.require_no_leftovers()


@pytest.mark.servers
def test_a_sweep_keeps_its_finished_cells_after_the_terminal_closes(command: Command) -> None:
    briefly = ("--duration", "1s", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
    args = ("sweep", "--servers", "wsgiref", "--rates", "50,60", *briefly)
    files = ("--json", "out.json", "--html", "out.html")
    with terminal(command, *args, *files) as window:
        until(lambda: "[2/2]" in window.output, "the second cell")
        window.close()
        assert window.process.wait(30) == 130

    summary = read_json(only_run(command) / "summary.json")
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["status"] == "interrupted"
    assert read_json(command.folder / "out.json") == summary
    assert (command.folder / "out.html").is_file()
    command.require_no_leftovers()
