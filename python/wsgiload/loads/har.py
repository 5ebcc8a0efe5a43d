"""Converts a HAR file, as exported by browsers, to a targets file. Pure: text in, text out. Counts
the entries that no target can repeat, with the reason."""

from __future__ import annotations

import base64
from collections import Counter
from email.message import Message
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from wsgiload.documents.base import convert, decode_json
from wsgiload.errors import UsageError
from wsgiload.loads.targets_text import (
    ImportedTargets,
    is_imported,
    secrets_note,
    skipped_note,
    target_text,
    with_weights,
)

# The status that the request would get without conditions and ranges.
_UNCONDITIONAL = {206: 200, 304: 200}
_MIN_ERROR_STATUS = 500
_SWITCHING_PROTOCOLS = 101
_WEB_SOCKET = "WebSocket"
_EVENT_STREAM = "text/event-stream"
_SCHEMES = {"ws": _WEB_SOCKET, "wss": _WEB_SOCKET}
_FORM = "application/x-www-form-urlencoded"


class _Field(msgspec.Struct, rename="camel"):
    name: str
    value: str = ""
    file_name: str | None = None


class _Posted(msgspec.Struct, rename="camel"):
    mime_type: str = _FORM
    text: str | None = None
    encoding: str | None = None
    params: list[_Field] | None = None


class _Request(msgspec.Struct, rename="camel"):
    method: str
    url: str
    headers: list[_Field] = []
    post_data: _Posted | None = None


class _Content(msgspec.Struct, rename="camel"):
    mime_type: str | None = None


class _Response(msgspec.Struct):
    status: int = 0
    content: _Content = msgspec.field(default_factory=_Content)


class _Entry(msgspec.Struct):
    request: _Request
    response: _Response = msgspec.field(default_factory=_Response)


class _Log(msgspec.Struct):
    entries: list[object]


class _Har(msgspec.Struct):
    log: _Log


class _Dropped(ValueError):
    """An entry that no target can repeat; the message is the reason."""


def targets_of_har(content: bytes) -> ImportedTargets:
    """The requests to the host of the first request; repeated ones become weights."""
    entries = _entries(content)
    targets: list[str] = []
    names: set[str] = set()
    dropped: Counter[str] = Counter()
    host = ""
    for raw in entries:
        try:
            entry = _entry(raw)
            url = _url(entry)
            target = _target(entry, url)
        except _Dropped as reason:
            dropped[str(reason)] += 1
            continue
        host = host or url.netloc
        if url.netloc != host:
            dropped[f"to hosts other than {host}"] += 1
            continue
        targets.append(target)
        names |= {field.name for field in entry.request.headers}

    notes = [*skipped_note(dropped, len(entries), "entries"), *secrets_note(names, "recording")]
    if not targets:
        raise UsageError(
            "; ".join(["the HAR file has no HTTP request", *notes]),
            "record requests with the network panel open",
        )
    return ImportedTargets(with_weights(targets), tuple(notes))


def _entries(content: bytes) -> list[object]:
    try:
        return decode_json(content.removeprefix(b"\xef\xbb\xbf"), _Har).log.entries
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f"not a HAR file: {error}", "save one from the network panel of a browser"
        ) from error


def _entry(raw: object) -> _Entry:
    try:
        entry = convert(raw, _Entry)
    except msgspec.ValidationError:
        raise _Dropped("without a request") from None
    fields = {field.name.lower(): field.value for field in entry.request.headers}
    mime_types = (entry.response.content.mime_type or "", fields.get("accept", ""))
    if entry.response.status == _SWITCHING_PROTOCOLS:
        raise _Dropped(_WEB_SOCKET)
    if any(mime_type.startswith(_EVENT_STREAM) for mime_type in mime_types):
        raise _Dropped("event stream, which does not end")
    return entry


def _url(entry: _Entry) -> SplitResult:
    try:
        url = urlsplit(entry.request.url)
    except ValueError:
        raise _Dropped("not a URL") from None
    if url.scheme in ("http", "https") and url.netloc:
        return url
    if url.scheme.endswith("-extension"):
        raise _Dropped("of a browser extension")
    raise _Dropped(_SCHEMES.get(url.scheme, f"{url.scheme}: URL" if url.scheme else "not a URL"))


def _target(entry: _Entry, url: SplitResult) -> str:
    request = entry.request
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    fields = [(field.name, field.value) for field in request.headers if is_imported(field.name)]
    try:
        head = target_text(request.method, path, fields, _body(request))
    except UsageError:
        raise _Dropped("with characters that HTTP forbids") from None
    status = _UNCONDITIONAL.get(entry.response.status, entry.response.status)
    is_usual = status == 200 or not 200 <= status < _MIN_ERROR_STATUS
    return head + ("" if is_usual else f"--expect-status {status}\n")


def _body(request: _Request) -> bytes:
    posted = request.post_data
    if posted is None:
        return b""
    if posted.text is None or (not posted.text and posted.params):
        return _form(posted)
    if posted.encoding != "base64":
        return posted.text.encode()
    try:
        return base64.b64decode(posted.text, validate=True)
    except ValueError:
        raise _Dropped("with a body that is not base64") from None


def _form(posted: _Posted) -> bytes:
    """The body of a form of which only the fields were saved."""
    fields = posted.params or []
    if not fields:
        return b""
    if any(field.file_name is not None for field in fields):
        raise _Dropped("with an uploaded file, which was not saved")
    header = Message()
    header["Content-Type"] = posted.mime_type
    if header.get_content_type() == _FORM:
        return urlencode([(field.name, field.value) for field in fields]).encode()
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or boundary is None:
        raise _Dropped("with a body that was not saved")
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="'
    quoted = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
    parts = [f'{head}{field.name.translate(quoted)}"\r\n\r\n{field.value}\r\n' for field in fields]
    return f"{''.join(parts)}--{boundary}--\r\n".encode()
