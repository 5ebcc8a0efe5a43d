"""The reasons that the orchestrator adds to a verdict."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.load_report import Blame, Reason

Level = Literal["warn", "invalid"]
Figure = float | str | bool | None
# Blame and reason.
BlamedReason = tuple[Blame | None, Reason]


def reason_of(
    check: str,
    level: Level,
    message: str,
    value: Figure,
    limit: Figure,
    fix: str | None = None,
) -> Reason:
    """A reason with its code, which older readers use."""
    return Reason(
        check=check,
        level=level,
        message=message,
        fix=fix,
        value=value,
        limit=limit,
    )
