"""Closed standard streams, streams of any encoding, and an interrupt during the start."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .command import SCRIPT, Command
from .stored import only_run
from .target import CountingServer

SERVER = f"mine={shlex.quote(sys.executable)} -m http.server --bind {{host}} {{port}}"
BRIEFLY = "-d 500ms --warmup 0s"
# Interrupts the process when its command line begins to import click.
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from wsgiload.__main__ import main
main()
"""


def shell(
    command: Command, words: str, redirection: str = "", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        f"exec {shlex.quote(str(SCRIPT))} {words} {redirection}",
        shell=True,
        capture_output=True,
        check=False,
        timeout=120,
        cwd=command.folder,
        env=command.environment | variables,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_load_with_closed_streams(closed: str, command: Command, target: CountingServer) -> None:
    words = f"load {target.url} -R 50 {BRIEFLY} --json out.json"
    done = shell(command, words, closed)
    assert done.returncode in (0, 98), done.stderr
    assert json.loads((command.folder / "out.json").read_text())["outcomes"]["ok"] > 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_sweep_with_closed_streams(closed: str, command: Command) -> None:
    words = f"sweep --command {shlex.quote(SERVER)} --rates 50 {BRIEFLY} --settle 0s --limits none"
    done = shell(command, words, closed)
    assert done.returncode in (0, 98), done.stderr
    (cell,) = json.loads((only_run(command) / "summary.json").read_text())["cells"]
    assert cell["failure"] is None
    assert cell["outcomes"]["ok"] > 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "ascii:strict", "cp1252", "utf-16"])
def test_every_output_encoding(encoding: str, command: Command, target: CountingServer) -> None:
    words = f"load {target.url} -R 50 {BRIEFLY}"
    done = shell(command, f"{words} --verbose", PYTHONIOENCODING=encoding)
    assert done.returncode in (0, 98), done.stderr
    assert b"Traceback" not in done.stderr
    assert "response time" in done.stdout.decode(encoding.partition(":")[0])

    done = shell(command, f"{words} --json -", PYTHONIOENCODING=encoding)
    assert json.loads(done.stdout.decode())["outcomes"]["ok"] > 0


def test_an_interrupt_during_the_imports(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ,
    )
    assert (done.returncode, done.stderr) == (130, "wsgiload: interrupted\n")
