"""A recommendation, or why there is none, as one sentence; and the figures of a ranked server as
text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsgiload.analysis.absence import MIN_BEYOND, min_requests
from wsgiload.analysis.recommend import LEANER_BY
from wsgiload.documents.answer import (
    MemoryHeadroom,
    NoRecommendation,
    RankingEntry,
    RankingLevel,
    Recommendation,
    RecommendedConfiguration,
)
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE
from wsgiload.statistics.effect import MIN_RUNS


def recommendation_lines(entries: Sequence[Recommendation]) -> list[str]:
    """A sentence for each app (named if there are several), with the fix if it is undecided."""
    return [
        f"{words.with_fix(sentence.removesuffix('.'), chosen.needs)}." if chosen.needs else sentence
        for sentence, entry in zip(recommendation_sentences(entries), entries, strict=True)
        if (chosen := entry.recommended or entry.no_recommendation) is not None
    ]


def recommendation_sentences(entries: Sequence[Recommendation]) -> list[str]:
    """The same without the fix, for output that shows it on a separate line."""
    sentences = []
    for entry in entries:
        lead = f"{entry.app}: " if len(entries) > 1 else ""
        chosen = entry.recommended or entry.no_recommendation
        assert chosen is not None  # a document has one of the two
        sentences.append(lead + recommendation_words(chosen, words.join_words(entry.objective)))
    return sentences


def recommendation_words(
    chosen: RecommendedConfiguration | NoRecommendation, objective: str
) -> str:
    """``Recommended: …`` or ``Probably …`` with interval and headroom, or ``No recommendation:
    …``."""
    if isinstance(chosen, NoRecommendation):
        return f"No recommendation: {chosen.reason}."
    if chosen.needs is not None:
        return _probable(chosen, objective)
    leanest = f", the leanest of {1 + len(chosen.also_meets)} configurations that meet"
    which = leanest if chosen.also_meets else ", which meets"
    return (
        f"Recommended: {chosen.server}{which} {objective} at "
        f"{words.format_per_s(chosen.rate_per_s)}{_interval(chosen)}; "
        f"{use_words(chosen)}{_disturbed(chosen)}{_thin(chosen)}.{_others(chosen)}"
    )


def _probable(chosen: RecommendedConfiguration, objective: str) -> str:
    return (
        f"Probably {chosen.server}, which met {objective} in all {chosen.runs} runs at "
        f"{words.format_per_s(chosen.rate_per_s)}{_interval(chosen)}; "
        f"{use_words(chosen)}{_disturbed(chosen)}."
    )


def _others(chosen: RecommendedConfiguration) -> str:
    if not chosen.also_meets:
        return f" Next best: {chosen.runner_up}." if chosen.runner_up is not None else ""
    meet = "meets" if len(chosen.also_meets) == 1 else "meet"
    also = f" {words.join_names(chosen.also_meets)} also {meet} the objective"
    if not chosen.tied:
        return f"{also}."
    needs, performs = ("needs", "performs") if len(chosen.tied) == 1 else ("need", "perform")
    tied = words.join_names(chosen.tied)
    return f"{also}; {tied} {needs} no more resources and {performs} equally well."


def _disturbed(chosen: RecommendedConfiguration) -> str:
    if not chosen.disturbed:
        return ""
    return (
        f"; the generator or the host was disturbed in {chosen.disturbed} of "
        f"{words.plural(chosen.runs, 'run')}, which can only lengthen response times"
    )


def _thin(chosen: RecommendedConfiguration) -> str:
    if chosen.min_requests_beyond is None or chosen.min_requests_beyond >= MIN_BEYOND:
        return ""
    few = (
        f"only {words.plural(chosen.min_requests_beyond, 'request')}"
        if chosen.min_requests_beyond
        else "no request"
    )
    return (
        f"; in one run, {few} lay beyond {chosen.figure}, so use a longer --duration for a more "
        "precise result"
    )


def _interval(chosen: RecommendedConfiguration) -> str:
    if chosen.interval_95 is None or chosen.estimate is None:
        return f" in {words.plural(chosen.runs, 'run')}"
    low, high = chosen.interval_95
    if chosen.figure == "capacity":
        span = f"{words.format_per_s(low)} to {words.format_per_s(high)}"
        runs = words.plural(chosen.runs, "trial")
        return f" (95 % CI of the capacity {span}, {runs})"
    span = f"{words.format_duration_ns(low)} to {words.format_duration_ns(high)}"
    return (
        f" ({chosen.figure} {words.format_duration_ns(chosen.estimate)}, 95 % CI {span}, "
        f"{chosen.runs} runs)"
    )


def use_words(chosen: RecommendedConfiguration) -> str:
    """``peak memory 58 MiB of 256 MiB (77 % free), CPU 0.62 of 1 core (38 % free)``."""
    cpu = chosen.cpu
    if cpu is None or cpu.cores_mean is None:
        return memory_words(chosen.memory)
    used = f"CPU {words.format_cores(cpu.cores_mean)}"
    if cpu.limit_cores is None:
        return f"{memory_words(chosen.memory)}, {used} cores"
    cores = "core" if cpu.limit_cores == 1 else "cores"
    free = words.format_ratio(max(0.0, 1 - cpu.cores_mean / cpu.limit_cores))
    return f"{memory_words(chosen.memory)}, {used} of {cpu.limit_cores:g} {cores} ({free} free)"


def memory_words(memory: MemoryHeadroom) -> str:
    """The peak memory, with its limit and the free share."""
    if memory.peak_bytes is None:
        return "peak memory not measured"
    used = f"peak memory {words.format_bytes(memory.peak_bytes)}"
    if not memory.limit_bytes:
        return f"{used}, without a limit"
    free = words.format_ratio(1 - memory.peak_bytes / memory.limit_bytes)
    return f"{used} of {words.format_bytes(memory.limit_bytes)} ({free} free)"


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
