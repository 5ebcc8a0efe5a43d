"""What a server serves at once is measured, not assumed, and said in words."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from wsgiload.serving.concurrency import PROBED_AT_ONCE, Address, Concurrency, probe_concurrency

KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class SmallServer:
    """Serves ``at_once`` requests at a time and keeps ``kept`` connections; the others are closed
    after an answer."""

    def __init__(self, at_once: int, kept: int, backlog: int) -> None:
        self._places = threading.Semaphore(at_once)
        self._kept = threading.Semaphore(kept)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.address: Address = self._listening.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # Who asked may have gone, with an answer unread.
        with connection, suppress(ConnectionError):
            while request := connection.recv(4096):
                if b"/hold" in request:
                    with self._places:
                        entered_ns = time.monotonic_ns()
                        time.sleep(0.2)
                        body = f"{entered_ns} {time.monotonic_ns()}".encode()
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    connection.sendall(head + body)
                    continue
                connection.sendall(KEPT)
                if not self._kept.acquire(blocking=False):
                    return

    def close(self) -> None:
        self._listening.close()


# Fewer than the first few that are tried, and more.
@pytest.fixture(params=[3, 9], ids=lambda at_once: f"{at_once} at once")
def small(request: pytest.FixtureRequest) -> Iterator[SmallServer]:
    server = SmallServer(at_once=request.param, kept=7, backlog=200)
    yield server
    server.close()


def test_the_most_at_once_and_the_connections_kept_are_found(
    small: SmallServer, request: pytest.FixtureRequest
) -> None:
    found = probe_concurrency(small.address, keeps_connections=True)
    assert found.requests_at_once == request.node.callspec.params["small"]
    assert found.connections_served == PROBED_AT_ONCE
    assert found.connections_kept == 7
    assert found.backlog == 200


def test_connections_of_a_server_that_keeps_none_are_not_counted(small: SmallServer) -> None:
    found = probe_concurrency(small.address, keeps_connections=False)
    assert (found.connections_served, found.connections_kept) == (None, None)


def test_a_small_server_is_told_in_words() -> None:
    said = " ".join(Concurrency(150, 5, 10, 150, 10).sentences("cheroot"))
    assert "cheroot: its listen backlog is 5 connections" in said
    assert "cheroot: handled 10 requests at a time (150 were sent at once)" in said
    assert "cheroot: kept 10 of 150 connections alive and closed the others" in said
    said = " ".join(Concurrency(150, 1024, 4, 98, 98).sentences("waitress"))
    assert "waitress: served 98 open connections; " in said
    assert "listen backlog" not in said


@pytest.mark.parametrize(
    "found",
    [Concurrency(150, 2048, 150, 150, 150), Concurrency(150, None, None, None, None)],
    ids=["ample", "unknown"],
)
def test_of_ample_and_of_unknown_nothing_is_said(found: Concurrency) -> None:
    assert found.sentences("any") == []
