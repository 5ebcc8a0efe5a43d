"""Removes secrets and bodies from requests, plans and reports, for storing and printing, and
restores them from the values that the user gives again on resume. Only reads files."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from wsgiload.catalogue.bundled import BUNDLED
from wsgiload.documents.load_plan import LoadPlan, RequestPlan, SessionPlan, WeightedRequest
from wsgiload.documents.load_report import LoadReport, WrongResponse
from wsgiload.errors import UsageError
from wsgiload.experiment.redaction import (
    holds_redacted,
    is_redacted,
    public_body,
    public_field,
    public_text,
    public_url,
)
from wsgiload.experiment.variables import differs
from wsgiload.loads.public_options import RequestOptions
from wsgiload.loads.request import Request, header_pairs, sessions_of, targets_of

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


Fields = tuple[tuple[str, str], ...]
Planned = TypeVar("Planned", LoadPlan, RequestPlan)


def public_request(request: Request) -> Request:
    """The request of an experiment without secrets."""
    return replace(
        request,
        path=public_url(request.path),
        headers=public_fields(request.headers),
        body=None if request.body is None else public_body(request.body),
        targets=public_targets(request.targets),
        sessions=public_sessions(request.sessions),
    )


def public_fields(fields: Fields) -> Fields:
    """Header fields without secrets."""
    return tuple(public_field(name, value) for name, value in fields)


def public_targets(targets: tuple[WeightedRequest, ...]) -> tuple[WeightedRequest, ...]:
    """Weighted requests without secrets."""
    return tuple(
        msgspec.structs.replace(target, request=_planned(target.request)) for target in targets
    )


def public_sessions(sessions: tuple[SessionPlan, ...]) -> tuple[SessionPlan, ...]:
    """Sessions without secrets."""
    return tuple(
        msgspec.structs.replace(
            session,
            steps=tuple(
                msgspec.structs.replace(step, request=_planned(step.request))
                for step in session.steps
            ),
        )
        for session in sessions
    )


def public_plan(plan: LoadPlan) -> LoadPlan:
    """The plan of a load without secrets. The generator needs the original plan."""
    return msgspec.structs.replace(
        _planned(plan),
        targets=public_targets(plan.targets),
        sessions=public_sessions(plan.sessions),
    )


def public_report(report: LoadReport) -> LoadReport:
    """The report of a load without secrets in its plan, target names and quoted responses."""
    targets = tuple(
        msgspec.structs.replace(counts, name=public_url(counts.name)) for counts in report.targets
    )
    return msgspec.structs.replace(
        report,
        plan=public_plan(report.plan),
        targets=targets,
        wrong_responses=tuple(public_response(one) for one in report.wrong_responses),
    )


def public_response(response: WrongResponse) -> WrongResponse:
    """A quoted response without secrets."""

    def public(text: str | None) -> str | None:
        return None if text is None else public_text(text)

    return msgspec.structs.replace(
        response,
        first_line=public_text(response.first_line),
        location=public(response.location),
        body=public(response.body),
    )


def _planned(plan: Planned) -> Planned:
    return msgspec.structs.replace(
        plan,
        url=public_url(plan.url),
        headers=public_fields(plan.headers),
        body_base64=_body(plan.body_base64),
    )


def _body(text: str | None) -> str | None:
    if text is None or is_redacted(text):
        return text
    return public_body(base64.b64decode(text)).decode()
