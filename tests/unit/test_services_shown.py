"""What supporting services used stands next to what the server used: in the answer, on the page, in
the files."""

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


def used(cores: float | None, name: str = "db") -> ServiceUse:
    of = resources(cpu_cores_mean=cores, memory_peak_bytes=1 << 20)
    return ServiceUse(name=name, cpus=1.0, shares_server_cores=False, resources=of)


def beside(name: str, *services: ServiceUse, **changes: Any) -> CellResult:
    """A cell of a server that used a third of a core."""
    return cell(name, resources=resources(cpu_cores_mean=0.33), services=services, **changes)


def summary_of(*cells: CellResult) -> Summary:
    return analyse(filled_summary({"servers": ("a", "b"), "rates": (1000.0,)}, cells))


def shown(summary: Summary, width: int = 200) -> str:
    stream = io.StringIO()
    print_first_screen(summary, Console(file=stream, width=width))
    return stream.getvalue()


def test_the_answer_shows_the_cpu_use_of_services_next_to_the_servers() -> None:
    summary = summary_of(beside("a", used(0.91), used(0.02, "redis")), beside("b", used(0.5)))
    (level,) = answer_of(summary).ranking
    assert [one.name for one in level.entries[0].services] == ["db", "redis"]
    heading, _, *rows = [line for line in markdown(summary).splitlines() if line.startswith("|")]
    assert "| CPU cores | db CPU cores | redis CPU cores | memory |" in heading
    assert any("| 0.33 | 0.91 | 0.02 |" in row for row in rows)
    assert any("| 0.33 | 0.50 | – |" in row for row in rows)
    assert "db CPU cores" in shown(summary)
    assert "db CPU cores" not in shown(summary, width=40), "the names and the figure stay"
    assert " CPU |" not in markdown(summary_of(beside("a")))


def test_the_cpu_use_of_a_service_is_the_median_of_the_runs() -> None:
    runs = [beside("a", used(cores), run=run) for run, cores in enumerate((0.1, 0.9, 0.4), 1)]
    (level,) = answer_of(summary_of(*runs)).ranking
    assert level.entries[0].services[0].cpu_cores_mean == 0.4


def reasons(check: str, message: str) -> dict[str, Any]:
    return {"verdict": verdict("warn", None, reason(check, "warn", message))}


def test_the_answer_names_the_bottleneck_beside_the_server() -> None:
    busy = reasons("busy-service", "db used 0.95 of its 1 cores: db is the bottleneck")
    idle = reasons("idle-server", "uses only 9 % of its CPU limit")
    cells = [
        beside("a", used(0.95), **busy),
        beside("c", used(0.95), **busy),
        beside("b", used(0.05), **idle),
        beside("b", used(0.05), **reasons("idle-server", "later"), rate=2000.0),
    ]
    cautions = answer_of(summary_of(*cells)).warnings
    assert cautions[0] == (
        "a at 1,000/s: db used 0.95 of its 1 cores: db is the bottleneck (busy-service). The same "
        "applies to c"
    )
    assert cautions[1] == "b at 1,000/s: uses only 9 % of its CPU limit (idle-server)"
    alone = answer_of(summary_of(beside("b", **idle))).warnings
    assert not any("idle-server" in line for line in alone), "without services as before"


def test_the_page_draws_the_cpu_use_of_each_service_over_the_load() -> None:
    sweep = read_sweep(summary_of(beside("a", used(0.91)), beside("b")))
    drawn = {panel.name: panel for panel in panels.resource_chart(sweep).panels}
    panel = drawn["service-db"]
    assert (panel.title, panel.unit) == ("CPU cores used by db (mean)", "cores")
    assert [series.medians for series in panel.series] == [(0.91,), (None,)]


def test_the_page_draws_a_service_over_time() -> None:
    rows = [IntervalRow(start_ns=place * S, length_ns=S, p99_ns=5) for place in range(2)]
    stored = [SampleRow(t_ns=place * S, cpu_usage_ns=place * S // 4) for place in range(3)]
    strip = make_strip(Cell(beside("a", used(0.25))), rows, [], services={"db": stored})
    assert strip is not None
    (service,) = timelines.timeline(strip, 0, "time-0").services
    assert (service.name, service.ends_s, service.cores) == ("db", (1.0, 2.0), (0.25, 0.25))
    table = of_strip(strip)
    assert table.headings[-1] == "db CPU cores"
    assert [row[-1] for row in table.rows] == ["0.25", "0.25"]


def samples(*cpu_ns: int) -> list[Sample]:
    counters = [Counters(cpu_usage_ns=value, memory_bytes=7) for value in cpu_ns]
    return [Sample(place * S, 0, one) for place, one in enumerate(counters)]


def test_samples_of_services_are_stored_by_cell_and_name(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "hello")
    stored = directory.path / "services.csv"
    directory.write_services("a@1#1", {})
    assert not stored.exists()

    for name in ("a@1#1", "b@1#1"):
        directory.write_cell(name, measured_load(), [])
        directory.write_services(name, {"db": samples(0, 5), "redis": samples(3)})
    directory.write_summary(filled_summary({}, []))
    directory.write_run(run_info(directory))
    assert stored.read_text().splitlines()[:3] == [
        "cell,service,t_ns,cpu_usage_ns,memory_bytes",
        "a@1#1,db,0,0,7",
        f"a@1#1,db,{S},5,7",
    ]
    assert damages(directory.path) == []
    read = read_run(directory.path).services
    assert {cell: {name: len(rows) for name, rows in of.items()} for cell, of in read.items()} == {
        name: {"db": 2, "redis": 1} for name in ("a@1#1", "b@1#1")
    }

    again = RunDirectory.reopen(directory.path, {"a@1#1"})
    again.write_services("c@1#1", {"db": samples(1)})
    assert [line.split(",")[0] for line in stored.read_text().splitlines()] == [
        "cell", "a@1#1", "a@1#1", "a@1#1", "c@1#1"
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["a@1#1,db,x,5,7", "a@1#1,db,0"])
def test_a_damaged_line_of_a_service_is_named(tmp_path: Path, line: str) -> None:
    directory = RunDirectory(tmp_path, "hello")
    directory.write_services("a@1#1", {"db": samples(0)})
    directory.write_summary(filled_summary({}, []))
    with (directory.path / "services.csv").open("a") as file:
        file.write(f"{line}\n")
    directory.write_run(run_info(directory))
    assert any("services.csv is damaged at line 3" in one for one in damages(directory.path))
