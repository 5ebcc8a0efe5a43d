"""The statistics of the tables: medians over rounds, and ratios of runs of the same round. Pure.

Absolute times drift with the machine from one minute to the next; two runs of one round drift
together.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
Figure = Callable[[Record], float | None]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median over rounds, with the least and the greatest of them."""

    median: float
    least: float
    most: float
    rounds: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are there; None if none is."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    return Spread(statistics.median(present), min(present), max(present), len(present))


def paired_ratio(ours: Sequence[Record], theirs: Sequence[Record], figure: Figure) -> Spread | None:
    """Ours to theirs, round by round; rounds in which either is missing do not count."""
    other = {record["round"]: figure(record) for record in theirs}
    ratios = []
    for record in ours:
        own, reference = figure(record), other.get(record["round"])
        ratios.append(own / reference if own is not None and reference else None)
    return spread(ratios)


def cpu_us(record: Record) -> float | None:
    """CPU time of the client per request, start-up included."""
    return _per_request(record, "user_s", "system_s")


def user_us(record: Record) -> float | None:
    """The part of ``cpu_us`` spent in the program."""
    return _per_request(record, "user_s")


def system_us(record: Record) -> float | None:
    """The part of ``cpu_us`` spent in the kernel."""
    return _per_request(record, "system_s")


def requests_per_s(record: Record) -> float | None:
    """By the generator's own count and clock, or the asked-for time where it does not tell its
    own."""
    requests = record.get("requests")
    if not requests:
        return None
    seconds: float = record.get("elapsed_s") or record["seconds"]
    return float(requests / seconds)


def calls_per_request(record: Record) -> float | None:
    """System calls of the client per request, start-up included."""
    calls, requests = record.get("calls"), record.get("requests")
    return sum(calls.values()) / requests if calls and requests else None


def error_us(record: Record, name: str) -> float | None:
    """Reported quantile less the one in the server's own log."""
    reported = (record.get("quantiles_us") or {}).get(name)
    true = ((record.get("server_log") or {}).get("quantiles_us") or {}).get(name)
    return None if reported is None or true is None else reported - true


def arrival(record: Record, name: str) -> float | None:
    """A figure of the arrivals that the server saw."""
    value: float | None = ((record.get("server_log") or {}).get("arrivals") or {}).get(name)
    return value


def server_late_us(record: Record, name: str) -> float | None:
    """A figure of how late the server itself was with its answers."""
    value: float | None = ((record.get("server_log") or {}).get("late") or {}).get(name)
    return value


def own_lag_us(record: Record, name: str) -> float | None:
    """The send lag that a generator reports of itself."""
    value: float | None = ((record.get("remarks") or {}).get("send_lag_us") or {}).get(name)
    return value


def clock_late_us(record: Record, name: str) -> float | None:
    """How late a loop on the client's core was, after the run, that only read the clock."""
    value: float | None = (record.get("clock_late_us") or {}).get(name)
    return value


def _per_request(record: Record, *names: str) -> float | None:
    requests = record.get("requests")
    if not requests or any(record.get(name) is None for name in names):
        return None
    total: float = sum(record[name] for name in names)
    return float(total * 1e6 / requests)
