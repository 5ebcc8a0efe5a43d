"""``wsgiload load --reruns`` with and without a process that occupies a core."""

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
        (os.cpu_count() or 1) > 6,
        reason="one busy process uses less than 15 % of more than six cores",
    ),
]


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that uses a whole core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_disturbed_load_is_repeated_and_the_least_disturbed_attempt_is_reported(
    command: Command,
) -> None:
    document = command.folder / "load.json"
    with reference_process("--hold", "2ms") as (server, url):
        words = ("load", url, "-R", 200, "-d", "3s", "--warmup", "0s", "--reruns", 1)
        with busy_process():
            running = command.start(*words, "--attach-pid", server.pid, "--json", document)
            until(lambda: "repeating the load" in running.err, "the second attempt")
        result = running.end()

    assert result.err.splitlines()[0].startswith(
        "if the host disturbs the load: up to 2 attempts, "
    )
    attempts = read_json(document)["attempts"]
    assert len(attempts) == 2
    assert attempts[0]["disturbed_s"] >= 2 and attempts[0]["rerun_reason"] is not None
    if attempts[1]["rerun_reason"] is None:  # unless other processes disturbed this attempt, too
        assert [attempt["reported"] for attempt in attempts] == [False, True]
        assert result.code == 0
    assert sum(attempt["reported"] for attempt in attempts) == 1


def test_a_busy_process_does_not_disturb_a_load_on_an_unknown_server(command: Command) -> None:
    """The busy process may be the server."""
    document = command.folder / "load.json"
    with reference_process("--hold", "2ms") as (_, url), busy_process():
        words = ("load", url, "-R", 50, "-d", "2s", "--warmup", "0s", "--reruns", 1)
        command.run(*words, "--json", document)

    report = read_json(document)
    if report["client"]["steal_share"] > 0.01:
        inconclusive(f"steal {report['client']['steal_share']}")
    assert report["attempts"][0]["disturbed_s"] == 0
