"""Whole sweeps inside a guest of ``make test-vm``: cgroup v2 only, with or without rights."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..integration.command import Command, until

pytestmark = pytest.mark.skipif(
    "WSGILOAD_GUEST" not in os.environ, reason="runs in the guests of `make test-vm`"
)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """The command line, in an empty folder; whatever is left at the end fails the test, and is
    ended."""
    command = Command(tmp_path / "command")
    try:
        yield command
        command.require_no_leftovers()
    finally:
        command.clean_up()


def test_the_guest_has_the_second_version_of_control_groups_and_no_other() -> None:
    kinds = {
        line.split(" - ")[1].split()[0]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    }
    assert "cgroup2" in kinds and "cgroup" not in kinds


def test_a_sweep_holds_every_limit_that_it_names(command: Command) -> None:
    words = (
        "--servers",
        "waitress",
        "--rates",
        20,
        "--duration",
        "2s",
        "--warmup",
        "0s",
        "--cooldown",
        "0s",
    )
    done = command.run("sweep", *words, "--memory", "128MiB", "--pids", 100)
    # an emulated machine is no place for exact send times: the verdict may be "invalid"
    assert done.code in (0, 98), done.err
    for cell in done.cells.values():
        limits = cell["limits"]
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
        assert limits["backend"] == "cgroup-v2" and limits["not_enforced"] == []
        assert limits["read_back"]["effective_memory_bytes"] == 128 * 1024**2
        assert limits["read_back"]["pids"] == 100
        assert cell["resources"]["oom_kills"] == 0
        assert cell["resources"]["cpu_cores_mean"] > 0
        assert cell["server_exit"]["clean"]
    assert list(done.cells) == ["waitress@20#1"]


def test_nothing_outlives_a_sweep_that_is_killed(command: Command) -> None:
    words = ("--servers", "wsgiref", "--rates", 20, "--duration", "60s", "--warmup", "0s")
    running = command.start("sweep", *words)
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "its load",
    )
    assert command.groups() != []
    os.kill(running.pid, signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    until(lambda: command.processes() == {} and command.groups() == [], "the end of everything")
    for path in command.temporary.iterdir():  # which only the next sweep would remove
        path.rmdir()
