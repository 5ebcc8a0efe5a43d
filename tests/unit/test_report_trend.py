"""``wsgiload report --trend``: whether a server has become slower over stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from wsgiload.cli import run
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.codec import encode
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.program import command_line

from .capacity_fixture import write_search
from .filled import verdict
from .invented_cells import cell, experiment, invalid, runs_of, with_p50
from .report_fixture import store_summary, summary_of

replace = msgspec.structs.replace
Trend = Callable[..., list[str]]
HOST = HostFacts(cpu_model="A", cpus=2, available_cpus=(0, 1), kernel="6.1", machine="x86_64")


def stored(
    directory: Path,
    cells: Sequence[CellResult],
    day: int,
    *,
    host: HostFacts = HOST,
    version: str = "3.0.2",
    status: str = "complete",
    **facts: object,
) -> Path:
    """A run directory of a sweep that started on this day."""
    directory.mkdir()
    versioned = [replace(one, version=version, python="3.11.2") for one in cells]
    summary = summary_of(versioned, **({"runs": 6} | facts))
    store_summary(directory, replace(summary, status=status))

    info = RunInfo(
        schema_version=1,
        started_utc=f"2026-11-{day:02}T09:30:00+00:00",
        status="complete",
        plan=msgspec.Raw(b"{}"),
        host=host,
    )
    (directory / "run.json").write_text(encode(info))

    return directory


def measured(seed: int, p99s_ns: Mapping[str, float], runs: int = 6) -> list[CellResult]:
    return experiment(seed, p99s_ns, runs=runs, run_effect=0.01)


@pytest.fixture
def trend(capsys: pytest.CaptureFixture[str]) -> Trend:
    """Runs ``report --trend`` and returns the lines of its output."""

    def show(*words: Path | str, code: int = 0) -> list[str]:
        assert run(["report", "--trend", *map(str, words)]) == code
        lines = (line.strip() for line in capsys.readouterr().out.splitlines())
        return [line for line in lines if line]

    return show


def rows_of(lines: Sequence[str], caption: str) -> dict[str, str]:
    """The verdict of each run in the table with this caption."""
    after = lines[lines.index(caption) + 1 :]
    heading, _, *rows = after
    column = heading.index("verdict")
    verdicts = {}

    for row in rows:
        if len(row) <= column or "  " not in row:
            break
        verdicts[row.split("  ")[0]] = row[column:].strip()

    return verdicts


def test_the_help_lists_the_option_with_its_condition(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "--trend Compare each server over two or more sweeps, ordered by start time" in words


def test_runs_are_sorted_by_start_time_and_a_regression_is_reported(
    tmp_path: Path, trend: Trend
) -> None:
    first = stored(tmp_path / "z", measured(1, {"a": 20e6, "b": 10e6}), 20)
    second = stored(tmp_path / "m", measured(2, {"a": 20e6, "b": 10e6}), 21)
    third = stored(tmp_path / "k", measured(3, {"a": 40e6, "b": 10e6}), 22)
    lines = trend(third, first, second)

    assert lines[0] == "Did a server become slower over 3 runs, from z to k?"
    assert lines[1].startswith(
        "1 of 2 cells changed from the first to the last run (1 slower). a at 1,000/s: p99 is 2.0"
    )
    assert rows_of(lines, "a at 1,000/s") == {
        "z": "first run",
        "m": "no significant difference",
        "k": "slower",
    }
    assert not [line for line in lines if line.startswith("•")]


def test_each_row_has_its_figures(tmp_path: Path, trend: Trend) -> None:
    first = stored(tmp_path / "one", measured(1, {"a": 20e6}), 20, app_revision="a" * 40)
    second = stored(tmp_path / "two", measured(2, {"a": 10e6}), 21, app_revision="b" * 40)
    lines = trend(first, second)
    heading, _, before, after = lines[lines.index("a at 1,000/s") + 1 :][:4]
    assert heading.split("  ")[0] == "run" and "p99 [95 % CI]" in heading
    assert "p99 change" in heading
    assert "aaaaaaaaaaaa" in before and "1,000/s" in before and " ms, " in before
    assert "bbbbbbbbbbbb" in after and "0.50× [" in after and after.endswith("faster")


def test_unchanged_servers_are_not_reported_as_slower(tmp_path: Path, trend: Trend) -> None:
    runs = [
        stored(tmp_path / name, measured(day, {"a": 20e6}), day)
        for day, name in ((1, "one"), (2, "two"))
    ]
    lines = trend(*runs)
    assert lines[1] == "No significant change in p99 from the first to the last run."
    note = (
        "Intervals include 10 % between sessions, assumed; repeat an unchanged sweep to measure it."
    )
    assert " ".join(lines).endswith(note)


def test_a_change_in_an_earlier_run_is_reported(tmp_path: Path, trend: Trend) -> None:
    runs = [
        stored(tmp_path / f"day-{day}", measured(day, {"a": p99_ns}), day)
        for day, p99_ns in ((1, 20e6), (2, 40e6), (3, 20e6))
    ]
    lines = trend(*runs)
    assert lines[1].endswith("1 cell changed in an earlier run.")
    assert rows_of(lines, "a at 1,000/s")["day-2"] == "slower"


def test_a_change_of_the_median_is_not_hidden_by_p99(tmp_path: Path, trend: Trend) -> None:
    """p99 varies too much for a significant difference; p50 does not."""
    draws = ([10e6, 30e6, 20e6, 40e6], [35e6, 12e6, 22e6, 28e6])
    cells = [
        with_p50(runs_of("a", p99s), {"a": p50})
        for p99s, p50 in zip(draws, (1e6, 2e6), strict=True)
    ]
    runs = [stored(tmp_path / f"day-{day}", one, day) for day, one in enumerate(cells, start=1)]
    lines = trend(*runs)

    assert lines[1].startswith("No significant change in p99 from the first to the last run. ")
    assert "Another figure changed: a at 1,000/s: " in lines[1]

    verdict = rows_of(lines, "a at 1,000/s")["day-2"]
    assert verdict == "no significant difference; p50 slower"


def test_a_lower_goodput_is_slower(tmp_path: Path, trend: Trend) -> None:
    def closed(per_s: float) -> list[CellResult]:
        cells = runs_of("a", [20e6] * 6, rate=None, connections=50)
        return [
            replace(one, rate_result=replace(one.rate_result, goodput_per_s=per_s + one.run))
            for one in cells
            if one.rate_result is not None
        ]

    runs = [
        stored(tmp_path / f"day-{day}", closed(per_s), day, rates=None, connections=(50,))
        for day, per_s in ((1, 2000.0), (2, 1000.0))
    ]
    lines = trend(*runs)
    assert "(1 slower)" in lines[1] and "goodput is 0.50× " in lines[1]
    assert rows_of(lines, "a at 50 connections")["day-2"] == "slower"


def test_differences_between_the_runs_are_reported_with_the_run(
    tmp_path: Path, trend: Trend
) -> None:
    first = stored(tmp_path / "one", measured(1, {"a": 20e6}), 20, cpus=1.0)
    second = stored(tmp_path / "two", measured(2, {"a": 20e6}), 21, cpus=1.0)
    host = replace(HOST, kernel="6.12")
    others = [
        stored(tmp_path / name, measured(3, {"a": 20e6}), day, host=host, cpus=2.0, version="4")
        for name, day in (("three", 22), ("four", 23))
    ]
    last = stored(tmp_path / "five", measured(4, {"a": 20e6}), 24, cpus=1.0, status="interrupted")
    lines = trend(first, second, *others, last)
    warnings = " ".join(lines[2 : lines.index("a at 1,000/s")])

    assert warnings == (
        "• five was interrupted, so it lacks some cells. "
        "• three and four, compared with one: Warning: the hosts differ: kernel changed from 6.1 "
        "to 6.12. The plans differ: cpus changed from 1 to 2. a changed from 3.0.2 on Python "
        "3.11.2 to 4 on Python 3.11.2."
    )


def test_invalid_cells_are_not_compared(tmp_path: Path, trend: Trend) -> None:
    discarded = [invalid(one) for one in measured(1, {"a": 99e6})]
    first = stored(tmp_path / "one", discarded, 20)
    second = stored(tmp_path / "two", measured(2, {"a": 20e6}), 21)
    third = stored(tmp_path / "three", discarded, 22)
    slower = measured(3, {"a": 40e6})
    fourth = stored(tmp_path / "four", [invalid(slower[0]), *slower[1:]], 23)

    lines = trend(first, second, third)
    assert lines[1] == "The first and the last run cannot be compared."
    assert lines[2] == "• a at 1,000/s: invalid in its last run, three"

    lines = trend(first, second, third, fourth)
    assert "(1 slower)" in lines[1]
    assert rows_of(lines, "a at 1,000/s") == {
        "one": "not compared: invalid",
        "two": "first run",
        "three": "not compared: invalid",
        "four": "slower (1 of 6 trials not valid)",
    }
    assert "99.0 ms" not in "".join(lines)


def test_a_server_that_failed_in_the_last_run_is_a_warning(tmp_path: Path, trend: Trend) -> None:
    failure = CellFailure(step="launch", message="it fell over", log_tail=None)
    failed = [
        replace(one, failure=failure, outcomes=None, verdict=verdict("invalid", "server"))
        for one in measured(2, {"a": 20e6})
    ]
    first = stored(tmp_path / "one", measured(1, {"a": 20e6}), 1)
    lines = trend(first, stored(tmp_path / "two", failed, 2))

    assert "• a at 1,000/s: failed in its last run, two" in lines
    assert rows_of(lines, "a at 1,000/s")["two"] == "not compared: failed"


def test_sweeps_with_too_few_rounds_have_a_ratio_and_a_reason(tmp_path: Path, trend: Trend) -> None:
    runs = [
        stored(tmp_path / name, measured(1, {"a": p99_ns}, runs=1), day, runs=1)
        for day, (name, p99_ns) in enumerate((("one", 20e6), ("two", 80e6)), start=1)
    ]
    lines = trend(*runs)
    assert lines[1].startswith("The first and the last run cannot be compared: a at 1,000/s: p99 ")
    assert rows_of(lines, "a at 1,000/s")["two"] == "not compared: only 1 of 4 required runs"
    assert any(line.startswith("two") and "4.00×" in line for line in lines)


def test_only_changed_cells_of_many_are_shown(tmp_path: Path, trend: Trend) -> None:
    before = dict.fromkeys("abcde", 20e6)
    first = stored(tmp_path / "one", measured(1, before), 1)
    second = stored(tmp_path / "two", measured(2, before | {"c": 60e6}), 2)
    lines = trend(first, second)
    assert [line for line in lines if line.endswith(" at 1,000/s")] == ["c at 1,000/s"]
    assert "Not shown: 4 cells without a significant change. See --verbose." in lines
    shown = [line for line in trend("--verbose", first, second) if line.endswith(" at 1,000/s")]
    assert sorted(shown) == [f"{name} at 1,000/s" for name in "abcde"]


def test_cells_with_different_apps_are_not_compared(tmp_path: Path, trend: Trend) -> None:
    def measured_app(seed: int, app: str) -> list[CellResult]:
        return [replace(one, app=app) for one in measured(seed, {"a": 20e6})]

    first = stored(tmp_path / "one", measured_app(1, "shop:app"), 1)
    second = stored(tmp_path / "two", measured_app(2, "shop:app"), 2)
    third = stored(tmp_path / "three", measured_app(3, "blog:app"), 3)
    lines = trend(first, second, third)
    assert list(rows_of(lines, "a at 1,000/s")) == ["one", "two"]
    assert "• three has no server and load level in common with the other runs" in lines


def test_runs_with_a_default_name_are_shown_by_their_start(tmp_path: Path, trend: Trend) -> None:
    names = ("20261120T093000Z-app-1a2b", "20261121T093000Z-app-3c4d")
    runs = [
        stored(tmp_path / name, measured(day, {"a": 20e6}), day)
        for day, name in zip((20, 21), names, strict=True)
    ]
    assert "from 2026-11-20 09:30 to 2026-11-21 09:30?" in trend(*runs)[0]


def test_directories_of_one_name_are_shown_by_their_path(tmp_path: Path, trend: Trend) -> None:
    runs = []
    for day, parent in enumerate(("old", "new"), start=1):
        (tmp_path / parent).mkdir()
        runs.append(stored(tmp_path / parent / "run", measured(day, {"a": 20e6}), day))
    assert f"from {runs[0]} to {runs[1]}?" in " ".join(trend(*runs)[:2])


# --- unusable runs and options


def refusals(
    words: Sequence[Path | str], capsys: pytest.CaptureFixture[str], code: int = 2
) -> list[str]:
    assert run(["report", "--trend", *map(str, words)]) == code
    return capsys.readouterr().err.splitlines()


def test_a_trend_needs_at_least_two_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only = stored(tmp_path / "one", measured(1, {"a": 20e6}), 1)
    for words in ([only], [only, tmp_path / "one" / "."]):
        assert refusals(words, capsys) == [
            "wsgiload: --trend needs at least 2 stored sweeps, not 1; name more run directories, "
            "such as .wsgiload/runs/*"
        ]


def test_runs_without_a_common_cell_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [stored(tmp_path / name, [cell(name)], 1) for name in ("a", "b")]
    assert refusals(runs, capsys) == [
        "wsgiload: these runs have no server and load level in common; `wsgiload report RUN` shows "
        "the servers and load levels of a run"
    ]


def test_unusable_directories_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        stored(tmp_path / name, measured(day, {"a": 20e6}), day)
        for day, name in ((1, "one"), (2, "two"))
    ]
    search = write_search(tmp_path / "search", servers=("waitress",))
    timeless = stored(tmp_path / "timeless", measured(3, {"a": 20e6}), 3)
    info = (timeless / "run.json").read_text()
    (timeless / "run.json").write_text(info.replace("2026-11-03T09:30:00+00:00", "yesterday"))

    assert refusals([*runs, search, timeless, tmp_path / "none"], capsys) == [
        f"wsgiload: {search} is a capacity search, but --trend needs sweeps; "
        f"`{command_line('report', search)}` shows its result",
        f"wsgiload: {timeless / 'run.json'}: 'yesterday' is not a start time; restore it, or omit "
        "this run",
        f"wsgiload: {tmp_path / 'none' / 'summary.json'} cannot be read: No such file or "
        "directory; name a run directory, such as .wsgiload/runs/<run>",
    ]


def test_options_without_effect_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        stored(tmp_path / name, measured(day, {"a": 20e6}), day)
        for day, name in ((1, "one"), (2, "two"))
    ]
    words = [*runs, "--slo", "p99<50ms", "--aggregate", "trim"]

    assert refusals(words, capsys, code=0) == [
        "wsgiload: --aggregate has no effect with --trend",
        "wsgiload: --slo has no effect with --trend",
    ]
    assert not (runs[0] / "report.html").exists()
