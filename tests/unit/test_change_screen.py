"""The first screen of a comparison of two runs."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.comparison import Change, compare_runs
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.summary import Summary
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.cells import read_sweep
from wsgiload.report.change import MAX_ROWS, change_screen

from .invented_cells import experiment
from .report_fixture import summary_of

RUNS = ("/runs/before", "/runs/after")


def screen(
    first: Summary, second: Summary, differences: tuple[str, ...] = (), **changes: Any
) -> AnswerBox:
    comparisons = compare_runs(first.cells, second.cells)
    comparisons = tuple(
        msgspec.structs.replace(comparison, **changes) for comparison in comparisons
    )
    change = Change(RUNS, comparisons, differences)
    return change_screen(change, (read_sweep(first), read_sweep(second)))


def summary(p99_ns: dict[str, float], runs: int = 6, seed: int = 1) -> Summary:
    return summary_of(experiment(seed, p99_ns, runs=runs), runs=runs)


def test_the_largest_significant_change_is_the_answer_and_the_first_row() -> None:
    box = screen(
        summary({"a": 20e6, "b": 20e6, "c": 20e6}, seed=1),
        summary({"a": 20e6, "b": 30e6, "c": 60e6}, seed=2),
    )

    assert box.question == "What changed from before to after?"
    assert box.sentence.startswith(
        "2 of 3 comparisons show a difference. Largest: c at 1,000/s: p99 is "
    )

    ((headings, rows),) = box.tables
    assert [row[0] for row in rows] == ["c", "b", "a"]
    assert [row[headings.index("verdict")] for row in rows][:2] == ["different"] * 2

    ratio = float(rows[0][headings.index("ratio")].removesuffix("×"))
    assert ratio == pytest.approx(3, rel=0.2)
    assert "| c |" in box.markdown


def test_p99_of_each_run_has_its_interval() -> None:
    box = screen(summary({"a": 20e6}), summary({"a": 60e6}, seed=2))
    ((headings, [row]),) = box.tables
    for heading in ("first run", "second run"):
        match = re.fullmatch(
            r"([\d.]+) ms \[([\d.]+) ms to ([\d.]+) ms\]", row[headings.index(heading)]
        )
        assert match is not None
        value, low, high = map(float, match.groups())
        assert low < value < high


def test_without_a_significant_difference_none_is_named() -> None:
    box = screen(summary({"a": 20e6}, seed=1), summary({"a": 20e6}, seed=2))
    assert box.sentence.startswith("No significant difference in p99")
    assert box.needs is None


def test_too_few_runs_are_reported() -> None:
    box = screen(summary({"a": 20e6}, runs=1), summary({"a": 80e6}, runs=1, seed=2))
    assert box.sentence.startswith("Too few valid runs for a comparison: a at 1,000/s")
    assert box.needs == "repeat both with --runs 4 or more"


def test_other_differences_of_the_runs_are_at_most_five_cautions() -> None:
    first, second = summary({"a": 20e6}), summary({"a": 20e6}, seed=2)
    assert screen(first, second, ("another kernel",)).cautions == ("another kernel",)

    cautions = screen(first, second, tuple(f"difference {number}" for number in range(9))).cautions
    assert len(cautions) == 5 and cautions[-1] == "5 more differences; all are listed below"


def test_the_table_has_a_maximum_length() -> None:
    names = {f"server-{number}": 20e6 for number in range(MAX_ROWS + 4)}
    box = screen(summary(names), summary(names, seed=2))
    assert len(box.tables[0][1]) == MAX_ROWS


def test_goodput_is_shown_as_a_rate() -> None:
    first, second = summary({"a": 20e6}), summary({"a": 20e6}, seed=2)
    comparisons: tuple[Comparison, ...] = compare_runs(first.cells, second.cells, "goodput")

    change = Change(RUNS, comparisons, ())
    box = change_screen(change, (read_sweep(first), read_sweep(second)))

    assert all(value.endswith("/s") for value in box.tables[0][1][0][2:4])
