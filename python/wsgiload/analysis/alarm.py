"""An alarm: one pattern in results, described in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wsgiload.documents.load_report import Reason

Blame = Literal["client", "server", "method"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """One detected pattern: a description, a fix, and the kind of publication that the alarm would
    have prevented."""

    check: str
    blame: Blame
    message: str
    value: float
    limit: float
    source: str
    fix: str | None = None

    def reason(self) -> Reason:
        """The alarm as a reason of a verdict."""
        return Reason(
            check=self.check,
            level="warn",
            message=self.message,
            fix=self.fix,
            value=self.value,
            limit=self.limit,
        )
