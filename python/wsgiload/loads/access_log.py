"""Lines of access logs of web servers and load balancers, in the form that the generator reads.
Pure; reports each line that has no such form, with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from wsgiload.errors import UsageError
from wsgiload.loads.targets_text import url_text
from wsgiload.units import parse_duration_ns

NOT_A_LINE = "not a line of an access log"
NO_REQUEST = "no request that can be sent"
WEB_SOCKET = "WebSocket"
SWITCHING_PROTOCOLS = "101"
NOT_AN_OFFSET = "not an offset in seconds, or with a unit"

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:[.,]\d+)?(?: ?(?:[+-]\d\d:?\d\d|[Zz]))?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ISO = rf"(?:19[7-9]|2\d\d)\d-(?:0?[1-9]|1[0-2])-{_DAY}[T ]{_CLOCK}"
# Seconds, milliseconds, microseconds or nanoseconds since 1970.
_SINCE_1970 = r"(?:\d{9,10}|\d{12,13}|\d{15,16}|\d{18}|1\d{18})(?:\.\d*)?"
_TIME = rf"(?:{_DAY}/{_MONTH}/(?:19[7-9]|2\d\d)\d:{_CLOCK}|{_ISO}|{_SINCE_1970})"
# Apache escapes a quote inside the request with a backslash.
_REQUEST = r'"(?P<request>(?:[^"\\]|\\.)*)"'

# The common and the combined format, and Envoy's. HAProxy has its timers and the status before the
# request.
_COMMON = re.compile(
    rf"\[(?P<time>{_TIME})\]"
    r"(?: \S+ \S+ [+-]?\d+(?:/[+-]?\d+){3,} (?P<before>\d{3}|-1) )?"
    rf"[^\"]*{_REQUEST}(?:\s+(?P<after>\d{{3}})\b)?"
)
# AWS: the Application Load Balancer, and without the first word the Classic Load Balancer.
_AWS = re.compile(
    rf"(?:(?P<type>https?|h2|grpcs?|wss?) )?(?P<time>{_ISO})(?: \S+){{6}} (?P<before>\d{{3}}|-)"
    rf"(?: \S+){{3}} {_REQUEST}(?P<after>)"
)
_WEB_SOCKETS = ("ws", "wss")
_REQUEST_LINE = re.compile(r"([A-Z]+) (\S+) HTTP/\S*")
_ESCAPE = re.compile(r'\\x([0-9A-Fa-f]{2})|\\(["\\])')
# As programs print small numbers.
_EXPONENT = re.compile(r"\d+(?:\.\d+)?e-?\d{1,2}")
_TIME_ONLY = re.compile(_TIME)

# Names of fields in JSON logs; the first one present is used.
_TIMES = (
    *("time", "timestamp", "@timestamp", "ts", "msec", "time_iso8601", "time_local"),
    *("start_time", "date", "StartUTC"),
)
_METHODS = ("method", "request_method", "verb", "requestMethod", "RequestMethod")
_PATHS = ("uri", "request_uri", "url", "path", "requestUrl", "RequestPath")
_STATUSES = ("status", "status_code", "response_code", "DownstreamStatus")
# Caddy and Google's load balancer log the request as an object.
_INNER = ("request", "httpRequest")


class Dropped(ValueError):
    """A line without a form that the generator reads; the message is the reason."""


def plain_line(line: str) -> str:
    """The line of an access log in the common format. Raises Dropped."""
    if line.startswith("{"):
        return _of_json(line)
    match = _AWS.match(line) or _COMMON.search(line)
    if match is None:
        raise Dropped(NOT_A_LINE)
    if match.groupdict().get("type") in _WEB_SOCKETS:
        raise Dropped(WEB_SOCKET)
    return _plain(match["time"], match["before"] or match["after"], _requested(match["request"]))


def offset_line(line: str) -> str:
    """The line of a trace. Raises Dropped."""
    offset = line.split("#")[0].strip()
    if not _EXPONENT.fullmatch(offset):
        try:
            parse_duration_ns(offset)
        except UsageError:
            raise Dropped(NOT_AN_OFFSET) from None
    return offset


def _plain(time: str, status: str | None, request: tuple[str, str]) -> str:
    method, target = request
    if status == SWITCHING_PROTOCOLS:
        raise Dropped(WEB_SOCKET)
    return f'[{time}] "{method} {target} HTTP/1.1" {status or "-"}'


@lru_cache(maxsize=10_000)
def _requested(line: str) -> tuple[str, str]:
    """Method and target of a request line. Logs also contain the lines of attacks and broken
    clients."""
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Dropped(NO_REQUEST)
    return match[1], _target(match[1], _ESCAPE.sub(_unescaped, match[2]))


def _unescaped(match: re.Match[str]) -> str:
    return f"%{match[1]}" if match[1] else f"%{ord(match[2]):02X}"


def _target(method: str, target: str) -> str:
    """Path and query, or a whole URL, with all other bytes percent-encoded."""
    if target.startswith(("ws://", "wss://")):
        raise Dropped(WEB_SOCKET)
    is_method = method.isascii() and method.isalpha() and method.isupper()
    if not is_method or method == "CONNECT" or not (target.startswith("/") or "://" in target):
        raise Dropped(NO_REQUEST)
    return url_text(target)


def _of_json(line: str) -> str:
    try:
        fields = msgspec.json.decode(line.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Dropped("not JSON") from None
    if not isinstance(fields, dict):
        raise Dropped("not JSON")
    inner = next((fields[name] for name in _INNER if isinstance(fields.get(name), dict)), fields)
    time = _first(fields, _TIMES)
    if time is None or not _TIME_ONLY.fullmatch(time.strip()):
        raise Dropped("no time")
    return _plain(
        time.strip(), _first({**fields, **inner}, _STATUSES), _json_request(fields, inner)
    )


def _json_request(fields: Mapping[str, object], inner: Mapping[str, object]) -> tuple[str, str]:
    line = fields.get("request")
    if isinstance(line, str):  # nginx
        return _requested(line)
    path = _first(inner, _PATHS)
    if path is None:
        raise Dropped(NO_REQUEST)
    method = _first(inner, _METHODS) or "GET"
    return method, _target(method, path)


def _first(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The first of these fields that is a string or a number, as text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    return None
