"""The generated index and chart of stored benchmarks are up to date and correct."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bench.chart import Panel, Point, svg
from bench.store import RESULTS, readable_name
from bench.tables import render
from bench.trend import cpu_to_wrk, files, index, p99_error_us

STORED = sorted(RESULTS.glob("*.json"))


def stored(path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(path.read_text())
    return results


@pytest.mark.parametrize("name", ["README.md", "trend.svg"])
def test_generated_files_are_current(name: str) -> None:
    assert (RESULTS / name).read_text() == files(RESULTS)[name], "run: python -m bench.trend"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_pages_are_current(path: Path) -> None:
    page = path.with_suffix(".md").read_text()
    assert page == render(stored(path)), f"run: python -m bench render {path}"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_results_have_generated_names(path: Path) -> None:
    results = stored(path)
    name = readable_name(results, {run["section"] for run in results["runs"]})
    suffix = path.stem.removeprefix(name)
    assert path.stem.startswith(name)
    assert suffix == "" or int(suffix.removeprefix("-")) >= 2
    assert path.with_suffix(".md").exists()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", results["commit_time"])


def closed(generator: str, number: int, cpu_s: float, **more: Any) -> dict[str, Any]:
    return {
        "section": "closed",
        "round": number,
        "generator": generator,
        "server": "refsrv, fast",
        "connections": 64,
        "spin": None,
        "requests": 1_000,
        "user_s": cpu_s,
        "system_s": 0.0,
        **more,
    }


def accuracy(spin: str, reported_us: float) -> dict[str, Any]:
    return {
        "section": "accuracy",
        "generator": "loadgen",
        "rate_per_s": 1_000,
        "spin": spin,
        "quantiles_us": {"0.99": reported_us},
        "server_log": {"quantiles_us": {"0.99": 2_000.0}},
    }


def results(runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    host = {"cpu_model": "AMD EPYC", "cores": 2, "hypervisor": True}
    versions = {"wsgiload commit": "1234567"}
    return {
        "date": "2026-01-02",
        "commit_time": None,
        "host": host,
        "versions": versions,
        "runs": runs,
        **more,
    }


def test_cost_is_paired_within_rounds_and_omits_superseded_runs() -> None:
    runs = [
        closed("loadgen", 0, 1.0, superseded=True),
        closed("loadgen", 0, 3.0),
        closed("wrk", 0, 4.0),
        closed("loadgen", 1, 1.0),
        closed("wrk", 1, 4.0),
        closed("loadgen", 1, 9.0, connections=16),
    ]

    ratio = cpu_to_wrk(results(runs))
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == (0.5, 0.25, 0.75)

    row = "| [2026-01-02](a.md) | AMD EPYC, 2 virtual cores | closed loop: loadgen, wrk | 1234567 | 0.50× [0.25–0.75] "
    assert row in index({"a": results(runs)})


def test_accuracy_is_measured_with_the_spin_window() -> None:
    error = p99_error_us(results([accuracy("60us", 2_040.0), accuracy("0s", 2_900.0)]))
    assert error is not None
    assert error.median == 40.0


def test_the_chart_places_medians_and_clips_ranges() -> None:
    points = [
        Point("one", "a", 0.5, 0.0, 9.0),
        Point("<two>", "b", 1.0, 1.0, 1.0),
        Point("3", "b", 7, 7, 7),
    ]
    root = ElementTree.fromstring(svg([Panel("Title", points, top=1.0, step=0.5)]))

    circles = [element.attrib for element in root.iter() if element.tag.endswith("circle")]
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    top, half = float(circles[1]["cy"]), float(circles[0]["cy"])
    lines = [element.attrib for element in root.iter() if element.tag.endswith("line")]
    assert circles[2]["cy"] == circles[1]["cy"]
    whisker = next(
        element for element in lines if element["x1"] == element["x2"] == circles[0]["cx"]
    )

    assert circles[0]["fill"] != circles[1]["fill"]
    assert float(whisker["y2"]) == top
    assert float(whisker["y1"]) - half == half - top
    assert {"Title", "one", "<two>", "0", "0.5", "1", "↑ 7"} <= set(texts)
