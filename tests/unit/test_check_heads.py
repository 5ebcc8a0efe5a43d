"""A large request head and the fields of a proxy: what a check concludes from what the app got."""

from __future__ import annotations

import http.client
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload.catalogue.contract import Variant
from wsgiload.serving import check
from wsgiload.serving.check_heads import COOKIE, HEAD_BYTES
from wsgiload.serving.exchange import Response

AS_SENT = "https\n192.0.2.7\nshop.example"
TRUSTING = Variant("default", "a variant", True, True, True)


def checked(
    answer: Response | OSError, variant: Variant = TRUSTING, profile: str = "tuned"
) -> check.CheckResult:
    """What the two checks make of a server that always answers so."""

    def send(port: int, request: object) -> Response:
        if isinstance(answer, OSError):
            raise answer
        return answer

    server = SimpleNamespace(serves_apps=True)
    found = SimpleNamespace(variant=variant, server=server)
    subject: Any = SimpleNamespace(variant=found, port=0, profile=profile)
    result = check.CheckResult("s", profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "_exchange", send)
        check._check_large_head(subject, result)
        if not isinstance(answer, OSError):
            check._check_forwarded(subject, result)
    return result


def response(text: str, status: int = 200) -> Response:
    return Response(status, http.client.HTTPMessage(), text.encode())


def test_the_head_is_as_large_as_the_check_says() -> None:
    lines = ("GET /cookie HTTP/1.1", "Host: 127.0.0.1:12345", ": ".join(COOKIE), "", "")
    assert len("\r\n".join(lines)) == HEAD_BYTES == 32_768


def test_a_cookie_that_arrives_whole_is_proven() -> None:
    result = checked(response(COOKIE[1]))
    assert result.large_head
    assert not any("head" in complaint for complaint in result.complaints)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (response("Bad Request", 400), "rejected a request head of 32 KiB with status 400"),
        (response(COOKIE[1][:8190]), "only 8,190 of the 32,711 bytes of a cookie reached the app"),
        (ConnectionResetError(), "closed the connection on a request head of 32 KiB"),
    ],
)
def test_a_rejected_head_is_a_complaint_unless_its_file_says_so(
    answer: Response | OSError, says: str
) -> None:
    result = checked(answer)
    assert result.large_head is False
    assert says in result.complaints[0]

    known = checked(answer, replace(TRUSTING, head_limit="8,190 bytes per field"))
    assert known.large_head is False
    assert not any("32 KiB" in complaint for complaint in known.complaints)
    stock = checked(answer, profile="stock")
    assert (stock.large_head, stock.complaints) == (False, [])


def test_a_limit_that_is_gone_is_a_complaint() -> None:
    result = checked(response(COOKIE[1]), replace(TRUSTING, head_limit="8,190 bytes per field"))
    assert "it accepts a request head of 32 KiB, but its file says '8,190" in result.complaints[0]


def test_forwarded_fields_that_arrive_and_are_trusted_are_proven() -> None:
    result = checked(response(f"https\n{AS_SENT}"))
    assert result.forwarded
    assert len(result.complaints) == 1  # of the cookie


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (f"http\n{AS_SENT}", "the app sees http, but its file says that it is trusted"),
        ("https\nhttps\n\nshop.example", "the app did not get X-Forwarded-For"),
        ("https\n\n\n", "did not get X-Forwarded-Proto and X-Forwarded-For and X-Forwarded-Host"),
        ("", "the app did not get X-Forwarded-Proto"),
    ],
)
def test_lost_and_ignored_fields_are_complaints(lines: str, says: str) -> None:
    result = checked(response(lines))
    assert result.forwarded is False
    assert any(says in complaint for complaint in result.complaints)


def test_a_server_that_cannot_trust_a_proxy_still_passes_the_fields_on() -> None:
    reason = replace(TRUSTING, no_trusted_proxies="it has no setting for it")
    known = checked(response(f"http\n{AS_SENT}"), reason)
    assert known.forwarded is False
    assert not any("X-Forwarded" in complaint for complaint in known.complaints)
    lost = checked(response("http\nhttps\n\n"), reason)
    assert any("did not get X-Forwarded-For" in complaint for complaint in lost.complaints)
    fixed = checked(response(f"https\n{AS_SENT}"), reason)
    assert any("sees https, but its file says 'it has" in one for one in fixed.complaints)
