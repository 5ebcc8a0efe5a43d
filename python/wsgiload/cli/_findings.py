"""Formats findings."""

from __future__ import annotations

from wsgiload.documents.load_report import Reason
from wsgiload.report.words import with_fix


def finding_text(reason: Reason) -> str:
    """The cause, the name of the check for `wsgiload explain`, and the fix."""
    return with_fix(f"{reason.message} ({reason.check})", reason.fix)
