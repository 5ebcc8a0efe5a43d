"""An app whose database accepts fewer connections than the server has threads: its errors are
reported as errors, in the words of the app."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from wsgiload.serving.launch import free_port

from .command import Command
from .test_finding_apps import APPS, copied

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--rates", 60, "--duration", "2s", "--warmup", "200ms", "--cooldown", "0s", "--quiet")


@pytest.fixture
def database() -> Iterator[int]:
    """The port of a database that accepts four connections."""
    port = free_port()
    words = [sys.executable, str(APPS / "db_limit" / "database.py"), str(port)]
    process = subprocess.Popen(words)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def test_errors_are_quoted_and_are_no_sign_of_a_capacity(command: Command, database: int) -> None:
    folder = copied(command, "db_limit")
    words = ("app:application", "--servers", "gunicorn-gthread", "--env", f"DB_PORT={database}")
    grid = ("--grid", "workers=1,2", "threads=4", "--slo", "p99<200ms", "--runs", 1)
    done = command.run("sweep", *words, *grid, *BRIEFLY, cwd=folder)
    fits, fails = (done.cells[f"gunicorn-gthread-w{n}-t4@60#1"] for n in (1, 2))
    assert fits["outcomes"]["http_status"] == 0 < fits["outcomes"]["ok"]
    assert fails["outcomes"]["http_status"] > 0
    (alarm,) = [
        one["message"] for one in fails["verdict"]["reasons"] if one["check"] == "wrong-responses"
    ]
    assert 'status 500, "too many connections"' in alarm

    assert not done.summary.get("overload")
    assert "The maximum goodput of" not in done.out
