"""``--interface asgi``: which servers, apps and settings it means, and what contradicts it."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsgiload.catalogue.budget import Budget, budget_of, busy_users
from wsgiload.catalogue.bundled import APPS_FOLDER, BUNDLED
from wsgiload.catalogue.contract import Server, Variant
from wsgiload.catalogue.names import Catalogue, load_catalogue
from wsgiload.cli import run
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import experiment_facts
from wsgiload.experiment.public_options import ServerOptions
from wsgiload.report.cells import conditions
from wsgiload.sampling.external_counters import read_request_count

CATALOGUE = load_catalogue()
ABLE = ["granian-asgi", "hypercorn-asgi", "uvicorn-asgi"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The plan of a dry run."""

    def plan(*words: str) -> dict[str, Any]:
        assert run([*words, "--dry-run"]) == 0, capsys.readouterr().err
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return plan


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line with which a command is refused."""

    def line(*words: str) -> str:
        assert run([*words, "--dry-run"]) == 2
        return capsys.readouterr().err.removeprefix("wsgiload: ").rstrip("\n")

    return line


# --- the servers of an interface


def names(*given: str, interface: Any = "asgi") -> list[str]:
    return [found.id for found in CATALOGUE.select(given or None, interface)]


def test_without_names_every_server_that_can_is_measured() -> None:
    assert names() == ABLE
    assert names("default", "granian") == ABLE
    assert not set(names(interface="wsgi")) & set(ABLE)
    assert not set(names("all", interface="wsgi")) & set(ABLE)


def test_a_bare_name_means_the_variant_of_the_interface() -> None:
    assert names("uvicorn", "granian", "again=hypercorn") == [
        "uvicorn-asgi",
        "granian-asgi",
        "again",
    ]
    assert names("uvicorn==0.34.0") == ["uvicorn-asgi-0.34.0"]
    assert names("uvicorn", "granian", interface="wsgi") == ["uvicorn-a2wsgi", "granian"]
    assert names("uvicorn", "uvicorn-asgi", interface=None) == ["uvicorn-a2wsgi", "uvicorn-asgi"]


def test_a_server_of_one_interface_means_its_only_kind_where_none_is_asked_for() -> None:
    variant = Variant("default", "one", True, True, False, interface="asgi")
    words: dict[str, Any] = {"summary": "", "homepage": "", "source": Path(), "requirements": ()}
    words |= {"distribution": None, "command": lambda variant, context: []}
    alone = Server("alone", variants=(variant,), default_variant="default", **words)
    assert [found.id for found in Catalogue((alone,)).select(["alone"])] == ["alone"]
    with pytest.raises(UsageError, match="does not run WSGI apps; add --interface asgi"):
        Catalogue((alone,)).select(["alone"], "wsgi")


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn-sync", "uvicorn-a2wsgi", "waitress==3.0.1"])
def test_a_server_that_cannot_names_those_that_can(name: str) -> None:
    fix = "use --servers granian,hypercorn,uvicorn, or omit --interface asgi"
    with pytest.raises(UsageError, match=f"does not run ASGI apps; {fix}"):
        names(name)


def test_a_variant_for_asgi_asks_for_the_option() -> None:
    with pytest.raises(UsageError, match="'granian-asgi' does not run WSGI apps; add --interface"):
        names("granian-asgi", interface="wsgi")


def test_an_event_loop_has_workers_and_no_threads() -> None:
    for found in CATALOGUE.select(None, "asgi"):
        assert budget_of(found.sized(None, 8), 2, "tuned") == Budget(2, 1)
        assert busy_users(found, 2, "tuned") > 2 * 2, "it is not kept busy by one user a worker"


# --- a plan


def test_the_command_line_and_the_file_ask_for_it_alike(
    planned: Callable[..., dict[str, Any]], folder: Path
) -> None:
    by_flag = planned("sweep", "main:app", "--interface", "asgi", "--rates", "100")
    (folder / "mine.toml").write_text('app = "main:app"\ninterface = "asgi"\nrates = 100\n')
    by_file = planned("run", "mine.toml")
    for plan in (by_flag, by_file):
        assert (plan["interface"], plan["servers"]) == ("asgi", ABLE)
        lines = {name: one["command_line"] for name, one in plan["settings"].items()}
        assert "--interface asgi" in lines["granian-asgi"]
        assert lines["hypercorn-asgi"].endswith(" asgi:main:app")
        assert lines["uvicorn-asgi"].startswith("uvicorn ")
        assert {one["threads"] for one in plan["settings"].values()} == {None}


def test_it_goes_without_saying_for_wsgi(planned: Callable[..., dict[str, Any]]) -> None:
    assert planned("sweep", "--rates", "100")["interface"] == "wsgi"


@pytest.mark.parametrize(("interface", "is_named"), [("asgi", True), ("wsgi", False)])
def test_a_report_says_what_is_not_usual(interface: Any, is_named: bool) -> None:
    spec = SweepSpec(app="main:app", server=ServerOptions(interface=interface))
    facts = experiment_facts(experiment_of(spec), ("uvicorn",))
    assert facts.interface == interface
    assert ("ASGI" in conditions(facts)) == is_named


def test_the_capacity_is_searched_with_it_too(planned: Callable[..., dict[str, Any]]) -> None:
    plan = planned("capacity", "main:app", "--interface", "asgi", "--slo", "p99<50ms")
    assert plan["servers"] == ABLE


def test_arguments_are_added_to_uvicorn_s_own_command_line(
    planned: Callable[..., dict[str, Any]], refused: Callable[..., str]
) -> None:
    words = (
        "sweep",
        "--rates",
        "100",
        "--servers",
        "uvicorn",
        "--server-args",
        "uvicorn=--no-date-header",
    )
    plan = planned(*words, "--interface", "asgi")
    assert "--no-date-header hello:asgi_app" in plan["settings"]["uvicorn-asgi"]["command_line"]
    assert "is started by a script" in refused(*words)


def test_a_bundled_app_has_the_interface_or_says_which_has(
    planned: Callable[..., dict[str, Any]], refused: Callable[..., str]
) -> None:
    assert planned("sweep", "--rates", "9", "--interface", "asgi")["app"] == "hello:asgi_app"
    line = "the bundled app 'cpu' is a WSGI app; choose hello with --app-name, or omit --interface asgi"
    assert refused("sweep", "--interface", "asgi", "--app-name", "cpu") == line
    assert refused("sweep", "--interface", "asgi", "--grid", "app=hello,cpu") == line


def test_your_own_command_alone_needs_no_interface(
    refused: Callable[..., str], planned: Callable[..., dict[str, Any]]
) -> None:
    own = ("--command", "mine=python -m http.server {port} --bind {host}", "--interface", "asgi")
    assert "--interface asgi are mutually exclusive" in refused("sweep", *own)
    beside = planned("sweep", "main:app", *own, "--servers", "uvicorn", "--rates", "9")
    assert beside["servers"] == ["mine", "uvicorn-asgi"]


# --- the apps


@pytest.fixture
def conformance(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The ASGI app ``conformance``, imported as a server imports it."""
    monkeypatch.syspath_prepend(APPS_FOLDER)
    yield importlib.import_module("conformance_asgi")
    for name in ("conformance", "conformance_asgi", "counted"):
        sys.modules.pop(name, None)


def ask(app: Any, scope: dict[str, Any], body: bytes = b"") -> list[dict[str, Any]]:
    """What an app sends in response to a request."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


SCOPE: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/conforms",
    "raw_path": b"/conforms",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"localhost")],
    "client": ("127.0.0.1", 40_000),
    "server": ("127.0.0.1", 8_000),
}


def test_hello_greets_and_counts_its_calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSGILOAD_COUNT_FOLDER", str(folder))
    monkeypatch.syspath_prepend(APPS_FOLDER)
    hello = importlib.import_module("hello")
    try:
        for _ in range(3):
            start, body = ask(hello.asgi_app, SCOPE)
    finally:
        for name in ("hello", "counted"):
            sys.modules.pop(name, None)
    assert (start["status"], body["body"]) == (200, BUNDLED["hello"].expected_body)
    assert (b"content-length", b"14") in start["headers"]
    assert read_request_count(folder) == 3


def test_a_good_scope_conforms_and_each_fault_of_one_is_named(conformance: Any) -> None:
    assert ask(conformance.app, SCOPE)[1]["body"] == b"the environ conforms\n"
    faults: dict[str, Any] = {
        "asgi": {"version": "2.0"},
        "http_version": "1.0",
        "method": "get",
        "path": b"/conforms",
        "query_string": "",
        "headers": [("host", "localhost")],
    }
    for key, value in faults.items():
        assert list(conformance.violations({**SCOPE, key: value})) == [
            f"scope[{key!r}] is {value!r}"
        ]
    assert list(conformance.violations({**SCOPE, "headers": [(b"Host", b"x")]}))
    for key in ("client", "server"):
        faulty = {**SCOPE, key: ("127.0.0.1", "40000")}
        assert list(conformance.violations(faulty)) == [f"scope[{key!r}] is not a (str, int) pair"]
        assert not list(conformance.violations({**SCOPE, key: None}))


def test_conformance_has_the_paths_of_the_wsgi_app(conformance: Any) -> None:
    wsgi = importlib.import_module("wsgiload.catalogue.apps.conformance")
    assert set(conformance.ROUTES) == set(wsgi.ROUTES)
    echoed = ask(conformance.app, {**SCOPE, "path": "/echo"}, b"\x00\xff")
    assert echoed[1]["body"] == b"\x00\xff"
    streamed = ask(conformance.app, {**SCOPE, "path": "/stream"})
    assert b"".join(one.get("body", b"") for one in streamed) == b"".join(wsgi.STREAM)
    assert ask(conformance.app, {**SCOPE, "path": "/missing"})[0]["status"] == 404
