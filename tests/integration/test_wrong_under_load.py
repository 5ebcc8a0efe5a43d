"""Wrong responses under load: the first of each kind is quoted, with a fix."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import count

import pytest

from .command import Command, CommandResult, read_json
from .raw import RawResponse, raw_server
from .stored import schema_errors

BRIEFLY = ("--rate", 50, "--duration", "1s", "--warmup", "0s")
BODY = b'{"status": "ok"}'
TOKEN = "tok-5e3c7e7a11"


def response(head: str, body: bytes, *, pieces: int = 1) -> RawResponse:
    """A response with this status line, sent in pieces."""
    head_bytes = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    data = head_bytes + body
    size = -(-len(data) // pieces)
    return RawResponse([data[start : start + size] for start in range(0, len(data), size)])


def compress(head: bytes) -> RawResponse:
    """Compress the body if the client accepts gzip."""
    if b"accept-encoding: gzip" in head.lower():
        return response("200 OK\r\nContent-Encoding: gzip", gzip.compress(BODY))
    return response("200 OK", BODY)


def load(command: Command, url: str, *words: object) -> CommandResult:
    """Run a load, and check its document against the schema."""
    result = command.run("load", url, *BRIEFLY, *words, "--json", "load.json")
    report = read_json(command.folder / "load.json")
    assert schema_errors("load-1", report) == []
    return result


def require_correct(command: Command) -> None:
    """All responses of the last load are correct."""
    report = read_json(command.folder / "load.json")
    assert report["outcomes"]["ok"] == report["outcomes"]["scheduled"] > 0
    assert "wrong_responses" not in report


def stored_wrong_responses(command: Command) -> list[dict[str, object]]:
    responses: list[dict[str, object]] = read_json(command.folder / "load.json")["wrong_responses"]
    return responses


def alarm(result: CommandResult) -> str:
    """The line of the alarm ``wrong-responses``."""
    (line,) = [line for line in result.messages if "(wrong-responses)" in line]
    return line


def test_the_fix_for_a_compressed_body_is_to_omit_accept_encoding(command: Command) -> None:
    words = ("--expect-regex", "status", "-H", "Accept-Encoding: gzip")
    with raw_server(compress) as url:
        result = load(command, url, *words)
        assert result.code == 97
        assert "body does not match the expected pattern, Content-Encoding: gzip" in alarm(result)
        assert "omit the header Accept-Encoding" in alarm(result)

        load(command, url, *words[:2])
        require_correct(command)


@pytest.fixture
def mixed() -> Iterator[str]:
    """A server whose every third response is wrong: in turn an error in pieces, a redirect with a
    secret, and a body with terminal control characters."""
    numbers = count()

    def respond(head: bytes) -> RawResponse:
        number = next(numbers)
        if number % 3:
            return response("200 OK", BODY)

        kind = number // 3 % 3
        if kind == 0:
            return response("500 Internal Server Error", b"no pool " + b"x" * 3_000, pieces=5)
        if kind == 1:
            return response(f"302 Found\r\nLocation: /login?token={TOKEN}", b"")
        return response("200 OK", b"\x1b]0;owned\x07")

    with raw_server(respond) as url:
        yield url


def test_the_first_wrong_response_of_each_kind_is_quoted(command: Command, mixed: str) -> None:
    result = load(command, mixed, "--expect-length", len(BODY))

    assert result.code in (0, 98)
    error, redirect, body = sorted(
        stored_wrong_responses(command), key=lambda response: -int(str(response["status"]))
    )
    assert (error["status"], error["first_line"]) == (500, "HTTP/1.1 500 Internal Server Error")
    assert error["body"] == "no pool " + "x" * 292
    assert (redirect["status"], redirect["body"]) == (302, "")
    assert str(redirect["location"]).startswith("/login?token=(redacted-")
    assert body["reason"] == "body of 10 bytes instead of 16"

    line = alarm(result)
    for part in (
        'status 500, "no pool xxx',
        "status 302 to /login?token=(redacted-",
        "\\x1b]0;owned",
    ):
        assert part in line

    document = (command.folder / "load.json").read_text()
    for text in (result.out, result.err, document):
        assert TOKEN not in text and "\x1b]" not in text


def test_redirects_to_a_login_page_and_to_https_have_fixes(command: Command) -> None:
    for location, fix in [
        ("/accounts/login/?page=2", "add its cookie with -H 'Cookie: …'"),
        ("https://shop.example/", "add -H 'X-Forwarded-Proto: https'"),
    ]:
        reply = response(f"302 Found\r\nLocation: {location}", b"")
        with raw_server(lambda head, reply=reply: reply) as url:
            result = load(command, url)
        assert result.code == 97
        assert f"status 302 to {location}" in alarm(result)
        assert fix in alarm(result)


def test_correct_responses_are_not_quoted(command: Command) -> None:
    with raw_server(compress) as url:
        load(command, url)
    require_correct(command)
