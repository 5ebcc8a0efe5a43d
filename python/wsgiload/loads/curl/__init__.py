"""Converts curl commands, as copied from browsers and manuals, to a targets file with the requests
that curl would send."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote_plus, unquote, urlsplit

from wsgiload.errors import UsageError, require
from wsgiload.loads.curl.flags import Flags, flags_of
from wsgiload.loads.curl.shell import commands_in
from wsgiload.loads.targets_text import (
    ImportedTargets,
    is_imported,
    secrets_note,
    skipped_note,
    target_text,
    with_weights,
)

MAX_NOTE_CHARACTERS = 60
_NEXT = ("--next", "-:")


def targets_of_curl(text: str, read: Callable[[str], bytes]) -> ImportedTargets:
    """Targets for all requests to the host of the first request; ``read`` returns the content of
    files that the commands name. Raises UsageError if no command can be imported."""
    commands = commands_in(text)
    requests: list[tuple[CurlRequest, str]] = []
    ignored: list[str] = []
    failures: list[UsageError] = []
    for command in commands.words:
        for words in _parts(command):
            try:
                flags = flags_of(words)
                requests += [(one, _target(one)) for one in requests_of(flags, read)]
                ignored += flags.ignored
            except UsageError as error:
                failures.append(error)
    failures = [*commands.failures, *failures]
    if not requests:
        raise failures[0]

    host = requests[0][0].host
    of_host = [(request, target) for request, target in requests if request.host == host]
    dropped = Counter(error.cause for error in failures)
    dropped.update({f"to hosts other than {host}": len(requests) - len(of_host)})
    notes = [
        *_ignored_note([*ignored, *commands.ignored]),
        *skipped_note(+dropped, len(requests) + len(failures), "requests"),
        *secrets_note({name for request, _ in of_host for name, _ in request.fields}, "command"),
    ]
    return ImportedTargets(with_weights(target for _, target in of_host), tuple(notes))


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """The words of each command, split at ``--next``."""
    part: list[str] = []
    for word in words:
        if word in _NEXT:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _target(request: CurlRequest) -> str:
    return target_text(request.method, request.path, request.fields, request.body)


def _ignored_note(ignored: Iterable[str]) -> list[str]:
    shown = [" ".join(one.split())[:MAX_NOTE_CHARACTERS] for one in dict.fromkeys(ignored)]
    return [f"ignored: {', '.join(shown)}"] if shown else []


Read = Callable[[str], bytes]
Field = tuple[str, str]

_DATA = ("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Characters that curl expands to several URLs.
_GLOBS = re.compile(r"[\[\]{}]")
# Some browsers write this HTTP/2 field without its colon.
_NOT_SENT = frozenset(("authority",))


@dataclass(frozen=True, slots=True)
class CurlRequest:
    """One request."""

    host: str
    method: str
    path: str
    """Includes the query."""
    fields: tuple[Field, ...]
    body: bytes


def requests_of(flags: Flags, read: Read) -> list[CurlRequest]:
    """One request for each URL of the command."""
    require(bool(flags.urls), "a curl command has no URL", "paste the whole command")
    data = _data(flags, read)
    in_query = flags.has("get")
    body = b"" if data is None or in_query else data
    method = _method(flags, has_body=data is not None and not in_query)

    requests = []
    for written in flags.urls:
        url = _url(written, is_literal=flags.has("globoff"))
        extra = [_text(data)] if data and in_query else []
        extra += [_query_part(value, read) for value in flags.values("url-query")]
        query = "&".join(filter(None, [url.query, *extra]))
        path = (url.path or "/") + (f"?{query}" if query else "")
        fields = _fields(flags, url, read, has_body=data is not None and not in_query)
        host = url.netloc.rpartition("@")[2]
        requests.append(CurlRequest(host, method, path, fields, body))
    return requests


def _method(flags: Flags, has_body: bool) -> str:
    if (method := flags.last("request")) is not None:
        return method
    if flags.has("head"):
        require(not has_body, "-I of curl cannot be combined with -d", "remove one, or add -G")
        return "HEAD"
    return "POST" if has_body else "GET"


def _url(written: str, is_literal: bool) -> SplitResult:
    text = written if _SCHEME.match(written) else f"http://{written}"
    try:
        url = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"{written[:80]!r} is not a URL", "paste the whole command") from error
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError(
            f"{written[:80]!r} is not an http:// or https:// URL", "paste the whole command"
        )
    if not is_literal and (glob := _GLOBS.search(url.path + url.query)):
        raise UsageError(
            f"the URL {written[:80]!r} has {glob.group()}, which curl expands",
            "write a value in its place, or add --globoff to send it unchanged",
        )
    return url


def _data(flags: Flags, read: Read) -> bytes | None:
    """The body from all data flags; None without data flags."""
    has_data, body = False, b""
    for name, value in flags.entries:
        if name in _DATA:
            has_data = True
            separator = b"&" if body and name != "json" else b""
            body += separator + _data_part(name, value, read)
    return body if has_data else None


def _data_part(name: str, value: str, read: Read) -> bytes:
    if name == "data-urlencode":
        return _encoded(value, read).encode(errors="surrogateescape")
    if name == "data-raw" or not value.startswith("@"):
        return value.encode(errors="surrogateescape")
    content = read(value[1:])
    if name in ("data", "data-ascii"):
        return content.translate(None, b"\r\n\0")
    return content


def _encoded(value: str, read: Read) -> str:
    """Form-encode the content of ``content``, ``=content``, ``name=content``, ``@file`` or
    ``name@file``."""
    place = value.find("=")
    place = value.find("@") if place < 0 else place
    if place < 0:
        return quote_plus(value, errors="surrogateescape")
    name, mark, content = value[:place], value[place], value[place + 1 :]
    encoded = (
        quote_plus(read(content)) if mark == "@" else quote_plus(content, errors="surrogateescape")
    )
    return f"{name}={encoded}" if name else encoded


def _query_part(value: str, read: Read) -> str:
    return value[1:] if value.startswith("+") else _encoded(value, read)


def _fields(flags: Flags, url: SplitResult, read: Read, has_body: bool) -> tuple[Field, ...]:
    """The fields of the command, and those implied by other flags, unless the command sets or
    removes them."""
    explicit, names = _header_flag_fields(flags, read)
    host = url.netloc.rpartition("@")[2]
    sent = [
        (name, value)
        for name, value in explicit
        if (is_imported(name) and name.lower() not in _NOT_SENT)
        or (name.lower() == "host" and value != host)
    ]
    implied = _implied_fields(flags, url, has_body)
    return (*sent, *(one for one in implied if one[0].lower() not in names))


def _header_flag_fields(flags: Flags, read: Read) -> tuple[list[Field], set[str]]:
    """The fields of ``-H``, and the names of the fields that it sets or removes."""
    fields, names = [], set()
    for header in flags.values("header"):
        lines = _text(read(header[1:])).splitlines() if header.startswith("@") else [header]
        for line in lines:
            if not line.strip() or line.startswith(":"):  # a pseudo-header field of HTTP/2
                continue
            name, colon, value = line.partition(":")
            is_empty = not colon and line.rstrip().endswith(";")
            name = line.rstrip()[:-1] if is_empty else name
            if not (colon or is_empty):  # the message omits the line, which may be a secret
                raise UsageError(
                    "a header field (-H of curl) has no colon", "write it as 'Name: value'"
                )
            names.add(name.strip().lower())
            if value.strip() or is_empty:
                fields.append((name.strip(), value.strip()))
    return fields, names


def _implied_fields(flags: Flags, url: SplitResult, has_body: bool) -> list[Field]:
    fields = []
    for name, flag in (("User-Agent", "user-agent"), ("Referer", "referer")):
        if value := flags.last(flag):
            fields.append((name, value.removesuffix(";auto")))
    if cookies := [_cookies(value) for value in flags.values("cookie") if value]:
        fields.append(("Cookie", "; ".join(cookies)))
    if authorization := _authorization(flags, url):
        fields.append(("Authorization", authorization))
    if flags.has("json"):
        fields += [("Content-Type", "application/json"), ("Accept", "application/json")]
    elif has_body:
        fields.append(("Content-Type", "application/x-www-form-urlencoded"))
    return fields


def _cookies(value: str) -> str:
    require(
        "=" in value,
        "-b of curl without = reads a cookie file",
        "write the cookies as -b 'NAME=VALUE'",
    )
    return value


def _authorization(flags: Flags, url: SplitResult) -> str | None:
    if token := flags.last("oauth2-bearer"):
        return f"Bearer {token}"
    user = flags.last("user")
    if user is None and url.username is not None:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}"
    if user is None:
        return None
    require(":" in user, "-u of curl has no password", "write it as -u 'USER:PASSWORD'")
    return f"Basic {base64.b64encode(user.encode(errors='surrogateescape')).decode()}"


def _text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")
