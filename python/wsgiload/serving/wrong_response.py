"""Describes a wrong response and suggests a fix. A fix that changes the request has been tested."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from wsgiload.experiment.redaction import public_text, public_url
from wsgiload.foreign_text import quotation
from wsgiload.loads.request import Request
from wsgiload.serving.exchange import Response

# Bytes of a body that are read for a quotation.
READ_BYTES = 8_000

REDIRECTS = (301, 302, 303, 307, 308)
HTTPS_FIELD = ("X-Forwarded-Proto", "https")
_LOGIN = re.compile(r"log-?in|sign-?in|oauth|sso", re.IGNORECASE)
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?")
_OF_STATUS = {
    401: "the path needs credentials: add -H 'Authorization: …' or -H 'Cookie: …', or choose "
    "another --path",
    403: "the app refuses this request: add the credentials it needs with -H 'Authorization: …' or "
    "-H 'Cookie: …', or choose another --path",
    404: "choose a path that the app serves (--path)",
    429: "disable the app's rate limit for the measurement",
}

# Sends a request; None if there was no complete response.
Resend = Callable[[Request], Response | None]


def describe_response(request: Request, response: Response) -> str:
    """Describe a wrong response: its status if unexpected, and its redirect target or the beginning
    of its body."""
    exchange = f"{request.method} {public_url(request.path)} returned"
    text = f"{exchange} an unexpected body"
    if response.status not in request.statuses:
        text = f"{exchange} status {response.status}"
    if response.status in REDIRECTS and response.headers.get("Location"):
        return f"{text} to {public_text(response.headers['Location'])}"
    body = excerpt(response)
    return f'{text}, "{body}"' if body else text


def excerpt(response: Response) -> str:
    """The beginning of a body as one line of text: decompressed, and without markup."""
    body, encoding = response.body[:READ_BYTES], response.headers.get("Content-Encoding", "")
    if encoding.lower() in ("gzip", "deflate"):
        try:
            body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, READ_BYTES)
        except zlib.error:
            return f"({encoding})"
    elif encoding and encoding.lower() != "identity":
        return f"({encoding})"

    return quotation(public_text(body.decode(errors="replace")))


def fix_of(request: Request, response: Response, hosts: Iterable[str], resend: Resend) -> str:
    """A suggested fix; ``hosts`` are host names that the app may accept."""
    status = response.status
    if status in request.statuses:
        return _fix_of_body(response)
    if status >= 500:
        return "see the server's log"
    if status in REDIRECTS:
        return _fix_of_redirect(request, response, resend)
    if status == 400:
        return _fix_of_host(request, hosts, resend)
    if status == 405 and response.headers.get("Allow"):
        method = response.headers["Allow"].partition(",")[0].strip()
        return f"choose another --path, or use --method {shlex.quote(method)}"
    usual = f"choose another --path or change the request; if {status} is correct, add "
    return _OF_STATUS.get(status, f"{usual}--expect-status {status}")


def exception_in(log: str) -> str | None:
    """The exception of the last traceback in a log; None if there is none."""
    _, heading, block = log.rpartition("Traceback (most recent call last)")
    lines = block.splitlines()[1:] if heading else []
    return next((line for line in lines if _EXCEPTION.fullmatch(line)), None)


def _fix_of_body(response: Response) -> str:
    encoding = response.headers.get("Content-Encoding")
    if encoding:
        return (
            f"bodies are checked without decoding, but this one has Content-Encoding: {encoding}; "
            "omit the header Accept-Encoding"
        )
    return "choose another --path, or correct the --expect options"


def _fix_of_redirect(request: Request, response: Response, resend: Resend) -> str:
    where = urlsplit(response.headers.get("Location", ""))
    name, value = HTTPS_FIELD
    if where.scheme == "https":
        if _is_correct(resend(_with(request, name, value)), request):
            return f"the app requires https: add -H '{name}: {value}'"
        return "the app requires https: turn that off for the measurement"
    if _LOGIN.search(where.path):
        return (
            "the path needs a login: add its cookie with -H 'Cookie: …', or choose another --path"
        )

    path = where.path + (f"?{where.query}" if where.query else "")
    if path.startswith("/") and _is_correct(resend(replace(request, path=path)), request):
        return f"request its target: --path {shlex.quote(path)}"
    return (
        f"choose another --path; if the redirect is correct, add --expect-status {response.status}"
    )


def _fix_of_host(request: Request, hosts: Iterable[str], resend: Resend) -> str:
    """The fix for status 400: frameworks send it for unknown host names, and the load's default is
    the server's address."""
    if any(name.lower() == "host" for name, _ in request.headers):
        return "correct -H 'Host: …', or change the request with --method, -H and --body"
    for host in dict.fromkeys((*hosts, "localhost")):
        other = resend(_with(request, "Host", host))
        if other is not None and other.status < 500 and other.status != 400:
            return f"the app accepts only its own host names: add -H {shlex.quote(f'Host: {host}')}"
    return (
        "if the app accepts only its own host names (Django's ALLOWED_HOSTS), add -H 'Host: NAME'; "
        "otherwise change the request with --method, -H and --body"
    )


def _with(request: Request, name: str, value: str) -> Request:
    return replace(request, headers=(*request.headers, (name, value)))


def _is_correct(response: Response | None, request: Request) -> bool:
    return response is not None and response.status in request.statuses
