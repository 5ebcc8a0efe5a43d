"""Sweeps: their measurements, their files and their limits."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

import wsgiload
from wsgiload import LoadOptions, ResourceLimits, SweepOptions
from wsgiload.documents.codec import to_plain

from .command import Command, CommandResult, read_json
from .stored import expected_code, rows, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

SERVERS = ("waitress", "gunicorn-gthread", "wsgiref")
RATES = (100, 200)
CELLS = [f"{server}@{rate}#1" for server in SERVERS for rate in RATES]
BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--quiet")
MIB = 1024**2

RESOURCE_COLUMNS = (
    "cell,t_ns,cpu_usage_ns,cpu_user_ns,cpu_system_ns,nr_periods,nr_throttled,throttled_ns,memory_bytes,"
    "memory_anon_bytes,memory_file_bytes,oom_kill,pids,psi_cpu_some_ns,psi_cpu_full_ns,psi_memory_some_ns,"
    "listen_queue,listen_drops,steal_ns,psi_memory_full_ns,psi_io_some_ns,psi_io_full_ns,memory_high,run_queue_wait_ns,"
    "host_busy_ns,memory_shared_bytes,memory_kernel_bytes,late_ns,width_ns"
)
INTERVAL_COLUMNS = "cell,start_ns,length_ns,scheduled,sent,ok,failed,p50_ns,p99_ns,max_ns"

ALLOCATE = """
    def allocate():
        return b"x" * (200 * 1024 * 1024)
"""
ALLOCATES_AT_IMPORT = """
    data = allocate()

    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
ALLOCATES_AT_REQUEST = """
    def app(environ, start_response):
        data = allocate()
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""


# --- a sweep over three servers


@pytest.fixture(scope="module")
def hello(
    tmp_path_factory: pytest.TempPathFactory, limits_error: str | None
) -> Iterator[tuple[Command, CommandResult]]:
    """A sweep of the bundled app hello on three servers at two rates."""
    if limits_error is not None:
        pytest.skip(limits_error)

    command = Command(tmp_path_factory.mktemp("hello") / "command")
    try:
        words = ("--servers", ",".join(SERVERS), "--rates", "100,200")
        times = ("--duration", "1s", "--warmup", "200ms", "--cooldown", "0s")
        copies = ("--html", "copy.html", "--json", "copy.json")
        yield command, command.run("sweep", *words, *times, *copies)
    finally:
        command.clean_up()


def cell_of(hello: tuple[Command, CommandResult], name: str) -> dict[str, Any]:
    """One cell of the sweep."""
    return hello[1].cells[name]


each_cell = pytest.mark.parametrize("name", CELLS)


def test_the_exit_code_follows_the_verdicts_and_the_output_names_the_files(
    hello: tuple[Command, CommandResult],
) -> None:
    command, result = hello
    assert result.code == expected_code(result.summary)
    assert result.run_dir.parent == command.folder / ".wsgiload" / "runs"
    assert f"report: {result.run_dir}/report.html" in result.out

    for word in (
        *SERVERS,
        "p99",
        "Poisson arrivals",
        "One run cannot rank servers. Use --compare.",
    ):
        assert word in result.out


def test_progress_has_one_line_per_cell_on_stderr(hello: tuple[Command, CommandResult]) -> None:
    lines = [line for line in hello[1].err.splitlines() if line.startswith("[")]
    assert [line.partition("]")[0] for line in lines] == [f"[{number}/6" for number in range(1, 7)]
    cells = {re.sub(r"^\[\S+ (\S+) at (\d+)/s, run (\d+) .*", r"\1@\2#\3", line) for line in lines}
    assert cells == set(CELLS)


def test_a_sweep_leaves_nothing_behind(hello: tuple[Command, CommandResult]) -> None:
    hello[0].require_no_leftovers()


def test_the_run_directory_contains_all_documented_files(
    hello: tuple[Command, CommandResult],
) -> None:
    run_dir = hello[1].run_dir
    assert re.fullmatch(r"[0-9]{8}T[0-9]{6}Z-[A-Za-z0-9_.-]+-[0-9a-f]{4}", run_dir.name)

    files = {str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file()}
    texts = [
        "intervals.csv",
        "resources.csv",
        "processes.csv",
        "client.csv",
        "latency.hlog",
        "latency.hgrm",
        "report.html",
    ]
    common = ["run.json", "summary.json", "manifest.json", *texts]

    assert files == {
        *common,
        *(f"server/{name}.log" for name in CELLS),
        *(f"load/{name}.json" for name in CELLS),
    }


def test_the_summary_matches_its_schema_and_contains_every_cell(
    hello: tuple[Command, CommandResult],
) -> None:
    summary = hello[1].summary
    assert schema_errors("summary-1", summary) == []
    assert summary["status"] == "complete"
    assert sorted(summary["order"]) == sorted(CELLS)
    assert [cell["id"] for cell in summary["cells"]] == summary["order"]
    assert summary["experiment"]["rates"] == [100, 200]


def test_the_run_file_contains_plan_and_host(hello: tuple[Command, CommandResult]) -> None:
    run = read_json(hello[1].run_dir / "run.json")
    assert (run["schema_version"], run["status"]) == (1, "complete")
    assert run["plan"]["cpu_plan"]["server_cpus"] == hello[1].summary["experiment"]["server_cpus"]
    assert {processor["cpu"] for processor in run["host"]["topology"]} == os.sched_getaffinity(0)
    assert run["plan"]["order"] == hello[1].summary["order"]
    assert run["host"]["kernel"] == os.uname().release
    assert run["host"]["wsgiload"]


def test_copies_of_report_and_summary_are_identical(hello: tuple[Command, CommandResult]) -> None:
    command, result = hello
    assert (command.folder / "copy.html").read_bytes() == (
        result.run_dir / "report.html"
    ).read_bytes()
    assert read_json(command.folder / "copy.json") == result.summary


@each_cell
def test_every_request_of_a_cell_got_a_correct_response(
    hello: tuple[Command, CommandResult], name: str
) -> None:
    cell = cell_of(hello, name)
    outcomes = cell["outcomes"]
    assert outcomes["ok"] == outcomes["scheduled"] > 0
    assert sum(outcomes.values()) == 2 * outcomes["scheduled"]
    assert cell["response_time_ns"]["count"] == outcomes["ok"]

    load = read_json(hello[1].run_dir / "load" / f"{name}.json")
    assert schema_errors("load-1", load) == []
    assert load["outcomes"] == outcomes
    assert load["response_time_ns"] == cell["response_time_ns"]


def test_all_servers_have_the_same_arrivals_at_a_rate(hello: tuple[Command, CommandResult]) -> None:
    for rate in RATES:
        cells = [cell_of(hello, f"{server}@{rate}#1") for server in SERVERS]
        assert len({cell["outcomes"]["scheduled"] for cell in cells}) == 1
        plans = [
            read_json(hello[1].run_dir / "load" / f"{cell['id']}.json")["plan"] for cell in cells
        ]
        assert len({plan["seed"] for plan in plans}) == 1


@each_cell
def test_a_cell_states_its_server_and_keep_alive(
    hello: tuple[Command, CommandResult], name: str
) -> None:
    cell = cell_of(hello, name)
    server = name.partition("@")[0]

    assert cell["server"] == server.partition("-")[0]
    assert cell["variant"] == (server.partition("-")[2] or "default")
    assert cell["version"] and cell["python"]
    assert cell["keepalive_honoured"] is (server != "wsgiref")
    if server == "wsgiref":
        assert cell["connect_time_ns"]["count"] == cell["outcomes"]["scheduled"], (
            "one connection per request"
        )

    assert any("no keep-alive" in note for note in cell["notes"]) == (server == "wsgiref")


@each_cell
def test_the_limits_of_a_cell_are_enforced(hello: tuple[Command, CommandResult], name: str) -> None:
    limits = cell_of(hello, name)["limits"]
    assert limits["backend"] in ("cgroup-v1", "cgroup-v2")
    assert (limits["cpus"], limits["memory_bytes"], limits["pids"]) == (1, 512 * MIB, 512)
    assert limits["not_enforced"] == []
    assert limits["read_back"]["effective_cpus"] == pytest.approx(1)
    assert limits["read_back"]["effective_memory_bytes"] == 512 * MIB
    assert limits["read_back"]["pids"] == 512


@each_cell
def test_a_cell_contains_the_resource_use_of_its_server(
    hello: tuple[Command, CommandResult], name: str
) -> None:
    resources = cell_of(hello, name)["resources"]
    assert 0 < resources["cpu_cores_mean"] <= 1.1
    assert resources["cpu_cores_peak"] >= resources["cpu_cores_mean"]
    assert 0 < resources["memory_mean_bytes"] <= resources["memory_peak_bytes"] <= 512 * MIB
    assert resources["oom_kills"] == 0
    assert resources["listen_drops"] in (0, None)
    assert resources["processes_peak"] >= 1
    assert resources["cpu_ns_per_request"] > 0


@each_cell
def test_a_server_stops_cleanly(hello: tuple[Command, CommandResult], name: str) -> None:
    server_exit = cell_of(hello, name)["server_exit"]
    assert server_exit["clean"] is True
    assert (server_exit["code"] is None) != (server_exit["signal"] is None)


@each_cell
def test_the_csv_files_have_rows_of_each_cell(
    hello: tuple[Command, CommandResult], name: str
) -> None:
    run_dir, cell = hello[1].run_dir, cell_of(hello, name)
    intervals = [row for row in rows(run_dir / "intervals.csv") if row["cell"] == name]
    assert ",".join(intervals[0]) == INTERVAL_COLUMNS
    assert sum(int(row["scheduled"]) for row in intervals) == cell["outcomes"]["scheduled"]
    assert sum(int(row["ok"]) for row in intervals) == cell["outcomes"]["ok"]

    samples = [row for row in rows(run_dir / "resources.csv") if row["cell"] == name]
    assert ",".join(samples[0]) == RESOURCE_COLUMNS

    times = [int(row["t_ns"]) for row in samples]
    assert times == sorted(set(times))
    assert len(times) >= 5

    usage = [int(row["cpu_usage_ns"]) for row in samples]
    assert usage == sorted(usage)
    assert all(int(row["memory_bytes"]) > 0 for row in samples)


def test_hdrhistogram_reads_the_counts_of_each_cell_from_the_interval_log(
    hello: tuple[Command, CommandResult],
) -> None:
    reader = HistogramLogReader(
        str(hello[1].run_dir / "latency.hlog"), HdrHistogram(1, 3_600_000_000_000, 3)
    )
    counts: dict[str, int] = {}
    while (interval := reader.get_next_interval_histogram()) is not None:
        counts[interval.get_tag()] = counts.get(interval.get_tag(), 0) + interval.get_total_count()
    reader.input_file.close()

    assert counts == {name: cell_of(hello, name)["outcomes"]["ok"] for name in CELLS}


def test_the_percentile_file_contains_each_cell(hello: tuple[Command, CommandResult]) -> None:
    text = (hello[1].run_dir / "latency.hgrm").read_text()
    assert [line for line in text.splitlines() if "@" in line] == [
        f"#[{name}]" for name in hello[1].summary["order"]
    ]


def test_the_report_is_self_contained_and_names_each_server(
    hello: tuple[Command, CommandResult],
) -> None:
    text = (hello[1].run_dir / "report.html").read_text()
    assert all(server in text for server in SERVERS)
    assert not re.findall(r'(?:src|href)="https?://[^"]+\.(?:js|css|png|svg)"', text)


def test_a_deleted_report_is_rebuilt_from_the_run_directory(
    hello: tuple[Command, CommandResult],
) -> None:
    command, first = hello
    (first.run_dir / "report.html").unlink()

    report = command.run("report", first.run_dir)
    assert report.code == 0
    assert report.out.endswith(f"report: {first.run_dir / 'report.html'}\n")
    assert (first.run_dir / "report.html").stat().st_size > 10_000


def test_without_verbose_the_report_begins_with_the_answer(
    hello: tuple[Command, CommandResult],
) -> None:
    command, first = hello
    answer = first.summary["answer"]
    output = command.run("report", first.run_dir, "--no-verbose").out
    lines = output.splitlines()

    assert lines[0] == answer["question"]
    assert " ".join(output.split()).startswith(f"{answer['question']} {answer['sentence']}")
    assert len(lines) <= 30
    assert all(any(server in line for line in lines) for server in SERVERS)


def test_each_cell_contains_its_settings(hello: tuple[Command, CommandResult]) -> None:
    for cell in hello[1].cells.values():
        settings = cell["settings"]
        assert any("127.0.0.1" in word or word.isdigit() for word in settings["command"])
        assert settings["versions"]["server"] == cell["version"]
        assert settings["keepalive"] == ("on" if cell["keepalive_honoured"] else "off")
        budget = cell["error_budget_ns"]["0.5"]
        assert budget["generator"][0] <= budget["generator"][1] == budget["value"]


# --- other loads, and sweeps from Python


def test_a_closed_loop_of_a_bundled_app_fails_its_threshold(command: Command) -> None:
    words = ("--app-name", "json1k", "--servers", "waitress", "--out", "elsewhere")
    load = ("--connections", 4, "--duration", "500ms", "--threshold", "goodput>=1000000")
    result = command.run("sweep", *words, *load, *BRIEFLY)

    assert result.code == (expected_code(result.summary) or 99)
    assert (
        result.err
        == "wsgiload: threshold goodput>=1000000 failed for waitress at 4 connections, run 1\n"
    )
    assert result.run_dir.parent == command.folder / "elsewhere"
    assert schema_errors("summary-1", result.summary) == []

    cell = result.cells["waitress@c4#1"]
    assert (cell["rate"], cell["connections"]) == (None, 4)
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert result.summary["experiment"]["connections"] == [4]


def test_a_sweep_from_python_returns_the_stored_summary(tmp_path: Path) -> None:
    """This sweep has no limits, and its summary states that."""
    affinity = os.sched_getaffinity(0)
    result = wsgiload.sweep(
        rates=[100],
        servers=["wsgiref"],
        duration=0.3,
        load=LoadOptions(warmup=0, cooldown=0),
        limits=ResourceLimits(policy="none"),
        options=SweepOptions(runs=2, settle=0, reruns=0),
        out=tmp_path,
    )

    stored = read_json(result.run_dir / "summary.json")
    assert result.to_dict() == to_plain(result.summary) == stored
    assert result.exit_code == expected_code(stored)
    assert sorted(cell.id for cell in result.summary.cells) == [
        "wsgiref@100#1",
        "wsgiref@100#2",
    ]
    assert result.report == result.run_dir / "report.html"
    assert os.sched_getaffinity(0) == affinity, "the sweep restores the CPU affinity of its caller"
    for cell in result.summary.cells:
        assert cell.limits is not None
        assert cell.limits.backend == "none"
        assert (cell.limits.cpus, cell.limits.memory_bytes, cell.limits.pids) == (None,) * 3


def test_a_sweep_sends_the_targets_of_a_file_to_every_server(command: Command) -> None:
    (command.folder / "targets").write_text("GET /a\n--weight 2\nPOST /b\n--body x\n")
    words = ("--rates", 100, "--servers", "waitress", "--duration", "500ms", "--targets", "targets")
    result = command.run("sweep", *words, *BRIEFLY)

    assert result.code == expected_code(result.summary)
    assert result.summary["experiment"]["targets"] == 2
    load = read_json(result.run_dir / "load" / "waitress@100#1.json")
    assert schema_errors("load-1", load) == []
    assert [row["name"] for row in load["targets"]] == ["GET /a", "POST /b"]
    assert (
        sum(row["ok"] for row in load["targets"])
        == load["outcomes"]["ok"]
        == load["outcomes"]["scheduled"]
    )

    refused = command.run("sweep", "--targets", "targets", "--path", "/")
    assert (refused.code, refused.err) == (
        2,
        "wsgiload: --targets and --path are mutually exclusive\n",
    )


def test_a_dry_run_starts_nothing_and_prints_the_order(command: Command) -> None:
    result = command.run(
        "sweep",
        "--servers",
        "waitress,wsgiref",
        "--rates",
        "100,200",
        "--runs",
        "1",
        "--dry-run",
        "--json",
        "-",
    )

    plan = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    assert sorted(plan["order"]) == [
        "waitress@100#1",
        "waitress@200#1",
        "wsgiref@100#1",
        "wsgiref@200#1",
    ]
    assert plan["load_seconds"] == 4 * (10 + 2 + 1)
    cpu_sets = [
        set(plan["cpu_plan"][name]) for name in ("server_cpus", "client_cpus", "orchestrator_cpus")
    ]
    assert all(cpus and cpus <= os.sched_getaffinity(0) for cpus in cpu_sets)
    assert not (command.folder / ".wsgiload").exists()


# --- limits


def test_half_a_cpu_is_enforced_and_throttling_is_recorded(command: Command) -> None:
    load = ("--rates", 2000, "--timeout", "1s", "--max-connections", 50, "--duration", "1500ms")
    result = command.run(
        "sweep", "--app-name", "cpu", "--servers", "waitress", "--cpus", 0.5, *load, *BRIEFLY
    )

    assert result.code == expected_code(result.summary)
    cell = result.cells["waitress@2000#1"]
    assert 0.3 < cell["resources"]["cpu_cores_mean"] <= 0.55
    assert cell["resources"]["throttled_period_ratio"] > 0
    assert cell["limits"]["cpus"] == 0.5
    assert cell["limits"]["read_back"]["effective_cpus"] == pytest.approx(0.5)
    assert cell["outcomes"]["ok"] < cell["outcomes"]["scheduled"], "the load exceeds the CPU limit"


@pytest.mark.parametrize(
    ("app", "server", "phase"),
    [
        (ALLOCATES_AT_IMPORT, "waitress", "while it started"),
        (ALLOCATES_AT_REQUEST, "gunicorn-gthread", ""),
    ],
    ids=["at import", "at the first request"],
)
def test_a_server_that_exceeds_its_memory_limit_fails_with_an_oom_kill(
    command: Command, app: str, server: str, phase: str
) -> None:
    (command.folder / "hungry.py").write_text(textwrap.dedent(ALLOCATE) + textwrap.dedent(app))
    limit = ("--memory", "64MiB", "--rates", 50, "--duration", "1s")
    result = command.run(
        "sweep", "hungry:app", "--servers", server, *limit, "--warmup", "0s", "--cooldown", "0s"
    )

    assert result.code == 97
    cell = result.cells[f"{server}@50#1"]
    assert cell["resources"]["oom_kills"] >= 1
    assert cell["failure"]["message"].startswith(
        f"{server} needs more memory than its limit: the kernel OOM-killed "
    )
    assert phase in cell["failure"]["message"]
    assert cell["failure"]["message"].endswith("raise --memory, or lower the number of workers")
    assert cell["verdict"]["blame"] == "server"
    assert cell["limits"]["memory_bytes"] == 64 * MIB
    assert schema_errors("summary-1", result.summary) == []


ALLOCATES_ONCE = """
    from pathlib import Path

    MARKER = Path(__file__).with_name("allocated")
    count = 0

    def app(environ, start_response):
        global count
        count += 1
        if count > 20 and not MARKER.exists():
            MARKER.touch()
            allocate()
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""


def test_an_oom_kill_of_a_worker_is_reported_although_its_master_survived(
    command: Command,
) -> None:
    (command.folder / "hungry.py").write_text(
        textwrap.dedent(ALLOCATE) + textwrap.dedent(ALLOCATES_ONCE)
    )
    words = ("--servers", "gunicorn-sync", "--memory", "96MiB", "--rates", 50, "--duration", "3s")
    result = command.run("sweep", "hungry:app", *words, "--warmup", "0s", "--cooldown", "0s")

    cell = result.cells["gunicorn-sync@50#1"]
    assert result.code == 97
    assert cell["resources"]["oom_kills"] == 1
    assert (
        "under load; its main process survived, but no request got a correct response for "
        in cell["failure"]["message"]
    )
    assert cell["unhealthy_s"] is not None
    assert cell["outcomes"]["ok"] > 20, "the replacement worker served requests"
    assert cell["server_exit"]["clean"]
    assert schema_errors("summary-1", result.summary) == []


# --- profiles and sizes


def test_the_stock_profile_reports_the_measured_defaults_of_each_server(
    command: Command,
) -> None:
    words = ("--profile", "stock", "--servers", "cheroot,waitress,gunicorn-sync")
    load = ("--rates", 50, "--duration", "1s", "--warmup", "0s", "--cooldown", "0s")
    result = command.run("sweep", *words, *load)

    assert schema_errors("summary-1", result.summary) == []
    assert result.summary["experiment"]["profile"] == "stock"

    cells = {cell["server"]: cell for cell in result.cells.values()}
    assert {cell["profile"] for cell in cells.values()} == {"stock"}
    assert cells["cheroot"]["backlog"] == 5
    assert cells["cheroot"]["concurrency"]["requests_at_once"] == 10
    assert cells["cheroot"]["concurrency"]["connections_kept"] == 10
    # waitress's limit of 100 includes two of its own sockets.
    assert cells["waitress"]["concurrency"]["connections_served"] == 98
    assert not cells["gunicorn"]["keepalive_honoured"]

    output = " ".join(result.out.split())
    for sentence in (
        "stock profile",
        "cheroot: its listen backlog is 5 connections",
        "cheroot: handled 10 requests at a time",
        "waitress: served 98 open connections",
        "the server closes the connection after each response although keep-alive was requested",
    ):
        assert sentence in output


def test_sizes_of_the_grid_are_measured_and_named(command: Command) -> None:
    words = ("--servers", "gunicorn-sync,wsgiref", "--grid", "workers=1,2")
    load = ("--rates", 50, "--duration", "1s", "--warmup", "0s", "--cooldown", "0s")
    result = command.run("sweep", *words, *load)

    assert sorted(result.cells) == [
        "gunicorn-sync-w1@50#1",
        "gunicorn-sync-w2@50#1",
        "wsgiref@50#1",
    ]
    # The master and its workers.
    peaks = {name: cell["resources"]["processes_peak"] for name, cell in result.cells.items()}
    assert (peaks["gunicorn-sync-w1@50#1"], peaks["gunicorn-sync-w2@50#1"]) == (2, 3)
