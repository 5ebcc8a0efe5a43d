"""A leak of ours ends at our own limit: in one line, with what was measured, and without a trace in
the servers, which have limits of their own."""

from __future__ import annotations

import sys

import pytest

from .command import Command, read_json
from .stored import only_run

BRIEFLY = ("--duration", "300ms", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
# The orchestrator as it is, but for a leak in the second of its trials.
LEAKS = """
import os
os.environ["WSGILOAD_OWN_MEMORY"] = "400MiB"
import wsgiload.sweeps.cell as cell
from wsgiload.cli import main

usual, asked, kept = cell.read_listen_queue, [], []

def leak(port):
    asked.append(port)
    while len(asked) > 1:
        kept.append({leaked})
    return usual(port)

cell.read_listen_queue = leak
main()
"""
AT_ONCE, IN_SMALL_PIECES = "bytearray(8 << 30)", "{len(kept): str(len(kept))}"
SAYS = (
    "wsgiload: out of memory (limit: 0.4 GiB); completed results are "
    "stored; file a bug, or set WSGILOAD_OWN_MEMORY=16GiB if the experiment is very large"
)
TELLS = """
import resource, sys

sys.stderr.write(f"limits {resource.getrlimit(resource.RLIMIT_DATA)[0]}\\n")
sys.stderr.flush()

def app(environ, start_response):
    start_response("200 OK", [])
    return [b""]
"""


@pytest.mark.servers
@pytest.mark.parametrize(
    ("leaked", "status"), [(AT_ONCE, "failed"), (IN_SMALL_PIECES, "interrupted")]
)
def test_a_leak_ends_a_sweep_and_keeps_its_cells(
    command: Command, leaked: str, status: str
) -> None:
    program = [sys.executable, "-c", LEAKS.replace("{leaked}", leaked)]
    words = ("sweep", "--servers", "wsgiref", "--rates", "50,60", *BRIEFLY)
    done = command.run(*words, program=program)
    assert (done.code, done.messages[-1]) == (98, SAYS)
    assert "MemoryError" not in done.err
    summary = read_json(only_run(command) / "summary.json")
    assert summary["status"] == status
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["cells"][0]["outcomes"]["ok"] > 0


@pytest.mark.servers
def test_a_leak_ends_a_capacity_search_and_keeps_its_trials(command: Command) -> None:
    program = [sys.executable, "-c", LEAKS.replace("{leaked}", IN_SMALL_PIECES)]
    done = command.run(
        *("capacity", "--servers", "wsgiref", "--slo", "p99<1s", *BRIEFLY), program=program
    )
    assert (done.code, done.messages[-1]) == (98, SAYS)
    assert len(list((only_run(command) / "load").glob("*.json"))) == 1


@pytest.mark.servers
def test_a_server_does_not_inherit_the_limit(command: Command) -> None:
    (command.folder / "tells.py").write_text(TELLS)
    done = command.run("sweep", "tells:app", "--servers", "wsgiref", "--rates", 50, *BRIEFLY)
    log = (done.run_dir / "server" / "wsgiref@50#1.log").read_text()
    assert "limits -1" in log


def test_a_limit_that_is_none_is_a_usage_error(command: Command) -> None:
    program = [sys.executable, "-c", LEAKS.replace("400MiB", "much")]
    done = command.run("explain", "send-lag", program=program)
    assert (done.code, done.messages) == (
        2,
        ["wsgiload: 'much' is not a size; write it like 512MiB or 1GiB"],
    )
