"""The first screen of a sweep: the question, the answer, the ranked table, and warnings. Pure; it
computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console

from wsgiload.analysis.races import race_at
from wsgiload.documents.answer import Answer, RankingEntry, RankingLevel
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.answer import answer_of
from wsgiload.report.answer_box import AnswerBox, markdown_of, print_answer
from wsgiload.report.question import decisive_levels, ranked
from wsgiload.report.recommendation import p99_words

T = TypeVar("T")

_NOT_RANKED = {
    "errors": "errors",
    "overloaded": "not sustained",
    "invalid": "invalid",
    "failed": "failed",
}
# Columns that a narrow terminal omits; server names and the figures at the main level stay.
_DISPENSABLE = ("workers", "threads", "p50 at ", "memory", "CPU cores")
# Suffix of the heading for a supporting service's CPU use.
SERVICE_CPU = " CPU cores"
# Place, server, workers, threads and the main figure precede the other levels.
_FIRST_OTHER_LEVEL = 5


def print_first_screen(summary: Summary, console: Console) -> None:
    """Print the first screen of a sweep."""
    print_answer(first_screen(summary), console)


def markdown(summary: Summary) -> str:
    """The first screen as Markdown."""
    return first_screen(summary).markdown


def first_screen(summary: Summary) -> AnswerBox:
    """The first screen."""
    answer = summary.answer or answer_of(summary)
    tables = [
        table_of(level, answer.ranking, is_placed=not has_failed(level, summary))
        for level in shown_levels(answer, summary)
    ]
    shown = AnswerBox(
        title=summary.experiment.title,
        question=answer.question,
        status=answer.status,
        sentence=answer.sentence,
        command_line=answer.command_line,
        command_of=answer.command_of,
        needs=answer.needs,
        needs_label=_needs_label(answer, summary),
        notice=words.status_words(summary),
        tables=tables,
        cautions=answer.warnings,
        markdown="",
        dispensable=_dispensable([headings for headings, _ in tables]),
    )
    return markdown_of(shown)


def _needs_label(answer: Answer, summary: Summary) -> str:
    """The label of the fix: whether it confirms the ranking, decides it, or meets an objective that
    was clearly missed."""
    if summary.recommendations and answer.status != "undecided":
        return "To meet the objective"
    first = [ranked(level)[:1] for level in shown_levels(answer, summary)]
    leads = len(first) == 1 and any(
        not (entry.tied_with or entry.undecided_with) for entry in first[0]
    )
    if leads and answer.status == "undecided" and not (summary.races or summary.recommendations):
        return "To confirm this ranking"
    return "To decide"


def shown_levels(answer: Answer, summary: Summary) -> list[RankingLevel]:
    """The level of each app that the answer is about. Other levels are columns of its table."""
    return decisive_levels(answer.ranking, summary)


def has_failed(level: RankingLevel, summary: Summary) -> bool:
    """Whether the race at this level ended without any contender, so that no server has a place."""
    race = race_at(summary.races, level)
    return race is not None and race.outcome == "failed"


def table_of(
    level: RankingLevel, ranking: Sequence[RankingLevel], *, is_placed: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the ranked table of one level, with columns for the other levels."""
    others = [one for one in ranking if one.app == level.app and one is not level]
    is_open = level.rate is not None
    services = dict.fromkeys(one.name for entry in level.entries for one in entry.services)
    figure = "p99" if is_open else "goodput/s"
    headings = [
        "",
        "server",
        "workers",
        "threads",
        f"{figure} at {level.level}",
        *(f"{figure} at {one.level}" for one in others),
        f"p50 at {level.level}",
        "CPU cores",
        *(f"{name}{SERVICE_CPU}" for name in services),
        "memory",
    ]
    places = places_of(level.entries) if is_placed else {}
    rows = [
        [
            places.get(entry.label, words.MISSING),
            entry.label,
            _number(entry.workers),
            _number(entry.threads),
            figure_text(entry, is_open=is_open),
            *(_elsewhere(entry.label, one) for one in others),
            words.format_duration_ns(entry.p50_ns),
            words.format_cores(entry.cpu_cores_mean),
            *(_service_cores(entry, name) for name in services),
            words.format_bytes(entry.memory_peak_bytes),
        ]
        for entry in level.entries
    ]
    return headings, rows


def places_of(entries: Sequence[RankingEntry]) -> dict[str, str]:
    """The place of each server; servers whose order relative to the first of their group is not
    known share it."""

    def is_tied(first: RankingEntry, entry: RankingEntry) -> bool:
        return entry.label in (*first.tied_with, *first.undecided_with)

    in_order = [entry for entry in entries if entry.status == "ranked"]
    shared = "?" if any(entry.undecided_with for entry in entries) else "="
    places = places_among(in_order, is_tied, shared)
    shown = {entry.label: place for entry, place in zip(in_order, places, strict=True)}
    return {entry.label: shown.get(entry.label, words.MISSING) for entry in entries}


def places_among(ranked: Sequence[T], is_tied: Callable[[T, T], bool], shared: str) -> list[str]:
    """The places of servers in their order. Those that tie with the first of their group have its
    place, with the mark ``shared``."""
    places: list[int] = []
    for position, one in enumerate(ranked, start=1):
        is_new = not places or not is_tied(ranked[places[-1] - 1], one)
        places.append(position if is_new else places[-1])
    return [f"{place}{shared if places.count(place) > 1 else ''}" for place in places]


def figure_text(entry: RankingEntry, *, is_open: bool) -> str:
    if entry.status in ("failed", "invalid") or (entry.status != "ranked" and is_open):
        answered = (
            f" (goodput {words.format_measured_per_s(entry.goodput_per_s)})"
            if entry.status == "overloaded" and entry.goodput_per_s is not None
            else ""
        )
        return f"{_NOT_RANKED[entry.status]}{answered}"
    if not is_open:
        return words.format_measured_rate(entry.goodput_per_s)
    return p99_words(entry)


def _elsewhere(label: str, level: RankingLevel) -> str:
    entry = next((one for one in level.entries if one.label == label), None)
    if entry is None:
        return words.MISSING
    if entry.status != "ranked":
        return _NOT_RANKED[entry.status]
    if level.rate is None:
        return words.format_measured_rate(entry.goodput_per_s)
    return p99_words(entry)


def _service_cores(entry: RankingEntry, name: str) -> str:
    cores = (one.cpu_cores_mean for one in entry.services if one.name == name)
    return words.format_cores(next(cores, None))


def _number(count: int | None) -> str:
    return words.MISSING if count is None else str(count)


def _dispensable(tables: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The columns to omit, the first one first: other levels (lowest first), then
    ``_DISPENSABLE``, then services. A figure that any table ranks by stays in all tables."""
    decisive = {headings[_FIRST_OTHER_LEVEL - 1] for headings in tables}
    others = [
        heading
        for headings in tables
        for heading in reversed(_other_levels(headings))
        if heading not in decisive
    ]
    known = [heading for headings in tables for heading in headings]
    usual = [heading for start in _DISPENSABLE for heading in known if heading.startswith(start)]
    services = [heading for heading in known if heading.endswith(SERVICE_CPU)]
    return tuple(dict.fromkeys((*others, *usual, *services)))


def _other_levels(headings: Sequence[str]) -> Sequence[str]:
    """The columns between the figure of the main level and p50."""
    end = next(place for place, heading in enumerate(headings) if heading.startswith("p50 at "))
    return headings[_FIRST_OTHER_LEVEL:end]
