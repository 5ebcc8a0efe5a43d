"""Measured concurrency of servers and its description."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from wsgiload.serving.concurrency import PROBED_AT_ONCE, Address, Concurrency, probe_concurrency

OK_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class SmallServer:
    """Handles ``at_once`` requests concurrently and keeps ``kept`` connections alive; closes other
    connections after a response."""

    def __init__(self, at_once: int, kept: int, backlog: int) -> None:
        self._slots = threading.Semaphore(at_once)
        self._kept = threading.Semaphore(kept)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The client may close the connection without reading the response.
        with connection, suppress(ConnectionError):
            while request := connection.recv(4096):
                if b"/hold" in request:
                    with self._slots:
                        entered_ns = time.monotonic_ns()
                        time.sleep(0.2)
                        body = f"{entered_ns} {time.monotonic_ns()}".encode()
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    connection.sendall(head + body)
                    continue
                connection.sendall(OK_RESPONSE)
                if not self._kept.acquire(blocking=False):
                    return

    def close(self) -> None:
        self._listener.close()


# Below and above the number of requests that the probe sends first.
@pytest.fixture(params=[3, 9], ids=lambda at_once: f"{at_once} at once")
def small_server(request: pytest.FixtureRequest) -> Iterator[SmallServer]:
    server = SmallServer(at_once=request.param, kept=7, backlog=200)
    yield server
    server.close()


def test_concurrency_and_kept_connections_are_measured(
    small_server: SmallServer, request: pytest.FixtureRequest
) -> None:
    concurrency = probe_concurrency(small_server.address, keeps_connections=True)
    assert concurrency.requests_at_once == request.node.callspec.params["small_server"]
    assert concurrency.connections_served == PROBED_AT_ONCE
    assert concurrency.connections_kept == 7
    assert concurrency.backlog == 200


def test_connections_of_a_server_without_keepalive_are_not_counted(
    small_server: SmallServer,
) -> None:
    concurrency = probe_concurrency(small_server.address, keeps_connections=False)
    assert (concurrency.connections_served, concurrency.connections_kept) == (None, None)


def test_limited_concurrency_is_described() -> None:
    text = " ".join(Concurrency(150, 5, 10, 150, 10).sentences("cheroot"))
    assert "cheroot: its listen backlog is 5 connections" in text
    assert "cheroot: handled 10 requests at a time (150 were sent at once)" in text
    assert "cheroot: kept 10 of 150 connections alive and closed the others" in text
    text = " ".join(Concurrency(150, 1024, 4, 98, 98).sentences("waitress"))
    assert "waitress: served 98 open connections; " in text
    assert "listen backlog" not in text


@pytest.mark.parametrize(
    "concurrency",
    [Concurrency(150, 2048, 150, 150, 150), Concurrency(150, None, None, None, None)],
    ids=["sufficient", "unknown"],
)
def test_sufficient_or_unknown_concurrency_is_not_described(concurrency: Concurrency) -> None:
    assert concurrency.sentences("any") == []
