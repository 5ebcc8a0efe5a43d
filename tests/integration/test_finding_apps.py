"""APP arguments and project layouts: factories, odd module names and paths, workspaces and Django
projects, on servers of every kind."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
from uv import find_uv_bin

from wsgiload.environments.interpreter import bundled_app_interpreter

from .command import SCRIPT, Command, CommandResult
from .test_user_apps import DJANGO_SETTINGS, DJANGO_URLS, DJANGO_WSGI, make_project

pytestmark = [pytest.mark.servers, pytest.mark.limits]

APPS = Path(__file__).with_name("apps")
DJANGO_MANAGE = """
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"""
BRIEFLY = ("--rates", 20, "--duration", "500ms", "--warmup", "0s", "--cooldown", "0s", "--quiet")
# One for each way to pass an app to a server: the command line, a runner, a settings file.
SERVERS = "gunicorn-gthread,granian,waitress,uvicorn,hypercorn,wsgiref"


def copied(command: Command, name: str) -> Path:
    """A fresh copy of this directory of ``apps``."""
    folder = command.folder / name
    shutil.copytree(APPS / name, folder)
    return folder


def require_ok(result: CommandResult, servers: int) -> None:
    assert len(result.cells) == servers, result.err
    for cell in result.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0


def failure(result: CommandResult) -> str:
    """The failure message of the only cell."""
    assert result.code == 97
    (cell,) = result.cells.values()
    message: str = cell["failure"]["message"]
    return message


def test_a_factory_is_called_by_every_kind_of_server(command: Command) -> None:
    folder = copied(command, "factory")
    words = ("shop:create_app('a greeting')", "--servers", SERVERS)
    result = command.run("sweep", *words, "--expect-regex", "^a greeting$", *BRIEFLY, cwd=folder)
    require_ok(result, 6)


@pytest.mark.parametrize("app", ["my-app:app", "nested:site.server"])
def test_odd_module_names_are_served(command: Command, app: str) -> None:
    folder = copied(command, "module_name")
    result = command.run("sweep", app, "--servers", "waitress,granian", *BRIEFLY, cwd=folder)
    require_ok(result, 2)


@pytest.mark.parametrize(
    ("name", "app", "fix"),
    [
        ("factory", "shop:create_app", "call it: 'shop:create_app()'"),
        ("factory", "shop:app", "did you mean 'shop:create_app()'?"),
        ("module_name", "api/main.py:app", "write it as `--chdir api main:app`"),
        ("module_name", "{folder}/api/main:app", "write it as `--chdir api main:app`"),
    ],
)
def test_an_unusable_app_argument_is_refused_with_a_fix(
    command: Command, name: str, app: str, fix: str
) -> None:
    folder = copied(command, name)
    result = command.run("sweep", app.format(folder=folder), *BRIEFLY, cwd=folder)
    assert result.code == 2
    assert result.messages == result.err.splitlines()
    assert result.messages[0].endswith(fix)


def test_a_module_named_json_breaks_only_servers_that_import_it(
    command: Command,
) -> None:
    folder = copied(command, "factory")
    (folder / "json.py").write_text("raise ValueError('not the json that servers import')\n")
    words = ("sweep", "shop:create_app()", *BRIEFLY, "--servers")
    require_ok(command.run(*words, "granian,waitress", cwd=folder), 2)

    # gunicorn puts the app's directory first on sys.path before it imports its worker.
    result = command.run(*words, "gunicorn-gthread", cwd=folder)
    assert result.code == 97
    (cell,) = result.cells.values()
    assert "not the json that servers import" in cell["failure"]["log_tail"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A uv workspace of two packages with one environment, in its root; the package with the app is
    not installed."""
    folder = tmp_path_factory.mktemp("workspace") / "layout"
    shutil.copytree(APPS / "layout", folder)
    python = str(bundled_app_interpreter().base_executable)
    words = ("sync", "--all-packages", "--no-install-package", "case-web", "--python", python)
    subprocess.run([find_uv_bin(), "--quiet", *words], cwd=folder, check=True, timeout=300)
    return folder


def test_a_workspace_package_uses_the_environment_of_its_workspace(
    command: Command, workspace: Path
) -> None:
    """Its modules are in src, its data is beside src, its dependencies are in the workspace."""
    folder = workspace / "packages" / "web"
    words = ("web.wsgi:application", "--servers", "waitress,gunicorn-gthread", *BRIEFLY)
    result = command.run("sweep", *words, cwd=folder)
    assert result.code == 2
    assert result.messages[0].endswith("did you mean `--pythonpath src web.wsgi:application`?")
    assert f"{workspace}/.venv/bin/python" in result.messages[0]

    body = ("--expect-regex", "^hi 42$")
    result = command.run("sweep", "--pythonpath", "src", *body, *words, cwd=folder)
    require_ok(result, 2)


def test_pythonpath_is_not_passed_on_and_the_warning_names_the_option(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "lib").mkdir()
    (folder / "lib" / "greeting.py").write_text("TEXT = 'hi'\n")
    (folder / "web.py").write_text("import greeting, shop\napp = shop.create_app(greeting.TEXT)\n")
    words = ("web:app", "--servers", "wsgiref", "--expect-regex", "^hi$", *BRIEFLY[:-1])
    program = ["env", "PYTHONPATH=lib", str(SCRIPT)]

    result = command.run("sweep", *words, cwd=folder, program=program)
    assert (
        "PYTHONPATH is not passed to APP; add its directories with --pythonpath lib" in result.err
    )
    message = failure(result)
    assert "No module named 'greeting'" in message
    assert message.endswith("did you mean `--pythonpath lib web:app`?")

    result = command.run("sweep", "--pythonpath", "lib", *words, cwd=folder, program=program)
    assert not result.messages
    require_ok(result, 1)


@pytest.fixture(scope="module")
def django(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a Django project in ``site``, which has its own environment."""
    folder = tmp_path_factory.mktemp("django")
    package = make_project(folder / "site", "django") / "shop"
    package.mkdir()

    modules = {"settings": DJANGO_SETTINGS, "urls": DJANGO_URLS, "wsgi": DJANGO_WSGI}
    for name, text in modules.items():
        (package / f"{name}.py").write_text(textwrap.dedent(text))
    (package.parent / "manage.py").write_text(DJANGO_MANAGE)
    return folder


@pytest.mark.parametrize(
    ("place", "app", "fix"),
    [
        (".", "shop.wsgi:application", "did you mean `--chdir site shop.wsgi:application`?"),
        ("site", "manage.py", "did you mean shop.wsgi:application?"),
        ("site", "shop", "did you mean shop.wsgi:application?"),
        ("site", "shop.wsgi", "write it as shop.wsgi:application"),
        ("site", "shop.wsgi.application", "did you mean shop.wsgi:application?"),
    ],
)
def test_the_hint_for_a_django_project_names_its_application(
    command: Command, django: Path, place: str, app: str, fix: str
) -> None:
    result = command.run("sweep", app, *BRIEFLY, cwd=django / place)
    assert result.code == 2
    assert result.messages == result.err.splitlines()
    assert result.messages[0].endswith(fix)


def test_the_application_from_the_django_hint_is_measured(command: Command, django: Path) -> None:
    words = ("--chdir", "site", "shop.wsgi:application", "--path", "/items/")
    result = command.run("sweep", *words, "--servers", "waitress", *BRIEFLY, cwd=django)
    require_ok(result, 1)


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Django project that reads its settings module and its secret from environment variables."""
    folder = make_project(tmp_path_factory.mktemp("production") / "site", "django")
    shutil.copytree(APPS / "django_hosts", folder, dirs_exist_ok=True)
    return folder


def test_missing_environment_variables_are_named(command: Command, production: Path) -> None:
    words = ("site_config.wsgi:application", "--servers", "waitress", *BRIEFLY)
    result = command.run("sweep", *words, cwd=production)
    settings = "DJANGO_SETTINGS_MODULE=site_config.settings.production"
    assert failure(result).endswith(f"add --env {settings}")

    result = command.run("sweep", *words, "--env", settings, cwd=production)
    assert failure(result).endswith("add --env APP_SECRET_KEY=VALUE")


def test_the_ready_timeout_limits_the_import_of_the_app(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "slow.py").write_text("import shop, time\ntime.sleep(3)\napp = shop.create_app()\n")
    words = ("slow:app", "--servers", "waitress", *BRIEFLY)
    require_ok(command.run("sweep", *words, cwd=folder), 1)

    result = command.run("sweep", *words, "--ready-timeout", "1s", cwd=folder)
    assert result.code == 97
    assert "importing slow did not finish within 1 s; raise --ready-timeout" in result.out


def test_an_import_that_exceeds_the_memory_limit_is_reported(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "greedy.py").write_text("data = b'x' * (2 << 30)\n")
    result = command.run("sweep", "greedy:app", "--servers", "waitress", *BRIEFLY, cwd=folder)
    assert result.code == 97
    assert "importing greedy exceeds the memory limit of 1,024 MiB" in result.out


def test_a_dry_run_imports_the_app_and_starts_no_server(command: Command) -> None:
    (command.folder / "fine.py").write_text("def app(environ, start_response): return []\n")
    (command.folder / "broken.py").write_text("raise RuntimeError('no database')\n")

    fine = command.run(
        "sweep", "fine:app", "--servers", "wsgiref", "--rates", 20, "--dry-run", "--json", "-"
    )
    assert (fine.code, fine.err) == (0, "")

    broken = command.run(
        "sweep", "broken:app", "--servers", "wsgiref", "--rates", 20, "--dry-run", "--json", "-"
    )
    assert (broken.code, json.loads(broken.out)["app"]) == (97, "broken:app")
    assert "no database" in broken.err and broken.err.count("\n") == 1

    missing = command.run("capacity", "missing:app", "--slo", "p99<1s", "--dry-run", "--json", "-")
    assert missing.code == 2 and "no module 'missing'" in missing.err

    assert not (command.folder / ".wsgiload").exists()


def test_a_dry_run_does_not_import_an_app_with_services(command: Command) -> None:
    (command.folder / "needy.py").write_text("raise ConnectionError('no database')\n")
    (command.folder / "wsgiload.toml").write_text('[services.db]\ncommand = "sleep 60"\n')
    result = command.run(
        "sweep", "needy:app", "--servers", "wsgiref", "--rates", 20, "--dry-run", "--json", "-"
    )
    assert (result.code, result.err) == (0, "")


def test_a_dry_run_without_limits_accepts_more_cpus_than_the_host_has(command: Command) -> None:
    (command.folder / "fine.py").write_text("def app(environ, start_response): return []\n")
    words = ("--servers", "wsgiref", "--rates", 20, "--cpus", 4096, "--limits", "none")
    result = command.run("sweep", "fine:app", *words, "--dry-run", "--json", "-")
    assert (result.code, json.loads(result.out)["app"]) == (0, "fine:app"), result.err
