"""``--interface asgi``: the servers, apps and settings that it selects, and conflicting options."""

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
ASGI_SERVERS = ["granian-asgi", "hypercorn-asgi", "uvicorn-asgi"]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The plan of a dry run."""

    def plan(*options: str) -> dict[str, Any]:
        assert run([*options, "--dry-run", "--json", "-"]) == 0, capsys.readouterr().err
        decoded: dict[str, Any] = json.loads(capsys.readouterr().out)
        return decoded

    return plan


@pytest.fixture
def rejected(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one-line error of a rejected command."""

    def error_line(*options: str) -> str:
        assert run([*options, "--dry-run", "--json", "-"]) == 2
        return capsys.readouterr().err.removeprefix("wsgiload: ").rstrip("\n")

    return error_line


# --- the servers of an interface


def selected_ids(*names: str, interface: Any = "asgi") -> list[str]:
    return [server.id for server in CATALOGUE.select(names or None, interface)]


def test_without_names_every_server_with_the_interface_is_selected() -> None:
    assert selected_ids() == ASGI_SERVERS
    assert selected_ids("default", "granian") == ASGI_SERVERS
    assert not set(selected_ids(interface="wsgi")) & set(ASGI_SERVERS)
    assert not set(selected_ids("all", interface="wsgi")) & set(ASGI_SERVERS)


def test_a_bare_name_selects_the_variant_of_the_interface() -> None:
    assert selected_ids("uvicorn", "granian", "again=hypercorn") == [
        "uvicorn-asgi",
        "granian-asgi",
        "again",
    ]
    assert selected_ids("uvicorn==0.34.0") == ["uvicorn-asgi-0.34.0"]
    assert selected_ids("uvicorn", "granian", interface="wsgi") == ["uvicorn-a2wsgi", "granian"]
    assert selected_ids("uvicorn", "uvicorn-asgi", interface=None) == [
        "uvicorn-a2wsgi",
        "uvicorn-asgi",
    ]


def test_a_server_with_one_interface_is_selected_unless_another_is_requested() -> None:
    variant = Variant("default", "one", True, True, False, interface="asgi")
    fields: dict[str, Any] = {"summary": "", "homepage": "", "source": Path(), "requirements": ()}
    fields |= {"distribution": None, "command": lambda variant, context: []}
    server = Server("alone", variants=(variant,), default_variant="default", **fields)
    assert [selected.id for selected in Catalogue((server,)).select(["alone"])] == ["alone"]
    with pytest.raises(UsageError, match="does not run WSGI apps; add --interface asgi"):
        Catalogue((server,)).select(["alone"], "wsgi")


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn-sync", "uvicorn-a2wsgi", "waitress==3.0.1"])
def test_the_error_of_a_wsgi_server_names_the_asgi_servers(name: str) -> None:
    fix = "use --servers granian,hypercorn,uvicorn, or omit --interface asgi"
    with pytest.raises(UsageError, match=f"does not run ASGI apps; {fix}"):
        selected_ids(name)


def test_the_error_of_an_asgi_variant_names_the_option() -> None:
    with pytest.raises(UsageError, match="'granian-asgi' does not run WSGI apps; add --interface"):
        selected_ids("granian-asgi", interface="wsgi")


def test_asgi_servers_scale_by_workers_and_not_by_threads() -> None:
    for server in CATALOGUE.select(None, "asgi"):
        assert budget_of(server.sized(None, 8), 2, "tuned") == Budget(2, 1)
        assert busy_users(server, 2, "tuned") > 2 * 2, "one user per worker does not keep it busy"


# --- plans


def test_the_option_and_the_experiment_file_set_the_interface(
    planned: Callable[..., dict[str, Any]], directory: Path
) -> None:
    by_flag = planned("sweep", "main:app", "--interface", "asgi", "--rates", "100")
    (directory / "mine.toml").write_text('app = "main:app"\ninterface = "asgi"\nrates = 100\n')
    by_file = planned("run", "mine.toml")
    for plan in (by_flag, by_file):
        assert (plan["interface"], plan["servers"]) == ("asgi", ASGI_SERVERS)
        lines = {name: one["command_line"] for name, one in plan["settings"].items()}
        assert "--interface asgi" in lines["granian-asgi"]
        assert lines["hypercorn-asgi"].endswith(" asgi:main:app")
        assert lines["uvicorn-asgi"].startswith("uvicorn ")
        assert {one["threads"] for one in plan["settings"].values()} == {None}


def test_wsgi_is_the_default_interface(planned: Callable[..., dict[str, Any]]) -> None:
    assert planned("sweep", "--rates", "100")["interface"] == "wsgi"


@pytest.mark.parametrize(("interface", "is_named"), [("asgi", True), ("wsgi", False)])
def test_a_report_names_the_interface_only_if_it_is_asgi(interface: Any, is_named: bool) -> None:
    spec = SweepSpec(app="main:app", server=ServerOptions(interface=interface))
    facts = experiment_facts(experiment_of(spec), ("uvicorn",))
    assert facts.interface == interface
    assert ("ASGI" in conditions(facts)) == is_named


def test_capacity_searches_accept_the_interface(planned: Callable[..., dict[str, Any]]) -> None:
    plan = planned("capacity", "main:app", "--interface", "asgi", "--slo", "p99<50ms")
    assert plan["servers"] == ASGI_SERVERS


def test_server_arguments_are_added_to_the_command_line_of_uvicorn(
    planned: Callable[..., dict[str, Any]], rejected: Callable[..., str]
) -> None:
    servers = ("--servers", "uvicorn", "--server-args", "uvicorn=--no-date-header")
    options = ("sweep", "--rates", "100", *servers)
    plan = planned(*options, "--interface", "asgi")
    assert "--no-date-header hello:asgi_app" in plan["settings"]["uvicorn-asgi"]["command_line"]
    assert "is started by a script" in rejected(*options)


def test_the_error_of_a_bundled_wsgi_app_names_one_with_the_interface(
    planned: Callable[..., dict[str, Any]], rejected: Callable[..., str]
) -> None:
    assert planned("sweep", "--rates", "9", "--interface", "asgi")["app"] == "hello:asgi_app"
    line = "the bundled app 'cpu' is a WSGI app; choose hello with --app-name, or omit --interface asgi"
    assert rejected("sweep", "--interface", "asgi", "--app-name", "cpu") == line
    assert rejected("sweep", "--interface", "asgi", "--grid", "app=hello,cpu") == line


def test_a_user_command_alone_conflicts_with_the_interface(
    rejected: Callable[..., str], planned: Callable[..., dict[str, Any]]
) -> None:
    command = (
        "--command",
        "mine=python -m http.server {port} --bind {host}",
        "--interface",
        "asgi",
    )
    assert "--interface asgi are mutually exclusive" in rejected("sweep", *command)
    plan = planned("sweep", "main:app", *command, "--servers", "uvicorn", "--rates", "9")
    assert plan["servers"] == ["mine", "uvicorn-asgi"]


# --- the apps


@pytest.fixture
def conformance(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The ASGI app ``conformance``, imported as a server imports it."""
    monkeypatch.syspath_prepend(APPS_FOLDER)
    yield importlib.import_module("conformance_asgi")
    for name in ("conformance", "conformance_asgi", "counted"):
        sys.modules.pop(name, None)


def call_app(app: Any, scope: dict[str, Any], body: bytes = b"") -> list[dict[str, Any]]:
    """The messages that an app sends in response to a request."""
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


def test_hello_responds_and_counts_its_calls(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSGILOAD_COUNT_FOLDER", str(directory))
    monkeypatch.syspath_prepend(APPS_FOLDER)
    hello = importlib.import_module("hello")
    try:
        for _ in range(3):
            start, body = call_app(hello.asgi_app, SCOPE)
    finally:
        for name in ("hello", "counted"):
            sys.modules.pop(name, None)

    assert (start["status"], body["body"]) == (200, BUNDLED["hello"].expected_body)
    assert (b"content-length", b"14") in start["headers"]
    assert read_request_count(directory) == 3


def test_a_valid_scope_conforms_and_each_violation_is_named(conformance: Any) -> None:
    assert call_app(conformance.app, SCOPE)[1]["body"] == b"the environ conforms\n"

    invalid_values: dict[str, Any] = {
        "asgi": {"version": "2.0"},
        "http_version": "1.0",
        "method": "get",
        "path": b"/conforms",
        "query_string": "",
        "headers": [("host", "localhost")],
    }
    for key, value in invalid_values.items():
        assert list(conformance.violations({**SCOPE, key: value})) == [
            f"scope[{key!r}] is {value!r}"
        ]

    assert list(conformance.violations({**SCOPE, "headers": [(b"Host", b"x")]}))

    for key in ("client", "server"):
        invalid = {**SCOPE, key: ("127.0.0.1", "40000")}
        assert list(conformance.violations(invalid)) == [f"scope[{key!r}] is not a (str, int) pair"]
        assert not list(conformance.violations({**SCOPE, key: None}))


def test_the_asgi_conformance_app_has_the_paths_of_the_wsgi_app(conformance: Any) -> None:
    wsgi = importlib.import_module("wsgiload.catalogue.apps.conformance")
    assert set(conformance.ROUTES) == set(wsgi.ROUTES)
    echoed = call_app(conformance.app, {**SCOPE, "path": "/echo"}, b"\x00\xff")
    assert echoed[1]["body"] == b"\x00\xff"
    streamed = call_app(conformance.app, {**SCOPE, "path": "/stream"})
    assert b"".join(one.get("body", b"") for one in streamed) == b"".join(wsgi.STREAM)
    assert call_app(conformance.app, {**SCOPE, "path": "/missing"})[0]["status"] == 404
