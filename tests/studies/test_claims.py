"""Claims of published studies: confirmed or refuted by an interval, or undecided with a reason."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from studies.claims import CLAIMS, claims_of, judged
from studies.judgement import ClaimJudgement
from studies.tables import claims_tables
from wsgiload.catalogue.names import load_catalogue
from wsgiload.cli import run as run_command
from wsgiload.cli._reproduce import studies
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.summary import Summary

from ..unit.filled import limits, outcomes, rates, resources, settings, times
from ..unit.invented_cells import cell, invalid
from ..unit.report_fixture import read_load, summary_of, write_run

MS = 1_000_000
# Relative throughput of four runs.
SPREAD = (0.98, 1.0, 1.01, 1.02)


def runs(
    server: str, load: float, per_s: float, *, is_open: bool = False, count: int = 4, **changes: Any
) -> list[CellResult]:
    """Runs of a server (name/variant) at a load level with this mean throughput."""
    name, _, variant = server.partition("/")
    defaults: dict[str, Any] = {
        "server": name,
        "variant": variant or "default",
        "app": "files:app",
        "rate": load if is_open else None,
        "connections": None if is_open else int(load),
        "response_time_ns": msgspec.structs.replace(times(MS, 2 * MS), max=2 * MS),
        "outcomes": outcomes(10_000),
        "resources": resources(memory_peak_bytes=20_000_000, cpu_cores_peak=0.9),
        "limits": limits(cpus=2.0),
        "settings": settings(workers=50, backlog=500),
    }
    return [
        cell(server, run, rate_result=rates(per_s * factor), **defaults | changes)
        for run, factor in enumerate(SPREAD[:count], start=1)
    ]


def judgement(study: str, name: str, cells: list[CellResult]) -> ClaimJudgement:
    judgements = {entry.claim.name: entry.judgement for entry in judged(study, summary(cells), {})}
    return judgements[name]


def summary(cells: list[CellResult], order: tuple[str, ...] = ()) -> Summary:
    return msgspec.structs.replace(summary_of(cells, servers=(), rates=None), order=order)


SERVERS = ("bjoern", "cherrypy", "gunicorn/sync", "meinheld", "mod_wsgi/express", "uwsgi/http")


def runs_of_six(load: float = 100, **changes: dict[str, Any]) -> list[CellResult]:
    """Runs of the six servers with equal results, except for these changes by server."""
    return [
        run
        for server in SERVERS
        for run in runs(server, load, **{"per_s": 500} | changes.get(server.partition("/")[0], {}))
    ]


# --- throughput


def test_the_fastest_server_is_ahead_of_every_other_server() -> None:
    name, study = "bjoern-fastest", "appdynamics-2016"
    result = judgement(study, name, runs_of_six(bjoern={"per_s": 900}))
    assert (result.status, result.because) == ("confirmed", None)
    assert result.ours == "1.80× [1.80×, 1.80×] the throughput of cherrypy at 100 connections"

    slower = judgement(study, name, runs_of_six(bjoern={"per_s": 900}, meinheld={"per_s": 1000}))
    assert slower.status == "refuted"
    assert "of meinheld" in (slower.ours or "")

    assert judgement(study, name, runs_of_six()).status == "undecided"


def test_the_fastest_server_must_be_ahead_of_varying_servers() -> None:
    cells = runs_of_six(bjoern={"per_s": 900}, meinheld={"per_s": 400})
    per_s = {1: 50.0, 2: 850.0, 3: 100.0, 4: 890.0}
    varied = [
        msgspec.structs.replace(run, rate_result=rates(per_s[run.run]))
        if run.server == "meinheld"
        else run
        for run in cells
    ]

    result = judgement("appdynamics-2016", "bjoern-fastest", varied)
    assert result.status == "undecided"
    assert "of meinheld" in (result.ours or "")


def test_too_few_runs_leave_a_claim_undecided() -> None:
    cells = [run for run in runs_of_six(bjoern={"per_s": 9000}) if run.run <= 3]
    result = judgement("appdynamics-2016", "bjoern-fastest", cells)
    assert result.status == "undecided"
    assert result.ours == "18.0× the throughput of cherrypy at 100 connections"
    assert result.because == "more runs, such as --runs 6"


def test_an_invalid_or_missing_server_leaves_a_claim_undecided() -> None:
    cells = [run if run.server != "meinheld" else invalid(run) for run in runs_of_six()]
    result = judgement("appdynamics-2016", "bjoern-fastest", cells)
    assert (result.status, result.ours) == ("undecided", None)
    assert result.because == "a valid run of meinheld"

    assert judgement("appdynamics-2016", "nginx-irrelevant", runs_of_six()).because == (
        "a valid run of uwsgi-nginx"
    )

    at_different_levels = [*runs("uwsgi/nginx", 10, 5), *runs("gunicorn/nginx", 20, 5)]
    result = judgement("dyedov-2012", "server-irrelevant", at_different_levels)
    assert result.because == "valid runs of gunicorn-nginx, uwsgi-nginx at one load level"


def slowest(ms: int) -> dict[str, Any]:
    return {"response_time_ns": msgspec.structs.replace(times(MS, 2 * MS), max=ms * MS)}


def test_only_runs_of_the_app_of_the_claim_count() -> None:
    cells = [
        *runs("circus/meinheld", 50, 60, **slowest(3000)),
        *runs("gunicorn/gevent", 50, 90, **slowest(4500)),
    ]
    cells += [
        *runs("circus/meinheld", 200, 10, app="database:app"),
        *runs("gunicorn/gevent", 200, 60, app="database:app"),
    ]

    result = judgement("ziade-2012", "circus-ahead", cells)
    assert result.status == "confirmed"
    assert result.ours == (
        "slowest request of all runs: 3,000 ms, of gunicorn-gevent 4,500 ms; in a run, the latter"
        " is 1.50× [1.50×, 1.50×] the former at 50 connections"
    )


@pytest.mark.parametrize(
    ("study", "name", "cells", "needs"),
    [
        (
            "ziade-2012",
            "circus-ahead",
            [
                *runs("circus/meinheld", 50, 60, settings=settings(workers=10), **slowest(3000)),
                *runs("gunicorn/gevent", 50, 60, settings=settings(workers=10), **slowest(4500)),
            ],
            "workers 50, as in the original (here: 10)",
        ),
        (
            "appdynamics-2016",
            "cherrypy-steady",
            runs("cherrypy", 10_000, 5, settings=settings(backlog=5)),
            "backlog 500, as in the original (here: 5)",
        ),
        (
            "appdynamics-2016",
            "cherrypy-steady",
            runs("cherrypy", 10_000, 5, settings=None),
            "backlog 500, as in the original (here: unknown)",
        ),
    ],
)
def test_nothing_is_decided_with_other_settings_than_the_original(
    study: str, name: str, cells: list[CellResult], needs: str
) -> None:
    result = judgement(study, name, cells)
    assert (result.status, result.because) == ("undecided", needs)
    assert result.ours is not None


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, "confirmed"), (1.5, "refuted"), (0.5, "refuted")]
)
def test_equally_fast_means_an_interval_within_ten_percent(factor: float, status: str) -> None:
    cells = [*runs("uwsgi/nginx", 40, 100), *runs("gunicorn/nginx", 40, 100 * factor)]
    assert judgement("dyedov-2012", "server-irrelevant", cells).status == status


def test_a_wide_interval_leaves_equality_undecided() -> None:
    factors = [0.8, 1.3, 0.9, 1.2]
    cells = runs("uwsgi/nginx", 40, 100)
    for run, factor in zip(runs("gunicorn/nginx", 40, 100), factors, strict=True):
        cells.append(msgspec.structs.replace(run, rate_result=rates(100 * factor)))

    result = judgement("dyedov-2012", "server-irrelevant", cells)
    assert (result.status, result.because) == ("undecided", "more runs, such as --runs 6")


def slides(**per_s: float) -> list[CellResult]:
    """Runs of the servers of the slides at 3,000/s; their default throughput is the offered rate."""
    servers = {
        "gevent": "gevent/pywsgi",
        "uwsgi": "uwsgi/http",
        "tornado": "tornado",
        "cherrypy": "cherrypy",
        "gunicorn": "gunicorn/sync",
        "twisted": "twisted",
        "cold": "pypy/gevent-cold",
        "warm": "pypy/gevent-warm",
    }

    return [
        run
        for name, server in servers.items()
        for run in runs(server, 3000, per_s.get(name, 3000.0), is_open=True)
    ]


def same_throughput(cells: list[CellResult]) -> list[CellResult]:
    """These runs without the variation between runs."""
    return [
        msgspec.structs.replace(
            run, rate_result=rates(round(run.rate_result.goodput_per_s / SPREAD[run.run - 1]))
        )
        for run in cells
        if run.rate_result is not None and run.rate_result.goodput_per_s is not None
    ]


def test_one_pair_in_the_wrong_order_refutes_a_ranking() -> None:
    ranked = slides(
        gevent=2900, uwsgi=2800, tornado=2000, cherrypy=1500, gunicorn=1200, twisted=1000
    )
    assert judgement("slides-2013", "ranking", ranked).status == "confirmed"

    swapped = slides(tornado=1000, cherrypy=1500)
    result = judgement("slides-2013", "ranking", swapped)
    assert result.status == "refuted"
    assert "tornado 1,000/s" in (result.ours or "")


def varied(server: str, per_s: tuple[float, float, float, float]) -> list[CellResult]:
    """The servers of the slides, one of them with these throughputs in its runs; the others serve
    every request in every run."""
    name, _, variant = server.partition("/")
    return [
        msgspec.structs.replace(one, rate_result=rates(per_s[one.run - 1]))
        if (one.server, one.variant) == (name, variant or "default")
        else one
        for one in same_throughput(slides(cold=2000))
    ]


RUNS_AND_LOAD = "more runs, such as --runs 6, and a higher load, such as --rates 6000"


@pytest.mark.parametrize(
    ("name", "server", "per_s", "because"),
    [
        ("ranking", "tornado", (2440, 3000, 3000, 3000), RUNS_AND_LOAD),
        ("ranking", "tornado", (2500, 2960, 2900, 2940), "more runs, such as --runs 6"),
        ("pypy-needs-warm-up", "pypy/gevent-warm", (2860, 2640, 3130, 3240), RUNS_AND_LOAD),
        (
            "pypy-needs-warm-up",
            "pypy/gevent-warm",
            (2500, 2960, 2900, 2940),
            "more runs, such as --runs 6",
        ),
    ],
)
def test_servers_that_serve_the_offered_rate_need_a_higher_load(
    name: str, server: str, per_s: tuple[float, float, float, float], because: str
) -> None:
    found = judgement("slides-2013", name, varied(server, per_s))
    assert (found.status, found.because) == ("undecided", because)


@pytest.mark.parametrize(
    ("per_s", "is_open", "count", "because"),
    [
        (2000, True, 4, "a higher load, such as --rates 4000"),
        (2000, True, 3, "more runs, such as --runs 6, and a higher load, such as --rates 4000"),
        (900, True, 4, "more runs, such as --runs 6"),
        (2000, False, 4, "more runs, such as --runs 6"),
    ],
)
def test_equal_throughputs_need_a_higher_load_only_at_the_offered_rate(
    per_s: float, is_open: bool, count: int, because: str
) -> None:
    cells = [
        one
        for server in ("uwsgi/gevent", "gunicorn/gevent")
        for one in runs(server, 2000, per_s, is_open=is_open, count=count)
    ]
    found = judgement("kgriffs-2012", "uwsgi-ahead", cells)
    assert (found.status, found.because) == ("undecided", because)


def test_erratic_throughput_has_a_higher_standard_deviation_over_time(tmp_path: Path) -> None:
    stored = read_load(write_run(tmp_path / "run"), "waitress@1000#1")
    interval = stored.intervals[0]

    def load(*counts: int) -> LoadReport:
        intervals = tuple(msgspec.structs.replace(interval, ok=count) for count in counts)
        return msgspec.structs.replace(stored, intervals=intervals)

    cells = [*runs("uwsgi/gevent", 2000, 900), *runs("gunicorn/gevent", 2000, 900)]
    erratic, steady = load(100, 900, 500), load(490, 510, 500)
    loads = {cell.id: erratic if cell.server == "uwsgi" else steady for cell in cells}

    def status(loads: dict[str, LoadReport]) -> ClaimJudgement:
        result = judged("kgriffs-2012", summary(cells), loads)
        return next(entry.judgement for entry in result if entry.claim.name == "uwsgi-erratic")

    assert status(loads).status == "confirmed"
    assert (status(loads).ours or "").startswith(
        "standard deviation of the throughput: 40.0× [40.0×, 40.0×] that of gunicorn-gevent"
    )
    swapped = {cell.id: steady if cell.server == "uwsgi" else erratic for cell in cells}
    assert status(swapped).status == "refuted"
    short = {cell.id: load(1, 2) for cell in cells}
    assert status(short).because == "longer runs, such as --duration 10s"
    constant = load(500, 500, 500)
    constant_loads = {cell.id: constant if cell.server == "uwsgi" else steady for cell in cells}
    assert status(constant_loads).because == "a higher load, such as --connections 4000"
    assert (
        status(constant_loads).ours == "uwsgi-gevent had a constant throughput at 2,000 connections"
    )


def test_saturation_means_less_than_the_offered_rate_in_every_run() -> None:
    name, study = "cherrypy-saturates", "slides-2013"
    result = judgement(study, name, slides(cherrypy=1785))
    assert result.status == "confirmed"
    assert result.ours == "1,790 [1,740, 1,840] of 3,000 requests/s"

    assert judgement(study, name, same_throughput(slides())).status == "refuted"
    assert judgement(study, name, slides()).status == "undecided"
    assert judgement(study, name, []).because == "a valid run of cherrypy at 3,000/s"


def test_only_a_cold_pypy_must_be_slow() -> None:
    name, study = "pypy-needs-warm-up", "slides-2013"
    result = judgement(study, name, same_throughput(slides(cold=2500)))
    assert result.status == "confirmed"
    assert result.ours == (
        "at 3,000/s: pypy-gevent-cold has 0.83× [0.83×, 0.83×] the throughput of pypy-gevent-warm; "
        "pypy-gevent-warm has 1.00× [1.00×, 1.00×] the throughput of uwsgi-http; "
        "slowest response of pypy-gevent-cold: 2 ms"
    )

    assert judgement(study, name, same_throughput(slides())).status == "refuted"
    assert judgement(study, name, same_throughput(slides(warm=2000))).status == "refuted"


# --- measurement procedure


def orders(cells: list[CellResult], seed: int = 1) -> tuple[str, ...]:
    """A random order of the cells of each run."""
    rng = random.Random(seed)
    by_run = {run: [cell.id for cell in cells if cell.run == run] for run in range(1, 5)}
    return tuple(cell_id for ids in by_run.values() for cell_id in rng.sample(ids, len(ids)))


def drifting(factor: float) -> tuple[list[CellResult], tuple[str, ...]]:
    """Runs of the six servers whose throughput changes by this factor over each round, with their
    order."""
    cells = runs_of_six(bjoern={"per_s": 5000})
    order = orders(cells)
    positions = {
        cell_id: order.index(cell_id) % len(SERVERS) / (len(SERVERS) - 1) for cell_id in order
    }

    changed = []
    for result in cells:
        per_s = (result.rate_result.goodput_per_s if result.rate_result else None) or 0.0
        changed.append(
            msgspec.structs.replace(
                result, rate_result=rates(per_s * factor ** positions[result.id])
            )
        )
    return changed, order


@pytest.mark.parametrize(
    ("factor", "status"),
    [(1.0, "confirmed"), (1.05, "confirmed"), (0.5, "refuted"), (2.0, "refuted")],
)
def test_order_matters_if_throughput_drifts_within_a_round(factor: float, status: str) -> None:
    cells, order = drifting(factor)

    results = judged("appdynamics-2016", summary(cells, order), {})
    result = next(entry.judgement for entry in results if entry.claim.name == "order-irrelevant")
    assert result.status == status
    text = (
        f"throughput at the end of a round: {factor:.2f}× [{factor:.2f}×, {factor:.2f}×] "
        "the throughput at the start"
    )
    assert (result.ours or "").startswith(text)
    assert (result.ours or "").endswith("over 4 rounds")


def test_the_effect_of_order_needs_different_orders() -> None:
    cells = runs_of_six()
    same = tuple(cell.id for run in range(1, 5) for cell in cells if cell.run == run)
    few = [cell for cell in cells if cell.run < 4]
    for runs_of_order, order, because in (
        (cells, same, "rounds in different orders"),
        (cells, (), "at least four runs of two or more servers"),
        (few, orders(few), "at least four runs of two or more servers"),
    ):
        results = judged("appdynamics-2016", summary(runs_of_order, order), {})
        result = next(
            entry.judgement for entry in results if entry.claim.name == "order-irrelevant"
        )
        assert (result.status, result.because) == ("undecided", because)


def uwsgi_behind_nginx(per_s: float, bare: float = 500) -> ClaimJudgement:
    cells = [
        *runs_of_six(bjoern={"per_s": 8000}, uwsgi={"per_s": bare}),
        *runs("uwsgi/nginx", 100, per_s),
    ]
    return judgement("appdynamics-2016", "nginx-irrelevant", cells)


def test_nginx_explains_a_gap_if_it_closes_at_least_half() -> None:
    # 2,000 is the geometric mean of 500 and 8,000.
    slow = uwsgi_behind_nginx(1900)
    assert slow.status == "confirmed"
    assert slow.ours == (
        "throughput relative to uwsgi-http at 100 connections: uwsgi-nginx 3.80× [3.80×, 3.80×], "
        "bjoern 16.0× [16.0×, 16.0×]"
    )
    assert uwsgi_behind_nginx(2100).status == "refuted"
    assert uwsgi_behind_nginx(400).status == "confirmed"

    no_gap = uwsgi_behind_nginx(2000, bare=9000)
    assert no_gap.because == "a load at which bjoern is faster than uwsgi-http"


def backlogs(
    failed: float, gain: float, count: int = 4, app: str = "files:app"
) -> list[CellResult]:
    """Runs of a server with three backlogs; with the smallest, this share of requests fails."""
    with_failures = outcomes(10_000, round(10_000 * (1 - failed)))

    default = runs("gunicorn/gevent", 200, 100, count=count, app=app)
    small = runs("gunicorn/gevent", 200, 100, count=count, app=app, outcomes=with_failures)
    large = runs("gunicorn/gevent", 200, 100 * gain, count=count, app=app)

    for alias, cells in (("backlog-16", small), ("backlog-4096", large)):
        default += [msgspec.structs.replace(run, alias=alias) for run in cells]
    return default


@pytest.mark.parametrize(
    ("failed", "gain", "status"),
    [
        (0.2, 1.0, "confirmed"),
        (0.0, 1.0, "refuted"),
        (0.2, 1.5, "refuted"),
        (0.01, 1.0, "confirmed"),
    ],
)
def test_a_small_backlog_causes_errors_and_a_large_one_does_not_help(
    failed: float, gain: float, status: str
) -> None:
    result = judgement("ziade-2012", "small-backlog-fails", backlogs(failed, gain))
    assert result.status == status
    assert result.ours == (
        f"at 200 connections: {failed * 100:.1f} % [{failed * 100:.1f} %, {failed * 100:.1f} %] "
        f"errors with a backlog of 16; a backlog of 4,096 gives {gain:.2f}× [{gain:.2f}×, "
        f"{gain:.2f}×] the throughput of a backlog of 2,048"
    )


def test_the_backlog_claim_needs_enough_runs_of_its_app() -> None:
    def judge(cells: list[CellResult]) -> ClaimJudgement:
        return judgement("ziade-2012", "small-backlog-fails", cells)

    assert judge(backlogs(0.2, 1.0, count=3)).because == "more runs, such as --runs 6"
    assert judge(backlogs(0.2, 1.0, app="database:app")).because == (
        "a valid run of backlog-16, gunicorn-gevent, backlog-4096"
    )


def test_an_alias_is_not_the_server_of_the_claim() -> None:
    cells = [*runs("circus/meinheld", 200, 90), *backlogs(0.0, 0.1)]
    without_alias = [run for run in cells if run.alias != "backlog-4096"]
    assert judgement("ziade-2012", "circus-ahead", cells) == judgement(
        "ziade-2012", "circus-ahead", without_alias
    )


# --- failures


def test_errors_are_refuted_only_at_the_published_level() -> None:
    name, study = "uwsgi-fails", "appdynamics-2016"
    few_errors, many_errors = outcomes(10_000, 9_990), outcomes(10_000, 6_000)

    result = judgement(study, name, runs("uwsgi/http", 100, 5, outcomes=many_errors))
    assert result.status == "confirmed"
    assert result.ours == "40.0 % [40.0 %, 40.0 %] errors at 100 connections"

    lower_level = judgement(study, name, runs("uwsgi/http", 1000, 5, outcomes=few_errors))
    assert (lower_level.status, lower_level.because) == (
        "undecided",
        "10,000 connections (--scale full)",
    )

    assert (
        judgement(study, name, runs("uwsgi/http", 10_000, 5, outcomes=few_errors)).status
        == "refuted"
    )


def test_a_run_is_one_observation_regardless_of_its_requests() -> None:
    name, study = "uwsgi-fails", "appdynamics-2016"
    many_errors = outcomes(1_000_000, 600_000)
    result = judgement(study, name, runs("uwsgi/http", 10_000, 5, count=3, outcomes=many_errors))
    assert (result.status, result.because) == ("undecided", "more runs, such as --runs 6")
    assert result.ours == "40.0 % errors at 10,000 connections"

    # Widely varying runs are inconclusive, too.
    cells = runs("uwsgi/http", 10_000, 5)
    for number, ok in enumerate((10_000, 9_000, 5_000, 8_000)):
        cells[number] = msgspec.structs.replace(cells[number], outcomes=outcomes(10_000, ok))
    result = judgement(study, name, cells)
    assert result.status == "undecided"
    assert (result.ours or "").startswith("20.0 % [0.0 %, 5")

    slow = runs("cherrypy", 100, 5, count=1, response_time_ns=times(200 * MS))
    assert judgement(study, "cherrypy-steady", slow).status == "undecided"

    one_run = [cell for cell in runs_of_six() if cell.run == 1]
    assert judgement(study, "bjoern-meinheld-lightest", one_run).status == "undecided"
    assert judgement(study, "cherrypy-gil", one_run).status == "undecided"


def test_unfinished_requests_are_not_errors() -> None:
    unfinished = outcomes(10_000, 5_000, unfinished=5_000)
    result = judgement(
        "appdynamics-2016", "uwsgi-fails", runs("uwsgi/http", 10_000, 5, outcomes=unfinished)
    )
    assert result.status == "refuted"
    assert (result.ours or "").startswith("0.0 % [0.0 %, 0.0 %]")


def test_steady_means_fast_without_errors_at_the_published_level() -> None:
    name, study = "cherrypy-steady", "appdynamics-2016"
    assert judgement(study, name, runs("cherrypy", 10_000, 5)).status == "confirmed"
    assert judgement(study, name, runs("cherrypy", 1000, 5)).because == (
        "10,000 connections (--scale full)"
    )

    slow = runs("cherrypy", 100, 5, response_time_ns=times(200 * MS))
    result = judgement(study, name, slow)
    assert result.status == "refuted"
    assert (result.ours or "").startswith("mean response time 200 [200, 200] ms, 0.0 % ")


# --- resources


def test_the_lightest_servers_need_less_memory_in_every_run() -> None:
    name, study = "bjoern-meinheld-lightest", "appdynamics-2016"
    light = {"resources": resources(memory_peak_bytes=9_000_000)}
    result = judgement(study, name, runs_of_six(bjoern=light, meinheld=light))
    assert result.status == "confirmed"
    assert result.ours == (
        "bjoern 9.0 [9.0, 9.0] MB, meinheld 9.0 [9.0, 9.0] MB; lowest of the other servers: "
        "cherrypy, 20.0 [20.0, 20.0] MB at 100 connections"
    )

    lighter = {"resources": resources(memory_peak_bytes=1_000_000)}
    result = judgement(study, name, runs_of_six(bjoern=light, meinheld=light, uwsgi=lighter))
    assert result.status == "refuted"

    unknown = {"resources": resources()}
    result = judgement(study, name, runs_of_six(bjoern=unknown))
    assert (result.status, result.because) == ("undecided", "memory samples of every server")


def test_using_several_cores_needs_several_cores() -> None:
    name, study = "cherrypy-gil", "appdynamics-2016"
    busy = {"resources": resources(cpu_cores_peak=1.5)}
    assert judgement(study, name, runs_of_six(cherrypy=busy)).status == "confirmed"
    assert judgement(study, name, runs_of_six(bjoern=busy)).status == "refuted"

    result = judgement(study, name, runs_of_six(cherrypy={"limits": limits(cpus=1.0)}))
    assert result.status == "not reproducible"


# --- the list of claims


def test_every_study_has_claims_about_servers_that_it_measures() -> None:
    originals = {name for name in studies() if not name.endswith("-fair")}
    assert {claim.study for claim in CLAIMS} == originals
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert claims_of("slides-2013-fair") == ()

    catalogue = load_catalogue()
    for name in originals:
        table = tomllib.loads(studies()[name].read_text())
        measured = {variant.id for variant in catalogue.select(table["servers"])}
        requirements = [entry.judgement.because or "" for entry in judged(name, summary([]), {})]

        mentioned = {
            word.strip(",")
            for text in requirements
            for word in text.split("run of ")[1:]
            for word in word.split()
        }
        assert {word for word in mentioned if catalogue.has(word)} <= measured

        listed = {server for entry in claims_of(name) for server in entry.servers}
        assert listed <= set(table["servers"])


def test_the_servers_of_a_claim_keep_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    (claim,) = (one for one in claims_of("ziade-2012") if one.name == "small-backlog-fails")
    words = [*claim.command.split()[1:], "--dry-run", "--quiet", "--json", "-"]
    assert run_command(words) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [one["server"] for one in plan["adjustments"]] == [
        "gunicorn-gevent",
        "backlog-16",
        "backlog-4096",
    ]


def test_every_claim_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    for claim in CLAIMS:
        assert f"| `{claim.name}`: {claim.words} | {claim.figure} |" in documented
        assert f"| `{claim.command}` |" in documented


def test_each_claim_is_a_table_row() -> None:
    (table,) = claims_tables(judged("ziade-2012", summary([]), {}))
    rows = {row[0]: row for row in table.rows}
    assert set(rows) == {"`circus-ahead`", "`fastgevent-crashes`", "`small-backlog-fails`"}
    assert rows["`circus-ahead`"][3:] == (
        "–",
        "**undecided**: needs a valid run of circus-meinheld, gunicorn-gevent",
    )
    assert rows["`fastgevent-crashes`"][4].startswith("**not reproducible**: gevent 1.3 removed")
    assert claims_tables([]) == []
