"""Reports over several runs: sentences, tables and the page, also rebuilt from stored files."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from wsgiload.analysis.attempts import counted_attempts, place_of
from wsgiload.analysis.comparison import compare_runs
from wsgiload.analysis.over_cells import analyse, judge_session
from wsgiload.cli import run
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.codec import decode, encode, to_plain
from wsgiload.documents.load_report import Reason
from wsgiload.documents.over_cells import (
    ComparedFigure,
    Comparison,
    DiscardedTrial,
    Efficiency,
    ExperimentValidity,
    Overload,
    OverloadPoint,
)
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
from wsgiload.report import forest, print_sweep, write_html
from wsgiload.report.over_runs import (
    aggregate_rows,
    change_sentence,
    comparison_lines,
    comparison_sentence,
    overload_lines,
    power_lines,
    session_lines,
)
from wsgiload.results.summary import exit_code

from .invented_cells import cell, experiment, invalid
from .report_fixture import read_summary, store_summary, summary_of, write_run

replace = msgspec.structs.replace

SERVERS = ("gunicorn-gthread", "gunicorn-gevent", "waitress")

ENTRY = Comparison(
    first="gthread",
    second="sync",
    rate=500.0,
    connections=None,
    figure="p99",
    rounds=6,
    same_server=False,
    factor=1.312,
    interval_95=(1.222, 1.409),
    p=0.03125,
    p_adjusted=0.03125,
    aa_factor=None,
    conclusion="different",
    reason=None,
    relative_rate=0.5,
)
P50 = ComparedFigure(
    figure="p50",
    factor=0.7,
    interval_95=(0.65, 0.75),
    p_adjusted=0.001,
    margin=0.5,
    conclusion="different",
)
GOODPUT_SAME = replace(P50, figure="goodput", conclusion="same", margin=0.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s"),
        (
            {"rate": None, "connections": 100, "figure": "goodput"},
            "gthread's goodput is 1.31× [1.22, 1.41] sync's at 100 connections",
        ),
        (
            {
                "conclusion": "same",
                "factor": 1.01,
                "interval_95": (0.99, 1.03),
                "same_server": True,
            },
            "A/A: gthread and sync: p99 is equivalent within 5 % at 500/s (1.01× [0.99, 1.03])",
        ),
        (
            {"conclusion": "same", "factor": 1.01, "interval_95": (0.99, 1.03), "margin": 0.0263},
            "gthread and sync: p99 is equivalent within 2.6 % at 500/s (1.01× [0.99, 1.03])",
        ),
        (
            {"conclusion": "undecided", "p_adjusted": 0.53, "margin": 1.4},
            "gthread and sync: no significant difference in p99 at 500/s (any difference is "
            "at most a factor of 2.4; 1.31× [1.22, 1.41], p = 0.53)",
        ),
        (
            {"others": (P50, GOODPUT_SAME)},
            "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s; p50 is 0.70× [0.65, 0.75]",
        ),
        (
            {"others": (replace(P50, conclusion="same"), GOODPUT_SAME)},
            "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s",
        ),
        (
            {
                "conclusion": "undecided",
                "p_adjusted": 0.53,
                "margin": 0.21,
                "others": (replace(P50, conclusion="undecided", margin=0.04), GOODPUT_SAME),
            },
            "gthread and sync: no significant difference in p99 at 500/s (any difference is at most 21 %; "
            "1.31× [1.22, 1.41], p = 0.53); p50 differs by at most 4 %",
        ),
        (
            {
                "conclusion": "undecided",
                "factor": 1.02,
                "interval_95": (0.95, 1.10),
                "p_adjusted": 0.53,
            },
            "gthread and sync: no significant difference in p99 at 500/s (1.02× [0.95, 1.10], "
            "p = 0.53)",
        ),
        (
            {"conclusion": "undecided", "aa_factor": 1.5},
            "gthread and sync: no significant difference in p99 at 500/s (1.31× [1.22, 1.41], "
            "p = 0.031); the A/A difference (one server under two names) is 1.50×",
        ),
        (
            {"conclusion": "no inference", "reason": "not met in 1 of 6 runs"},
            "gthread and sync: not compared at 500/s: not met in 1 of 6 runs",
        ),
        (
            {"relative_rate": 0.9},
            "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s; warning: at 90 % of the "
            "saturation throughput, p99 changes by about 10.0 % if this throughput changes by 1 %",
        ),
        (
            {"relative_rate": 1.2},
            "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s; warning: this rate "
            "exceeds the saturation throughput, so p99 grows with the duration",
        ),
    ],
)
def test_a_comparison_is_one_sentence(changes: dict[str, object], sentence: str) -> None:
    assert comparison_sentence(replace(ENTRY, **changes)) == sentence


def test_a_change_between_two_experiments_is_relative_to_the_first() -> None:
    assert (
        change_sentence(replace(ENTRY, first="sync"))
        == "sync at 500/s: p99 is 1.31× [1.22, 1.41] the first run's"
    )
    [entry] = compare_runs(experiment(1, {"a": 20e6}), experiment(2, {"a": 40e6}))
    assert change_sentence(entry).startswith("a at 1,000/s: ")
    assert "p99 is " in change_sentence(entry) and "the first run's" in change_sentence(entry)


def compared(*entries: Comparison) -> list[str]:
    summary = replace(summary_of(), comparisons=entries)
    return [sentence for sentence, _ in comparison_lines(summary)]


def test_too_few_rounds_and_an_unknown_saturation_are_reported_after_the_comparisons() -> None:
    wide = (0.9, 1.91)
    entry = replace(ENTRY, conclusion="undecided", relative_rate=None, rounds=6, interval_95=wide)
    lines = compared(entry, entry, entry)

    assert lines[3].startswith(
        "With 6 runs and 3 pairs of servers, the chance of detecting a difference of 30 % is "
        "below 50 %, given the variation between runs. Use "
    )
    assert lines[4].startswith("The distance to saturation is unknown")
    assert lines[3].endswith("Use 15 runs.")

    very_wide = replace(entry, interval_95=(0.1, 10.0))
    assert compared(very_wide)[1].endswith("Use more than 100 runs.")

    enough = replace(ENTRY, rounds=7)
    assert len(compared(enough, enough, enough)) == 3


@pytest.mark.parametrize(
    ("points", "sentences"),
    [
        (
            [(1100, 1.1, 0.95)],
            [
                "The maximum goodput of a was 1,000/s. At an offered rate of 1,100/s (110 % of this "
                "maximum), goodput stayed near the maximum.",
                "No",
            ],
        ),
        (
            [(1600, 1.6, 0.7)],
            [
                "The maximum goodput of a was 1,000/s. At an offered rate of 1,600/s (160 % of this "
                "maximum), goodput fell to 70.0 % of the maximum."
            ],
        ),
        (
            [(1050, 1.05, 1.0), (3000, 3.0, 0.2)],
            [
                "The maximum goodput of a was 1,000/s. At an offered rate of 3,000/s (300 % of this "
                "maximum), goodput collapsed to 20.0 % of the maximum."
            ],
        ),
        (
            [(1050, 1.05, 1.0)],
            [
                "The maximum goodput of a was 1,000/s.",
                "No server was offered at least 150 % of its maximum goodput, so ",
            ],
        ),
    ],
)
def test_the_goodput_beyond_its_maximum_is_reported(
    points: list[tuple[float, float, float]], sentences: list[str]
) -> None:
    overload_points = tuple(
        OverloadPoint(
            rate=rate, relative_rate=share, goodput_per_s=1000.0 * ratio, goodput_ratio=ratio
        )
        for rate, share, ratio in points
    )
    overload = Overload(server="a", max_goodput_per_s=1000.0, points=overload_points)
    lines = overload_lines(replace(summary_of(), overload=(overload,)))

    assert len(lines) == len(sentences)
    assert all(line.startswith(sentence) for line, sentence in zip(lines, sentences, strict=True))


def test_the_most_efficient_rate_is_reported_as_a_range_between_its_neighbours() -> None:
    near_500 = Efficiency(server="a", rate=500.0, between=(400.0, 600.0), points=(), reason=None)
    at_ends = [
        Efficiency(server=server, rate=None, between=None, points=(), reason="at an end")
        for server in ("b", "c")
    ]
    lines = power_lines(replace(summary_of(), efficiency=(at_ends[0], near_500, at_ends[1])))

    assert lines[0].startswith(
        "a is most efficient near 500/s (between 400/s and 600/s). Efficiency "
    )

    unknown = "The most efficient rate of b, c is unknown: at an end."
    assert lines[1:] == [unknown]

    [only_unknown] = power_lines(replace(summary_of(), efficiency=tuple(at_ends)))
    definition = "Efficiency (Kleinrock's power) is goodput divided by mean response time."
    assert only_unknown == f"{unknown} {definition}"
    assert power_lines(summary_of()) == power_lines(replace(summary_of(), efficiency=())) == []


def test_efficiency_is_in_the_summary_the_terminal_and_the_page(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "one")
    summary = analyse(read_summary(directory))
    assert list(Draft202012Validator(load_schema("summary-1")).iter_errors(to_plain(summary))) == []
    assert {entry.server for entry in summary.efficiency or ()} >= set(SERVERS)

    sentences = power_lines(summary)
    assert sentences

    text = "".join(terminal_text(summary).split())
    assert all("".join(sentence.split()) in text for sentence in sentences)

    store_summary(directory, summary)
    page = html.unescape(write_html(directory).read_text(encoding="utf-8"))
    assert all(f"<li>{sentence}</li>" in page for sentence in sentences)


def test_the_forest_plot_has_pairs_with_a_factor_and_begins_with_a_a_tests() -> None:
    pair = ENTRY
    unknown = replace(ENTRY, factor=None, interval_95=None, conclusion="no inference")
    aa_test = replace(
        ENTRY, same_server=True, conclusion="undecided", factor=1.01, interval_95=(0.9, 1.1)
    )

    assert forest.drawable([pair, unknown, aa_test]) == [aa_test, pair]
    assert len(forest.drawable([pair] * 100)) == forest.MAX_ROWS

    drawn = forest.forest_of([pair, unknown, aa_test], "Ratios", "first / second server", "")
    assert drawn is not None
    assert drawn.rows[0].name == "A/A: gthread / sync at 500/s"
    assert [row.is_chance for row in drawn.rows] == [True, False]
    assert "1×" in [text for _, text in drawn.ticks]
    for row in drawn.rows:
        assert 0 <= row.ends[0] < row.point < row.ends[1] <= 100
    assert forest.forest_of([unknown], "Ratios", "first / second server", "") is None
    assert forest.caption([pair, aa_test]) == (
        "1 comparison: 1 different, 0 equivalent within ±5 %."
    )
    assert forest.caption([aa_test]).startswith("A/A test (one server under two names)")


# --- discarded trials


def rerun(trial: CellResult, attempt: int) -> CellResult:
    return replace(trial, id=f"{trial.id}.{attempt}", attempt=attempt)


def reason(check: str, level: Literal["warn", "invalid"]) -> Reason:
    return Reason(check=check, level=level, message="found", value=None, limit=None)


def test_a_discarded_trial_is_listed_and_does_not_affect_the_exit_code() -> None:
    disturbed = invalid(cell("a"), "host")
    assert disturbed.verdict is not None
    reasons = (reason("run-queue-wait", "invalid"), reason("send-lag-absolute", "warn"))
    disturbed = replace(disturbed, verdict=replace(disturbed.verdict, reasons=reasons))
    cells = [disturbed, rerun(cell("a"), 2), *[cell("a", number) for number in range(2, 6)]]

    assert counted_attempts(cells) == cells[1:]
    assert [place_of(trial) for trial in cells[:3]] == ["a@1000#1", "a@1000#1", "a@1000#2"]

    summary = analyse(summary_of(cells, runs=5))
    assert summary.validity == ExperimentValidity(
        status="valid",
        trials=6,
        discarded=(
            DiscardedTrial(id="a@1000#1", reason="invalid because of the host (run-queue-wait)"),
        ),
    )
    assert session_lines(summary) == [
        (
            "Discarded 1 of 6 trials (16.7 %). a at 1,000/s, run 1, attempt 1: invalid because of the "
            "host (run-queue-wait).",
            "yellow",
        ),
    ]
    assert exit_code(summary) == 0


def test_an_experiment_with_more_than_a_fifth_of_its_trials_discarded_is_invalid() -> None:
    """Even if every rerun was valid."""
    cells = [invalid(cell("a")), rerun(cell("a"), 2), cell("a", 2), cell("a", 3)]
    summary = analyse(summary_of(cells, runs=3))
    assert summary.validity is not None
    assert summary.validity.status == "invalid"
    assert session_lines(summary)[-1] == (
        "More than 20 % of the trials were discarded, so the experiment is invalid.",
        "red",
    )
    assert exit_code(summary) == 98
    assert judge_session([*cells, cell("a", 4)]).status == "valid", "exactly a fifth is allowed"


def test_with_a_single_run_an_invalid_trial_is_not_discarded() -> None:
    summary = analyse(summary_of([invalid(cell("a"))]))
    assert session_lines(summary) == []
    assert exit_code(summary) == 98


def test_a_trial_in_which_the_server_failed_is_not_discarded() -> None:
    failure = CellFailure(step="load", message="fell over", log_tail="")
    failed = replace(invalid(cell("a"), "server"), failure=failure)
    assert judge_session([failed]).discarded == ()


# --- table, page and store


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with three servers at two rates, six runs each."""
    directory = write_run(tmp_path_factory.mktemp("runs") / "six", runs=6)
    summary = read_summary(directory)
    cell_ids = {f"{server}@{rate}" for server in SERVERS for rate in (1000, 2000)}
    cells = tuple(trial for trial in summary.cells if trial.id.partition("#")[0] in cell_ids)
    store_summary(directory, replace(summary, cells=cells))
    return directory


def terminal_text(summary: Summary) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_sweep(summary, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_analysed_summary_matches_the_schema(stored: Path) -> None:
    methods: tuple[Method, ...] = ("interval", "trim")
    for method in methods:
        summary = analyse(read_summary(stored), method)
        assert (
            list(Draft202012Validator(load_schema("summary-1")).iter_errors(to_plain(summary)))
            == []
        )
        assert len(summary.aggregates or ()) == 6
        assert len(summary.comparisons or ()) == 2 * 3


def test_the_analysis_is_idempotent_and_depends_only_on_the_cells(stored: Path) -> None:
    once = analyse(read_summary(stored))
    assert analyse(once) == once
    assert analyse(replace(once, aggregates=(), comparisons=(), validity=None)) == once
    stored_again = decode(Summary, encode(once), "summary.json")
    assert stored_again == once, "the stored summary is the computed one"
    assert analyse(stored_again) == once


def test_servers_are_in_the_requested_order_regardless_of_the_run_order(stored: Path) -> None:
    summary = read_summary(stored)
    backwards = analyse(replace(summary, cells=summary.cells[::-1]))
    assert backwards.aggregates == analyse(summary).aggregates
    assert backwards.comparisons == analyse(summary).comparisons
    named = [(entry.server, entry.rate) for entry in backwards.aggregates or ()]
    assert named == [(server, rate) for server in SERVERS for rate in (1000, 2000)]


def test_the_terminal_shows_the_aggregates_over_runs(stored: Path) -> None:
    text = terminal_text(analyse(read_summary(stored)))
    assert "mean p99 [95 % CI]" in text
    assert re.search(r"gunicorn-gthread( and|'s p99 is [\d.]+× .*\]) gunicorn-gevent", text)
    assert "the chance of detecting" not in text, "these runs vary little"
    assert "trimmed" not in text
    assert "trimmed mean p99" in terminal_text(analyse(read_summary(stored), "trim"))


def test_the_share_of_variance_between_runs_is_shown_if_known(stored: Path) -> None:
    summary = analyse(read_summary(stored))
    shown = {row[0]: row[-2] for row in aggregate_rows(summary)}
    figures = {entry.server: entry.figures.p99 for entry in summary.aggregates or ()}
    with_share = [server for server in SERVERS if figures[server].between_run_share is not None]
    assert with_share, "the simulated runs have confidence intervals"
    assert all(
        shown[server].endswith(" of variance") == (server in with_share) for server in SERVERS
    )


def test_one_run_has_no_table_over_runs(tmp_path: Path) -> None:
    text = terminal_text(analyse(read_summary(write_run(tmp_path / "one"))))
    assert "95 % CI" not in text


def test_the_page_shows_the_aggregates_over_runs_unless_there_is_a_single_run(
    stored: Path, tmp_path: Path
) -> None:
    page = write_html(stored).read_text(encoding="utf-8")
    assert '<section id="runs">' in page
    assert "mean p99 [95 % CI]" in page
    assert "Response times do not affect this decision" in page

    figure = page[page.index('<figure id="forest">') :].partition("</figure>")[0]
    assert "gunicorn-gthread / gunicorn-gevent at 1,000/s" in figure
    assert "6 comparisons: " in figure
    assert '<section id="runs">' not in write_html(write_run(tmp_path / "one")).read_text(
        encoding="utf-8"
    )


def test_the_report_of_an_old_directory_computes_missing_aggregates(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stored summary has none, as after a run of an earlier version or one that was killed."""
    assert read_summary(stored).aggregates is None
    assert run(["report", str(stored), "--verbose"]) == 0
    first = capsys.readouterr().out
    page = (stored / "report.html").read_text(encoding="utf-8")
    store_summary(stored, analyse(read_summary(stored)))

    assert run(["report", str(stored), "--verbose"]) == 0
    assert capsys.readouterr().out == first

    parts = [
        text.partition('<section id="raw">')[0]
        for text in (page, (stored / "report.html").read_text())
    ]

    assert parts[0].replace("aggregate</dt><dd>interval", "") == parts[1].replace(
        "aggregate</dt><dd>interval", ""
    )
    assert run(["report", str(stored), "--verbose", "--aggregate", "trim"]) == 0
    assert "The trimmed mean excludes the lowest" in capsys.readouterr().out
