"""Exit codes do not depend on whether stdout is closed, as with ``| head -1``."""

from __future__ import annotations

import os
import subprocess

import pytest

from .command import SCRIPT, Command, read_json
from .target import CountingServer, unused_port


def run_unread(command: Command, *words: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose stdout has no reader."""
    reading, writing = os.pipe()
    os.close(reading)

    result = subprocess.run(
        [SCRIPT, *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        cwd=command.folder,
        env=command.environment,
    )

    os.close(writing)
    return result.returncode, result.stderr


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "explain send-lag",
        "servers list",
        "servers list --json",
        "sweep --dry-run --json -",
    ],
)
def test_a_command_succeeds_without_a_reader(command: Command, words: str) -> None:
    assert run_unread(command, *words.split()) == (0, "")


def test_a_load_without_a_reader_still_fails_its_threshold(
    target: CountingServer, command: Command
) -> None:
    words = ("load", target.url, "-R", "100", "-d", "300ms", "--json", "out.json", "--quiet")
    code, stderr = run_unread(command, *words, "--threshold", "goodput>=1000000")

    status = read_json(command.folder / "out.json")["verdict"]["status"]
    assert code == (98 if status == "invalid" else 99)
    assert "threshold goodput>=1000000 failed" in stderr

    assert run_unread(command, "load", f"http://127.0.0.1:{unused_port()}/", "-d", "100ms")[0] == 97


@pytest.mark.servers
def test_a_sweep_without_a_reader_still_fails_its_threshold(command: Command) -> None:
    load = ("--duration", "300ms", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
    words = ("sweep", "--servers", "wsgiref", "--rates", "50", *load, "--json", "out.json")
    code, stderr = run_unread(command, *words, "--threshold", "goodput>=1000000")

    assert code in (98, 99)
    assert "threshold goodput>=1000000 failed" in stderr
    assert len(read_json(command.folder / "out.json")["cells"]) == 1
