"""Writes targets files from other formats. Pure."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from wsgiload.errors import UsageError, require
from wsgiload.loads.request import is_token

Fields = Sequence[tuple[str, str]]

# Fields that the generator sets, that belong to one connection, or that turn a response into "not
# modified".
_SKIPPED_FIELDS = frozenset(
    [
        "host",
        "content-length",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "te",
        "if-none-match",
        "if-modified-since",
        "if-range",
        "range",
    ]
)
_SECRET_FIELDS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token")
)
# Line breaks would begin another line of the targets file, such as one that names a file.
_NOT_IN_A_LINE = re.compile("[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
# Visible ASCII characters without those that are not allowed in URLs.
_KEPT_IN_URLS = "".join(map(chr, range(0x21, 0x7F))).translate(dict.fromkeys(map(ord, '"<>\\`')))
# Prefixes of comments and options.
_OTHER_LINES = ("#", "--")


@dataclass(frozen=True, slots=True)
class ImportedTargets:
    """A targets file, with notes for the user."""

    text: str
    notes: tuple[str, ...]


def target_text(method: str, path: str, fields: Fields, body: bytes) -> str:
    """The lines of one request without placeholders: in vegeta's HTTP format, or in its JSON format
    with a body."""
    literal = [(name, escaped(value)) for name, value in fields]
    return template_text(method, escaped(url_text(path)), literal, _literal_body(body))


def template_text(method: str, path: str, fields: Fields, body: bytes) -> str:
    """The lines of one request that may contain placeholders."""
    _require_single_lines(method, path, fields)
    if body or any(text.startswith(_OTHER_LINES) for text in (method, *dict(fields))):
        return _json_line(method, path, fields, body)
    return "".join(f"{line}\n" for line in (f"{method} {path}", *map(": ".join, fields)))


def escaped(text: str) -> str:
    """The text with braces escaped, so it contains no placeholder."""
    return text.replace("{{", "{{{{")


def url_text(path: str) -> str:
    """The path and query with all invalid URL characters encoded."""
    return quote(path, safe=_KEPT_IN_URLS, errors="surrogateescape")


def is_imported(name: str) -> bool:
    """Whether targets keep this header field."""
    return not name.startswith(":") and name.lower() not in _SKIPPED_FIELDS


def with_weights(targets: Iterable[str]) -> str:
    """A targets file with each distinct target once; its count is its weight."""
    counts = Counter(targets)
    return "\n".join(
        target + (f"--weight {count}\n" if count > 1 else "") for target, count in counts.items()
    )


def skipped_note(reasons: Mapping[str, int], total: int, things: str) -> list[str]:
    """A note on what was left out of ``total`` things, with the count of each reason."""
    if not reasons:
        return []
    ordered = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    counted = [f"{reason} ({count:,})" for reason, count in ordered]
    causes = ", ".join(counted) if len(counted) > 1 else ordered[0][0]
    return [f"skipped {sum(reasons.values()):,} of {total:,} {things}: {causes}"]


def secrets_note(names: Iterable[str], source: str) -> list[str]:
    """A warning if header fields with these names contain secrets."""
    secret = sorted({name.lower() for name in names} & _SECRET_FIELDS)
    return (
        [f"the targets contain secrets from the {source} ({', '.join(secret)})"] if secret else []
    )


def _require_single_lines(method: str, path: str, fields: Fields) -> None:
    """Reject line breaks, which could add lines to the targets file."""
    require(is_token(method), f"{method!r} is not a request method", "write one like GET")
    if _NOT_IN_A_LINE.search(path) or not path.startswith("/"):
        raise UsageError(f"{path!r} is not a URL path", "percent-encode it")
    for name, value in fields:
        # The value may be a secret.
        require(
            is_token(name) and not _NOT_IN_A_LINE.search(value),
            f"header {name!r} of {path} has a line break or characters that HTTP forbids",
            "remove it",
        )


def _literal_body(body: bytes) -> bytes:
    try:
        return escaped(body.decode()).encode()
    except UnicodeDecodeError:  # it has no placeholders
        return body


def _json_line(method: str, path: str, fields: Fields, body: bytes) -> str:
    header: dict[str, list[str]] = {}
    for name, value in fields:
        header.setdefault(name, []).append(value)
    encoded = base64.b64encode(body).decode()
    target = {"method": method, "url": path, "header": header, "body": encoded}
    return f"{msgspec.json.encode(target).decode()}\n"
