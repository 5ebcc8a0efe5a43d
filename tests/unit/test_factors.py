"""The factors app and Python of a grid: names, rejected combinations, comparisons and
recommendations."""

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
from wsgiload.cli._decide import print_recommendations
from wsgiload.documents.capacity import CapacityTrial, ServerCapacity
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.codec import to_plain
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.environments import user_environment as environments
from wsgiload.environments import versions as interpreters
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.user_environment import named_interpreters, provide
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
from .invented_cells import experiment as invented_experiment

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


def test_app_and_python_are_part_of_a_servers_name() -> None:
    sizes = parse_sizes(None, None, ["threads=4", "app=hello, cpu", "python=3.11,3.13"])
    assert sizes[1] == Size(None, 4, None, None, "hello", "3.13")
    assert apps_of(sizes) == ["hello", "cpu"]

    servers = resolve_servers(
        experiment(("waitress",), "threads=4", "app=hello,cpu", "python=3.11,3.14t")
    )

    assert list(servers) == [
        "waitress-t4-py3.11-hello",
        "waitress-t4-py3.14t-hello",
        "waitress-t4-py3.11-cpu",
        "waitress-t4-py3.14t-cpu",
    ]


def test_a_baseline_serves_only_hello_and_has_no_python_version() -> None:
    assert list(resolve_servers(experiment(("node",), "app=hello,cpu", "python=3.11,3.13"))) == [
        "node-hello"
    ]
    assert list(resolve_servers(experiment(("node",), "python=3.11,3.13"))) == ["node"]
    with pytest.raises(UsageError, match="none of these servers runs WSGI apps; omit APP"):
        resolve_servers(experiment(("node",), "app=cpu"))


def test_an_alias_that_equals_a_generated_name_is_rejected() -> None:
    """Without the check, one server would be measured under the other's name: waitress has no
    workers, so its name does not contain their number."""
    with pytest.raises(
        UsageError,
        match="two servers would be named a-w1-t4; give one an alias: --servers alias=NAME",
    ):
        resolve_servers(
            experiment(("a=gunicorn-gthread", "a-w1=waitress"), "workers=1", "threads=4")
        )


def test_each_app_has_its_own_path_and_expected_body() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    served = plan.served("cpu")
    assert (served.app, served.app_dir) == ("cpu:app", APPS_FOLDER)
    assert (served.request.path, served.request.expected_body) == (CPU.path, CPU.expected_body)
    assert served.request.method == "POST", "settings that do not depend on the app are kept"
    assert plan.served(None).request is plan.request


def test_the_facts_of_an_experiment_list_every_app() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    facts = experiment_facts(plan, tuple(resolve_servers(plan)))
    assert (facts.app, facts.path) == (("hello:app", "cpu:app"), "/")
    assert "app: see the server's name" in conditions(facts)
    assert _page_title(read_sweep(summary_of(facts))) == "hello:app and cpu:app /: 0 servers"
    single = experiment_facts(experiment(("waitress",), "app=cpu"), ("waitress-cpu",))
    assert single.app == "cpu:app"
    assert "each app" not in conditions(single)


def test_the_result_of_a_cell_names_its_app() -> None:
    plan = experiment(("waitress",), "app=hello,cpu")
    cores = available_cpus()
    setting = Setting(plan, CpuPlan(cores, cores, False, cores), Limits())
    failure = CellFailure(step="start", message="it fell over", log_tail="")
    apps = [
        summarise_cell(
            CellRecord(Cell(name, plan.levels[0], 1, 1), failure=failure), server, setting
        ).app
        for name, server in resolve_servers(plan).items()
    ]

    assert apps == ["hello:app", "cpu:app"]


# --- rejected combinations


@pytest.mark.parametrize(
    ("options", "message"),
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
            ["shop:app", "--grid", "python=3.11"],
            "your own app uses one interpreter per run",
        ),
        (
            ["--python", "python3", "--grid", "python=3.11"],
            "--grid python= and --python are mutually exclusive",
        ),
    ],
)
@pytest.mark.parametrize("name", ["sweep", "capacity"])
def test_conflicting_or_unknown_choices_are_rejected(
    name: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slo = ["--slo", "p99<50ms"] if name == "capacity" else []
    assert run([name, *options, *slo, "--servers", "waitress", "--dry-run", "--json", "-"]) == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert stderr.count("\n") == 1


def test_an_objective_needs_no_rates_however_many_apps_there_are() -> None:
    options = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run", "--json", "-"]
    assert run([*options, "--grid", "app=hello,cpu"]) == 0
    assert run([*options, "--grid", "app=cpu"]) == 0
    assert run([*options, "--grid", "app=hello,cpu", "--rates", "100"]) == 0


def test_the_python_api_accepts_and_rejects_the_same_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Experiment] = []
    monkeypatch.setattr(api, "run_sweep", lambda plan, _: plans.append(plan))
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
    (plan,) = plans
    options = [
        "workers=1,2",
        "app=cpu,json1k",
        "python=3.11,3.13",
        "profile=tuned,stock",
        "keepalive=off,5",
    ]

    assert plan.sizes == parse_sizes(None, None, options)
    # Eight configurations per app: waitress always has one process.
    assert (plan.name, plan.app, plan.bundled, plan.runs) == (
        "cpu-json1k",
        "cpu:app",
        True,
        runs_needed(28),
    )

    apps = ServerOptions(grid={"app": ["cpu"]})
    pythons = ServerOptions(grid={"python": ["3.11"]})
    for arguments, message in (
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
        with pytest.raises(UsageError, match=re.escape(message)):
            wsgiload.sweep(**cast(Any, arguments))


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
    monkeypatch.setattr(interpreters, "installed_interpreters", lambda *_: INSTALLED)


def resolved_versions(servers: tuple[str, ...], *grid: str) -> dict[str, str]:
    resolved = resolve_servers(experiment(servers, *grid))
    return {
        version: interpreter.version
        for version, interpreter in named_interpreters(resolved).items()
    }


@pytest.mark.usefixtures("installed")
def test_each_python_version_is_resolved_once() -> None:
    assert resolved_versions(("waitress", "node"), "python=3.11,3.13", "app=hello,cpu") == {
        "3.11": "3.11.7",
        "3.13": "3.13.0",
    }
    assert resolved_versions(("waitress",), "app=hello,cpu") == {}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("servers", "versions", "message"),
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
def test_an_unusable_python_version_is_rejected(
    servers: tuple[str, ...], versions: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        resolved_versions(servers, f"python={versions}")


@pytest.mark.usefixtures("installed")
def test_the_plan_contains_the_exact_python_versions(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--servers",
        "waitress",
        "--grid",
        "python=3.11,3.13",
        "app=hello,cpu",
        "--dry-run",
        "--json",
        "-",
    ]
    for command in (["sweep", "--rates", "100"], ["capacity", "--slo", "p99<50ms"]):
        assert run([*command, *options]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert plan["pythons"] == {"3.11": "3.11.7", "3.13": "3.13.0"}
        assert len(plan["servers"]) == 4
    assert run(["sweep", *options[:-2], "python=3.99", "--dry-run", "--json", "-"]) == 2


@pytest.mark.usefixtures("installed")
def test_a_server_is_installed_once_per_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[tuple[str, list[str]]] = []

    def provision_all(
        servers: Iterable[Server], on: AppInterpreter, *, log: Callable[[str], None]
    ) -> dict[str, Any]:
        names = [server.name for server in servers]
        installed.append((on.version, sorted(set(names))))
        return {name: f"{name} on {on.version}" for name in names}

    monkeypatch.setattr(environments, "provision_all", provision_all)
    resolved = resolve_servers(
        experiment(("waitress", "node"), "python=3.11,3.13", "app=hello,cpu")
    )
    default = interpreter("3.12.1")
    provided: dict[str, Any] = provide(
        resolved, {None: default} | named_interpreters(resolved), print
    )

    assert installed == [("3.12.1", ["node"]), ("3.11.7", ["waitress"]), ("3.13.0", ["waitress"])]
    assert (
        provided["waitress-py3.13-cpu"] == provided["waitress-py3.13-hello"] == "waitress on 3.13.0"
    )
    assert provided["waitress-py3.11-cpu"] == "waitress on 3.11.7"
    assert provided["node-hello"] == "node on 3.12.1"
    assert provided.keys() == resolved.keys()


def test_concurrency_is_measured_once_per_interpreter_regardless_of_the_app(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The measurement uses a dedicated app."""
    # As an attribute of the package, this name is the function.
    module = sys.modules["wsgiload.sweeps.sweep"]
    measured: list[str] = []
    monkeypatch.setattr(
        module, "measure_concurrency", lambda server, *_: measured.append(server.id)
    )
    plan = experiment(("waitress",), "profile=stock,tuned", "app=hello,cpu", "python=3.11,3.13")
    cores = available_cpus()
    setting = Setting(plan, CpuPlan(cores, cores, False, cores), Limits(cpus=1.0))
    servers, missing = resolve_servers(plan), cast(Any, None)
    sweep = module._Sweep(
        servers, (), Bench(setting, missing, missing), missing, module.SweepEvents(), []
    )
    for server in servers.values():
        module._concurrency(sweep, server, missing)

    assert measured == ["waitress-stock-py3.11-hello", "waitress-stock-py3.13-hello"]


# --- comparisons


def with_comparisons(cells: Sequence[CellResult]) -> Summary:
    return filled_summary({}, cells, comparisons=compare_servers(cells))


def with_apps(slow: float = 2.0) -> list[CellResult]:
    """Two servers with two apps, seven runs each. With ``hello``, one server also has an alias."""
    means_ns = {
        "a-hello": 10e6,
        "b-hello": 13e6,
        "a-cpu": 10e6 * slow,
        "b-cpu": 13e6 * slow,
        "again-hello": 10e6,
    }
    return [
        msgspec.structs.replace(
            result,
            app=f"{result.server.rpartition('-')[2]}:app",
            server="a-hello" if result.server == "again-hello" else result.server,
        )
        for result in invented_experiment(1, means_ns, runs=7, run_effect=0.01)
    ]


def test_only_servers_with_the_same_app_are_compared() -> None:
    entries = compare_servers(with_apps())
    assert [(entry.first, entry.second, entry.app) for entry in entries] == [
        ("a-hello", "b-hello", "hello:app"),
        ("a-hello", "again-hello", "hello:app"),
        ("b-hello", "again-hello", "hello:app"),
        ("a-cpu", "b-cpu", "cpu:app"),
    ]
    assert entries[0].aa_factor is not None
    assert entries[3].aa_factor is None, "the A/A test used another app"


def test_stored_cells_without_an_app_are_all_compared() -> None:
    old = [msgspec.structs.replace(result, app=None) for result in with_apps()]
    assert len(compare_servers(old)) == math.comb(5, 2)


def test_python_versions_of_a_server_are_compared_as_different_servers() -> None:
    cells = [
        msgspec.structs.replace(
            result, server="waitress", size=result.server.partition("-")[2], app="hello:app"
        )
        for result in invented_experiment(2, {"waitress-py3.11": 13e6, "waitress-py3.13": 10e6})
    ]
    (entry,) = compare_servers(cells)
    assert (entry.conclusion, entry.same_server) == ("different", False)


def test_the_report_explains_that_apps_are_not_compared_and_counts_pairs_per_app() -> None:
    lines = [text for text, _ in comparison_lines(with_comparisons(with_apps()))]
    assert any(line.startswith("Only servers of the same app are compared.") for line in lines)
    assert not any("is below 50 %" in line for line in lines), (
        "seven rounds are enough for the three pairs per app"
    )
    with_cpu = [result for result in with_apps() if result.app == "cpu:app"]
    lines = [text for text, _ in comparison_lines(with_comparisons(with_cpu))]
    assert not any("the same app" in line for line in lines)


def test_no_sentence_compares_servers_with_different_apps() -> None:
    servers = ["a-hello", "b-hello", "a-cpu", "b-cpu"]
    facts = {"rates": (1000.0,), "servers": tuple(servers)}
    cells = [
        result
        for result in with_apps()
        if result.run == 1 and result.id.partition("@")[0] in servers
    ]
    sweep = read_sweep(filled_summary(facts, cells))
    hello = r"p99 response time with hello:app ranged from [\d.]+ ms \(a-hello\) to [\d.]+ ms \(b-hello\)\."
    cpu = r"p99 response time with cpu:app ranged from [\d.]+ ms \(a-cpu\) to [\d.]+ ms \(b-cpu\)\."

    assert re.search(f"{hello} .*{cpu}", response_time_caption(sweep))

    sentence = answer_of(filled_summary(facts, cells)).sentence
    assert re.search(r"hello:app: In 1 run, [ab]-hello .*cpu:app: In 1 run, [ab]-cpu ", sentence)


def test_a_comparison_of_stored_runs_names_the_app_only_if_both_have_the_same() -> None:
    before = runs_of("waitress", [1e6] * 4, app="hello:app")
    assert compare_runs(before, before)[0].app == "hello:app"
    after = [msgspec.structs.replace(result, app="cpu:app") for result in before]
    assert compare_runs(before, after)[0].app is None


def test_the_number_of_runs_depends_on_the_pairs_per_app() -> None:
    three = experiment(("waitress", "wsgiref", "cheroot"), "app=hello,cpu")
    assert runs_to_compare(three) == runs_needed(3) == 7
    assert runs_to_compare(experiment(("waitress",), "app=hello,cpu")) == 6
    assert runs_to_compare(experiment(("waitress",), "python=3.11,3.13,3.12")) == 7


# --- recommendations


def test_each_app_has_its_own_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    objective = parse_objective(["p99<50ms"])
    used = {
        "resources": resources(memory_peak_bytes=2**27),
        "limits": limits(memory_bytes=2**29),
    }
    factors = (0.97, 1.0, 1.03, 0.99, 1.02, 1.01)

    def results_of(name: str, p99_ms: float) -> list[CellResult]:
        app = {"app": f"{name.rpartition('-')[2]}:app"}
        return [
            cell(name, run, p99_ms * 1e6 * factor, **used, **app)
            for run, factor in enumerate(factors, 1)
        ]

    cells = (
        results_of("a-hello", 5.0)
        + results_of("b-hello", 9.0)
        + results_of("a-cpu", 30.0)
        + results_of("b-cpu", 900.0)
    )

    def recommend_and_print(cells: Sequence[CellResult]) -> int:
        entries = recommendations(
            cells, lambda results: recommend(results, objective), objective.texts
        )
        return print_recommendations(entries, EXIT_OK)

    assert recommend_and_print(cells) == EXIT_OK

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("hello:app: Recommended: a-hello, the leanest of 2 configurations")
    assert second.startswith("cpu:app: Recommended: a-cpu, which meets p99<50ms")

    missed = results_of("a-hello", 5.0) + results_of("a-cpu", 900.0)
    assert recommend_and_print(missed) == EXIT_THRESHOLD
    assert "cpu:app: No recommendation: no configuration meets" in capsys.readouterr().out
    assert recommend_and_print(results_of("a-hello", 5.0)) == EXIT_OK
    assert capsys.readouterr().out.startswith("Recommended: a-hello")


def test_each_app_of_a_capacity_search_has_its_own_recommendation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trial = CapacityTrial(
        cell="a@100#1",
        stage="measure",
        rate_per_s=100.0,
        connections=None,
        met=True,
        discarded=False,
        doubtful=False,
        reason="met",
    )
    entries = [
        ServerCapacity(
            server=f"a-{app}",
            app=f"{app}:app",
            rate_per_s=100.0,
            bracket=(100.0, 102.0),
            confirmed=(6, 6),
            verdict=verdict(),
            interval_95=(99.0, 103.0),
            limited_by=None,
            at_rate=None,
            failure=None,
            trials=(trial,),
        )
        for app in ("hello", "cpu")
    ]
    recommended = recommendations(entries, recommend_capacity, ["p99<50ms"])
    schema = load_schema("capacity-1")
    validator = Draft202012Validator(
        schema["properties"]["recommendations"] | {"$defs": schema["$defs"]}
    )

    assert [
        error.message
        for error in validator.iter_errors(
            [to_plain(recommendation) for recommendation in recommended]
        )
    ] == []
    assert print_recommendations(recommended, EXIT_OK) == EXIT_OK

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "hello:app: Recommended: a-hello",
        "cpu:app: Recommended: a-cpu",
    ]
