"""Each cause, made on purpose with a real server, has its fingerprint and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .command import Command, CommandResult, until

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--quiet")
# Others that use more of the machine than this are what a test would find instead of its own cause.
FOREIGN_CPU = 0.1

LISTENS_FOR_ONE = """
    import os, socket, time

    for name in os.listdir("/proc/self/fd"):
        try:
            listener = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listener.listen(1)
        listener.close()

    def app(environ, start_response):
        time.sleep(0.015)
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
READS_MORE_THAN_FITS = """
    import os, random

    CHUNK = 12 << 20
    file = os.open(os.path.join(os.path.dirname(__file__), "large"), os.O_RDONLY)
    chance = random.Random(1)

    def app(environ, start_response):
        os.pread(file, CHUNK, chance.randrange(0, (300 << 20) - CHUNK))
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
HUNGRY_ONCE = """
    from pathlib import Path

    FED = Path(__file__).with_name("fed")
    count = 0

    def app(environ, start_response):
        global count
        count += 1
        if count > 20 and not FED.exists():
            FED.touch()
            b"x" * (200 << int("20"))
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""


COLLECTS_GARBAGE = """
    import gc, time

    gc.disable()
    everything = []
    length_s = 0.0
    while length_s < 0.15:
        everything += [[n] for n in range(200_000)]
        began_s = time.perf_counter()
        gc.collect()
        length_s = time.perf_counter() - began_s
    count = 0

    def app(environ, start_response):
        global count
        count += 1
        if count % 100 == 0:
            gc.collect()
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""


def write_app(command: Command, text: str) -> str:
    (command.folder / "made.py").write_text(textwrap.dedent(text))
    return "made:app"


def found(done: CommandResult) -> dict[str, Any]:
    """The attribution of the only cell."""
    (cell,) = done.cells.values()
    attribution: dict[str, Any] = cell["attribution"]
    sys.stdout.write(f"{cell['verdict']['reasons']}\n{attribution}\n")
    return attribution


def require_only(done: CommandResult, name: str) -> dict[str, Any]:
    """That fingerprint and no other; whatever a disturbed host adds or hides is not held against
    it."""
    attribution = found(done)
    names = {fingerprint["name"] for fingerprint in attribution["fingerprints"]}
    if names != {name}:
        skip_if_disturbed(done, names)
    assert names == {name}
    assert "Coincided with" in done.out
    return attribution


def skip_if_disturbed(done: CommandResult, names: set[str]) -> None:
    """INCONCLUSIVE where others, or the hypervisor, had enough of the machine to be what was
    found."""
    (cell,) = done.cells.values()
    foreign = cell["attribution"]["other_cpu_ratio"]
    if foreign is not None and foreign > FOREIGN_CPU:
        pytest.skip(
            f"INCONCLUSIVE(host): others used {foreign:.0%} of the machine's CPU time; found "
            f"{sorted(names)}"
        )
    for reason in cell["verdict"]["reasons"]:
        if reason["check"] == "steal" and reason["level"] == "invalid":
            pytest.skip(f"INCONCLUSIVE(host): {reason['message']}; found {sorted(names)}")


def under_load(command: Command, *words: object, act: Callable[[], None]) -> CommandResult:
    """A sweep of one cell in whose load something is done to the server, a second after it
    began."""
    running = command.start("sweep", *words, *BRIEFLY)
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "the load",
    )
    time.sleep(1.0)
    act()
    done = running.end()
    command.require_no_leftovers()
    return done


def server_pids(command: Command) -> list[int]:
    """The processes in the server's group."""
    found: set[int] = set()
    for group in command.groups():
        with suppress(OSError):
            found |= {int(word) for word in (group / "cgroup.procs").read_text().split()}
    return sorted(found)


def test_a_quota(command: Command) -> None:
    load = ("--rates", 300, "--max-connections", 20, "--duration", "6s", "--timeout", "1s")
    done = command.run(
        "sweep", "--app-name", "cpu", "--servers", "waitress", "--cpus", 0.3, *load, *BRIEFLY
    )
    attribution = require_only(done, "throttling")
    (throttled,) = [one for one in attribution["exposures"] if one["event"] == "throttled"]
    assert throttled["slowest"]["value"] > 0.9
    assert throttled["slowest"]["low"] is not None


def test_a_neighbour_on_the_servers_core(command: Command) -> None:
    neighbours: list[subprocess.Popen[bytes]] = []

    def move_in() -> None:
        busy = (
            "import os, time; os.sched_setaffinity(0, [1]); end = time.monotonic() + "
            "3\nwhile time.monotonic() < end: 1"
        )
        neighbours.append(subprocess.Popen([sys.executable, "-c", busy]))

    placed = ("--server-cpus", "1", "--client-cpus", "0")
    words = (
        "--app-name",
        "cpu",
        "--servers",
        "waitress",
        "--rates",
        100,
        "--duration",
        "4s",
        *placed,
    )
    try:
        done = under_load(command, *words, act=move_in)
    finally:
        for neighbour in neighbours:
            neighbour.wait()
    attribution = found(done)
    assert [one["name"] for one in attribution["fingerprints"]] == ["contention"]
    assert attribution["other_cpu_ratio"] > 0.2
    (cell,) = done.cells.values()
    assert "contaminated" in {reason["check"] for reason in cell["verdict"]["reasons"]}


def test_a_worker_that_is_stopped(command: Command) -> None:
    def stop_for_a_while() -> None:
        pids = server_pids(command)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    words = ("--servers", "gunicorn-sync", "--workers", 1, "--rates", 100, "--duration", "4s")
    done = under_load(command, *words, act=stop_for_a_while)
    attribution = require_only(done, "pause")
    (paused,) = [one for one in attribution["exposures"] if one["event"] == "paused"]
    assert paused["slowest"]["value"] > 0.9 > paused["all"]["value"]


def test_a_server_that_collects_garbage(command: Command) -> None:
    app = write_app(command, COLLECTS_GARBAGE)
    words = ("--servers", "waitress", "--rates", 50, "--duration", "9s")
    done = command.run("sweep", app, *words, *BRIEFLY)
    (paused,) = require_only(done, "busy_pause")["fingerprints"]
    assert 3 <= paused["value"] <= 5
    assert "garbage collection" in paused["sentence"]


def test_a_backlog_of_one(command: Command) -> None:
    app = write_app(command, LISTENS_FOR_ONE)
    words = ("--servers", "gunicorn-sync", "--workers", 1, "--rates", 45, "--duration", "5s")
    done = command.run("sweep", app, *words, *BRIEFLY)
    attribution = require_only(done, "backlog_overflow")
    (overflow,) = attribution["fingerprints"]
    assert "(backlog 1)" in overflow["sentence"]
    assert "connections took about 1, 3 or 7 s" in overflow["sentence"]


def test_a_server_that_defers_accepting_turns_nobody_away(command: Command) -> None:
    """uWSGI's socket drops the bare acknowledgement of each connection, and then makes the
    connection all the same."""
    words = ("--servers", "uwsgi-http-socket", "--rates", 50, "--duration", "2s")
    (cell,) = command.run("sweep", *words, *BRIEFLY).cells.values()
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert cell["resources"]["listen_drops"] == 0
    assert "backlog_overflow" not in [
        found["name"] for found in cell["attribution"]["fingerprints"]
    ]


def test_less_memory_than_the_server_reads(command: Command) -> None:
    large = command.folder / "large"
    with large.open("wb") as file:
        for _ in range(300):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        # What is in memory already would be charged to this process, and cost the server nothing.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    app = write_app(command, READS_MORE_THAN_FITS)
    words = (
        "--servers",
        "gunicorn-sync",
        "--workers",
        1,
        "--memory",
        "64MiB",
        "--rates",
        100,
        "--duration",
        "4s",
    )
    done = command.run("sweep", app, *words, *BRIEFLY)
    attribution = require_only(done, "memory_pressure")
    assert attribution["fingerprints"][0]["value"] > 0.05


def test_a_worker_that_is_killed_for_want_of_memory(command: Command) -> None:
    app = write_app(command, HUNGRY_ONCE)
    words = ("--servers", "gunicorn-sync", "--memory", "96MiB", "--rates", 50, "--duration", "3s")
    done = command.run("sweep", app, *words, *BRIEFLY)
    (kill,) = require_only(done, "oom_kill")["fingerprints"]
    assert kill["value"] == 1


def test_one_busy_worker_of_several(command: Command) -> None:
    words = (
        "--app-name",
        "cpu",
        "--servers",
        "gunicorn-gthread",
        "--workers",
        3,
        "-c",
        1,
        "--duration",
        "4s",
    )
    done = command.run("sweep", *words, *BRIEFLY)
    attribution = require_only(done, "worker_imbalance")
    assert attribution["worker_imbalance"] > 0.9


def test_nothing_on_purpose_is_nothing_found(command: Command) -> None:
    done = command.run(
        "sweep", "--servers", "waitress", "--rates", 200, "--duration", "3s", *BRIEFLY
    )
    attribution = found(done)
    if attribution["fingerprints"]:
        skip_if_disturbed(
            done, {fingerprint["name"] for fingerprint in attribution["fingerprints"]}
        )
    assert attribution["fingerprints"] == []
    run_dir: Path = done.run_dir
    client = (run_dir / "client.csv").read_text().splitlines()
    assert (
        client[0] == "cell,t_ns,cpu_ns,run_queue_wait_ns,memory_bytes,threads" and len(client) >= 4
    )
    assert len((run_dir / "processes.csv").read_text().splitlines()) >= 3
