"""Whole sweeps in a guest of ``make test-vm``, which has only cgroup v2, as root or unprivileged."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..integration.command import Command, until
from ..integration.other_user import LOAD, place_for, require_everything_ran_as

pytestmark = pytest.mark.skipif(
    "WSGILOAD_GUEST" not in os.environ, reason="runs in the guests of `make test-vm`"
)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Runs wsgiload in an empty directory. Leftover processes, cgroups and temporary files fail the
    test."""
    command = Command(tmp_path / "command")
    try:
        yield command
        command.require_no_leftovers()
    finally:
        command.clean_up()


def test_the_guest_has_only_cgroup_v2() -> None:
    kinds = {
        line.split(" - ")[1].split()[0]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    }
    assert "cgroup2" in kinds and "cgroup" not in kinds


def test_a_sweep_enforces_every_limit_that_it_reports(command: Command) -> None:
    load = shlex.split("--servers waitress --rates 20 --duration 2s --warmup 0s --cooldown 0s")

    sweep = command.run("sweep", *load, "--memory", "128MiB", "--pids", 100)

    # The verdict may be "invalid", because send times are inaccurate in an emulated machine.
    assert sweep.code in (0, 98), sweep.err
    for cell in sweep.cells.values():
        limits = cell["limits"]
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
        assert limits["backend"] == "cgroup-v2" and limits["not_enforced"] == []
        assert limits["read_back"]["effective_memory_bytes"] == 128 * 1024**2
        assert limits["read_back"]["pids"] == 100
        assert cell["resources"]["oom_kills"] == 0
        assert cell["resources"]["cpu_cores_mean"] > 0
        assert cell["server_exit"]["clean"]
    assert list(sweep.cells) == ["waitress@20#1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start servers as another user")
@pytest.mark.parametrize("user", ["nobody", "54321"])
def test_another_user_runs_the_app_within_every_limit(user: str) -> None:
    with place_for(user) as place:
        sweep = place.run(
            *("sweep", "who:app", "--servers", "wsgiref,own", *LOAD, "--pythonpath", "more"),
            *("--memory", "128MiB", "--pids", 50, "--env", "SETTING=given"),
        )
        assert sweep.code in (0, 98), sweep.err
        require_everything_ran_as(place, sweep)
        assert {cell["limits"]["backend"] for cell in sweep.cells.values()} == {"cgroup-v2"}


def test_a_killed_sweep_leaves_no_process_and_no_group(command: Command) -> None:
    load = shlex.split("--servers wsgiref --rates 20 --duration 60s --warmup 0s")
    sweep = command.start("sweep", *load)
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "its load",
    )
    assert command.groups() != []

    os.kill(sweep.pid, signal.SIGKILL)

    assert sweep.end().code == -signal.SIGKILL
    until(lambda: command.processes() == {} and command.groups() == [], "the end of everything")
    # Temporary directories would be removed by the next sweep.
    for path in command.temporary.iterdir():
        path.rmdir()
