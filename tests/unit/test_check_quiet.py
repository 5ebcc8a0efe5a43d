"""A server that logs each request is told from one that says something once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload import check

ROUND = check.QUIET_REQUESTS


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_after: set[int], profile: str) -> check.CheckResult:
    """What is found of a server that writes a line when it answers these requests, counted from 0."""
    log = tmp_path / "server.log"
    log.write_bytes(b"ready\n")
    answered = iter(range(1_000))

    def answer(*_: object) -> None:
        number = next(answered)
        if number in lines_after:
            with log.open("ab") as file:
                file.write(b"line %d\n" % number)

    monkeypatch.setattr(check.readiness, "ask", answer)
    subject: Any = SimpleNamespace(server=SimpleNamespace(log_path=log), port=0, profile=profile)
    result = check.CheckResult("s", profile)
    check._check_quiet(subject, result)
    return result


@pytest.mark.parametrize("lines_after", [set(), {3}, {0, 1, ROUND + 4}])
def test_what_is_said_once_is_no_log_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_after: set[int]
) -> None:
    result = checked(tmp_path, monkeypatch, lines_after, "tuned")
    assert (result.quiet, result.complaints) == (True, [])


def test_a_log_of_requests_is_found_and_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = set(range(1_000))
    result = checked(tmp_path, monkeypatch, every, "tuned")
    assert not result.quiet
    (complaint,) = result.complaints
    assert f"for {ROUND} requests, such as 'line {(check.QUIET_ROUNDS - 1) * ROUND}'" in complaint
    stock = checked(tmp_path, monkeypatch, every, "stock")
    assert (stock.quiet, stock.complaints) == (False, [])
