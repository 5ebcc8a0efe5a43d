"""One request and its whole response, within a deadline and a maximum number of bytes. Every probe
uses this module, because a server may respond with anything, and arbitrarily slowly. One of them
measures whether an app seems to cache the measured URL."""

from __future__ import annotations

import http.client
import socket
import time
from dataclasses import dataclass, replace
from secrets import token_hex

from wsgiload.loads.request import Request
from wsgiload.units import NS_PER_S

# Far more than any response whose latency is worth measuring.
MAX_RESPONSE_BYTES = 64 << 20
PIECE_BYTES = 64 << 10
# The generator's limits; by default, http.client rejects lines of more than 64 KiB and more than
# 100 fields.
MAX_HEAD_BYTES = 1 << 20
MAX_FIELDS = 1_000
# The remaining time may round to 0, which would make the socket non-blocking.
MIN_WAIT_S = 0.001
# A server may wait for the body of such a request, or reject it, if its length is missing.
EXPECT_BODY = ("POST", "PUT", "PATCH")


# http.client has no other way to set these limits. The last line of a head counts as a field.
vars(http.client).update(_MAXLINE=MAX_HEAD_BYTES, _MAXHEADERS=MAX_FIELDS + 1)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class ResponseTooLarge(OSError):
    """The response is longer than any probe reads."""

    # None if the head alone is too long.
    status: int | None = None


class UnfinishedResponse(OSError):
    """The head of a response arrived, but its body did not end in time."""

    def __init__(self, status: int, media_type: str, received_bytes: int) -> None:
        self.status, self.media_type = status, media_type
        kind = f" ({media_type})" if media_type else ""
        super().__init__(
            f"status {status}{kind} and a body that did not end in time: {received_bytes:,} bytes "
            "so far"
        )


class _BoundedSocket(socket.socket):
    """A socket whose operations share a deadline and a maximum number of bytes.

    A timeout limits only a single operation, so a server could evade it by sending single bytes.
    """

    deadline_ns = 0
    max_bytes = 0
    received_bytes = 0

    def allow(self, timeout_s: float, max_bytes: int) -> None:
        """Start an exchange with this timeout and maximum number of bytes."""
        self.deadline_ns = time.monotonic_ns() + round(timeout_s * NS_PER_S)
        self.max_bytes, self.received_bytes = max_bytes, 0

    def bound(self) -> None:
        """Limit the next operation to the remaining time."""
        remaining_s = (self.deadline_ns - time.monotonic_ns()) / NS_PER_S
        if remaining_s <= 0:
            raise TimeoutError("timed out")
        self.settimeout(max(MIN_WAIT_S, remaining_s))

    # http.client reads responses and sends requests with these methods.
    def recv_into(self, *arguments: object, **named: object) -> int:
        self.bound()
        received: int = super().recv_into(*arguments, **named)  # type: ignore[arg-type]
        self.received_bytes += received
        if self.received_bytes > self.max_bytes:
            raise ResponseTooLarge(f"a response of more than {self.max_bytes >> 20} MiB")
        return received

    def sendall(self, *arguments: object) -> None:
        self.bound()
        super().sendall(*arguments)  # type: ignore[arg-type]


class Connection:
    """One connection to a server; the timeout applies to each exchange separately."""

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        """Connect. Raises OSError."""
        self._timeout_s = timeout_s
        self._socket = _BoundedSocket(socket.AF_INET, socket.SOCK_STREAM)
        self._http = http.client.HTTPConnection(*address)
        self._http.auto_open = 0  # never reconnect silently
        try:
            self._socket.settimeout(timeout_s)
            self._socket.connect(address)
        except BaseException:
            self._socket.close()
            raise
        self._http.sock = self._socket

    def close(self) -> None:
        """End the connection."""
        self._http.close()
        self._socket.close()

    def exchange(self, request: Request, max_bytes: int = MAX_RESPONSE_BYTES) -> Response:
        """Send the request and read its response. Raises OSError or HTTPException."""
        self._socket.allow(self._timeout_s, max_bytes)
        response = None
        try:
            _send(self._http, request)
            response = self._http.getresponse()
            return Response(response.status, response.headers, _body_of(response))
        except ResponseTooLarge as error:
            error.status = None if response is None else response.status
            raise
        except TimeoutError as error:
            if response is None:
                raise
            media_type, received = response.headers.get("Content-Type", ""), self._socket
            raise UnfinishedResponse(
                response.status, media_type, received.received_bytes
            ) from error
        except ValueError as error:  # an invalid number in the head or the framing
            raise http.client.HTTPException(f"malformed response: {error}") from error


def exchange(
    address: tuple[str, int],
    request: Request,
    timeout_s: float,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> Response:
    """One request on a new connection. Raises OSError or HTTPException."""
    connection = Connection(address, timeout_s)
    try:
        return connection.exchange(request, max_bytes)
    finally:
        connection.close()


def _body_of(response: http.client.HTTPResponse) -> bytes:
    """The body, read piece by piece: a single read would allocate whatever Content-Length
    promises."""
    pieces = []
    while piece := response.read(PIECE_BYTES):
        pieces.append(piece)
    body = b"".join(pieces)
    if response.length:
        raise http.client.IncompleteRead(body[:PIECE_BYTES], response.length)
    return body


def _send(connection: http.client.HTTPConnection, request: Request) -> None:
    """Send the same bytes as the generator."""
    connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
    for name, values in _fields(request, f"{connection.host}:{connection.port}").items():
        for value in values:
            connection.putheader(name, value)
    connection.endheaders(request.body)


def _fields(request: Request, authority: str) -> dict[str, list[str]]:
    """The header fields by lower-case name, in the order of the generator."""
    fields: dict[str, list[str]] = {}
    for name, value in request.headers:
        fields.setdefault(name.lower(), []).append(value)
    fields.setdefault("host", [authority])
    if request.body is not None or request.method in EXPECT_BODY:
        fields.setdefault("content-length", [str(len(request.body or b""))])
    return fields


PAIRS = 3
TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class CacheProbe:
    """Response times of an idle server, chosen so that a difference is conservative evidence for a
    cache."""

    slowest_same_ns: int
    """The slowest response of the measured URL."""
    fastest_new_ns: int
    """The fastest response of the same path with a new query."""


def probe_cache(address: tuple[str, int], request: Request) -> CacheProbe | None:
    """Alternately request the URL and the URL with a new query. None if they are not comparable:
    several URLs, a method other than GET, or a server that rejects the query or is too slow.

    Takes at most ``2 * PAIRS * TIMEOUT_S``.
    """
    if request.method != "GET" or request != request.first:
        return None

    same: list[int] = []
    new: list[int] = []
    for _ in range(PAIRS):
        for times, probe in ((same, request), (new, _with_new_query(request))):
            elapsed_ns = _response_time_ns(address, probe)
            if elapsed_ns is None:
                return None
            times.append(elapsed_ns)
    return CacheProbe(max(same), min(new))


def _with_new_query(request: Request) -> Request:
    mark = "&" if "?" in request.path else "?"
    return replace(request, path=f"{request.path}{mark}wsgiload={token_hex(8)}")


def _response_time_ns(address: tuple[str, int], request: Request) -> int | None:
    started_ns = time.monotonic_ns()
    try:
        response = exchange(address, request, TIMEOUT_S)
    except (OSError, http.client.HTTPException):
        return None
    elapsed_ns = time.monotonic_ns() - started_ns
    in_time = elapsed_ns <= TIMEOUT_S * NS_PER_S
    return elapsed_ns if in_time and response.status in request.statuses else None
