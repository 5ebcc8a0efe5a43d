"""A wrong response is quoted, with a fix that was tried."""

from __future__ import annotations

import gzip
from http.client import HTTPMessage
from pathlib import Path

import pytest

from wsgiload.environments.app_name import allowed_hosts
from wsgiload.foreign_text import MAX_QUOTED_CHARACTERS
from wsgiload.loads.request import Request
from wsgiload.serving.exchange import Response
from wsgiload.serving.wrong_response import describe_response, exception_in, fix_of


def response(status: int, body: bytes = b"", **fields: str) -> Response:
    headers = HTTPMessage()
    for name, value in fields.items():
        headers[name.replace("_", "-")] = value
    return Response(status, headers, body)


def fix(received: Response, request: Request | None = None) -> str:
    """The fix if every other request gets the same response."""
    return fix_of(request or Request(), received, (), lambda other: received)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (response(500), "GET / returned status 500"),
        (response(500, b"no\n pool\n"), 'GET / returned status 500, "no pool"'),
        (
            response(400, b"<!doctype html><title>x</title><h1>Bad&nbsp;Request</h1>"),
            'GET / returned status 400, "Bad Request"',
        ),
        (response(200, b"other"), 'GET / returned an unexpected body, "other"'),
        (
            response(500, gzip.compress(b"no pool"), Content_Encoding="gzip"),
            'GET / returned status 500, "no pool"',
        ),
        (
            response(500, b"not gzip", Content_Encoding="gzip"),
            'GET / returned status 500, "(gzip)"',
        ),
        (response(500, b"\0", Content_Encoding="br"), 'GET / returned status 500, "(br)"'),
        (
            response(302, b"moved", Location="/login"),
            "GET / returned status 302 to /login",
        ),
    ],
)
def test_a_wrong_response_is_quoted(received: Response, expected: str) -> None:
    assert describe_response(Request(), received) == expected


def test_the_quotation_of_a_huge_compressed_body_is_short() -> None:
    received = response(500, gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip")
    assert len(describe_response(Request(), received)) < MAX_QUOTED_CHARACTERS + 50


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (response(400), "(Django's ALLOWED_HOSTS), add -H 'Host: NAME'"),
        (response(401), "add -H 'Authorization: …'"),
        (response(404), "choose a path that the app serves (--path)"),
        (response(405, Allow="POST, OPTIONS"), "use --method POST"),
        (response(418), "choose another --path or change the request; if 418 is correct"),
        (response(500), "see the server's log"),
        (response(302, Location="/accounts/login/?next=/"), "the path needs a login"),
        (response(301, Location="https://shop.example/"), "turn that off for the measurement"),
        (response(301, Location="/shop/"), "choose another --path; if the redirect is correct"),
        (response(200, Content_Encoding="gzip"), "has Content-Encoding: gzip; omit the header"),
        (response(200), "correct the --expect options"),
    ],
)
def test_each_kind_of_response_has_its_fix(received: Response, expected: str) -> None:
    text = fix(received)
    assert expected in text
    assert not text.startswith("add --expect-status")


def test_a_host_name_that_the_app_accepts_is_found() -> None:
    tried: list[str] = []

    def retry(request: Request) -> Response:
        tried.append(dict(request.headers)["Host"])
        return response(301 if tried[-1] == "shop.example" else 400)

    hosts = ("other.example", "shop.example", "third.example")
    text = fix_of(Request(), response(400), hosts, retry)
    assert text == "the app accepts only its own host names: add -H 'Host: shop.example'"
    assert tried == ["other.example", "shop.example"]
    assert "correct -H 'Host" in fix(response(400), Request(headers=(("host", "x.example"),)))


def test_a_redirect_to_https_is_retried_as_behind_a_proxy() -> None:
    def retry(request: Request) -> Response:
        return response(200 if ("X-Forwarded-Proto", "https") in request.headers else 301)

    received = response(301, Location="https://shop.example/")
    text = fix_of(Request(), received, (), retry)
    assert text == "the app requires https: add -H 'X-Forwarded-Proto: https'"


def test_a_redirect_to_another_path_is_followed() -> None:
    def retry(request: Request) -> Response:
        return response(200 if request.path == "/shop/?page=1" else 301)

    received = response(301, Location="http://127.0.0.1:8000/shop/?page=1")
    text = fix_of(Request(path="/shop?page=1"), received, (), retry)
    assert text == "request its target: --path '/shop/?page=1'"


def test_the_last_exception_of_a_log_is_found() -> None:
    frame = 'Traceback (most recent call last):\n  File "shop.py", line 2, in app\n    raise it\n'
    log = f"{frame}KeyError: 'first'\n{frame}shop.errors.NoPool: no pool\n[INFO] worker 3\n"
    assert exception_in(log) == "shop.errors.NoPool: no pool"
    assert exception_in("worker booted: 3\n") is None


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("ALLOWED_HOSTS = ['shop.example', '.shop.test']\n", ["shop.example", "shop.test"]),
        ("ALLOWED_HOSTS: list[str] = [\n    'a.example',\n]\nNAME = 'b.example'\n", ["a.example"]),
        ("ALLOWED_HOSTS = env.list('ALLOWED_HOSTS', default=['a.example'])\n", ["a.example"]),
        ("ALLOWED_HOSTS = getenv('HOSTS', 'a.example,localhost').split(',')\n", ["a.example"]),
        ("ALLOWED_HOSTS = ['*']\nDEBUG = False\n", []),
    ],
)
def test_allowed_hosts_are_read_from_django_settings(
    tmp_path: Path, text: str, hosts: list[str]
) -> None:
    (tmp_path / "shop" / "settings").mkdir(parents=True)
    (tmp_path / "shop" / "settings" / "production.py").write_text(text)
    names = [host for host in allowed_hosts(tmp_path) if "." in host]
    assert names == hosts
