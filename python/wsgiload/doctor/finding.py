"""What the doctor says of one thing it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["green", "amber", "red"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine and what it means for measuring."""

    check: str
    level: Level
    value: str | int | float | None
    message: str
    fix: str | None = None
