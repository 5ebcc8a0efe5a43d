"""A recommendation, or why there is none, as one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.analysis.threshold import FEWEST_BEYOND
from wsgiload.documents.recommendation import (
    MemoryHeadroom,
    NoRecommendation,
    Recommendation,
    RecommendedConfiguration,
)
from wsgiload.report import words


def recommendation_lines(entries: Sequence[Recommendation]) -> list[str]:
    """A sentence for each app, which it names if there are several, with what would decide it."""
    return [
        f"{sentence.removesuffix('.')}; {found.needs}." if found.needs is not None else sentence
        for sentence, entry in zip(recommendation_sentences(entries), entries, strict=True)
        if (found := entry.recommended or entry.no_recommendation) is not None
    ]


def recommendation_sentences(entries: Sequence[Recommendation]) -> list[str]:
    """The same, if what would decide it follows on a line of its own."""
    sentences = []
    for entry in entries:
        lead = f"{entry.app}: " if len(entries) > 1 else ""
        found = entry.recommended or entry.no_recommendation
        assert found is not None  # a document has one of the two
        sentences.append(lead + recommendation_words(found, words.join_words(entry.objective)))
    return sentences


def recommendation_words(found: RecommendedConfiguration | NoRecommendation, objective: str) -> str:
    """``Recommended: …`` or ``Probably …`` with interval and headroom, or ``No recommendation:
    …``."""
    if isinstance(found, NoRecommendation):
        return f"No recommendation: {found.reason}."
    if found.needs is not None:
        return _probable(found, objective)
    leanest = f", the leanest of {1 + len(found.also_meets)} configurations that meet"
    which = leanest if found.also_meets else ", which meets"
    return (
        f"Recommended: {found.server}{which} {objective} at "
        f"{words.format_per_s(found.rate_per_s)}{_interval(found)}; "
        f"{use_words(found)}{_disturbed(found)}{_thin(found)}.{_others(found)}"
    )


def _probable(found: RecommendedConfiguration, objective: str) -> str:
    return (
        f"Probably {found.server}, which met {objective} in all {found.runs} runs at "
        f"{words.format_per_s(found.rate_per_s)}{_interval(found)}; "
        f"{use_words(found)}{_disturbed(found)}. The runs vary too much for a certain result."
    )


def _others(found: RecommendedConfiguration) -> str:
    if not found.also_meets:
        return f" Next best: {found.runner_up}." if found.runner_up is not None else ""
    meet = "meets" if len(found.also_meets) == 1 else "meet"
    also = f" {words.join_names(found.also_meets)} also {meet} it"
    if not found.tied:
        return f"{also}."
    needs, performs = ("needs", "performs") if len(found.tied) == 1 else ("need", "perform")
    tied = words.join_names(found.tied)
    return f"{also}; {tied} {needs} no more resources and {performs} equally well."


def _disturbed(found: RecommendedConfiguration) -> str:
    if not found.disturbed:
        return ""
    runs = words.plural(found.runs, "run")
    return (
        f"; the generator or the host was disturbed in {found.disturbed} of the {runs}, which can "
        "only lengthen response times"
    )


def _thin(found: RecommendedConfiguration) -> str:
    if found.min_requests_beyond is None or found.min_requests_beyond >= FEWEST_BEYOND:
        return ""
    few = (
        f"only {words.plural(found.min_requests_beyond, 'request')}"
        if found.min_requests_beyond
        else "no request"
    )
    return (
        f"; {few} lay beyond {found.figure} in one run, so use a longer --duration for a more "
        "certain result"
    )


def _interval(found: RecommendedConfiguration) -> str:
    if found.interval_95 is None or found.estimate is None:
        return f" in {words.plural(found.runs, 'run')}"
    low, high = found.interval_95
    if found.figure == "capacity":
        span = f"{words.format_rate(low)} to {words.format_rate(high)}"
        runs = words.plural(found.runs, "confirmation run")
        return f" (95 % CI of the capacity {span}, {runs})"
    span = f"{words.format_duration_ns(low)} to {words.format_duration_ns(high)}"
    return (
        f" ({found.figure} {words.format_duration_ns(found.estimate)}, 95 % CI {span}, "
        f"{found.runs} runs)"
    )


def use_words(found: RecommendedConfiguration) -> str:
    """``peak memory 58 MiB of 256 MiB (77 % free), CPU 0.62 of 1 core (38 % free)``."""
    cpu = found.cpu
    if cpu is None or cpu.cores_mean is None:
        return memory_words(found.memory)
    used = f"CPU {words.format_cores(cpu.cores_mean)}"
    if cpu.limit_cores is None:
        return f"{memory_words(found.memory)}, {used} cores"
    cores = "core" if cpu.limit_cores == 1 else "cores"
    free = words.format_ratio(max(0.0, 1 - cpu.cores_mean / cpu.limit_cores))
    return f"{memory_words(found.memory)}, {used} of {cpu.limit_cores:g} {cores} ({free} free)"


def memory_words(memory: MemoryHeadroom) -> str:
    """How much memory is left below the limit."""
    if memory.peak_bytes is None:
        return "peak memory not measured"
    used = f"peak memory {words.format_bytes(memory.peak_bytes)}"
    if not memory.limit_bytes:
        return f"{used}, without a limit"
    free = words.format_ratio(1 - memory.peak_bytes / memory.limit_bytes)
    return f"{used} of {words.format_bytes(memory.limit_bytes)} ({free} free)"
