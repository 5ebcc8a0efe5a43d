"""What is sent, and what counts as a correct response: frozen data. Nothing here sends
anything."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from wsgiload.documents.load_plan import RequestPlan, ResponseCheck, SessionPlan, WeightedRequest
from wsgiload.errors import UsageError, require

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATH = re.compile(r"/[\x21-\x7e]*")
# ASCII only: the probe and the generator would encode anything else differently.
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Request:
    """What each request is, and what counts as a correct response."""

    path: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    statuses: tuple[int, ...] = (200,)
    expected_body: bytes | None = None
    expected_length: int | None = None
    expected_sha256: str | None = None
    expected_regex: str | None = None
    # As the generator's plan has them; instead of one request, whose headers and checks are then
    # their defaults.
    targets: tuple[WeightedRequest, ...] = ()
    sessions: tuple[SessionPlan, ...] = ()

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise UsageError(
                f"the path {self.path!r} does not begin with a slash", f"write --path /{self.path}"
            )
        require(
            bool(_PATH.fullmatch(self.path)),
            f"the path {self.path!r} is no URL path",
            "percent-encode it",
        )
        require(
            bool(_TOKEN.fullmatch(self.method)),
            f"{self.method!r} is not a request method",
            "write one like GET",
        )
        for name, value in self.headers:
            allowed = bool(_TOKEN.fullmatch(name) and _FIELD_VALUE.fullmatch(value))
            require(
                allowed, f"header {name}: {value!r} has characters that HTTP forbids", "use ASCII"
            )
        require(
            self.body is None or isinstance(self.body, bytes | bytearray),
            f"{self.body!r} is no body",
            'give bytes, such as b"a=1"',
        )
        require(
            not (self.targets and self.sessions),
            "targets and sessions were both given",
            "give one of them",
        )

    @property
    def first(self) -> Request:
        """The request by itself, or the first of several: what a server is asked before it is
        measured."""
        one = self._first_plan
        if one is None:
            return self

        names = {name.lower() for name, _ in one.headers}
        inherited = tuple(pair for pair in self.headers if pair[0].lower() not in names)
        url = urlsplit(one.url)
        checked = self if one.check is None else self._checked(one.check)
        return replace(
            checked,
            path=(url.path or "/") + (f"?{url.query}" if url.query else ""),
            method=one.method,
            headers=one.headers + inherited,
            body=_bytes(one.body_base64),
            targets=(),
            sessions=(),
        )

    @property
    def _first_plan(self) -> RequestPlan | None:
        requests = [target.request for target in self.targets]
        requests += [step.request for session in self.sessions for step in session.steps]
        return requests[0] if requests else None

    def _checked(self, check: ResponseCheck) -> Request:
        """This request with another check."""
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
    """Header fields of a mapping, or of pairs as they are."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    fix = 'write {"Accept": "*/*"}, or [("Accept", "*/*")]'
    require(not isinstance(headers, str | bytes), f"headers are no text, as {headers!r} is", fix)
    fields = tuple(pairs)
    for pair in fields:
        is_pair = (
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and all(isinstance(part, str) for part in pair)
        )
        require(is_pair, f"{pair!r} is no name and value of a header field", fix)
    return tuple((name, value) for name, value in fields)


def parse_header(text: str) -> tuple[str, str]:
    """``Name: value``."""
    name, colon, value = text.partition(":")
    if not colon or not _TOKEN.fullmatch(name.strip()):
        raise UsageError(f"{text!r} is not a header field", "write it as 'Name: value'")
    return name.strip(), value.strip()


def base64_of(data: bytes | None) -> str | None:
    """As a plan holds bytes."""
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
