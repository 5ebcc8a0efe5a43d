"""What a generator is asked for, and what it says it did. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """One load. Without a rate it is closed: every connection asks again as soon as it was
    answered."""

    url: str
    connections: int
    seconds: int
    rate_per_s: int | None = None
    arrivals: str = "constant"
    # Of a random schedule; generators that cannot be told have no such schedule.
    seed: int = 0
    # How long before a send to spin, for the generators that can be told.
    spin: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a generator printed of its own work. None: it does not say."""

    requests: int
    failed: int | None = None
    elapsed_s: float | None = None
    quantiles_us: dict[str, float] = field(default_factory=dict)
    # What only one generator tells, such as its own send lag.
    remarks: dict[str, Any] = field(default_factory=dict)


class OutputError(Exception):
    """A generator printed something in which its count of requests cannot be found."""
