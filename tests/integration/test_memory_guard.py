"""wsgiload's own memory limit: a leak ends with a one-line message, completed results are stored,
and servers do not inherit the limit."""

from __future__ import annotations

import sys

import pytest

from .command import Command, read_json
from .stored import only_run

BRIEFLY = ("--duration", "300ms", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
# Runs wsgiload with a memory leak in the second trial.
LEAKY_WSGILOAD = """
import os
os.environ["WSGILOAD_OWN_MEMORY"] = "400MiB"
import wsgiload.sweeps.cell as cell
from wsgiload.cli import main

read_listen_queue, calls, leaks = cell.read_listen_queue, [], []

def leak(port):
    calls.append(port)
    while len(calls) > 1:
        leaks.append({leaked})
    return read_listen_queue(port)

cell.read_listen_queue = leak
main()
"""
ONE_LARGE_OBJECT, SMALL_OBJECT = "bytearray(8 << 30)", "{len(leaks): str(len(leaks))}"
OUT_OF_MEMORY = (
    "wsgiload: out of memory (limit: 0.4 GiB); completed results are "
    "stored; file a bug, or set WSGILOAD_OWN_MEMORY=16GiB if the experiment is very large"
)
PRINTS_LIMITS = """
import resource, sys

sys.stderr.write(f"limits {resource.getrlimit(resource.RLIMIT_DATA)[0]}\\n")
sys.stderr.flush()

def app(environ, start_response):
    start_response("200 OK", [])
    return [b""]
"""


@pytest.mark.servers
@pytest.mark.parametrize(
    ("leaked", "status"), [(ONE_LARGE_OBJECT, "failed"), (SMALL_OBJECT, "interrupted")]
)
def test_a_leak_ends_a_sweep_and_completed_cells_are_stored(
    command: Command, leaked: str, status: str
) -> None:
    program = [sys.executable, "-c", LEAKY_WSGILOAD.replace("{leaked}", leaked)]
    words = ("sweep", "--servers", "wsgiref", "--rates", "50,60", *BRIEFLY)
    result = command.run(*words, program=program)

    assert (result.code, result.messages[-1]) == (98, OUT_OF_MEMORY)
    assert "MemoryError" not in result.err

    summary = read_json(only_run(command) / "summary.json")
    assert summary["status"] == status
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["cells"][0]["outcomes"]["ok"] > 0


@pytest.mark.servers
def test_a_leak_ends_a_capacity_search_and_completed_trials_are_stored(command: Command) -> None:
    program = [sys.executable, "-c", LEAKY_WSGILOAD.replace("{leaked}", SMALL_OBJECT)]
    words = ("capacity", "--servers", "wsgiref", "--slo", "p99<1s", *BRIEFLY)
    result = command.run(*words, program=program)

    assert (result.code, result.messages[-1]) == (98, OUT_OF_MEMORY)
    assert len(list((only_run(command) / "load").glob("*.json"))) == 1


@pytest.mark.servers
def test_a_server_does_not_inherit_the_limit(command: Command) -> None:
    (command.folder / "limits.py").write_text(PRINTS_LIMITS)
    result = command.run("sweep", "limits:app", "--servers", "wsgiref", "--rates", 50, *BRIEFLY)

    log = (result.run_dir / "server" / "wsgiref@50#1.log").read_text()
    assert "limits -1" in log


def test_an_invalid_limit_is_a_usage_error(command: Command) -> None:
    program = [sys.executable, "-c", LEAKY_WSGILOAD.replace("400MiB", "much")]
    result = command.run("explain", "send-lag", program=program)

    assert (result.code, result.messages) == (
        2,
        ["wsgiload: 'much' is not a size; write it like 512MiB or 1GiB"],
    )
