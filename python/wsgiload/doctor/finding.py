"""A finding of the doctor."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.run_info import DoctorFinding

Level = Literal["green", "amber", "red"]


def finding(
    check: str, level: Level, value: float | str | None, message: str, fix: str | None = None
) -> DoctorFinding:
    """One fact about this machine and its effect on measurements."""
    return DoctorFinding(check=check, level=level, value=value, message=message, fix=fix)
