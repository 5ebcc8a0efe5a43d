"""The load that a generator runs, and the figures that it reports. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """One load. Without a rate, it is a closed loop: every connection sends its next request after
    the response."""

    url: str
    connections: int
    seconds: int
    rate_per_s: int | None = None
    arrivals: str = "constant"
    # Seed of a random schedule, for the generators that support one.
    seed: int = 0
    # How long to spin before a send, for the generators that support a spin window.
    spin: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The figures that a generator reports. None: it does not report this figure."""

    requests: int
    failed: int | None = None
    elapsed_s: float | None = None
    quantiles_us: dict[str, float] = field(default_factory=dict)
    # Figures that only one generator reports, such as its send lag.
    remarks: dict[str, Any] = field(default_factory=dict)


class OutputError(Exception):
    """The output of a generator contains no number of requests."""
