"""Converts a HAR file, as exported by browsers, to a targets file. Pure: text in, text out."""

from __future__ import annotations

import base64
from urllib.parse import SplitResult, urlsplit

import msgspec

from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError
from wsgiload.loads.targets_text import (
    ImportedTargets,
    hosts_note,
    is_imported,
    secrets_note,
    target_text,
    with_weights,
)

# The status that the request would get without conditions and ranges.
_UNCONDITIONAL = {206: 200, 304: 200}
_MIN_ERROR_STATUS = 500


class _Field(msgspec.Struct):
    name: str
    value: str = ""


class _Posted(msgspec.Struct):
    text: str | None = None
    encoding: str | None = None


class _Request(msgspec.Struct, rename="camel"):
    method: str
    url: str
    headers: list[_Field] = []
    post_data: _Posted | None = None


class _Response(msgspec.Struct):
    status: int = 0


class _Entry(msgspec.Struct):
    request: _Request
    response: _Response = msgspec.field(default_factory=_Response)


class _Log(msgspec.Struct):
    entries: list[_Entry]


class _Har(msgspec.Struct):
    log: _Log


def targets_of_har(content: bytes) -> ImportedTargets:
    """The requests to the host of the first request; repeated ones become weights."""
    entries = _entries(content)
    host = _split(entries[0].request.url).netloc
    of_host = [entry for entry in entries if _split(entry.request.url).netloc == host]
    names = {field.name for entry in of_host for field in entry.request.headers}
    notes = hosts_note(len(of_host), len(entries), host) + secrets_note(names, "recording")

    return ImportedTargets(with_weights(map(_target, of_host)), tuple(notes))


def _entries(content: bytes) -> list[_Entry]:
    """The entries with HTTP URLs; ``data:`` and WebSocket URLs are skipped."""
    try:
        entries = decode_json(content.removeprefix(b"\xef\xbb\xbf"), _Har).log.entries
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f"not a HAR file: {error}", "save one from the network panel of a browser"
        ) from error
    http_entries = [
        entry for entry in entries if entry.request.url.startswith(("http://", "https://"))
    ]
    if not http_entries:
        raise UsageError(
            "the HAR file has no HTTP request", "record requests with the network panel open"
        )
    return http_entries


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{url!r} is not a URL", "delete its entry from the HAR file") from error


def _target(entry: _Entry) -> str:
    request = entry.request
    url = _split(request.url)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    head = target_text(request.method, path, _fields(request), _body(request))
    status = _UNCONDITIONAL.get(entry.response.status, entry.response.status)
    is_usual = status == 200 or not 200 <= status < _MIN_ERROR_STATUS
    return head + ("" if is_usual else f"--expect-status {status}\n")


def _fields(request: _Request) -> list[tuple[str, str]]:
    return [(field.name, field.value) for field in request.headers if is_imported(field.name)]


def _body(request: _Request) -> bytes:
    posted = request.post_data
    if posted is None or posted.text is None:
        return b""
    if posted.encoding != "base64":
        return posted.text.encode()
    try:
        return base64.b64decode(posted.text, validate=True)
    except ValueError as error:
        raise UsageError(
            f"the body of {request.url} is not base64", "delete it from the HAR file"
        ) from error
