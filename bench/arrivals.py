"""Figures from the server's log: how precisely a generator's requests arrived, and their times at
the server. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from bench.servers import LogEntry

# Connections are opened and programs warm up in the first part of a load.
_SETTLING_SHARE = 0.1
_MIN_ARRIVALS = 100
# Mean number of arrivals in a window of the dispersion.
_WINDOW_ARRIVALS = 20


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def settled(log: Sequence[LogEntry]) -> list[LogEntry]:
    """The requests that arrived after the first tenth of the log's duration."""
    if not log:
        return []
    first, last = log[0].arrive_ns, log[-1].arrive_ns
    begin = first + (last - first) * _SETTLING_SHARE
    return [entry for entry in log if entry.arrive_ns >= begin]


def arrival_timestamps(log: Sequence[LogEntry]) -> tuple[list[int], bool]:
    """Timestamps of the settled arrivals in ns, ascending, and whether they are the kernel's.

    The kernel's timestamps exclude the time that the server needs to wake up and read; the log's
    timestamps include it. The two kinds are never mixed.
    """
    entries = settled(log)
    stamps = [entry.queued_ns for entry in entries if entry.queued_ns is not None]
    if entries and len(stamps) == len(entries):
        return sorted(stamps), True
    return [entry.arrive_ns for entry in entries], False


def constant_arrivals(log: Sequence[LogEntry], rate_per_s: float) -> dict[str, float] | None:
    """Compared with an evenly spaced schedule, in µs: the error of each inter-arrival time, and the
    lateness of each arrival.

    The schedule starts as late as possible without any arrival being early.
    """
    times_ns, _ = arrival_timestamps(log)
    if len(times_ns) < _MIN_ARRIVALS:
        return None
    period_ns = 1e9 / rate_per_s
    errors = [abs(late - early - period_ns) for early, late in itertools.pairwise(times_ns)]
    offsets = [time_ns - number * period_ns for number, time_ns in enumerate(times_ns)]
    ideal = min(offsets)
    return {
        **_quantiles("gap_error", errors),
        **_quantiles("late", [offset - ideal for offset in offsets]),
        "rate_per_s": _rate_per_s(times_ns),
    }


def poisson_arrivals(log: Sequence[LogEntry], rate_per_s: float) -> dict[str, float] | None:
    """Compared with a Poisson process: the distance of the inter-arrival times from the exponential
    distribution, and the dispersion of the counts.

    The Kolmogorov–Smirnov distance is at least about the rate times the duration of a send (or of a
    read, without kernel timestamps), because inter-arrival times are never shorter. The dispersion
    (variance over mean of the counts in windows) is 1 for Poisson arrivals, 0 for evenly spaced
    arrivals and larger for bursts. Small delays do not change the dispersion.
    """
    times_ns, _ = arrival_timestamps(log)
    if len(times_ns) < _MIN_ARRIVALS:
        return None
    gaps_s = sorted((late - early) / 1e9 for early, late in itertools.pairwise(times_ns))
    count = len(gaps_s)
    distance = 0.0
    for rank, gap_s in enumerate(gaps_s):
        expected = 1 - math.exp(-rate_per_s * gap_s)
        distance = max(distance, abs(expected - rank / count), abs(expected - (rank + 1) / count))
    return {
        "ks_distance": distance,
        "dispersion": _dispersion(times_ns, _WINDOW_ARRIVALS * 1e9 / rate_per_s),
        "rate_per_s": _rate_per_s(times_ns),
    }


def server_quantiles_us(log: Sequence[LogEntry]) -> dict[str, float] | None:
    """Quantiles of the requests' times at the server, according to its log."""
    times_us = [
        (entry.write_ns - entry.arrive_ns) / 1e3 for entry in log if entry.write_ns is not None
    ]
    if not times_us:
        return None
    return {"0.5": quantile(times_us, 0.5), "0.99": quantile(times_us, 0.99)}


def server_lateness_us(log: Sequence[LogEntry]) -> dict[str, float] | None:
    """How late the server sent its responses. No generator causes this lateness."""
    late_ns = [entry.write_ns - entry.finish_ns for entry in log if entry.write_ns is not None]
    return _quantiles("server_late", late_ns) if late_ns else None


def _quantiles(name: str, values_ns: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return {f"{name}_{word}_us": quantile(values_ns, share) / 1e3 for word, share in shares.items()}


def _dispersion(times_ns: Sequence[int], window_ns: float) -> float:
    counts = [0] * int((times_ns[-1] - times_ns[0]) // window_ns)
    for time_ns in times_ns:
        window = int((time_ns - times_ns[0]) // window_ns)
        # The last window is incomplete, so it is ignored.
        if window < len(counts):
            counts[window] += 1
    return statistics.variance(counts) / statistics.mean(counts)


def _rate_per_s(times_ns: Sequence[int]) -> float:
    return (len(times_ns) - 1) * 1e9 / (times_ns[-1] - times_ns[0])
