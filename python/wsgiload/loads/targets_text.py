"""Targets as text, for what makes a targets file of something else. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ImportedTargets:
    """A targets file, and what a user should know about it."""

    text: str
    notes: tuple[str, ...]


def target_text(method: str, path: str, fields: Fields, body: bytes) -> str:
    """The lines of one request: in vegeta's HTTP format, or in its JSON format with a body. Nothing
    in it is a placeholder."""
    path, fields = _literal(path), [(name, _literal(value)) for name, value in fields]
    if body:
        return _json_line(method, path, fields, _literal_body(body))
    return "".join(f"{line}\n" for line in (f"{method} {path}", *map(": ".join, fields)))


def _literal(text: str) -> str:
    return text.replace("{{", "{{{{")


def _literal_body(body: bytes) -> bytes:
    try:
        return _literal(body.decode()).encode()
    except UnicodeDecodeError:  # it has no placeholders
        return body


def _json_line(method: str, path: str, fields: Fields, body: bytes) -> str:
    header: dict[str, list[str]] = {}
    for name, value in fields:
        header.setdefault(name, []).append(value)
    encoded = base64.b64encode(body).decode()
    target = {"method": method, "url": path, "header": header, "body": encoded}
    return f"{msgspec.json.encode(target).decode()}\n"
