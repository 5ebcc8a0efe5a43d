"""Capacity searches from the command line: documents, exit codes, interrupts, and the capacity of
servers whose limit is known."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import textwrap
from pathlib import Path
from typing import Any

import pytest

from .command import Command, CommandResult, read_json, until
from .reference import inconclusive, needs_reference, reference
from .stored import schema_errors
from .target import unused_port

# Searches of a minute or more, whose results are reproducible only on a quiet host.
long = pytest.mark.skipif(
    "WSGILOAD_LONG_TESTS" not in os.environ, reason="set WSGILOAD_LONG_TESTS=1 for long tests"
)

BRIEFLY = shlex.split(
    "--duration 2s --warmup 200ms --cooldown 0s --width 20% --settle 0s --budget 1m"
)
SLEEPING = """
    import time


    def app(environ, start_response):
        time.sleep(0.020)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""
# With 4 threads.
LIMIT_PER_S = 4 / 0.020


@pytest.fixture
def sleeping(tmp_path: Path) -> Path:
    """A folder with an app that sleeps for 20 ms per request."""
    (tmp_path / "sleeping.py").write_text(textwrap.dedent(SLEEPING))
    return tmp_path


def only_server(document: dict[str, Any]) -> dict[str, Any]:
    (server,) = document["servers"]
    assert isinstance(server, dict)
    return server


def require_undisturbed(result: CommandResult, server: dict[str, Any]) -> None:
    if result.code == 98 and server["verdict"]["blame"] in ("host", "client"):
        inconclusive(server["verdict"]["reasons"][0]["message"])


@needs_reference
def test_a_search_against_a_url_stores_all_results(command: Command) -> None:
    """Four servers of 20 ms each behind one queue serve 200 requests per second."""
    with reference("--hold", "20ms", "--servers", 4) as url:
        args = shlex.split(f"--url {url} --slo p99<400ms")
        result = command.run("capacity", *args, *BRIEFLY, "--json", "found.json")

    document = read_json(command.folder / "found.json")
    server = only_server(document)
    require_undisturbed(result, server)
    assert schema_errors("capacity-1", document) == []
    assert (document["schema_version"], document["slo"]) == (1, ["p99<400ms", "error_rate<=0.1%"])
    assert document["recommendations"] == [], "a single server needs no recommendation"

    # In trials of 2 s, the number of arrivals alone varies by 5 %.
    assert LIMIT_PER_S * 0.75 <= server["rate_per_s"] <= LIMIT_PER_S * 1.35
    assert server["interval_95"][0] <= server["rate_per_s"] <= server["interval_95"][1]

    run_dir = result.run_dir
    assert read_json(run_dir / "capacity.json") == document
    assert read_json(run_dir / "run.json")["status"] == "complete"
    assert {path.stem for path in (run_dir / "load").iterdir()} == {
        trial["cell"] for trial in server["trials"]
    }
    assert server["trials"][0]["stage"] == "initial"
    assert "capacity search on 1 server, at most 60 s" in result.err.splitlines()[0]


def test_a_url_without_a_server_is_blamed_on_the_server(command: Command) -> None:
    result = command.run(
        "capacity", "--url", f"http://127.0.0.1:{unused_port()}/", "--slo", "p99<50ms", *BRIEFLY
    )
    assert result.code == 97
    assert "16 closed-loop users got no correct response" in result.out


@pytest.mark.servers
@pytest.mark.limits
def test_a_search_starts_a_new_server_process_for_each_trial(
    command: Command, sleeping: Path
) -> None:
    args = ("sleeping:app", "--chdir", sleeping, "--servers", "waitress", "--slo", "p99<400ms")
    result = command.run("capacity", *args, *BRIEFLY, "--json", "found.json")

    server = only_server(read_json(command.folder / "found.json"))
    require_undisturbed(result, server)

    assert LIMIT_PER_S * 0.75 <= server["rate_per_s"] <= LIMIT_PER_S * 1.35
    assert 0 < server["at_rate"]["memory_peak_bytes"] < server["at_rate"]["memory_limit_bytes"]

    summary = result.summary
    assert schema_errors("summary-1", summary) == []
    assert schema_errors("capacity-1", read_json(result.run_dir / "capacity.json")) == []
    assert {cell["id"] for cell in summary["cells"]} == {
        trial["cell"] for trial in server["trials"] if trial["stage"] != "initial"
    }
    assert {path.stem for path in (result.run_dir / "server").iterdir()} == {
        trial["cell"] for trial in server["trials"]
    }
    assert command.run("report", result.run_dir).code == 0


@pytest.mark.servers
def test_the_document_states_why_no_server_is_recommended(command: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')\n")
    options = shlex.split("--servers wsgiref,waitress --slo p99<50ms --budget 2m")
    args = ("broken:app", "--chdir", tmp_path)
    result = command.run("capacity", *args, *BRIEFLY, *options)

    assert result.code == 97

    document = read_json(result.run_dir / "capacity.json")
    assert schema_errors("capacity-1", document) == []

    (recommendation,) = document["recommendations"]
    assert recommendation["app"] == "broken:app"
    assert recommendation["objective"] == document["slo"]
    assert recommendation["recommended"] is None

    reason = recommendation["no_recommendation"]["reason"]
    assert f"No recommendation: {reason}. " in result.out
    assert "the search failed on every server" in result.out
    assert "no licence" in reason


@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_keeps_the_finished_trials(command: Command, number: signal.Signals) -> None:
    running = command.start(
        "capacity", "--servers", "wsgiref,waitress", "--slo", "p99<50ms", *BRIEFLY, "--budget", "2m"
    )
    until(lambda: "approach" in running.err, "the first trial of the search")
    os.killpg(running.pid, number)
    result = running.end()

    assert result.code == 130
    assert "Traceback" not in result.err
    command.require_no_leftovers()

    document = read_json(result.run_dir / "capacity.json")
    assert schema_errors("capacity-1", document) == []
    assert [server["rate_per_s"] for server in document["servers"]] == [None, None]
    assert sum(len(server["trials"]) for server in document["servers"]) >= 2
    assert document["recommendations"] == [], "an interrupted search recommends nothing"
    assert document["status"] == "interrupted"
    assert {server["verdict"]["status"] for server in document["servers"]} == {"invalid"}
    assert (
        read_json(result.run_dir / "run.json")["status"]
        == result.summary["status"]
        == "interrupted"
    )


@long
@pytest.mark.timeout(600)
@needs_reference
def test_f19_the_capacity_of_an_exponential_queue_matches_the_formula(command: Command) -> None:
    """M/M/1 with 2 ms: p99 is 20 ms at exactly 269.74 requests per second."""
    exact_per_s = 500 - math.log(100) / 0.020
    with reference("--hold", "exp:2ms", "--servers", 1, longest="8min") as url:
        args = shlex.split(f"--url {url} --slo p99<=20ms --json found.json")
        result = command.start("capacity", *args).end(300)

    server = only_server(read_json(command.folder / "found.json"))
    require_undisturbed(result, server)
    assert server["rate_per_s"] == pytest.approx(exact_per_s, rel=0.1)
    low, high = server["interval_95"]
    assert low <= exact_per_s <= high


@long
@pytest.mark.timeout(1200)
@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("name", ["waitress", "gunicorn-gthread"])
def test_two_searches_find_the_capacity_of_a_thread_pool(
    command: Command, sleeping: Path, name: str
) -> None:
    """The capacity is the number of threads divided by the service time."""
    intervals = []
    for seed in (1, 2):
        args = ("sleeping:app", "--chdir", sleeping, "--servers", name, "--slo", "p99<300ms")
        more = ("--seed", seed, "--json", "found.json")
        result = command.start("capacity", *args, *more).end(400)

        server = only_server(json.loads((command.folder / "found.json").read_text()))
        require_undisturbed(result, server)
        assert LIMIT_PER_S * 0.9 <= server["rate_per_s"] <= LIMIT_PER_S * 1.1
        intervals.append(server["interval_95"])

    (low, high), (other_low, other_high) = intervals
    assert max(low, other_low) <= min(high, other_high), "the confidence intervals are disjoint"
