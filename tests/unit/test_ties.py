"""Which servers tie, which are apart, and which are not decided; servers with errors never lead."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.ranking import rank
from wsgiload.documents.answer import Answer
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Bounds, Uncertainty
from wsgiload.report.answer import answer_of

from .filled import exactly, filled_summary, outcomes
from .invented_cells import cell, runs_of, within

MS = 1e6


def trial(
    name: str, p99_ms: float, uncertainty: Uncertainty, p50_ms: float = 1.0, errors: int = 0
) -> CellResult:
    quantiles: dict[str, Bounds] = {
        key: exactly(value * MS)
        for key, value in (("0.5", p50_ms), ("0.9", p50_ms), ("0.99", p99_ms))
    }
    counts = outcomes(20_000, 20_000 - errors, http_status=errors)
    return cell(name, offered_quantiles_ns=quantiles, uncertainty=uncertainty, outcomes=counts)


def answer(cells: Sequence[CellResult], **facts: object) -> Answer:
    servers = tuple(dict.fromkeys(one.server for one in cells))
    runs = max(one.run for one in cells)
    known = {"servers": servers, "rates": (1000.0,), "runs": runs} | facts
    return answer_of(analyse(filled_summary(known, cells)))


FAST = trial("fast", 4.84, within(4.1, None, p50=(1.0, 1.2)), 1.1)
COLLAPSE = trial("collapse", 76.4, within(3.9, 90.0, p50=(30.0, 36.0)), 33.6)


def test_an_unbounded_interval_is_not_a_tie_if_the_medians_are_apart() -> None:
    (level,) = rank([COLLAPSE, FAST])
    assert [entry.label for entry in level.entries] == ["fast", "collapse"]
    assert not any(entry.tied_with or entry.undecided_with for entry in level.entries)
    sentence = answer([COLLAPSE, FAST]).sentence
    assert "Its lead in p50 or p90 exceeds the noise within a run" in sentence


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        (within(4.0, 6.0), within(5.0, 7.0), "tied"),
        (within(4.0, 4.9), within(5.0, 7.0), "separate"),
        (within(4.0, 4.9), within(5.0, None), "separate"),
        (within(4.0, None), within(3.0, 7.0), "undecided"),
        (within(4.0, None, p50=(1.0, 2.0)), within(3.0, 7.0, p50=(1.5, 3.0)), "undecided"),
        (within(4.0, None, p50=(5.0, 6.0)), within(3.0, 7.0, p50=(1.0, 2.0)), "undecided"),
        (within(4.0, None, p90=(1.0, 2.0)), within(3.0, 7.0, p90=(3.0, 4.0)), "separate"),
    ],
)
def test_a_tie_needs_two_bounded_intervals(
    one: Uncertainty, other: Uncertainty, relation: str
) -> None:
    (level,) = rank([trial("a", 4.5, one), trial("b", 6.0, other)])
    first = level.entries[0]
    tied, undecided = first.tied_with == ("b",), first.undecided_with == ("b",)
    assert (tied, undecided) == (relation == "tied", relation == "undecided")


def test_an_order_that_is_not_known_is_called_not_decided() -> None:
    result = answer([trial("a", 4.5, within(4.0, None)), trial("b", 6.0, within(3.0, 7.0))])
    assert "Whether this is lower than that of b is not decided" in result.sentence
    assert "within the noise" not in result.sentence


def test_a_server_with_errors_that_another_does_not_have_never_leads() -> None:
    fast = trial("errfast", 4.84, within(4.1, 5.0), errors=160)
    slow = trial("slow", 76.4, within(70.0, 90.0))
    result = answer([fast, slow])
    assert [entry.label for entry in result.ranking[0].entries] == ["slow", "errfast"]
    assert result.ranking[0].entries[1].status == "errors"
    assert "errfast is not ranked: 0.8 % of its requests failed." in result.sentence
    assert not result.sentence.startswith("errfast")


def test_errors_within_the_allowance_of_the_objective_do_not_matter() -> None:
    few = trial("few", 4.84, within(4.1, 5.0), errors=10)
    none = trial("none", 9.0, within(8.0, 10.0))
    (level,) = rank([few, none], allowed_errors=0.001)
    assert [entry.status for entry in level.entries] == ["ranked", "ranked"]
    (level,) = rank([few, trial("other", 9.0, within(8.0, 10.0), errors=5)])
    assert [entry.status for entry in level.entries] == ["ranked", "ranked"], "all have errors"


def test_a_server_with_errors_does_not_win_a_race() -> None:
    some = outcomes(20_000, 19_900, http_status=100)
    cells = [*runs_of("errfast", [1 * MS] * 8, outcomes=some), *runs_of("slow", [9 * MS] * 8)]
    cells += runs_of("slower", [90 * MS] * 2)
    result = answer(cells, budget_s=600.0, runs=11, duration_s=10.0)
    assert result.status == "decided"
    assert result.sentence.startswith("slow has the lowest p99 at 1,000/s: 9.00 ms")
    assert "errfast dropped out: requests failed, or the rate was not" in result.sentence


def test_a_figure_lies_in_its_interval_however_skewed_the_runs_are() -> None:
    times_ms = [2.0] * 10 + [5.5] * 5
    runs = [
        msgspec.structs.replace(trial("a", time_ms, within(1.9, 6.0)), id=f"a#{run}", run=run)
        for run, time_ms in enumerate(times_ms, start=1)
    ]
    entry = rank(runs)[0].entries[0]
    assert entry.value_ns is not None and entry.interval_ns is not None
    low, high = entry.interval_ns
    assert high is not None and 2.0 * MS < low < entry.value_ns < high
