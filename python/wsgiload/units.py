"""Parses durations, sizes, rates and lists from user input into nanoseconds, bytes and numbers, and
formats numbers and durations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from wsgiload.errors import UsageError

NS_PER_S = 1_000_000_000

_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
}
_SIZE_BYTES = {
    "": 1,
    "b": 1,
    "k": 1024,
    "ki": 1024,
    "kib": 1024,
    "kb": 1000,
    "m": 1024**2,
    "mi": 1024**2,
    "mib": 1024**2,
    "mb": 1000**2,
    "g": 1024**3,
    "gi": 1024**3,
    "gib": 1024**3,
    "gb": 1000**3,
}
_SHOWN_UNITS = ((NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "µs"))
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)", re.IGNORECASE)
_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
Number = TypeVar("Number", int, float)

# A longer range is almost certainly a mistake, because each entry is a separate measurement.
MAX_LEVELS = 1_000
# The largest signed 64-bit integer, the limit of the kernel and the generator.
MAX_I64 = 2**63 - 1
# A longer duration is almost certainly not in seconds.
MAX_DURATION_S = 1e7


def three_digits(value: float) -> str:
    """The value with three significant digits and thousands separators; integer digits are never
    rounded away."""
    rounded = float(f"{value:.3g}")
    if rounded == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def duration_words(duration_ns: float) -> str:
    """12_345_678 becomes "12.3 ms"."""
    rounded = float(f"{duration_ns:.3g}")  # round first: 999.6 µs is 1.00 ms, not 1000 µs
    for unit_ns, unit in _SHOWN_UNITS:
        if abs(rounded) >= unit_ns:
            return f"{three_digits(rounded / unit_ns)} {unit}"
    return f"{rounded:.0f} ns"


def _quantity(text: str) -> tuple[float, str] | None:
    match = _QUANTITY.fullmatch(text)
    return (float(match[1]), match[2].lower()) if match else None


def _whole(amount: float, text: str) -> int:
    if amount > MAX_I64:
        raise UsageError(f"{text!r} is too large", "check the unit")
    return round(amount)


def parse_duration_ns(text: str) -> int:
    """Parse ``30s``, ``250ms``, ``1m30s`` or ``1.5`` (seconds). Returns nanoseconds."""
    compound_ns = _compound_ns(text.strip())
    if compound_ns is not None:
        return _whole(compound_ns, text)

    quantity = _quantity(text)
    if quantity is None or (quantity[1] and quantity[1] not in _DURATION_NS):
        raise UsageError(f"{text!r} is not a duration", "write it like 30s, 250ms or 1.5")
    return _whole(quantity[0] * _DURATION_NS[quantity[1] or "s"], text)


def _compound_ns(text: str) -> float | None:
    """Parse ``1h30m``: two or more numbers with decreasing units. None for any other form."""
    parts = _DURATION_PART.findall(text)
    scales_ns = [_DURATION_NS[unit.lower()] for _, unit in parts]
    is_whole_text = "".join(number + unit for number, unit in parts) == text
    is_descending = all(larger > smaller for larger, smaller in pairwise(scales_ns))
    if len(parts) < 2 or not is_whole_text or not is_descending:
        return None

    return sum(
        float(number) * scale_ns for (number, _), scale_ns in zip(parts, scales_ns, strict=True)
    )


def seconds_to_ns(seconds: float) -> int:
    """Convert a duration in seconds, from the Python API, to nanoseconds."""
    if isinstance(seconds, str | bytes) or not 0 <= seconds < MAX_DURATION_S:
        raise UsageError(f"{seconds!r} is not a duration in seconds")
    return round(seconds * NS_PER_S)


def parse_size_bytes(text: str) -> int:
    """Parse ``512MiB``, ``1g`` or ``65536``; kB, MB and GB are powers of 1000. Returns bytes."""
    quantity = _quantity(text)
    if quantity is None or quantity[1] not in _SIZE_BYTES:
        raise UsageError(f"{text!r} is not a size", "write it like 512MiB or 1GiB")
    return _whole(quantity[0] * _SIZE_BYTES[quantity[1]], text)


def parse_cpus(text: str) -> float:
    """Parse ``1``, ``0.5``, ``1.5cpu`` or ``500m``. Returns a number of cores."""
    quantity = _quantity(text)
    scale = {"": 1.0, "cpu": 1.0, "cpus": 1.0, "m": 0.001}.get(quantity[1]) if quantity else None
    if quantity is None or scale is None or not 0 < quantity[0] < math.inf:
        raise UsageError(f"{text!r} is not a number of CPUs", "write it like 1, 0.5 or 1500m")
    return quantity[0] * scale


def parse_rate(text: str) -> float:
    """Parse ``500``, ``500/s``, ``3000/m`` or ``1/10s``. Returns a rate per second."""
    try:
        return rate_per_s(text)
    except ValueError:
        fix = "write it like 500, 500/s, 3000/m or 1/10s"
        raise UsageError(f"{text!r} is not a rate", fix) from None


def rate_per_s(text: str) -> float:
    """Like :func:`parse_rate`, but raises ``ValueError`` for an invalid rate."""
    number, slash, period = text.partition("/")
    if not slash:
        return float(number)
    period = period.strip()
    try:
        period_ns = parse_duration_ns(period if period[:1].isdigit() else f"1{period or '/'}")
        return float(number) * NS_PER_S / period_ns
    except (UsageError, ZeroDivisionError):
        raise ValueError(text) from None


def parse_rates(text: str) -> tuple[float, ...]:
    """Parse ``1000,2000``, ``500/s,1000/s`` or ``1000:5000:500`` (both ends included). Returns
    positive rates per second."""
    return _parse_levels(text, rate_per_s, "rate", "1000,2000,3000 or 1000:5000:500")


def parse_connections(text: str) -> tuple[int, ...]:
    """Parse ``10,100`` or ``10:100:10`` (both ends included). Returns positive integers."""
    return _parse_levels(text, int, "number of connections", "10,20,50 or 10:100:10")


def _parse_levels(
    text: str, number: Callable[[str], Number], noun: str, example: str
) -> tuple[Number, ...]:
    fix = f"write a list like {example}"
    levels: list[Number] = []
    for part in text.split(","):
        try:
            bounds = [number(piece) for piece in part.split(":")]
        except ValueError:
            raise UsageError(f"{part.strip()!r} is not a {noun}", fix) from None
        if any(not 0 < bound < math.inf for bound in bounds):
            raise UsageError(f"{part.strip()!r} is not a positive {noun}", fix)
        match bounds:
            case [level]:
                levels.append(level)
            case [low, high, step] if low <= high and high - low < MAX_LEVELS * step:
                levels.extend(
                    low + index * step
                    for index in range(math.floor((high - low) / step + 1e-9) + 1)
                )
            case _:
                raise UsageError(f"{part.strip()!r} is not a range from:to:step of {noun}s", fix)
    return tuple(dict.fromkeys(levels))


def level_words(rate: float | None, connections: int | None) -> str:
    """``3,000/s``, or ``50 connections``."""
    if rate is not None:
        return f"{rate:,.10g}/s"
    return f"{connections:,} connection{'' if connections == 1 else 's'}"


def parse_margin(text: str) -> float:
    """``10%`` as a share; from 1 % to 100 %."""
    match = re.fullmatch(r"([0-9.]+) ?%", text.strip())
    try:
        share = float(match[1]) / 100 if match else math.nan
    except ValueError:
        share = math.nan
    if not 0.01 <= share <= 1:
        raise UsageError(f"{text!r} is not a margin between 1% and 100%", "use one such as 10%")
    return share
