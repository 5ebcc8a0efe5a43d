"""Apps of users: Flask, Django and the real httpbin, each in a local .venv that wsgiload reads and
never changes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from uv import find_uv_bin

from wsgiload.environments.interpreter import bundled_app_interpreter

from .command import Command, CommandResult

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--rates", 50, "--duration", "500ms", "--warmup", "0s", "--cooldown", "0s", "--quiet")

FLASK_APP = """
    from flask import Flask

    app = Flask(__name__)


    @app.get("/users/<name>")
    def user(name):
        return {"name": name}
"""
DJANGO_SETTINGS = """
    SECRET_KEY = "of a test"
    ALLOWED_HOSTS = ["127.0.0.1"]
    ROOT_URLCONF = "shop.urls"
    MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
"""
DJANGO_URLS = """
    from django.http import JsonResponse
    from django.urls import path

    urlpatterns = [path("items/", lambda request: JsonResponse({"items": [1, 2, 3]}))]
"""
DJANGO_WSGI = """
    import os

    from django.core.wsgi import get_wsgi_application

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    application = get_wsgi_application()
"""


def make_project(folder: Path, *packages: str) -> Path:
    """A folder with a ``.venv`` that holds these packages."""
    python = str(bundled_app_interpreter().base_executable)
    folder.mkdir(parents=True)
    for words in (
        ["venv", "--python", python, ".venv"],
        # With bytecode, so that importing the app writes nothing into the environment.
        ["pip", "install", "--compile-bytecode", "--python", ".venv/bin/python", *packages],
    ):
        subprocess.run([find_uv_bin(), "--quiet", *words], cwd=folder, check=True, timeout=300)
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its content; links by where they lead."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}"
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def sweep_unchanged(command: Command, project: Path, *words: object) -> CommandResult:
    """Sweep from the project's folder, and insist that its environment is what it was, byte for
    byte."""
    before = fingerprint(project / ".venv")
    assert any(name.endswith("RECORD") for name in before)
    done = command.run("sweep", *words, cwd=project)
    assert fingerprint(project / ".venv") == before
    return done


def require_all_ok(done: CommandResult, cells: list[str]) -> None:
    """Each cell was measured and every answer was right; whether the host was quiet is the host's
    business."""
    invalid = any(cell["verdict"]["status"] == "invalid" for cell in done.cells.values())
    assert done.code == (98 if invalid else 0)
    assert sorted(done.cells) == sorted(cells)
    for cell in done.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the projects of this module lie; each is made once."""
    return tmp_path_factory.mktemp("projects")


def test_httpbin_from_a_local_environment(command: Command, projects: Path) -> None:
    """The command of the documentation, as it stands there."""
    project = make_project(projects / "httpbin", "httpbin")
    words = (
        "httpbin:app",
        "--path",
        "/json",
        "--servers",
        "gunicorn-gthread,waitress",
        "--rates",
        "100,200",
    )
    done = sweep_unchanged(
        command, project, *words, "--duration", "1s", "--warmup", "200ms", "--cooldown", "0s"
    )
    servers = ("gunicorn-gthread", "waitress")
    require_all_ok(done, [f"{server}@{rate}#1" for server in servers for rate in (100, 200)])
    assert done.summary["experiment"]["app"] == "httpbin:app"
    assert done.run_dir.parent == project / ".wsgiload" / "runs"


def test_a_flask_project_whose_own_waitress_is_another(command: Command, projects: Path) -> None:
    """The server's version wins, and the conflict is named; the user's copy stays as it is."""
    project = make_project(projects / "flask", "flask", "waitress==2.1.2")
    (project / "shop.py").write_text(textwrap.dedent(FLASK_APP))
    done = sweep_unchanged(
        command,
        project,
        "shop:app",
        "--path",
        "/users/ada",
        "--servers",
        "waitress,wsgiref",
        *BRIEFLY,
    )
    require_all_ok(done, ["waitress@50#1", "wsgiref@50#1"])
    waitress = done.cells["waitress@50#1"]
    assert waitress["version"] != "2.1.2"
    assert (
        f"waitress was measured with waitress {waitress['version']}; your app's environment has "
        "2.1.2" in waitress["notes"]
    )
    assert not any("was measured with" in note for note in done.cells["wsgiref@50#1"]["notes"])
    assert "your app's environment has 2.1.2" in done.out


def test_a_django_project_from_another_folder(command: Command, projects: Path) -> None:
    """``--chdir`` leads to the project: its modules and its environment are found there."""
    project = make_project(projects / "django", "django")
    (project / "shop").mkdir()
    for name, text in (("settings", DJANGO_SETTINGS), ("urls", DJANGO_URLS), ("wsgi", DJANGO_WSGI)):
        (project / "shop" / f"{name}.py").write_text(textwrap.dedent(text))
    before = fingerprint(project / ".venv")
    words = (
        "shop.wsgi:application",
        "--chdir",
        project,
        "--path",
        "/items/",
        "--servers",
        "gunicorn-gthread",
    )
    done = command.run("sweep", *words, *BRIEFLY)
    require_all_ok(done, ["gunicorn-gthread@50#1"])
    assert fingerprint(project / ".venv") == before
    assert done.run_dir.is_relative_to(command.folder)


SIZES = ("--grid", "workers=1,2", "threads=1,4", "--slo", "p99<100ms")


def test_httpbin_gets_no_recommendation_from_one_run(command: Command, projects: Path) -> None:
    """One run of each size carries no inference, and the sentence says how many would."""
    project = projects / "httpbin"
    if not project.exists():
        make_project(project, "httpbin")
    words = ("httpbin:app", "--path", "/json", "--servers", "gunicorn-gthread", *SIZES, "--runs", 1)
    done = command.run("sweep", *words, *BRIEFLY, cwd=project)
    require_all_ok(
        done,
        [
            f"gunicorn-gthread-w{workers}-t{threads}@50#1"
            for workers in (1, 2)
            for threads in (1, 4)
        ],
    )
    assert done.out.splitlines()[-1].startswith(
        "No recommendation: no configuration has 4 valid runs at one rate"
    )
    assert "Use --runs 6 on an idle machine" in done.out
    again = command.run("report", done.run_dir, "--slo", "p99<100ms", cwd=project)
    assert again.out.splitlines()[-1] == done.out.splitlines()[-1]


@pytest.mark.skipif(
    "WSGILOAD_LONG_TESTS" not in os.environ, reason="set WSGILOAD_LONG_TESTS=1 for long tests"
)
@pytest.mark.timeout(1200)
def test_httpbin_gets_one_recommended_setting_or_the_reason_why_not(
    command: Command, projects: Path
) -> None:
    project = projects / "httpbin"
    if not project.exists():
        make_project(project, "httpbin")
    words = (
        "httpbin:app",
        "--path",
        "/json",
        "--servers",
        "gunicorn-gthread",
        *SIZES,
        "--rates",
        "50,200,800",
    )
    done = command.start("sweep", *words, "--duration", "5s", cwd=project).end(1100)
    said = done.out.splitlines()[-1]
    assert said.startswith(("Recommended: gunicorn-gthread-w", "No recommendation: "))
    if said.startswith("Recommended"):
        assert re.search(r"95 % CI [0-9.]+ .?s to [0-9.]+ .?s, 6 runs", said)
        assert re.search(r" of 512 MiB \([0-9.]+ % free\)", said)
