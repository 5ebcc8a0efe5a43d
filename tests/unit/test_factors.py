"""App and Python as factors of a grid: what they name, what they refuse, and what is compared with
what."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator

import wsgiload
from wsgiload import RequestOptions, ServerOptions, SweepOptions, api
from wsgiload.analysis.comparison import compare_runs, compare_servers
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.recommend import recommend, recommend_capacity
from wsgiload.analysis.recommendations import recommendations
from wsgiload.catalogue.bundled import APPS_FOLDER, BUNDLED
from wsgiload.catalogue.contract import Server
from wsgiload.cli import run
from wsgiload.cli._recommend import print_recommendations
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.codec import to_plain
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.environments import provide as environments
from wsgiload.environments import versions as interpreters
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.provide import named_interpreters, provide
from wsgiload.errors import EXIT_OK, EXIT_THRESHOLD, UsageError
from wsgiload.experiment.grid import apps_of, parse_sizes
from wsgiload.experiment.plan import Cell, Experiment, Size, experiment_facts
from wsgiload.experiment.settings import resolve_servers, runs_to_compare
from wsgiload.host.cpus import CpuPlan, available_cpus
from wsgiload.limits import Limits
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.loads.request import Request
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import conditions, read_sweep
from wsgiload.report.findings import response_time_caption
from wsgiload.report.html import _page_title
from wsgiload.report.over_runs import comparison_lines
from wsgiload.results.record import CellRecord, Setting
from wsgiload.results.summary import summarise_cell
from wsgiload.statistics.effect import runs_needed
from wsgiload.sweeps.cell import Bench

from .filled import filled_summary, limits, resources, verdict
from .invented_cells import cell, runs_of
from .invented_cells import experiment as invented

HELLO, CPU = BUNDLED["hello"], BUNDLED["cpu"]


def experiment(servers: tuple[str, ...], *grid: str) -> Experiment:
    return Experiment(
        name="n",
        app=HELLO.app,
        app_dir=HELLO.app_dir,
        request=Request(method="POST", expected_body=HELLO.expected_body),
        load=LoadSettings(duration_ns=1),
        levels=(Level(rate_per_s=1.0),),
        servers=servers,
        sizes=parse_sizes(None, None, grid),
        bundled=True,
    )


def summary_of(facts: ExperimentFacts) -> Summary:
    return msgspec.structs.replace(filled_summary({}, []), experiment=facts)


# --- names


def test_app_and_python_are_part_of_a_name() -> None:
    sizes = parse_sizes(None, None, ["threads=4", "app=hello, cpu", "python=3.11,3.13"])
    assert sizes[1] == Size(None, 4, None, None, "hello", "3.13")
    assert apps_of(sizes) == ["hello", "cpu"]
    found = resolve_servers(
        experiment(("waitress",), "threads=4", "app=hello,cpu", "python=3.11,3.14t")
    )
    assert list(found) == [
        "waitress-t4-py3.11-hello",
        "waitress-t4-py3.14t-hello",
        "waitress-t4-py3.11-cpu",
        "waitress-t4-py3.14t-cpu",
    ]


def test_a_baseline_answers_as_hello_does_and_knows_no_python() -> None:
    assert list(resolve_servers(experiment(("node",), "app=hello,cpu", "python=3.11,3.13"))) == [
        "node-hello"
    ]
    assert list(resolve_servers(experiment(("node",), "python=3.11,3.13"))) == ["node"]
    with pytest.raises(UsageError, match="none of these servers runs WSGI apps; omit APP"):
        resolve_servers(experiment(("node",), "app=cpu"))


def test_a_name_of_ones_own_that_the_grid_makes_too_is_refused() -> None:
    """waitress has no workers to name; one of the two would be measured under the other's name."""
    with pytest.raises(
        UsageError,
        match="two servers would be named a-w1-t4; give one an alias: --servers alias=NAME",
    ):
        resolve_servers(
            experiment(("a=gunicorn-gthread", "a-w1=waitress"), "workers=1", "threads=4")
        )


def test_each_app_is_asked_and_checked_in_its_own_way() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    served = plan.served("cpu")
    assert (served.app, served.app_dir) == ("cpu:app", APPS_FOLDER)
    assert (served.request.path, served.request.expected_body) == (CPU.path, CPU.expected_body)
    assert served.request.method == "POST", "what is no matter of the app stays"
    assert plan.served(None).request is plan.request


def test_the_experiment_tells_every_app() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    facts = experiment_facts(plan, tuple(resolve_servers(plan)))
    assert (facts.app, facts.path) == (("hello:app", "cpu:app"), "/")
    assert "app: see the server's name" in conditions(facts)
    assert _page_title(read_sweep(summary_of(facts))) == "hello:app and cpu:app /: 0 servers"
    alone = experiment_facts(experiment(("waitress",), "app=cpu"), ("waitress-cpu",))
    assert alone.app == "cpu:app"
    assert "each app" not in conditions(alone)


def test_a_cell_tells_which_app_it_served() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    cores = available_cpus()
    setting = Setting(plan, CpuPlan(cores, cores, False, cores), Limits())
    failure = CellFailure(step="start", message="it fell over", log_tail="")
    told = [
        summarise_cell(
            CellRecord(Cell(name, plan.levels[0], 1, 1), failure=failure), found, setting
        ).app
        for name, found in resolve_servers(plan).items()
    ]
    assert told == ["hello:app", "cpu:app"]


# --- what is refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--grid", "app=hallo"],
            "unknown bundled app 'hallo'; choose one of hello, ok, unsized, json1k, events, echo",
        ),
        (
            ["--grid", "python=3"],
            "--grid python=3: '3' is not a version; write it like python=3.11,3.13",
        ),
        (
            ["--grid", "python=3.13", "python=3.11"],
            "python was given twice; list all its values in one place",
        ),
        (
            ["shop:app", "--grid", "app=hello,cpu"],
            "--grid app= and APP 'shop:app' are mutually exclusive",
        ),
        (
            ["--app-name", "cpu", "--grid", "app=hello"],
            "--grid app= and --app-name are mutually exclusive",
        ),
        (
            ["--path", "/x", "--grid", "app=hello"],
            "--grid app= and --path are mutually exclusive; omit it: each bundled app has its own",
        ),
        (
            ["--expect-length", "5", "--grid", "app=cpu"],
            "--grid app= and --expect-length are mutually exclusive; omit it",
        ),
        (
            ["shop:app", "--grid", "python=3.11"],
            "your own app uses one interpreter per run",
        ),
        (
            ["--python", "python3", "--grid", "python=3.11"],
            "--grid python= and --python are mutually exclusive",
        ),
        (
            ["--python-version", "3.11", "--grid", "python=3.11"],
            "--grid python= and --python-version are mutually exclusive",
        ),
    ],
)
@pytest.mark.parametrize("name", ["sweep", "capacity"])
def test_what_is_chosen_twice_or_is_not_there_is_refused(
    name: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slo = ["--slo", "p99<50ms"] if name == "capacity" else []
    assert run([name, *words, *slo, "--servers", "waitress", "--dry-run"]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_one_list_of_rates_is_not_looked_for_with_several_apps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run"]
    assert run([*words, "--grid", "app=hello,cpu"]) == 2
    assert "--slo with several apps requires --rates" in capsys.readouterr().err
    assert run([*words, "--grid", "app=cpu"]) == 0
    assert run([*words, "--grid", "app=hello,cpu", "--rates", "100"]) == 0


def test_from_python_the_same_is_asked_for_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Experiment] = []
    monkeypatch.setattr(api, "run_sweep", lambda plan, _: asked.append(plan))
    grid: dict[str, list[str | int]] = {
        "workers": [1, 2],
        "app": ["cpu", "json1k"],
        "python": ["3.11", "3.13"],
    }
    wsgiload.sweep(
        servers=["waitress"],
        server=ServerOptions(grid=grid | {"profile": ["tuned", "stock"], "keepalive": ["off", 5]}),
        options=SweepOptions(compare=True),
    )
    (plan,) = asked
    words = [
        "workers=1,2",
        "app=cpu,json1k",
        "python=3.11,3.13",
        "profile=tuned,stock",
        "keepalive=off,5",
    ]
    assert plan.sizes == parse_sizes(None, None, words)
    # Eight settings of each app: waitress has one process, whatever is asked for.
    assert (plan.name, plan.app, plan.bundled, plan.runs) == (
        "cpu-json1k",
        "cpu:app",
        True,
        runs_needed(28),
    )
    apps = ServerOptions(grid={"app": ["cpu"]})
    pythons = ServerOptions(grid={"python": ["3.11"]})
    for given, says in (
        (
            {"server": ServerOptions(grid={"cores": [1]})},
            "--grid cores=1: unknown factor; use workers, threads, profile, keepalive, app or python",
        ),
        ({"server": ServerOptions(grid={"workers": [0]})}, "'0' is not a number from 1"),
        (
            {"server": apps, "app": "shop:app"},
            "--grid app= and APP 'shop:app' are mutually exclusive",
        ),
        (
            {"server": apps, "request": RequestOptions(path="/x")},
            "--grid app= and --path are mutually exclusive; omit it",
        ),
        ({"server": ServerOptions(grid={"app": ["cup"]})}, "unknown bundled app 'cup'"),
        (
            {"server": pythons, "app": "shop:app"},
            "--grid python= and APP 'shop:app' are mutually exclusive; your own app uses one "
            "interpreter per run",
        ),
        (
            {"server": replace(pythons, python="py")},
            "--grid python= and --python are mutually exclusive",
        ),
    ):
        with pytest.raises(UsageError, match=re.escape(says)):
            wsgiload.sweep(**cast(Any, given))


# --- interpreters


def interpreter(version: str, base: str | None = None) -> AppInterpreter:
    path = Path(f"/pythons/{base or version}/bin/python")
    major, minor = map(int, version.rstrip("t").split(".")[:2])
    return AppInterpreter(
        path, version, (major, minor), "CPython", path, (), "found", MappingProxyType({})
    )


INSTALLED = (interpreter("3.11.7"), interpreter("3.12.1"), interpreter("3.13.0"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "installed_interpreters", lambda _: INSTALLED)


def named(servers: tuple[str, ...], *grid: str) -> dict[str, str]:
    found = resolve_servers(experiment(servers, *grid))
    return {asked: one.version for asked, one in named_interpreters(found).items()}


@pytest.mark.usefixtures("installed")
def test_each_version_is_found_once() -> None:
    assert named(("waitress", "node"), "python=3.11,3.13", "app=hello,cpu") == {
        "3.11": "3.11.7",
        "3.13": "3.13.0",
    }
    assert named(("waitress",), "app=hello,cpu") == {}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("servers", "versions", "says"),
    [
        (
            ("waitress",),
            "3.11,3.99",
            r"Python 3\.99 is not installed; installed versions: 3\.11\.7, 3\.12\.1, 3\.13\.0",
        ),
        (
            ("waitress", "circus-waitress"),
            "3.11,3.13",
            r"circus runs on Python >=3\.11,<=3\.12, not on CPython 3\.13",
        ),
        (
            ("pypy",),
            "3.13",
            r"pypy runs on PyPy .*, not on CPython 3\.13\.0; omit this server from --servers, or",
        ),
        (
            ("waitress",),
            "3.13,3.13.0",
            r"--grid python=3\.13,3\.13\.0: both are Python 3\.13\.0; list each version once",
        ),
    ],
)
def test_a_version_that_cannot_be_had_is_refused(
    servers: tuple[str, ...], versions: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        named(servers, f"python={versions}")


@pytest.mark.usefixtures("installed")
def test_the_plan_tells_which_build_a_version_means(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--servers", "waitress", "--grid", "python=3.11,3.13", "app=hello,cpu", "--dry-run"]
    for command in (["sweep", "--rates", "100"], ["capacity", "--slo", "p99<50ms"]):
        assert run([*command, *words]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert plan["pythons"] == {"3.11": "3.11.7", "3.13": "3.13.0"}
        assert len(plan["servers"]) == 4
    assert run(["sweep", *words[:-2], "python=3.99", "--dry-run"]) == 2


@pytest.mark.usefixtures("installed")
def test_a_server_is_installed_once_for_each_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def provision_all(
        servers: Iterable[Server], on: AppInterpreter, *, log: Callable[[str], None]
    ) -> dict[str, Any]:
        names = [server.name for server in servers]
        asked.append((on.version, sorted(set(names))))
        return {name: f"{name} on {on.version}" for name in names}

    monkeypatch.setattr(environments, "provision_all", provision_all)
    found = resolve_servers(experiment(("waitress", "node"), "python=3.11,3.13", "app=hello,cpu"))
    usual = interpreter("3.12.1")
    made: dict[str, Any] = provide(found, {None: usual} | named_interpreters(found), print)
    assert asked == [("3.12.1", ["node"]), ("3.11.7", ["waitress"]), ("3.13.0", ["waitress"])]
    assert made["waitress-py3.13-cpu"] == made["waitress-py3.13-hello"] == "waitress on 3.13.0"
    assert made["waitress-py3.11-cpu"] == "waitress on 3.11.7"
    assert made["node-hello"] == "node on 3.12.1"
    assert made.keys() == found.keys()


def test_how_much_a_server_serves_at_once_is_measured_once_whatever_it_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is measured on an app of its own."""
    module = sys.modules[
        "wsgiload.sweeps.sweep"
    ]  # the name in the package is taken by the function
    measured: list[str] = []
    monkeypatch.setattr(module, "measure_concurrency", lambda found, *_: measured.append(found.id))
    plan = experiment(("waitress",), "profile=stock,tuned", "app=hello,cpu", "python=3.11,3.13")
    cores = available_cpus()
    setting = Setting(plan, CpuPlan(cores, cores, False, cores), Limits(cpus=1.0))
    found, missing = resolve_servers(plan), cast(Any, None)
    sweep = module._Sweep(
        found, (), Bench(setting, missing, missing), missing, module.SweepEvents(), []
    )
    for one in found.values():
        module._concurrency(sweep, one, missing)
    assert measured == ["waitress-stock-py3.11-hello", "waitress-stock-py3.13-hello"]


# --- what is compared


def compared(cells: Sequence[CellResult]) -> Summary:
    return filled_summary({}, cells, comparisons=compare_servers(cells))


def with_apps(slow: float = 2.0) -> list[CellResult]:
    """Two servers with two apps, six runs each; of ``hello`` one server stands there under a second
    name, too."""
    means_ns = {
        "a-hello": 10e6,
        "b-hello": 13e6,
        "a-cpu": 10e6 * slow,
        "b-cpu": 13e6 * slow,
        "again-hello": 10e6,
    }
    return [
        msgspec.structs.replace(
            one,
            app=f"{one.server.rpartition('-')[2]}:app",
            server="a-hello" if one.server == "again-hello" else one.server,
        )
        for one in invented(1, means_ns, runs=7, run_effect=0.01)
    ]


def test_only_servers_with_the_same_app_are_compared() -> None:
    entries = compare_servers(with_apps())
    assert [(entry.first, entry.second, entry.app) for entry in entries] == [
        ("a-hello", "b-hello", "hello:app"),
        ("a-hello", "again-hello", "hello:app"),
        ("b-hello", "again-hello", "hello:app"),
        ("a-cpu", "b-cpu", "cpu:app"),
    ]
    adjusted = {
        entry.app: entry.p_adjusted / entry.p
        for entry in entries[::-1]
        if entry.p_adjusted is not None and entry.p
    }
    assert adjusted == {"cpu:app": 1.0, "hello:app": 3.0}, "each app is a question of its own"
    assert entries[0].aa_factor is not None
    assert entries[3].aa_factor is None, (
        "what one server showed of itself was shown with another app"
    )


def test_cells_stored_before_there_was_a_choice_are_compared_as_ever() -> None:
    old = [msgspec.structs.replace(one, app=None) for one in with_apps()]
    assert len(compare_servers(old)) == math.comb(5, 2)


def test_versions_of_python_are_compared_and_are_no_two_names_for_one_server() -> None:
    cells = [
        msgspec.structs.replace(
            one, server="waitress", size=one.server.partition("-")[2], app="hello:app"
        )
        for one in invented(2, {"waitress-py3.11": 13e6, "waitress-py3.13": 10e6})
    ]
    (entry,) = compare_servers(cells)
    assert (entry.conclusion, entry.same_server) == ("different", False)


def test_the_page_says_that_apps_are_not_compared_and_counts_the_pairs_of_each() -> None:
    lines = [text for text, _ in comparison_lines(compared(with_apps()))]
    assert any(line.startswith("Only servers of the same app are compared.") for line in lines)
    assert not any("cannot tell" in line for line in lines), (
        "seven rounds carry the three pairs of an app"
    )
    alone = [one for one in with_apps() if one.app == "cpu:app"]
    lines = [text for text, _ in comparison_lines(compared(alone))]
    assert not any("the same app" in line for line in lines)


def test_no_sentence_goes_from_the_quickest_of_one_app_to_the_slowest_of_another() -> None:
    servers = ["a-hello", "b-hello", "a-cpu", "b-cpu"]
    facts = {"rates": (1000.0,), "servers": tuple(servers)}
    cells = [one for one in with_apps() if one.run == 1 and one.id.partition("@")[0] in servers]
    sweep = read_sweep(filled_summary(facts, cells))
    hello = r"p99 response time with hello:app ranged from [\d.]+ ms \(a-hello\) to [\d.]+ ms \(b-hello\)\."
    cpu = r"p99 response time with cpu:app ranged from [\d.]+ ms \(a-cpu\) to [\d.]+ ms \(b-cpu\)\."
    assert re.search(f"{hello} .*{cpu}", response_time_caption(sweep))
    sentence = answer_of(filled_summary(facts, cells)).sentence
    assert re.search(r"hello:app: In 1 run, [ab]-hello .*cpu:app: In 1 run, [ab]-cpu ", sentence)


def test_two_stored_runs_tell_the_app_where_it_is_one() -> None:
    before = runs_of("waitress", [1e6] * 4, app="hello:app")
    assert compare_runs(before, before)[0].app == "hello:app"
    after = [msgspec.structs.replace(one, app="cpu:app") for one in before]
    assert compare_runs(before, after)[0].app is None


def test_as_many_runs_as_the_pairs_of_one_app_need() -> None:
    three = experiment(("waitress", "wsgiref", "cheroot"), "app=hello,cpu")
    assert runs_to_compare(three) == runs_needed(3) == 7
    assert runs_to_compare(experiment(("waitress",), "app=hello,cpu")) == 6
    assert runs_to_compare(experiment(("waitress",), "python=3.11,3.13,3.12")) == 7


# --- what is recommended


def test_each_app_has_a_recommendation_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    objective = parse_objective(["p99<50ms"])
    used = {
        "resources": resources(memory_peak_bytes=2**27),
        "limits": limits(memory_bytes=2**29),
    }
    factors = (0.97, 1.0, 1.03, 0.99, 1.02, 1.01)

    def of(name: str, p99_ms: float) -> list[CellResult]:
        app = {"app": f"{name.rpartition('-')[2]}:app"}
        return [
            cell(name, at, p99_ms * 1e6 * factor, **used, **app)
            for at, factor in enumerate(factors, 1)
        ]

    cells = of("a-hello", 5.0) + of("b-hello", 9.0) + of("a-cpu", 30.0) + of("b-cpu", 900.0)

    def tell(cells: Sequence[CellResult]) -> int:
        entries = recommendations(
            cells, lambda of_app: recommend(of_app, objective), objective.texts
        )
        return print_recommendations(entries, EXIT_OK)

    assert tell(cells) == EXIT_OK
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("hello:app: Recommended: a-hello, the leanest of 2 configurations")
    assert second.startswith("cpu:app: Recommended: a-cpu, which meets p99<50ms")
    missed = of("a-hello", 5.0) + of("a-cpu", 900.0)
    assert tell(missed) == EXIT_THRESHOLD
    assert "cpu:app: No recommendation: no configuration meets" in capsys.readouterr().out
    assert tell(of("a-hello", 5.0)) == EXIT_OK
    assert capsys.readouterr().out.startswith("Recommended: a-hello")


def test_so_has_each_app_of_a_capacity_search(capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        ServerCapacity(
            server=f"a-{app}",
            app=f"{app}:app",
            rate_per_s=100.0,
            bracket=(100.0, 102.0),
            confirmed=(6, 6),
            verdict=verdict(),
            estimate_per_s=101.0,
            interval_95=(99.0, 103.0),
            limited_by=None,
            strict_per_s=None,
            at_rate=None,
            failure=None,
            trials=(),
        )
        for app in ("hello", "cpu")
    ]
    found = recommendations(entries, recommend_capacity, ["p99<50ms"])
    schema = load_schema("capacity-2")
    described = Draft202012Validator(
        schema["properties"]["recommendations"] | {"$defs": schema["$defs"]}
    )
    assert [
        error.message for error in described.iter_errors([to_plain(one) for one in found])
    ] == []
    assert print_recommendations(found, EXIT_OK) == EXIT_OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "hello:app: Recommended: a-hello",
        "cpu:app: Recommended: a-cpu",
    ]
