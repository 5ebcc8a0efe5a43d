"""The request, the definition of a correct response, and how the connection reaches the server.
docs/requests.md describes the files of header fields, weighted requests and sessions. Messages
never quote them, because they may contain secrets."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from wsgiload._loadgen import first_text, read_sessions, read_targets
from wsgiload.documents.base import convert, decode_json
from wsgiload.documents.load_plan import (
    HttpVersion,
    ResponseCheck,
    SessionPlan,
    TlsOptions,
    WeightedRequest,
)
from wsgiload.errors import UsageError, require
from wsgiload.foreign_files import HEADERS, SESSIONS, TARGETS, FileKind, checked_input, read_file

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATH = re.compile(r"/[\x21-\x7e]*")
# ASCII only, because the probe and the generator would encode anything else differently.
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and the definition of a correct response."""

    path: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    statuses: tuple[int, ...] = (200,)
    expected_body: bytes | None = None
    expected_length: int | None = None
    expected_sha256: str | None = None
    expected_regex: str | None = None
    # Several requests instead of one; the headers and checks above are their defaults.
    targets: tuple[WeightedRequest, ...] = ()
    sessions: tuple[SessionPlan, ...] = ()

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise UsageError(
                f"the path {self.path!r} must start with a slash", f"write --path /{self.path}"
            )
        require(
            bool(_PATH.fullmatch(self.path)),
            f"the path {self.path!r} is not a URL path",
            "percent-encode it",
        )
        require(
            is_token(self.method),
            f"{self.method!r} is not a request method",
            "write one like GET",
        )
        for name, value in self.headers:
            allowed = is_token(name) and is_field_value(value)
            require(
                allowed, f"header {name}: {value!r} has characters that HTTP forbids", "use ASCII"
            )
        require(
            self.body is None or isinstance(self.body, bytes | bytearray),
            f"the body must be bytes, not {self.body!r}",
            'write it like b"a=1"',
        )
        is_one_kind = not (self.targets and self.sessions)
        require(is_one_kind, "targets and sessions are mutually exclusive")

    @property
    def check(self) -> ResponseCheck:
        """The definition of a correct response in the form of a plan."""
        return ResponseCheck(
            statuses=self.statuses,
            body_base64=base64_of(self.expected_body),
            length=self.expected_length,
            sha256=self.expected_sha256,
            regex=self.expected_regex,
        )

    @property
    def first(self) -> Request:
        """The request itself, or the first of several; sent to a server before it is measured."""
        requests = [target.request for target in self.targets]
        requests += [step.request for session in self.sessions for step in session.steps]
        if not requests:
            return self._filled()

        first = requests[0]
        names = {name.lower() for name, _ in first.headers}
        inherited = tuple(pair for pair in self.headers if pair[0].lower() not in names)
        url = urlsplit(first.url)
        checked = self if first.check is None else self._checking(first.check)
        one = replace(
            checked,
            path=(url.path or "/") + (f"?{url.query}" if url.query else ""),
            method=first.method,
            headers=first.headers + inherited,
            body=_bytes(first.body_base64),
            targets=(),
            sessions=(),
        )
        return one._filled()

    def _filled(self) -> Request:
        """The request with its placeholders filled in."""
        return replace(
            self,
            path=_text(self.path, "target"),
            headers=tuple((name, _text(value, "field")) for name, value in self.headers),
            body=_body(self.body),
        )

    def _checking(self, check: ResponseCheck) -> Request:
        return replace(
            self,
            statuses=check.statuses,
            expected_body=_bytes(check.body_base64),
            expected_length=check.length,
            expected_sha256=check.sha256,
            expected_regex=check.regex,
        )


def header_pairs(
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
) -> tuple[tuple[str, str], ...]:
    """The header fields of a mapping, or the given pairs."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    fix = 'write {"Accept": "*/*"}, or [("Accept", "*/*")]'
    require(not isinstance(headers, str | bytes), f"headers must not be a string: {headers!r}", fix)
    fields = tuple(pairs)
    for pair in fields:
        is_pair = (
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and all(isinstance(part, str) for part in pair)
        )
        require(is_pair, f"{pair!r} is not a (name, value) pair", fix)
    return tuple((name, value) for name, value in fields)


def is_token(text: str) -> bool:
    """Whether the text is a valid name of a method or header field."""
    return _TOKEN.fullmatch(text) is not None


def is_field_value(text: str) -> bool:
    """Whether the text is a valid value of a header field."""
    return _FIELD_VALUE.fullmatch(text) is not None


def parse_header(text: str) -> tuple[str, str]:
    """The name and the value of ``Name: value``."""
    name, colon, value = text.partition(":")
    if not colon or not is_token(name.strip()):
        raise UsageError(f"{text!r} is not a header field", "write it as 'Name: value'")
    return name.strip(), value.strip()


def base64_of(data: bytes | None) -> str | None:
    """Bytes in the form of a plan."""
    return None if data is None else base64.b64encode(data).decode()


def _text(text: str, part: Literal["target", "field", "body"]) -> str:
    if "{{" not in text:
        return text
    try:
        return first_text(text, part)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _body(body: bytes | None) -> bytes | None:
    """The body with its placeholders filled in; a binary body has none."""
    try:
        return None if body is None else _text(body.decode(), "body").encode()
    except UnicodeDecodeError:
        return body


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def parse_headers(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``Name: value``, or ``@FILE`` with one header field per line."""
    if not text.startswith("@"):
        return (parse_header(text),)
    if text == "@":
        raise UsageError("-H @ is not followed by a file name", "write -H ")
    path = _path_of(text[1:])
    lines = enumerate(_text_of(path).split("\n"), start=1)
    written = [(number, line.strip()) for number, line in lines]
    fields = tuple(
        _field(line, f"{path}:{number}")
        for number, line in written
        if line and not line.startswith("#")
    )
    if not fields:
        raise UsageError(f"{path} has no header fields", "write one 'Name: value' on each line")
    return fields


def _path_of(name: str) -> Path:
    """The path with a leading tilde expanded, which shells do not do after ``@``."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _text_of(path: Path) -> str:
    try:
        return read_file(HEADERS, path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeError:
        raise UsageError(f"{path} is not UTF-8", "use ASCII") from None


def _field(line: str, where: str) -> tuple[str, str]:
    try:
        name, value = parse_header(line)
    except UsageError:
        raise UsageError(f"{where} is not a header field", "write it as 'Name: value'") from None
    if not is_field_value(value):
        raise UsageError(f"{where}: {name} has characters that HTTP forbids", "use ASCII")
    return name, value


Entry = TypeVar("Entry", WeightedRequest, SessionPlan)

# A file, or the entries themselves, typed or as plain data.
Targets = str | PathLike[str] | Sequence[WeightedRequest] | Sequence[Mapping[str, object]]
Sessions = str | PathLike[str] | Sequence[SessionPlan] | Sequence[Mapping[str, object]]


def targets_of(targets: Targets | None) -> tuple[WeightedRequest, ...]:
    """The weighted requests of a file, or those passed directly."""
    if isinstance(targets, str | PathLike):
        return _from_file(fspath(targets), TARGETS, read_targets, WeightedRequest)
    return tuple(_entry(entry, WeightedRequest) for entry in targets or ())


def sessions_of(sessions: Sessions | None) -> tuple[SessionPlan, ...]:
    """The sessions of a file, or those passed directly."""
    if isinstance(sessions, str | PathLike):
        return _from_file(fspath(sessions), SESSIONS, read_sessions, SessionPlan)
    return tuple(_entry(entry, SessionPlan) for entry in sessions or ())


def _from_file(
    path: str, file: FileKind, read: Callable[[str], str], kind: type[Entry]
) -> tuple[Entry, ...]:
    try:
        with checked_input(file, path):
            entries = read(path)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return decode_json(entries, tuple[kind, ...])  # type: ignore[valid-type]


def _entry(entry: Entry | Mapping[str, object], kind: type[Entry]) -> Entry:
    if isinstance(entry, kind):
        return entry
    try:
        return convert(entry, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{entry!r} is not an entry: {error}", "see docs/requests.md") from error


@dataclass(frozen=True, slots=True)
class Transport:
    """Connection settings, which the generator checks. Default: plain HTTP/1.1 from an address that
    the kernel chooses."""

    unix_socket: str | None = None
    connect_to: str | None = None
    source_addresses: tuple[str, ...] = ()
    http2: bool = False
    streams: int = 1
    http1_0: bool = False
    insecure: bool = False
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    @property
    def http_version(self) -> HttpVersion:
        """The HTTP version in the form of a plan."""
        if self.http2:
            return "http2"
        return "http1_0" if self.http1_0 else "http1"

    @property
    def tls(self) -> TlsOptions:
        """The TLS settings in the form of a plan."""
        return TlsOptions(
            insecure=self.insecure,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )
