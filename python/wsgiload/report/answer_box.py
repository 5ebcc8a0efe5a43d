"""The first screen of a result: the question, the answer, tables and warnings. Terminal, page and
Markdown show the same content. It computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from wsgiload.report import words
from wsgiload.report.terminal import plain_table

Rows = Sequence[Sequence[str]]

_STYLES = {"decided": "bold green", "tie": "bold", "undecided": "bold yellow"}
# Columns with text; columns with numbers are right-aligned.
_WORDS = ("server", "time", "limited by", "run", "verdict")


@dataclass(frozen=True, slots=True)
class AnswerBox:
    """The first screen. ``status`` determines the color of the answer in a terminal."""

    question: str
    sentence: str
    command_line: str | None
    needs: str | None
    tables: list[tuple[list[str], list[list[str]]]]
    cautions: tuple[str, ...]
    markdown: str
    title: str | None = None
    status: Literal["decided", "tie", "undecided"] = "decided"
    # The server that the command starts.
    command_of: str | None = None
    # The label of the fix in ``needs``.
    needs_label: str = "To decide"
    # Why the result is not complete.
    notice: str = ""
    # Columns that a narrow terminal omits, the first one first.
    dispensable: tuple[str, ...] = ()

    @property
    def command_label(self) -> str:
        """The label above the command."""
        return f"To run {self.command_of or 'it'} yourself:"


def markdown_of(answer: AnswerBox) -> AnswerBox:
    """The first screen with its Markdown version."""
    lines = [] if answer.title is None else [f"# {answer.title}", ""]
    lines += [f"**{answer.question}**", "", answer.sentence, ""]
    if answer.command_line is not None:
        lines += [answer.command_label, "", "```sh", answer.command_line, "```", ""]
    if answer.needs is not None:
        lines += [f"{answer.needs_label}: {answer.needs}.", ""]
    for headings, rows in answer.tables:
        lines += [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines.append("")
    lines += [f"- {caution}" for caution in answer.cautions]
    return replace(answer, markdown="\n".join(lines).rstrip() + "\n")


def print_answer(answer: AnswerBox, console: Console) -> None:
    """Print the first screen with as many columns as fit."""
    console.print(Group(*_parts(answer, console.width)))


def _parts(answer: AnswerBox, width: int) -> Iterator[RenderableType]:
    if answer.title is not None:
        yield Text(answer.title, style="bold")
    yield Text(answer.question, style="dim")
    yield Text(answer.sentence, style=_STYLES[answer.status])
    if answer.command_line is not None:
        yield Text(answer.command_label)
        yield from (Text(f"  {line}", style="cyan") for line in answer.command_line.splitlines())
    if answer.needs is not None:
        yield Text(f"{answer.needs_label}: {answer.needs}.")
    if answer.notice:
        yield Text(answer.notice, style="yellow")
    for headings, rows in answer.tables:
        yield fitting_table(headings, rows, answer.dispensable, width)
    yield from (Text(f"• {caution}", style="yellow") for caution in answer.cautions)


def fitting_table(
    headings: Sequence[str], rows: Rows, dispensable: Sequence[str], width: int
) -> Table:
    """The table without the dispensable columns that do not fit. Only verdicts are wrapped."""
    columns = _known_columns(headings, rows)
    for heading in dispensable:
        if _width(headings, rows, columns) <= width:
            break
        columns = [place for place in columns if headings[place] != heading]

    table = plain_table()
    for place in columns:
        heading = headings[place]
        side: Literal["left", "right"] = "left" if heading in _WORDS else "right"
        is_long = heading == "verdict"
        table.add_column(
            "\n".join(_lines(heading)), justify=side, no_wrap=not is_long, overflow="fold"
        )
    for row in rows:
        table.add_row(*(row[place] for place in columns))
    return table


def _known_columns(headings: Sequence[str], rows: Rows) -> list[int]:
    """The columns that have a known value in any row."""
    return [
        place
        for place, heading in enumerate(headings)
        if not heading or any(row[place] != words.MISSING for row in rows)
    ]


def _width(headings: Sequence[str], rows: Rows, columns: Sequence[int]) -> int:
    widths = [
        max(len(text) for text in (*_lines(headings[place]), *(row[place] for row in rows)))
        for place in columns
    ]
    return sum(widths) + 2 * len(widths)


def _lines(heading: str) -> list[str]:
    """``p99 at 500/s`` on two lines."""
    figure, at, level = heading.partition(" at ")
    return [figure, f"at {level}"] if at else [heading]
