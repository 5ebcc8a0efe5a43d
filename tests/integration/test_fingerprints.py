"""Each cause, induced on a real server, has its fingerprint and no other."""

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
# Other processes that use more of the machine than this can cause fingerprints themselves.
MAX_OTHER_CPU_RATIO = 0.1

SETS_BACKLOG_TO_ONE = """
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
READS_MORE_THAN_THE_LIMIT = """
    import os, random

    CHUNK = 12 << 20
    file = os.open(os.path.join(os.path.dirname(__file__), "large"), os.O_RDONLY)
    chance = random.Random(1)

    def app(environ, start_response):
        os.pread(file, CHUNK, chance.randrange(0, (300 << 20) - CHUNK))
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
EXCEEDS_MEMORY_ONCE = """
    from pathlib import Path

    MARKER = Path(__file__).with_name("allocated")
    count = 0

    def app(environ, start_response):
        global count
        count += 1
        if count > 20 and not MARKER.exists():
            MARKER.touch()
            b"x" * (200 << int("20"))
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
COLLECTS_GARBAGE = """
    import gc, time

    gc.disable()
    objects = []
    length_s = 0.0
    while length_s < 0.15:
        objects += [[n] for n in range(200_000)]
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
    """Write a module with this app; returns the APP argument for it."""
    (command.folder / "made.py").write_text(textwrap.dedent(text))
    return "made:app"


def only_attribution(result: CommandResult) -> dict[str, Any]:
    """The attribution of the only cell."""
    (cell,) = result.cells.values()
    attribution: dict[str, Any] = cell["attribution"]
    sys.stdout.write(f"{cell['verdict']['reasons']}\n{attribution}\n")
    return attribution


def require_only(result: CommandResult, name: str) -> dict[str, Any]:
    """The result has this fingerprint and no other; skips the test if the host was disturbed."""
    attribution = only_attribution(result)
    names = {fingerprint["name"] for fingerprint in attribution["fingerprints"]}
    if names != {name}:
        skip_if_disturbed(result, names)
    assert names == {name}
    assert "Coincided with" in result.out
    return attribution


def skip_if_disturbed(result: CommandResult, names: set[str]) -> None:
    """Skip as INCONCLUSIVE if other processes or the hypervisor used so much of the machine that
    they can have caused the fingerprints."""
    (cell,) = result.cells.values()
    other_cpu_ratio = cell["attribution"]["other_cpu_ratio"]

    if other_cpu_ratio is not None and other_cpu_ratio > MAX_OTHER_CPU_RATIO:
        pytest.skip(
            f"INCONCLUSIVE(host): other processes used {other_cpu_ratio:.0%} of the machine's CPU time; "
            f"fingerprints: {sorted(names)}"
        )

    for reason in cell["verdict"]["reasons"]:
        if reason["check"] == "steal" and reason["level"] == "invalid":
            pytest.skip(f"INCONCLUSIVE(host): {reason['message']}; fingerprints: {sorted(names)}")


def under_load(command: Command, *words: object, act: Callable[[], None]) -> CommandResult:
    """Sweep one cell, and call ``act`` one second after its load began."""
    running = command.start("sweep", *words, *BRIEFLY)
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "the load",
    )

    time.sleep(1.0)
    act()

    result = running.end()
    command.require_no_leftovers()
    return result


def server_pids(command: Command) -> list[int]:
    """The processes in the server's control group."""
    pids: set[int] = set()
    for group in command.groups():
        with suppress(OSError):
            pids |= {int(word) for word in (group / "cgroup.procs").read_text().split()}
    return sorted(pids)


def test_a_low_cpu_limit_shows_throttling(command: Command) -> None:
    load = ("--rates", 300, "--max-connections", 20, "--duration", "6s", "--timeout", "1s")
    result = command.run(
        "sweep", "--app-name", "cpu", "--servers", "waitress", "--cpus", 0.3, *load, *BRIEFLY
    )

    attribution = require_only(result, "throttling")
    (throttled,) = [one for one in attribution["exposures"] if one["event"] == "throttled"]
    assert throttled["slowest"]["value"] > 0.9
    assert throttled["slowest"]["low"] is not None


def test_a_busy_process_on_the_servers_core_shows_contention(command: Command) -> None:
    neighbours: list[subprocess.Popen[bytes]] = []

    def start_neighbour() -> None:
        busy = (
            "import os, time; os.sched_setaffinity(0, [1]); end = time.monotonic() + "
            "3\nwhile time.monotonic() < end: 1"
        )
        neighbours.append(subprocess.Popen([sys.executable, "-c", busy]))

    cores = ("--server-cpus", "1", "--client-cpus", "0")
    server = ("--app-name", "cpu", "--servers", "waitress")
    load = ("--rates", 100, "--duration", "4s")
    try:
        result = under_load(command, *server, *load, *cores, act=start_neighbour)
    finally:
        for neighbour in neighbours:
            neighbour.wait()

    attribution = only_attribution(result)
    assert [one["name"] for one in attribution["fingerprints"]] == ["contention"]
    assert attribution["other_cpu_ratio"] > 0.2
    (cell,) = result.cells.values()
    assert "contaminated" in {reason["check"] for reason in cell["verdict"]["reasons"]}


def test_a_stopped_worker_shows_a_pause(command: Command) -> None:
    def stop_for_a_while() -> None:
        pids = server_pids(command)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    words = ("--servers", "gunicorn-sync", "--workers", 1, "--rates", 100, "--duration", "4s")
    result = under_load(command, *words, act=stop_for_a_while)

    attribution = require_only(result, "pause")
    (paused,) = [one for one in attribution["exposures"] if one["event"] == "paused"]
    assert paused["slowest"]["value"] > 0.9 > paused["all"]["value"]


def test_garbage_collection_shows_busy_pauses(command: Command) -> None:
    app = write_app(command, COLLECTS_GARBAGE)
    words = ("--servers", "waitress", "--rates", 50, "--duration", "9s")
    result = command.run("sweep", app, *words, *BRIEFLY)

    (paused,) = require_only(result, "busy_pause")["fingerprints"]
    assert 3 <= paused["value"] <= 5
    assert "garbage collection" in paused["sentence"]


def test_a_backlog_of_one_overflows(command: Command) -> None:
    app = write_app(command, SETS_BACKLOG_TO_ONE)
    words = ("--servers", "gunicorn-sync", "--workers", 1, "--rates", 45, "--duration", "5s")
    result = command.run("sweep", app, *words, *BRIEFLY)

    attribution = require_only(result, "backlog_overflow")
    (overflow,) = attribution["fingerprints"]
    assert "(backlog 1)" in overflow["sentence"]
    assert "connections took about 1, 3 or 7 s" in overflow["sentence"]


def test_deferred_accept_is_not_a_backlog_overflow(command: Command) -> None:
    """uWSGI's deferred accept drops the bare acknowledgement of each handshake, but the connection
    is made."""
    words = ("--servers", "uwsgi-http-socket", "--rates", 50, "--duration", "2s")
    (cell,) = command.run("sweep", *words, *BRIEFLY).cells.values()
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert cell["resources"]["listen_drops"] == 0
    assert "backlog_overflow" not in [
        fingerprint["name"] for fingerprint in cell["attribution"]["fingerprints"]
    ]


def test_reading_more_than_the_memory_limit_shows_memory_pressure(command: Command) -> None:
    large = command.folder / "large"
    with large.open("wb") as file:
        for _ in range(300):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        # Cached pages would stay charged to this process, not to the server's memory limit.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    app = write_app(command, READS_MORE_THAN_THE_LIMIT)
    server = ("--servers", "gunicorn-sync", "--workers", 1, "--memory", "64MiB")
    load = ("--rates", 100, "--duration", "4s")
    result = command.run("sweep", app, *server, *load, *BRIEFLY)

    attribution = require_only(result, "memory_pressure")
    assert attribution["fingerprints"][0]["value"] > 0.05


def test_a_worker_killed_by_the_oom_killer_shows_an_oom_kill(command: Command) -> None:
    app = write_app(command, EXCEEDS_MEMORY_ONCE)
    words = ("--servers", "gunicorn-sync", "--memory", "96MiB", "--rates", 50, "--duration", "3s")
    result = command.run("sweep", app, *words, *BRIEFLY)

    (kill,) = require_only(result, "oom_kill")["fingerprints"]
    assert kill["value"] == 1


def test_one_busy_worker_of_several_shows_worker_imbalance(command: Command) -> None:
    server = ("--app-name", "cpu", "--servers", "gunicorn-gthread", "--workers", 3)
    result = command.run("sweep", *server, "-c", 1, "--duration", "4s", *BRIEFLY)

    attribution = require_only(result, "worker_imbalance")
    assert attribution["worker_imbalance"] > 0.9


def test_an_undisturbed_server_has_no_fingerprint(command: Command) -> None:
    result = command.run(
        "sweep", "--servers", "waitress", "--rates", 200, "--duration", "3s", *BRIEFLY
    )

    attribution = only_attribution(result)
    if attribution["fingerprints"]:
        skip_if_disturbed(
            result, {fingerprint["name"] for fingerprint in attribution["fingerprints"]}
        )
    assert attribution["fingerprints"] == []

    run_dir: Path = result.run_dir
    client = (run_dir / "client.csv").read_text().splitlines()
    assert (
        client[0] == "cell,t_ns,cpu_ns,run_queue_wait_ns,memory_bytes,threads" and len(client) >= 4
    )
    assert len((run_dir / "processes.csv").read_text().splitlines()) >= 3
