"""Server checks with a large request head and with the header fields of a proxy."""

from __future__ import annotations

import http.client
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from wsgiload.catalogue.contract import Variant
from wsgiload.serving import check
from wsgiload.serving.conformance import COOKIE, HEAD_BYTES
from wsgiload.serving.exchange import Response

REMAINING_FIELDS = "https\n192.0.2.7\nshop.example"
TRUSTS_PROXY = Variant("default", "a variant", True, True, True)


def run_checks(
    reply: Response | OSError, variant: Variant = TRUSTS_PROXY, profile: str = "tuned"
) -> check.CheckResult:
    """Run both checks against a server that always sends this response or raises this error."""

    def send(port: int, request: object) -> Response:
        if isinstance(reply, OSError):
            raise reply
        return reply

    server = SimpleNamespace(serves_apps=True)
    server_variant = SimpleNamespace(variant=variant, server=server)
    subject: Any = SimpleNamespace(variant=server_variant, port=0, profile=profile)
    result = check.CheckResult("s", profile)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "_exchange", send)
        check._check_large_head(subject, result)
        if not isinstance(reply, OSError):
            check._check_forwarded(subject, result)
    return result


def response(text: str, status: int = 200) -> Response:
    return Response(status, http.client.HTTPMessage(), text.encode())


def test_the_request_head_has_the_documented_size() -> None:
    lines = ("GET /cookie HTTP/1.1", "Host: 127.0.0.1:12345", ": ".join(COOKIE), "", "")
    assert len("\r\n".join(lines)) == HEAD_BYTES == 32_768


def test_a_complete_cookie_proves_large_heads() -> None:
    result = run_checks(response(COOKIE[1]))
    assert result.large_head
    assert not any("head" in complaint for complaint in result.complaints)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (response("Bad Request", 400), "rejected a request head of 32 KiB with status 400"),
        (response(COOKIE[1][:8190]), "only 8,190 of the 32,711 bytes of a cookie reached the app"),
        (ConnectionResetError(), "closed the connection on a request head of 32 KiB"),
    ],
)
def test_a_rejected_head_is_a_complaint_unless_the_limit_is_documented(
    reply: Response | OSError, message: str
) -> None:
    result = run_checks(reply)
    assert result.large_head is False
    assert message in result.complaints[0]

    known = run_checks(reply, replace(TRUSTS_PROXY, head_limit="8,190 bytes per field"))
    assert known.large_head is False
    assert not any("32 KiB" in complaint for complaint in known.complaints)

    stock = run_checks(reply, profile="stock")
    assert (stock.large_head, stock.complaints) == (False, [])


def test_an_outdated_head_limit_is_a_complaint() -> None:
    result = run_checks(
        response(COOKIE[1]), replace(TRUSTS_PROXY, head_limit="8,190 bytes per field")
    )
    assert "it accepts a request head of 32 KiB, but its file says '8,190" in result.complaints[0]


def test_complete_and_trusted_forwarded_fields_are_proven() -> None:
    result = run_checks(response(f"https\n{REMAINING_FIELDS}"))
    assert result.forwarded
    assert len(result.complaints) == 1  # about the cookie


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (f"http\n{REMAINING_FIELDS}", "the app sees http, but its file says that it is trusted"),
        ("https\nhttps\n\nshop.example", "the app did not get X-Forwarded-For"),
        ("https\n\n\n", "did not get X-Forwarded-Proto and X-Forwarded-For and X-Forwarded-Host"),
        ("", "the app did not get X-Forwarded-Proto"),
    ],
)
def test_lost_and_ignored_fields_are_complaints(lines: str, message: str) -> None:
    result = run_checks(response(lines))
    assert result.forwarded is False
    assert any(message in complaint for complaint in result.complaints)


def test_a_server_without_proxy_trust_must_pass_the_fields_on() -> None:
    untrusting = replace(TRUSTS_PROXY, no_trusted_proxies="it has no setting for it")
    known = run_checks(response(f"http\n{REMAINING_FIELDS}"), untrusting)
    assert known.forwarded is False
    assert not any("X-Forwarded" in complaint for complaint in known.complaints)

    lost = run_checks(response("http\nhttps\n\n"), untrusting)
    assert any("did not get X-Forwarded-For" in complaint for complaint in lost.complaints)

    trusting = run_checks(response(f"https\n{REMAINING_FIELDS}"), untrusting)
    assert any(
        "sees https, but its file says 'it has" in complaint for complaint in trusting.complaints
    )
