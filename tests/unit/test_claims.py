"""A claim is confirmed or refuted only by an interval, and says else what would decide it."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.claim_judgement import ClaimJudgement
from wsgiload.analysis.claims import CLAIMS, claims_of, judged
from wsgiload.catalogue.names import load_catalogue
from wsgiload.cli._reproduce import studies
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.summary import Summary
from wsgiload.report.claims import claims_tables

from .filled import limits, outcomes, rates, resources, times
from .invented_cells import cell, invalid
from .report_fixture import read_load, summary_of, write_run

MS = 1_000_000
# Four runs, not quite alike.
SPREAD = (0.98, 1.0, 1.01, 1.02)


def runs(
    server: str, load: float, per_s: float, *, is_open: bool = False, count: int = 4, **changes: Any
) -> list[CellResult]:
    """Runs of a server, named with its variant, at a load, with this throughput."""
    name, _, variant = server.partition("/")
    plain: dict[str, Any] = {
        "server": name,
        "variant": variant or "default",
        "app": "files:app",
        "rate": load if is_open else None,
        "connections": None if is_open else int(load),
        "response_time_ns": msgspec.structs.replace(times(MS, 2 * MS), max=2 * MS),
        "outcomes": outcomes(10_000),
        "resources": resources(memory_peak_bytes=20_000_000, cpu_cores_peak=0.9),
        "limits": limits(cpus=2.0),
    }
    return [
        cell(server, run, rate_result=rates(per_s * factor), **plain | changes)
        for run, factor in enumerate(SPREAD[:count], start=1)
    ]


def judgement(study: str, name: str, cells: list[CellResult]) -> ClaimJudgement:
    found = {one.claim.name: one.judgement for one in judged(study, summary(cells), {})}
    return found[name]


def summary(cells: list[CellResult], order: tuple[str, ...] = ()) -> Summary:
    return msgspec.structs.replace(summary_of(cells, servers=(), rates=None), order=order)


SIX = ("bjoern", "cherrypy", "gunicorn/sync", "meinheld", "mod_wsgi/express", "uwsgi/http")


def six(load: float = 100, **of_one: dict[str, Any]) -> list[CellResult]:
    """The six servers, alike but for what is given of one."""
    return [
        one
        for server in SIX
        for one in runs(server, load, **{"per_s": 500} | of_one.get(server.partition("/")[0], {}))
    ]


# --- throughput


def test_the_fastest_is_ahead_of_each_other_one() -> None:
    name, study = "bjoern-fastest", "appdynamics-2016"
    found = judgement(study, name, six(bjoern={"per_s": 900}))
    assert (found.status, found.because) == ("confirmed", None)
    assert found.ours == "1.80× [1.80×, 1.80×] the throughput of cherrypy at 100 connections"
    slower = judgement(study, name, six(bjoern={"per_s": 900}, meinheld={"per_s": 1000}))
    assert slower.status == "refuted"
    assert "of meinheld" in (slower.ours or "")
    assert judgement(study, name, six()).status == "undecided"


def test_the_fastest_is_ahead_of_those_that_vary_too() -> None:
    cells = six(bjoern={"per_s": 900}, meinheld={"per_s": 400})
    per_s = {1: 50.0, 2: 850.0, 3: 100.0, 4: 890.0}
    varied = [
        msgspec.structs.replace(one, rate_result=rates(per_s[one.run]))
        if one.server == "meinheld"
        else one
        for one in cells
    ]
    found = judgement("appdynamics-2016", "bjoern-fastest", varied)
    assert found.status == "undecided"
    assert "of meinheld" in (found.ours or "")


def test_too_few_runs_decide_nothing() -> None:
    cells = [one for one in six(bjoern={"per_s": 9000}) if one.run <= 3]
    found = judgement("appdynamics-2016", "bjoern-fastest", cells)
    assert found.status == "undecided"
    assert found.ours == "18.0× the throughput of cherrypy at 100 connections"
    assert found.because == "more runs, such as --runs 6"


def test_an_invalid_or_absent_server_is_no_loser() -> None:
    cells = [one if one.server != "meinheld" else invalid(one) for one in six()]
    found = judgement("appdynamics-2016", "bjoern-fastest", cells)
    assert (found.status, found.ours) == ("undecided", None)
    assert found.because == "a valid run of meinheld"
    assert judgement("appdynamics-2016", "nginx-irrelevant", six()).because == (
        "a valid run of uwsgi-nginx"
    )
    apart = [*runs("uwsgi/nginx", 10, 5), *runs("gunicorn/nginx", 20, 5)]
    found = judgement("dyedov-2012", "server-irrelevant", apart)
    assert found.because == "valid runs of gunicorn-nginx, uwsgi-nginx at one load level"


def test_only_the_app_of_the_claim_counts() -> None:
    both = [*runs("circus/meinheld", 50, 90), *runs("gunicorn/gevent", 50, 60)]
    both += [
        *runs("circus/meinheld", 200, 10, app="database:app"),
        *runs("gunicorn/gevent", 200, 60, app="database:app"),
    ]
    found = judgement("ziade-2012", "circus-ahead", both)
    assert found.status == "confirmed"
    assert (found.ours or "").endswith("at 50 connections")


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, "confirmed"), (1.5, "refuted"), (0.5, "refuted")]
)
def test_as_fast_is_an_interval_within_ten_percent(factor: float, status: str) -> None:
    cells = [*runs("uwsgi/nginx", 40, 100), *runs("gunicorn/nginx", 40, 100 * factor)]
    assert judgement("dyedov-2012", "server-irrelevant", cells).status == status


def test_a_wide_interval_is_neither_the_same_nor_different() -> None:
    apart = [0.8, 1.3, 0.9, 1.2]
    cells = runs("uwsgi/nginx", 40, 100)
    for one, factor in zip(runs("gunicorn/nginx", 40, 100), apart, strict=True):
        cells.append(msgspec.structs.replace(one, rate_result=rates(100 * factor)))
    found = judgement("dyedov-2012", "server-irrelevant", cells)
    assert (found.status, found.because) == ("undecided", "more runs, such as --runs 6")


def slides(**per_s: float) -> list[CellResult]:
    """The servers of the slides at 3000/s; those that are not given serve all of it."""
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
        one
        for short, server in servers.items()
        for one in runs(server, 3000, per_s.get(short, 3000.0), is_open=True)
    ]


def same_throughput(cells: list[CellResult]) -> list[CellResult]:
    """Every run exactly as fast as the first."""
    return [
        msgspec.structs.replace(
            one, rate_result=rates(round(one.rate_result.goodput_per_s / SPREAD[one.run - 1]))
        )
        for one in cells
        if one.rate_result is not None and one.rate_result.goodput_per_s is not None
    ]


def test_a_ranking_is_refuted_by_one_pair() -> None:
    falling = slides(
        gevent=2900, uwsgi=2800, tornado=2000, cherrypy=1500, gunicorn=1200, twisted=1000
    )
    assert judgement("slides-2013", "ranking", falling).status == "confirmed"
    other = slides(tornado=1000, cherrypy=1500)
    found = judgement("slides-2013", "ranking", other)
    assert found.status == "refuted"
    assert "tornado 1,000/s" in (found.ours or "")


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


HIGHER = "a higher load, such as --rates 6000"


@pytest.mark.parametrize(
    ("name", "server", "per_s", "because"),
    [
        ("ranking", "tornado", (2440, 3000, 3000, 3000), HIGHER),
        ("ranking", "tornado", (2500, 2960, 2900, 2940), "more runs, such as --runs 6"),
        ("pypy-needs-warm-up", "pypy/gevent-warm", (2860, 2640, 3130, 3240), HIGHER),
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


def test_erratic_is_more_spread_from_second_to_second(tmp_path: Path) -> None:
    stored = read_load(write_run(tmp_path / "run"), "waitress@1000#1")
    one = stored.intervals[0]

    def load(*counts: int) -> LoadReport:
        intervals = tuple(msgspec.structs.replace(one, ok=count) for count in counts)
        return msgspec.structs.replace(stored, intervals=intervals)

    cells = [*runs("uwsgi/gevent", 2000, 900), *runs("gunicorn/gevent", 2000, 900)]
    wild, calm = load(100, 900, 500), load(490, 510, 500)
    loads = {cell.id: wild if cell.server == "uwsgi" else calm for cell in cells}

    def status(known: dict[str, LoadReport]) -> ClaimJudgement:
        found = judged("kgriffs-2012", summary(cells), known)
        return next(two.judgement for two in found if two.claim.name == "uwsgi-erratic")

    assert status(loads).status == "confirmed"
    assert (status(loads).ours or "").startswith(
        "standard deviation of the throughput: 40.0× [40.0×, 40.0×] that of gunicorn-gevent"
    )
    swapped = {cell.id: calm if cell.server == "uwsgi" else wild for cell in cells}
    assert status(swapped).status == "refuted"
    short = {cell.id: load(1, 2) for cell in cells}
    assert status(short).because == "longer runs, such as --duration 10s"
    steady = load(500, 500, 500)
    even = {cell.id: steady if cell.server == "uwsgi" else calm for cell in cells}
    assert status(even).because == "a higher load, such as --connections 4000"
    assert status(even).ours == "uwsgi-gevent had a constant throughput at 2,000 connections"


def test_saturation_is_less_than_the_rate_in_every_run() -> None:
    name, study = "cherrypy-saturates", "slides-2013"
    found = judgement(study, name, slides(cherrypy=1785))
    assert found.status == "confirmed"
    assert found.ours == "1,790 [1,740, 1,840] of 3,000 requests/s"
    assert judgement(study, name, same_throughput(slides())).status == "refuted"
    assert judgement(study, name, slides()).status == "undecided"
    assert judgement(study, name, []).because == "a valid run of cherrypy at 3,000/s"


def test_a_cold_pypy_is_slow_and_a_warm_one_is_not() -> None:
    name, study = "pypy-needs-warm-up", "slides-2013"
    found = judgement(study, name, same_throughput(slides(cold=2500)))
    assert found.status == "confirmed"
    assert found.ours == (
        "at 3,000/s: pypy-gevent-cold has 0.83× [0.83×, 0.83×] the throughput of pypy-gevent-warm; "
        "pypy-gevent-warm has 1.00× [1.00×, 1.00×] the throughput of uwsgi-http; "
        "slowest response of pypy-gevent-cold: 2 ms"
    )
    assert judgement(study, name, same_throughput(slides())).status == "refuted"
    assert judgement(study, name, same_throughput(slides(warm=2000))).status == "refuted"


# --- how it was measured


def orders(cells: list[CellResult], seed: int = 1) -> tuple[str, ...]:
    """The cells of each run in a random order of its own."""
    draw = random.Random(seed)
    by_run = {run: [one.id for one in cells if one.run == run] for run in range(1, 5)}
    return tuple(one for ids in by_run.values() for one in draw.sample(ids, len(ids)))


def drifting(end: float) -> tuple[list[CellResult], tuple[str, ...]]:
    """The six servers, which at the end of a round have so many times their throughput at its
    start."""
    cells = six(bjoern={"per_s": 5000})
    order = orders(cells)
    places = {one: order.index(one) % len(SIX) / (len(SIX) - 1) for one in order}
    changed = []
    for one in cells:
        per_s = (one.rate_result.goodput_per_s if one.rate_result else None) or 0.0
        changed.append(
            msgspec.structs.replace(one, rate_result=rates(per_s * end ** places[one.id]))
        )
    return changed, order


@pytest.mark.parametrize(
    ("end", "status"), [(1.0, "confirmed"), (1.05, "confirmed"), (0.5, "refuted"), (2.0, "refuted")]
)
def test_order_matters_where_the_end_of_a_round_differs_from_its_start(
    end: float, status: str
) -> None:
    cells, order = drifting(end)
    results = judged("appdynamics-2016", summary(cells, order), {})
    found = next(one.judgement for one in results if one.claim.name == "order-irrelevant")
    assert found.status == status
    text = (
        f"throughput at the end of a round: {end:.2f}× [{end:.2f}×, {end:.2f}×] that at its start"
    )
    assert (found.ours or "").startswith(text)
    assert (found.ours or "").endswith("over 4 rounds")


def test_order_needs_orders_that_differ() -> None:
    cells = six()
    same = tuple(one.id for run in range(1, 5) for one in cells if one.run == run)
    few = [one for one in cells if one.run < 4]
    for of, order, because in (
        (cells, same, "rounds in different orders"),
        (cells, (), "at least four runs of two or more servers"),
        (few, orders(few), "at least four runs of two or more servers"),
    ):
        results = judged("appdynamics-2016", summary(of, order), {})
        found = next(one.judgement for one in results if one.claim.name == "order-irrelevant")
        assert (found.status, found.because) == ("undecided", because)


def behind_nginx(per_s: float, bare: float = 500) -> ClaimJudgement:
    cells = [*six(bjoern={"per_s": 8000}, uwsgi={"per_s": bare}), *runs("uwsgi/nginx", 100, per_s)]
    return judgement("appdynamics-2016", "nginx-irrelevant", cells)


def test_nginx_explains_a_distance_of_which_it_makes_up_for_half() -> None:
    # 2000 lies half way between 500 and 8000, as a factor.
    slow = behind_nginx(1900)
    assert slow.status == "confirmed"
    assert slow.ours == (
        "throughput relative to uwsgi-http at 100 connections: uwsgi-nginx 3.80× [3.80×, 3.80×], "
        "bjoern 16.0× [16.0×, 16.0×]"
    )
    assert behind_nginx(2100).status == "refuted"
    assert behind_nginx(400).status == "confirmed"
    none = behind_nginx(2000, bare=9000)
    assert none.because == "a load at which bjoern is faster than uwsgi-http"


def backlogs(
    failed: float, gain: float, count: int = 4, app: str = "files:app"
) -> list[CellResult]:
    """The same server with three backlogs; the smallest fails this share of its requests."""
    few = outcomes(10_000, round(10_000 * (1 - failed)))
    usual = runs("gunicorn/gevent", 200, 100, count=count, app=app)
    small = runs("gunicorn/gevent", 200, 100, count=count, app=app, outcomes=few)
    large = runs("gunicorn/gevent", 200, 100 * gain, count=count, app=app)
    for alias, cells in (("backlog-16", small), ("backlog-4096", large)):
        usual += [msgspec.structs.replace(one, alias=alias) for one in cells]
    return usual


@pytest.mark.parametrize(
    ("failed", "gain", "status"),
    [
        (0.2, 1.0, "confirmed"),
        (0.0, 1.0, "refuted"),
        (0.2, 1.5, "refuted"),
        (0.01, 1.0, "confirmed"),
    ],
)
def test_a_small_backlog_fails_requests_and_a_large_one_does_not_help(
    failed: float, gain: float, status: str
) -> None:
    found = judgement("ziade-2012", "small-backlog-fails", backlogs(failed, gain))
    assert found.status == status
    assert found.ours == (
        f"at 200 connections: {failed * 100:.1f} % [{failed * 100:.1f} %, {failed * 100:.1f} %] "
        f"errors with a backlog of 16; a backlog of 4,096 gives {gain:.2f}× [{gain:.2f}×, "
        f"{gain:.2f}×] the throughput of a backlog of 2,048"
    )


def test_backlogs_need_runs_of_their_app() -> None:
    def found(cells: list[CellResult]) -> ClaimJudgement:
        return judgement("ziade-2012", "small-backlog-fails", cells)

    assert found(backlogs(0.2, 1.0, count=3)).because == "more runs, such as --runs 6"
    assert found(backlogs(0.2, 1.0, app="database:app")).because == (
        "a valid run of backlog-16, gunicorn-gevent, backlog-4096"
    )


def test_a_server_under_an_alias_is_not_the_server_itself() -> None:
    cells = [*runs("circus/meinheld", 200, 90), *backlogs(0.0, 0.1)]
    slow = [one for one in cells if one.alias != "backlog-4096"]
    assert judgement("ziade-2012", "circus-ahead", cells) == judgement(
        "ziade-2012", "circus-ahead", slow
    )


# --- failures


def test_errors_are_confirmed_at_any_level_and_refuted_only_at_the_published_one() -> None:
    name, study = "uwsgi-fails", "appdynamics-2016"
    few, many = outcomes(10_000, 9_990), outcomes(10_000, 6_000)
    found = judgement(study, name, runs("uwsgi/http", 100, 5, outcomes=many))
    assert found.status == "confirmed"
    assert found.ours == "40.0 % [40.0 %, 40.0 %] errors at 100 connections"
    below = judgement(study, name, runs("uwsgi/http", 1000, 5, outcomes=few))
    assert (below.status, below.because) == ("undecided", "10,000 connections (--scale full)")
    assert judgement(study, name, runs("uwsgi/http", 10_000, 5, outcomes=few)).status == "refuted"


def test_one_run_is_one_observation_however_many_requests_it_has() -> None:
    name, study = "uwsgi-fails", "appdynamics-2016"
    many = outcomes(1_000_000, 600_000)
    found = judgement(study, name, runs("uwsgi/http", 10_000, 5, count=3, outcomes=many))
    assert (found.status, found.because) == ("undecided", "more runs, such as --runs 6")
    assert found.ours == "40.0 % errors at 10,000 connections"
    # Runs that differ widely say little, too.
    cells = runs("uwsgi/http", 10_000, 5)
    for place, ok in enumerate((10_000, 9_000, 5_000, 8_000)):
        cells[place] = msgspec.structs.replace(cells[place], outcomes=outcomes(10_000, ok))
    found = judgement(study, name, cells)
    assert found.status == "undecided"
    assert (found.ours or "").startswith("20.0 % [0.0 %, 5")
    slow = runs("cherrypy", 100, 5, count=1, response_time_ns=times(200 * MS))
    assert judgement(study, "cherrypy-steady", slow).status == "undecided"
    one = [cell for cell in six() if cell.run == 1]
    assert judgement(study, "bjoern-meinheld-lightest", one).status == "undecided"
    assert judgement(study, "cherrypy-gil", one).status == "undecided"


def test_what_the_end_of_the_load_cut_off_did_not_fail() -> None:
    cut = outcomes(10_000, 5_000, unfinished=5_000)
    found = judgement(
        "appdynamics-2016", "uwsgi-fails", runs("uwsgi/http", 10_000, 5, outcomes=cut)
    )
    assert found.status == "refuted"
    assert (found.ours or "").startswith("0.0 % [0.0 %, 0.0 %]")


def test_steady_is_fast_without_errors_up_to_the_published_level() -> None:
    name, study = "cherrypy-steady", "appdynamics-2016"
    assert judgement(study, name, runs("cherrypy", 10_000, 5)).status == "confirmed"
    assert judgement(study, name, runs("cherrypy", 1000, 5)).because == (
        "10,000 connections (--scale full)"
    )
    slow = runs("cherrypy", 100, 5, response_time_ns=times(200 * MS))
    found = judgement(study, name, slow)
    assert found.status == "refuted"
    assert (found.ours or "").startswith("mean response time 200 [200, 200] ms, 0.0 % ")


# --- resources


def test_the_lightest_are_lighter_in_every_run() -> None:
    name, study = "bjoern-meinheld-lightest", "appdynamics-2016"
    light = {"resources": resources(memory_peak_bytes=9_000_000)}
    found = judgement(study, name, six(bjoern=light, meinheld=light))
    assert found.status == "confirmed"
    assert found.ours == (
        "bjoern 9.0 [9.0, 9.0] MB, meinheld 9.0 [9.0, 9.0] MB; lowest of the other servers: "
        "cherrypy, 20.0 [20.0, 20.0] MB at 100 connections"
    )
    lighter = {"resources": resources(memory_peak_bytes=1_000_000)}
    found = judgement(study, name, six(bjoern=light, meinheld=light, uwsgi=lighter))
    assert found.status == "refuted"
    unknown = {"resources": resources()}
    found = judgement(study, name, six(bjoern=unknown))
    assert (found.status, found.because) == ("undecided", "memory samples of every server")


def test_cores_need_cores() -> None:
    name, study = "cherrypy-gil", "appdynamics-2016"
    busy = {"resources": resources(cpu_cores_peak=1.5)}
    assert judgement(study, name, six(cherrypy=busy)).status == "confirmed"
    assert judgement(study, name, six(bjoern=busy)).status == "refuted"
    found = judgement(study, name, six(cherrypy={"limits": limits(cpus=1.0)}))
    assert found.status == "not reproducible"


# --- the list of claims


def test_every_study_has_claims_about_servers_that_it_measures() -> None:
    originals = {name for name in studies() if not name.endswith("-fair")}
    assert {claim.study for claim in CLAIMS} == originals
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert claims_of("slides-2013-fair") == ()
    catalogue = load_catalogue()
    for name in originals:
        table = tomllib.loads(studies()[name].read_text())
        chosen = {found.id for found in catalogue.select(table["servers"])}
        needs = [one.judgement.because or "" for one in judged(name, summary([]), {})]
        named = {
            word.strip(",")
            for text in needs
            for word in text.split("run of ")[1:]
            for word in word.split()
        }
        assert {word for word in named if catalogue.has(word)} <= chosen
        listed = {server for one in claims_of(name) for server in one.servers}
        assert listed <= set(table["servers"])


def test_every_claim_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    for one in CLAIMS:
        assert f"| `{one.name}`: {one.words} | {one.figure} |" in documented
        assert f"| `{one.command}` |" in documented


def test_claims_are_rows_of_a_table() -> None:
    (table,) = claims_tables(judged("ziade-2012", summary([]), {}))
    rows = {row[0]: row for row in table.rows}
    assert set(rows) == {"`circus-ahead`", "`fastgevent-crashes`", "`small-backlog-fails`"}
    assert rows["`circus-ahead`"][3:] == (
        "–",
        "**undecided**: needs a valid run of circus-meinheld, gunicorn-gevent",
    )
    assert rows["`fastgevent-crashes`"][4].startswith("**not reproducible**: gevent 1.3 removed")
    assert claims_tables([]) == []
