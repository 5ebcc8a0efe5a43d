"""Wrong responses under load: the first of each kind is quoted, and a fix is derived from it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import count

import pytest

from .command import Command, CommandResult, read_json
from .raw import RawResponse, raw_server
from .stored import schema_errors

BRIEFLY = ("--rate", 50, "--duration", "1s", "--warmup", "0s")
STATUS = b'{"status": "ok"}'
TOKEN = "tok-5e3c7e7a11"


def response(head: str, body: bytes, *, pieces: int = 1) -> RawResponse:
    head_bytes = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    whole = head_bytes + body
    size = -(-len(whole) // pieces)
    return RawResponse([whole[start : start + size] for start in range(0, len(whole), size)])


def compressing(head: bytes) -> RawResponse:
    """As a server that compresses where the client accepts it."""
    if b"accept-encoding: gzip" in head.lower():
        return response("200 OK\r\nContent-Encoding: gzip", gzip.compress(STATUS))
    return response("200 OK", STATUS)


def load(command: Command, url: str, *words: object) -> CommandResult:
    done = command.run("load", url, *BRIEFLY, *words, "--json", "load.json")
    report = read_json(command.folder / "load.json")
    assert schema_errors("load-2", report) == []
    return done


def require_correct(command: Command) -> None:
    report = read_json(command.folder / "load.json")
    assert report["outcomes"]["ok"] == report["outcomes"]["scheduled"] > 0
    assert "wrong_responses" not in report


def wrong_responses(command: Command) -> list[dict[str, object]]:
    found: list[dict[str, object]] = read_json(command.folder / "load.json")["wrong_responses"]
    return found


def alarm(done: CommandResult) -> str:
    (line,) = [line for line in done.messages if "(wrong-responses)" in line]
    return line


def test_a_compressed_body_is_named_with_the_header_that_asks_for_it(command: Command) -> None:
    words = ("--expect-regex", "status", "-H", "Accept-Encoding: gzip")
    with raw_server(compressing) as url:
        done = load(command, url, *words)
        assert done.code == 97
        assert "body does not match the expected pattern, Content-Encoding: gzip" in alarm(done)
        assert "omit the header Accept-Encoding" in alarm(done)
        load(command, url, *words[:2])
        require_correct(command)


@pytest.fixture
def mixed() -> Iterator[str]:
    """Correct responses, and every third wrong: by turns an error in pieces, a redirect that holds a
    secret, and a wrong body with hostile text."""
    numbers = count()

    def respond(head: bytes) -> RawResponse:
        number = next(numbers)
        if number % 3:
            return response("200 OK", STATUS)
        kind = number // 3 % 3
        if kind == 0:
            return response("500 Internal Server Error", b"no pool " + b"x" * 3_000, pieces=5)
        if kind == 1:
            return response(f"302 Found\r\nLocation: /login?token={TOKEN}", b"")
        return response("200 OK", b"\x1b]0;owned\x07")

    with raw_server(respond) as url:
        yield url


def test_the_first_of_each_kind_is_quoted(command: Command, mixed: str) -> None:
    done = load(command, mixed, "--expect-length", len(STATUS))
    assert done.code in (0, 98)
    error, redirect, body = sorted(
        wrong_responses(command), key=lambda one: -int(str(one["status"]))
    )
    assert (error["status"], error["first_line"]) == (500, "HTTP/1.1 500 Internal Server Error")
    assert error["body"] == "no pool " + "x" * 292
    assert (redirect["status"], redirect["body"]) == (302, "")
    assert str(redirect["location"]).startswith("/login?token=(redacted-")
    assert body["reason"] == "body of 10 bytes instead of 16"

    said = alarm(done)
    for part in (
        'status 500, "no pool xxx',
        "status 302 to /login?token=(redacted-",
        "\\x1b]0;owned",
    ):
        assert part in said
    stored = (command.folder / "load.json").read_text()
    for text in (done.out, done.err, stored):
        assert TOKEN not in text and "\x1b]" not in text


def test_a_login_page_and_a_redirect_to_https_get_their_fixes(command: Command) -> None:
    for location, fix in [
        ("/accounts/login/?next=/", "add its cookie with -H 'Cookie: …'"),
        ("https://shop.example/", "add -H 'X-Forwarded-Proto: https'"),
    ]:
        reply = response(f"302 Found\r\nLocation: {location}", b"")
        with raw_server(lambda head, reply=reply: reply) as url:
            done = load(command, url)
        assert done.code == 97
        assert f"status 302 to {location}" in alarm(done)
        assert fix in alarm(done)


def test_correct_responses_are_not_quoted(command: Command) -> None:
    with raw_server(compressing) as url:
        load(command, url)
    require_correct(command)
