"""Measures how many requests and connections a server handles at once, instead of relying on its
documentation.

The server must run the app ``conformance``. The probe limits its time and its connections.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from wsgiload.catalogue.apps.conformance import HOLD_S
from wsgiload.documents.cell_result import MeasuredConcurrency
from wsgiload.sampling.listen_queue import read_listen_queue

Address = tuple[str, int]

# More than the small default limits to detect, but few enough for a small machine.
PROBED_AT_ONCE = 150
PROBED_FEW = 6
RESPONSE_TIMEOUT_S = 2.0
# Three hold times: enough for a second and a third wave.
HOLD_TIMEOUT_S = 3 * HOLD_S + 1.0
CLOSING_S = 0.1
# The app's responses are far shorter.
MAX_RESPONSE_BYTES = 16 << 10
PIECE_BYTES = 4 << 10
# The largest number of digits of a timestamp.
MAX_DIGITS = 20
# Time to accept each connection: a small accept queue is measured separately.
CONNECT_PAUSE_S = 0.001
SMALL_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The measured concurrency; None: unknown. ``probed`` is the number of concurrent requests and
    connections that were tried."""

    probed: int
    backlog: int | None
    requests_at_once: int | None
    connections_served: int | None
    connections_kept: int | None

    def document(self) -> MeasuredConcurrency:
        """``concurrency`` in summary.json."""
        return MeasuredConcurrency(**asdict(self))

    def sentences(self, server: str) -> list[str]:
        """The notable results in words."""
        sentences = []
        if self.backlog is not None and self.backlog <= SMALL_BACKLOG:
            sentences.append(
                f"{server}: its listen backlog is {self.backlog:,} connections (read back from the "
                "socket); if more arrive at once, the kernel drops them and clients retry after 1 s"
            )
        if self.requests_at_once is not None and self.requests_at_once < self.probed:
            requests = "request" if self.requests_at_once == 1 else "requests"
            sentences.append(
                f"{server}: handled {self.requests_at_once} {requests} at a time "
                f"({self.probed} were sent at once)"
            )
        sentences += self._connection_sentences(server)
        return sentences

    def _connection_sentences(self, server: str) -> list[str]:
        served, kept = self.connections_served, self.connections_kept
        if served is not None and served < self.probed:
            return [
                f"{server}: served {served} open connections; the next one got no response within "
                f"{RESPONSE_TIMEOUT_S:g} s while they were open"
            ]
        if kept is not None and 0 < kept < self.probed:
            return [
                f"{server}: kept {kept} of {self.probed} connections alive and closed the others"
            ]
        return []


def probe_concurrency(address: Address, *, keeps_connections: bool) -> Concurrency:
    """Probe a server that runs the app ``conformance``; takes a few seconds."""
    queue = read_listen_queue(address[1])
    served, kept = _hold_connections(address) if keeps_connections else (None, None)
    return Concurrency(
        probed=PROBED_AT_ONCE,
        backlog=queue.backlog // queue.sockets if queue else None,
        requests_at_once=_requests_at_once(address),
        connections_served=served,
        connections_kept=kept,
    )


def _requests_at_once(address: Address) -> int | None:
    """How many requests the server handles at once. Starts with a few, because some servers respond
    only after they have processed everything that arrived together."""
    few = _peak_concurrency(_hold_requests(address, PROBED_FEW, (PROBED_FEW + 2) * HOLD_S))
    if few is None or few == 1:
        return few
    # A few requests may not reach every worker.
    many = _peak_concurrency(_hold_requests(address, PROBED_AT_ONCE, HOLD_TIMEOUT_S))
    if many is None:
        return few if few < PROBED_FEW else None
    return max(few, many)


def _request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _hold_requests(address: Address, count: int, timeout_s: float) -> list[bytes]:
    """The responses to ``count`` concurrent requests, as far as they arrive in time."""
    responses: dict[socket.socket, bytes] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(address)
            selector.register(connection, selectors.EVENT_WRITE)
            responses[connection] = b""
            time.sleep(CONNECT_PAUSE_S)
        until = time.monotonic() + timeout_s
        try:
            while selector.get_map() and (remaining_s := until - time.monotonic()) > 0:
                for key, _ in selector.select(remaining_s):
                    _advance(selector, key, responses)
        finally:
            for connection in responses:
                connection.close()
    return list(responses.values())


def _advance(
    selector: selectors.BaseSelector,
    key: selectors.SelectorKey,
    responses: dict[socket.socket, bytes],
) -> None:
    connection = key.fileobj
    assert isinstance(connection, socket.socket)
    try:
        if key.events == selectors.EVENT_WRITE:
            connection.sendall(_request("/hold"))
            selector.modify(connection, selectors.EVENT_READ)
            return
        received = connection.recv(PIECE_BYTES)
    except OSError:
        received = b""
    responses[connection] += received
    response = responses[connection]
    if not received or len(response) > MAX_RESPONSE_BYTES or _timestamps(response):
        selector.unregister(connection)


def _timestamps(response: bytes) -> tuple[int, int] | None:
    """The times of entering and leaving the app, from a complete response."""
    head, _, body = response.partition(b"\r\n\r\n")
    words = body.replace(b"\r\n", b" ").split()
    numbers = [int(word) for word in words if word.isdigit() and 10 < len(word) <= MAX_DIGITS]
    if (
        not head.startswith(b"HTTP/1.")
        or b" 200" not in head.partition(b"\r\n")[0]
        or len(numbers) != 2
    ):
        return None
    return numbers[0], numbers[1]


def _peak_concurrency(responses: Sequence[bytes]) -> int | None:
    """The largest number of requests inside the app at one time."""
    spans = [span for span in map(_timestamps, responses) if span is not None]
    # If two timestamps are equal, leaving counts before entering.
    steps = sorted([(entered, 1) for entered, _ in spans] + [(left, -1) for _, left in spans])
    inside = peak = 0
    for _, step in steps:
        inside += step
        peak = max(peak, inside)
    return peak or None


def _hold_connections(address: Address) -> tuple[int, int]:
    """Open connections one after another and keep them open; returns how many got a response, and
    how many the server kept open."""
    connections: list[socket.socket] = []
    try:
        for _ in range(PROBED_AT_ONCE):
            connection = socket.create_connection(address, timeout=RESPONSE_TIMEOUT_S)
            connections.append(connection)
            if not _responds(connection):
                return len(connections) - 1, _count_open(connections[:-1])
        return len(connections), _count_open(connections)
    except OSError:
        return len(connections), _count_open(connections)
    finally:
        for connection in connections:
            connection.close()


def _count_open(connections: Sequence[socket.socket]) -> int:
    time.sleep(CLOSING_S)  # the server may close connections after its last response
    return sum(map(_is_open, connections))


def _responds(connection: socket.socket) -> bool:
    try:
        connection.sendall(_request("/"))
        return connection.recv(PIECE_BYTES).startswith(b"HTTP/1.")
    except OSError:
        return False


def _is_open(connection: socket.socket) -> bool:
    """Whether the server keeps the connection open; reads pending data first."""
    connection.setblocking(False)
    try:
        for _ in range(MAX_RESPONSE_BYTES // PIECE_BYTES):
            if not connection.recv(PIECE_BYTES):
                return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True  # there may be more data
