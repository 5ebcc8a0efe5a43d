"""The alarm about wrong responses: the first of each kind, a fix, and no secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from wsgiload.documents.load_report import WrongResponse
from wsgiload.experiment import redaction
from wsgiload.experiment.stored_secrets import public_report
from wsgiload.findings.finding import Fired
from wsgiload.findings.wrong_responses import wrong_responses
from wsgiload.foreign_text import hide, show_all

from .load_report_fixture import healthy_report

TOKEN = "tok-5e3c7e7a11"
LOGIN = "/accounts/login?next=/"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path))
    redaction._key.cache_clear()
    yield
    redaction._key.cache_clear()
    show_all()


def wrong(outcome: Literal["http_status", "bad_body"], **changes: object) -> WrongResponse:
    response = WrongResponse(
        outcome=outcome,
        status=500 if outcome == "http_status" else 200,
        reason=None,
        first_line="HTTP/1.1 200 OK",
        location=None,
        content_encoding=None,
        body="",
    )
    return replace(response, **changes)


def status(code: int, **changes: object) -> WrongResponse:
    return wrong("http_status", status=code, **changes)


def alarm_of(*responses: WrongResponse) -> Fired:
    load = healthy_report()
    outcomes = replace(load.outcomes, ok=load.outcomes.ok - 10, http_status=10)
    alarm = wrong_responses(replace(load, outcomes=outcomes, wrong_responses=responses))
    assert alarm is not None
    return alarm


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (status(500), "status 500"),
        (status(500, body="too many\nconnections"), 'status 500, "too many connections"'),
        (status(302, location="/accounts/login?page=2"), "status 302 to /accounts/login?page=2"),
        (
            wrong("bad_body", body="<p>busy</p>", reason="body of 11 bytes instead of 4"),
            'body of 11 bytes instead of 4, "busy"',
        ),
        (
            wrong(
                "bad_body",
                reason="body does not match the expected pattern",
                content_encoding="gzip",
                body=None,
            ),
            "body does not match the expected pattern, Content-Encoding: gzip",
        ),
        (
            wrong(
                "bad_body",
                status=None,
                body=None,
                first_line="hello\x1b[2J",
                reason="not an HTTP/1.x response",
            ),
            'not an HTTP/1.x response, "hello\\x1b[2J"',
        ),
    ],
)
def test_a_response_is_quoted(response: WrongResponse, text: str) -> None:
    assert alarm_of(response).message.endswith(f"(status: 10, body: 0): {text}")


def test_further_kinds_are_counted() -> None:
    message = alarm_of(*(status(code) for code in range(500, 505))).message
    assert message.endswith(": status 500; status 501; status 502; and 2 more kinds")


@pytest.mark.parametrize(
    ("response", "fix"),
    [
        (status(500), "see the server's log"),
        (status(400), "-H 'Host: NAME'"),
        (status(401), "-H 'Authorization: …'"),
        (status(404), "request a path that the app serves"),
        (status(301, location="https://shop.example/"), "-H 'X-Forwarded-Proto: https'"),
        (status(302, location=LOGIN), "add its cookie with -H 'Cookie: …'"),
        (status(308, location="/health/"), "request the target of the redirect instead"),
        (wrong("bad_body", content_encoding="gzip", body=None), "omit the header Accept-Encoding"),
        (
            wrong("bad_body", status=None, body=None, first_line="\x15\x03\x03\x00\x02\x02P"),
            "use https://",
        ),
        (wrong("bad_body", body="busy"), "check what the server returns"),
        (status(418), "check what the server returns"),
    ],
)
def test_the_fix_is_derived_from_the_response(response: WrongResponse, fix: str) -> None:
    assert fix in (alarm_of(response).fix or "")


@pytest.mark.parametrize(
    "response",
    [
        status(302, location=f"/login?token={TOKEN}"),
        status(500, body=f'{{"user": "ada", "api_key": "{TOKEN}"}}'),
        status(500, body=f'{{"user": "ada", "password":"{TOKEN}'),
        wrong("bad_body", first_line=f"HTTP/1.1 200 {TOKEN}"),
        status(500, body=f"refused: {TOKEN}"),
        status(500, body=f"refused: {TOKEN[:-2]}"),
    ],
)
def test_secrets_of_a_response_are_neither_shown_nor_stored(response: WrongResponse) -> None:
    hide(TOKEN, "(redacted-0123456789abcdef)")
    report = replace(healthy_report(), wrong_responses=(response,))
    (stored,) = public_report(report).wrong_responses
    for text in (alarm_of(response).message, repr(stored)):
        assert TOKEN[:-2] not in text
    assert "(redacted-" in repr(stored)


def test_other_text_is_stored_unchanged() -> None:
    response = status(500, body='{"error": "no such user", "age": 7}', location="/a?page=7")
    report = replace(healthy_report(), wrong_responses=(response,))
    assert public_report(report).wrong_responses == (response,)
