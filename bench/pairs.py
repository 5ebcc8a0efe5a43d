"""The statistics of the tables: medians over rounds, and ratios of runs of the same round. Pure.

The speed of the machine changes from minute to minute, but is similar for the runs of a round.
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
    """Median, minimum and maximum over rounds."""

    median: float
    low: float
    high: float
    rounds: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and range of the known values; None if there are none."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    return Spread(statistics.median(present), min(present), max(present), len(present))


def paired_ratio(ours: Sequence[Record], theirs: Sequence[Record], figure: Figure) -> Spread | None:
    """Ours divided by theirs within each round; rounds without both runs are ignored."""
    references = {record["round"]: figure(record) for record in theirs}
    ratios = []
    for record in ours:
        value, reference = figure(record), references.get(record["round"])
        ratios.append(value / reference if value is not None and reference else None)
    return spread(ratios)


def cpu_us(record: Record) -> float | None:
    """CPU time of the client per request, including startup."""
    return _per_request(record, "user_s", "system_s")


def user_us(record: Record) -> float | None:
    """The part of ``cpu_us`` in user mode."""
    return _per_request(record, "user_s")


def system_us(record: Record) -> float | None:
    """The part of ``cpu_us`` in the kernel."""
    return _per_request(record, "system_s")


def requests_per_s(record: Record) -> float | None:
    """Requests per second, as counted and timed by the generator. If it reports no duration, the
    planned duration is used."""
    requests = record.get("requests")
    if not requests:
        return None
    seconds: float = record.get("elapsed_s") or record["seconds"]
    return float(requests / seconds)


def calls_per_request(record: Record) -> float | None:
    """System calls of the client per request, including startup."""
    calls, requests = record.get("calls"), record.get("requests")
    return sum(calls.values()) / requests if calls and requests else None


def error_us(record: Record, name: str) -> float | None:
    """Reported quantile minus the quantile in the server's log."""
    reported = (record.get("quantiles_us") or {}).get(name)
    true = ((record.get("server_log") or {}).get("quantiles_us") or {}).get(name)
    return None if reported is None or true is None else reported - true


def arrival(record: Record, name: str) -> float | None:
    """A figure of the arrivals at the server."""
    value: float | None = ((record.get("server_log") or {}).get("arrivals") or {}).get(name)
    return value


def server_late_us(record: Record, name: str) -> float | None:
    """A figure of the lateness of the server's responses."""
    value: float | None = ((record.get("server_log") or {}).get("late") or {}).get(name)
    return value


def send_lag_us(record: Record, name: str) -> float | None:
    """The send lag that the generator reports."""
    value: float | None = ((record.get("remarks") or {}).get("send_lag_us") or {}).get(name)
    return value


def clock_late_us(record: Record, name: str) -> float | None:
    """The lateness of a loop that only reads the clock, on the client's core after the run."""
    value: float | None = (record.get("clock_late_us") or {}).get(name)
    return value


def _per_request(record: Record, *names: str) -> float | None:
    requests = record.get("requests")
    if not requests or any(record.get(name) is None for name in names):
        return None
    total: float = sum(record[name] for name in names)
    return float(total * 1e6 / requests)
