"""The figures of a ranked server as text: its p99 or goodput, its interval, its size. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsgiload.analysis.absence import min_requests
from wsgiload.analysis.recommend import LEANER_BY
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE
from wsgiload.statistics.effect import MIN_RUNS

# A smaller saving does not decide between equally fast servers.
MIN_SAVING_BYTES = 16 * 2**20
# Poisson arrivals may be fewer than rate times duration.
SPARE = 1.1


def aim(level: RankingLevel) -> str:
    """The criterion by which the servers of a level are ranked."""
    return "the highest goodput" if level.rate is None else "the lowest p99"


def figure_words(entry: RankingEntry, level: RankingLevel) -> str:
    """``240 µs [95 % CI 220 µs, 280 µs]``, or a goodput. With two or three runs, the range of
    the runs' own intervals, which do not include run-to-run variation."""
    if level.rate is None:
        return words.format_measured_per_s(entry.goodput_per_s)
    if entry.interval_ns is not None and 1 < len(entry.cell_ids) < MIN_RUNS:
        spanned = words.format_interval(entry.interval_ns)
        return f"{_p99(entry)} (range of the runs' 95 % CIs: {spanned})"
    return p99_words(entry, "95 % CI ")


def p99_words(entry: RankingEntry, name: str = "") -> str:
    """``240 µs [220 µs, 280 µs]``, or ``≈ 240 µs``."""
    return f"{_p99(entry)}{interval_words(entry, name)}"


def _p99(entry: RankingEntry) -> str:
    return words.rough(words.format_duration_ns(entry.value_ns), is_rough=entry.few_requests_beyond)


def interval_words(entry: RankingEntry, name: str = "") -> str:
    """`` [220 µs, 280 µs]``, after its name, if any; empty without an interval."""
    if entry.interval_ns is None:
        return ""
    low, high = entry.interval_ns
    upper = "unbounded" if high is None else words.format_duration_ns(high)
    return f" [{name}{words.format_duration_ns(low)}, {upper}]"


def enough_s(rate_per_s: float) -> int:
    """The duration of a trial with enough requests for p99."""
    return math.ceil(SPARE * min_requests(HEADLINE) / rate_per_s)


def size_words(entry: RankingEntry) -> str:
    """`` (2 workers, 4 threads)``, if set."""
    sizes = [words.plural(entry.workers, "worker")] if entry.workers is not None else []
    sizes += [words.plural(entry.threads, "thread")] if entry.threads is not None else []
    return f" ({', '.join(sizes)})" if sizes else ""


def leanest(entries: Sequence[RankingEntry]) -> RankingEntry:
    """Among ties the one with the least memory; if the difference does not matter, the
    better-ranked one."""
    best = entries[0]
    for entry in entries[1:]:
        memory, least = entry.memory_peak_bytes, best.memory_peak_bytes
        if not memory or not least:
            continue
        if memory * LEANER_BY < least and least - memory >= MIN_SAVING_BYTES:
            best = entry
    return best
