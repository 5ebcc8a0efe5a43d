"""Whatever a server sends, and for however long: a probe ends by its deadline and holds little."""

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
    """Sends ``first``, then ``again`` until nobody takes it."""

    def speak(send: Send) -> None:
        send(first)
        while True:
            send(again)
            time.sleep(pause_s)

    return speak


def once(text: bytes) -> Callable[[Send], None]:
    """Sends it and waits."""

    def speak(send: Send) -> None:
        send(text)
        time.sleep(5)

    return speak


MUCH = b"x" * 65_536
HOSTILE = {
    "endless body": forever(OK + b"\r\n", MUCH),
    "endless chunks": forever(
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + MUCH + b"\r\n"
    ),
    "one endless chunk": forever(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", MUCH),
    "immense Content-Length": forever(OK + b"Content-Length: 99999999999999\r\n\r\n", MUCH),
    "astronomic Content-Length": once(OK + b"Content-Length: " + b"9" * 60_000 + b"\r\n\r\n"),
    "server-sent events": forever(OK + b"\r\n", b"data: 1\n\n", 0.05),
    "trickling head": forever(OK, b"x", 0.05),
    "endless header line": forever(OK + b"X-Long: ", MUCH),
    "endless headers": forever(OK, b"X: y\r\n" * 1000),
    "endless 100 Continue": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "trickling 100 Continue": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.05),
    "endless trailers": forever(
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000
    ),
    "negative chunk": forever(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", MUCH),
    "no number as chunk": once(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"),
    "no status": once(b"HTTP/1.1 abc\r\n\r\n"),
    "no HTTP": forever(b"", b"\x00\xff" * 1000),
    "silence": once(b""),
    "cut body": once(OK + b"Content-Length: 10\r\n\r\nabc"),
}


@contextmanager
def server(speak: Callable[[Send], None]) -> Iterator[Address]:
    """Speaks like that on every connection, after whatever it was sent."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            speak(connection.sendall)

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
def test_a_probe_ends_in_time_and_holds_little(name: str) -> None:
    with server(HOSTILE[name]) as address:
        tracemalloc.start()
        began = time.monotonic()

        with pytest.raises((OSError, http.client.HTTPException)):
            exchange(address, Request(), TIMEOUT_S, MAX_BYTES)

        took_s = time.monotonic() - began
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert took_s < TIMEOUT_S + 1
    assert peak_bytes < 16 * MAX_BYTES


def test_the_readiness_probe_names_a_response_that_is_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection.exchange, "__defaults__", (MAX_BYTES,))
    with server(HOSTILE["endless body"]) as (_, port):
        answer = readiness.ask(port, Request(), 10.0)
    assert answer.problem == "GET / got a response of more than 1 MiB"
    assert answer.status == 200


def test_a_whole_response_is_read() -> None:
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


def test_a_head_with_too_many_fields_is_no_response() -> None:
    head = OK + b"X: y\r\n" * 1_001 + b"\r\n"
    with server(once(head)) as address, pytest.raises(http.client.HTTPException, match="headers"):
        exchange(address, Request(), 5.0)


def test_a_body_that_is_cut_off_is_no_response() -> None:
    with (
        server(lambda send: send(OK + b"Content-Length: 10\r\n\r\nabc")) as address,
        pytest.raises(http.client.IncompleteRead),
    ):
        exchange(address, Request(), TIMEOUT_S)


def test_too_much_is_told_apart_from_too_late() -> None:
    with server(HOSTILE["endless body"]) as address, pytest.raises(ResponseTooLarge):
        exchange(address, Request(), 10.0, MAX_BYTES)


@pytest.mark.parametrize("name", ["endless body", "endless headers", "server-sent events"])
def test_the_concurrency_probe_ends_too(name: str) -> None:
    with server(HOSTILE[name]) as address:
        began = time.monotonic()
        found = probe_concurrency(address, keeps_connections=True)
    assert found.requests_at_once is None
    assert time.monotonic() - began < 20


def test_immense_digits_are_no_timestamp() -> None:
    body = b"9" * 15_000 + b" " + b"9" * 15_000
    with server(once(OK + b"\r\n" + body)) as address:
        assert probe_concurrency(address, keeps_connections=False).requests_at_once is None
