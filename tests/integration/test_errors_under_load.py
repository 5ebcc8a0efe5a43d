"""Errors of an app whose database accepts fewer connections than the server has threads."""

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
    args = [sys.executable, str(APPS / "db_limit" / "database.py"), str(port)]
    process = subprocess.Popen(args)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def test_app_errors_are_quoted_and_not_mistaken_for_overload(
    command: Command, database: int
) -> None:
    folder = copied(command, "db_limit")
    args = ("app:application", "--servers", "gunicorn-gthread", "--env", f"DB_PORT={database}")
    grid = ("--grid", "workers=1,2", "threads=4", "--slo", "p99<200ms", "--runs", 1)
    result = command.run("sweep", *args, *grid, *BRIEFLY, cwd=folder)
    fits, fails = (result.cells[f"gunicorn-gthread-w{n}-t4@60#1"] for n in (1, 2))
    assert fits["outcomes"]["http_status"] == 0 < fits["outcomes"]["ok"]
    assert fails["outcomes"]["http_status"] > 0
    (alarm,) = [
        reason["message"]
        for reason in fails["verdict"]["reasons"]
        if reason["check"] == "wrong-responses"
    ]
    assert 'status 500, "too many connections"' in alarm

    assert not result.summary.get("overload")
    assert "The maximum goodput of" not in result.out
