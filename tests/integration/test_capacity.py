"""A capacity search from the command line: its contract, its bounds on servers whose limit is
known, its end."""

from __future__ import annotations

import json
import math
import os
import signal
import textwrap
from pathlib import Path
from typing import Any

import pytest

from .command import Command, Done, read_json, until
from .reference import inconclusive, needs_reference, reference
from .stored import schema_errors
from .target import unused_port

# Searches of a minute and more, which only a quiet host repeats.
long = pytest.mark.skipif(
    "WSGILOAD_LONG_TESTS" not in os.environ, reason="set WSGILOAD_LONG_TESTS=1 for long tests"
)

BRIEFLY = (
    "--duration",
    "2s",
    "--warmup",
    "200ms",
    "--cooldown",
    "0s",
    "--trials",
    1,
    "--width",
    "10%",
    "--settle",
    "0s",
)
# 4 threads of 20 ms.
SLEEPING = """
    import time


    def app(environ, start_response):
        time.sleep(0.020)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""
LIMIT_PER_S = 4 / 0.020


@pytest.fixture
def sleeping(tmp_path: Path) -> Path:
    """A folder with an app that holds a thread for 20 ms."""
    (tmp_path / "sleeping.py").write_text(textwrap.dedent(SLEEPING))
    return tmp_path


def only_server(document: dict[str, Any]) -> dict[str, Any]:
    (server,) = document["servers"]
    assert isinstance(server, dict)
    return server


def require_undisturbed(done: Done, server: dict[str, Any]) -> None:
    if done.code == 98 and server["verdict"]["blame"] in ("host", "client"):
        inconclusive(server["verdict"]["reasons"][0]["message"])


@needs_reference
def test_a_url_is_searched_and_everything_is_kept(command: Command) -> None:
    """Four servers of 20 ms each behind one queue serve 200 a second."""
    with reference("--hold", "20ms", "--servers", 4) as url:
        words = (
            "--url",
            url,
            "--slo",
            "p99<400ms",
            "--confirmations",
            1,
            "--confirm-duration",
            "2s",
        )
        done = command.run("capacity", *words, *BRIEFLY, "--json", "found.json")
    document = read_json(command.folder / "found.json")
    server = only_server(document)
    require_undisturbed(done, server)
    assert schema_errors("capacity-2", document) == []
    assert (document["schema_version"], document["slo"]) == (2, ["p99<400ms", "error_rate<=0.1%"])
    assert document["recommendations"] == [], "of one there is nothing to choose"
    low, high = server["bracket"]
    # In trials of 2 s the number of arrivals alone varies by 5 %.
    assert LIMIT_PER_S * 0.75 <= low < high <= LIMIT_PER_S * 1.35
    run_dir = done.run_dir
    assert read_json(run_dir / "capacity.json") == document
    assert read_json(run_dir / "run.json")["status"] == "complete"
    assert {path.stem for path in (run_dir / "load").iterdir()} == {
        trial["cell"] for trial in server["trials"]
    }
    assert server["trials"][0]["stage"] == "initial"
    assert "p99 depends on the" in done.out, "short trials say what they cost"
    assert "searching 1 server, about " in done.err.splitlines()[0]


def test_a_url_that_nobody_serves_is_the_servers_fault(command: Command) -> None:
    done = command.run(
        "capacity", "--url", f"http://127.0.0.1:{unused_port()}/", "--slo", "p99<50ms", *BRIEFLY
    )
    assert done.code == 97
    assert "16 closed-loop users got no correct response" in done.out


@pytest.mark.servers
@pytest.mark.limits
def test_a_server_is_searched_with_a_fresh_process_for_each_trial(
    command: Command, sleeping: Path
) -> None:
    words = ("sleeping:app", "--chdir", sleeping, "--servers", "waitress", "--slo", "p99<400ms")
    done = command.run("capacity", *words, *BRIEFLY, "--confirmations", 0, "--json", "found.json")
    server = only_server(read_json(command.folder / "found.json"))
    require_undisturbed(done, server)
    low, high = server["bracket"]
    assert LIMIT_PER_S * 0.75 <= low < high <= LIMIT_PER_S * 1.35
    assert (server["rate_per_s"], server["confirmed"]) == (low, None)
    assert 0 < server["at_rate"]["memory_peak_bytes"] < server["at_rate"]["memory_limit_bytes"]
    summary = done.summary
    assert schema_errors("summary-2", summary) == []
    assert schema_errors("capacity-2", read_json(done.run_dir / "capacity.json")) == []
    assert {cell["id"] for cell in summary["cells"]} == {
        trial["cell"] for trial in server["trials"] if trial["stage"] != "initial"
    }
    assert {path.stem for path in (done.run_dir / "server").iterdir()} == {
        one["cell"] for one in server["trials"]
    }
    assert command.run("report", done.run_dir).code == 0


@pytest.mark.servers
def test_which_server_to_run_is_part_of_the_document_or_why_none_is_named(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')\n")
    words = (
        "broken:app",
        "--chdir",
        tmp_path,
        "--servers",
        "wsgiref,waitress",
        "--slo",
        "p99<50ms",
    )
    done = command.run("capacity", *words, *BRIEFLY)
    assert done.code == 97
    document = read_json(done.run_dir / "capacity.json")
    assert schema_errors("capacity-2", document) == []
    (choice,) = document["recommendations"]
    assert (choice["app"], choice["objective"], choice["recommended"]) == (
        "broken:app",
        document["slo"],
        None,
    )
    assert f"No recommendation: {choice['no_recommendation']['reason']}. " in done.out
    assert "the search failed on every server" in done.out
    assert "no licence" in choice["no_recommendation"]["reason"]


@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_keeps_the_finished_trials(command: Command, number: signal.Signals) -> None:
    running = command.start(
        "capacity", "--servers", "wsgiref,waitress", "--slo", "p99<50ms", *BRIEFLY
    )
    until(lambda: "doubling" in running.err, "the first trial of the search")
    os.killpg(running.pid, number)
    done = running.end()
    assert done.code == 130
    assert "Traceback" not in done.err
    command.require_nothing_left()
    document = read_json(done.run_dir / "capacity.json")
    assert schema_errors("capacity-2", document) == []
    assert [server["rate_per_s"] for server in document["servers"]] == [None, None]
    assert sum(len(server["trials"]) for server in document["servers"]) >= 2
    assert document["recommendations"] == [], "what was cut off says nothing of the choice"
    assert document["status"] == "interrupted"
    assert {server["verdict"]["status"] for server in document["servers"]} == {"invalid"}
    assert read_json(done.run_dir / "run.json")["status"] == done.summary["status"] == "interrupted"


@long
@pytest.mark.timeout(2700)
@needs_reference
def test_f19_the_rate_of_an_exponential_queue(command: Command) -> None:
    """M/M/1 with 2 ms: the p99 is 20 ms at exactly 269.74 requests per second."""
    exact_per_s = 500 - math.log(100) / 0.020
    with reference("--hold", "exp:2ms", "--servers", 1, longest="45min") as url:
        words = (
            "--url",
            url,
            "--slo",
            "p99<=20ms",
            "--duration",
            "30s",
            "--warmup",
            "1s",
            "--cooldown",
            "0s",
        )
        done = command.start(
            "capacity", *words, "--confirm-duration", "30s", "--json", "found.json"
        ).end(2600)
    server = only_server(read_json(command.folder / "found.json"))
    require_undisturbed(done, server)
    assert server["estimate_per_s"] == pytest.approx(exact_per_s, rel=0.03)


@long
@pytest.mark.timeout(1800)
@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("name", ["waitress", "gunicorn-gthread"])
def test_a_pool_of_threads_serves_threads_by_service_time_and_does_so_twice(
    command: Command, sleeping: Path, name: str
) -> None:
    intervals = []
    for seed in (1, 2):
        words = (
            "sleeping:app",
            "--chdir",
            sleeping,
            "--servers",
            name,
            "--slo",
            "p99<300ms",
            "--seed",
            seed,
        )
        more = ("--duration", "10s", "--warmup", "1s", "--cooldown", "0s", "--confirmations", 0)
        done = command.start("capacity", *words, *more, "--json", "found.json").end(800)
        server = only_server(json.loads((command.folder / "found.json").read_text()))
        require_undisturbed(done, server)
        low, high = server["bracket"]
        assert LIMIT_PER_S * 0.9 <= low < high <= LIMIT_PER_S * 1.1
        intervals.append(server["interval_95"])
    (low, high), (other_low, other_high) = intervals
    assert max(low, other_low) <= min(high, other_high), (
        "the same search again gives another answer"
    )
