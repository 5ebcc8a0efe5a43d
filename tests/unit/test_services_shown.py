"""The resource use of supporting services in the answer, on the page and in the stored files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.cell_result import CellResult, ServiceUse
from wsgiload.documents.summary import Summary
from wsgiload.limits.model import Counters
from wsgiload.report import panels, timelines
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import Cell, read_sweep
from wsgiload.report.first_screen import markdown, print_first_screen
from wsgiload.report.grids import of_strip
from wsgiload.report.run_files import IntervalRow, SampleRow, read_run
from wsgiload.report.strip import make_strip
from wsgiload.results.integrity import damages
from wsgiload.results.store import RunDirectory
from wsgiload.sampling.sampler import Sample

from .filled import filled_summary, reason, resources, verdict
from .invented_cells import cell
from .test_store import measured_load, run_info

S = 1_000_000_000


def service_use(cores: float | None, name: str = "db") -> ServiceUse:
    used = resources(cpu_cores_mean=cores, memory_peak_bytes=1 << 20)
    return ServiceUse(name=name, cpus=1.0, shares_server_cores=False, resources=used)


def server_cell(name: str, *services: ServiceUse, **changes: Any) -> CellResult:
    """The cell of a server that used a third of a core, next to these services."""
    return cell(name, resources=resources(cpu_cores_mean=0.33), services=services, **changes)


def summary_of(*cells: CellResult) -> Summary:
    return analyse(filled_summary({"servers": ("a", "b"), "rates": (1000.0,)}, cells))


def printed(summary: Summary, width: int = 200) -> str:
    stream = io.StringIO()
    print_first_screen(summary, Console(file=stream, width=width))
    return stream.getvalue()


def test_the_answer_shows_the_cpu_use_of_services_next_to_the_server() -> None:
    summary = summary_of(
        server_cell("a", service_use(0.91), service_use(0.02, "redis")),
        server_cell("b", service_use(0.5)),
    )
    (level,) = answer_of(summary).ranking

    assert [one.name for one in level.entries[0].services] == ["db", "redis"]

    heading, _, *rows = [line for line in markdown(summary).splitlines() if line.startswith("|")]
    assert "| CPU cores | db CPU cores | redis CPU cores | memory |" in heading
    assert any("| 0.33 | 0.91 | 0.02 |" in row for row in rows)
    assert any("| 0.33 | 0.50 | – |" in row for row in rows)
    assert "db CPU cores" in printed(summary)
    assert "db CPU cores" not in printed(summary, width=40), (
        "names and the main figure have precedence"
    )
    assert " CPU |" not in markdown(summary_of(server_cell("a")))


def test_the_cpu_use_of_a_service_is_the_median_of_the_runs() -> None:
    runs = [
        server_cell("a", service_use(cores), run=run)
        for run, cores in enumerate((0.1, 0.9, 0.4), 1)
    ]
    (level,) = answer_of(summary_of(*runs)).ranking
    assert level.entries[0].services[0].cpu_cores_mean == 0.4


def reasons(check: str, message: str) -> dict[str, Any]:
    return {"verdict": verdict("warn", None, reason(check, "warn", message))}


def test_the_answer_names_the_service_that_is_the_bottleneck() -> None:
    busy = reasons("busy-service", "db used 0.95 of its 1 cores: db is the bottleneck")
    idle = reasons("idle-server", "uses only 9 % of its CPU limit")
    cells = [
        server_cell("a", service_use(0.95), **busy),
        server_cell("c", service_use(0.95), **busy),
        server_cell("b", service_use(0.05), **idle),
        server_cell("b", service_use(0.05), **reasons("idle-server", "later"), rate=2000.0),
    ]
    warnings = answer_of(summary_of(*cells)).warnings

    assert warnings[0] == (
        "a at 1,000/s: db used 0.95 of its 1 cores: db is the bottleneck (busy-service). The same "
        "applies to c"
    )
    assert warnings[1] == "b at 1,000/s: uses only 9 % of its CPU limit (idle-server)"

    without_services = answer_of(summary_of(server_cell("b", **idle))).warnings
    assert any("idle-server" in line for line in without_services)


def test_the_page_draws_the_cpu_use_of_each_service_over_the_load() -> None:
    sweep = read_sweep(summary_of(server_cell("a", service_use(0.91)), server_cell("b")))
    charts = {panel.name: panel for panel in panels.resource_chart(sweep).panels}
    panel = charts["service-db"]
    assert (panel.title, panel.unit) == ("CPU cores used by db (mean)", "cores")
    assert [series.medians for series in panel.series] == [(0.91,), (None,)]


def test_the_page_draws_a_service_over_time() -> None:
    rows = [IntervalRow(start_ns=index * S, length_ns=S, p99_ns=5) for index in range(2)]
    samples = [SampleRow(t_ns=index * S, cpu_usage_ns=index * S // 4) for index in range(3)]
    strip = make_strip(
        Cell(server_cell("a", service_use(0.25))), rows, [], services={"db": samples}
    )

    assert strip is not None
    (service,) = timelines.timeline(strip, 0, "time-0").services
    assert (service.name, service.ends_s, service.cores) == ("db", (1.0, 2.0), (0.25, 0.25))

    table = of_strip(strip)
    assert table.headings[-1] == "db CPU cores"
    assert [row[-1] for row in table.rows] == ["0.25", "0.25"]


def samples(*cpu_ns: int) -> list[Sample]:
    counters = [Counters(cpu_usage_ns=value, memory_bytes=7) for value in cpu_ns]
    return [Sample(index * S, 0, one) for index, one in enumerate(counters)]


def test_samples_of_services_are_stored_by_cell_and_name(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "hello")
    table = directory.path / "services.csv"
    directory.write_services("a@1#1", {})
    assert not table.exists()

    for name in ("a@1#1", "b@1#1"):
        directory.write_cell(name, measured_load(), [])
        directory.write_services(name, {"db": samples(0, 5), "redis": samples(3)})
    directory.write_summary(filled_summary({}, []))
    directory.write_run(run_info(directory))
    assert table.read_text().splitlines()[:3] == [
        "cell,service,t_ns,cpu_usage_ns,memory_bytes",
        "a@1#1,db,0,0,7",
        f"a@1#1,db,{S},5,7",
    ]
    assert damages(directory.path) == []
    read = read_run(directory.path).series({"a@1#1", "b@1#1"}).services
    assert {
        cell: {name: len(rows) for name, rows in services.items()}
        for cell, services in read.items()
    } == {name: {"db": 2, "redis": 1} for name in ("a@1#1", "b@1#1")}

    reopened = RunDirectory.reopen(directory.path, {"a@1#1"})
    reopened.write_services("c@1#1", {"db": samples(1)})
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == [
        "cell", "a@1#1", "a@1#1", "a@1#1", "c@1#1"
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["a@1#1,db,x,5,7", "a@1#1,db,0"])
def test_a_damaged_line_of_a_service_is_reported(tmp_path: Path, line: str) -> None:
    directory = RunDirectory(tmp_path, "hello")
    directory.write_services("a@1#1", {"db": samples(0)})
    directory.write_summary(filled_summary({}, []))
    with (directory.path / "services.csv").open("a") as file:
        file.write(f"{line}\n")
    directory.write_run(run_info(directory))
    assert any("services.csv is damaged at line 3" in one for one in damages(directory.path))
