"""docs/studies.md and its charts match the stored results, which contain the figures of a run but
nothing that identifies the machine."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest

from studies.__main__ import main
from studies.claims import CLAIMS
from studies.command import command_of
from studies.extract import extract, setting_of
from studies.originals import ORIGINALS
from studies.page import IMAGES, PAGE, chart_name, files
from studies.results import Figure, Row, StudyRun, read_runs, write_run
from studies.sentences import first_paragraph, study_sentences
from studies.spread import effects, spreads
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError

from ..unit.filled import filled_run, outcomes, rates, reason, resources, times, verdict
from ..unit.invented_cells import cell, invalid
from ..unit.report_fixture import summary_of

ROOT = Path(__file__).parents[2]
MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"


# --- the files of this repository


def test_the_page_and_its_charts_are_current() -> None:
    for path, text in files(read_runs(ROOT)).items():
        assert (ROOT / path).read_text() == text, "run: python -m studies write"


def test_no_obsolete_chart_is_left() -> None:
    expected = {path.name for path in files(read_runs(ROOT)) if path.parent == IMAGES}
    assert {path.name for path in (ROOT / IMAGES).glob("study-*.svg")} == expected


def test_the_stored_results_match_the_current_experiment_files() -> None:
    for name, run in read_runs(ROOT).items():
        table = tomllib.loads((ROOT / "experiments" / f"{name}.toml").read_text())
        assert run.title == table["title"]
        assert list(run.notes) == table["notes"]
        current = {(one.name, one.words, one.figure) for one in CLAIMS if one.study == name}
        assert {(one.name, one.words, one.figure) for one in run.claims} == current


def test_every_experiment_file_belongs_to_an_original() -> None:
    names = {path.stem for path in (ROOT / "experiments").glob("*.toml")}
    originals = [one.name for one in ORIGINALS]
    assert sorted(names) == sorted([*originals, *(f"{name}-fair" for name in originals)])


# --- stored results


def trial(server: str, run: int, per_s: float, **changes: Any) -> CellResult:
    """One of four runs at 100 connections."""
    plain: dict[str, Any] = {
        "rate": None,
        "connections": 100,
        "rate_result": rates(per_s * (0.98, 1.0, 1.01, 1.02)[run - 1]),
        "outcomes": outcomes(10_000, 9_900),
        "response_time_ns": msgspec.structs.replace(times(MS, 3 * MS), max=40 * MS),
        "resources": resources(memory_peak_bytes=20_000_000, cpu_cores_peak=0.9),
        "version": "1.2.3",
        "python": "3.11.2",
    }
    return cell(server, run, **plain | changes)


def four_runs(server: str, per_s: float, **changes: Any) -> list[CellResult]:
    return [trial(server, run, per_s, **changes) for run in (1, 2, 3, 4)]


def study_summary(cells: list[CellResult], **facts: Any) -> Summary:
    table = tomllib.loads((ROOT / "experiments" / "appdynamics-2016.toml").read_text())
    plain: dict[str, Any] = {
        "name": "appdynamics-2016",
        "title": table["title"],
        "source": table["source"],
        "notes": (*table["notes"], "scale quick: connections 100,1000 instead of more"),
        "rates": None,
        "connections": (100, 1000),
        "runs": 4,
        "duration_s": 3.0,
        "warmup_s": 0.0,
        "timeout_s": 10.0,
        "servers": tuple(table["servers"]),
    }
    return summary_of(cells, **plain | facts)


def stored_run(directory: Path, summary: Summary) -> Path:
    """A run directory with this summary, from a machine whose details must not be stored."""
    host = {
        "kernel": "6.1.155-example-cloud",
        "os": "Debian 12",
        "cpu_model": "Invented CPU",
        "cpus": 4,
        "memory_bytes": 16 << 30,
        "wsgiload": "0.1.0",
        "generator": None,
    }

    directory.mkdir(parents=True)
    (directory / "summary.json").write_text(encode(summary))
    run = filled_run({"app_dir": "/home/someone/shop"}, host)
    (directory / "run.json").write_bytes(msgspec.json.encode(run))
    return directory


CELLS = [*four_runs("bjoern", 2000), *four_runs("cherrypy", 500)]


@pytest.fixture
def run(tmp_path: Path) -> StudyRun:
    return extract(stored_run(tmp_path / "run", study_summary(CELLS)), ROOT / "experiments")


def test_a_row_has_the_figures_of_its_runs_with_intervals(run: StudyRun) -> None:
    first, second = run.rows
    assert (first.server, first.load, first.runs, first.trials) == ("bjoern", 100, 4, 4)

    throughput = first.throughput_per_s
    assert throughput.value == pytest.approx(2004, abs=1)
    assert throughput.low is not None and throughput.high is not None
    assert throughput.low < 1980 and throughput.high > 2030
    assert first.failed_share == Figure(value=0.01, low=0.01, high=0.01)
    assert (first.mean_ms.value, first.slowest_ms) == (2.0, 40.0)
    assert (first.cpu_cores, first.memory_mb) == (0.9, 20.0)
    assert first.p99_ms.value == 10.0
    assert second.throughput_per_s.value == pytest.approx(501, abs=1)


def test_a_result_describes_the_run_without_identifying_the_machine(run: StudyRun) -> None:
    assert (run.name, run.date, run.is_open, run.is_fair) == (
        "appdynamics-2016",
        "2026-11-21",
        False,
        False,
    )
    assert run.changes == ("scale quick: connections 100,1000 instead of more",)
    assert run.machine.kernel == "6.1.155"
    assert (run.versions[0].version, run.versions[0].python) == ("1.2.3", "3.11.2")
    assert run.tables[0].title == "REQUESTS (per second)"
    assert {claim.name for claim in run.claims} == {
        one.name for one in CLAIMS if one.study == "appdynamics-2016"
    }

    text = msgspec.json.encode(run).decode()
    assert not re.search(r"someone|/home|example", text)


def test_a_row_without_valid_runs_has_a_reason(tmp_path: Path) -> None:
    cells = [*four_runs("bjoern", 2000), *(invalid(one) for one in four_runs("cherrypy", 500))]
    run = extract(stored_run(tmp_path / "run", study_summary(cells)), ROOT / "experiments")
    row = run.rows[1]
    assert (row.runs, row.trials, row.throughput_per_s) == (0, 4, Figure())
    assert row.problem is not None and "invalid" in row.problem


def test_an_infinite_quantile_is_beyond_every_limit(tmp_path: Path) -> None:
    cells = [*four_runs("bjoern", 2000, p99_ns=None), *four_runs("cherrypy", 500)]
    run = extract(stored_run(tmp_path / "run", study_summary(cells)), ROOT / "experiments")
    assert (run.rows[0].p99_ms.value, run.rows[0].is_p99_beyond) == (None, True)
    assert not run.rows[1].is_p99_beyond


def test_findings_are_named_with_their_servers(tmp_path: Path) -> None:
    alarmed = four_runs("bjoern", 2000, verdict=verdict("warn", "server", reason("no-keepalive")))
    cells = [*alarmed, *four_runs("cherrypy", 500)]
    run = extract(stored_run(tmp_path / "run", study_summary(cells)), ROOT / "experiments")
    (finding,) = run.findings
    assert (finding.check, finding.servers) == ("no-keepalive", ("bjoern",))


def test_a_setting_lists_the_factors_of_the_grid() -> None:
    assert setting_of(trial("a", 1, 1, size=None)) == ""
    assert setting_of(trial("a", 1, 1, size="w10-t4-stock-files")) == "app files"
    assert setting_of(trial("a", 1, 1, size="close-unsized")) == "keep-alive off, app unsized"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"name": "mine"}, "is not from `wsgiload reproduce`; name a run of appdynamics-2016, "),
        ({"name": None}, "is not from `wsgiload reproduce`"),
    ],
)
def test_a_run_of_another_experiment_is_refused(
    tmp_path: Path, facts: dict[str, Any], message: str
) -> None:
    directory = stored_run(tmp_path / "run", study_summary(CELLS, **facts))
    with pytest.raises(UsageError, match=re.escape(message)):
        extract(directory, ROOT / "experiments")


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    summary = msgspec.structs.replace(study_summary(CELLS), status="interrupted")
    directory = stored_run(tmp_path / "run", summary)
    with pytest.raises(UsageError, match="was interrupted; finish it: wsgiload sweep --resume"):
        extract(directory, ROOT / "experiments")


# --- the command


def command(**facts: Any) -> str:
    table = tomllib.loads((ROOT / "experiments" / "appdynamics-2016.toml").read_text())
    servers = tuple(table["servers"])
    summary = study_summary([], **{"servers": servers} | facts)
    return command_of(summary.experiment, table)


def test_the_command_contains_the_differences_from_the_file() -> None:
    assert command() == "wsgiload reproduce appdynamics-2016"
    shorter = command(duration_s=1.0, runs=2, connections=(100,))
    assert shorter.endswith("appdynamics-2016 --duration 1s --runs 2 --connections 100")
    fewer = command(servers=("bjoern", "uwsgi-nginx-w2"))
    assert fewer.endswith("--servers bjoern,uwsgi-nginx")
    tens = (*range(100, 1001, 100), *range(2000, 10_001, 1000))
    full = command(notes=(), connections=tens, duration_s=30.0, timeout_s=30.0)
    assert full == "wsgiload reproduce appdynamics-2016 --scale full"


# --- comparisons of rows


def row(server: str, per_s: float | None, setting: str = "", load: float = 100) -> Row:
    return Row(
        server=server,
        setting=setting,
        load=load,
        runs=4 if per_s else 0,
        trials=4,
        throughput_per_s=Figure(value=per_s),
        failed_share=Figure(value=0.0),
        mean_ms=Figure(value=1.0),
        p99_ms=Figure(value=2.0, low=1.5, high=2.5),
        is_p99_beyond=False,
        slowest_ms=3.0,
        cpu_cores=1.0,
        memory_mb=20.0,
    )


def test_servers_are_compared_at_the_highest_load_that_they_share(run: StudyRun) -> None:
    rows = (row("a", 10), row("b", 100), row("a", 900, load=200), row("b", None, load=200))
    (spread,) = spreads(msgspec.structs.replace(run, rows=rows))
    assert (spread.load, spread.fastest, spread.slowest, spread.factor) == (100, "b", "a", 10)
    assert spreads(msgspec.structs.replace(run, rows=rows[2:])) == []


def test_an_effect_is_that_of_a_single_factor(run: StudyRun) -> None:
    rows = (
        row("a", 400, "keep-alive on, app ok"),
        row("a", 100, "keep-alive off, app ok"),
        row("b", 300, "keep-alive on, app ok"),
        row("b", 150, "keep-alive off, app ok"),
        row("a", 4, "keep-alive on, app unsized"),
    )
    keepalive, framing = effects(msgspec.structs.replace(run, rows=rows))

    assert (keepalive.value, keepalive.instead_of) == ("keep-alive on", "keep-alive off")
    assert (keepalive.least, keepalive.least_server) == (2, "b")
    assert (keepalive.most, keepalive.most_server) == (4, "a")
    assert (framing.value, framing.instead_of, framing.most) == ("app ok", "app unsized", 100)


# --- the page


def with_judgements(run: StudyRun, **statuses: Any) -> StudyRun:
    claims = tuple(
        msgspec.structs.replace(one, status=statuses.get(one.name.replace("-", "_"), "undecided"))
        for one in run.claims
    )
    return msgspec.structs.replace(run, claims=claims)


def test_the_first_paragraph_follows_from_the_judgements(run: StudyRun) -> None:
    judged = with_judgements(
        run,
        bjoern_fastest="confirmed",
        gunicorn_fails="refuted",
        mod_wsgi_fails="refuted",
        cherrypy_steady="refuted",
        cherrypy_gil="not reproducible",
    )
    text = first_paragraph({judged.name: judged})

    assert "**1 is confirmed, 3 are refuted**, 5 are undecided and 1 is not reproducible." in text
    assert text.startswith("Five published comparisons of WSGI servers make 10 claims.")
    assert "Confirmed claims: bjoern has by far the highest throughput." in text
    assert (
        "Refuted claims: CherryPy stays fast at every load level, with almost no errors; and "
        "gunicorn and mod_wsgi fail under high load." in text
    )


def test_the_first_paragraph_blames_settings_if_fair_ones_close_the_gap(
    run: StudyRun,
) -> None:
    original = msgspec.structs.replace(run, rows=(row("bjoern", 5000), row("uwsgi-http", 100)))
    near = (row("a", 300, "keep-alive on"), row("b", 200, "keep-alive on"))
    fair = msgspec.structs.replace(original, name=f"{run.name}-fair", rows=near)
    text = first_paragraph({original.name: original, fair.name: fair})

    assert (
        "with the original settings of AppDynamics at 100 connections, the fastest server (bjoern) "
        "has 50.0 times the throughput of the slowest (uwsgi-http). With fair settings (equivalent "
        "for all servers) at 100 connections, this factor is 1.50," in text
    )

    same = msgspec.structs.replace(fair, rows=original.rows)
    assert "fair settings" not in first_paragraph({original.name: original, same.name: same})


def test_the_sentences_of_a_study_follow_from_its_rows(run: StudyRun) -> None:
    assert study_sentences({run.name: run}, ORIGINALS[0]) == [
        "Original settings, 100 connections: the fastest server (bjoern) has 4.00 times the "
        "throughput of the slowest (cherrypy)."
    ]


def test_the_page_has_every_claim_with_its_command(run: StudyRun) -> None:
    text = files({run.name: run})[PAGE]
    for one in CLAIMS:
        assert f"| `{one.name}`: {one.words} | {one.figure} |" in text
        assert f"| `{one.command}` |" in text

    (line,) = (line for line in text.splitlines() if line.startswith("| `bjoern-fastest`"))
    assert "**undecided**: needs a valid run of gunicorn-sync" in line
    assert f"[original settings](studies/{run.name}.json)" in text

    # Every table has a delimiter row and the same number of columns in all lines.
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        columns = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert len(set(columns)) == 1, table
        assert re.fullmatch(r"[-| ]+", table.splitlines()[1])


def test_without_results_the_page_says_how_to_get_them() -> None:
    (text,) = files({}).values()
    assert "No results are stored yet: `wsgiload reproduce NAME` runs a comparison" in text
    assert all(f"| `{one.name}`: {one.words} |" in text for one in CLAIMS)


# --- charts


def chart_of(run: StudyRun, *rows: Row) -> ElementTree.Element:
    changed = msgspec.structs.replace(run, rows=rows)
    text = files({run.name: changed})[IMAGES / chart_name(ORIGINALS[0])]
    return ElementTree.fromstring(text)


def test_a_dot_lies_on_a_logarithmic_axis_with_its_interval(run: StudyRun) -> None:
    tens = [row("a", 10), row("b", 100), row("c", 1000)]
    root = chart_of(run, *tens)
    dots = [float(one.attrib["cx"]) for one in root.iter(f"{SVG}circle") if one.attrib["r"] == "3"]
    first, second, third = dots[:3]

    assert second - first == pytest.approx(third - second, abs=0.2)

    intervals = [one for one in root.iter(f"{SVG}line") if one.attrib["class"].startswith("s")]
    assert len(intervals) == 3  # p99 has one for each server, throughput none

    words = {one.text for one in root.iter(f"{SVG}text")}
    assert {"a", "b", "c", "10.0", "1,000", "100 connections", "AppDynamics, 2016"} <= words


def test_a_missing_value_has_no_dot(run: StudyRun) -> None:
    beyond = msgspec.structs.replace(row("a", 10), p99_ms=Figure(), is_p99_beyond=True)
    root = chart_of(run, beyond, row("b", None))
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts.count("no valid run") == 2
    assert len(list(root.iter(f"{SVG}path"))) == 1


def test_everything_is_drawn_within_the_image(run: StudyRun) -> None:
    root = chart_of(run, *(row(f"server-{place}", 10.0**place) for place in range(1, 6)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for one in root.iter():
        for key in ("x", "cx", "x1", "x2"):
            assert 0 <= float(one.attrib.get(key, 0)) <= width
        for key in ("y", "cy", "y1", "y2"):
            assert 0 <= float(one.attrib.get(key, 0)) <= height


# --- the command line


def test_a_run_is_judged(tmp_path: Path, run: StudyRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    claims = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert claims == [claim.name for claim in run.claims]
    assert "## REQUESTS (per second)" in lines

    stored_run(tmp_path / "other", study_summary(CELLS, name="mine"))
    assert main(["judge", str(tmp_path / "other")]) == 2
    assert "other is not from `wsgiload reproduce`" in capsys.readouterr().err


def test_runs_are_stored_and_the_page_is_written(
    tmp_path: Path, run: StudyRun, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "checkout"
    (root / "experiments").mkdir(parents=True)
    (root / "experiments" / "appdynamics-2016.toml").write_bytes(
        (ROOT / "experiments" / "appdynamics-2016.toml").read_bytes()
    )
    assert main(["--root", str(root), "store", str(tmp_path / "run")]) == 0
    assert read_runs(root) == {run.name: run}
    assert main(["--root", str(root), "write"]) == 0
    written = files({run.name: run})
    assert all((root / path).read_text() == text for path, text in written.items())
    assert len(written) == 2

    write_run(root, run)
    stored = root / "docs" / "studies" / "appdynamics-2016.json"
    stored.write_text(stored.read_text()[:-20])
    assert main(["--root", str(root), "write"]) == 2
    assert "appdynamics-2016.json is not a stored result" in capsys.readouterr().err
