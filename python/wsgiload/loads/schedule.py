"""Open loops with a varying rate: a ramp, steps, or recorded arrivals.

Times in seconds, rates per second over all threads. The generator creates the arrivals and
checks whether the schedule is possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike

import msgspec

from wsgiload.documents import load_plan
from wsgiload.documents.load_plan import OpenLoop, WeightedRequest
from wsgiload.errors import UsageError, require
from wsgiload.loads.recording import Recording, read_recording
from wsgiload.units import NS_PER_S, parse_duration_ns, rate_per_s, seconds_to_ns

DEFAULT_DURATION_NS = 10 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Ramp:
    """An open loop whose rate changes linearly.

    Args:
        from_per_s: Rate at the start of the measurement, per second.
        to_per_s: Rate at the end of the ramp, per second.
        over: How long the ramp takes, in seconds; its last rate then holds. Default: the whole
            measurement.
    """

    from_per_s: float
    to_per_s: float
    over: float | None = None

    def __post_init__(self) -> None:
        _require_rates(self.from_per_s, self.to_per_s)

    @property
    def length_ns(self) -> int | None:
        """The duration of the ramp in nanoseconds; None for the whole measurement."""
        return None if self.over is None else seconds_to_ns(self.over)

    def onto(self, policy: OpenLoop) -> OpenLoop:
        """The open loop of a plan, with this schedule."""
        ramp = load_plan.Ramp(
            from_per_s=self.from_per_s, to_per_s=self.to_per_s, over_ns=self.length_ns
        )
        return msgspec.structs.replace(policy, ramp=ramp)


@dataclass(frozen=True, slots=True)
class Steps:
    """An open loop with one rate after another.

    Args:
        steps: Pairs of a rate per second and how long it holds, in seconds; a rate of 0 is a pause.
    """

    steps: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        pairs = [pair for pair in self.steps if len(pair) == 2]
        are_pairs = bool(pairs) and len(pairs) == len(self.steps)
        require(
            are_pairs,
            f"{self.steps!r} are not steps",
            "write pairs of a rate and a number of seconds",
        )
        _require_rates(*(rate for rate, _ in pairs))

    @property
    def length_ns(self) -> int | None:
        """The total duration of the steps in nanoseconds."""
        return sum(seconds_to_ns(seconds) for _, seconds in self.steps)

    def onto(self, policy: OpenLoop) -> OpenLoop:
        """The open loop of a plan, with this schedule."""
        steps = tuple(
            load_plan.Step(rate_per_s=rate, duration_ns=seconds_to_ns(seconds))
            for rate, seconds in self.steps
        )
        return msgspec.structs.replace(policy, steps=steps)


@dataclass(frozen=True, slots=True)
class Replay:
    """An open loop that replays recorded arrivals.

    Args:
        offsets: When each request arrived, in seconds from the start and in ascending order.
        speed: Replay speed factor, such as 2 for twice the recorded speed.
        targets: The different requests of an access log.
        requests: For each arrival the index of its request in targets.
        notes: What a file has that is not replayed, or not as recorded.
    """

    offsets: Sequence[float]
    speed: float = 1.0
    targets: Sequence[WeightedRequest] = ()
    requests: Sequence[int] | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        offsets = self.offsets
        is_trace = len(offsets) > 0 and all(
            earlier <= later for earlier, later in pairwise((0, *offsets, math.inf))
        )
        require(
            is_trace and offsets[-1] < math.inf,
            "a trace needs at least one offset, in seconds and in ascending order",
        )
        is_speed = 0 < self.speed < math.inf
        require(is_speed, f"the replay speed must be positive, not {self.speed:g}")

    @classmethod
    def from_file(cls, path: str | PathLike[str], speed: float = 1.0) -> Replay:
        """The trace in a file, with one offset per line in seconds or with a unit, or an access
        log; ``-`` is standard input."""
        return cls.of(read_recording(path), speed)

    @classmethod
    def of(cls, recording: Recording, speed: float = 1.0) -> Replay:
        """The replay of a recording."""
        return cls(
            tuple(offset_ns / NS_PER_S for offset_ns in recording.offsets_ns),
            speed,
            recording.targets,
            recording.requests,
            recording.notes,
        )

    @property
    def length_ns(self) -> int | None:
        """The last arrival plus one mean inter-arrival time in nanoseconds, as in the generator;
        None if all arrivals have the same time."""
        first_ns, last_ns = (round(self.offsets[place] * NS_PER_S) for place in (0, -1))
        gaps = len(self.offsets) - 1
        if last_ns <= first_ns:
            return None
        return int((last_ns + (last_ns - first_ns) // gaps) / self.speed)

    def onto(self, policy: OpenLoop) -> OpenLoop:
        """The open loop of a plan, with this schedule."""
        offsets_ns = tuple(round(offset * NS_PER_S) for offset in self.offsets)
        requests = None if self.requests is None else tuple(self.requests)
        replay = load_plan.Replay(offsets_ns=offsets_ns, speed=self.speed, requests=requests)
        return msgspec.structs.replace(policy, arrivals=None, replay=replay)


LoadProfile = Ramp | Steps | Replay


def _require_rates(*rates: float) -> None:
    for rate in rates:
        require(0 <= rate < math.inf, f"a rate must be 0 or more, not {rate:g}")


def measured_ns(requested_ns: int | None, profile: LoadProfile | None, warmup_ns: int) -> int:
    """The duration of the measurement: the requested one, or else that of the schedule. A trace
    includes the warm-up."""
    if requested_ns is not None:
        return requested_ns
    length_ns = profile.length_ns if profile else None
    if length_ns is None:
        return DEFAULT_DURATION_NS
    if not isinstance(profile, Replay):
        return length_ns
    require(length_ns > warmup_ns, "the warm-up covers the whole trace; nothing is left to measure")
    return length_ns - warmup_ns


def parse_ramp(text: str) -> Ramp:
    """``1000:3000`` or ``1000:3000@30s``."""
    rates, at, time = text.partition("@")
    start, _, end = rates.partition(":")
    try:
        from_per_s, to_per_s = rate_per_s(start), rate_per_s(end)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a ramp", "write it like 1000:3000 or 1000:3000@30s"
        ) from None
    return Ramp(from_per_s, to_per_s, parse_duration_ns(time) / NS_PER_S if at else None)


def parse_steps(text: str) -> Steps:
    """``1000@10s,2000@10s``."""
    return Steps(tuple(_step(part) for part in text.split(",")))


def _step(text: str) -> tuple[float, float]:
    rate, _, time = text.partition("@")
    try:
        return rate_per_s(rate), parse_duration_ns(time) / NS_PER_S
    except (ValueError, UsageError):
        raise UsageError(f"{text!r} is not a step", "write steps like 1000@10s,2000@10s") from None
