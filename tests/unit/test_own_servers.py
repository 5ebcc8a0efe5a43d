"""The user's own servers: parsing commands, refused commands, and launching."""

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
from wsgiload.environments.provide import provide
from wsgiload.environments.user_environment import UserEnvironment, user_environment
from wsgiload.errors import EXIT_OK, EXIT_USAGE, AppImportError, ProvisionError, UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment, Size, experiment_facts, plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.report.command_line import to_paste
from wsgiload.results.stored_plan import raw_plan, require_same_plan, revive, stored_plan

PYTHON = sys.executable


def own(command: str, name: str = "prod", folder: Path = Path("/shop")) -> UserServer:
    return UserServer(name, command, folder)


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
    server = server_of(own(command))
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
    words = command_line(own(command), launch_context(workers=3, threads=2))
    assert words == [
        *("serve", "--on", "127.0.0.1:4321", "-h127.0.0.1", "-p", "4321", "-w", "3", "-t", "2"),
        *("--format", '{port} {"a": {}}', "two words"),
    ]


def test_an_ipv6_address_is_in_brackets() -> None:
    words = command_line(own("serve {address} {host}"), launch_context(host="::1"))
    assert words == ["serve", "[::1]:4321", "::1"]


@pytest.mark.parametrize(
    ("command", "says"),
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
def test_an_unusable_command_is_refused(command: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        require_runnable(own(command), None)


def test_a_fixed_port_needs_no_placeholder() -> None:
    require_runnable(own("serve --port 8000"), 8000)


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (
            [("command", "a"), ("command", "b")],
            "several --command options without a name; name each",
        ),
        ([("prod", "a"), ("prod", "b")], "--command prod was given twice"),
    ],
)
def test_each_command_has_a_unique_name(pairs: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        commands_by_name(pairs)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gunicorn", "'gunicorn' is a server's name; choose another name"),
        ("all", "'all' is a server's name"),
        ("Prod", "'Prod' is not a valid name; use lower-case letters, digits and dashes"),
        ("PORT", "--command prod='env PORT=… gunicorn …'"),
    ],
)
def test_an_ambiguous_name_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        load_catalogue().with_user_servers([own("serve {port}", name)])


def test_without_servers_only_own_servers_are_measured() -> None:
    found = experiment(command={"prod": f"{PYTHON} {{port}}", "new": f"{PYTHON} {{port}}"})
    assert list(resolve_servers(found)) == ["prod", "new"]
    assert (found.app, found.bundled, found.name) == (None, False, "prod-new")
    assert found.request.expected_body is None
    facts = experiment_facts(found, ("prod", "new"))
    assert (facts.app, facts.profile) == (None, None)


def test_with_catalogue_servers_it_serves_the_same_app() -> None:
    command = {"prod": f"{PYTHON} {{port}}"}
    found = experiment("shop:app", command=command, servers=["waitress", "again=prod"])
    assert list(resolve_servers(found)) == ["prod", "waitress", "again"]
    assert experiment_facts(found, ("prod",)).app == "shop:app"


def test_it_can_serve_a_bundled_app() -> None:
    command = {"prod": f"{PYTHON} {{port}}"}
    found = experiment(command=command, servers=["waitress"], app_name="hello")
    assert (found.bundled, found.app) == (True, "hello:app")
    assert found.request.expected_body is not None


@pytest.mark.parametrize(
    ("options", "says"),
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
def test_contradicting_or_ineffective_options_are_refused(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        experiment(command={"prod": f"{PYTHON} {{port}}"}, **options)


def test_a_grid_varies_only_the_placeholders_of_a_command() -> None:
    command = f"{PYTHON} {{port}} {{workers}}"
    asked = {"grid": {"workers": [1, 2]}, "servers": ["waitress"]}
    found = experiment("shop:app", command={"prod": command}, **asked)
    assert list(resolve_servers(found)) == ["prod-w1", "prod-w2", "waitress"]
    both = replace(found, sizes=tuple(Size(profile=one) for one in ("tuned", "stock")))
    assert list(resolve_servers(both)) == ["prod", "waitress-tuned", "waitress-stock"]


def test_its_size_is_known_only_from_its_placeholders() -> None:
    plain_one, sized = variant("serve {port}"), variant("serve {port} {workers} {threads}")
    assert budget_of(plain_one, 2, "tuned") == Budget(None, None)
    assert busy_users(plain_one, 2, "tuned") == 16
    assert budget_of(sized, 2, "tuned") == Budget(2, 4)
    assert budget_of(sized, 2, "stock") == Budget(2, 4)
    assert budget_of(sized.sized(3, 5), 2, "tuned") == Budget(3, 5)


def test_a_missing_program_is_refused_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["sweep", "--chdir", str(tmp_path), "--command"]

    def complaint(command: str) -> str:
        assert run([*words, command]) == EXIT_USAGE
        return capsys.readouterr().err

    assert complaint("prod=serve {port}") == (
        "wsgiload: --command prod: no program 'serve' on your PATH; activate the environment that "
        "contains it, or use its full path\n"
    )
    assert "'A' is not a valid name; set a variable with env" in complaint("A=1 serve {port}")
    assert f"no program ./serve in {tmp_path}; correct its path" in complaint("./serve {port}")
    assert "set variables with env, as in --command x='env A=1 serve" in complaint(
        "x=A=1 serve {port}"
    )

    local = tmp_path / ".venv" / "bin" / "serve"
    local.parent.mkdir(parents=True)
    local.write_text("#!/bin/sh\n")
    assert "write .venv/bin/serve, or activate .venv first" in complaint("serve {port}")
    assert "no program .venv/bin/serve" in complaint(".venv/bin/serve {port}")
    local.chmod(0o755)
    assert run([*words, ".venv/bin/serve {port}", "--dry-run"]) == EXIT_OK
    plan = json.loads(capsys.readouterr().out)
    assert plan["servers"] == ["command"]
    assert plan["own_servers"][0]["command"] == ".venv/bin/serve {port}"


def test_versions_are_read_from_the_environment_of_the_program(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("serve-it", "python3"):
        (bin_folder / name).write_text("")
        (bin_folder / name).chmod(0o755)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.12.4.final.0\n")
    metadata = tmp_path / "lib" / "python3.12" / "site-packages" / "Server-9.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: Server\nVersion: 9.1\n")
    (metadata / "entry_points.txt").write_text("[console_scripts]\nserve-it = server:main\n")

    for command in ("bin/serve-it {port}", "bin/python3 -m server {port}"):
        found = user_environment(own(command, folder=tmp_path))
        assert isinstance(found, UserEnvironment)
        assert (found.version, found.python_version) == ("9.1", "3.12.4")
    unknown = user_environment(own("bin/python3 serve.py {port}", folder=tmp_path))
    assert isinstance(unknown, UserEnvironment)
    assert unknown.version is None


def test_it_runs_in_the_users_environment(tmp_path: Path) -> None:
    found = user_environment(own(f"{PYTHON} {{port}}", folder=tmp_path))
    assert isinstance(found, UserEnvironment)
    inherited = {"PATH": "/x", "VIRTUAL_ENV": "/v", "PYTHONPATH": "/mine", "PYTHONUNBUFFERED": ""}
    added = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert found.environ(tmp_path, inherited) == inherited | added
    bundled = found.environ(Path("/bundled"), inherited)
    assert bundled["PYTHONPATH"] == os.pathsep.join(["/bundled", "/mine"])


def test_an_app_that_cannot_be_imported_fails_only_the_catalogue() -> None:
    command = {"prod": f"{PYTHON} {{port}}", "gone": f"{PYTHON} {{port}}"}
    found = resolve_servers(experiment("shop:app", command=command, servers=["waitress"]))
    gone = server_of(own("no-such-program {port}", "gone"))
    found["gone"] = replace(found["gone"], server=gone)
    broken = AppImportError("importing shop failed")
    made = provide(found, {}, print, broken)
    assert isinstance(made["prod"], UserEnvironment)
    assert isinstance(made["gone"], ProvisionError)
    assert made["waitress"] is broken


def test_a_stored_plan_restores_its_commands() -> None:
    found = experiment(command={"prod": f"{PYTHON} {{port}}"})
    revived = revive(raw_plan(stored_plan(found, (), CpuPlan((0,), (0,), shared_cores=True))))
    assert revived.own_servers == found.own_servers
    other = experiment(command={"prod": f"{PYTHON} -u {{port}}"})
    with pytest.raises(UsageError, match="--resume: own_servers is"):
        require_same_plan(found, other)
    assert plain(found)["own_servers"][0]["name"] == "prod"


def test_its_command_line_is_the_original_command() -> None:
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


def test_from_python_it_is_an_option_of_the_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Experiment] = []
    monkeypatch.setattr(
        "wsgiload.api.run_sweep", lambda experiment, events: asked.append(experiment)
    )
    wsgiload.sweep(rates=[5], server=ServerOptions(command={"prod": f"{PYTHON} {{port}}"}))
    assert [one.name for one in asked[0].own_servers] == ["prod"]
