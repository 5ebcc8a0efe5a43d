"""Errors for a server that accepts no connections after its first response."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload import cli
from wsgiload.catalogue.names import ServerVariant
from wsgiload.errors import LoadError, ServerError
from wsgiload.findings.trial import failed_step
from wsgiload.limits.model import Counters
from wsgiload.loads.request import Request
from wsgiload.results.record import failure_of
from wsgiload.serving import readiness
from wsgiload.serving.launch import HOST, ServerProcess, free_port
from wsgiload.serving.log import OutputLog, output_log
from wsgiload.serving.readiness import Expectation, ask, keeps_connections, wait_until_ready
from wsgiload.units import NS_PER_S

from .test_summary import FOUND

TIMEOUT_NS = NS_PER_S // 5


@dataclass
class Group:
    """A group in which the kernel OOM-killed and refused this many processes."""

    kills: int | None
    refused: int | None = None
    cores: float = 0.0

    def oom_kills(self) -> int | None:
        return self.kills

    def refused_processes(self) -> int | None:
        return self.refused

    def pids(self) -> list[int]:
        return []

    def read_counters(self) -> Counters:
        return Counters(cpu_usage_ns=round(self.cores * time.monotonic_ns()))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[OutputLog]:
    with output_log(tmp_path / "server.log") as log:
        log.add("the licence has expired")
        yield log


def server(
    log: OutputLog,
    *,
    kills: int | None = None,
    code: int | None = None,
    refused: int | None = None,
    cores: float = 0.0,
) -> ServerProcess:
    """A server with this log; with ``code``, it has exited."""
    variant: ServerVariant = FOUND["wsgiref"]
    group: Any = Group(kills, refused, cores)
    started = ServerProcess(variant, group, log)
    ended: Any = SimpleNamespace(poll=lambda: code)
    started._process = ended
    return started


def failure(process: ServerProcess, port: int) -> ServerError:
    with pytest.raises(ServerError) as caught:
        keeps_connections(process, port, Request(), TIMEOUT_NS)
    return caught.value


@pytest.fixture
def full_port() -> Iterator[int]:
    """The port of a socket whose accept queue is full."""
    with socket.create_server((HOST, 0), backlog=0) as listening:
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex((HOST, port))
        yield port
        for one in waiting:
            one.close()


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ({"code": 3}, "wsgiref exited with code 3: the licence has expired"),
        ({"code": -9}, "wsgiref was killed by SIGKILL: the licence has expired"),
        ({"kills": 1, "code": -9}, "the kernel OOM-killed 1 process after its first response"),
        (
            {"code": 1, "refused": 2},
            "wsgiref needs more processes or threads than --pids allows: the kernel refused one 2 "
            "times",
        ),
        (
            {},
            "wsgiref gave a correct response and then accepted no more connections "
            "(Connection refused)",
        ),
    ],
    ids=["exited", "killed", "out of memory", "out of processes", "closed its port"],
)
def test_the_error_says_how_a_server_ended_after_its_first_response(
    log: OutputLog, end: dict[str, int], cause: str
) -> None:
    error = failure(server(log, **end), free_port())
    assert cause in error.cause
    assert error.fix is not None
    assert error.log_tail == "the licence has expired"
    assert error.exit_code == 97


def test_a_server_whose_port_another_process_took_is_not_blamed(log: OutputLog) -> None:
    log.add("OSError: [Errno 98] Address already in use")
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        taken = failure_while_starting(server(log, code=1), port)
    assert f"wsgiref cannot listen on port {port} of 127.0.0.1" in taken.cause
    assert failed_step(failure_of(taken), has_load=False).blame == "host"

    own_port = failure_while_starting(server(log, code=1), port)
    assert "cannot listen, because another process uses its address" in own_port.cause
    assert failed_step(failure_of(own_port), has_load=False).blame == "server"


def failure_while_starting(process: ServerProcess, port: int) -> ServerError:
    with pytest.raises(ServerError) as caught:
        wait_until_ready(process, port, Expectation(Request(), NS_PER_S, NS_PER_S))
    return caught.value


def test_a_server_whose_user_may_start_no_thread_is_not_blamed(log: OutputLog) -> None:
    log.add("RuntimeError: can't start new thread")
    error = failure(server(log, code=1), free_port())
    assert "wsgiref failed, because this user may start no further process" in error.cause
    assert "ulimit -u" in str(error.fix)


@pytest.mark.parametrize(("cores", "waited_s"), [(0.1, 0.2), (0.9, 1.0)], ids=["idle", "importing"])
def test_a_server_that_lacks_a_process_and_does_nothing_has_failed(
    cores: float, waited_s: float, log: OutputLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "PATIENCE_NS", NS_PER_S // 5)
    expected = Expectation(Request(), ready_timeout_ns=NS_PER_S, response_timeout_ns=NS_PER_S)
    began_s = time.monotonic()
    with pytest.raises(ServerError, match="than --pids allows: the kernel refused one once"):
        wait_until_ready(server(log, refused=1, cores=cores), free_port(), expected)
    assert waited_s <= time.monotonic() - began_s < waited_s + 0.7


def test_a_server_that_accepts_no_more_connections_has_failed(
    log: OutputLog, full_port: int
) -> None:
    error = failure(server(log), full_port)
    assert error.step == "readiness"
    assert error.cause == (
        "wsgiref gave a correct response and then accepted no more connections (timed out)"
    )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "a.csv"),
            "a.csv: No such file or directory",
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            "system error: Connection refused",
        ),
        (TimeoutError("timed out"), "system error: timed out"),
        (OSError(), "system error: OSError"),
    ],
)
def test_a_system_error_is_one_readable_line(
    error: OSError, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli.wsgiload, "main", fail)
    assert cli.run([]) == 2
    assert capsys.readouterr().err == f"wsgiload: {line}\n"


@pytest.mark.parametrize("connect", [ask, keeps_connections])
def test_no_free_local_port_is_not_blamed_on_the_server(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr("wsgiload.serving.readiness.Connection", refuse)
    arguments = (80, Request()) if connect is ask else (server(tmp_path), 80, Request(), TIMEOUT_NS)
    with pytest.raises(LoadError, match="the client has no free local port: all of "):
        connect(*arguments)
