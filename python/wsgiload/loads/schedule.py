"""What an open loop offers when it is not one rate throughout: a ramp, steps, or recorded arrivals.

Times in nanoseconds, rates per second over all threads. The generator makes the arrivals, and
judges whether it can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path

from wsgiload._loadgen import parse_trace
from wsgiload.documents import load_plan as plans
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S, parse_duration_ns

DEFAULT_DURATION_NS = 10 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rate that changes evenly over the measurement, or over a part of it and then holds."""

    from_per_s: float
    to_per_s: float
    over_ns: int | None = None

    def __post_init__(self) -> None:
        _require_numbers(self.from_per_s, self.to_per_s)

    @property
    def own_length_ns(self) -> int | None:
        """How long it lasts of itself."""
        return self.over_ns

    def plan(self) -> plans.Ramp:
        """As the generator's plan has it."""
        return plans.Ramp(from_per_s=self.from_per_s, to_per_s=self.to_per_s, over_ns=self.over_ns)


@dataclass(frozen=True, slots=True)
class Steps:
    """One rate after another: pairs of a rate and how long it holds."""

    steps: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        _require_numbers(*(rate for rate, _ in self.steps))

    @property
    def own_length_ns(self) -> int | None:
        """How long they last together."""
        return sum(duration_ns for _, duration_ns in self.steps)

    def plan(self) -> tuple[plans.Step, ...]:
        """As the generator's plan has them."""
        return tuple(plans.Step(rate_per_s=rate, duration_ns=ns) for rate, ns in self.steps)


@dataclass(frozen=True, slots=True)
class Replay:
    """Recorded arrivals, as offsets from the start of the load; at speed 2 they take half as
    long."""

    offsets_ns: tuple[int, ...]
    speed: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            raise UsageError(f"the replay speed {self.speed:g} is not a number above 0")

    @property
    def own_length_ns(self) -> int | None:
        """To one mean gap after the last arrival, as the generator has it; None for arrivals at one
        instant."""
        first, last, gaps = self.offsets_ns[0], self.offsets_ns[-1], len(self.offsets_ns) - 1
        return int((last + (last - first) // gaps) / self.speed) if last > first else None

    def plan(self) -> plans.Replay:
        """As the generator's plan has it."""
        return plans.Replay(offsets_ns=self.offsets_ns, speed=self.speed)


LoadProfile = Ramp | Steps | Replay


def _require_numbers(*rates: float) -> None:
    for rate in rates:
        if not 0 <= rate < math.inf:
            raise UsageError(f"the rate {rate:g} is not a number from 0 up")


def measured_ns(given_ns: int | None, profile: LoadProfile | None, warmup_ns: int) -> int:
    """How long to measure: as long as asked for, or else as the schedule lasts. A trace begins with
    the warm-up."""
    if given_ns is not None:
        return given_ns
    own_ns = profile.own_length_ns if profile else None
    if own_ns is None:
        return DEFAULT_DURATION_NS
    if not isinstance(profile, Replay):
        return own_ns
    if own_ns <= warmup_ns:
        raise UsageError("the warm-up covers the whole trace; nothing is left to measure")
    return own_ns - warmup_ns


def parse_ramp(text: str) -> Ramp:
    """``1000:3000`` or ``1000:3000@30s``."""
    rates, at, time = text.partition("@")
    start, _, end = rates.partition(":")
    try:
        from_per_s, to_per_s = float(start), float(end)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a ramp", "write it like 1000:3000 or 1000:3000@30s"
        ) from None
    return Ramp(from_per_s, to_per_s, parse_duration_ns(time) if at else None)


def parse_steps(text: str) -> Steps:
    """``1000@10s,2000@10s``."""
    return Steps(tuple(_step(part) for part in text.split(",")))


def _step(text: str) -> tuple[float, int]:
    rate, _, time = text.partition("@")
    try:
        return float(rate), parse_duration_ns(time)
    except (ValueError, UsageError):
        raise UsageError(f"{text!r} is not a step", "write steps like 1000@10s,2000@10s") from None


def read_trace(path: str | PathLike[str]) -> tuple[int, ...]:
    """The offsets in a file: one per line in seconds, or with a unit; ``#`` begins a comment."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        return tuple(parse_trace(text))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def trace_of(seconds: Sequence[float]) -> tuple[int, ...]:
    """Offsets in seconds as a trace."""
    ascending = all(earlier <= later for earlier, later in pairwise(seconds))
    if not seconds or not ascending or not 0 <= seconds[0] <= seconds[-1] < math.inf:
        raise UsageError(
            "a trace is offsets in seconds from its start, ascending",
            "sort them, and give at least one",
        )
    return tuple(round(offset * NS_PER_S) for offset in seconds)
