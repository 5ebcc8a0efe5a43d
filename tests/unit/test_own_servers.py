"""The user's own servers: parsing commands, rejected commands, and launching."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wsgiload
from wsgiload import ServerOptions
from wsgiload.catalogue.budget import Budget, budget_of, busy_users
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.catalogue.user_server import (
    UserServer,
    command_line,
    commands_by_name,
    parse_command,
    require_runnable,
    server_of,
)
from wsgiload.cli import run
from wsgiload.documents.cell_result import ServerSettings, Versions
from wsgiload.environments.user_environment import UserEnvironment, provide, user_environment
from wsgiload.errors import EXIT_OK, EXIT_USAGE, AppImportError, ProvisionError, UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment, Size, experiment_facts, plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.report.command_line import to_paste
from wsgiload.results.stored_plan import raw_plan, require_same_plan, revive, stored_plan

PYTHON = sys.executable


def user_server(command: str, name: str = "prod", directory: Path = Path("/shop")) -> UserServer:
    return UserServer(name, command, directory)


def launch_context(host: str = "127.0.0.1", **size: int | None) -> LaunchContext:
    return LaunchContext(
        python=Path("/p"),
        bin=Path("/b"),
        host=host,
        port=4321,
        app="",
        app_dir=Path("/shop"),
        scratch_dir=Path("/scratch"),
        workers=size.get("workers"),
        threads=size.get("threads"),
    )


def experiment(app: str | None = None, **options: Any) -> Experiment:
    servers = options.pop("servers", None)
    return experiment_of(SweepSpec(app=app, servers=servers, server=ServerOptions(**options)))


def variant(command: str) -> ServerVariant:
    server = server_of(user_server(command))
    return ServerVariant(server, server.variants[0])


@pytest.mark.parametrize(
    ("text", "name", "command"),
    [
        ("gunicorn shop.wsgi --bind {address}", "command", "gunicorn shop.wsgi --bind {address}"),
        ("prod=gunicorn -b {address} a:b", "prod", "gunicorn -b {address} a:b"),
        ("gunicorn --bind={address} a:b", "command", "gunicorn --bind={address} a:b"),
        ("/opt/x=y/serve {port}", "command", "/opt/x=y/serve {port}"),
    ],
)
def test_the_name_precedes_the_first_equals_sign(text: str, name: str, command: str) -> None:
    assert parse_command(text) == (name, command)


def test_placeholders_are_replaced_and_other_braces_kept() -> None:
    command = (
        "serve --on {address} -h{host} -p {port} -w {workers} -t {threads} "
        """--format '{{port}} {"a": {}}' 'two words'"""
    )
    words = command_line(user_server(command), launch_context(workers=3, threads=2))

    assert words == [
        *("serve", "--on", "127.0.0.1:4321", "-h127.0.0.1", "-p", "4321", "-w", "3", "-t", "2"),
        *("--format", '{port} {"a": {}}', "two words"),
    ]


def test_an_ipv6_address_is_in_brackets() -> None:
    words = command_line(user_server("serve {address} {host}"), launch_context(host="::1"))
    assert words == ["serve", "[::1]:4321", "::1"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "serve app:app",
            "--command prod has neither {address} nor {port}, so its port is unknown",
        ),
        ("serve {adress}", "--command prod: unknown placeholder {adress}; did you mean {address}?"),
        ("serve {address} {app}", "or write {{app}} for the text {app}"),
        ("serve --unix {socket}", "{socket} is not available: servers are measured over TCP"),
        ("serve 'a {address}", "--command prod: No closing quotation; check its quotation marks"),
    ],
)
def test_an_unusable_command_is_rejected(command: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        require_runnable(user_server(command), None)


def test_a_fixed_port_needs_no_placeholder() -> None:
    require_runnable(user_server("serve --port 8000"), 8000)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            [("command", "a"), ("command", "b")],
            "several --command options without a name; name each",
        ),
        ([("prod", "a"), ("prod", "b")], "--command prod was given twice"),
    ],
)
def test_each_command_has_a_unique_name(pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        commands_by_name(pairs)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gunicorn", "'gunicorn' is a server's name; choose another name"),
        ("all", "'all' is a server's name"),
        ("Prod", "'Prod' is not a valid name; use lower-case letters, digits and dashes"),
        ("PORT", "--command prod='env PORT=… gunicorn …'"),
    ],
)
def test_an_ambiguous_name_is_rejected(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load_catalogue().with_user_servers([user_server("serve {port}", name)])


def test_without_servers_only_the_commands_are_measured() -> None:
    plan = experiment(command={"prod": f"{PYTHON} {{port}}", "new": f"{PYTHON} {{port}}"})
    assert list(resolve_servers(plan)) == ["prod", "new"]
    assert (plan.app, plan.bundled, plan.name) == (None, False, "prod-new")
    assert plan.request.expected_body is None
    facts = experiment_facts(plan, ("prod", "new"))
    assert (facts.app, facts.profile) == (None, None)


def test_with_catalogue_servers_a_command_serves_the_same_app() -> None:
    command = {"prod": f"{PYTHON} {{port}}"}
    plan = experiment("shop:app", command=command, servers=["waitress", "again=prod"])
    assert list(resolve_servers(plan)) == ["prod", "waitress", "again"]
    assert experiment_facts(plan, ("prod",)).app == "shop:app"


def test_a_command_can_serve_a_bundled_app() -> None:
    command = {"prod": f"{PYTHON} {{port}}"}
    plan = experiment(command=command, servers=["waitress"], app_name="hello")
    assert (plan.bundled, plan.app) == (True, "hello:app")
    assert plan.request.expected_body is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servers": ["waitress"]}, "--servers waitress with --command requires APP"),
        ({"grid": {"app": ["hello", "cpu"]}}, "--command and --grid app= are mutually exclusive"),
        ({"python": PYTHON}, "--command without --servers and --python are mutually exclusive"),
        ({"grid": {"profile": ["stock"]}}, "and --grid profile= are mutually exclusive; omit it"),
        ({"workers": 2}, "--workers has no effect: no --command has the placeholder {workers}"),
        ({"grid": {"threads": [2, 4]}}, "--server-threads has no effect"),
        ({"chdir": "/no/such"}, "directory /no/such does not exist"),
    ],
)
def test_contradicting_or_ineffective_options_are_rejected(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        experiment(command={"prod": f"{PYTHON} {{port}}"}, **options)


def test_a_grid_varies_only_the_placeholders_of_a_command() -> None:
    command = f"{PYTHON} {{port}} {{workers}}"
    options = {"grid": {"workers": [1, 2]}, "servers": ["waitress"]}
    plan = experiment("shop:app", command={"prod": command}, **options)
    assert list(resolve_servers(plan)) == ["prod-w1", "prod-w2", "waitress"]
    both_profiles = replace(
        plan, sizes=tuple(Size(profile=profile) for profile in ("tuned", "stock"))
    )
    assert list(resolve_servers(both_profiles)) == ["prod", "waitress-tuned", "waitress-stock"]


def test_the_size_of_a_command_is_known_only_from_its_placeholders() -> None:
    without_size, with_size = variant("serve {port}"), variant("serve {port} {workers} {threads}")
    assert budget_of(without_size, 2, "tuned") == Budget(None, None)
    assert busy_users(without_size, 2, "tuned") == 16
    assert budget_of(with_size, 2, "tuned") == Budget(2, 4)
    assert budget_of(with_size, 2, "stock") == Budget(2, 4)
    assert budget_of(with_size.sized(3, 5), 2, "tuned") == Budget(3, 5)


def test_a_missing_program_is_rejected_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ["sweep", "--chdir", str(tmp_path), "--command"]

    def error(command: str) -> str:
        assert run([*options, command]) == EXIT_USAGE
        return capsys.readouterr().err

    assert error("prod=serve {port}") == (
        "wsgiload: --command prod: no program 'serve' on your PATH; activate the environment that "
        "contains it, or use its full path\n"
    )
    assert "'A' is not a valid name; set a variable with env" in error("A=1 serve {port}")
    assert f"no program ./serve in {tmp_path}; correct its path" in error("./serve {port}")
    assert "set variables with env, as in --command x='env A=1 serve" in error("x=A=1 serve {port}")

    local_program = tmp_path / ".venv" / "bin" / "serve"
    local_program.parent.mkdir(parents=True)
    local_program.write_text("#!/bin/sh\n")
    assert "write .venv/bin/serve, or activate .venv first" in error("serve {port}")
    assert "no program .venv/bin/serve" in error(".venv/bin/serve {port}")
    local_program.chmod(0o755)
    assert run([*options, ".venv/bin/serve {port}", "--dry-run", "--json", "-"]) == EXIT_OK
    plan = json.loads(capsys.readouterr().out)
    assert plan["servers"] == ["command"]
    assert plan["own_servers"][0]["command"] == ".venv/bin/serve {port}"


def test_versions_are_read_from_the_environment_of_the_program(tmp_path: Path) -> None:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    for name in ("serve-it", "python3"):
        (bin_directory / name).write_text("")
        (bin_directory / name).chmod(0o755)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.12.4.final.0\n")
    metadata = tmp_path / "lib" / "python3.12" / "site-packages" / "Server-9.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: Server\nVersion: 9.1\n")
    (metadata / "entry_points.txt").write_text("[console_scripts]\nserve-it = server:main\n")

    for command in ("bin/serve-it {port}", "bin/python3 -m server {port}"):
        environment = user_environment(user_server(command, directory=tmp_path))
        assert isinstance(environment, UserEnvironment)
        assert (environment.version, environment.python_version) == ("9.1", "3.12.4")
    unknown = user_environment(user_server("bin/python3 serve.py {port}", directory=tmp_path))
    assert isinstance(unknown, UserEnvironment)
    assert unknown.version is None


def test_a_command_runs_in_the_users_environment(tmp_path: Path) -> None:
    environment = user_environment(user_server(f"{PYTHON} {{port}}", directory=tmp_path))
    assert isinstance(environment, UserEnvironment)
    inherited = {"PATH": "/x", "VIRTUAL_ENV": "/v", "PYTHONPATH": "/mine", "PYTHONUNBUFFERED": ""}
    added = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert environment.environ(tmp_path, inherited) == inherited | added
    bundled = environment.environ(Path("/bundled"), inherited)
    assert bundled["PYTHONPATH"] == os.pathsep.join(["/bundled", "/mine"])


def test_an_app_that_cannot_be_imported_fails_only_catalogue_servers() -> None:
    command = {"prod": f"{PYTHON} {{port}}", "gone": f"{PYTHON} {{port}}"}
    servers = resolve_servers(experiment("shop:app", command=command, servers=["waitress"]))
    gone = server_of(user_server("no-such-program {port}", "gone"))
    servers["gone"] = replace(servers["gone"], server=gone)
    broken = AppImportError("importing shop failed")
    provided = provide(servers, {}, print, broken)

    assert isinstance(provided["prod"], UserEnvironment)
    assert isinstance(provided["gone"], ProvisionError)
    assert provided["waitress"] is broken


def test_a_stored_plan_restores_its_commands() -> None:
    plan = experiment(command={"prod": f"{PYTHON} {{port}}"})
    revived = revive(raw_plan(stored_plan(plan, (), CpuPlan((0,), (0,), shared_cores=True))))
    assert revived.own_servers == plan.own_servers
    other = experiment(command={"prod": f"{PYTHON} -u {{port}}"})
    with pytest.raises(UsageError, match="--resume: own_servers is"):
        require_same_plan(plan, other)
    assert plain(plan)["own_servers"][0]["name"] == "prod"


def test_the_reported_command_line_is_the_original_command() -> None:
    settings = ServerSettings(
        command=("/opt/shop/bin/gunicorn", "--bind", "127.0.0.1:4321", "shop.wsgi"),
        user_command="/opt/shop/bin/gunicorn --bind {address} shop.wsgi",
        workers=None,
        threads=None,
        backlog=None,
        keepalive=None,
        environment={},
        versions=Versions(server=None, python=None, packages={}),
    )

    assert to_paste(settings) == "/opt/shop/bin/gunicorn --bind 127.0.0.1:8000 shop.wsgi"


def test_the_python_api_accepts_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiments: list[Experiment] = []
    monkeypatch.setattr(
        "wsgiload.api.run_sweep", lambda experiment, events: experiments.append(experiment)
    )
    wsgiload.sweep(rates=[5], server=ServerOptions(command={"prod": f"{PYTHON} {{port}}"}))
    assert [server.name for server in experiments[0].own_servers] == ["prod"]
