"""Whole sweeps in a guest of ``make test-vm``, which has only cgroup v2, as root or unprivileged."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..integration.command import Command, until

pytestmark = pytest.mark.skipif(
    "WSGILOAD_GUEST" not in os.environ, reason="runs in the guests of `make test-vm`"
)

NOBODY = 65534
# Writes down what it finds out about itself, then serves.
SERVER = """
import json, os, pathlib, sys
from wsgiref.simple_server import make_server

status = pathlib.Path("/proc/self/status").read_text().splitlines()
facts = {
    "users": os.getresuid(),
    "groups": os.getresgid(),
    "limited": "wsgiload-" in pathlib.Path("/proc/self/cgroup").read_text(),
    "capabilities": next(line.split()[1] for line in status if line.startswith("CapEff")),
}
pathlib.Path("seen").write_text(json.dumps(facts))

def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

make_server("127.0.0.1", int(sys.argv[1]), app).serve_forever()
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Runs wsgiload in an empty directory. Leftover processes, cgroups and temporary files fail the
    test."""
    yield from running_in(tmp_path)


@pytest.fixture
def reachable_command() -> Iterator[Command]:
    """The same in a directory that every user can reach; only root can reach pytest's."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        yield from running_in(Path(place))


def running_in(place: Path) -> Iterator[Command]:
    """A command whose leftovers fail the test."""
    command = Command(place / "command")
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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_server_of_another_user_has_its_limits(reachable_command: Command) -> None:
    command = reachable_command
    (command.folder / "server.py").write_text(SERVER)
    os.chown(command.folder, NOBODY, NOBODY)
    load = shlex.split("--rates 20 --duration 2s --warmup 0s --cooldown 0s --memory 128MiB")
    server = f"own={sys.executable} server.py {{port}}"

    sweep = command.run("sweep", "--user", "nobody", "--command", server, *load, "--pids", 100)

    assert sweep.code in (0, 98), sweep.err
    [cell] = sweep.cells.values()
    limits = cell["limits"]
    assert cell["failure"] is None
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert limits["backend"] == "cgroup-v2" and limits["not_enforced"] == []
    assert limits["read_back"]["effective_memory_bytes"] == 128 * 1024**2
    assert limits["read_back"]["pids"] == 100
    seen = command.folder / "seen"
    assert json.loads(seen.read_text()) == {
        "users": [NOBODY] * 3,
        "groups": [NOBODY] * 3,
        "limited": True,
        "capabilities": "0" * 16,
    }
    assert seen.stat().st_uid == NOBODY and sweep.run_dir.stat().st_uid == 0


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
