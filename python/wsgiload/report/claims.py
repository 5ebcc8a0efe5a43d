"""The claims of a published comparison, each with our result and judgment. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.analysis.claims import JudgedClaim
from wsgiload.report import words
from wsgiload.report.tool_tables import ToolTable

HEADINGS = ("name", "claim", "original result", "our result", "judgment")


def claims_tables(verdicts: Sequence[JudgedClaim]) -> list[ToolTable]:
    """One table with a row for each claim; none without claims."""
    rows = tuple(map(_row, verdicts))
    return [ToolTable("Claims", HEADINGS, rows)] if rows else []


def _row(verdict: JudgedClaim) -> tuple[str, ...]:
    claim, judged = verdict.claim, verdict.judgement
    judgement = f"**{judged.status}**"
    if judged.because is not None:
        reason = "needs " if judged.status == "undecided" else ""
        judgement += f": {reason}{judged.because}"
    return (f"`{claim.name}`", claim.words, claim.figure, judged.ours or words.MISSING, judgement)
