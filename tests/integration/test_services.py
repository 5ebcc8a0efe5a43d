"""A supporting service around a sweep: started first, sampled beside the server, and never left."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from wsgiload.serving.launch import free_port

from .command import Command, until

pytestmark = pytest.mark.limits

APPS = Path(__file__).parent / "apps" / "service"
BRIEFLY = ("--rates", "20", "--duration", "3s", "--warmup", "200ms", "--cooldown", "0s")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with one service and one server that asks it."""
    shutil.copytree(APPS, tmp_path, dirs_exist_ok=True)
    port = free_port()
    path = tmp_path / "wsgiload.toml"
    path.write_text(
        f'[services.db]\ncommand = "{sys.executable} backend.py {port}"\nready = {port}\n'
        f'[servers.prod]\ncommand = "{sys.executable} front.py {{port}} {port}"\n'
    )
    return path


def test_a_service_is_sampled_beside_the_server_outside_its_limits(
    command: Command, config: Path
) -> None:
    words = ("--config", config, *BRIEFLY, "--runs", 2, "--settle", "0s", "--reruns", 0)
    done = command.run("sweep", *words, cwd=config.parent)
    assert sorted(done.cells) == ["prod@20#1", "prod@20#2"]
    for cell in done.cells.values():
        assert cell["failure"] is None
        (db,) = cell["services"]
        assert (db["name"], db["cpus"] >= 1) == ("db", True)
        used = db["resources"]
        # 5 ms of CPU time for each of 20 requests a second.
        assert 0.05 < used["cpu_cores_mean"] < 0.5
        assert used["memory_peak_bytes"] > 1 << 20
        assert used["cpu_ns_per_request"] > 4_000_000
        assert used["throttled_period_ratio"] in (None, 0.0)
    assert "db CPU" in done.out
    assert "starting db on CPU" in done.err
    assert done.err.count("starting db") == 1
    assert "db CPU" in (done.run_dir / "report.html").read_text()


def test_a_killed_sweep_leaves_no_service(command: Command, config: Path) -> None:
    words = ("--config", config, "--rates", "20", "--duration", "60s")
    running = command.start("sweep", *words, cwd=config.parent)
    until(lambda: any("front.py" in line for line in command.processes().values()), "the server")
    assert any("backend.py" in line for line in command.processes().values())
    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()
    until(lambda: not command.processes() and not command.groups(), "nothing is left")


def test_a_service_that_does_not_start_is_named(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "wsgiload.toml"
    script = "print('no data folder'); raise SystemExit(3)"
    config.write_text(
        f"[services.db]\ncommand = '''{sys.executable} -c \"{script}\"'''\nready = 1\n"
    )
    done = command.run("sweep", "--config", config, "--servers", "wsgiref", *BRIEFLY)
    assert done.code == 97
    says = "the service db exited with code 3: no data folder; correct [services.db]"
    assert says in done.messages[-1]
