"""Takes secrets apart, because an app may log one field of a body, one key of a list or one part of
a connection string. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import islice

from wsgiload.experiment.harmless import CONNECTION_FIELDS, DATABASE_SCHEMES, HOST_SCHEMES

# More parts would make each search for secrets slow.
MAX_PARTS = 1_000

# Text and whether it may be shown.
Part = tuple[str, bool]

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][\w+.-]*)://(?:(?P<user>[^\s/?#:]*)(?P<password>:[^\s/?#]*)?@)?"
    r"(?P<host>[\w.,\[\]-]*(?::\d+)?(?:,[\w.-]+:\d+)*)(?P<path>/[^\s?#@]*)?(?P<query>[?#][^\s@]*)?"
)
_DATABASE = re.compile(r"/[\w.-]*")
_VALUES = (
    re.compile(r"=([^&\r\n]+)"),
    re.compile(r"""=\s*["']?([^&;,\s"'<>]+)"""),
    re.compile(r">([^<>]+)<"),
)
# The fields of a part of a multipart body.
_PART_HEAD = re.compile(r"(?im)^content-.*$")


def connection_parts(value: str) -> list[Part]:
    """The parts of a connection string; a value of another kind has one part."""
    url = _URL.fullmatch(value)
    if url is not None and url["scheme"].lower() in DATABASE_SCHEMES | HOST_SCHEMES:
        return _url_parts(url)
    separator = ";" if ";" in value else r"\s+"
    fields = [_field_parts(text) for text in re.split(f"({separator})", value)]
    is_connection = any(len(parts) > 1 and parts[-1][1] for parts in fields)
    return [part for parts in fields for part in parts] if is_connection else [(value, False)]


def _url_parts(url: re.Match[str]) -> list[Part]:
    parts = [(f"{url['scheme']}://", True)]
    if url["user"] is not None:
        password = url["password"] or ""
        parts += [(url["user"], False), (password[:1], True), (password[1:], False), ("@", True)]
    path = url["path"] or ""
    is_database = url["scheme"].lower() in DATABASE_SCHEMES and _DATABASE.fullmatch(path)
    parts += [(url["host"], True), (path[:1], True), (path[1:], bool(is_database))]
    for text in re.split("([?&#])", url["query"] or ""):
        parts += [(text, True)] if text in "?&#" else _field_parts(text)
    return parts


def _field_parts(text: str) -> list[Part]:
    name, equals, value = text.partition("=")
    if not equals:
        return [(text, not text.strip("; \t\r\n"))]
    return [(name + equals, True), (value, name.strip().lower() in CONNECTION_FIELDS)]


def credentials_in(value: str) -> Iterator[str]:
    """The token of a header field without its scheme, the user and the password of basic
    authentication, and the values of parameters."""
    scheme, _, rest = value.strip().partition(" ")
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(rest).decode()
        except ValueError:
            return
        yield decoded
        yield from decoded.split(":", 1)
    yield from values_in(value)


def values_in(text: str) -> list[str]:
    """The values in JSON, a form, XML, a list or lines of text."""
    return list(islice(_values_in(text), MAX_PARTS))


def _values_in(text: str) -> Iterator[str]:
    try:
        yield from _leaves(json.loads(text))
    except (ValueError, RecursionError):
        text = _PART_HEAD.sub("", text)
    for values in _VALUES:
        yield from (match[1].strip() for match in values.finditer(text))
    for line in map(str.strip, text.splitlines()):
        if not line.startswith("--"):
            yield line
            yield from () if " " in line else line.split(",")


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
