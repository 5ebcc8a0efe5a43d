"""What the server's own log says of a generator: how evenly requests arrived, and how long they
took there. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from bench.servers import LogEntry

# Connections are opened and programs warm up in the first part of a load.
_SETTLING_SHARE = 0.1
_FEWEST = 100
# Mean number of arrivals in a window of the dispersion.
_WINDOW_ARRIVALS = 20


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def settled(log: Sequence[LogEntry]) -> list[LogEntry]:
    """What arrived after the first tenth of the time."""
    if not log:
        return []
    first, last = log[0].arrive_ns, log[-1].arrive_ns
    begin = first + (last - first) * _SETTLING_SHARE
    return [entry for entry in log if entry.arrive_ns >= begin]


def arrival_instants(log: Sequence[LogEntry]) -> tuple[list[int], bool]:
    """Settled instants of arrival in ns, ascending, and whether the kernel stamped them.

    Its stamps are not late by what a server takes to wake up and read, as the log's own instants
    are. Never a mixture.
    """
    entries = settled(log)
    stamps = [entry.queued_ns for entry in entries if entry.queued_ns is not None]
    if entries and len(stamps) == len(entries):
        return sorted(stamps), True
    return [entry.arrive_ns for entry in entries], False


def constant_arrivals(log: Sequence[LogEntry], rate_per_s: float) -> dict[str, float] | None:
    """Against an even schedule, in µs: the error of each gap, and how late each arrival is.

    An arrival is late by its distance from the latest even schedule that no arrival is ahead of.
    """
    instants, _ = arrival_instants(log)
    if len(instants) < _FEWEST:
        return None
    period_ns = 1e9 / rate_per_s
    errors = [abs(late - early - period_ns) for early, late in itertools.pairwise(instants)]
    offsets = [instant - number * period_ns for number, instant in enumerate(instants)]
    ideal = min(offsets)
    return {
        **_quantiles("gap_error", errors),
        **_quantiles("late", [offset - ideal for offset in offsets]),
        "rate_per_s": _rate_per_s(instants),
    }


def poisson_arrivals(log: Sequence[LogEntry], rate_per_s: float) -> dict[str, float] | None:
    """Against a Poisson schedule: how far the gaps are from the exponential law, and how the counts
    vary.

    The Kolmogorov–Smirnov distance has a floor of about the rate times what one send takes, or one
    read where the server took the instants: there are no shorter gaps. The dispersion (variance
    over mean of the counts in windows) is 1 for Poisson arrivals, 0 for even ones and more for
    bursts, and small delays do not change it.
    """
    instants, _ = arrival_instants(log)
    if len(instants) < _FEWEST:
        return None
    gaps_s = sorted((late - early) / 1e9 for early, late in itertools.pairwise(instants))
    count = len(gaps_s)
    distance = 0.0
    for rank, gap_s in enumerate(gaps_s):
        expected = 1 - math.exp(-rate_per_s * gap_s)
        distance = max(distance, abs(expected - rank / count), abs(expected - (rank + 1) / count))
    return {
        "ks_distance": distance,
        "dispersion": _dispersion(instants, _WINDOW_ARRIVALS * 1e9 / rate_per_s),
        "rate_per_s": _rate_per_s(instants),
    }


def server_quantiles_us(log: Sequence[LogEntry]) -> dict[str, float] | None:
    """How long requests were at the server, by its own log."""
    times_us = [
        (entry.write_ns - entry.arrive_ns) / 1e3 for entry in log if entry.write_ns is not None
    ]
    if not times_us:
        return None
    return {"0.5": quantile(times_us, 0.5), "0.99": quantile(times_us, 0.99)}


def server_lateness_us(log: Sequence[LogEntry]) -> dict[str, float] | None:
    """How late the server began its own answers: what disturbed it, no generator is to blame
    for."""
    late_ns = [entry.write_ns - entry.finish_ns for entry in log if entry.write_ns is not None]
    return _quantiles("server_late", late_ns) if late_ns else None


def _quantiles(name: str, values_ns: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return {f"{name}_{word}_us": quantile(values_ns, share) / 1e3 for word, share in shares.items()}


def _dispersion(instants: Sequence[int], window_ns: float) -> float:
    counts = [0] * int((instants[-1] - instants[0]) // window_ns)
    for instant in instants:
        window = int((instant - instants[0]) // window_ns)
        # The last window is cut off.
        if window < len(counts):
            counts[window] += 1
    return statistics.variance(counts) / statistics.mean(counts)


def _rate_per_s(instants: Sequence[int]) -> float:
    return (len(instants) - 1) * 1e9 / (instants[-1] - instants[0])
