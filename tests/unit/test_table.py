"""The terminal output: every cell, and every doubt in words, with no invented values."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from wsgiload.documents.load_plan import ClosedLoop, LoadModel, Ramp
from wsgiload.documents.load_report import (
    GeneratorUsage,
    LoadReport,
    Reason,
    SpinUse,
    Stalls,
    Uncertainty,
    Verdict,
)
from wsgiload.documents.run_info import DoctorFinding
from wsgiload.documents.summary import Summary
from wsgiload.report import print_doctor, print_load, print_servers, print_sweep
from wsgiload.report.cells import read_sweep
from wsgiload.report.table import remarks

from .filled import reason, verdict
from .report_fixture import read_load, read_summary, write_run

replace = msgspec.structs.replace
WAITRESS = "waitress@3000#1"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


def console(width: int = 150, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)


def lines_of(target: Console) -> list[str]:
    assert isinstance(target.file, io.StringIO)
    return [line.strip() for line in target.file.getvalue().splitlines()]


def sweep_lines(summary: Summary, width: int = 150, terminal: bool = False) -> list[str]:
    target = console(width, terminal)
    print_sweep(summary, target)
    assert target.width == width
    return lines_of(target)


def load_lines(report: LoadReport, width: int = 150) -> list[str]:
    target = console(width)
    print_load(report, target)
    return lines_of(target)


def row(lines: list[str], start: str) -> list[str]:
    line = next(line for line in lines if line.startswith(start))
    return [field for field in line.split("  ") if field]


def test_a_sweep_has_one_row_per_cell(run_dir: Path) -> None:
    lines = sweep_lines(read_summary(run_dir))
    assert lines[0] == (
        "Poisson arrivals · a new connection when all connections are busy · 20 s measured after 5 s "
        "warm-up · 1 run"
    )
    assert [field.strip() for field in row(lines, "server")] == [
        "server", "offered/s", "goodput/s", "ok", "p50", "p99", "p99.9", "service " "time " "p50", "CPU " "cores",
        "memory", "throttled", "verdict",
    ]  # fmt: skip
    assert [field.strip() for field in row(lines, "gunicorn-gthread")] == [
        "gunicorn-gthread", "1,000", "1,010", "100 %", "1.11 " "ms", "3.32 " "ms", "4.63 " "ms", "884 " "µs", "0.63",
        "107 MiB", "0 %", "valid",
    ]  # fmt: skip

    cells = [
        line
        for line in lines
        if line.endswith(("valid", "(backlog-growth)", "(send-lag)", "failed: readiness:"))
    ]
    assert len(cells) == 24


def test_a_failed_cell_has_a_step_and_a_reason_but_no_numbers(run_dir: Path) -> None:
    lines = sweep_lines(read_summary(run_dir), width=240)
    failed = next(line for line in lines if "failed:" in line)
    fields = failed.split()
    assert fields[:12] == ["3,000", *["–"] * 10, "failed:"]
    assert failed.endswith(
        "failed: readiness: no correct response within 30 s; the process ended with code 1"
    )


def test_overload_is_shown_as_a_bound_or_as_infinite(run_dir: Path) -> None:
    lines = sweep_lines(read_summary(run_dir))
    overloaded = [line for line in lines if "48.0 %" in line]
    assert overloaded[0].split()[3:11] == ["%", ">=", "1.00", "s", ">=", "1.00", "s", "infinite"]


def test_every_reason_and_note_is_shown_once(run_dir: Path) -> None:
    result = remarks(read_sweep(read_summary(run_dir)))
    assert [(style, cells) for _, style, cells in result] == [
        ("red", "uwsgi at 3,000/s"),
        ("yellow", "gunicorn-sync at 3,000/s; wsgiref at 2,000/s and 3,000/s"),
        ("", "gunicorn-sync at 1,000/s, 2,000/s and 3,000/s"),
    ]
    assert result[2][0] == "keep-alive not honoured: measured with a new connection per request"


@pytest.mark.parametrize(
    ("check", "figures", "expected"),
    [
        ("send-lag-absolute", [(586_000, 200_000), (300_000, 200_000)], ["586000"]),
        ("send-lag-absolute", [(586_000, 200_000), (1_200_000, 1_000_000)], ["586000", "1200000"]),
        ("stationarity", [(-0.3, 0.05), (0.2, 0.05)], ["-0.3"]),
        ("backlog-growth", [(0.9, 0.5), (1.4, 1.0)], ["0.9", "1.4"]),
        ("rate-not-reached", [(0.4, 0.95), (0.8, 0.95)], ["0.4"]),
        ("app-calls", [(7, 0), (9, 0)], ["9"]),
        ("host-not-idle", [(None, None), (None, None)], ["None"]),
    ],
    ids=[
        "too large",
        "two limits",
        "to either side",
        "graver limit",
        "too small",
        "none allowed",
        "no figure",
    ],
)
def test_the_cell_farthest_beyond_a_limit_is_shown(
    run_dir: Path, check: str, figures: list[tuple[float | None, float | None]], expected: list[str]
) -> None:
    summary = read_summary(run_dir)
    for ordered in (figures, figures[::-1]):
        cells = []
        for cell, (value, limit) in zip(summary.cells, ordered, strict=False):
            reason = Reason(
                check=check, level="warn", message=f"found {value}", value=value, limit=limit
            )
            verdict = Verdict(status="warn", blame="client", reasons=(reason,))
            cells.append(replace(cell, verdict=verdict, notes=()))
        assert len(cells) == len(ordered)
        sweep = read_sweep(replace(summary, cells=tuple(cells)))
        sentences = [sentence for sentence, _, _ in remarks(sweep) if "found" in sentence]
        assert len(sentences) == len(expected)
        assert all(
            any(f"found {figure}" in sentence for sentence in sentences) for figure in expected
        )


def test_one_run_allows_no_inference_and_six_do(run_dir: Path, tmp_path: Path) -> None:
    assert sweep_lines(read_summary(run_dir))[-1] == ("One run cannot rank servers. Use --compare.")
    lines = sweep_lines(read_summary(write_run(tmp_path / "six", runs=6)))
    assert not any("cannot rank" in line for line in lines)
    assert "waitress at 3,000/s (runs 2, 3 and 6)" in " ".join(lines)


def test_the_runs_of_a_finding_are_named_at_each_load_level(tmp_path: Path) -> None:
    summary = read_summary(write_run(tmp_path / "two", runs=2))
    warned = verdict("warn", "server", reason("nagle-delay"))

    def names(trials: set[tuple[float | None, int]]) -> str:
        cells = tuple(
            replace(one, verdict=warned)
            if one.server == "waitress" and (one.rate, one.run) in trials
            else one
            for one in summary.cells
        )
        sentences = remarks(read_sweep(replace(summary, cells=cells)))
        (place,) = [where for *text, where in sentences if "nagle-delay" in " ".join(text)]
        return place

    both = {(1000.0, 1), (1000.0, 2)}
    assert names(both | {(3000.0, 1)}) == "waitress at 1,000/s (runs 1 and 2) and 3,000/s (run 1)"
    assert names(both) == "waitress at 1,000/s"


def test_an_incomplete_run_says_so_above_its_figures(run_dir: Path) -> None:
    summary = read_summary(run_dir)
    notice = "interrupted: some cells were not measured"
    assert notice not in sweep_lines(summary)
    assert sweep_lines(replace(summary, status="interrupted"))[1] == notice

    planned = replace(summary.experiment, servers=(*summary.experiment.servers, "bjoern", "gevent"))
    unfinished = replace(summary, status="interrupted", experiment=planned)
    assert sweep_lines(unfinished)[1] == f"{notice}, including all cells of bjoern and gevent"


def test_a_narrow_terminal_names_the_hidden_columns(run_dir: Path) -> None:
    lines = sweep_lines(read_summary(run_dir), width=100, terminal=True)
    assert (
        "Columns hidden (terminal too narrow): p50, service time p50, memory, page cache and "
        "throttled." in lines
    )
    assert all(len(line) <= 100 and "…" not in line for line in lines)
    piped = sweep_lines(read_summary(run_dir), width=80)
    assert not any(line.startswith("Not shown") for line in piped)


def test_a_closed_loop_counts_connections(tmp_path: Path) -> None:
    lines = sweep_lines(read_summary(write_run(tmp_path / "run", closed_loop=True)))
    assert lines[0].startswith("closed loop · one request at a time per connection · ")
    assert [field.strip() for field in row(lines, "server")][1] == "connections"
    assert [field.strip() for field in row(lines, "waitress")][1] == "100"


def test_with_few_requests_p99_is_marked_and_p99_9_is_omitted(
    run_dir: Path,
) -> None:
    summary = read_summary(run_dir)
    cell = summary.cells[3]
    assert cell.outcomes is not None
    few = replace(cell, outcomes=replace(cell.outcomes, scheduled=500, ok=500))
    lines = sweep_lines(replace(summary, cells=(few,)))
    times = [field.strip() for field in row(lines, "gunicorn-gthread")][4:7]

    assert times == ["1.11 ms", "≈ 3.32 ms", "–"]
    assert (
        "p99 is imprecise (≈): it needs at least 1,000 requests [gunicorn-gthread at 1,000/s]"
        in lines
    )
    assert any(
        line.startswith("p99.9 is not shown: it needs at least 10,000 requests") for line in lines
    )


def test_a_load_puts_the_verdict_first(run_dir: Path) -> None:
    lines = load_lines(read_load(run_dir, WAITRESS), width=100)
    assert lines[0] == "verdict: valid"
    assert lines[1] == (
        "offered 3,010/s, sent 3,010/s, goodput 2,990/s (99.3 % of scheduled requests), "
        "p99 over all scheduled requests 83.9 ms (95 % CI 81.4 ms to 87.2 ms)"
    )

    assert lines[2] == "Times of the correct responses (99.3 %):"
    assert [field.strip() for field in row(lines, "connect")] == [
        "connect",
        "not measured",
        *["–"] * 5,
    ]
    assert [field.strip() for field in row(lines, "response time")] == [
        "response time", "59,859", "13.2 ms", "42.3 ms", "83.9 ms", "–", "234 ms",
    ]  # fmt: skip
    assert lines[-4:-2] == [
        "requests: scheduled 60,280, ok 59,859, http_status 421",
        "connections opened: 64",
    ]


def test_quantiles_of_an_unstable_load_are_not_shown_as_numbers(run_dir: Path) -> None:
    report = read_load(run_dir, WAITRESS)
    unstable = replace(report, stationarity=replace(report.stationarity, state="unstable"))
    assert "p99 over all scheduled requests grows with the duration" in " ".join(
        load_lines(unstable)
    )


def test_a_quantile_of_unknown_uncertainty_is_shown_as_a_number(run_dir: Path) -> None:
    report = replace(
        read_load(run_dir, WAITRESS),
        uncertainty=Uncertainty(offered_quantiles_ns={}, response_time_ns={}),
    )
    assert load_lines(report, width=100)[1].endswith("p99 over all scheduled requests 83.9 ms")


def test_a_rate_that_varied_is_shown_as_a_mean(run_dir: Path) -> None:
    report = read_load(run_dir, WAITRESS)
    open_loop = report.plan.load.open
    assert open_loop is not None
    varying = replace(open_loop, rate_per_s=None, ramp=Ramp(from_per_s=1000, to_per_s=5000))
    ramp = LoadModel(open=varying)
    varied = replace(report, plan=replace(report.plan, load=ramp))
    assert "offered 3,010/s on average, sent" in load_lines(varied)[1]


def with_client(report: LoadReport, **changes: object) -> LoadReport:
    """A copy of the report in which these fields of the generator's usage are replaced."""
    assert report.client is not None
    client: GeneratorUsage = replace(report.client, **changes)
    return replace(report, client=client)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ({}, None),
        (
            {"spin": SpinUse(window_ns=0, reason="off_at_this_rate")},
            "it would use more than 20 % of a core",
        ),
        (
            {"spin": SpinUse(window_ns=0, reason="off_on_shared_cores")},
            "because the generator shares its cores",
        ),
        (
            {"spin_off_share": 0.25},
            "was off for 25.0 % of the load because the cores had no idle time",
        ),
        (
            {"spin_off_share": 0.25, "curtailed_spins": 1},
            "idle time; busy-waiting before sends was cut short once",
        ),
        ({"curtailed_spins": 1}, "was cut short once"),
        ({"curtailed_spins": 1_200}, "was cut short 1,200 times"),
        ({"real_time_off_share": None}, None),
        ({"real_time_off_share": 0.0004}, None),
        ({"real_time_off_share": 0.07}, "real-time priority was off for 7.0 % of the load"),
        (
            {"real_time_off_share": 0.01, "spin": SpinUse(window_ns=0, reason="off_at_this_rate")},
            "would use more than 20 % of a core; real-time priority was off",
        ),
    ],
)
def test_restricted_busy_waiting_is_reported_for_an_open_loop(
    run_dir: Path, client: dict[str, object], text: str | None
) -> None:
    report = with_client(read_load(run_dir, WAITRESS), **client)
    last = load_lines(report, width=300)[-1]
    assert (
        (text in last and last.startswith("generator: "))
        if text
        else not last.startswith("generator: ")
    )

    closed = LoadModel(closed=ClosedLoop(connections=8))
    report = replace(report, plan=replace(report.plan, load=closed))
    assert not load_lines(report)[-1].startswith("generator: ")


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ({}, "responses timestamped by the kernel (3 by the generator)"),
        ({"user_timestamps": 0}, "no event-loop stalls, responses timestamped by the kernel"),
        ({"receive_stamps": "user"}, "responses timestamped by the generator"),
        ({"run_queue_wait_ns": None}, "run-queue wait not measured"),
        (
            {"cpu_per_request_ns": None},
            "generator used: – CPU time per response, 11.0 % busy (busiest thread)",
        ),
        (
            {
                "stalls": Stalls(
                    count=2, total_ns=18_000_000, longest_ns=12_000_000, arrivals=0, responses=0
                )
            },
            "2 event-loop stalls (longest 12.0 ms)",
        ),
    ],
)
def test_a_load_shows_the_cost_of_the_generator_and_its_timestamps(
    run_dir: Path, client: dict[str, object], text: str
) -> None:
    report = with_client(read_load(run_dir, WAITRESS), **client)
    lines = load_lines(report, width=300)
    (line,) = [line for line in lines if line.startswith("generator used: ")]
    assert text in line


def test_the_server_list_has_statuses_and_reasons() -> None:
    target = console()
    fine = {"id": "gunicorn-gthread", "python": ">=3.9", "status": "ready", "legacy": False}
    old = {"id": "uwsgi", "python": ">=3.9", "status": "unavailable", "legacy": True}
    print_servers([{**fine, "reason": None}, {**old, "reason": "no C compiler"}], target)
    lines = lines_of(target)

    assert lines[3].split() == ["gunicorn-gthread", ">=3.9", "ready"]
    assert lines[4].endswith("unavailable (legacy): no C compiler")


def test_doctor_shows_the_worst_finding_first_and_its_fix() -> None:
    target = console()
    fine = DoctorFinding(check="cores", level="green", value=4, message="enough CPUs", fix=None)
    slow = DoctorFinding(
        check="governor", level="red", value=None, message="the CPU slows down", fix="fix it"
    )
    print_doctor([fine, slow], target)
    lines = lines_of(target)

    assert lines[3].split() == ["red", "governor", "the", "CPU", "slows", "down"]
    assert lines[4] == "→ fix it"
    assert lines[5].split() == ["green", "cores", "enough", "CPUs"]
