"""A recommendation, or its refusal, as one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.analysis.objective import FEWEST_BEYOND
from wsgiload.analysis.recommend import Memory, Recommendation, Refusal
from wsgiload.analysis.recommendations import found_in
from wsgiload.report import words
from wsgiload.report.words import Json


def recommendation_lines(entries: Sequence[Json]) -> list[str]:
    """A sentence for each app, which it names where there are several."""
    lines = []
    for entry in entries:
        lead = f"{entry['app']}: " if len(entries) > 1 else ""
        lines.append(
            lead + recommendation_words(found_in(entry), words.join_words(entry["objective"]))
        )
    return lines


def recommendation_words(found: Recommendation | Refusal, objective: str) -> str:
    """``Recommended: …`` with interval and headroom, or ``No recommendation: …`` with what would
    settle it."""
    if isinstance(found, Refusal):
        return f"No recommendation: {found.why}; {found.needs}."
    runner_up = _runner_up(found)
    return (
        f"Recommended: {found.server}, which holds {objective} at "
        f"{words.format_per_s(found.rate_per_s)}"
        f"{_interval(found)}; "
        f"{memory_words(found.memory)}{_disturbed(found)}{_thin(found)}.{runner_up}"
    )


def _runner_up(found: Recommendation) -> str:
    if found.tied:
        hold = f"{words.join_words(list(found.tied))} {'hold' if len(found.tied) > 1 else 'holds'}"
        return f" {hold} it as well as far as can be told, with more memory, workers or threads."
    return f" Next best: {found.runner_up}." if found.runner_up is not None else ""


def _disturbed(found: Recommendation) -> str:
    if not found.disturbed:
        return ""
    return (
        f"; generator or host were disturbed in {found.disturbed} of the "
        f"{words.plural(found.runs, 'run')}, which can "
        "only have made answers later"
    )


def _thin(found: Recommendation) -> str:
    if found.fewest_beyond is None or found.fewest_beyond >= FEWEST_BEYOND:
        return ""
    requests = words.plural(found.fewest_beyond, "request")
    return (
        f"; {found.figure} rests on {requests} in one of its runs, and a longer --duration "
        "would make it surer"
    )


def _interval(found: Recommendation) -> str:
    if found.interval is None or found.centre is None:
        return f" in {words.plural(found.runs, 'run')}"
    low, high = found.interval
    if found.figure == "capacity":
        span = f"{words.format_rate(low)} to {words.format_rate(high)}"
        return f" (95 % interval of the limit {span}, {words.plural(found.runs, 'confirming run')})"
    span = f"{words.format_duration_ns(low)} to {words.format_duration_ns(high)}"
    return (
        f" ({found.figure} {words.format_duration_ns(found.centre)}, 95 % interval {span}, "
        f"{found.runs} runs)"
    )


def memory_words(memory: Memory) -> str:
    """How much memory is left below the limit."""
    if memory.peak_bytes is None:
        return "its memory was not measured"
    used = f"it used {words.format_bytes(memory.peak_bytes)} of memory at most"
    if memory.free_share is None:
        return f"{used}, without a limit"
    return (
        f"{used}, which leaves {words.format_ratio(memory.free_share)} of "
        f"{words.format_bytes(memory.limit_bytes)}"
    )
