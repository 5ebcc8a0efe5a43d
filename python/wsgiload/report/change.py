"""The page of ``wsgiload compare``: sentences, forest plot and figures of two stored runs. Offline,
like the report."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.analysis.comparison import Change
from wsgiload.documents.summary import Comparison
from wsgiload.report import forest, page
from wsgiload.report.over_runs import change_sentence, load_words


@dataclass(frozen=True, slots=True)
class ChangePage:
    """What ``change.html.j2`` shows."""

    title: str
    runs: tuple[str, str]
    sentences: list[tuple[str, str]]
    unlike: list[str]
    forest: str
    reading: str
    rows: list[tuple[str, ...]]
    palette: page.Palette


def render(change: Change) -> str:
    """The whole page as text."""
    rows = forest.drawable(change.comparisons)
    conditions = " → ".join(change.runs)
    drawing = (
        forest.forest_chart(rows, conditions, "the second run over the first", _name)
        if rows
        else ""
    )
    shown = ChangePage(
        title="What changed between two runs",
        runs=change.runs,
        sentences=[(change_sentence(entry), entry.finding) for entry in change.comparisons],
        unlike=list(change.unlike),
        forest=drawing,
        reading=forest.READING,
        rows=[(_name(entry), *forest.row_numbers(entry)) for entry in rows],
        palette=page.palette(),
    )
    return page.render("change.html.j2", shown)


def _name(entry: Comparison) -> str:
    return f"{entry.first} at {load_words(entry)}"
