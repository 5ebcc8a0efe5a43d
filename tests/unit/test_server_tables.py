"""``[servers.NAME]`` in a configuration file: parsing, selection and errors."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import wsgiload
from wsgiload import ServerCommand, ServerOptions
from wsgiload.catalogue.names import ServerVariant
from wsgiload.catalogue.user_server import UserServer, server_of
from wsgiload.cli import run
from wsgiload.cli._declared import descriptions
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.redaction import redacted
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.request import Request
from wsgiload.results.stored_plan import raw_plan, revive, stored_plan
from wsgiload.sweeps.cell import readiness_request

SERVE = f"{sys.executable} -m http.server {{port}}"
TABLES = f"""
[servers.prod]
command = "{SERVE}"
env = {{ PORT = "5", API_KEY = "hush" }}
cwd = "backend"
setup = "{sys.executable} -c 1"
teardown = ["{sys.executable} -c 2", "{sys.executable} -c 3"]
ready_path = "/healthz"
stop_signal = "SIGQUIT"
keepalive = false

[servers.new]
command = "{SERVE}"
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a directory ``backend`` and without the caller's settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "SERVERS", "COMMAND"):
        monkeypatch.delenv(f"WSGILOAD_{name}", raising=False)
    (tmp_path / "backend").mkdir()
    return tmp_path


class DryRun:
    """Runs a command with ``--dry-run`` and returns its plan or its error message."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> dict[str, Any]:
        assert run([*words, "--dry-run", "--json", "-"]) == 0, self._capsys.readouterr().err
        plan: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return plan

    def error(self, *words: str) -> str:
        assert run([*words, "--dry-run", "--json", "-"]) == 2
        (line,) = self._capsys.readouterr().err.splitlines()
        return str(line)


@pytest.fixture
def dry_run(capsys: pytest.CaptureFixture[str]) -> DryRun:
    return DryRun(capsys)


def user_server(**options: Any) -> UserServer:
    return UserServer("prod", "serve {port}", Path("/shop"), is_table=True, **options)


def variant(**options: Any) -> ServerVariant:
    server = server_of(user_server(**options))
    return ServerVariant(server, server.variants[0])


def test_a_dry_run_shows_all_settings_of_a_table_but_no_secret(
    project: Path, dry_run: DryRun
) -> None:
    (project / "wsgiload.toml").write_text(TABLES)
    prod, new = dry_run("sweep")["own_servers"]

    assert prod == {
        "name": "prod",
        "command": SERVE,
        "folder": str(project),
        "cwd": "backend",
        "env": {"API_KEY": redacted("hush"), "PORT": "5"},
        "setup": [f"{sys.executable} -c 1"],
        "teardown": [f"{sys.executable} -c 2", f"{sys.executable} -c 3"],
        "ready_path": "/healthz",
        "stop_signal": "SIGQUIT",
        "keepalive": "off",
        "is_table": True,
    }
    assert (new["cwd"], new["setup"], new["keepalive"]) == (".", [], None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["prod", "new"]),
        (("--servers", "new"), ["new"]),
        (("app:app", "--servers", "waitress,new"), ["new", "waitress"]),
        (("--app-name", "hello", "--servers", "waitress"), ["waitress"]),
        (("--servers", "prod,again=prod"), ["prod", "again"]),
        (("--command", f"other={SERVE}"), ["other"]),
        (("--command", f"other={SERVE}", "--servers", "new"), ["new", "other"]),
    ],
)
def test_all_tables_are_measured_unless_servers_are_named(
    project: Path, dry_run: DryRun, words: tuple[str, ...], expected: list[str]
) -> None:
    (project / "wsgiload.toml").write_text(TABLES)
    assert dry_run("sweep", *words)["servers"] == expected
    if words[:1] != ("--app-name",):
        assert dry_run("capacity", "--slo", "p99<50ms", *words)["servers"] == expected


def test_a_mistyped_name_suggests_the_table(project: Path, dry_run: DryRun) -> None:
    (project / "wsgiload.toml").write_text(TABLES)
    message = "wsgiload: unknown server 'prdo'; did you mean prod?"
    assert dry_run.error("sweep", "--servers", "prdo") == message
    assert "did you mean waitress?" in dry_run.error(
        "sweep", "app:app", "--servers", "waitres,prod"
    )


def test_the_command_option_replaces_the_command_of_a_table(project: Path, dry_run: DryRun) -> None:
    (project / "wsgiload.toml").write_text(TABLES)
    (prod,) = dry_run("sweep", "--command", f"prod={SERVE} --bind ::")["own_servers"]
    assert (prod["command"], prod["ready_path"]) == (f"{SERVE} --bind ::", "/healthz")


def test_a_higher_precedence_file_replaces_only_its_tables(project: Path, dry_run: DryRun) -> None:
    (project / "pyproject.toml").write_text(TABLES.replace("[servers", "[tool.wsgiload.servers"))
    (project / "wsgiload.toml").write_text(f'[servers.prod]\ncommand = "{SERVE} --cgi"\n')
    prod, new = dry_run("sweep")["own_servers"]
    assert (prod["command"], prod["env"], new["command"]) == (f"{SERVE} --cgi", {}, SERVE)


def test_tables_do_not_affect_other_commands_and_urls(project: Path, dry_run: DryRun) -> None:
    (project / "wsgiload.toml").write_text(f'[sweep]\nservers = "new"\n{TABLES}')
    assert dry_run("load", "http://127.0.0.1:9/")["phases"]
    assert dry_run("sweep")["servers"] == ["new"]
    url = ("--url", "http://127.0.0.1:9/")
    assert dry_run("capacity", "--slo", "p99<50ms", *url)["experiment"]["own_servers"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[servers.prod]\ncomand = 'a'\n", "[servers.prod]: unknown key 'comand'; did you mean co"),
        ("[servers.prod]\nport = 1\n", "[servers.prod]: unknown key 'port'; the keys are command,"),
        ("[servers.prod]\n", "[servers.prod]: command is missing; add command = 'gunicorn shop."),
        ("[servers.prod]\ncommand = 5\n", "[servers.prod]: command must be text; write it like"),
        (
            "[servers.prod]\ncommand = 'a'\nenv = { DEBUG = 0 }\n",
            '[servers.prod]: env must be a table of strings; write it like env = { DEBUG = "0" }',
        ),
        (
            "[servers.prod]\ncommand = 'a'\nsetup = [1]\n",
            "[servers.prod]: setup must be a string, or a list of strings; write it like setup =",
        ),
        (
            "[servers.prod]\ncommand = 'a'\nkeepalive = 'never'\n",
            '[servers.prod]: keepalive must be "on", "off" or a number of requests; write it',
        ),
        ("[servers.Prod]\ncommand = 'a'\n", "[servers.Prod]: 'Prod' is not a valid name; use lo"),
        ("[servers]\njson = 'a'\n", "[servers]: 'json' is not a table; write [servers.json]"),
    ],
)
def test_an_error_in_a_table_names_file_table_and_key(
    project: Path, dry_run: DryRun, text: str, message: str
) -> None:
    (project / "wsgiload.toml").write_text(text)
    assert dry_run.error("sweep").startswith(f"wsgiload: wsgiload.toml: {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_signal": "SIGHALT"}, "[servers.prod]: stop_signal 'SIGHALT' is not a signal"),
        ({"ready_path": "healthz"}, "ready_path must start with a slash; write it like /healthz"),
        ({"cwd": "frontend"}, "frontend does not exist; correct its cwd"),
        ({"keepalive": 0}, "invalid keep-alive '0'"),
        ({"setup": "migrate-nothing now"}, "setup of [servers.prod]: no program 'migrate"),
        ({"setup": f"{SERVE} {{wrkers}}"}, "setup of [servers.prod]: unknown placeholder {wrkers}"),
        ({"teardown": ["'"]}, "teardown of [servers.prod]: No closing quotation"),
        ({"teardown": [""]}, "teardown of [servers.prod] is empty"),
    ],
)
def test_invalid_settings_are_refused_before_the_start(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        experiment({"prod": ServerCommand(command=SERVE, **options)})


def experiment(command: dict[str, str | ServerCommand], **options: Any) -> Experiment:
    return experiment_of(SweepSpec(server=ServerOptions(command=command, **options)))


def test_variables_of_a_table_override_those_of_all_servers() -> None:
    commands: dict[str, str | ServerCommand] = {
        "prod": ServerCommand(command=SERVE, env={"PORT": "5"}),
        "new": SERVE,
    }
    servers = resolve_servers(experiment(commands, env={"PORT": "9", "DEBUG": "0"}))
    assert dict(servers["prod"].variables) == {"PORT": "5", "DEBUG": "0"}
    assert dict(servers["new"].variables) == {"PORT": "9", "DEBUG": "0"}


def test_a_stored_plan_takes_secrets_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"PORT": "5", "DATABASE_URL": "postgres://shop:hush@db/shop"}
    planned = experiment({"prod": ServerCommand(command=SERVE, env=env, setup=f"{SERVE} 1")})
    raw = raw_plan(stored_plan(planned, (), CpuPlan((0,), (0,), shared_cores=True)))
    assert b"hush" not in bytes(raw)

    stored = revive(raw)
    with pytest.raises(UsageError, match="the value of DATABASE_URL was not stored"):
        stored.with_secrets({})

    monkeypatch.setenv("DATABASE_URL", "postgres://shop:hush@db/other")
    with pytest.raises(UsageError, match="DATABASE_URL differs from that of the run"):
        stored.with_secrets({})

    monkeypatch.setenv("DATABASE_URL", env["DATABASE_URL"])
    assert stored.with_secrets({}).own_servers == planned.own_servers


def test_the_readiness_probe_uses_the_path_of_the_table_and_the_header_fields() -> None:
    request = Request("/cart", "POST", headers=(("Host", "shop"),), body=b"1", expected_length=3)
    probe = readiness_request(variant(ready_path="/healthz"), request)
    assert (probe.path, probe.method, probe.headers) == ("/healthz", "GET", request.headers)
    assert (probe.body, probe.expected_length) == (None, None)
    assert {200, 204} < set(probe.statuses)
    assert readiness_request(variant(), request) == request


def test_a_table_sets_the_stop_signal_and_a_grid_overrides_keep_alive() -> None:
    server = variant(stop_signal="SIGQUIT").server
    assert (server.stop_signal, server.clean_exit_codes) == ("SIGQUIT", (0, -3, 131))

    commands: dict[str, str | ServerCommand] = {
        "prod": ServerCommand(command=SERVE, keepalive="off")
    }
    plain = resolve_servers(experiment(commands))

    assert plain["prod"].requested_keepalive == "off"

    both = resolve_servers(experiment(commands, grid={"keepalive": ["on", 5]}))
    assert [one.requested_keepalive for one in both.values()] == ["on", 5]


def test_every_key_is_described() -> None:
    names = [field.name for field in fields(wsgiload.ServerCommand)]
    assert list(descriptions(wsgiload.ServerCommand)) == names
