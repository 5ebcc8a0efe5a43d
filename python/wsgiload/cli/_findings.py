"""A finding as text: its cause, the name of the check, and the fix."""

from __future__ import annotations

from wsgiload.documents.load_report import Reason
from wsgiload.report.words import with_fix


def finding_text(reason: Reason) -> str:
    """``cause (name). Fix``: `wsgiload explain NAME` says more."""
    return with_fix(f"{reason.message} ({reason.check})", reason.fix)
