"""The check for access logs separates logs of each request from single messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload.serving import check
from wsgiload.serving.log import OutputLog, output_log

BLOCK = 8192  # maximum buffer size of a stream that is not a terminal
LINE = b'127.0.0.1 "GET / HTTP/1.1" 200 -- line %d\n'


class Server:
    """A server that writes a line for these requests, numbered from 0."""

    def __init__(self, log: OutputLog, lines_after: range, block: int = 0) -> None:
        self.log = log
        self.lines_after = lines_after
        self.block = block
        self.buffered = b""
        self.requests = 0
        log.add("ready")

    def respond(self, *_: object) -> None:
        if self.requests in self.lines_after:
            self.buffered += LINE % self.requests
        self.requests += 1
        if len(self.buffered) > self.block:
            self.log.stream.write(self.buffered)
            self.buffered = b""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[OutputLog]:
    with output_log(tmp_path / "log") as log:
        yield log


def run_check(server: Server, profile: str, monkeypatch: pytest.MonkeyPatch) -> check.CheckResult:
    monkeypatch.setattr(check.readiness, "ask", server.respond)
    subject: Any = SimpleNamespace(server=server, port=0, profile=profile)
    result = check.CheckResult("s", profile)
    check._check_quiet(subject, result)
    return result


@pytest.mark.parametrize("lines_after", [range(0), range(3, 4), range(100, 110)])
def test_a_few_lines_are_not_an_access_log(
    log: OutputLog, monkeypatch: pytest.MonkeyPatch, lines_after: range
) -> None:
    result = run_check(Server(log, lines_after), "tuned", monkeypatch)
    assert (result.quiet, result.complaints) == (True, [])


@pytest.mark.parametrize("block", [0, BLOCK])
def test_an_access_log_is_detected_and_quoted_even_if_buffered(
    log: OutputLog, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    every_request = range(check.QUIET_REQUESTS)
    result = run_check(Server(log, every_request, block), "tuned", monkeypatch)

    assert not result.quiet
    (complaint,) = result.complaints
    assert f"lines for {check.QUIET_REQUESTS} requests, such as '127.0.0.1" in complaint

    stock = run_check(Server(log, every_request, block), "stock", monkeypatch)
    assert (stock.quiet, stock.complaints) == (False, [])
