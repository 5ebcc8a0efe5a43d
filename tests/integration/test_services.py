"""Supporting services of a sweep: started before the servers, sampled like them, always stopped."""

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
    """A configuration file with a service and a server that calls it."""
    shutil.copytree(APPS, tmp_path, dirs_exist_ok=True)
    port = free_port()
    path = tmp_path / "wsgiload.toml"
    path.write_text(
        f'[services.db]\ncommand = "{sys.executable} backend.py {port}"\nready = {port}\n'
        f'[servers.prod]\ncommand = "{sys.executable} front.py {{port}} {port}"\n'
    )
    return path


def test_a_service_is_sampled_and_runs_outside_the_servers_limits(
    command: Command, config: Path
) -> None:
    words = ("--config", config, *BRIEFLY, "--runs", 2, "--settle", "0s")
    result = command.run("sweep", *words, cwd=config.parent)

    assert sorted(result.cells) == ["prod@20#1", "prod@20#2"]
    for cell in result.cells.values():
        assert cell["failure"] is None
        (db,) = cell["services"]
        assert (db["name"], db["cpus"] >= 1) == ("db", True)
        resources = db["resources"]
        # 5 ms of CPU time per request, at 20 requests per second.
        assert 0.05 < resources["cpu_cores_mean"] < 0.5
        assert resources["memory_peak_bytes"] > 1 << 20
        assert resources["cpu_ns_per_request"] > 4_000_000
        assert resources["throttled_period_ratio"] in (None, 0.0)

    assert "db CPU" in result.out
    assert "starting db on CPU" in result.err
    assert result.err.count("starting db") == 1
    assert "db CPU" in (result.run_dir / "report.html").read_text()


def test_a_killed_sweep_leaves_no_service(command: Command, config: Path) -> None:
    words = ("--config", config, "--rates", "20", "--duration", "60s")
    running = command.start("sweep", *words, cwd=config.parent)
    until(lambda: any("front.py" in line for line in command.processes().values()), "the server")
    assert any("backend.py" in line for line in command.processes().values())

    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()
    until(
        lambda: not command.processes() and not command.groups(),
        "the end of all processes and groups",
    )


def test_a_service_that_does_not_start_is_reported(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "wsgiload.toml"
    script = "print('no data directory'); raise SystemExit(3)"
    config.write_text(
        f"[services.db]\ncommand = '''{sys.executable} -c \"{script}\"'''\nready = 1\n"
    )

    result = command.run("sweep", "--config", config, "--servers", "wsgiref", *BRIEFLY)
    assert result.code == 97
    message = "the service db exited with code 3: no data directory; correct [services.db]"
    assert message in result.messages[-1]
