"""Probes end by their deadline and use little memory, whatever a server sends."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from wsgiload.loads.request import Request
from wsgiload.serving import readiness
from wsgiload.serving.concurrency import Address, probe_concurrency
from wsgiload.serving.exchange import Connection, ResponseTooLarge, exchange

TIMEOUT_S = 0.3
MAX_BYTES = 1 << 20
OK = b"HTTP/1.1 200 OK\r\n"
Send = Callable[[bytes], None]


def forever(first: bytes, again: bytes, pause_s: float = 0.0) -> Callable[[Send], None]:
    """Sends ``first``, then ``again`` until the client disconnects."""

    def respond(send: Send) -> None:
        send(first)
        while True:
            send(again)
            time.sleep(pause_s)

    return respond


def once(response: bytes) -> Callable[[Send], None]:
    """Sends ``response``, then keeps the connection open."""

    def respond(send: Send) -> None:
        send(response)
        time.sleep(5)

    return respond


BLOCK = b"x" * 65_536
HOSTILE = {
    "endless body": forever(OK + b"\r\n", BLOCK),
    "endless chunks": forever(
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + BLOCK + b"\r\n"
    ),
    "one endless chunk": forever(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", BLOCK),
    "immense Content-Length": forever(OK + b"Content-Length: 99999999999999\r\n\r\n", BLOCK),
    "Content-Length of 60,000 digits": once(OK + b"Content-Length: " + b"9" * 60_000 + b"\r\n\r\n"),
    "server-sent events": forever(OK + b"\r\n", b"data: 1\n\n", 0.05),
    "trickling head": forever(OK, b"x", 0.05),
    "endless header line": forever(OK + b"X-Long: ", BLOCK),
    "endless headers": forever(OK, b"X: y\r\n" * 1000),
    "endless 100 Continue": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "trickling 100 Continue": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.05),
    "endless trailers": forever(
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000
    ),
    "negative chunk size": forever(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", BLOCK),
    "chunk size that is not a number": once(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"),
    "invalid status": once(b"HTTP/1.1 abc\r\n\r\n"),
    "not HTTP": forever(b"", b"\x00\xff" * 1000),
    "silence": once(b""),
    "truncated body": once(OK + b"Content-Length: 10\r\n\r\nabc"),
}


@contextmanager
def server(respond: Callable[[Send], None]) -> Iterator[Address]:
    """Calls ``respond`` on every connection after the first bytes of a request."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            respond(connection.sendall)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[:2]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_probe_of_a_hostile_server_is_bounded_in_time_and_memory(name: str) -> None:
    with server(HOSTILE[name]) as address:
        tracemalloc.start()
        start_s = time.monotonic()

        with pytest.raises((OSError, http.client.HTTPException)):
            exchange(address, Request(), TIMEOUT_S, MAX_BYTES)

        elapsed_s = time.monotonic() - start_s
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert elapsed_s < TIMEOUT_S + 1
    assert peak_bytes < 16 * MAX_BYTES


def test_the_readiness_probe_reports_a_response_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection.exchange, "__defaults__", (MAX_BYTES,))
    with server(HOSTILE["endless body"]) as (_, port):
        result = readiness.ask(port, Request(), 10.0)
    assert result.problem == "GET / got a response of more than 1 MiB"
    assert result.status == 200


def test_a_complete_response_is_read() -> None:
    with server(once(OK + b"Content-Length: 2\r\n\r\nok")) as address:
        connection = Connection(address, TIMEOUT_S)
        response = connection.exchange(Request())
        connection.close()
    assert (response.status, response.body) == (200, b"ok")


@pytest.mark.parametrize("fields", [b"X: y\r\n" * 999, b"X: " + b"y" * 900_000 + b"\r\n"])
def test_a_large_head_is_read(fields: bytes) -> None:
    with server(once(OK + fields + b"Content-Length: 2\r\n\r\nok")) as address:
        response = exchange(address, Request(), 5.0)
    assert (response.body, response.headers["Content-Length"]) == (b"ok", "2")


def test_a_head_with_too_many_fields_is_an_error() -> None:
    head = OK + b"X: y\r\n" * 1_001 + b"\r\n"
    with server(once(head)) as address, pytest.raises(http.client.HTTPException, match="headers"):
        exchange(address, Request(), 5.0)


def test_a_truncated_body_is_an_error() -> None:
    with (
        server(lambda send: send(OK + b"Content-Length: 10\r\n\r\nabc")) as address,
        pytest.raises(http.client.IncompleteRead),
    ):
        exchange(address, Request(), TIMEOUT_S)


def test_a_response_that_is_too_large_is_not_reported_as_a_timeout() -> None:
    with server(HOSTILE["endless body"]) as address, pytest.raises(ResponseTooLarge):
        exchange(address, Request(), 10.0, MAX_BYTES)


@pytest.mark.parametrize("name", ["endless body", "endless headers", "server-sent events"])
def test_the_concurrency_probe_of_a_hostile_server_ends(name: str) -> None:
    with server(HOSTILE[name]) as address:
        start_s = time.monotonic()
        concurrency = probe_concurrency(address, keeps_connections=True)
    assert concurrency.requests_at_once is None
    assert time.monotonic() - start_s < 20


def test_huge_numbers_are_not_timestamps() -> None:
    body = b"9" * 15_000 + b" " + b"9" * 15_000
    with server(once(OK + b"\r\n" + body)) as address:
        assert probe_concurrency(address, keeps_connections=False).requests_at_once is None
