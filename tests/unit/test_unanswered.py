"""A question without an answer: exit code 98, the best candidate so far, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from wsgiload.analysis.answered import is_unanswered
from wsgiload.analysis.over_cells import analyse
from wsgiload.cli import run
from wsgiload.cli._decide import code_of_answer, deciding_command
from wsgiload.documents.answer import Answer
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.program import program
from wsgiload.report.answer import answer_of
from wsgiload.report.first_screen import first_screen

from .filled import filled_summary, outcomes, rates, reason, verdict
from .invented_cells import cell, runs_of
from .report_fixture import write_run

MS = 1e6


def objective_race(cells: Sequence[CellResult]) -> Summary:
    facts = {
        "runs": 8,
        "budget_s": 300.0,
        "servers": ("waitress", "granian"),
        "rates": (500.0, 1000.0),
        "slo": ("p99<50ms", "error_rate<=0.1%"),
        "duration_s": 10.0,
    }
    return analyse(filled_summary(facts, cells))


def race(cells: Sequence[CellResult]) -> Summary:
    servers = tuple(dict.fromkeys(one.server for one in cells))
    facts = {"runs": 11, "budget_s": 600.0, "servers": servers, "rates": (1000.0,)}
    return analyse(filled_summary(facts | {"duration_s": 10.0}, cells))


MISSED = [
    *runs_of("granian", [854 * MS] * 3),
    *runs_of("waitress", [372 * MS] * 3),
]


def with_answer(summary: Summary) -> tuple[Summary, Answer]:
    answer = answer_of(summary)
    return replace(summary, answer=answer), answer


def test_a_race_in_which_every_server_missed_has_no_places_and_names_the_best_so_far() -> None:
    summary, answer = with_answer(objective_race(MISSED))
    assert "no configuration meets p99<50ms" in answer.sentence
    assert "the best so far is waitress (p99 372 ms)" in answer.sentence
    assert answer.command_line is None
    assert [entry.label for entry in answer.ranking[0].entries] == ["waitress", "granian"]

    [(_, rows)] = first_screen(summary).tables
    assert [row[:2] for row in rows] == [["–", "waitress"], ["–", "granian"]]


def test_an_undecided_objective_has_exit_code_98_and_the_command_that_decides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary, _ = with_answer(objective_race(MISSED))
    words = ["sweep", "app:app", "--slo", "p99<50ms", "--budget", "5m"]
    assert [code_of_answer(summary, code, words) for code in (0, 99, 97, 130)] == [98, 98, 97, 130]
    command = capsys.readouterr().err.splitlines()[0].partition("run: ")[2]
    assert shlex.split(command, comments=True) == [*program(), *words, "--budget", "10m"]
    assert command.endswith("  # about 10 min")


def test_a_resumed_sweep_names_no_command_because_its_plan_is_fixed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary, _ = with_answer(objective_race(MISSED))
    assert code_of_answer(summary, 0, None) == 98
    assert capsys.readouterr().err == "wsgiload: undecided\n"


def test_nothing_measured_is_no_answer() -> None:
    assert is_unanswered(race([]))


def test_a_certain_miss_is_an_answer() -> None:
    missed = [replace(one, rate=500.0, id=one.id.replace("@1000", "@500")) for one in MISSED]
    assert not is_unanswered(objective_race([*MISSED, *missed]))


def test_only_an_undecided_race_is_unanswered() -> None:
    clear = [*runs_of("a", [1 * MS] * 6), *runs_of("b", [9 * MS] * 6)]
    assert not is_unanswered(race(clear))
    near = [*runs_of("a", [1 * MS, 1.5 * MS]), *runs_of("b", [1.2 * MS, 1.1 * MS])]
    assert is_unanswered(race(near))
    all_failed = [*runs_of("a", [None] * 2), *runs_of("b", [None] * 2)]
    assert is_unanswered(race(all_failed))
    assert answer_of(race(all_failed)).command_line is None


def refusing(name: str) -> CellResult:
    """84 % of the responses are 503, with the cause in the body."""
    message = '16,800 of 20,000 requests got an incorrect response: status 503, "pool exhausted"'
    finding = replace(reason("wrong-responses", "warn", message), fix="see the server's log")
    return cell(
        name,
        p99_ns=None,
        outcomes=outcomes(20_000, 3_200, http_status=16_800),
        rate_result=rates(160.0, offered_per_s=1000.0),
        verdict=verdict("warn", "server", finding, reason("failed", "warn", "some failed")),
    )


def test_errors_come_before_lower_rates(capsys: pytest.CaptureFixture[str]) -> None:
    summary = filled_summary({"servers": ("a",), "rates": (1000.0,), "runs": 1}, [refusing("a")])
    answered, answer = with_answer(analyse(summary))
    assert answer.needs is not None
    assert answer.needs.startswith("resolve the errors of a first: 16,800 of 20,000 requests")
    assert 'status 503, "pool exhausted"' in answer.needs
    assert "lower --rates" not in answer.needs
    assert answer.warnings[0].startswith("a: 16,800 of 20,000 requests")
    assert not any("count as infinitely slow" in line for line in answer.warnings)
    assert code_of_answer(answered, 0, ["sweep"]) == 98
    assert capsys.readouterr().err.startswith("wsgiload: undecided")


FEW = outcomes(899)


def test_servers_that_were_never_compared_are_not_called_not_worse() -> None:
    cells = [
        cell(name, run, p99 * MS, outcomes=FEW)
        for run in range(1, 7)
        for name, p99 in (("a", 19.8), ("h", 76.7))
    ]
    summary, answer = with_answer(race(cells))
    assert "so far, ≈ 19.8 ms" in answer.sentence
    assert "the race is not decided" in answer.sentence
    assert "Behind" not in answer.sentence
    assert answer.needs == (
        "use --duration 2s, because p99 needs at least 1,000 requests per trial"
    )
    command = deciding_command(answer.needs, summary, ["sweep"])
    assert command is not None and "sweep --duration 2s  # about 10 min" in command


def test_a_report_with_an_undecided_objective_has_exit_code_98(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", runs=1)
    assert run(["report", str(run_dir)]) == 0
    assert run(["report", str(run_dir), "--slo", "p99<50ms"]) == 98
