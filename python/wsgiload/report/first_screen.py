"""The first screen: the question, the answer, the ranked table, what could change the answer, and
where the rest is. The same in a terminal and in Markdown.

It builds renderables and text; it computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from wsgiload.documents.summary import Answer, RankingEntry, RankingLevel, Summary
from wsgiload.report import words
from wsgiload.report.answer import answer_of, by_app, main_level, p99_words

_STYLES = {"decided": "bold green", "tie": "bold", "undecided": "bold yellow"}
_NOT_RANKED = {
    "overloaded": "saturated",
    "unjudged": "invalid",
    "failed": "failed",
}
# Narrower terminals get fewer columns; server names and the figures at the main level stay.
_DISPENSABLE = ("workers", "threads", "p50", "memory", "CPU cores")
# Ends the heading of the CPU use of a supporting service.
SERVICE_CPU = " CPU"


def print_first_screen(summary: Summary, console: Console) -> None:
    """Print it."""
    answer = summary.answer or answer_of(summary)
    console.print(Group(*_parts(answer, summary, console)))


def markdown(summary: Summary) -> str:
    """The same as Markdown."""
    answer = summary.answer or answer_of(summary)
    title = summary.experiment.title
    lines = [] if title is None else [f"# {title}", ""]
    lines += [f"**{answer.question}**", "", answer.sentence, ""]
    if answer.command_line is not None:
        lines += ["```sh", answer.command_line, "```", ""]
    if answer.needs is not None:
        lines += [f"To decide: {answer.needs}.", ""]
    for level in shown_levels(answer, summary):
        headings, rows = table_of(level, answer.ranking)
        lines += [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines.append("")
    lines += [f"- {caution}" for caution in answer.cautions]
    return "\n".join(lines).rstrip() + "\n"


def _parts(answer: Answer, summary: Summary, console: Console) -> Iterator[RenderableType]:
    if summary.experiment.title is not None:
        yield Text(summary.experiment.title, style="bold")
    yield Text(answer.question, style="dim")
    yield Text(answer.sentence, style=_STYLES[answer.status])
    if answer.command_line is not None:
        yield Text(f"  {answer.command_line}", style="cyan")
    if answer.needs is not None:
        yield Text(f"To decide: {answer.needs}.")
    status = words.status_words(summary.status)
    if status:
        yield Text(status, style="yellow")
    for level in shown_levels(answer, summary):
        yield _fitting_table(level, answer.ranking, console)
    yield from (Text(f"• {caution}", style="yellow") for caution in answer.cautions)


def shown_levels(answer: Answer, summary: Summary) -> list[RankingLevel]:
    """One level of each app, which the answer is about: the rate of the recommendation, else the
    highest that a server sustained. The others are columns of its table."""
    rates = {
        one.app: one.recommended.rate_per_s
        for one in summary.recommendations or ()
        if one.recommended is not None
    }
    return [
        next(
            (one for one in levels if one.rate is not None and one.rate == rates.get(one.app)), None
        )
        or main_level(levels)
        or levels[0]
        for levels in by_app(answer.ranking)
        if levels
    ]


def table_of(
    level: RankingLevel, ranking: Sequence[RankingLevel]
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the ranked table of one level, with p99 at the other levels beside
    it."""
    others = [one for one in ranking if one.app == level.app and one is not level]
    is_open = level.rate is not None
    services = dict.fromkeys(one.name for entry in level.entries for one in entry.services)
    figure = f"p99 at {level.level}" if is_open else f"requests/s, {level.level}"
    headings = [
        "",
        "server",
        "workers",
        "threads",
        figure,
        "p50",
        *(f"at {one.level}" for one in others),
        "CPU cores",
        *(f"{name}{SERVICE_CPU}" for name in services),
        "memory",
    ]
    places = _places(level.entries)
    rows = [
        [
            places[entry.label],
            entry.label,
            _number(entry.workers),
            _number(entry.threads),
            _figure(entry, is_open=is_open),
            words.format_duration_ns(entry.p50_ns),
            *(_elsewhere(entry.label, one) for one in others),
            words.format_cores(entry.cpu_cores_mean),
            *(_service_cores(entry, name) for name in services),
            words.format_bytes(entry.memory_peak_bytes),
        ]
        for entry in level.entries
    ]
    return headings, rows


def _places(entries: Sequence[RankingEntry]) -> dict[str, str]:
    """The place of each server; those that cannot be told from the first of their group share
    it."""
    places: dict[str, int] = {}
    first: RankingEntry | None = None
    for position, entry in enumerate(entries, start=1):
        if entry.status != "ranked":
            continue
        is_tied = first is not None and entry.label in first.tied_with
        if first is None or not is_tied:
            first = entry
            places[entry.label] = position
        else:
            places[entry.label] = places[first.label]

    taken = list(places.values())
    words_of = {
        label: f"{place}{'=' if taken.count(place) > 1 else ''}" for label, place in places.items()
    }
    return {entry.label: words_of.get(entry.label, words.MISSING) for entry in entries}


def _figure(entry: RankingEntry, *, is_open: bool) -> str:
    if entry.status in ("failed", "unjudged") or (entry.status != "ranked" and is_open):
        answered = (
            f" ({words.format_per_s(entry.goodput_per_s)})"
            if entry.status == "overloaded" and entry.goodput_per_s is not None
            else ""
        )
        return f"{_NOT_RANKED[entry.status]}{answered}"
    if not is_open:
        return words.format_rate(entry.goodput_per_s)
    return p99_words(entry)


def _elsewhere(label: str, level: RankingLevel) -> str:
    entry = next((one for one in level.entries if one.label == label), None)
    if entry is None:
        return words.MISSING
    if entry.status != "ranked":
        return _NOT_RANKED[entry.status]
    if level.rate is None:
        return words.format_rate(entry.goodput_per_s)
    return words.rough(words.format_duration_ns(entry.value_ns), is_rough=entry.is_rough)


def _service_cores(entry: RankingEntry, name: str) -> str:
    cores = (one.cpu_cores_mean for one in entry.services if one.name == name)
    return words.format_cores(next(cores, None))


def _number(count: int | None) -> str:
    return words.MISSING if count is None else str(count)


def _fitting_table(level: RankingLevel, ranking: Sequence[RankingLevel], console: Console) -> Table:
    """The table with as many columns as fit."""
    headings, rows = table_of(level, ranking)
    left_out = _unknown_columns(headings, rows)
    for heading in (*_other_levels(headings), *_DISPENSABLE, *_of_services(headings)):
        if _width(headings, rows, left_out) <= console.width:
            break
        left_out.append(heading)

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    kept = [place for place, heading in enumerate(headings) if heading not in left_out]
    for place in kept:
        is_name = headings[place] == "server"
        table.add_column(headings[place], justify="left" if is_name else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[place] for place in kept))
    return table


def _unknown_columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns in which nothing is known of any server."""
    return [
        heading
        for place, heading in enumerate(headings)
        if heading and all(row[place] == words.MISSING for row in rows)
    ]


def _other_levels(headings: Sequence[str]) -> list[str]:
    """The lowest level goes first."""
    return [heading for heading in reversed(headings) if heading.startswith("at ")]


def _of_services(headings: Sequence[str]) -> list[str]:
    return [heading for heading in headings if heading.endswith(SERVICE_CPU)]


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]], left_out: Sequence[str]) -> int:
    kept = [place for place, heading in enumerate(headings) if heading not in left_out]
    widths = [max(len(row[place]) for row in [headings, *rows]) for place in kept]
    return sum(widths) + 2 * len(widths)
