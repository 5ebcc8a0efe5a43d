"""Restores the secrets of a stored request, which contains only their hashes, from the values that
the user gives again on resume. Only reads files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from wsgiload.catalogue.bundled import BUNDLED
from wsgiload.errors import UsageError
from wsgiload.experiment.public_request import public_sessions, public_targets
from wsgiload.experiment.redaction import holds_redacted, public_body, public_field, public_url
from wsgiload.experiment.variables import differs
from wsgiload.loads.mix import sessions_of, targets_of
from wsgiload.loads.public_options import RequestOptions
from wsgiload.loads.request import Request, header_pairs

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What a user gives again on resume, because it was not stored."""

    request: RequestOptions
    variables: Mapping[str, str]


NO_SECRETS = Secrets(request=RequestOptions(), variables={})


def restore_secrets(stored: Request, given: RequestOptions) -> Request:
    """The stored request with its secrets. Raises UsageError if a secret is missing, or if a given
    value differs from the stored one."""
    fields = header_pairs(given.headers)
    stored_fields = {_comparable(field) for field in stored.headers}
    for field in fields:
        if _comparable(field) not in stored_fields:
            raise differs(f"header field {field[0]}")
    headers = tuple(_field(field, fields) for field in stored.headers)
    body = _bundled_body(stored.body) if given.body is None else given.body
    return replace(
        stored,
        path=_part("path", stored.path, given.path, public_url),
        headers=headers,
        body=_part("body", stored.body, body, _public_body),
        targets=_part("targets", stored.targets, targets_of(given.targets) or None, public_targets),
        sessions=_part(
            "sessions", stored.sessions, sessions_of(given.sessions) or None, public_sessions
        ),
    )


def _field(stored: tuple[str, str], given: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    name, value = stored
    if not holds_redacted(value):
        return stored
    for one in given:
        if _comparable(one) == _comparable(stored):
            return one
    raise UsageError(
        f"--resume: the value of {name} was not stored, because it may be a secret",
        f"give it again: wsgiload sweep --resume … -H '{name}: …'",
    )


def _comparable(field: tuple[str, str]) -> tuple[str, str]:
    name, value = public_field(*field)
    return name.lower(), value


def _public_body(body: bytes | None) -> bytes | None:
    return None if body is None else public_body(body)


def _bundled_body(stored: bytes | None) -> bytes | None:
    """The body of a bundled app if it matches the stored hash; it is not a secret."""
    if stored is None or not holds_redacted(_text(stored)):
        return None
    bodies = (app.body for app in BUNDLED.values() if app.body is not None)
    return next((body for body in bodies if public_body(body) == stored), None)


def _part(option: str, stored: Part, given: Part | None, public: Callable[[Part], Part]) -> Part:
    if given is not None:
        if public(given) != public(stored):
            raise differs(option)
        return given
    if holds_redacted(_text(stored)):
        raise UsageError(
            f"--resume: the value of --{option} was not stored, because it may hold secrets",
            f"give it again: wsgiload sweep --resume … --{option} …",
        )
    return stored


def _text(part: object) -> str:
    if isinstance(part, bytes):
        return part.decode(errors="replace")
    return msgspec.json.encode(part).decode()
