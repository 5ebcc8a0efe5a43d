"""``wsgiload load --reruns`` beside a neighbour that uses a core, and without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .command import Command, read_json, until
from .reference import inconclusive, needs_reference, reference_process

pytestmark = [
    needs_reference,
    pytest.mark.skipif(
        (os.cpu_count() or 1) > 6, reason="one neighbour takes less than 15 % of so many cores"
    ),
]


@contextmanager
def neighbour() -> Iterator[None]:
    """A process that never sleeps."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_load_beside_a_neighbour_is_repeated_and_the_calmest_attempt_is_reported(
    command: Command,
) -> None:
    file = command.folder / "load.json"
    with reference_process("--hold", "2ms") as (server, url):
        words = ("load", url, "-R", 200, "-d", "3s", "--warmup", "0s", "--reruns", 1)
        with neighbour():
            running = command.start(*words, "--attach-pid", server.pid, "--json", file)
            until(lambda: "repeating the load" in running.err, "the second attempt")
        done = running.end()

    assert done.err.splitlines()[0].startswith("if the host disturbs the load: up to 2 attempts, ")
    attempts = read_json(file)["attempts"]
    assert len(attempts) == 2
    assert attempts[0]["disturbed_s"] >= 2 and attempts[0]["rerun_reason"] is not None
    if attempts[1]["rerun_reason"] is None:  # whatever else this machine does
        assert [one["reported"] for one in attempts] == [False, True]
        assert done.code == 0
    assert sum(one["reported"] for one in attempts) == 1


def test_a_neighbour_beside_a_server_that_is_not_known_is_no_reason(command: Command) -> None:
    """It may be the server."""
    file = command.folder / "load.json"
    with reference_process("--hold", "2ms") as (_, url), neighbour():
        words = ("load", url, "-R", 50, "-d", "2s", "--warmup", "0s", "--reruns", 1)
        command.run(*words, "--json", file)
    report = read_json(file)
    if report["client"]["steal_share"] > 0.01:
        inconclusive(f"steal {report['client']['steal_share']}")
    assert report["attempts"][0]["disturbed_s"] == 0
