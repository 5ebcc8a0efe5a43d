"""Removes secrets and bodies from requests, plans and reports, for storing and printing."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TypeVar

import msgspec

from wsgiload.documents.load_plan import LoadPlan, RequestPlan, SessionPlan, WeightedRequest
from wsgiload.documents.load_report import LoadReport, WrongResponse
from wsgiload.experiment.redaction import (
    is_redacted,
    public_body,
    public_field,
    public_text,
    public_url,
)
from wsgiload.loads.request import Request

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
