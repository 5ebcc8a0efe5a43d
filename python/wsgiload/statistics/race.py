"""The state of a race whose winner is the leanest configuration that meets an objective. Data
only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["winner", "ties", "undecided", "failed"]


@dataclass(frozen=True, slots=True)
class Drop:
    """Why a server is not measured again: how far another was ahead; None if it failed."""

    server: str
    after_round: int
    behind: str | None
    factor: float | None
    # Whether it was dropped by the short trials before the race.
    in_qualifying: bool = False


@dataclass(frozen=True, slots=True)
class RaceState:
    """The state of a race after the rounds so far."""

    outcome: Outcome
    # The fastest first.
    contenders: tuple[str, ...]
    dropped: tuple[Drop, ...]
    # All contenders are within this margin of the leader, 0.09 for 9 %; None: unknown.
    margin: float | None = None
    # Rounds until a decision is expected; None: unknown.
    rounds_left: int | None = None

    @property
    def leader(self) -> str | None:
        """The fastest contender."""
        return self.contenders[0] if self.contenders else None

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is final, so that no further rounds are needed."""
        return self.outcome != "undecided"
