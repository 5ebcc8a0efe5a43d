"""A finding as a sentence with its cause and fix, followed by the name of the check."""

from __future__ import annotations

from wsgiload.documents.load_report import Reason


def finding_text(reason: Reason) -> str:
    """``cause; fix [name]``: `wsgiload explain NAME` says more."""
    fix = f"; {reason.fix}" if reason.fix else ""
    return f"{reason.message}{fix} [{reason.check}]"
