"""One offline HTML page from a run directory.

Reads the store and nothing else, loads nothing from anywhere, runs no script. The order of the page
is fixed: verdict, validity, curves with their data, the cells over time, errors, all cells, plan
and host, raw files.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsgiload.experiment.procedure import Method
from wsgiload.report import (
    charts,
    coincidence,
    findings,
    forest,
    grids,
    over_runs,
    svg,
    table,
    words,
)
from wsgiload.report.cells import Cell, Sweep, conditions, lookup, median_upper_ns, read_sweep
from wsgiload.report.recommendation import recommendation_lines
from wsgiload.report.run_files import RunFiles, read_run
from wsgiload.report.strip import Strip, make_strip
from wsgiload.report.strip_chart import strip_chart
from wsgiload.report.words import Json
from wsgiload.statistics.effect import FEWEST_RUNS

MOST_STRIPS = 48
MOST_GRID_LOADS = 6
LARGEST_DOWNLOAD_BYTES = 2 << 20
_DOWNLOADS = (
    ("summary.json", "application/json"),
    ("run.json", "application/json"),
    ("intervals.csv", "text/csv"),
    ("resources.csv", "text/csv"),
)


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of the page."""

    name: str
    svg: str
    caption: str
    reading: str
    data: grids.Grid


@dataclass(frozen=True, slots=True)
class ServerStrips:
    """The cells of one server over time."""

    label: str
    charts: tuple[Chart, ...]


def write_html(run_dir: Path, method: Method | None = None, slo: Sequence[str] = ()) -> Path:
    """Write report.html into the run directory and return its path."""
    path = run_dir / "report.html"
    text = render(read_run(run_dir, method, slo))
    unfinished = run_dir / "report.html.tmp"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    return path


def render(files: RunFiles) -> str:
    """The whole page as text."""
    return page("template.html.j2", _context(files))


def page(template: str, context: Mapping[str, Any]) -> str:
    """A template of this package with what it says."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wsgiload.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(context)


def _context(files: RunFiles) -> dict[str, Any]:
    sweep = _with_keepalive(read_sweep(files.summary), files)
    strips, left_out = _strips(sweep, files)
    return {
        "title": _page_title(sweep),
        "status": words.status_words(files.summary.get("status") or files.run.get("status")),
        "started": str(files.run.get("started_utc") or "start not recorded"),
        "conditions": conditions(sweep.experiment),
        "headline": findings.headline(sweep),
        "recommendations": _recommendations(files.summary["recommendations"]),
        "kept_up_meaning": findings.kept_up_meaning(sweep),
        "no_inference": table.no_inference(sweep.runs) if sweep.runs < FEWEST_RUNS else "",
        "loads": [sweep.load_words(load) for load in sweep.loads]
        if len(sweep.loads) <= MOST_GRID_LOADS
        else [],
        "servers": [_server(sweep, index, label) for index, label in enumerate(sweep.labels)],
        "status_counts": findings.status_counts(sweep),
        "validity_class": _worst(sweep),
        "remarks": _remarks(sweep),
        "session": over_runs.session_lines(files.summary),
        "load_points": [
            *over_runs.overload_lines(files.summary),
            *over_runs.power_lines(files.summary),
        ],
        "over_runs": _over_runs(files.summary, conditions(sweep.experiment))
        if sweep.runs > 1
        else None,
        "facts": [
            *findings.generator_facts(sweep, files.loads),
            *findings.limit_facts(sweep),
            *coincidence.interventions(files.summary),
        ],
        "charts": _sweep_charts(sweep, files),
        "strips": strips,
        "strips_left_out": left_out,
        "errors": grids.of_errors(sweep, files.loads),
        "cells": grids.of_cells(sweep),
        "verdicts": [cell.status for cell in sweep.cells],
        "plan": _facts(sweep.experiment),
        "host": _facts(files.run.get("host") or {}),
        "downloads": [_download(files.directory / name, kind) for name, kind in _DOWNLOADS],
        "palette": _palette(),
    }


def _recommendations(entries: Sequence[Json]) -> list[tuple[str, str]]:
    """Each sentence in two: what to run, and what else is to be known of it."""
    parted = [sentence.partition(";") for sentence in recommendation_lines(entries)]
    return [(head, separator + tail) for head, separator, tail in parted]


def _with_keepalive(sweep: Sweep, files: RunFiles) -> Sweep:
    """The keep-alive policy for the titles: from the experiment, else from the plan of a load."""
    if sweep.experiment.get("keepalive") is not None:
        return sweep
    for load in files.loads.values():
        keepalive = lookup(load, "plan", "keepalive")
        if isinstance(keepalive, str | int):
            return Sweep(
                {**sweep.experiment, "keepalive": keepalive}, sweep.cells, sweep.labels, sweep.loads
            )
    return sweep


def _page_title(sweep: Sweep) -> str:
    app = _each(sweep.experiment.get("app") or sweep.experiment.get("name") or "WSGI app")
    path = _each(sweep.experiment.get("path") or "")
    servers = words.plural(len(sweep.labels), "server")
    if not sweep.loads:
        return f"{app} {path}: {servers}"
    first, last = sweep.loads[0], sweep.loads[-1]
    unit = "requests/s" if sweep.open_loop else "connections"
    span = (
        words.format_rate(first)
        if first == last
        else f"{words.format_rate(first)} to {words.format_rate(last)}"
    )
    return f"{app}{' ' + path if path else ''}: {servers}, {span} {unit}"


def _each(value: object) -> str:
    return words.join_words([str(one) for one in value]) if isinstance(value, list) else str(value)


def _server(sweep: Sweep, index: int, label: str) -> dict[str, Any]:
    shown = sweep.loads if len(sweep.loads) <= MOST_GRID_LOADS else ()
    return {
        "label": label,
        "index": index % len(svg.PALETTE),
        "sentence": findings.server_sentence(sweep, label),
        "marks": [_mark(sweep.at(label, load)) for load in shown],
    }


def _mark(cells: tuple[Cell, ...]) -> dict[str, str]:
    """One field of the verdict grid: a sign, p99, and what the sign means."""
    if not cells:
        return {"kind": "none", "sign": "", "value": words.MISSING, "meaning": words.NOT_MEASURED}
    if any(cell.status == "failed" for cell in cells):
        return {"kind": "failed", "sign": "", "value": "failed", "meaning": "the server failed"}
    if all(cell.status == "invalid" for cell in cells):
        blamed = words.join_words(
            sorted({str(lookup(cell.raw, "verdict", "blame")) for cell in cells})
        )
        return {
            "kind": "invalid",
            "sign": "",
            "value": "invalid",
            "meaning": f"the measurement is invalid: {blamed}",
        }
    middle = median_upper_ns(cells, 0.99)
    endless = next((cell for cell in cells if cell.upper_ns(0.99) == math.inf), cells[0])
    value = words.format_duration_ns(middle) if middle is not None else endless.quantile_words(0.99)
    if findings.kept_up(cells):
        return {"kind": "kept", "sign": "✓", "value": value, "meaning": "kept up"}
    return {
        "kind": "behind",
        "sign": "✗",
        "value": value.partition(" (")[0],
        "meaning": "did not keep up",
    }


def _worst(sweep: Sweep) -> str:
    statuses = {cell.status for cell in sweep.cells}
    return next((status for status in ("invalid", "failed", "warn") if status in statuses), "valid")


def _over_runs(summary: Json, subtitle: str) -> dict[str, Any]:
    """What several runs say together."""
    return {
        "forest": _forest(summary["comparisons"], subtitle),
        "aggregates": grids.Grid(
            over_runs.aggregate_headings(summary), tuple(over_runs.aggregate_rows(summary))
        ),
        "note": over_runs.aggregate_note(summary),
        "comparisons": over_runs.comparison_lines(summary),
        "comparison_note": over_runs.COMPARISON_NOTE,
        "discard_rule": over_runs.DISCARD_RULE,
    }


def _forest(comparisons: Sequence[Json], subtitle: str) -> Chart | None:
    """The comparisons as a chart, where there are any with a factor."""
    rows = forest.drawable(comparisons)
    if not rows:
        return None
    numbers = tuple(
        (
            forest.row_name(entry),
            *(
                f"{value:.3g}"
                for value in (
                    entry["factor"],
                    *entry["interval_95"],
                    entry["p"],
                    entry["p_adjusted"],
                )
            ),
        )
        for entry in rows
    )
    data = grids.Grid(("pair", "factor", "low", "high", "p", "p adjusted"), numbers)
    drawing = forest.forest_chart(comparisons, subtitle)
    return Chart("forest", drawing, forest.caption(comparisons), forest.READING, data)


def _remarks(sweep: Sweep) -> list[dict[str, str]]:
    levels = {"red": "invalid", "yellow": "warn"}
    remarks = []
    for sentence, style, cells in table.remarks(sweep):
        level = levels.get(style, "note")
        head, _, tail = sentence.partition(": ") if level != "note" else ("", "", sentence)
        remarks.append({"head": head, "sentence": tail, "level": level, "cells": cells})
    return remarks


def _sweep_charts(sweep: Sweep, files: RunFiles) -> list[Chart]:
    loads = charts.spectrum_loads(sweep)
    return [
        Chart(
            "response-time",
            charts.response_time_chart(sweep),
            findings.response_time_caption(sweep),
            findings.RESPONSE_TIME_READING,
            grids.of_times(sweep, files.loads),
        ),
        Chart(
            "goodput",
            charts.goodput_chart(sweep),
            findings.goodput_caption(sweep),
            "Only correct responses (expected status and body) count.",
            grids.of_columns(sweep, grids.GOODPUT_COLUMNS),
        ),
        Chart(
            "resources",
            charts.resource_chart(sweep),
            findings.resource_caption(sweep),
            "From the server's cgroup. Throttled: share of CPU periods, not of time.",
            grids.of_columns(sweep, grids.RESOURCE_COLUMNS),
        ),
        Chart(
            "spectrum",
            charts.spectrum_chart(sweep),
            findings.spectrum_caption(sweep, loads),
            findings.SPECTRUM_READING,
            grids.of_spectrum(sweep),
        ),
    ]


def _strips(sweep: Sweep, files: RunFiles) -> tuple[list[ServerStrips], int]:
    """The cells over time; where there are very many, the first run of each stands for the
    others."""
    made = [
        make_strip(cell, files.intervals.get(cell.id, ()), files.samples.get(cell.id, ()))
        for cell in sweep.cells
    ]
    strips = [strip for strip in made if strip is not None]
    chosen = strips
    if len(chosen) > MOST_STRIPS:
        chosen = [
            strip for strip in chosen if strip.cell.run == min(cell.run for cell in sweep.cells)
        ]
    chosen = chosen[:MOST_STRIPS]
    groups = []
    for label in sweep.labels:
        own = [strip for strip in chosen if strip.cell.label == label]
        if own:
            charts_of = tuple(
                _strip_chart(strip, sweep, f"time-{strips.index(strip)}") for strip in own
            )
            groups.append(ServerStrips(label, charts_of))
    return groups, len(strips) - len(chosen)


def _strip_chart(strip: Strip, sweep: Sweep, name: str) -> Chart:
    drawing = strip_chart(strip, sweep.experiment, name)
    coincided = [
        coincidence.sentence(strip.cell, found) for found in coincidence.fingerprints(strip.cell)
    ]
    return Chart(
        name, drawing, findings.strip_caption(strip), " ".join(coincided), grids.of_strip(strip)
    )


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _fact(name, value)) for name, value in facts.items()]


def _fact(name: str, value: object) -> str:
    if value is None:
        return words.MISSING
    if name.endswith("_bytes") and isinstance(value, int | float):
        return words.format_bytes(value)
    if name.endswith("_s") and isinstance(value, int | float):
        return words.format_seconds(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_fact(str(key), item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_fact("", item) for item in value)
    return (
        f"{value:,g}"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else str(value)
    )


def _download(path: Path, kind: str) -> dict[str, str]:
    if not path.is_file():
        return {"name": path.name, "uri": "", "said": "not written by this run"}
    size_bytes = path.stat().st_size
    if size_bytes > LARGEST_DOWNLOAD_BYTES:
        return {
            "name": path.name,
            "uri": "",
            "said": f"{words.format_bytes(size_bytes)}, beside this page",
        }
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return {
        "name": path.name,
        "uri": f"data:{kind};base64,{data}",
        "said": words.format_bytes(size_bytes),
    }


def _palette() -> list[tuple[int, str, str]]:
    return [
        (index, light, dark)
        for index, (light, dark) in enumerate(zip(svg.PALETTE, svg.DARK_PALETTE, strict=True))
    ]
