"""Apps as users name them and lay them out: factories, odd module names and paths, workspaces and
Django projects, on every kind of server."""

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
# One for each way in which a server is given an app: its own command line, a runner, a file of
# settings.
SERVERS = "gunicorn-gthread,granian,waitress,uvicorn,hypercorn,wsgiref"


def copied(command: Command, name: str) -> Path:
    """A fresh copy of one of the apps."""
    folder = command.folder / name
    shutil.copytree(APPS / name, folder)
    return folder


def require_ok(done: CommandResult, servers: int) -> None:
    assert len(done.cells) == servers, done.err
    for cell in done.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0


def failure(done: CommandResult) -> str:
    """Why the only cell was not measured."""
    assert done.code == 97
    (cell,) = done.cells.values()
    message: str = cell["failure"]["message"]
    return message


def test_a_factory_is_called_by_every_kind_of_server(command: Command) -> None:
    folder = copied(command, "factory")
    words = ("shop:create_app('a greeting')", "--servers", SERVERS)
    done = command.run("sweep", *words, "--expect-regex", "^a greeting$", *BRIEFLY, cwd=folder)
    require_ok(done, 6)


@pytest.mark.parametrize("app", ["my-app:app", "nested:site.server"])
def test_odd_names_are_served(command: Command, app: str) -> None:
    folder = copied(command, "module_name")
    done = command.run("sweep", app, "--servers", "waitress,granian", *BRIEFLY, cwd=folder)
    require_ok(done, 2)


@pytest.mark.parametrize(
    ("name", "app", "fix"),
    [
        ("factory", "shop:create_app", "call it: 'shop:create_app()'"),
        ("factory", "shop:app", "did you mean 'shop:create_app()'?"),
        ("module_name", "api/main.py:app", "write it as `--chdir api main:app`"),
        ("module_name", "{folder}/api/main:app", "write it as `--chdir api main:app`"),
    ],
)
def test_what_cannot_be_served_gets_a_fix_to_paste(
    command: Command, name: str, app: str, fix: str
) -> None:
    folder = copied(command, name)
    done = command.run("sweep", app.format(folder=folder), *BRIEFLY, cwd=folder)
    assert done.code == 2
    assert done.messages == done.err.splitlines()
    assert done.messages[0].endswith(fix)


def test_helpers_named_like_the_standard_library_act_as_under_the_plain_server(
    command: Command,
) -> None:
    folder = copied(command, "factory")
    (folder / "json.py").write_text("raise ValueError('not the json that servers import')\n")
    words = ("sweep", "shop:create_app()", *BRIEFLY, "--servers")
    require_ok(command.run(*words, "granian,waitress", cwd=folder), 2)

    # gunicorn puts the app's folder first before it imports its worker.
    done = command.run(*words, "gunicorn-gthread", cwd=folder)
    assert done.code == 97
    (cell,) = done.cells.values()
    assert "not the json that servers import" in cell["failure"]["log_tail"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of two packages whose environment lies in its root, as uv makes it; the package
    with the app is not installed."""
    folder = tmp_path_factory.mktemp("workspace") / "layout"
    shutil.copytree(APPS / "layout", folder)
    python = str(bundled_app_interpreter().base_executable)
    words = ("sync", "--all-packages", "--no-install-package", "case-web", "--python", python)
    subprocess.run([find_uv_bin(), "--quiet", *words], cwd=folder, check=True, timeout=300)
    return folder


def test_a_package_of_a_workspace_finds_the_environment_around_it(
    command: Command, workspace: Path
) -> None:
    """Its modules lie below src, its data beside that, its dependencies in the workspace."""
    folder = workspace / "packages" / "web"
    words = ("web.wsgi:application", "--servers", "waitress,gunicorn-gthread", *BRIEFLY)
    done = command.run("sweep", *words, cwd=folder)
    assert done.code == 2
    assert done.messages[0].endswith("did you mean `--pythonpath src web.wsgi:application`?")
    assert f"{workspace}/.venv/bin/python" in done.messages[0]

    body = ("--expect-regex", "^hi 42$")
    done = command.run("sweep", "--pythonpath", "src", *body, *words, cwd=folder)
    require_ok(done, 2)


def test_pythonpath_is_named_with_the_option_that_replaces_it(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "lib").mkdir()
    (folder / "lib" / "greeting.py").write_text("TEXT = 'hi'\n")
    (folder / "web.py").write_text("import greeting, shop\napp = shop.create_app(greeting.TEXT)\n")
    words = ("web:app", "--servers", "wsgiref", "--expect-regex", "^hi$", *BRIEFLY[:-1])
    program = ["env", "PYTHONPATH=lib", str(SCRIPT)]
    done = command.run("sweep", *words, cwd=folder, program=program)
    assert "PYTHONPATH is not passed to APP; add its directories with --pythonpath lib" in done.err
    message = failure(done)
    assert "No module named 'greeting'" in message
    assert message.endswith("did you mean `--pythonpath lib web:app`?")

    done = command.run("sweep", "--pythonpath", "lib", *words, cwd=folder, program=program)
    assert not done.messages
    require_ok(done, 1)


@pytest.fixture(scope="module")
def django(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Django project below it, which has an environment of its own."""
    folder = tmp_path_factory.mktemp("django")
    package = make_project(folder / "site", "django") / "shop"
    package.mkdir()
    texts = {"settings": DJANGO_SETTINGS, "urls": DJANGO_URLS, "wsgi": DJANGO_WSGI}
    for name, text in texts.items():
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
def test_django_is_found_by_its_manage_py(
    command: Command, django: Path, place: str, app: str, fix: str
) -> None:
    done = command.run("sweep", app, *BRIEFLY, cwd=django / place)
    assert done.code == 2
    assert done.messages == done.err.splitlines()
    assert done.messages[0].endswith(fix)


def test_what_is_suggested_for_django_is_measured(command: Command, django: Path) -> None:
    words = ("--chdir", "site", "shop.wsgi:application", "--path", "/items/")
    done = command.run("sweep", *words, "--servers", "waitress", *BRIEFLY, cwd=django)
    require_ok(done, 1)


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Django project as it is deployed: settings and secrets come from variables."""
    folder = make_project(tmp_path_factory.mktemp("production") / "site", "django")
    shutil.copytree(APPS / "django_hosts", folder, dirs_exist_ok=True)
    return folder


def test_variables_that_an_app_lacks_are_named(command: Command, production: Path) -> None:
    words = ("site_config.wsgi:application", "--servers", "waitress", *BRIEFLY)
    done = command.run("sweep", *words, cwd=production)
    settings = "DJANGO_SETTINGS_MODULE=site_config.settings.production"
    assert failure(done).endswith(f"add --env {settings}")

    done = command.run("sweep", *words, "--env", settings, cwd=production)
    assert failure(done).endswith("add --env APP_SECRET_KEY=VALUE")


def test_an_import_may_take_as_long_as_the_start(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "slow.py").write_text("import shop, time\ntime.sleep(3)\napp = shop.create_app()\n")
    words = ("slow:app", "--servers", "waitress", *BRIEFLY)
    require_ok(command.run("sweep", *words, cwd=folder), 1)
    done = command.run("sweep", *words, "--ready-timeout", "1s", cwd=folder)
    assert done.code == 97
    assert "importing slow did not finish within 1 s; raise --ready-timeout" in done.out


def test_an_import_that_eats_memory_is_ended_and_named(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "greedy.py").write_text("eaten = b'x' * (2 << 30)\n")
    done = command.run("sweep", "greedy:app", "--servers", "waitress", *BRIEFLY, cwd=folder)
    assert done.code == 97
    assert "importing greedy exceeds the memory limit of 1,024 MiB" in done.out


def test_a_dry_run_imports_the_app_and_starts_no_server(command: Command) -> None:
    (command.folder / "fine.py").write_text("def app(environ, start_response): return []\n")
    (command.folder / "broken.py").write_text("raise RuntimeError('no database')\n")

    fine = command.run("sweep", "fine:app", "--servers", "wsgiref", "--rates", 20, "--dry-run")
    assert (fine.code, fine.err) == (0, "")
    broken = command.run("sweep", "broken:app", "--servers", "wsgiref", "--rates", 20, "--dry-run")
    assert (broken.code, json.loads(broken.out)["app"]) == (97, "broken:app")
    assert "no database" in broken.err and broken.err.count("\n") == 1
    missing = command.run("capacity", "missing:app", "--slo", "p99<1s", "--dry-run")
    assert missing.code == 2 and "no module 'missing'" in missing.err
    assert not (command.folder / ".wsgiload").exists()


def test_a_dry_run_imports_no_app_that_may_need_a_service(command: Command) -> None:
    (command.folder / "needy.py").write_text("raise ConnectionError('no database')\n")
    (command.folder / "wsgiload.toml").write_text('[services.db]\ncommand = "sleep 60"\n')
    done = command.run("sweep", "needy:app", "--servers", "wsgiref", "--rates", 20, "--dry-run")
    assert (done.code, done.err) == (0, "")


def test_a_dry_run_without_limits_accepts_what_the_sweep_does(command: Command) -> None:
    (command.folder / "fine.py").write_text("def app(environ, start_response): return []\n")
    words = ("--servers", "wsgiref", "--rates", 20, "--cpus", 4096, "--limits", "none")
    done = command.run("sweep", "fine:app", *words, "--dry-run")
    assert (done.code, json.loads(done.out)["app"]) == (0, "fine:app"), done.err
