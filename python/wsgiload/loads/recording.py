"""A file to replay: the arrivals of a trace, or the arrivals and requests of an access log. For the
formats, see docs/schedules.md. The requests of an access log can also become a targets file.

The generator reads the lines; those that it would refuse are left out before, and counted with the
reason.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from os import PathLike, fspath
from typing import BinaryIO

import msgspec

from wsgiload._loadgen import read_recording as read
from wsgiload.documents.base import decode_json
from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RECORDING, STANDARD_INPUT, plain_input
from wsgiload.loads.targets_text import ImportedTargets, skipped_note, template_text, url_text
from wsgiload.units import parse_duration_ns


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded arrivals, with their requests if known."""

    offsets_ns: tuple[int, ...]
    # The distinct requests, and for each arrival the index of its request; empty for a trace.
    targets: tuple[WeightedRequest, ...]
    requests: tuple[int, ...] | None
    # Notes for the user about the replay of this log.
    notes: tuple[str, ...]


def read_recording(path: str | PathLike[str]) -> Recording:
    """The recording in a file, also one packed by gzip; ``-`` is standard input."""
    name = "standard input" if fspath(path) == STANDARD_INPUT else fspath(path)
    try:
        with plain_input(RECORDING, path) as (file, is_cut), tempfile.TemporaryFile() as plain:
            notes = _plain_lines(file, plain, is_cut=is_cut)
            plain.flush()
            recording = decode_json(read(f"/proc/self/fd/{plain.fileno()}"), Recording)
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        cause = str(error).partition(": ")[2]  # without the name of the temporary file
        raise UsageError(f"{name}: {cause}") from error
    return msgspec.structs.replace(recording, notes=(*notes, *recording.notes))


def _plain_lines(file: BinaryIO, plain: BinaryIO, *, is_cut: bool) -> list[str]:
    """Write the lines that the generator reads, and return notes on the others."""
    read_line = _reader_of(file)
    dropped: Counter[str] = Counter()
    lines = 0
    for row in file:
        text = ""  # keeps the numbers of lines in errors
        if line := _text(row):
            lines += 1
            try:
                text = read_line(line)
            except Dropped as reason:
                dropped[str(reason) if row.endswith(b"\n") else "cut off at the end"] += 1
        plain.write(f"{text}\n".encode())
    cut = ["the packed file is cut off; its end is missing"] if is_cut else []
    return [*skipped_note(dropped, lines, "lines"), *cut]


def _reader_of(file: BinaryIO) -> Callable[[str], str]:
    """The reader of the first line that is from an access log or a trace."""
    line = ""
    for line in filter(None, map(_text, file)):
        for reader in (plain_line, offset_line):
            with suppress(Dropped):
                reader(line)
                file.seek(0)
                return reader
    if line:
        raise ValueError(f": no line is from an access log or a trace{_EXAMPLES}")
    file.seek(0)
    return offset_line


def _text(row: bytes) -> str:
    """A line without its comment; bytes that are not UTF-8 are kept as surrogates."""
    line = row.decode("utf-8-sig", "surrogateescape").strip()
    return "" if line.startswith("#") else line


_EXAMPLES = (
    '; a line is like 0.25, or like h - - [25/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5'
)

# The beginning of the note on arrival times, which a targets file does not contain.
_TIMES_NOTE = "the log has a resolution of"


def targets_of_access_log(path: str | PathLike[str]) -> ImportedTargets:
    """The distinct requests of a log, with their counts as weights; ``-`` is standard input.

    Raises UsageError for a file that is not an access log or contains only arrival times.
    """
    log = read_recording(path)
    if log.requests is None:
        raise UsageError(
            f"{fspath(path)} contains arrival times without requests",
            f"replay them with: wsgiload load URL --replay {fspath(path)}",
        )

    counts = Counter(log.requests)
    targets = [
        _target(one.request) + (f"--weight {counts[index]}\n" if counts[index] > 1 else "")
        for index, one in enumerate(log.targets)
    ]
    notes = tuple(note for note in log.notes if not note.startswith(_TIMES_NOTE))
    return ImportedTargets("\n".join(targets), notes)


def _target(request: RequestPlan) -> str:
    """The lines of one request. Braces in its URL are already escaped."""
    text = template_text(request.method, request.url, (), b"")
    statuses = request.check.statuses if request.check is not None else ()
    return text + (f"--expect-status {','.join(map(str, statuses))}\n" if statuses else "")


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
    return match[1], _target_of_line(match[1], _ESCAPE.sub(_unescaped, match[2]))


def _unescaped(match: re.Match[str]) -> str:
    return f"%{match[1]}" if match[1] else f"%{ord(match[2]):02X}"


def _target_of_line(method: str, target: str) -> str:
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
    return method, _target_of_line(method, path)


def _first(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The first of these fields that is a string or a number, as text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    return None
