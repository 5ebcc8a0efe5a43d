"""The page of ``wsgiload compare``: sentences, forest plot and figures of two stored runs. Offline,
like the report."""

from __future__ import annotations

from wsgiload.analysis.comparison import Change
from wsgiload.report import forest, html, svg
from wsgiload.report.over_runs import change_sentence, load_words
from wsgiload.report.words import Json


def render(change: Change) -> str:
    """The whole page as text."""
    rows = forest.drawable(change.comparisons)
    conditions = " → ".join(change.runs)
    return html.page(
        "change.html.j2",
        {
            "title": "What changed between two runs",
            "runs": change.runs,
            "sentences": [
                (change_sentence(entry), entry["finding"]) for entry in change.comparisons
            ],
            "unlike": change.unlike,
            "forest": forest.forest_chart(rows, conditions, "the second run over the first", _name)
            if rows
            else "",
            "reading": forest.READING,
            "rows": [(_name(entry), *_numbers(entry)) for entry in rows],
            "palette": list(
                zip(range(len(svg.PALETTE)), svg.PALETTE, svg.DARK_PALETTE, strict=True)
            ),
        },
    )


def _name(entry: Json) -> str:
    return f"{entry['first']} at {load_words(entry)}"


def _numbers(entry: Json) -> list[str]:
    return [
        f"{value:.3g}"
        for value in (entry["factor"], *entry["interval_95"], entry["p"], entry["p_adjusted"])
    ]
