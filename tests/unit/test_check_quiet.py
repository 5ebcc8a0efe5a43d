"""A server that logs each request is told from one that says something once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload.serving import check

BLOCK = 8192  # what a stream that is no terminal buffers, at most
LINE = b'127.0.0.1 "GET / HTTP/1.1" 200 -- line %d\n'


class Log:
    """The log of a server that writes a line when it answers these requests, counted from 0."""

    def __init__(self, path: Path, lines_after: range, block: int = 0) -> None:
        self.path = path
        self.lines_after = lines_after
        self.block = block
        self.buffered = b""
        self.answered = 0
        path.write_bytes(b"ready\n")

    def answer(self, *_: object) -> None:
        if self.answered in self.lines_after:
            self.buffered += LINE % self.answered
        self.answered += 1
        if len(self.buffered) > self.block:
            with self.path.open("ab") as file:
                file.write(self.buffered)
            self.buffered = b""


def checked(log: Log, profile: str, monkeypatch: pytest.MonkeyPatch) -> check.CheckResult:
    monkeypatch.setattr(check.readiness, "ask", log.answer)
    subject: Any = SimpleNamespace(
        server=SimpleNamespace(log_path=log.path), port=0, profile=profile
    )
    result = check.CheckResult("s", profile)
    check._check_quiet(subject, result)
    return result


@pytest.mark.parametrize("lines_after", [range(0), range(3, 4), range(100, 110)])
def test_what_is_said_once_is_no_log_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_after: range
) -> None:
    result = checked(Log(tmp_path / "log", lines_after), "tuned", monkeypatch)
    assert (result.quiet, result.complaints) == (True, [])


@pytest.mark.parametrize("block", [0, BLOCK])
def test_a_log_of_requests_is_found_and_quoted_also_where_it_is_buffered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    every = range(check.QUIET_REQUESTS)
    result = checked(Log(tmp_path / "log", every, block), "tuned", monkeypatch)
    assert not result.quiet
    (complaint,) = result.complaints
    assert f"lines for {check.QUIET_REQUESTS} requests, such as '127.0.0.1" in complaint
    stock = checked(Log(tmp_path / "log", every, block), "stock", monkeypatch)
    assert (stock.quiet, stock.complaints) == (False, [])
