"""Responses with unusual framing: valid HTTP is accepted, anything else is rejected."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

import wsgiload

from .raw import RawResponse, raw_server
from .test_load import LOADGEN, needs_loadgen

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = b"Content-Length: 5\r\n\r\nhello"
CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"
FIELDS_150 = b"".join(b"X-H%d: v\r\n" % number for number in range(150))

# The response, and whether the server then closes the connection.
ACCEPTED: dict[str, tuple[bytes, bool]] = {
    "close10": (b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", True),
    "keep10": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + HELLO, False),
    "close11": (OK + b"\r\nhello", True),
    "fold": (OK + b"X-Long: one\r\n two\r\n\tthree\r\n" + HELLO, False),
    "latin1": (b"HTTP/1.1 200 Tr\xe8s bien\r\nX-Name: caf\xe9\r\n" + HELLO, False),
    "noreason": (b"HTTP/1.1 200\r\n" + HELLO, False),
    "barelf": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", False),
    "many": (OK + FIELDS_150 + HELLO, False),
    "wide": (OK + b"Set-Cookie: a=" + b"x" * 70_000 + b"\r\n" + HELLO, False),
    "trailers": (
        OK + b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b'5;name="v"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n',
        False,
    ),
    "twolengths": (OK + b"Content-Length: 5\r\n" + HELLO, False),
    "lengthlist": (OK + b"Content-Length: 5, 5\r\n\r\nhello", False),
    "tecl": (
        OK + b"Content-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n" + CHUNKED,
        False,
    ),
    "leadcrlf": (OK + HELLO + b"\r\n", False),
    "sayclose": (OK + b"Connection: foo, Close\r\n" + HELLO, True),
}
# The response, whether the server then closes the connection, and the reason for the rejection.
REJECTED: dict[str, tuple[bytes, bool, str]] = {
    "spacecolon": (OK + b"Content-Length : 5\r\n\r\nhello", False, "invalid header name"),
    "http09": (b"hello", True, "not an HTTP/1.x response"),
    "lower": (b"http/1.1 200 OK\r\n" + HELLO, False, "not an HTTP/1.x response"),
    "lengths": (
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        False,
        "invalid or conflicting Content-Length",
    ),
    "chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", False, "invalid chunked body"),
    "fields": (
        OK + b"".join(b"X-H%d: v\r\n" % number for number in range(1_100)) + HELLO,
        False,
        "more than 1,000 header fields",
    ),
    "switch": (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False, "invalid status"),
}


def _respond(head: bytes) -> RawResponse:
    name = head.split(b" ")[1].decode().lstrip("/")
    response, closes = ACCEPTED[name] if name in ACCEPTED else REJECTED[name][:2]
    return RawResponse([response], closes)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with raw_server(_respond) as url:
        yield url


@pytest.mark.parametrize("name", ACCEPTED)
def test_valid_responses_are_correct(url: str, name: str) -> None:
    report = wsgiload.load(f"{url}/{name}", rate=50, duration=0.5)
    assert report.outcomes["ok"] == report.outcomes["scheduled"] > 0, report.outcomes
    assert report.document.wrong_responses == ()


@pytest.mark.parametrize("name", REJECTED)
def test_invalid_responses_are_rejected_with_a_reason(url: str, name: str) -> None:
    report = wsgiload.load(f"{url}/{name}", rate=50, duration=0.5)
    assert report.outcomes["bad_body"] == report.outcomes["scheduled"] > 0, report.outcomes

    (wrong,) = report.document.wrong_responses
    first_line = REJECTED[name][0].partition(b"\r\n")[0].decode()
    assert (wrong.outcome, wrong.reason, wrong.first_line) == (
        "bad_body",
        REJECTED[name][2],
        first_line,
    )


@needs_loadgen
def test_the_generator_prints_why_a_response_was_rejected(url: str) -> None:
    words = [str(LOADGEN), f"{url}/http09", "--rate", "50", "--duration", "500ms"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert result.returncode == 97
    message = 'loadgen: first rejected response: "hello", not an HTTP/1.x response'
    assert message in result.stderr.splitlines()
