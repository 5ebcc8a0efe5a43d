"""What an alarm is: one pattern found in results, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wsgiload.documents.check_names import code_of
from wsgiload.documents.load_report import Reason

Blame = Literal["client", "server", "method"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """One pattern that was found: in words, what to do about it, and what it would have stopped."""

    check: str
    blame: Blame
    message: str
    value: float
    limit: float
    source: str
    fix: str | None = None

    def reason(self) -> Reason:
        """As a verdict lists it."""
        return Reason(
            check=self.check,
            code=code_of(self.check),
            level="warn",
            message=self.message,
            fix=self.fix,
            value=self.value,
            limit=self.limit,
        )
